//! What is kept of an issue, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;

fn document() -> Document {
    Document {
        repo: "Acme/Boats".into(),
        number: 7,
        title: "It sinks".into(),
        body: "At once.".into(),
        url: "https://example.org/acme/boats/issues/7".into(),
        updated_at: "2026-01-31T12:00:00Z".into(),
        ..Document::default()
    }
}

#[test]
fn hidden_parts_are_taken_out_and_code_stays_as_it_is() {
    for (raw, tidied) in [
        ("a<!-- say yes -->b", "ab"),
        ("a<!-- one\ntwo\n-->\nb", "a\nb"),
        ("<!-- never closed\ntext", ""),
        (
            "```html\n<!-- code -->\n```\n<!-- gone -->",
            "```html\n<!-- code -->\n```",
        ),
        (
            "~~~~\n```\n<!-- code -->\n~~~~",
            "~~~~\n```\n<!-- code -->\n~~~~",
        ),
        ("```inline``` <!-- gone -->", "```inline```"),
        ("<!--\n```\n-->\nshown", "shown"),
        ("a\u{200b}b\u{202e}c\u{e0041}\0", "abc"),
        ("a\r\n\r\n\r\n\r\nb  \r\n", "a\n\nb"),
        ("    indented", "    indented"),
    ] {
        let document = Document {
            body: raw.into(),
            ..document()
        };
        let document = document.tidied().unwrap();
        assert_eq!(document.body, tidied, "{raw:?}");
        let again = document.clone().tidied().unwrap();
        assert_eq!(again, document, "{raw:?}");
    }
}

#[test]
fn the_text_is_the_body_and_the_resolution_or_the_title() {
    let of = |body: &str, resolution: Option<&str>| {
        let resolution = resolution.map(str::to_owned);
        Document {
            body: body.into(),
            resolution,
            ..document()
        }
        .text()
    };
    assert_eq!(of("body", Some("fixed in 2.0")), "body\n\nfixed in 2.0");
    assert_eq!(of("", Some("fixed in 2.0")), "fixed in 2.0");
    assert_eq!(of("body", None), "body");
    assert_eq!(of("", None), "It sinks");
}

#[test]
fn what_is_no_issue_is_refused_by_name() {
    let refused = |change: fn(&mut Document)| {
        let mut document = document();
        change(&mut document);
        document.tidied().unwrap_err().to_string()
    };
    assert_eq!(
        refused(|d| d.repo = "boats".into()),
        "`boats` is no repository: write owner/name"
    );
    assert_eq!(
        refused(|d| d.repo = "a/../b".into()),
        "`a/../b` is no repository: write owner/name"
    );
    assert_eq!(
        refused(|d| d.number = 0),
        "issue Acme/Boats#0 cannot be kept: its number is not one of an issue"
    );
    assert_eq!(
        refused(|d| d.title = " \u{200b}\n".into()),
        "issue Acme/Boats#7 cannot be kept: it has no title"
    );
    assert_eq!(
        refused(|d| d.url = "javascript:alert(1)".into()),
        "issue Acme/Boats#7 cannot be kept: its address is no web address"
    );
    for time in [
        "",
        "yesterday",
        "2026-01-31",
        "2026-01-31T12:00:00+01:00",
        "2026-01-31T12:00:00",
    ] {
        let document = Document {
            updated_at: time.into(),
            ..document()
        };
        assert_eq!(
            document.tidied().unwrap_err().to_string(),
            "issue Acme/Boats#7 cannot be kept: `updated_at` is no time like 2026-01-31T12:00:00Z",
            "{time}"
        );
    }
}

#[test]
fn every_part_that_a_search_sees_changes_the_hash_and_the_time_does_not() {
    let hash = document().content_hash();
    let changed = |change: fn(&mut Document)| {
        let mut document = document();
        change(&mut document);
        document.content_hash()
    };
    assert_eq!(
        changed(|d| d.updated_at = "2027-01-31T12:00:00Z".into()),
        hash
    );
    assert_ne!(changed(|d| d.title.push('!')), hash);
    assert_ne!(changed(|d| d.body.push('!')), hash);
    assert_ne!(changed(|d| d.state = IssueState::Closed), hash);
    assert_ne!(changed(|d| d.resolution = Some("fixed".into())), hash);
    assert_ne!(
        changed(|d| {
            d.title = "It sinksAt".into();
            d.body = " once.".into();
        }),
        hash
    );
}
