//! Words that would act, by tables and in any disguise.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use super::*;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What of a posted text could act: the letters outside of code, and anything but plain paragraphs.
fn live(markdown: &str) -> (String, Vec<String>) {
    let (mut outside, mut odd, mut in_code) = (String::new(), Vec::new(), false);
    for event in Parser::new_ext(markdown, Options::all()) {
        match event {
            Event::Text(text) if !in_code => outside.push_str(&text),
            Event::Code(_) | Event::SoftBreak | Event::HardBreak => outside.push('\n'),
            Event::Text(_) | Event::Start(Tag::Paragraph) => {}
            Event::End(TagEnd::Paragraph) => outside.push('\n'),
            other => {
                in_code |= matches!(other, Event::Start(Tag::CodeBlock(_)));
                odd.push(format!("{other:?}"));
            }
        }
    }
    (outside, odd)
}

fn made(text: &str) -> String {
    inert(text).text
}

#[test]
fn what_would_act_stands_in_code_and_is_told() {
    let table = [
        ("ask @ann about it", "ask `@ann` about it", vec!["@ann"]),
        (
            "(@org/team), please",
            "`(@org/team),` please",
            vec!["(@org/team),"],
        ),
        (
            "fixes #1 and closes owner/repo#2.",
            "fixes `#1` and closes `owner/repo#2.`",
            vec!["#1", "owner/repo#2."],
        ),
        ("Resolves GH-12", "Resolves `GH-12`", vec!["GH-12"]),
        (
            "resolves gh-12; see PROJ-7",
            "resolves `gh-12;` see `PROJ-7`",
            vec!["gh-12;", "PROJ-7"],
        ),
        ("/close", "`/close`", vec!["/close"]),
        ("> /merge now", "\\> `/merge` now", vec!["/merge"]),
        (
            "see https://github.com/o/r/issues/3",
            "see `https://github.com/o/r/issues/3`",
            vec!["https://github.com/o/r/issues/3"],
        ),
        (
            "[x](http://evil/)",
            "`[x](http://evil/)`",
            vec!["[x](http://evil/)"],
        ),
        ("WWW.evil.org", "`WWW.evil.org`", vec!["WWW.evil.org"]),
        ("&#64;ann", "`&#64;ann`", vec!["&#64;ann"]),
        ("\\@ann", "`\\@ann`", vec!["\\@ann"]),
        ("@<b>ann", "`@<b>ann`", vec!["@<b>ann"]),
        (
            "fix<!-- -->es \\#1",
            "fix\\<\\!-- --\\>es `\\#1`",
            vec!["\\#1"],
        ),
        ("@\u{200b}ann", "`@ann`", vec!["@ann"]),
    ];
    for (text, expected, silenced) in table {
        let made = inert(text);
        assert_eq!(
            (made.text.as_str(), made.silenced),
            (expected, silenced.into_iter().map(str::to_owned).collect()),
            "{text}"
        );
    }
}

#[test]
fn marks_become_letters_and_code_stays_code() {
    let table = [
        ("call `map.get(k)` first", "call `map.get(k)` first"),
        ("a `b", "a \\`b"),
        ("``` sh", "` ` sh"),
        ("# big", "\\# big"),
        ("- item\n1. one\n2) two", "\\- item\n1\\. one\n2\\) two"),
        ("    indented", "indented"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("title\n===", "title\n\\==="),
        ("version 1.2 - ok", "version 1.2 - ok"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("![x](y)", "\\!\\[x\\](y)"),
        ("$$x$$ and |a|", "\\$\\$x\\$\\$ and \\|a\\|"),
    ];
    for (text, expected) in table {
        let expected = if text.starts_with("```") {
            made(text)
        } else {
            expected.to_owned()
        };
        assert_eq!(made(text), expected, "{text}");
        let (_, odd) = live(&made(text));
        assert_eq!(odd, Vec::<String>::new(), "{text}");
    }
}

fn assert_inert(text: &str) -> Result<(), TestCaseError> {
    let made = made(text);
    let (outside, odd) = live(&made);
    prop_assert!(odd.is_empty(), "{text:?} -> {made:?}: {odd:?}");
    prop_assert!(!outside.contains('@'), "{text:?} -> {made:?}: {outside:?}");
    prop_assert!(
        !has_number_behind(&outside, '#'),
        "{text:?} -> {made:?}: {outside:?}"
    );
    prop_assert!(
        !outside.contains("://"),
        "{text:?} -> {made:?}: {outside:?}"
    );
    let commands = made.lines().any(|line| {
        let mut letters = line.trim_start().chars();
        letters.next() == Some('/') && letters.next().is_some_and(char::is_alphabetic)
    });
    prop_assert!(!commands, "{text:?} -> {made:?}");
    Ok(())
}

proptest! {
    #[test]
    fn nothing_acts_whatever_the_text(text in any::<String>()) {
        assert_inert(&text)?;
    }

    #[test]
    fn nothing_acts_in_any_disguise(
        parts in prop::collection::vec(prop::sample::select(vec![
            "@ann", "#1", "fixes ", "/close", "`", "``", "```", "\n", " ", "\\", "*", "_", "[", "](", ")", "<b>", "<!--", "-->",
            "&#64;", "&commat;", "https://x.org/1", "> ", "- ", "1. ", "# ", "|", "~~", "\t", "    ", "GH-3", "o/r#4", "!",
        ]), 0..14),
    ) {
        assert_inert(&parts.concat())?;
    }
}
