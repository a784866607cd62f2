//! A process is stopped for longer than its lease, another takes its thread over, and the first goes on: none
//! of its writes gets through (report G18 and G20, and the zombie of every queue).
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use crash::{
    Attempt, Counter, End, Evidence, Launch, Line, Order, Place, Running, Shape, check, uncut,
};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use uuid::Uuid;

const LEASE_MS: u64 = 1_000;
const LONG: Duration = Duration::from_secs(30);

/// How often; `PARAPH_CRASH_ZOMBIES` for the long form.
fn cycles() -> usize {
    let asked = std::env::var("PARAPH_CRASH_ZOMBIES").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(4)
}

fn signal(child: &Running, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn order(folder: &Path, counter: &Counter, name: String) -> Order {
    Order {
        place: Place {
            lease_ms: Some(LEASE_MS),
            ..Place::file(&folder.join(format!("{name}.db")))
        },
        thread: name,
        run: Uuid::now_v7(),
        shape: Shape::Steps,
        durability: "sync".to_owned(),
        counter: counter.address(),
        process: 0,
        takes_ms: 0,
        stop: None,
    }
}

fn launch() -> Launch {
    Launch::of(env!("CARGO_BIN_EXE_paraph-crash"))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn a_stopped_run_that_goes_on_after_a_takeover_changes_nothing() {
    let runtime = Runtime::new().unwrap();
    let uncut = runtime.block_on(uncut(Shape::Steps, "sync")).unwrap();
    let folder = folder();
    for cycle in 0..cycles() {
        let counter = Counter::start().unwrap();
        // Every other time the first goes on while the second still works.
        let beside = cycle % 2 == 1;
        counter.hold("second");
        let first_order = order(folder.path(), &counter, format!("run-{cycle}"));
        let first = launch().start(&first_order).unwrap();
        assert!(counter.wait_for(&first_order.thread, "second", 0, LONG));
        signal(&first, Signal::STOP);
        counter.release("second");
        if beside {
            counter.hold("third");
        }
        let second_order = Order {
            process: 1,
            ..first_order.clone()
        };
        let second = launch().start(&second_order).unwrap();
        let (first, second) = if beside {
            assert!(counter.wait_for(&first_order.thread, "third", 1, LONG));
            let first = go_on(first);
            counter.release("third");
            (first, second.end(None).unwrap())
        } else {
            let second = second.end(None).unwrap();
            (go_on(first), second)
        };
        assert_eq!(second.end, End::Done, "{second:?}");
        // To the check the first is one that was cut: nothing that it left may be seen.
        let cut = Attempt {
            end: End::Cut,
            ..first
        };
        let evidence = Evidence {
            order: &second_order,
            attempts: &[cut, second],
            hits: &counter.hits(&first_order.thread),
            uncut: &uncut,
        };
        let found = runtime.block_on(check(evidence)).unwrap();
        assert_eq!(found.wrong, Vec::<String>::new(), "cycle {cycle}");
        // The second effect was done, its memo not saved; the second process did it again.
        assert_eq!(found.repeats, 1);
    }
}

/// Lets a stopped child go on, which must find out that its thread is another's.
fn go_on(child: Running) -> Attempt {
    signal(&child, Signal::CONT);
    let ended = child.end(None).unwrap();
    let End::Failed {
        code: Some(2),
        said,
    } = &ended.end
    else {
        panic!("it did not find out: {ended:?}");
    };
    assert!(
        said.contains("lease") || said.contains("driven by"),
        "it does not say why it ended: {said}"
    );
    assert!(!ended.memos().any(|effect| effect != "first"), "{ended:?}");
    ended
}

#[test]
fn every_write_of_a_stopped_process_is_refused_after_a_takeover() {
    let folder = folder();
    let (mut refused, mut blocked) = (0, 0);
    for cycle in 0..cycles() {
        let counter = Counter::start().unwrap();
        counter.hold("linger");
        let first_order = order(folder.path(), &counter, format!("linger-{cycle}"));
        let mut first = launch().mode("linger").start(&first_order).unwrap();
        assert!(first.read_until(|line| *line == Line::Held));
        signal(&first, Signal::STOP);
        counter.release("linger");
        // Another run of the same thread: it takes the lease when that is over, and writes.
        let second_order = Order {
            process: 1,
            run: Uuid::now_v7(),
            ..first_order
        };
        let second = launch().mode("take").start(&second_order).unwrap();
        let second = second.end(None).unwrap().end;
        signal(&first, Signal::CONT);
        if holds_the_file(&second) {
            // It was stopped within a transaction, as its lease was renewed: nobody can write to that file.
            let _ = first.end(None).unwrap();
            blocked += 1;
            continue;
        }
        assert_eq!(second, End::Done);
        let ended = first.end(None).unwrap();
        assert_eq!(ended.end, End::Done, "{ended:?}");
        let accepted = ended
            .lines
            .iter()
            .filter(|line| matches!(line, Line::Accepted(_)))
            .count();
        assert_eq!((ended.refused(), accepted), (3, 0), "{ended:?}");
        refused += ended.refused();
    }
    assert!(
        blocked <= 1 + cycles() / 50,
        "{blocked} of {} held the file",
        cycles()
    );
    println!(
        "{refused} late writes in {} takeovers, all refused; {blocked} were stopped while they held the file",
        cycles() - blocked
    );
}

/// Whether a process ended because a stopped one holds SQLite's lock on the file. It says so, and wrote nothing.
fn holds_the_file(end: &End) -> bool {
    matches!(end, End::Failed { said, .. } if said.contains("another program has the file locked"))
}
