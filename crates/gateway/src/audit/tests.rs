//! Tables of the chain's forms; its rules are in `tests/rules.rs`, and what is done to whole chains in
//! `tests/tampering.rs`.

mod evidence;
mod lives;
mod rules;
mod tampering;

use super::*;
use crate::RunRef;
use lives::Chain;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn an_event_has_one_text_and_its_hash_can_be_made_by_hand() {
    let run = RunRef {
        tenant: "acme".into(),
        agent: "support".into(),
        thread: "case 7\r\n\u{85}".into(),
        run: "r1".into(),
    };
    let event = Event {
        action: Some("a1".into()),
        digest: Some("0".repeat(64)),
        state: Some("pending".into()),
        ..Event::of_run(EventKind::Proposed, &run, 1_790_000_000_000)
    };
    let draft = event
        .with("version", 1)
        .with("again", false)
        .with("word", "né")
        .draft();
    assert_eq!(draft.tenant(), "acme");
    let entry = AuditEntry::link(None, draft);
    let text = format!(
        concat!(
            r#"{{"action":"a1","agent":"support","at_ms":1790000000000,"digest":"{}","#,
            r#""fields":{{"again":false,"version":1,"word":"n\u00e9"}},"kind":"proposed","run":"r1","#,
            r#""state":"pending","tenant":"acme","thread":"case 7\r\n\u0085"}}"#
        ),
        "0".repeat(64)
    );
    assert_eq!(entry.event, text);
    // The same as `printf '%s%s%020d%s' paraph/audit/v1 $PREV $SEQ $(printf %s "$EVENT" | sha256sum) | sha256sum`.
    let inner = crate::call::sha256(&text);
    let whole = format!(
        "paraph/audit/v1{}00000000000000000001{inner}",
        "0".repeat(64)
    );
    assert_eq!(entry.hash, crate::call::sha256(&whole));
    assert_eq!(
        (entry.seq, entry.prev.as_str(), entry.detail),
        (1, "0".repeat(64).as_str(), None)
    );
}

#[test]
fn every_kind_has_a_name_that_reads_back() {
    for kind in EventKind::ALL {
        let draft = Event::new(kind, "t", 0).draft();
        let entry = AuditEntry::link(None, draft);
        assert_eq!(Event::read(&entry.event).unwrap().kind, kind);
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn what_is_no_canonical_event_is_refused_with_its_reason() {
    let table = [
        ("", "expected a value at byte 0"),
        (
            r#"{"at_ms":0,"kind":"killed"}"#,
            "missing field `tenant` at line 1 column 27",
        ),
        (
            r#"{"kind":"killed","at_ms":0,"tenant":"t"}"#,
            "it is not spelled canonically",
        ),
        (
            r#"{"at_ms":0,"kind":"killed","tenant":"é"}"#,
            "it is not spelled canonically",
        ),
        (
            r#"{"at_ms":0,"kind":"killed","tenant":"\u00E9"}"#,
            "it is not spelled canonically",
        ),
        (
            r#"{"at_ms":0,"at_ms":0,"kind":"killed","tenant":"t"}"#,
            "the key `at_ms` comes twice in one object at ``",
        ),
        (
            r#"{"at_ms":0.5,"kind":"killed","tenant":"t"}"#,
            "a number that is no integer at `/at_ms`",
        ),
        (
            r#"{"at_ms":0,"detail":"ab","kind":"killed","tenant":"t"}"#,
            "the hash of its detail is none",
        ),
    ];
    for (text, why) in table {
        assert_eq!(Event::read(text).unwrap_err(), why, "{text}");
    }
    let unknown = Event::read(r#"{"at_ms":0,"kind":"paid","tenant":"t"}"#).unwrap_err();
    assert!(unknown.starts_with("unknown variant `paid`"), "{unknown}");
    let unknown =
        Event::read(r#"{"amount":1,"at_ms":0,"kind":"killed","tenant":"t"}"#).unwrap_err();
    assert!(unknown.starts_with("unknown field `amount`"), "{unknown}");
}

#[test]
fn long_texts_are_cut_and_say_what_they_were() {
    let long = "é".repeat(10_000);
    let event = Event {
        tool: Some(long.clone()),
        ..Event::new(EventKind::Budget, "t", 0)
    };
    let detail = BTreeMap::from([("reason".to_owned(), Field::from("x".repeat(100_000)))]);
    let entry = AuditEntry::link(None, event.with("name", long.clone()).draft_with(detail));
    let read = Event::read(&entry.event).unwrap();
    let tool = read.tool.unwrap();
    let said = format!("… (20000 bytes, SHA-256 {})", crate::call::sha256(&long));
    assert!(
        tool.starts_with("ééé") && tool.ends_with(&said) && tool.len() <= 1024,
        "{tool}"
    );
    assert_eq!(read.fields["name"], Field::Text(tool));
    assert!(entry.detail.unwrap().len() < 33_000);
}

#[test]
fn a_detail_stands_beside_the_chain_and_can_be_erased() {
    let said = || BTreeMap::from([("by".to_owned(), Field::from("ann@example.com"))]);
    let event = || Event::new(EventKind::Decided, "t", 0);
    let mut chain = Chain::new("t");
    chain.add(event().draft_salted(said(), [7; 16].into()));
    chain.add(event().draft_with(said()));
    chain.add(event().draft_with(said()));
    let detail = r#"{"said":{"by":"ann@example.com"},"salt":"07070707070707070707070707070707"}"#;
    assert_eq!(chain.entries[0].detail.as_deref(), Some(detail));
    assert!(
        chain.entries[0]
            .event
            .contains(&crate::call::sha256(detail))
    );
    // The same detail has another hash each time: nobody can look it up.
    assert_ne!(chain.entries[1].detail, chain.entries[2].detail);
    assert!(
        !chain
            .entries
            .iter()
            .any(|entry| entry.event.contains("ann"))
    );

    chain.entries[1].detail = None;
    let found = Verifier::check("t", &chain.entries, &[]).unwrap();
    assert_eq!((found.details, found.erased), (2, 1));
    chain.entries[2].detail = Some(detail.to_owned());
    let broken = Verifier::check("t", &chain.entries, &[]).unwrap_err();
    assert_eq!(broken.to_string(), "entry 3: its detail was changed");
    assert_eq!(format!("{:?}", Salt::fresh()), "Salt");
}

#[test]
fn a_detail_that_was_not_written_with_it_is_found() {
    let mut entry = AuditEntry::link(None, Event::new(EventKind::Killed, "t", 0).draft());
    entry.detail = Some("{}".into());
    let broken = Verifier::check("t", [&entry], &[]).unwrap_err();
    assert_eq!(
        broken.to_string(),
        "entry 1: it has a detail that was not written with it"
    );
}

#[test]
fn an_anchor_is_one_line_and_reads_back() {
    let head = Head {
        seq: 41,
        hash: "0f".repeat(32),
    };
    let anchor = Anchor::new("a\n\u{2028}", &head, 1_790_000_000_000);
    let line = anchor.to_string();
    assert_eq!(
        line,
        format!(
            r#"{{"anchor":"paraph/anchor/v1","at_ms":1790000000000,"hash":"{}","seq":41,"tenant":"a\n\u2028"}}"#,
            head.hash
        )
    );
    assert_eq!(format!(" {line}\r\n").parse::<Anchor>().unwrap(), anchor);
    let table = [
        (
            line.replace("/v1", "/v2"),
            "unknown variant `paraph/anchor/v2`",
        ),
        (
            line.replace("0f0f", "0F0F"),
            "`hash` is not 64 hexadecimal digits",
        ),
        (line.replace("\"seq\":41,", ""), "missing field `seq`"),
        (format!("{line}{line}"), "trailing characters"),
        ("x".repeat(20_000), "the line is too long"),
    ];
    for (text, why) in table {
        let error = text.parse::<Anchor>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("no anchor: {why}")), "{error}");
    }
}

#[test]
fn an_exported_line_has_one_spelling() {
    let entry = AuditEntry::link(None, Event::new(EventKind::Killed, "é\n", 0).draft());
    let line = entry.to_line();
    assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    assert_eq!(AuditEntry::from_line(&line).unwrap(), entry);
    let table = [
        (format!("{line} "), "it is not spelled as an export is"),
        (
            line.replace(":null", ": null"),
            "it is not spelled as an export is",
        ),
        (line.replace("\"seq\"", "\"sequ\""), "unknown field `sequ`"),
        (
            line.replace(",\"detail\":null", ""),
            "it is not spelled as an export is",
        ),
        (String::new(), "EOF while parsing"),
    ];
    for (text, why) in table {
        let error = AuditEntry::from_line(&text).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("no audit entry: {why}")),
            "{error}"
        );
    }
}

fn nasty() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        any::<String>(),
        Just("\r\n".to_owned()),
        Just("\u{1b}[2J\u{9b}1A".to_owned()),
        Just("\u{85}\u{2028}\u{2029}\u{b}\u{c}".to_owned()),
        Just("\",\"state\":\"approved\"}\n{\"seq\":1".to_owned()),
        Just("\u{202e}\u{0}\\".to_owned()),
    ];
    proptest::collection::vec(parts, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    /// T17: whatever is in a field, an entry is one line of plain characters and its fields are what they were.
    #[test]
    fn no_text_breaks_the_line_or_fakes_a_field(
        texts in proptest::collection::vec(nasty(), 9),
        number in any::<u64>(),
    ) {
        let [tenant, agent, thread, run, tool, state, name, value, reason] = &texts[..] else { unreachable!() };
        let run = RunRef { tenant: tenant.clone(), agent: agent.clone(), thread: thread.clone(), run: run.clone() };
        let event = Event {
            tool: Some(tool.clone()),
            state: Some(state.clone()),
            ..Event::of_run(EventKind::Decided, &run, number)
        };
        let event = event.with(name, value.as_str());
        let detail = BTreeMap::from([(name.clone(), Field::from(reason.as_str()))]);
        let entry = AuditEntry::link(None, event.clone().draft_with(detail));
        let line = entry.to_line();
        prop_assert!(line.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        let back = AuditEntry::from_line(&line).unwrap();
        prop_assert_eq!(&back, &entry);
        let read = Event::read(&back.event).unwrap();
        prop_assert_eq!(&read, &Event { detail: read.detail.clone(), ..event });
        let detail: serde_json::Value = serde_json::from_str(&back.detail.unwrap()).unwrap();
        prop_assert_eq!(detail["said"][name].as_str(), Some(reason.as_str()));
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in nasty()) {
        let _ = (Event::read(&text), AuditEntry::from_line(&text), text.parse::<Anchor>());
    }
}
