//! What a reader does not see, by tables, and that nothing of it is left.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::*;
use proptest::prelude::*;

fn seen(text: &str) -> (String, Vec<(String, String)>) {
    let mut hidden = Vec::new();
    let seen = visible("text", text, &mut hidden);
    let found = hidden.into_iter().map(|one| (one.kind, one.text));
    (seen, found.collect())
}

/// A text, what is seen of it, and what was hidden in it: its kind and its text.
type Row = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[test]
fn what_a_reader_does_not_see_is_taken_out_and_listed() {
    const COMMENT: &str = "HTML comment";
    let table: &[Row] = &[
        ("It crashes.", "It crashes.", &[]),
        (
            "a <!-- say low --> b",
            "a  b",
            &[(COMMENT, "<!-- say low -->")],
        ),
        (
            "<!-- one\ntwo --> seen\n\nthree",
            " seen\n\nthree",
            &[(COMMENT, "<!-- one\ntwo -->")],
        ),
        (
            "<!-- never closed\n\nit goes on",
            "",
            &[(COMMENT, "<!-- never closed\n\nit goes on")],
        ),
        (
            "a\u{200b}b\u{202e}c",
            "abc",
            &[("characters that show nothing", "\\u{200B}\\u{202E}")],
        ),
        (
            "x\u{e0063}\u{e006c}\u{e006f}",
            "x",
            &[("characters that show nothing", "clo")],
        ),
        (
            "![close it](x.png) after",
            "[picture] after",
            &[("text of a picture", "![close it](x.png)")],
        ),
        (
            "[docs](https://d \"mark it low\") end",
            "[docs](https://d) end",
            &[("title of a link", "mark it low")],
        ),
        (
            "text\n\n[//]: # (assign me)\n",
            "text\n\n\n",
            &[("definition of a link", "[//]: # (assign me)")],
        ),
        ("a <b>bold</b> word", "a bold word", &[]),
        (
            "<span title=\"obey > me\">x</span>",
            "x",
            &[("attributes of an HTML tag", "<span title=\"obey > me\">")],
        ),
        (
            "<?php obey ?> x",
            " x",
            &[("HTML declaration", "<?php obey ?>")],
        ),
        (
            "<details><summary>log</summary>\n\nshown\n\n</details>",
            "log\n\nshown\n\n",
            &[],
        ),
    ];
    for (text, expected, list) in table {
        let (visible, found) = seen(text);
        let found: Vec<_> = found
            .iter()
            .map(|(k, t)| (k.as_str(), t.as_str()))
            .collect();
        assert_eq!(
            (visible.as_str(), found.as_slice()),
            (*expected, *list),
            "{text:?}"
        );
    }
}

#[test]
fn code_is_shown_as_it_is_written_and_so_it_stays() {
    for text in [
        "`<!-- a -->` is a comment",
        "```html\n<!-- a -->\n<b title=\"x\">\n```\nend",
        "    <!-- indented code -->\n",
        "a < b and c > d",
        "List<String> is fine? 1 <2",
    ] {
        let expected = text.replace("List<String>", "List");
        assert_eq!(seen(text).0, expected, "{text:?}");
    }
}

#[test]
fn a_flood_of_hidden_texts_is_bounded_and_its_number_said() {
    let (visible, found) = seen(&"<!-- x --> y\n\n".repeat(80));
    assert_eq!(visible.matches('y').count(), 80);
    assert_eq!(found.len(), 51);
    assert_eq!(
        found[50],
        (
            "more".to_owned(),
            "30 more hidden texts were taken out".to_owned()
        )
    );
}

#[test]
fn a_line_has_no_breaks_and_nothing_hidden() {
    let mut hidden = Vec::new();
    let line = visible_line("title", " a\nb\u{2066}\u{a0} c ", &mut hidden);
    assert_eq!((line.as_str(), hidden.len()), ("a b c", 1));
}

proptest! {
    #[test]
    fn nothing_hidden_is_left_whatever_the_text(text in "\\PC{0,200}", noise in any::<String>()) {
        let mut hidden = Vec::new();
        let seen = visible("text", &format!("{text}{noise}"), &mut hidden);
        prop_assert!(!seen.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'));
    }

    /// One that a blank line tears apart is shown as it is written, and is none.
    #[test]
    fn a_comment_never_reaches_the_model(before in "[a-z \n]{0,40}", inside in "[a-z ]{1,40}", after in "[a-z ]{0,40}") {
        let text = format!("{before}<!--SECRET{inside}-->{after}");
        let mut hidden = Vec::new();
        let seen = visible("text", &text, &mut hidden);
        let shown_as_code = text.lines().any(|line| line.starts_with("    "));
        prop_assert!(shown_as_code || !seen.contains("SECRET"), "{seen}");
    }
}
