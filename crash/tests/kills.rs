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

#[test]
fn a_hundred_random_kills_lose_nothing_on_sqlite() {
    let mut ground = Ground::new();
    let stand = ground.files();
    ground.kill(&stand, (Shape::Steps, "sync"), 40);
    ground.kill(&stand, (Shape::Branched, "sync"), 40);
    ground.kill(&stand, (Shape::Branched, "async"), 15);
    ground.kill(&stand, (Shape::Branched, "exit"), 5);
    ground.judge();
}

#[test]
fn every_write_may_be_the_last_on_sqlite() {
    let mut ground = Ground::new();
    let stand = ground.files();
    for durability in ["sync", "async", "exit"] {
        ground.stop(&stand, (Shape::Steps, durability));
        ground.stop(&stand, (Shape::Branched, durability));
    }
    ground.judge();
}

#[test]
fn kills_and_failpoints_lose_nothing_on_postgres() {
    let Some(cluster) = cluster::Cluster::start() else {
        return;
    };
    let stand = Stand::Database(Place {
        url: cluster.url(),
        lease_ms: Some(3_000),
    });
    // Only a server that has been up for longer than a lease gives a dead process's thread away at once.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut ground = Ground::new();
    ground.kill(&stand, (Shape::Steps, "sync"), 40);
    ground.kill(&stand, (Shape::Branched, "sync"), 40);
    ground.kill(&stand, (Shape::Branched, "async"), 15);
    ground.kill(&stand, (Shape::Branched, "exit"), 5);
    for durability in ["sync", "async", "exit"] {
        ground.stop(&stand, (Shape::Steps, durability));
        ground.stop(&stand, (Shape::Branched, durability));
    }
    ground.judge();
}
