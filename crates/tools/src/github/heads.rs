//! The headers of GitHub's answers that the client goes by, and what they say about limits and further pages.
//!
//! Pure.

use reqwest::header::{DATE, ETAG, HeaderMap, LINK, LOCATION, RETRY_AFTER};

use super::moment;
use crate::said;

/// How long is waited after a limit that does not say how long.
const UNSAID: u64 = 60;

/// What the headers of one answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heads {
    pub(super) etag: Option<String>,
    /// The address of the next page.
    pub(super) next: Option<String>,
    pub(super) location: Option<String>,
    /// Seconds to wait, or a date.
    pub(super) retry_after: Option<String>,
    /// How many requests are left in this hour.
    pub(super) remaining: Option<u64>,
    /// When the hour is over, in seconds since the Unix epoch.
    pub(super) reset: Option<u64>,
    /// The server's own time, so that a clock of ours that is wrong does not matter.
    pub(super) date: Option<u64>,
}

/// A limit that an answer tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    /// How many seconds nothing is to be sent.
    pub(super) seconds: u64,
    /// Whether it is the limit for bursts.
    pub(super) secondary: bool,
}

impl Heads {
    /// Reads them.
    pub(super) fn of(headers: &HeaderMap) -> Heads {
        let text = |name: &str| {
            let value = headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let number = |name: &str| text(name)?.trim().parse().ok();
        Heads {
            etag: text(ETAG.as_str()),
            next: text(LINK.as_str()).and_then(|link| next_of(&link)),
            location: text(LOCATION.as_str()),
            retry_after: text(RETRY_AFTER.as_str()),
            remaining: number("x-ratelimit-remaining"),
            reset: number("x-ratelimit-reset"),
            date: text(DATE.as_str()).and_then(|date| moment::of_header(&date)),
        }
    }

    /// The limit that an answer of this status tells of, if it does. `strikes` is how often in a row there was one that
    /// did not say how long it lasts: each time is waited twice as long.
    pub(super) fn limit(&self, status: u16, body: &[u8], strikes: u32) -> Option<Limit> {
        let refused = status == 403 || status == 429;
        let now = self.date.unwrap_or_else(moment::now);
        if self.remaining == Some(0) && (refused || (200..400).contains(&status)) {
            let until_reset = self.reset.map(|reset| reset.saturating_sub(now) + 1);
            let seconds = match self.asked_to_wait(now) {
                Some(asked) if refused => asked.max(until_reset.unwrap_or(0)),
                _ => until_reset.unwrap_or(UNSAID),
            };
            return Some(Limit {
                seconds,
                secondary: false,
            });
        }
        if !refused {
            return None;
        }
        let asked = self.asked_to_wait(now);
        (asked.is_some() || status == 429 || speaks_of_limits(body)).then(|| Limit {
            seconds: asked.unwrap_or(UNSAID << strikes.min(6)),
            secondary: true,
        })
    }

    fn asked_to_wait(&self, now: u64) -> Option<u64> {
        let asked = self.retry_after.as_deref()?.trim();
        match asked.parse() {
            Ok(seconds) => Some(seconds),
            Err(_) => Some(moment::of_header(asked)?.saturating_sub(now)),
        }
    }
}

fn speaks_of_limits(body: &[u8]) -> bool {
    let said = said::reason(body).to_ascii_lowercase();
    [
        "secondary rate limit",
        "rate limit exceeded",
        "abuse detection",
    ]
    .iter()
    .any(|words| said.contains(words))
}

/// The address of the next page in a `Link` header.
fn next_of(link: &str) -> Option<String> {
    link.split(',').find_map(|part| {
        let (address, relations) = part.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = relations.split(';').any(|relation| {
            let relation = relation.trim();
            relation == "rel=\"next\"" || relation == "rel=next"
        });
        is_next.then(|| address.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_the_one_that_says_so() {
        let link = r#"<https://api.github.com/a?page=1>; rel="prev", <https://api.github.com/a?page=3>; rel="next", <https://api.github.com/a?page=9>; rel="last""#;
        assert_eq!(
            next_of(link).as_deref(),
            Some("https://api.github.com/a?page=3")
        );
        for none in [
            "",
            "https://x; rel=next",
            r#"<https://x>; rel="last""#,
            r#"<https://x; rel="next""#,
        ] {
            assert_eq!(next_of(none), None, "{none}");
        }
    }

    #[test]
    fn limits_are_told_from_refusals() {
        let of = |status, heads: Heads, body: &str| heads.limit(status, body.as_bytes(), 0);
        let primary = |seconds| {
            Some(Limit {
                seconds,
                secondary: false,
            })
        };
        let secondary = |seconds| {
            Some(Limit {
                seconds,
                secondary: true,
            })
        };
        let spent = Heads {
            remaining: Some(0),
            reset: Some(1_100),
            date: Some(1_000),
            ..Heads::default()
        };
        let left = Heads {
            remaining: Some(9),
            ..spent.clone()
        };
        let wait = |text: &str| Heads {
            retry_after: Some(text.to_owned()),
            ..left.clone()
        };
        let abuse = r#"{"message":"You have exceeded a secondary rate limit."}"#;
        for (status, heads, body, expected) in [
            (403, spent.clone(), "{}", primary(101)),
            (429, spent.clone(), "{}", primary(101)),
            (200, spent.clone(), "[]", primary(101)),
            (304, spent.clone(), "", primary(101)),
            (404, spent, "", None),
            (
                403,
                left.clone(),
                r#"{"message":"Must have admin rights"}"#,
                None,
            ),
            (403, left.clone(), abuse, secondary(60)),
            (429, left.clone(), "", secondary(60)),
            (403, wait("7"), "", secondary(7)),
            (
                403,
                wait("Thu, 01 Jan 1970 00:17:00 GMT"),
                "",
                secondary(20),
            ),
            (429, wait("soon"), "", secondary(60)),
            (200, left, "", None),
        ] {
            assert_eq!(of(status, heads, body), expected, "{status} {body}");
        }
        let third = Heads::default().limit(429, b"", 2);
        assert_eq!(third, secondary(240));
    }
}
