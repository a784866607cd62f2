//! The rules of signatures as a table: which lives of an action a chain may tell.

use super::lives::{Chain, about};
use super::*;

/// What the verifier says of these events about one action: each is a kind and, after `=`, the state it leaves the
/// action in, or the scope of a kill switch or a revocation.
fn told(events: &str) -> Result<u64, String> {
    let mut chain = Chain::new("t");
    for (at, word) in events.split_whitespace().enumerate() {
        let (kind, value) = word.split_once('=').unwrap_or((word, ""));
        let kind: EventKind = serde_json::from_value(kind.into()).unwrap();
        let mut event = Event {
            at_ms: at as u64,
            ..about(kind, "t", "a1")
        };
        match kind {
            EventKind::Killed | EventKind::Unkilled | EventKind::Revoked | EventKind::Restored => {
                (event.action, event.digest) = (None, None);
                event.scope = Some(value.to_owned());
            }
            // Approved by the grant `small`.
            EventKind::Proposed if value == "granted" => {
                event = event.with("grant", "small");
                event.state = Some("approved".to_owned());
            }
            _ => event.state = Some(value.to_owned()),
        }
        chain.add(event.draft());
    }
    let found = Verifier::check("t", &chain.entries, &[]);
    found
        .map(|found| found.attempts)
        .map_err(|broken| broken.to_string())
}

const APPROVED: &str = "decided=approved";
const STARTED: &str = "attempt_started=executing";
const GRANTED: &str = "proposed=granted";
const REVOKED: &str = "revoked=grant:support/small";
const RESTORED: &str = "restored=grant:support/small";

#[test]
fn an_attempt_that_a_revoked_grant_had_signed_is_found() {
    let unsigned = "an attempt was started that no approval in force covers";
    let revoked = "an attempt was started that a grant had signed which was revoked";
    let table = [
        (format!("{GRANTED} {STARTED}"), Ok(1)),
        (format!("{REVOKED} {RESTORED} {GRANTED} {STARTED}"), Ok(1)),
        // What people signed, and what other grants did, is not meant.
        (format!("{REVOKED} {APPROVED} {STARTED}"), Ok(1)),
        (
            format!("{GRANTED} {REVOKED} held=held {APPROVED} {STARTED}"),
            Ok(1),
        ),
        (
            format!("revoked=grant:support/smal revoked=grant:other/small {GRANTED} {STARTED}"),
            Ok(1),
        ),
        (format!("{GRANTED} {REVOKED} {STARTED}"), Err((3, unsigned))),
        (
            format!("{GRANTED} {REVOKED} {RESTORED} {STARTED}"),
            Err((4, unsigned)),
        ),
        (format!("{REVOKED} {GRANTED} {STARTED}"), Err((3, revoked))),
        (
            format!("{GRANTED} {STARTED} unknown=unknown {REVOKED} {STARTED}"),
            Err((5, revoked)),
        ),
    ];
    for (events, expected) in table {
        let expected = expected.map_err(|(seq, why)| format!("entry {seq}: {why}"));
        assert_eq!(told(&events), expected, "{events}");
    }
}

#[test]
fn an_attempt_is_covered_by_an_approval_in_force() {
    let table = [
        (format!("{APPROVED} {STARTED}"), 1),
        (format!("proposed=approved {STARTED}"), 1),
        (
            format!("proposed=approved {STARTED} provider_replied=failed"),
            1,
        ),
        (
            format!("{APPROVED} shown=approved {STARTED} provider_replied=succeeded"),
            1,
        ),
        (format!("{APPROVED} {APPROVED} {STARTED}"), 1),
        (format!("{APPROVED} {STARTED} unknown=unknown {STARTED}"), 2),
        (
            format!(
                "{APPROVED} {STARTED} unknown=unknown reconciled=unknown {STARTED} provider_replied=failed"
            ),
            2,
        ),
        (format!("held=held {APPROVED} {STARTED}"), 1),
        (
            format!("killed=global unkilled=global {APPROVED} {STARTED}"),
            1,
        ),
        (
            format!("killed=global {APPROVED} unkilled=global {STARTED}"),
            1,
        ),
        (
            format!("{APPROVED} {STARTED} killed=writes unknown=unknown unkilled=writes {STARTED}"),
            2,
        ),
        (format!("{APPROVED} killed=tool:other {STARTED}"), 1),
        (
            format!(
                "{APPROVED} killed=agent:other killed=tenant:other killed=odd killed=odd:pay {STARTED}"
            ),
            1,
        ),
        ("proposed=pending decided=rejected budget".to_owned(), 0),
    ];
    for (events, attempts) in table {
        assert_eq!(told(&events), Ok(attempts), "{events}");
    }
}

#[test]
fn an_attempt_that_no_approval_in_force_covers_is_found() {
    let table = [
        (STARTED.to_owned(), 1),
        (format!("proposed=pending decided=pending {STARTED}"), 3),
        // Only a decision signs, whatever else says that it is approved.
        (format!("shown=approved {STARTED}"), 2),
        (format!("{APPROVED} held=held {STARTED}"), 3),
        (format!("{APPROVED} expired=expired {STARTED}"), 3),
        (format!("{APPROVED} drifted=drifted {STARTED}"), 3),
        (format!("{APPROVED} decided=rejected {STARTED}"), 3),
        (format!("{APPROVED} cancelled=cancelled {STARTED}"), 3),
        (
            format!("{APPROVED} {STARTED} provider_replied=succeeded {STARTED}"),
            4,
        ),
        // A kill switch ends what was signed before it.
        (format!("{APPROVED} killed=writes {STARTED}"), 3),
        (
            format!("{APPROVED} killed=global unkilled=global {STARTED}"),
            4,
        ),
    ];
    for (events, seq) in table {
        let why = format!("entry {seq}: an attempt was started that no approval in force covers");
        assert_eq!(told(&events), Err(why), "{events}");
    }
}

#[test]
fn an_attempt_under_a_kill_switch_or_before_anybody_looked_is_found() {
    let killed = "an attempt was started while a kill switch was on";
    let twice = "an attempt was started again before anybody knew what came of the last one";
    let table = [
        (
            format!("{APPROVED} {STARTED} unknown=unknown killed=global {STARTED}"),
            5,
            killed,
        ),
        (format!("killed=tool:pay {APPROVED} {STARTED}"), 3, killed),
        (
            format!("killed=agent:support {APPROVED} {STARTED}"),
            3,
            killed,
        ),
        (format!("killed=tenant:t {APPROVED} {STARTED}"), 3, killed),
        (format!("{APPROVED} {STARTED} {STARTED}"), 3, twice),
        (
            format!("{APPROVED} {STARTED} reconciled=executing {STARTED}"),
            4,
            twice,
        ),
        (
            format!("{APPROVED} {STARTED} unknown=unknown {STARTED} {APPROVED} {STARTED}"),
            6,
            twice,
        ),
    ];
    for (events, seq, why) in table {
        assert_eq!(
            told(&events),
            Err(format!("entry {seq}: {why}")),
            "{events}"
        );
    }
}

#[test]
fn what_was_started_has_the_digest_that_was_approved_and_is_in_time() {
    let start = |change: fn(&mut Event)| {
        let mut chain = Chain::new("t");
        let approved = Event {
            state: Some("approved".into()),
            expires_ms: Some(10),
            ..about(EventKind::Decided, "t", "a1")
        };
        chain.add(approved.draft());
        let mut started = Event {
            at_ms: 9,
            ..about(EventKind::AttemptStarted, "t", "a1")
        };
        change(&mut started);
        chain.add(started.draft());
        Verifier::check("t", &chain.entries, &[])
            .map(drop)
            .map_err(|broken| broken.to_string())
    };
    let other = "entry 2: the digest of what was started is not the digest of what was approved";
    assert_eq!(start(|_| {}), Ok(()));
    assert_eq!(
        start(|event| event.digest = Some("1".repeat(64))),
        Err(other.into())
    );
    assert_eq!(start(|event| event.digest = None), Err(other.into()));
    assert_eq!(
        start(|event| event.at_ms = 10),
        Err("entry 2: an attempt was started after the approval had expired".into())
    );
    assert_eq!(
        start(|event| event.action = None),
        Err("entry 2: an attempt was started that no approval in force covers".into())
    );
}

#[test]
fn a_kill_of_writes_leaves_what_only_reads() {
    let mut chain = Chain::new("t");
    let reading = |kind, state: &str| Event {
        level: Some("read".into()),
        state: Some(state.into()),
        ..about(kind, "t", "a1")
    };
    chain.add(
        Event {
            scope: Some("writes".into()),
            ..Event::new(EventKind::Killed, "t", 0)
        }
        .draft(),
    );
    chain.add(reading(EventKind::Decided, "approved").draft());
    chain.add(reading(EventKind::AttemptStarted, "executing").draft());
    assert!(Verifier::check("t", &chain.entries, &[]).is_ok());
}
