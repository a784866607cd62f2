//! F12: everything that can be done to a chain is found: each byte flipped, entries dropped, moved, doubled,
//! added, cut off at the end, all of them deleted, and the whole written anew.

use super::lives::{Chain, mixed};
use super::*;

/// What somebody finds out who has the rest of an export, after the lines before it.
fn check_rest(mut verifier: Verifier, export: &str) -> Result<Verified, String> {
    for line in export.split_inclusive('\n') {
        let line = line.strip_suffix('\n').ok_or("the last line has no end")?;
        let entry = AuditEntry::from_line(line).map_err(|error| error.to_string())?;
        verifier.see(&entry).map_err(|broken| broken.to_string())?;
    }
    verifier.finish().map_err(|broken| broken.to_string())
}

#[test]
fn every_flipped_bit_of_an_export_is_found() {
    let chain = mixed("acme", &[0, 1, 2], &[0, 1, 2, 0, 1, 1, 0]);
    let lines: Vec<_> = chain
        .entries
        .iter()
        .map(|entry| entry.to_line() + "\n")
        .collect();
    let mut verifier = Verifier::new("acme", [chain.anchor(chain.entries.len())]);
    assert!(check_rest(verifier.clone(), &lines.concat()).is_ok());
    let (mut trials, mut missed) = (0u64, Vec::new());
    for (n, line) in lines.iter().enumerate() {
        // The lines before the one with the flip are as they were: they need not be read each time.
        let rest = lines[n..].concat();
        for (at, bit) in (0..line.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bytes = rest.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            trials += 1;
            // What is no UTF-8 any more is no export.
            if String::from_utf8(bytes)
                .is_ok_and(|text| check_rest(verifier.clone(), &text).is_ok())
            {
                missed.push((n, at, bit));
            }
        }
        verifier.see(&chain.entries[n]).unwrap();
    }
    println!(
        "F12 bit flips: {trials} trials over {} bytes, {} missed, 95 % bound {:.6}",
        lines.concat().len(),
        missed.len(),
        3.0 / trials as f64
    );
    assert_eq!(missed, []);
}

/// Something that an owner of the database could do to its rows.
#[derive(Clone, Debug, PartialEq)]
enum Tampering {
    Drop(usize),
    Swap(usize, usize),
    Double(usize, usize),
    Move(usize, usize),
    Foreign(usize),
    CutOff(usize),
    DeleteAll,
    ChangeEvent(usize, usize),
    ChangeDetail(usize),
    /// A change, and then every hash made right again.
    WriteAnew(usize, usize),
    DropAndWriteAnew(usize),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let at = || any::<proptest::sample::Index>().prop_map(|at| at.index(1 << 16));
    prop_oneof![
        at().prop_map(Tampering::Drop),
        (at(), at()).prop_map(|(a, b)| Tampering::Swap(a, b)),
        (at(), at()).prop_map(|(a, b)| Tampering::Double(a, b)),
        (at(), at()).prop_map(|(a, b)| Tampering::Move(a, b)),
        at().prop_map(Tampering::Foreign),
        at().prop_map(Tampering::CutOff),
        Just(Tampering::DeleteAll),
        (at(), at()).prop_map(|(a, b)| Tampering::ChangeEvent(a, b)),
        at().prop_map(Tampering::ChangeDetail),
        (at(), at()).prop_map(|(a, b)| Tampering::WriteAnew(a, b)),
        at().prop_map(Tampering::DropAndWriteAnew),
    ]
}

/// The chain after it, or nothing if it changed nothing.
fn tampered(chain: &Chain, how: &Tampering) -> Option<Chain> {
    let mut new = chain.clone();
    let entries = &mut new.entries;
    let n = entries.len();
    let change = |event: &str, at: usize| {
        let mut bytes = event.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(bytes).unwrap()
    };
    match how {
        Tampering::Drop(at) => drop(entries.remove(at % n)),
        Tampering::Swap(a, b) => entries.swap(a % n, b % n),
        Tampering::Double(a, b) => entries.insert(b % (n + 1), entries[a % n].clone()),
        Tampering::Move(a, b) => {
            let entry = entries.remove(a % n);
            entries.insert(b % n, entry);
        }
        Tampering::Foreign(at) => {
            let other = mixed("other", &[0, 1, 2, 3, 4], &[]).entries;
            entries[at % n] = other[at % n % other.len()].clone();
        }
        Tampering::CutOff(by) => entries.truncate(by % n),
        Tampering::DeleteAll => entries.clear(),
        Tampering::ChangeEvent(a, b) => entries[a % n].event = change(&entries[a % n].event, *b),
        Tampering::ChangeDetail(at) => entries[at % n].detail = Some("{}".to_owned()),
        Tampering::WriteAnew(a, b) => {
            entries[a % n].event = change(&entries[a % n].event, *b);
            new = new.sealed_anew();
        }
        Tampering::DropAndWriteAnew(at) => {
            entries.remove(at % n);
            new = new.sealed_anew();
        }
    }
    (new.entries != chain.entries).then_some(new)
}

/// Runs a property and counts what was tried.
#[test]
fn whatever_is_done_to_a_chain_is_found_by_an_anchor_of_its_end() {
    use proptest::test_runner::{Config, TestRunner};
    let trials = std::cell::Cell::new(0u64);
    let mut runner = TestRunner::new(Config {
        cases: 1500,
        failure_persistence: None,
        ..Config::default()
    });
    let lives = proptest::collection::vec(0..5usize, 1..5);
    let turns = proptest::collection::vec(0..5usize, 0..20);
    let outcome = runner.run(&(lives, turns, tampering()), |(lives, turns, how)| {
        let chain = mixed("acme", &lives, &turns);
        let anchors = [chain.anchor(chain.entries.len())];
        prop_assert!(Verifier::check("acme", &chain.entries, &anchors).is_ok());
        if let Some(new) = tampered(&chain, &how) {
            trials.set(trials.get() + 1);
            prop_assert!(Verifier::check("acme", &new.entries, &anchors).is_err());
        }
        Ok(())
    });
    println!(
        "F12 tampering: {} trials, 95 % bound {:.5}",
        trials.get(),
        3.0 / trials.get() as f64
    );
    assert_eq!(outcome, Ok(()));
    assert!(trials.get() > 1000);
}

#[test]
fn the_first_wrong_entry_is_named() {
    let chain = mixed("acme", &[0, 1], &[]);
    let n = chain.entries.len() as u64;
    let anchors = [chain.anchor(6)];
    let said = |how: Tampering| {
        let new = tampered(&chain, &how).unwrap();
        Verifier::check("acme", &new.entries, &anchors)
            .unwrap_err()
            .to_string()
    };
    let table = [
        (
            Tampering::Drop(2),
            "entry 3: it is missing; entry 4 stands in its place",
        ),
        (
            Tampering::Drop(0),
            "entry 1: it is missing; entry 2 stands in its place",
        ),
        (
            Tampering::Swap(1, 3),
            "entry 2: it is missing; entry 4 stands in its place",
        ),
        (
            Tampering::Double(1, 4),
            "entry 5: entry 2 stands in its place, a second time or out of order",
        ),
        (
            Tampering::Double(0, 0),
            "entry 2: entry 1 stands in its place, a second time or out of order",
        ),
        (
            Tampering::CutOff(4),
            "entry 6: it was anchored at 5 ms and is gone: the chain ends at entry 4",
        ),
        (
            Tampering::DeleteAll,
            "entry 6: it was anchored at 5 ms and is gone: the chain ends at entry 0",
        ),
        (
            Tampering::ChangeEvent(3, 9),
            "entry 4: it was changed: its hash is not that of its content",
        ),
        (
            Tampering::Foreign(0),
            "entry 1: it belongs to the chain of another tenant",
        ),
        (
            Tampering::Foreign(4),
            "entry 5: it does not follow the entry before it",
        ),
        (
            Tampering::ChangeDetail(0),
            "entry 1: it has a detail that was not written with it",
        ),
    ];
    for (how, why) in table {
        assert_eq!(said(how.clone()), why, "{how:?}");
    }
    // A rewritten chain is right in itself: the anchor tells.
    let mut rewritten = chain.clone();
    rewritten.entries[1].event = rewritten.entries[1]
        .event
        .replace("\"at_ms\":7", "\"at_ms\":8");
    let rewritten = rewritten.sealed_anew();
    let broken = Verifier::check("acme", &rewritten.entries, &anchors).unwrap_err();
    assert_eq!(
        broken.to_string(),
        "entry 6: it is not the entry that was anchored at 5 ms"
    );
    assert_eq!(
        Verifier::check("acme", &rewritten.entries, &[])
            .unwrap()
            .entries,
        n
    );
}

#[test]
fn a_first_entry_that_names_one_before_it_is_found() {
    let chain = mixed("acme", &[0], &[]);
    let mut second = chain.entries[1].clone();
    second.seq = 1;
    let broken = Verifier::check("acme", [&second], &[]).unwrap_err();
    assert_eq!(
        broken.to_string(),
        "entry 1: it is the first one and names one before it"
    );
}

#[test]
fn without_an_anchor_the_end_is_not_proved_and_other_tenants_anchors_do_not_count() {
    let chain = mixed("acme", &[0, 1], &[]);
    let cut = Verifier::check("acme", &chain.entries[..3], &[]).unwrap();
    assert_eq!(
        (cut.head, cut.last_anchor),
        (Some(chain.entries[2].head()), None)
    );
    assert_eq!(Verifier::check("acme", [], &[]), Ok(Verified::default()));
    let foreign = Anchor::new("other", &chain.entries[5].head(), 5);
    assert!(Verifier::check("acme", &chain.entries[..3], &[foreign]).is_ok());
    // Several anchors of one entry all have to fit.
    let mut wrong = chain.anchor(3);
    wrong.hash = chain.entries[3].hash.clone();
    let anchors = [chain.anchor(3), wrong, chain.anchor(1)];
    let broken = Verifier::check("acme", &chain.entries, &anchors).unwrap_err();
    assert_eq!(
        broken.to_string(),
        "entry 3: it is not the entry that was anchored at 5 ms"
    );
}

#[test]
fn a_verifier_takes_pages_and_says_where_it_goes_on() {
    let chain = mixed("acme", &[0, 1, 2, 3, 4], &[]);
    let mut verifier = Verifier::new("acme", [chain.anchor(2), chain.anchor(9)]);
    while verifier.next_seq() <= chain.entries.len() as u64 {
        let from = verifier.next_seq() as usize - 1;
        for entry in chain.entries[from..].iter().take(4) {
            verifier.see(entry).unwrap();
        }
    }
    let found = verifier.finish().unwrap();
    let expected = Verified {
        head: chain.entries.last().map(AuditEntry::head),
        entries: chain.entries.len() as u64,
        attempts: 4,
        details: 3,
        erased: 0,
        erased_untold: 0,
        anchored: 2,
        last_anchor: Some(chain.anchor(9)),
    };
    assert_eq!(found, expected);
}
