//! How often a Postgres store waits for its server, counted on the wire: what is sent without waiting for an answer is
//! one flight. Time is not measured.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;
mod suite;

use cluster::Cluster;
use futures::future::BoxFuture;
use paraph_gateway::{Add, Change, Guard, RunRef, Store as _};
use paraph_graph::{
    Checkpoints, LogEntry, Memory, NoteKind, PatchKind, RunEnd, RunId, RunStatus, Standing,
};
use paraph_store::{Options, Postgres};
use serde_json::json;
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use suite::{Line, lease, note, start};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep_until},
};

/// How long a client must be silent before it hears the server. Longer than it needs to send what it need not
/// wait for.
const SILENCE: Duration = Duration::from_millis(20);

/// Stands between clients and the server at this port, and keeps back what the server says while a client still
/// speaks. Counts how often one speaks up after it has heard something. Says its own port.
async fn counting_proxy(server: u16, flights: Arc<AtomicU32>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
            tokio::spawn(between(client, server, flights.clone()));
        }
    });
    port
}

async fn between(
    mut client: TcpStream,
    mut server: TcpStream,
    flights: Arc<AtomicU32>,
) -> std::io::Result<()> {
    let (mut asked, mut said) = ([0; 65536], [0; 65536]);
    let (mut kept, mut has_heard, mut spoke) = (Vec::new(), true, Instant::now());
    loop {
        let silence = pin!(sleep_until(spoke + SILENCE));
        tokio::select! {
            n = client.read(&mut asked) => {
                let n = n?;
                if n == 0 {
                    return Ok(());
                }
                flights.fetch_add(u32::from(has_heard), Ordering::Relaxed);
                (has_heard, spoke) = (false, Instant::now());
                server.write_all(&asked[..n]).await?;
            }
            n = server.read(&mut said) => {
                let n = n?;
                if n == 0 {
                    return Ok(());
                }
                kept.extend_from_slice(&said[..n]);
            }
            () = silence, if !kept.is_empty() => {
                client.write_all(&kept).await?;
                kept.clear();
                has_heard = true;
            }
        }
    }
}

/// The fewest flights that something took of several times: a client that was held up in the middle of one looks
/// as if it had begun another, and never the other way round.
async fn fewest(flights: &AtomicU32, mut what: impl FnMut() -> BoxFuture<'static, ()>) -> u32 {
    let mut fewest = u32::MAX;
    for _ in 0..6 {
        let before = flights.load(Ordering::Relaxed);
        what().await;
        fewest = fewest.min(flights.load(Ordering::Relaxed) - before);
    }
    fewest
}

fn event(run: RunId) -> LogEntry {
    LogEntry {
        run,
        namespace: String::new(),
        created_ms: 1,
        json: r#"{"event": "values"}"#.to_owned(),
        same: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_waits_for_the_server_twice_and_what_depends_on_nothing_once() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let flights = Arc::new(AtomicU32::new(0));
    let port = counting_proxy(cluster.port(), flights.clone()).await;
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    let one = Options {
        connections: 1,
        ..Options::default()
    };
    let store = Arc::new(Postgres::connect(&url, one).await.unwrap());
    let mut counted = Vec::new();

    let deltas = || [("log", PatchKind::Append, json!(["x"]))];
    let mut line = Line::on("t");
    for (what, standing) in [("put", None), ("put at rest", Some(json!({"log": 1})))] {
        let fewest = fewest(&flights, || {
            let mut put = line.put(&deltas());
            line.head = Some(put.id);
            put.notes = vec![note(1, NoteKind::Memo, "k", "1")];
            put.events = vec![event(line.run), event(line.run)];
            put.standing = standing.clone().map(|values| Standing {
                values: Some(values),
                ..Standing::IDLE
            });
            let (store, scope) = (store.clone(), line.scope.clone());
            Box::pin(async move { Checkpoints::put(&*store, &scope, put).await.unwrap() })
        });
        counted.push((what, fewest.await));
    }

    let few = fewest(&flights, || {
        let mut notes = line.notes(vec![note(2, NoteKind::Memo, "k", "1")]);
        notes.events = vec![event(line.run)];
        let (store, scope) = (store.clone(), line.scope.clone());
        Box::pin(async move { store.note(&scope, notes).await.unwrap() })
    });
    counted.push(("note", few.await));

    let mut least = u32::MAX;
    for _ in 0..6 {
        let run = RunId::fresh();
        let held = lease(&*store, "t", &start(run)).await;
        let end = RunEnd {
            run,
            epoch: held.epoch,
            status: RunStatus::Success,
            error: None,
            standing: Some(Standing {
                values: Some(json!({"log": 2})),
                ..Standing::IDLE
            }),
            events: vec![event(run)],
        };
        let before = flights.load(Ordering::Relaxed);
        store.finish("t", end).await.unwrap();
        least = least.min(flights.load(Ordering::Relaxed) - before);
    }
    counted.push(("finish", least));

    let few = fewest(&flights, || {
        let store = store.clone();
        Box::pin(async move {
            let namespace = ["users".to_owned()];
            let put = Memory::put(&*store, &namespace, "k", json!(1), None);
            put.await.unwrap();
        })
    });
    counted.push(("memory", few.await));

    let mut n = 0;
    let few = fewest(&flights, || {
        n += 1;
        let run = Arc::new(RunRef {
            tenant: "t".to_owned(),
            agent: "a".to_owned(),
            thread: "t".to_owned(),
            run: "r".to_owned(),
        });
        let change = Change {
            guards: vec![Guard::Fresh {
                run: run.clone(),
                key: format!("{n}"),
            }],
            calls: Vec::new(),
            add: vec![Add {
                run,
                counter: "calls".to_owned(),
                by: 1,
            }],
        };
        let store = store.clone();
        Box::pin(async move { store.commit(change).await.unwrap() })
    });
    counted.push(("gateway", few.await));

    let expected = [
        ("put", 2),
        ("put at rest", 2),
        ("note", 2),
        ("finish", 2),
        ("memory", 1),
        ("gateway", 2),
    ];
    assert_eq!(counted, expected);
}
