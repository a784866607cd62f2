//! The bytes of actions, and every edge between their states.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::machine::Voted;
use super::*;
use crate::record::{CallRecord, Observation, Outcome};
use proptest::prelude::*;

fn proposal() -> Proposal {
    Proposal {
        run: Arc::new(RunRef {
            tenant: "local".into(),
            agent: "clerk".into(),
            thread: "case \"7\"\n".into(),
            run: "r".into(),
        }),
        key: "k".into(),
        requester: "local".into(),
        tool: "pay".into(),
        level: Level::Write,
        args: Json::read(
            r#"{"id":2512292042121000001,"a":"é\u0000"}"#,
            Bounds::default(),
        )
        .unwrap(),
        says: "Pay".into(),
        subject: "order:7".into(),
        resolved: Resolved::new()
            .target("order", "o_7")
            .precondition("state", "open\n"),
        quorum: 1,
        not_by_requester: false,
        verified: false,
        policy: "p".into(),
        evidence: None,
        again: None,
        edited: None,
        created_ms: 5,
        expires_ms: 1_000,
    }
}

fn row() -> ActionRow {
    ActionRow::proposed(Action::of(proposal()).unwrap(), None)
}

fn by(id: &str) -> Ended {
    Ended {
        by: Signer::Person(id.into()),
        why: "so".into(),
        at_ms: 9,
    }
}

#[test]
fn the_bytes_hold_all_of_it_in_one_spelling_and_their_digest_tells_any_change() {
    let action = Action::of(proposal()).unwrap();
    assert_eq!(Action::read(&action.bytes).unwrap(), action);
    assert!(
        action
            .bytes
            .starts_with(r#"{"agent":"clerk","args":{"a":"é\u0000","id":2512292042121000001}"#)
    );
    assert_eq!(
        action.digest,
        sha256(&format!("paraph/action/v1{}", action.bytes))
    );
    assert!(action.is_intact(&action.digest));
    let mut other = action.clone();
    other.bytes = other
        .bytes
        .replace("2512292042121000001", "2512292042121000002");
    assert!(!other.is_intact(&action.digest));
    let edited = Proposal {
        edited: Some((action.id, "ann".into())),
        again: Some(action.id),
        ..proposal()
    };
    let edited = Action::of(edited).unwrap();
    assert_eq!(Action::read(&edited.bytes).unwrap(), edited);
    for broken in [
        "",
        "{}",
        "[1]",
        &action.bytes.replace("\"schema\":1", "\"schema\":2"),
    ] {
        assert!(Action::read(broken).is_err(), "{broken}");
    }
    let json = serde_json::to_string(&row()).unwrap();
    let read: ActionRow = serde_json::from_str(&json).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
}

#[test]
fn final_states_stay_and_every_state_can_be_reached() {
    let mut reached = vec![State::Pending];
    let mut at = 0;
    while let Some(state) = reached.get(at).copied() {
        for next in state.next() {
            if !reached.contains(next) {
                reached.push(*next);
            }
        }
        at += 1;
    }
    reached.sort();
    let mut all = State::ALL.to_vec();
    all.sort();
    assert_eq!(reached, all);
    for state in State::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
    }
}

#[test]
fn who_wrote_the_bytes_is_not_one_of_several_who_approve_them() {
    let mut said = proposal();
    said.quorum = 2;
    said.edited = Some((ActionId::fresh(), "ed".into()));
    let row = ActionRow::proposed(Action::of(said).unwrap(), None);
    let digest = row.digest.clone();
    let vote = |row: &ActionRow, who: &str| row.approve(&who.into(), &digest, 10);
    assert_eq!(vote(&row, "ed"), Err(Refusal::OwnRequest));
    let Ok(Voted::Counted(one)) = vote(&row, "ann") else {
        panic!()
    };
    assert_eq!((one.state, one.version), (State::Pending, 2));
    assert_eq!(vote(&one, "ann"), Ok(Voted::Already));
    let Ok(Voted::Counted(two)) = vote(&one, "bob") else {
        panic!()
    };
    assert_eq!((two.state, two.votes.len()), (State::Approved, 2));
    // However sure it is who they are, they are one.
    assert_eq!(
        one.approve(&Person::verified("ann"), &digest, 10),
        Ok(Voted::Already)
    );
    assert_eq!(two.approve(&"eve".into(), &digest, 10), Err(Refusal::State));
    assert_eq!(
        row.approve(&"ann".into(), "other", 10),
        Err(Refusal::OtherDigest)
    );
    assert_eq!(
        row.approve(&"ann".into(), &digest, 1_000),
        Err(Refusal::Late)
    );
    let mut strict = proposal();
    strict.verified = true;
    let row = ActionRow::proposed(Action::of(strict).unwrap(), None);
    assert_eq!(
        row.approve(&"ann".into(), &row.digest, 10),
        Err(Refusal::Unverified)
    );
    assert!(
        row.approve(&Person::verified("ann"), &row.digest, 10)
            .is_ok()
    );
}

#[test]
fn no_decision_comes_in_time_once_it_has_expired() {
    let row = row();
    let digest = row.digest.clone();
    let at = |at_ms| Ended { at_ms, ..by("ann") };
    for (at_ms, in_time) in [(999, true), (1_000, false)] {
        let found = [
            row.approve(&"ann".into(), &digest, at_ms).map(|_| ()),
            row.reject(&digest, at(at_ms)).map(|_| ()),
            row.ask_change(&digest, at(at_ms)).map(|_| ()),
            row.respond(&digest, at(at_ms)).map(|_| ()),
            row.edit(&digest, at(at_ms)).map(|_| ()),
        ];
        let expected = if in_time { Ok(()) } else { Err(Refusal::Late) };
        assert_eq!(found, [(); 5].map(|()| expected.clone()), "{at_ms}");
    }
}

/// Everything that can be done to an action.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Approve(u8),
    Reject,
    Edit,
    Expire,
    Hold,
    HoldBack,
    Postpone,
    Cancel,
    Drift,
    Send,
    Succeed,
    Fail,
    LoseSight,
    Reopen,
    AskChange,
    Respond,
    Supersede,
}

fn done(row: &ActionRow, deed: Deed, now_ms: u64) -> Option<ActionRow> {
    let digest = row.digest.clone();
    match deed {
        Deed::Approve(who) => {
            match row.approve(&format!("p{who}").as_str().into(), &digest, now_ms) {
                Ok(Voted::Counted(row)) => Some(*row),
                _ => None,
            }
        }
        Deed::Reject => row.reject(&digest, by("ann")).ok().flatten(),
        Deed::Edit => row.edit(&digest, by("ann")).ok(),
        Deed::Expire => row.expire(now_ms).ok(),
        Deed::Hold => row.hold().ok(),
        Deed::Cancel => row.cancel(by("ann")).ok(),
        Deed::HoldBack => row.hold_back(by("gateway")).ok(),
        Deed::Postpone => row.postpone(by("gateway"), now_ms).ok(),
        Deed::Drift => row.drift(by("ann"), Vec::new()).ok(),
        Deed::Send => row.send(1, now_ms).ok(),
        Deed::Succeed => row.succeed("1".into(), by("ann")).ok(),
        Deed::Fail => row.fail(by("ann")).ok(),
        Deed::LoseSight => row.lose_sight(by("ann"), None).ok(),
        Deed::Reopen => row.reopen(by("ann")).ok(),
        Deed::AskChange => row.ask_change(&digest, by("ann")).ok().flatten(),
        Deed::Respond => row.respond(&digest, by("ann")).ok().flatten(),
        Deed::Supersede => row.supersede((by("ann"), ActionId::fresh())).ok(),
    }
}

fn deeds() -> impl Strategy<Value = Vec<(Deed, u64)>> {
    let deed = prop_oneof![
        3 => (0..3_u8).prop_map(Deed::Approve),
        1 => Just(Deed::Reject),
        1 => Just(Deed::Edit),
        1 => Just(Deed::Expire),
        1 => Just(Deed::Hold),
        1 => Just(Deed::HoldBack),
        1 => Just(Deed::Postpone),
        1 => Just(Deed::Cancel),
        1 => Just(Deed::Drift),
        3 => Just(Deed::Send),
        1 => Just(Deed::Succeed),
        1 => Just(Deed::Fail),
        2 => Just(Deed::LoseSight),
        1 => Just(Deed::Reopen),
        1 => Just(Deed::AskChange),
        1 => Just(Deed::Respond),
        1 => Just(Deed::Supersede),
    ];
    proptest::collection::vec((deed, 0..1_200_u64), 1..30)
}

proptest! {
    #[test]
    fn whatever_is_done_goes_along_an_edge_and_nothing_starts_unsigned(
        deeds in deeds(), quorum in 1..3_u32
    ) {
        let mut said = proposal();
        said.quorum = quorum;
        let mut row = ActionRow::proposed(Action::of(said).unwrap(), None);
        for (deed, now_ms) in deeds {
            let Some(next) = done(&row, deed, now_ms) else { continue };
            let stays = next.state == row.state;
            prop_assert!(stays || row.state.next().contains(&next.state), "{row:?} {deed:?}");
            prop_assert_eq!(next.version, row.version + 1);
            prop_assert_eq!(&next.action, &row.action);
            prop_assert_eq!(&next.digest, &row.digest);
            if next.state == State::Executing {
                prop_assert!(next.votes.len() >= quorum as usize);
                prop_assert!(row.state == State::Unknown || now_ms < 1_000);
            }
            if row.state.is_final() {
                prop_assert!(matches!(deed, Deed::Reopen) && row.closes, "{row:?} {deed:?}");
            }
            row = next;
        }
    }
}

#[test]
fn evidence_is_of_earlier_steps_in_order_and_of_every_part_of_a_record() {
    let record = |key: &str, seq: u64, step: u64, content: &str| CallRecord {
        run: proposal().run,
        key: key.into(),
        seq,
        step,
        epoch: 1,
        tool: "look".into(),
        arguments: "{}".into(),
        args_hash: String::new(),
        args_digest: String::new(),
        action: None,
        ruling: None,
        outcome: Some(Outcome::Observed(Observation {
            tool: "look".into(),
            args_hash: String::new(),
            content: content.into(),
            failure: None,
            artifact: None,
            command: None,
            action: None,
        })),
        full_output: None,
        ms: 0,
    };
    let (a, b) = (record("a", 1, 1, "x"), record("b", 2, 1, "y"));
    let beside = record("c", 3, 2, "z");
    let of = |records: &[CallRecord]| Evidence::before(2, records);
    let whole = of(&[a.clone(), b.clone()]);
    assert_eq!(whole.as_ref().map(|evidence| evidence.calls), Some(2));
    assert_eq!(of(&[b.clone(), beside, a.clone()]), whole);
    assert_eq!(of(&[]), None);
    assert_eq!(Evidence::before(1, &[a.clone(), b.clone()]), None);
    let changes: [fn(&mut CallRecord); 6] = [
        |one| one.key = "d".into(),
        |one| one.tool = "see".into(),
        |one| one.arguments = "{ }".into(),
        |one| one.outcome = None,
        |one| one.outcome = Some(Outcome::Stopped(crate::stop::Stop::MaxSteps)),
        |one| one.full_output = Some("more".into()),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut other = b.clone();
        change(&mut other);
        assert_ne!(of(&[a.clone(), other]), whole, "{n}");
    }
    // What stands at the end of one part is not what stands at the beginning of the next.
    let (mut one, mut other) = (a.clone(), a.clone());
    (one.tool, one.arguments) = ("lo".into(), "ok{}".into());
    (other.tool, other.arguments) = ("look".into(), "{}".into());
    assert_ne!(of(&[one]), of(&[other]));
}

#[test]
fn an_action_says_on_what_it_rests_and_an_older_one_on_nothing() {
    let evidence = Evidence {
        calls: 2,
        hash: "0a".repeat(32),
    };
    let action = Action::of(Proposal {
        evidence: Some(evidence.clone()),
        ..proposal()
    });
    let action = action.unwrap();
    assert_eq!(Action::read(&action.bytes).unwrap(), action);
    assert_eq!(action.said.evidence, Some(evidence));
    let without = Action::of(proposal()).unwrap();
    assert!(!without.bytes.contains("evidence"), "{}", without.bytes);
    let broken = action.bytes.replace("\"calls\":2", "\"calls\":\"2\"");
    let error = Action::read(&broken).unwrap_err().to_string();
    assert_eq!(
        error,
        "the stored action cannot be read: `calls` is missing or of another kind"
    );
}
