//! Report G07: two processes write to one file of SQLite, two hundred times a second each, and neither is ever
//! told that it is locked.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{Paced, Place};
use paraph_graph::{HistoryQuery, Scope};
use std::process::{Child, Command, Stdio};

const RATE: u32 = 200;

/// `PARAPH_CRASH_SECONDS` for the long form of thirty seconds.
fn seconds() -> u32 {
    let asked = std::env::var("PARAPH_CRASH_SECONDS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(3)
}

fn start(place: &Place, thread: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_paraph-crash"))
        .args(["pace", &serde_json::to_string(place).unwrap(), thread])
        .args([RATE.to_string(), seconds().to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(child: Child) -> Paced {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn two_processes_write_to_one_file_without_an_error() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = Place::file(&folder.path().join("shared.db"));
    let children = ["one", "other"].map(|thread| start(&place, thread));
    let all = children.map(end);
    println!(
        "two processes, {RATE} writes/s each, {} s: {all:?}",
        seconds()
    );
    let store = place.open().await.unwrap();
    for (thread, paced) in ["one", "other"].into_iter().zip(&all) {
        let wanted = usize::try_from(RATE * seconds()).unwrap();
        assert_eq!(
            (paced.written, paced.errors.len()),
            (wanted, 0),
            "{paced:?}"
        );
        let scope = Scope {
            thread: thread.into(),
            namespace: "".into(),
        };
        let there = store
            .history(&scope, &HistoryQuery::default())
            .await
            .unwrap();
        assert_eq!(there.len(), wanted);
    }
    assert_eq!(place.damage().unwrap(), Vec::<String>::new());
}
