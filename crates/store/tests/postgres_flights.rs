//! How often a Postgres store waits for its server, counted on the wire: what is sent without waiting for an answer is
//! one flight. Time is not measured.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;
mod deeds;
mod suite;

use cluster::Cluster;
use futures::future::BoxFuture;
use paraph_gateway::{ActionRow, Add, Change, Guard, RunRef, State, Store as _};
use paraph_graph::{
    Checkpoints, LogEntry, Memory, NoteKind, PatchKind, RunEnd, RunId, RunStatus, Standing,
};
use paraph_store::{Options, Postgres};
use serde_json::{Value, json};
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

fn event(run: RunId) -> LogEntry {
    LogEntry {
        run,
        namespace: String::new(),
        created_ms: 1,
        json: r#"{"event": "values"}"#.to_owned(),
        same: Vec::new(),
    }
}

/// A store behind a proxy, over one connection.
struct Behind {
    store: Arc<Postgres>,
    flights: Arc<AtomicU32>,
}

impl Behind {
    async fn open(cluster: &Cluster) -> Behind {
        let flights = Arc::new(AtomicU32::new(0));
        let port = counting_proxy(cluster.port(), flights.clone()).await;
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let one = Options {
            connections: 1,
            ..Options::default()
        };
        Behind {
            store: Arc::new(Postgres::connect(&url, one).await.unwrap()),
            flights,
        }
    }

    /// The fewest flights that something took of several times: a client that was held up in the middle of one
    /// looks as if it had begun another, and never the other way round.
    async fn fewest(&self, mut what: impl FnMut(Arc<Postgres>) -> BoxFuture<'static, ()>) -> u32 {
        let mut fewest = u32::MAX;
        for _ in 0..6 {
            let before = self.flights.load(Ordering::Relaxed);
            what(self.store.clone()).await;
            fewest = fewest.min(self.flights.load(Ordering::Relaxed) - before);
        }
        fewest
    }

    async fn put(&self, line: &mut Line, values: Option<Value>) -> u32 {
        self.fewest(|store| {
            let mut put = line.put(&[("log", PatchKind::Append, json!(["x"]))]);
            line.head = Some(put.id);
            put.notes = vec![note(1, NoteKind::Memo, "k", "1")];
            put.events = vec![event(line.run), event(line.run)];
            put.standing = values.is_some().then(|| at_rest(values.clone()));
            let scope = line.scope.clone();
            Box::pin(async move { Checkpoints::put(&*store, &scope, put).await.unwrap() })
        })
        .await
    }

    async fn note(&self, line: &Line) -> u32 {
        self.fewest(|store| {
            let mut notes = line.notes(vec![note(2, NoteKind::Memo, "k", "1")]);
            notes.events = vec![event(line.run)];
            let scope = line.scope.clone();
            Box::pin(async move { store.note(&scope, notes).await.unwrap() })
        })
        .await
    }

    async fn finish(&self) -> u32 {
        let mut fewest = u32::MAX;
        for _ in 0..6 {
            let run = RunId::fresh();
            let held = lease(&*self.store, "t", &start(run)).await;
            let end = RunEnd {
                run,
                epoch: held.epoch,
                status: RunStatus::Success,
                error: None,
                standing: Some(at_rest(Some(json!({"log": 2})))),
                events: vec![event(run)],
            };
            let before = self.flights.load(Ordering::Relaxed);
            self.store.finish("t", end).await.unwrap();
            fewest = fewest.min(self.flights.load(Ordering::Relaxed) - before);
        }
        fewest
    }

    async fn memory(&self) -> u32 {
        self.fewest(|store| {
            Box::pin(async move {
                let namespace = ["users".to_owned()];
                let put = Memory::put(&*store, &namespace, "k", json!(1), None);
                put.await.unwrap();
            })
        })
        .await
    }

    async fn gateway(&self) -> u32 {
        let run = Arc::new(RunRef {
            tenant: "t".to_owned(),
            agent: "a".to_owned(),
            thread: "t".to_owned(),
            run: "r".to_owned(),
        });
        self.fewest(|store| {
            let change = Change {
                guards: vec![Guard::Fresh {
                    run: run.clone(),
                    key: "k".to_owned(),
                }],
                calls: Vec::new(),
                add: vec![Add {
                    run: run.clone(),
                    counter: "calls".to_owned(),
                    by: 1,
                }],
                ..Change::default()
            };
            Box::pin(async move { store.commit(change).await.unwrap() })
        })
        .await
    }

    /// What a run has used, which depends on nothing.
    async fn usage(&self) -> u32 {
        self.fewest(|store| {
            let change = Change {
                add: vec![Add {
                    run: deeds::run("t", "r"),
                    counter: "tokens".to_owned(),
                    by: 1,
                }],
                ..Change::default()
            };
            Box::pin(async move { store.commit(change).await.unwrap() })
        })
        .await
    }

    /// An action that is started: of all changes the one with the most guards.
    async fn claim(&self) -> u32 {
        let mut row = deeds::action("t", 1, State::Approved);
        self.store
            .commit(deeds::change(&[row.clone()]))
            .await
            .unwrap();
        self.fewest(|store| {
            let guards = vec![
                Guard::At {
                    id: row.id(),
                    version: row.version,
                },
                Guard::Alive {
                    scopes: vec!["global".to_owned()],
                },
                Guard::Before { at_ms: u64::MAX },
                Guard::Most {
                    run: deeds::run("day", "ann"),
                    counter: "cents".to_owned(),
                    most: 1000,
                },
            ];
            row = ActionRow {
                version: row.version + 1,
                ..row.clone()
            };
            let change = Change {
                guards,
                actions: vec![row.clone()],
                wake: vec![deeds::wake(&row)],
                add: vec![Add {
                    run: deeds::run("day", "ann"),
                    counter: "cents".to_owned(),
                    by: 1,
                }],
                ..deeds::audited(2)
            };
            Box::pin(async move { store.commit(change).await.unwrap() })
        })
        .await
    }
}

fn at_rest(values: Option<Value>) -> Standing {
    Standing {
        values,
        ..Standing::IDLE
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_waits_for_the_server_twice_and_what_depends_on_nothing_once() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let behind = Behind::open(&cluster).await;
    let mut line = Line::on("t");
    let counted = [
        ("put", behind.put(&mut line, None).await),
        (
            "put at rest",
            behind.put(&mut line, Some(json!({"log": 1}))).await,
        ),
        ("note", behind.note(&line).await),
        ("finish", behind.finish().await),
        ("memory", behind.memory().await),
        ("gateway", behind.gateway().await),
        ("usage", behind.usage().await),
        ("claim", behind.claim().await),
    ];
    let expected = [
        ("put", 2),
        ("put at rest", 2),
        ("note", 2),
        ("finish", 2),
        ("memory", 1),
        ("gateway", 2),
        ("usage", 1),
        ("claim", 2),
    ];
    assert_eq!(counted, expected);
}
