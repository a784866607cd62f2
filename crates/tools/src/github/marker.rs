//! [`Mark`]: the line at the end of a comment by which it is found again.
//!
//! GitHub has no idempotency keys: a comment that was sent, and whose answer nobody saw, is looked for among all
//! comments. The line is an HTML comment, which GitHub does not show. It counts only in a comment by the user who
//! acted, and only with the very text that was signed: anybody can copy a line. Pure.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

const BEGIN: &str = "<!-- ";
const END: &str = " -->";

/// How many hexadecimal digits of a hash a mark has.
const DIGITS: usize = 16;

/// How many characters a mark takes at most, with what stands before it.
pub(super) const ROOM: usize = 250;

/// What a mark says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The action, by [`Signed::marker`](paraph_gateway::Signed::marker).
    pub(super) action: String,
    /// The user in whose name it was written.
    pub(super) by: u64,
    /// What it belongs to, as a hash: one comment for each.
    pub(super) thread: String,
    /// The text before the mark, as a hash.
    pub(super) text: String,
    /// Whether it was written in the place of an earlier text.
    pub(super) again: bool,
}

impl Mark {
    /// For a text about something.
    pub(super) fn new(action: String, by: u64, thread: &str, text: &str, again: bool) -> Mark {
        Mark {
            action,
            by,
            thread: short_hash(thread),
            text: short_hash(text),
            again,
        }
    }

    /// The mark at the end of a comment, if there is one that can be read.
    pub(super) fn of(body: &str) -> Option<Mark> {
        let (_, line) = split(body)?;
        let line = line.strip_prefix(BEGIN)?.strip_suffix(END)?;
        let (action, rest) = line.split_once(";by=")?;
        let (by, rest) = rest.split_once(";thread=")?;
        let (thread, rest) = rest.split_once(";text=")?;
        let (text, again) = rest.split_once(";")?;
        let mark = Mark {
            action: action.to_owned(),
            by: by.parse().ok()?,
            thread: thread.to_owned(),
            text: text.to_owned(),
            again: match again {
                "new" => false,
                "again" => true,
                _ => return None,
            },
        };
        let hashes = [&mark.thread, &mark.text];
        let fine = mark.action.starts_with("paraph:act=")
            && hashes.iter().all(|hash| hash.len() == DIGITS);
        fine.then_some(mark)
    }

    /// A text with the mark at its end.
    pub(super) fn under(&self, text: &str) -> String {
        let kind = match self.again {
            false => "new",
            true => "again",
        };
        format!(
            "{text}\n\n{BEGIN}{};by={};thread={};text={};{kind}{END}",
            self.action, self.by, self.thread, self.text
        )
    }

    /// Whether a comment's text is still the one that the mark was made for.
    pub(super) fn fits(&self, body: &str) -> bool {
        split(body).is_some_and(|(text, _)| short_hash(text) == self.text)
    }
}

/// A comment's text and its last line. GitHub may write line ends as browsers do.
fn split(body: &str) -> Option<(&str, &str)> {
    let body = body.trim_end();
    let (before, line) = body.rsplit_once('\n')?;
    let before = before.strip_suffix('\r').unwrap_or(before);
    let text = before.strip_suffix('\n').unwrap_or(before);
    Some((text.strip_suffix('\r').unwrap_or(text), line))
}

/// A hash of a text, the same however its lines end.
pub(super) fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.replace("\r\n", "\n"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.get(..DIGITS).unwrap_or(&hex).to_owned()
}

/// The number of a comment's author; a deleted user has none.
pub(super) fn author(comment: &Value) -> Option<u64> {
    comment.pointer("/user/id")?.as_u64()
}

/// A comment's text.
pub(super) fn body(comment: &Value) -> &str {
    comment
        .get("body")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn mark(again: bool) -> Mark {
        let action = "paraph:act=0192f0c1-0000-7000-8000-000000000000;k=0123456789abcdef";
        Mark::new(action.to_owned(), u64::MAX, "thread", "Two\nlines", again)
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_whatever_the_line_ends() {
        for again in [false, true] {
            let whole = mark(again).under("Two\nlines");
            assert!(whole.chars().count() - 9 <= ROOM, "{whole}");
            for body in [
                whole.clone(),
                whole.replace('\n', "\r\n"),
                format!("{whole}\n"),
            ] {
                let read = Mark::of(&body).unwrap();
                assert_eq!(read, mark(again));
                assert!(read.fits(&body));
                assert!(!read.fits(&body.replace("lines", "words")));
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_mark_is_none() {
        let whole = mark(false).under("Two\nlines");
        let line = whole.rsplit('\n').next().unwrap();
        for body in [
            "".to_owned(),
            line.to_owned(),
            format!("{whole}\nmore"),
            whole.replace("paraph:act=", "act="),
            whole.replace(";new", ";old"),
            whole.replace(";by=", ";by=x"),
            whole.replace(" -->", " --"),
        ] {
            assert_eq!(Mark::of(&body), None, "{body}");
        }
    }
}
