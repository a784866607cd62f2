//! [`GitHubFault`]: what GitHub's answers mean when they are not what was asked for.
//!
//! Pure. The client makes faults out of statuses; whoever shows them adds what was asked about.

use std::fmt;

use super::heads::Heads;
use super::moment;
use crate::said;

/// Why GitHub gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GitHubFault {
    /// There is none, or the token may not see it (404).
    NotFound,
    /// It was deleted (410).
    Deleted,
    /// The repository has no issues (410).
    IssuesDisabled,
    /// It is blocked for legal reasons (451).
    Blocked,
    /// Something that only a signed-in user may do, and there is no token.
    NoToken,
    /// The token is not known, or not valid any more (401).
    BadToken,
    /// The token may not do this (403), or it is locked.
    Refused {
        /// What GitHub said.
        said: String,
    },
    /// It is somewhere else, and what is written is not sent after it.
    Moved {
        /// Where, as far as that is known.
        to: String,
    },
    /// Too many requests. Nothing was done.
    Limited {
        /// When the next one may be sent, in seconds since the Unix epoch.
        until: u64,
        /// Whether it is the limit for bursts, and not the hourly one.
        secondary: bool,
    },
    /// GitHub does not take what was sent (422).
    Invalid {
        /// What GitHub said.
        said: String,
    },
    /// Another status.
    Status {
        /// The status.
        status: u16,
        /// What GitHub said.
        said: String,
    },
    /// An answer that is not what the interface describes.
    Unreadable {
        /// What is wrong with it.
        problem: String,
    },
}

impl fmt::Display for GitHubFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GitHubFault::NotFound => {
                f.write_str("GitHub has none, or the token may not see it (404)")
            }
            GitHubFault::Deleted => f.write_str("it was deleted (410)"),
            GitHubFault::IssuesDisabled => f.write_str("the repository has no issues (410)"),
            GitHubFault::Blocked => f.write_str("it is blocked for legal reasons (451)"),
            GitHubFault::NoToken => f.write_str("this needs a token: set GITHUB_TOKEN, or sign in"),
            GitHubFault::BadToken => {
                f.write_str("GitHub does not know the token, or it has run out (401)")
            }
            GitHubFault::Refused { said } => write!(f, "GitHub refuses it{}", after(said)),
            GitHubFault::Moved { to } => write!(
                f,
                "it was renamed or transferred, to {to}; nothing is sent after it"
            ),
            GitHubFault::Limited { until, secondary } => write!(
                f,
                "GitHub's {} is used up until {}",
                match secondary {
                    true => "limit for many requests at once",
                    false => "hourly limit",
                },
                moment::stamp(*until)
            ),
            GitHubFault::Invalid { said } => {
                write!(f, "GitHub does not take it (422){}", after(said))
            }
            GitHubFault::Status { status, said } => {
                write!(f, "GitHub answered {status}{}", after(said))
            }
            GitHubFault::Unreadable { problem } => {
                write!(f, "GitHub's answer cannot be read: {problem}")
            }
        }
    }
}

fn after(said: &str) -> String {
    match said {
        "" => String::new(),
        said => format!(": {said}"),
    }
}

impl GitHubFault {
    /// What an answer means that is no success and no limit.
    pub(super) fn of(status: u16, heads: &Heads, body: &[u8]) -> GitHubFault {
        let said = said::reason(body);
        match status {
            301 | 302 | 307 | 308 => GitHubFault::Moved {
                to: heads.location.clone().unwrap_or("nowhere".to_owned()),
            },
            401 => GitHubFault::BadToken,
            403 => GitHubFault::Refused { said },
            404 => GitHubFault::NotFound,
            410 if said.to_ascii_lowercase().contains("disabled") => GitHubFault::IssuesDisabled,
            410 => GitHubFault::Deleted,
            422 => GitHubFault::Invalid {
                said: with_details(said, body),
            },
            451 => GitHubFault::Blocked,
            status => GitHubFault::Status { status, said },
        }
    }

    /// Whether this proves that nothing was done.
    pub(super) fn proves_nothing_done(&self) -> bool {
        match self {
            GitHubFault::Status { status, .. } => (400..500).contains(status) && *status != 408,
            GitHubFault::Unreadable { .. } => false,
            _ => true,
        }
    }
}

/// A refusal with the first of the details that GitHub adds to it.
fn with_details(said: String, body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let detail = value.pointer("/errors/0");
    let detail = detail.and_then(|detail| match detail.get("message").unwrap_or(detail) {
        serde_json::Value::String(text) => Some(text.clone()),
        _ => detail
            .get("code")
            .and_then(|code| code.as_str().map(str::to_owned)),
    });
    match detail {
        Some(detail) => said::short(&format!("{said} ({detail})")),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_told_as_what_it_means() {
        let heads = Heads {
            location: Some("https://api.github.com/repositories/1".to_owned()),
            ..Heads::default()
        };
        for (status, body, text) in [
            (
                301,
                "",
                "it was renamed or transferred, to https://api.github.com/repositories/1; nothing is sent after it",
            ),
            (
                401,
                "",
                "GitHub does not know the token, or it has run out (401)",
            ),
            (
                403,
                r#"{"message":"Resource not accessible"}"#,
                "GitHub refuses it: Resource not accessible",
            ),
            (
                404,
                r#"{"message":"Not Found"}"#,
                "GitHub has none, or the token may not see it (404)",
            ),
            (
                410,
                r#"{"message":"This issue was deleted"}"#,
                "it was deleted (410)",
            ),
            (
                410,
                r#"{"message":"Issues are disabled for this repo"}"#,
                "the repository has no issues (410)",
            ),
            (
                422,
                r#"{"message":"Validation Failed","errors":[{"message":"body is too long"}]}"#,
                "GitHub does not take it (422): Validation Failed (body is too long)",
            ),
            (
                422,
                r#"{"message":"Validation Failed","errors":[{"code":"missing"}]}"#,
                "GitHub does not take it (422): Validation Failed (missing)",
            ),
            (422, "<p>", "GitHub does not take it (422)"),
            (451, "", "it is blocked for legal reasons (451)"),
            (500, "", "GitHub answered 500"),
        ] {
            let fault = GitHubFault::of(status, &heads, body.as_bytes());
            assert_eq!(fault.to_string(), text);
            assert_eq!(fault.proves_nothing_done(), status < 500, "{text}");
        }
    }
}
