//! Effects that are proposed, approved and carried out by processes which are killed meanwhile (F1 and F2).
//!
//! The short form of `just prove`; seeds are fixed. `PARAPH_PROVE_KILLS` says how many kills there are for each store
//! and service. The last tests put a fault into the effect and expect that it is found: a proof that cannot fail is none.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{Api, DOUBLES, Errands, Flaw, Launch, Place, Stand, Tally, every_place, random_places};
use tokio::runtime::Runtime;

#[path = "../../crates/store/tests/cluster/mod.rs"]
mod cluster;

/// How long a lease lasts on Postgres: it gives a dead process's thread away at once only when it has been up for longer.
const LEASE_MS: u64 = 3_000;

fn kills() -> usize {
    let asked = std::env::var("PARAPH_PROVE_KILLS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(50)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn launch() -> Launch {
    Launch::of(env!("CARGO_BIN_EXE_paraph-crash")).mode("errand")
}

fn server() -> Option<(cluster::Cluster, Stand)> {
    let server = cluster::Cluster::start()?;
    std::thread::sleep(std::time::Duration::from_millis(LEASE_MS));
    let stand = Stand::Database(Place {
        url: server.url(),
        lease_ms: Some(LEASE_MS),
    });
    Some((server, stand))
}

fn each_place(stand: &Stand, api: Api, flaw: Option<Flaw>) -> Tally {
    let (launch, runtime) = (launch(), Runtime::new().unwrap());
    let plan = Errands {
        launch: &launch,
        stand,
        api,
        flaw,
        workers: 4,
    };
    let tally = every_place(plan, runtime.handle()).unwrap();
    println!("{tally}");
    tally
}

fn at_random(stand: &Stand, api: Api) -> Tally {
    let (launch, runtime) = (launch(), Runtime::new().unwrap());
    let plan = Errands {
        launch: &launch,
        stand,
        api,
        flaw: None,
        workers: 4,
    };
    let tally = random_places(plan, runtime.handle(), 1, kills()).unwrap();
    println!("{tally}");
    assert!(tally.counted("kills") >= kills() as u64, "{tally}");
    tally
}

/// Judged when all are through, so that the output has every figure. The folder is kept when something was found.
fn judge(tallies: &[Tally], folder: tempfile::TempDir) {
    if tallies.iter().any(|tally| tally.failures > 0) {
        panic!("what failed lies in {}", folder.keep().display());
    }
}

#[test]
fn every_place_may_be_the_last_on_sqlite() {
    let folder = folder();
    let stand = Stand::Folder(folder.path().to_owned());
    let tallies = Api::ALL.map(|api| each_place(&stand, api, None));
    assert!(tallies.iter().all(|tally| tally.trials > 45), "{tallies:?}");
    judge(&tallies, folder);
}

#[test]
fn every_place_may_be_the_last_on_postgres() {
    let Some((_server, stand)) = server() else {
        return;
    };
    let tallies = Api::ALL.map(|api| each_place(&stand, api, None));
    judge(&tallies, folder());
}

#[test]
fn random_kills_lose_no_approval_and_double_no_effect_on_sqlite() {
    let folder = folder();
    let stand = Stand::Folder(folder.path().to_owned());
    judge(&Api::ALL.map(|api| at_random(&stand, api)), folder);
}

#[test]
fn random_kills_lose_no_approval_and_double_no_effect_on_postgres() {
    let Some((_server, stand)) = server() else {
        return;
    };
    judge(&Api::ALL.map(|api| at_random(&stand, api)), folder());
}

#[test]
fn an_effect_that_is_sent_again_without_a_look_is_found() {
    let folder = folder();
    let stand = Stand::Folder(folder.path().to_owned());
    let tally = each_place(&stand, Api::Write, Some(Flaw::NoLook));
    assert!(tally.counted(DOUBLES) > 5, "{tally}");
}

#[test]
fn a_payment_with_a_key_for_each_attempt_is_found() {
    let folder = folder();
    let stand = Stand::Folder(folder.path().to_owned());
    let tally = each_place(&stand, Api::Pay, Some(Flaw::KeyPerAttempt));
    assert!(tally.counted(DOUBLES) > 5, "{tally}");
}
