//! What comes of servers' answers: results and pages, whatever the answers look like.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use serde_json::json;

fn place() -> Place {
    Place::of("docs")
}

fn odd() -> McpSources {
    McpSources::default()
}

/// Titles, addresses and passages of what a search found.
fn hits(answer: Value, said: &McpSources) -> Vec<(String, String, String)> {
    let found = documents(&place(), answer, said, "honey bees");
    found
        .into_iter()
        .map(|hit| (hit.title, hit.url, hit.content))
        .collect()
}

fn row(title: &str, url: &str, content: &str) -> (String, String, String) {
    (title.to_owned(), url.to_owned(), content.to_owned())
}

#[test]
fn results_are_found_in_lists_and_in_json_in_texts() {
    let item =
        json!({"id": "7", "title": "Bees", "url": "https://bees.example/", "text": "They hum."});
    let expected = [row("Bees", "mcp:docs/7", "They hum.")];
    for answer in [
        json!({"results": [item]}),
        json!([item]),
        json!({"result": [item]}),
        json!({"count": 1, "hits": [item]}),
        json!(json!({"results": [item, item]}).to_string()),
        json!({"result": json!([item]).to_string()}),
        json!({"results": ["", {"title": "no id"}, 5, {"id": "x".repeat(MAX_ID + 1)}, item]}),
    ] {
        assert_eq!(hits(answer.clone(), &odd()), expected, "{answer}");
    }
    assert_eq!(hits(json!({"results": []}), &odd()), []);
}

#[test]
fn a_result_is_read_by_its_id_or_by_the_field_that_is_said() {
    let table = [
        (json!({"id": 7}), "mcp:docs/7"),
        (json!({"path": "a/b c#1?.md"}), "mcp:docs/a/b%20c%231%3F.md"),
        (
            json!({"url": "https://bees.example/a?b=1"}),
            "https://bees.example/a?b=1",
        ),
        (
            json!({"url": "javascript:alert(1)"}),
            "mcp:docs/javascript:alert%281%29",
        ),
        (
            json!({"uri": "https://bees.example/<b>"}),
            "mcp:docs/https://bees.example/%3Cb%3E",
        ),
        (json!({"link": "日本"}), "mcp:docs/%E6%97%A5%E6%9C%AC"),
        (
            json!({"id": "../../etc/passwd"}),
            "mcp:docs/../../etc/passwd",
        ),
    ];
    for (item, url) in table {
        let found = documents(&place(), json!([item]), &odd(), "x");
        assert_eq!(found[0].url, url, "{item}");
        let id = place().id(url).unwrap();
        assert!(
            item.as_object()
                .unwrap()
                .values()
                .any(|own| scalar(own).unwrap() == id),
            "{id}"
        );
    }
    let by_ref = McpSources {
        id: Some("ref".to_owned()),
        ..odd()
    };
    let both = json!([{"id": "7", "ref": "b-7"}, {"id": "8"}]);
    assert_eq!(hits(both, &by_ref), [row("b-7", "mcp:docs/b-7", "b-7")]);
}

#[test]
fn without_a_passage_the_title_is_what_was_shown() {
    let found = hits(
        json!([{"id": "shelf/7.md", "title": "Bees"}, {"id": "shelf/8.md"}]),
        &odd(),
    );
    let expected = [
        row("Bees", "mcp:docs/shelf/7.md", "Bees"),
        row("8.md", "mcp:docs/shelf/8.md", "8.md"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn lines_are_ids_where_that_is_said_and_else_one_text() {
    let answer = json!({"content": "shelf/7.md\n\n  shelf/8.md\nshelf/7.md\n"});
    let lines = McpSources {
        lines: true,
        nothing: Some("No matches found".to_owned()),
        ..odd()
    };
    let expected = [
        row("7.md", "mcp:docs/shelf/7.md", "7.md"),
        row("8.md", "mcp:docs/shelf/8.md", "8.md"),
    ];
    assert_eq!(hits(answer, &lines), expected);
    assert_eq!(hits(json!(" No matches found\n"), &lines), []);
    let prose = hits(json!("1. Bees hum.\n2. Mites do not."), &odd());
    let expected = row(
        "Search for honey bees",
        "mcp:docs/?search=honey%20bees",
        "1. Bees hum.\n2. Mites do not.",
    );
    assert_eq!(prose, [expected]);
    assert_eq!(place().id("mcp:docs/?search=honey%20bees"), None);
    assert_eq!(hits(json!("  "), &odd()), []);
}

fn page(answer: Value) -> Value {
    let page = page_of(&place(), "shelf/7.md", answer, 0).unwrap();
    serde_json::to_value(page).unwrap()
}

#[test]
fn a_page_is_a_text_or_json_with_one_and_is_cited_by_its_own_address_on_the_web() {
    let own = "mcp:docs/shelf/7.md";
    let table = [
        (json!("They hum."), ("7.md", own, "They hum.")),
        (json!({"content": "They hum."}), ("7.md", own, "They hum.")),
        (
            json!(json!({"id": "7", "title": "Bees", "text": "They hum.", "url": "https://bees.example/7"}).to_string()),
            ("Bees", "https://bees.example/7", "They hum."),
        ),
        (
            json!({"title": "Bees", "text": "They hum.", "url": "javascript:alert(1)"}),
            ("Bees", own, "They hum."),
        ),
        (
            json!("<!DOCTYPE html><title>Bees</title><script>x()</script><p>They hum."),
            ("Bees", own, "They hum."),
        ),
        (json!({"legs": 6}), ("7.md", own, "{\"legs\":6}")),
    ];
    for (answer, (title, url, text)) in table {
        let expected = json!({"title": title, "url": url, "text": text});
        assert_eq!(page(answer.clone()), expected, "{answer}");
    }
    let empty = page_of(&place(), "7", json!({"text": " "}), 0);
    assert_eq!(empty.unwrap_err().to_string(), "the document has no text");
}

#[test]
fn long_pages_come_in_parts_and_long_results_are_cut() {
    let long = "bee ".repeat(10_000);
    let first = page_of(&place(), "7", json!(long), 0).unwrap();
    let first = serde_json::to_value(first).unwrap();
    assert_eq!(first["text"].as_str().unwrap().len(), 12_000);
    assert_eq!(first["next"], 12_000);
    let past = page_of(&place(), "7", json!(long), 50_000).unwrap_err();
    assert_eq!(
        past.to_string(),
        "the page ends before: it has 39999 characters"
    );
    let found = documents(&place(), json!([{"id": "7", "text": long}]), &odd(), "x");
    assert_eq!(found[0].content.chars().count(), MAX_CONTENT + 1);
    let many: Vec<Value> = (0..5_000).map(|n| json!({ "id": n })).collect();
    assert_eq!(
        documents(&place(), json!(many), &odd(), "x").len(),
        MAX_HITS
    );
}
