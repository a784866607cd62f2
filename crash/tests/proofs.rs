//! The proofs of the gateway that need no kills, in short: races, a hostile model, tampering, budgets and stops.
//!
//! `just prove` is the long form of the same code.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{
    Fault, Launch, Place, Races, Stopping, Tally, calls_of_many, hostile_episodes,
    signatures_of_many, tampered_exports, tampered_packs, tokens_of_many,
};
use odd::Odd;
use paraph_gateway::{Guard, MemoryStore, Person, Signer, State, Store, Vote};
use std::future::Future;
use std::sync::Arc;
use tokio::runtime::Runtime;

#[path = "../../crates/store/tests/cluster/mod.rs"]
mod cluster;
mod odd;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Prints what came of it, and fails where anything failed.
fn judge(proof: impl Future<Output = Result<Tally, Fault>>) -> Tally {
    let tally = Runtime::new().unwrap().block_on(proof).unwrap();
    println!("{tally}");
    assert_eq!(tally.failures, 0);
    tally
}

/// Handles to a store, as three processes have them.
async fn handles(place: &Place) -> Result<Vec<Arc<dyn Store>>, Fault> {
    let mut handles = Vec::new();
    for _ in 0..3 {
        handles.push(place.gateway().await?);
    }
    Ok(handles)
}

async fn race(name: &'static str, place: &Place) -> Result<Tally, Fault> {
    let handles = handles(place).await?;
    Races { name, handles }.run(50).await
}

fn server() -> Option<(cluster::Cluster, Place)> {
    let server = cluster::Cluster::start()?;
    let url = server.url();
    let place = Place {
        url,
        lease_ms: None,
    };
    Some((server, place))
}

/// That it was not always the same who won.
fn is_a_race(tally: &Tally) {
    assert!(tally.counted("edited") > 0, "{tally}");
    is_a_race_of_servers(tally);
}

/// The same where each read is a flight to a server: an edit reads more than the others before it writes, and may never
/// be first.
fn is_a_race_of_servers(tally: &Tally) {
    for what in ["approved", "rejected", "expired"] {
        assert!(tally.counted(what) > 0, "{tally}");
    }
}

#[test]
fn of_32_decisions_one_wins_in_memory() {
    let handles = vec![MemoryStore::shared() as Arc<dyn Store>];
    let races = Races {
        name: "memory",
        handles,
    };
    is_a_race(&judge(races.run(50)));
}

#[test]
fn of_32_decisions_one_wins_on_sqlite() {
    let folder = folder();
    let place = Place::file(&folder.path().join("race.db"));
    is_a_race(&judge(race("sqlite", &place)));
}

#[test]
fn of_32_decisions_one_wins_on_postgres() {
    let Some((_server, place)) = server() else {
        return;
    };
    is_a_race_of_servers(&judge(race("postgres", &place)));
}

#[test]
fn a_store_that_compares_no_versions_has_several_winners() {
    let forgets = Odd::over(MemoryStore::shared(), |change| {
        let versions = |guard: &Guard| matches!(guard, Guard::At { .. });
        change.guards.retain(|guard| !versions(guard));
    });
    let races = Races {
        name: "forgetful",
        handles: vec![forgets],
    };
    let runtime = Runtime::new().unwrap();
    // Who meets whom is the machine's business: on a busy one it takes longer.
    let found = (0..50).any(|_| runtime.block_on(races.run(20)).unwrap().failures > 0);
    assert!(found);
}

#[test]
fn a_store_that_signs_by_itself_is_found() {
    let signs = |store| -> Arc<dyn Store> {
        Odd::over(store, |change| {
            for row in &mut change.actions {
                if row.state == State::Pending {
                    row.state = State::Approved;
                    row.votes.push(Vote {
                        by: Signer::Person(Person::from("eve")),
                        digest: row.digest.clone(),
                        at_ms: 1,
                        seal: None,
                    });
                }
            }
        })
    };
    let playing = hostile_episodes(100, 1, signs);
    let tally = Runtime::new().unwrap().block_on(playing).unwrap();
    let unapproved = tally.counted("effects that nobody approved");
    assert!(unapproved > 0 && tally.failures > 0, "{tally}");
}

#[test]
fn a_hostile_model_brings_about_nothing_that_nobody_approved() {
    let tally = judge(hostile_episodes(2_000, 1, |store| store));
    assert!(tally.counted("effects") > 200, "{tally}");
}

#[test]
fn whatever_is_done_to_an_export_is_found() {
    judge(tampered_exports());
}

#[test]
fn whatever_is_done_to_an_evidence_pack_is_found() {
    judge(tampered_packs(false));
}

#[test]
fn no_call_is_made_that_the_budget_has_not() {
    judge(calls_of_many(50));
}

#[test]
fn no_token_is_spent_that_was_not_reserved_but_by_answers_under_way() {
    judge(tokens_of_many(200));
}

#[test]
fn no_grant_signs_more_often_than_it_gives() {
    let memory = MemoryStore::shared() as Arc<dyn Store>;
    judge(signatures_of_many(("memory", &[memory]), 20));
    let folder = folder();
    let place = Place::file(&folder.path().join("grants.db"));
    judge(async {
        let handles = handles(&place).await?;
        signatures_of_many(("sqlite", &handles), 5).await
    });
    if let Some((_server, place)) = server() {
        judge(async {
            let handles = handles(&place).await?;
            signatures_of_many(("postgres", &handles), 5).await
        });
    }
}

fn stop(name: &'static str, place: Place) {
    let launch = Launch::of(env!("CARGO_BIN_EXE_paraph-crash")).mode("busy");
    let stopping = Stopping {
        name,
        place,
        launch: &launch,
        children: 3,
    };
    let tally = judge(stopping.run(12));
    assert!(tally.counted("attempts in the audit") > 24, "{tally}");
}

#[test]
fn no_effect_begins_after_a_kill_was_acknowledged_on_sqlite() {
    let folder = folder();
    stop("sqlite", Place::file(&folder.path().join("stops.db")));
}

#[test]
fn no_effect_begins_after_a_kill_was_acknowledged_on_postgres() {
    if let Some((_server, place)) = server() {
        stop("postgres", place);
    }
}
