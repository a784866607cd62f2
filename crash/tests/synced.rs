//! `sync` means synced: before a child says that a checkpoint is saved, every write to the log of SQLite has been
//! followed by a sync that has returned. Seen from outside, by `strace`.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{Counter, End, Launch, Order, Place, Shape, Trace, read_trace};
use std::process::Command;
use uuid::Uuid;

/// Whether processes can be traced here. Where there is no `strace` that is a failure under
/// `PARAPH_REQUIRE_SERVICES`; where the kernel allows no tracing it is nobody's fault.
fn can_trace() -> bool {
    let Ok(tried) = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output()
    else {
        assert!(
            std::env::var_os("PARAPH_REQUIRE_SERVICES").is_none(),
            "strace is missing: install it"
        );
        println!("skipped: there is no strace here");
        return false;
    };
    if !tried.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&tried.stderr));
    }
    tried.status.success()
}

fn traced(durability: &str) -> Trace {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let counter = Counter::start().unwrap();
    let file = folder.path().join("trace");
    let order = Order {
        place: Place::file(&folder.path().join("a.db")),
        thread: "traced".to_owned(),
        run: Uuid::now_v7(),
        shape: Shape::Steps,
        durability: durability.to_owned(),
        counter: counter.address(),
        process: 0,
        takes_ms: 0,
        stop: None,
    };
    let strace = [
        "strace",
        "-f",
        "-y",
        "-s",
        "64",
        "-e",
        "trace=write,pwrite64,fsync,fdatasync",
        "-o",
    ];
    let words = strace
        .map(str::to_owned)
        .into_iter()
        .chain([file.display().to_string()]);
    let launch = Launch::of(env!("CARGO_BIN_EXE_paraph-crash")).under(words);
    let ended = launch.start(&order).unwrap().end(None).unwrap();
    assert_eq!(ended.end, End::Done, "{ended:?}");
    read_trace(&std::fs::read_to_string(&file).unwrap())
}

#[test]
fn what_is_said_to_be_saved_was_synced_before() {
    if !can_trace() {
        return;
    }
    let trace = traced("sync");
    println!(
        "writes to the log and syncs before each of the four checkpoints: {:?}",
        trace.saved
    );
    assert_eq!(trace.early, []);
    assert_eq!(trace.saved.len(), 4);
    for (at, (writes, syncs)) in trace.saved.iter().enumerate() {
        assert!(
            *writes > 0 && *syncs > 0,
            "checkpoint {at} was told of without a sync"
        );
        // A superstep is three commits, two memos and its checkpoint; a sync more would be one for nothing.
        assert!(at == 0 || *syncs <= 3, "checkpoint {at} took {syncs} syncs");
    }
}

#[test]
fn with_async_what_is_told_was_synced_too() {
    if !can_trace() {
        return;
    }
    let trace = traced("async");
    assert_eq!(trace.saved.len(), 4);
    // The next superstep may be on its way to the disk when this one is told of; its own sync is there.
    let syncs: usize = trace.saved.iter().map(|(_, syncs)| syncs).sum();
    assert!(syncs > 0, "{trace:?}");
}
