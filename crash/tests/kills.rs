//! Runs that are killed at random moments, and at every durable write, on both stores.
//!
//! The short form of `just crash`; seeds are fixed, so what fails here is found again by `paraph-crash --seed`.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{Launch, Place, Plan, Series, Shape, Stand, failpoints, random_kills};
use tokio::runtime::Runtime;

#[path = "../../crates/store/tests/cluster/mod.rs"]
mod cluster;

/// A folder that is kept when something was found.
struct Ground {
    folder: tempfile::TempDir,
    runtime: Runtime,
    launch: Launch,
    series: Vec<Series>,
}

impl Ground {
    fn new() -> Self {
        Ground {
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
            runtime: Runtime::new().unwrap(),
            launch: Launch::of(env!("CARGO_BIN_EXE_paraph-crash")),
            series: Vec::new(),
        }
    }

    fn files(&self) -> Stand {
        Stand::Folder(self.folder.path().to_owned())
    }

    fn kill(&mut self, stand: &Stand, (shape, durability): (Shape, &str), kills: usize) {
        let plan = plan(&self.launch, stand, (shape, durability));
        let series = random_kills(plan, self.runtime.handle(), 1, kills).unwrap();
        assert!(series.cuts >= kills, "{series}");
        self.series.push(series);
    }

    fn stop(&mut self, stand: &Stand, (shape, durability): (Shape, &str)) {
        let plan = plan(&self.launch, stand, (shape, durability));
        self.series
            .push(failpoints(plan, self.runtime.handle()).unwrap());
    }

    fn judge(self) {
        for series in &self.series {
            println!("{series}");
        }
        let failed: usize = self.series.iter().map(|series| series.failed.len()).sum();
        if failed > 0 {
            let folder = self.folder.keep();
            panic!(
                "{failed} runs failed; their stores lie in {}",
                folder.display()
            );
        }
    }
}

fn plan<'a>(
    launch: &'a Launch,
    stand: &'a Stand,
    (shape, durability): (Shape, &'a str),
) -> Plan<'a> {
    Plan {
        launch,
        stand,
        shape,
        durability,
        workers: 4,
    }
}

const KILLS: [((Shape, &str), usize); 4] = [
    ((Shape::Steps, "sync"), 40),
    ((Shape::Branched, "sync"), 40),
    ((Shape::Branched, "async"), 15),
    ((Shape::Branched, "exit"), 5),
];

#[test]
fn a_hundred_random_kills_lose_nothing_on_sqlite() {
    let mut ground = Ground::new();
    let stand = ground.files();
    for (what, kills) in KILLS {
        ground.kill(&stand, what, kills);
    }
    ground.judge();
}

fn every_write_on_sqlite(durability: &str) {
    let mut ground = Ground::new();
    let stand = ground.files();
    for shape in Shape::ALL {
        ground.stop(&stand, (shape, durability));
    }
    ground.judge();
}

#[test]
fn every_write_may_be_the_last_on_sqlite_with_sync() {
    every_write_on_sqlite("sync");
}

#[test]
fn every_write_may_be_the_last_on_sqlite_with_async() {
    every_write_on_sqlite("async");
}

#[test]
fn every_write_may_be_the_last_on_sqlite_with_exit() {
    every_write_on_sqlite("exit");
}

/// A server of its own, that has been up for longer than a lease: only then it gives a dead process's thread
/// away at once. Nothing where there is no Postgres.
fn server() -> Option<(cluster::Cluster, Stand)> {
    const LEASE_MS: u64 = 3_000;
    let server = cluster::Cluster::start()?;
    std::thread::sleep(std::time::Duration::from_millis(LEASE_MS));
    let stand = Stand::Database(Place {
        url: server.url(),
        lease_ms: Some(LEASE_MS),
    });
    Some((server, stand))
}

#[test]
fn a_hundred_random_kills_lose_nothing_on_postgres() {
    let Some((_server, stand)) = server() else {
        return;
    };
    let mut ground = Ground::new();
    for (what, kills) in KILLS {
        ground.kill(&stand, what, kills);
    }
    ground.judge();
}

fn every_write_on_postgres(durability: &str) {
    let Some((_server, stand)) = server() else {
        return;
    };
    let mut ground = Ground::new();
    for shape in Shape::ALL {
        ground.stop(&stand, (shape, durability));
    }
    ground.judge();
}

#[test]
fn every_write_may_be_the_last_on_postgres_with_sync() {
    every_write_on_postgres("sync");
}

#[test]
fn every_write_may_be_the_last_on_postgres_with_async() {
    every_write_on_postgres("async");
}

#[test]
fn every_write_may_be_the_last_on_postgres_with_exit() {
    every_write_on_postgres("exit");
}
