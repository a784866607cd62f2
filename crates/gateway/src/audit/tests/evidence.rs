//! Evidence packs: what a third party can see from the text alone, and what is found when the text is changed.

use super::lives::{Chain, bytes_of, mixed};
use super::*;

/// The pack of the action `a{who}` of this chain.
fn pack(chain: &Chain, who: usize, anchors: &[Anchor]) -> String {
    let bytes = bytes_of(&chain.tenant, &format!("a{who}"));
    let digest = crate::call::sha256(&format!("paraph/action/v1{bytes}"));
    let mut pack = Pack::of(&bytes, &digest).unwrap();
    for entry in &chain.entries {
        pack.see(entry.clone()).unwrap();
    }
    pack.close(anchors).to_string()
}

fn chain() -> Chain {
    // Entries: a0 1, a1 2, a2 3, a0 4, a1 5, a2 6 (rejected), a0 7, a1 8, a0 9, a1 10, a0 11, a1 12, a1 13.
    mixed("acme", &[0, 1, 2], &[])
}

#[test]
fn a_pack_shows_what_happened_to_its_action_and_nothing_of_others() {
    let chain = chain();
    let anchors = [chain.anchor(2), chain.anchor(12), chain.anchor(13)];
    let text = pack(&chain, 0, &anchors);
    assert!(!text.contains('\n') && text.is_ascii());
    assert!(!text.contains(r#"\"a1\""#), "{text}");
    let report = Pack::check(&text, &anchors[1..2]).unwrap();
    let steps: Vec<_> = report
        .steps
        .iter()
        .map(|step| (step.seq, step.event.kind.name()))
        .collect();
    let expected = [
        (1, "proposed"),
        (4, "shown"),
        (7, "decided"),
        (9, "attempt_started"),
        (11, "provider_replied"),
    ];
    assert_eq!(steps, expected);
    assert_eq!(
        (report.entries, report.attempts, report.trusted),
        ((1, 12), 1, true)
    );
    assert_eq!(report.anchor, Some(chain.anchor(12)));
    assert!(report.steps[2].detail.as_ref().unwrap().contains("ann"));
    let said = report.to_string();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "action a0 of acme",
            &format!("its bytes have the digest {}", report.digest),
            "entry 1: proposed, then pending",
            "entry 4: shown, then pending",
            "entry 7: decided, then approved",
            "entry 9: attempt_started, then executing",
            "entry 11: provider_replied, then succeeded",
            "it was started once, under an approval of this digest",
            "entries 1 to 12 of the chain follow one another",
            "they are those that were anchored at entry 12",
        ]
    );
}

#[test]
fn a_pack_says_how_far_it_can_be_trusted() {
    let chain = chain();
    let report = Pack::check(&pack(&chain, 1, &[]), &[]).unwrap();
    assert_eq!(
        (report.entries, report.attempts, report.anchor),
        ((2, 13), 2, None)
    );
    let report = Pack::check(&pack(&chain, 2, &[chain.anchor(13)]), &[]).unwrap();
    assert_eq!(
        (report.entries, report.attempts, report.trusted),
        ((3, 13), 0, false)
    );
    assert_eq!(report.state.as_deref(), Some("rejected"));
    let said = report.to_string();
    assert!(said.ends_with(
        "they fit the anchor of entry 13 in this pack: compare it with one that was kept elsewhere"
    ));
    // One of another chain is none of this one's, whoever brings it.
    let foreign = Anchor::new("another", &chain.entries[12].head(), 1);
    let mut forged: serde_json::Value = serde_json::from_str(&pack(&chain, 2, &[])).unwrap();
    forged["anchors"] = serde_json::json!([foreign]);
    assert_eq!(
        Pack::check(&forged.to_string(), &[])
            .unwrap_err()
            .to_string(),
        "the pack brings an anchor of another chain, that of `another`"
    );
    let report = Pack::check(&pack(&chain, 2, &[]), &[foreign]).unwrap();
    assert_eq!((report.anchor, report.trusted), (None, false));
    // An anchor before the end says nothing of what comes after it.
    let report = Pack::check(&pack(&chain, 2, &[chain.anchor(4)]), &[chain.anchor(4)]).unwrap();
    assert_eq!((report.entries, &report.anchor), ((3, 6), &None));
    assert!(report.to_string().ends_with("no anchor vouches for them"));
}

#[test]
fn an_erased_detail_leaves_the_pack_in_order() {
    let mut chain = chain();
    for entry in &mut chain.entries {
        entry.detail = None;
    }
    let report = Pack::check(&pack(&chain, 0, &[]), &[]).unwrap();
    assert_eq!(
        (report.steps[2].detail.clone(), report.steps[2].erased),
        (None, true)
    );
    assert!(
        report
            .to_string()
            .contains("entry 7: decided, then approved (detail erased)")
    );
}

#[test]
fn a_pack_that_was_changed_proves_nothing() {
    let chain = chain();
    let text = pack(&chain, 0, &[chain.anchor(13)]);
    let of = crate::call::sha256;
    let changed_bytes = of(r#"paraph/action/v1{"args":{"cents":43},"id":"a0","tenant":"acme"}"#);
    let digest = of(&format!("paraph/action/v1{}", bytes_of("acme", "a0")));
    let sealed = of(&chain.entries[1].event);
    let table = [
        (
            text.replace(r#"\"cents\":42"#, r#"\"cents\":43"#),
            format!("the bytes have the digest {changed_bytes}, and the pack says {digest}"),
        ),
        (
            text.replacen(r#""action":"a0""#, r#""action":"a1""#, 1),
            "the action's bytes cannot be read: they are those of another action".to_owned(),
        ),
        (
            text.replace(r#"\"kind\":\"shown\""#, r#"\"kind\":\"spawn\""#),
            "entry 4: it was changed: its hash is not that of its content".to_owned(),
        ),
        (
            text.replace("\\\"by\\\":\\\"ann\\\"", "\\\"by\\\":\\\"eve\\\""),
            "entry 7: its detail was changed".to_owned(),
        ),
        (
            text.replace(&sealed, &of("")),
            "entry 4: it does not follow the entry before it".to_owned(),
        ),
        (
            text.replace(&format!(r#""{sealed}","#), ""),
            "entry 3: it is missing; entry 4 stands in its place".to_owned(),
        ),
        (
            text.replace(&sealed, "x"),
            "entry 2: it was changed: its hash is not that of its content".to_owned(),
        ),
        (
            text.replace(&chain.entries[12].hash, &of("")),
            "entry 13: it is not the entry that was anchored at 5 ms".to_owned(),
        ),
        (
            text.replace("paraph/pack/v1", "paraph/pack/v9"),
            "no evidence pack: unknown variant `paraph/pack/v9`".to_owned(),
        ),
        (
            text.replace("\"links\"", "\"lnks\""),
            "no evidence pack: unknown field `lnks`".to_owned(),
        ),
        (
            String::new(),
            "no evidence pack: EOF while parsing a value".to_owned(),
        ),
    ];
    for (changed, why) in table {
        assert_ne!(changed, text, "{why}");
        let error = Pack::check(&changed, &[]).unwrap_err().to_string();
        assert!(error.starts_with(&why), "{error}\n{why}");
    }
    let mut other = chain.anchor(13);
    other.hash = of("");
    let error = Pack::check(&text, &[other]).unwrap_err().to_string();
    assert_eq!(
        error,
        "entry 13: it is not the entry that was anchored at 5 ms"
    );
}

/// Writes a chain about the action `a0` and its pack, whatever the events are.
fn of_events(events: &[Event]) -> Result<PackReport, String> {
    let mut chain = Chain::new("acme");
    for event in events {
        chain.add(event.clone().draft());
    }
    Pack::check(&pack(&chain, 0, &[]), &[]).map_err(|error| error.to_string())
}

#[test]
fn what_was_not_approved_or_is_left_out_is_found() {
    let event = |kind, state: &str, version: u64| {
        let event = lives::about(kind, "acme", "a0");
        Event {
            state: Some(state.to_owned()),
            ..event
        }
        .with("version", version)
    };
    let proposed = event(EventKind::Proposed, "pending", 1);
    let approved = event(EventKind::Decided, "approved", 2);
    let started = event(EventKind::AttemptStarted, "executing", 3);
    assert_eq!(
        of_events(&[proposed.clone(), approved.clone(), started.clone()])
            .unwrap()
            .attempts,
        1
    );
    let error = |events: &[Event]| of_events(events).unwrap_err();
    assert_eq!(
        error(&[
            proposed.clone(),
            event(EventKind::AttemptStarted, "executing", 2)
        ]),
        "entry 2: an attempt was started that no approval in force covers"
    );
    assert_eq!(
        error(&[proposed.clone(), started.clone()]),
        "before entry 2, an entry about the action is left out"
    );
    assert_eq!(
        error(&[approved.clone(), started.clone()]),
        "the entry that proposes the action is missing"
    );
    assert_eq!(error(&[]), "the entry that proposes the action is missing");
    let other = Event {
        digest: Some("0".repeat(64)),
        ..started.clone()
    };
    assert_eq!(
        error(&[proposed.clone(), approved.clone(), other]),
        "entry 3 is about bytes with another digest"
    );
    let kill = Event {
        scope: Some("writes".into()),
        ..Event::new(EventKind::Killed, "acme", 0)
    };
    assert_eq!(
        error(&[proposed, approved, kill, started]),
        "entry 4: an attempt was started that no approval in force covers"
    );
}

#[test]
fn a_pack_of_no_action_or_of_another_digest_is_not_made() {
    let error = |bytes: &str| Pack::of(bytes, "00").unwrap_err().to_string();
    assert_eq!(
        error("{"),
        "the action's bytes cannot be read: expected a key at byte 1"
    );
    assert_eq!(
        error(r#"{"id":1}"#),
        "the action's bytes cannot be read: `id` is missing"
    );
    assert_eq!(
        error(r#"{"id":"a","id":"b"}"#),
        "the action's bytes cannot be read: the key `id` comes twice"
    );
    let bytes = bytes_of("t", "a");
    let digest = crate::call::sha256(&format!("paraph/action/v1{bytes}"));
    assert_eq!(
        error(&bytes),
        format!("the bytes have the digest {digest}, and the pack says 00")
    );
}

#[test]
fn every_flipped_bit_of_a_pack_is_found_or_changes_nothing() {
    let chain = mixed("acme", &[2, 0], &[]);
    let anchor = chain.anchor(chain.entries.len());
    let text = pack(&chain, 0, std::slice::from_ref(&anchor));
    let report = Pack::check(&text, std::slice::from_ref(&anchor)).unwrap();
    let (mut trials, mut found, mut missed) = (0u64, 0u64, Vec::new());
    for (at, bit) in (0..text.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1 << bit;
        trials += 1;
        let checked = String::from_utf8(bytes)
            .ok()
            .and_then(|text| Pack::check(&text, std::slice::from_ref(&anchor)).ok());
        match checked {
            None => found += 1,
            // Time stamps of the pack's own copy of the anchor do not count beside the reader's.
            Some(same) if same == report => {}
            Some(_) => missed.push((at, bit)),
        }
    }
    println!(
        "evidence pack: {trials} bit flips, {found} found, {} changed the report",
        missed.len()
    );
    assert_eq!(missed, []);
    assert!(found * 100 > trials * 97);
}
