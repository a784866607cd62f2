//! What of a tool's output a model is shown: all of it, or head, notice and tail.
//!
//! Called by the session when a tool has ended. The content it makes is always JSON text.

use crate::json::{Style, quote};
use crate::stop::Failure;

/// How many bytes of a failure's own words are kept.
const MAX_DETAIL: usize = 2_000;

/// The content, and the whole output if that is more.
pub(crate) fn shown(output: String, cap: usize) -> (String, Option<String>) {
    if output.len() <= cap {
        return (output, None);
    }
    let (head, tail) = ends(&output, cap);
    let left_out = output.len() - head.len() - tail.len();
    let text = format!(
        "{head}\n[{left_out} of {} bytes are left out here; the whole output is kept with the call's record]\n{tail}",
        output.len()
    );
    (quote(&text, Style::Exact), Some(output))
}

/// The first two thirds and the last third of what may be shown, cut between characters.
fn ends(output: &str, cap: usize) -> (&str, &str) {
    let tail_length = cap / 3;
    let head_end = output.floor_char_boundary(cap - tail_length);
    let tail_start = output.ceil_char_boundary(output.len() - tail_length);
    (
        output.get(..head_end).unwrap_or_default(),
        output.get(tail_start..).unwrap_or_default(),
    )
}

/// What the model reads of a failure.
pub(crate) fn of_failure(failure: &Failure) -> String {
    format!(
        r#"{{"error":{},"message":{}}}"#,
        quote(&failure.to_string(), Style::Exact),
        quote(&failure.tell(), Style::Exact)
    )
}

/// A failure's own words, bounded.
pub(crate) fn detail(mut text: String) -> String {
    if text.len() > MAX_DETAIL {
        text.truncate(text.floor_char_boundary(MAX_DETAIL));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_shown_as_it_is() {
        assert_eq!(shown("\"ä\"".into(), 4), ("\"ä\"".into(), None));
    }

    #[test]
    fn long_output_is_head_notice_tail_and_kept_whole() {
        let output = format!("\"{}\"", "é".repeat(100));
        let (content, full) = shown(output.clone(), 30);
        let text: String = serde_json::from_str(&content).unwrap();
        assert_eq!(
            text,
            format!(
                "\"{}\n[174 of 202 bytes are left out here; the whole output is kept with the call's record]\n{}\"",
                "é".repeat(9),
                "é".repeat(4)
            )
        );
        assert_eq!(full, Some(output));
    }

    #[test]
    fn a_cap_of_nothing_shows_the_notice_only() {
        let (content, full) = shown("12345".into(), 0);
        assert!(content.contains("5 of 5 bytes"));
        assert_eq!(full.as_deref(), Some("12345"));
    }

    #[test]
    fn a_failure_is_an_object_with_reason_and_words() {
        let failure = Failure::Timeout {
            tool: "slow".into(),
        };
        assert_eq!(
            of_failure(&failure),
            r#"{"error":"tool_timeout:slow","message":"`slow` did not finish in the time it may take."}"#
        );
    }
}
