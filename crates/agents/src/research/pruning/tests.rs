//! Of the ten faults of the original the first (notes were never cleared), the second (what lay behind the first twenty
//! thousand characters was never read, and the same was read again) and the fourth (facts lost their sources).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::research::reading::ExtractedFact;
use crate::{Source, SourceKind};
use paraph_graph::List as _;

fn library(texts: &[(&str, &str)]) -> Library {
    let mut library = Library::default();
    for (url, text) in texts {
        let source = Source::new(
            url,
            "Title",
            (SourceKind::Page, text),
            "2026-01-31T10:00:00Z",
        );
        library.add(vec![source]);
    }
    library
}

fn note(text: &str) -> Note {
    Note {
        number: 1,
        text: text.to_owned(),
        tries: 0,
    }
}

fn fact(text: &str, sources: &[&str]) -> Fact {
    Fact {
        text: text.to_owned(),
        sources: sources.iter().map(|id| (*id).to_owned()).collect(),
    }
}

#[test]
fn every_part_of_long_notes_is_read_once_with_the_source_it_belongs_to() {
    let id = Source::id_of("https://a.org/");
    let lines: Vec<String> = (0..3_000)
        .map(|n| format!("Line {n} says something of its own.\n"))
        .collect();
    let long = note(&format!(
        "=====[ text of {id} begins: page ]\n{}",
        lines.concat()
    ));
    let batches = batches(
        &[note("A short one."), long.clone(), note("Another.")],
        6_000,
    );
    assert!(batches.len() > 3, "{}", batches.len());
    for batch in &batches {
        let tokens: usize = batch.iter().map(|note| estimate_text(&note.text)).sum();
        assert!(tokens <= 6_000, "{tokens}");
    }
    let all: String = batches
        .iter()
        .flatten()
        .map(|note| note.text.as_str())
        .collect();
    for line in &lines {
        assert_eq!(all.matches(line.as_str()).count(), 1, "{line}");
    }
    // Each part of the long note says whose it is.
    let parts = batches
        .iter()
        .flatten()
        .filter(|note| note.text.contains("Line"));
    assert!(parts.clone().count() > 2 && parts.clone().all(|part| part.text.contains(&id)));
}

#[test]
fn a_line_without_an_end_is_cut_between_characters() {
    let long = note(&"ä".repeat(40_000));
    let batches = batches(&[long], 6_000);
    let all: usize = batches
        .iter()
        .flatten()
        .map(|note| note.text.chars().count())
        .sum();
    assert_eq!(all, 40_000);
}

#[test]
fn a_fact_needs_a_source_that_was_read_there() {
    let library = library(&[("https://a.org/", "One."), ("https://b.org/", "Two.")]);
    let (a, b) = (
        Source::id_of("https://a.org/"),
        Source::id_of("https://b.org/"),
    );
    let said = |fact: &str, sources: &[&str]| ExtractedFact {
        fact: fact.to_owned(),
        sources: sources.iter().map(|id| (*id).to_owned()).collect(),
    };
    let found = Extracted {
        facts: vec![
            said("One.", &[&a, "src-00000000"]),
            said("Of another note.", &[&b]),
            said("Of nobody.", &[]),
            said(" ", &[&a]),
            said("Twice named.", &[&format!("[{a}, {a}]")]),
        ],
    };
    let read = [a.clone(), "src-00000000".to_owned()];
    assert_eq!(
        held(found, &read, &library),
        [fact("One.", &[&a]), fact("Twice named.", &[&a])]
    );
}

#[test]
fn what_is_known_is_not_taken_again() {
    let known = [fact("It is so.", &["src-0"])];
    let found = vec![
        fact("it  IS so.", &["src-0"]),
        fact("It is so.", &["src-1"]),
        fact("New.", &["src-0"]),
        fact("new.", &["src-0"]),
    ];
    assert_eq!(
        only_new(&known, found),
        [fact("It is so.", &["src-1"]), fact("New.", &["src-0"])]
    );
}

#[test]
fn notes_of_which_no_facts_could_be_made_leave_the_beginnings_of_their_sources() {
    let library = library(&[("https://a.org/", "  One\n\ntwo three.  ")]);
    let id = Source::id_of("https://a.org/");
    let left = as_they_are(
        &note(&format!("=====[ text of {id} begins: page ]\nOne")),
        &library,
    );
    assert_eq!(left, [fact("Title says: One two three.", &[&id])]);
}

#[test]
fn facts_are_made_when_notes_and_conversation_are_long_and_there_are_notes() {
    let state = |notes: usize, spoken: usize| ResearchState {
        raw_notes: (0..notes).map(|_| note(&"x".repeat(400))).collect(),
        supervisor_messages: crate::Conversation::from_items(vec![
            Message::human("y".repeat(400));
            spoken
        ]),
        ..ResearchState::default()
    };
    let table = [
        (0, 0, false),
        (0, 9, false),
        (5, 0, false),
        (10, 0, true),
        (5, 9, true),
    ];
    for (notes, spoken, expected) in table {
        assert_eq!(
            is_due(&state(notes, spoken), 900),
            expected,
            "{notes} {spoken}"
        );
    }
}
