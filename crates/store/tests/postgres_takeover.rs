//! Two processes and one thread: who dies loses it at once, who is stopped loses it when its lease has run out, and
//! what is written under a lost lease is refused.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::Cluster;
use paraph_graph::*;
use paraph_store::{Options, Postgres};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

const RUN: &str = "0192f0c1-2345-7abc-8def-0123456789ab";

fn scope() -> Scope {
    Scope {
        thread: "t".into(),
        namespace: "".into(),
    }
}

fn claim(run: RunId) -> Claim {
    Claim {
        run,
        start: Some(RunStart::default()),
    }
}

fn put(run: RunId, epoch: u64, head: Option<CheckpointId>) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run,
            created_ms: 1,
            user: serde_json::Map::new(),
        },
        machine: b"{}".to_vec(),
        deltas: Vec::new(),
        notes: Vec::new(),
        epoch,
        standing: None,
        events: Vec::new(),
    }
}

async fn open(url: &str, lease: Duration) -> Store {
    let options = Options {
        lease,
        ..Options::default()
    };
    Arc::new(Postgres::connect(url, options).await.unwrap())
}

/// The other process: takes the thread, writes to it, and then does what it is told, line by line.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "this is the other process of the tests below"]
async fn other() {
    let url = std::env::var("PARAPH_TEST_URL").unwrap();
    let lease: u64 = std::env::var("PARAPH_TEST_LEASE_MS")
        .unwrap()
        .parse()
        .unwrap();
    let store = open(&url, Duration::from_millis(lease)).await;
    let run: RunId = RUN.parse().unwrap();
    let mut lease = store.lease("t", claim(run)).await.unwrap();
    let first = put(run, lease.epoch, None);
    let head = first.id;
    store.put(&scope(), first).await.unwrap();
    println!("said: holds {head}");
    for line in std::io::stdin().lines() {
        match &*line.unwrap() {
            "put" => {
                let put = put(run, lease.epoch, Some(head));
                println!("said: {:?}", store.put(&scope(), put).await);
            }
            "note" => {
                let notes = Notes {
                    at: head,
                    epoch: lease.epoch,
                    notes: Vec::new(),
                    events: Vec::new(),
                };
                println!("said: {:?}", store.note(&scope(), notes).await);
            }
            "wish" => {
                let wish = lease.wish.as_mut().unwrap();
                let wish = *wish.wait_for(Option::is_some).await.unwrap();
                println!("said: {wish:?}");
            }
            other => panic!("{other}"),
        }
    }
}

/// The other process, seen from here. It is killed with its guard.
struct Other {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(url: &str, lease: Duration) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "other", "--ignored", "--nocapture"])
            .env("PARAPH_TEST_URL", url)
            .env("PARAPH_TEST_LEASE_MS", lease.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Other { child, said }
    }

    fn tell(&mut self, line: &str) -> String {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.hear()
    }

    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "it is gone");
            if let Some((_, said)) = line.split_once("said: ") {
                return said.trim_end().to_owned();
            }
        }
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill {signal} {}", self.child.id());
        let sent = Command::new("/bin/sh").args(["-c", &kill]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks until the thread is given; says which run had it until then, and for how long.
async fn take(store: &Store) -> (Lease, Vec<Option<RunId>>, Duration) {
    let (began, mut holders) = (Instant::now(), Vec::new());
    loop {
        match store.lease("t", claim(RunId::fresh())).await {
            Ok(lease) => return (lease, holders, began.elapsed()),
            Err(Error::Conflict { holder, .. }) => {
                if holders.last() != Some(&holder) {
                    holders.push(holder);
                }
            }
            Err(e) => panic!("{e}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_whose_process_was_killed_can_be_had_at_once() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let lease = Duration::from_secs(5);
    let store = open(&cluster.url(), lease).await;
    let mut other = Other::start(&cluster.url(), lease);
    other.hear();
    // A server that was up for less than a lease is not believed to know all who live.
    let up = "SELECT clock_timestamp() - pg_postmaster_start_time() > interval '5 s'";
    while cluster.sql("postgres", up) != "t" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let held = store.lease("t", claim(RunId::fresh())).await.err().unwrap();
    let holder = Some(RUN.parse().unwrap());
    assert!(
        matches!(&held, Error::Conflict { holder: h, .. } if *h == holder),
        "{held}"
    );
    other.signal("-KILL");
    let (_lease, _, after) = take(&store).await;
    // It was renewed when a third of it was over at the latest, and would have lasted that long.
    assert!(after < lease * 2 / 3, "{after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_keeps_its_thread_until_the_lease_runs_out_and_then_writes_nothing_more()
{
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let lease = Duration::from_millis(1500);
    let store = open(&cluster.url(), lease).await;
    let mut other = Other::start(&cluster.url(), lease);
    let head = other.hear().trim_start_matches("holds ").parse().unwrap();
    assert_eq!(other.tell("note"), "Ok(())");
    other.signal("-STOP");
    let (taken, holders, after) = take(&store).await;
    assert_eq!(holders, [Some(RUN.parse().unwrap())]);
    assert!(after > lease / 3, "{after:?}");
    let mine = put(RunId::fresh(), taken.epoch, Some(head));
    let my_head = mine.id;
    store.put(&scope(), mine).await.unwrap();
    other.signal("-CONT");
    for line in ["put", "note", "put"] {
        let said = other.tell(line);
        assert!(said.contains("Conflict"), "{line}: {said}");
    }
    assert_eq!(other.tell("wish"), "Some(LeaseLost)");
    let loaded = store.load(&scope(), None).await.unwrap().unwrap();
    assert_eq!(loaded.id, my_head);
    let entries = store
        .history(&scope(), &HistoryQuery::default())
        .await
        .unwrap();
    assert_eq!(entries.len(), 2);
}
