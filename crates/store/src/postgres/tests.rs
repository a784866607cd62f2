//! The database itself, on a real server: what shares a transaction, what is refused, what survives a loss of the
//! server; and that the two schemas are one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

#[path = "../../tests/cluster/mod.rs"]
mod cluster;

#[path = "tests/batches.rs"]
mod batches;
#[path = "tests/patience.rs"]
mod patience;
#[path = "tests/urgent.rs"]
mod urgent;

use super::*;
use crate::sql::{Statement, one};
use cluster::{Cluster, Stop};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::atomic::{AtomicU32, Ordering},
};

const ADD: &str = "INSERT INTO gateway_counter (run, name, value) VALUES ('', $2, $1)
    ON CONFLICT (run, name) DO UPDATE SET value = gateway_counter.value + $1";

fn count(
    store: &Postgres,
    name: &str,
    by: i64,
) -> BoxFuture<'static, Result<(), paraph_graph::Error>> {
    let counted = name.to_owned();
    store.write(name, move |tx| {
        let name = counted.clone();
        Box::pin(async move {
            one(tx, Statement::new(ADD, [by.into(), name.into()])).await?;
            if by < 0 {
                return Err(paraph_graph::Error::NoTarget("negative".into()).into());
            }
            Ok(())
        })
    })
}

async fn counted(store: &Postgres, name: &str) -> i64 {
    let name = name.to_owned();
    let read = store.read(move |tx| {
        let name = name.clone();
        Box::pin(async move {
            let select = "SELECT value FROM gateway_counter WHERE name = $1";
            let row = one(tx, Statement::new(select, [name.into()]))
                .await?
                .first();
            Ok(row.map_or(0, |row| row.int(0).unwrap()))
        })
    });
    read.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_that_is_refused_is_undone_and_the_others_of_its_transaction_stay() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default())
        .await
        .unwrap();
    let all: Vec<_> = (0..500)
        .map(|n| {
            (
                n,
                count(
                    &store,
                    &format!("c{}", n % 7),
                    if n % 10 == 3 { -1 } else { 1 },
                ),
            )
        })
        .collect();
    for (n, done) in all {
        assert_eq!(done.await.is_err(), n % 10 == 3, "{n}");
    }
    let mut sum = 0;
    for name in 0..7 {
        sum += counted(&store, &format!("c{name}")).await;
    }
    assert_eq!(sum, 450);
    let marks: i64 = cluster
        .sql("postgres", "SELECT sum(n) FROM mark")
        .parse()
        .unwrap();
    assert!(marks < 250, "500 works made {marks} transactions");
    // A statement that the server refuses is like a work that is refused.
    let wrong = store.write("c0", |tx| {
        Box::pin(async move {
            one(tx, Statement::new(ADD, [1_i64.into(), "c0".into()])).await?;
            one(
                tx,
                Statement::new("INSERT INTO store (one, epoch) VALUES (7, 0)", []),
            )
            .await?;
            Ok(())
        })
    });
    let before = counted(&store, "c0").await;
    let (wrong, right) = tokio::join!(wrong, count(&store, "c0", 1));
    assert!(wrong.unwrap_err().to_string().contains("23514"));
    right.unwrap();
    assert_eq!(counted(&store, "c0").await, before + 1);
    // So is one that panics.
    let odd = store.write("c0", |tx| {
        Box::pin(async move {
            one(tx, Statement::new(ADD, [1_i64.into(), "c0".into()])).await?;
            panic!("a mistake")
        })
    });
    let odd: Result<(), _> = odd.await;
    assert!(odd.unwrap_err().to_string().contains("panicked"));
    assert_eq!(counted(&store, "c0").await, before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_and_numbers_come_back_as_they_were() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default())
        .await
        .unwrap();
    let names = [
        "",
        "a\0b",
        "\u{1}",
        "\u{1}0",
        "日本\u{10ffff}",
        "a\\0",
        "'; DROP TABLE run; --",
    ];
    for name in names {
        count(&store, name, i64::MAX).await.unwrap();
        assert_eq!(counted(&store, name).await, i64::MAX);
    }
    let sum = store.read(|tx| {
        Box::pin(async move {
            let mut answers = tx
                .all(vec![
                    Statement::new(
                        "SELECT sum(value) FROM gateway_counter WHERE name = $1",
                        ["".into()],
                    ),
                    Statement::new(
                        "SELECT count(*), $1 + 1, $2, NULL, 1 = 1 FROM gateway_counter",
                        [(1_i64 << 40).into(), "x".into()],
                    ),
                    Statement::new("SELECT n FROM mark WHERE n = $1", [crate::sql::Cell::Null]),
                ])
                .await?
                .into_iter();
            let sum = answers.next().unwrap().first().unwrap().int(0).unwrap();
            assert_eq!(
                answers.next().unwrap().first().unwrap().0,
                [
                    7_i64.into(),
                    ((1_i64 << 40) + 1).into(),
                    "x".into(),
                    crate::sql::Cell::Null,
                    1_i64.into()
                ]
            );
            assert_eq!(answers.next().unwrap().rows.len(), 0);
            Ok(sum)
        })
    });
    assert_eq!(sum.await.unwrap(), i64::MAX);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_sees_one_moment_and_cannot_write() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Arc::new(
        Postgres::connect(&cluster.url(), Options::default())
            .await
            .unwrap(),
    );
    count(&store, "a", 1).await.unwrap();
    let (inside, outside) = (tokio::sync::Barrier::new(2), tokio::sync::Barrier::new(2));
    let gates = Arc::new((inside, outside));
    let read = store.read({
        let gates = gates.clone();
        move |tx| {
            let gates = gates.clone();
            Box::pin(async move {
                let select =
                    || Statement::new("SELECT value FROM gateway_counter WHERE name = 'a'", []);
                let first = one(tx, select()).await?.first().unwrap().int(0).unwrap();
                gates.0.wait().await;
                gates.1.wait().await;
                Ok((
                    first,
                    one(tx, select()).await?.first().unwrap().int(0).unwrap(),
                ))
            })
        }
    });
    let write = async {
        gates.0.wait().await;
        count(&store, "a", 1).await.unwrap();
        gates.1.wait().await;
    };
    let (read, ()) = tokio::join!(read, write);
    assert_eq!(read.unwrap(), (1, 1));
    assert_eq!(counted(&store, "a").await, 2);
    let wrote = store.read(|tx| {
        Box::pin(async move {
            Ok(one(tx, Statement::new(ADD, [1_i64.into(), "a".into()]))
                .await?
                .written)
        })
    });
    assert!(wrote.await.is_err());
    assert_eq!(counted(&store, "a").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_write_is_lost_or_done_twice_while_connections_are_cut_at_any_moment() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Arc::new(
        Postgres::connect(&cluster.url(), Options::default())
            .await
            .unwrap(),
    );
    let cutting = std::sync::atomic::AtomicBool::new(true);
    let mut writes = Vec::new();
    for lane in 0..8 {
        let store = store.clone();
        writes.push(tokio::spawn(async move {
            for _ in 0..150 {
                count(&store, &format!("c{lane}"), 1).await.unwrap();
            }
        }));
    }
    let (cluster, cutting) = (&cluster, &cutting);
    std::thread::scope(|scope| {
        let cutter = scope.spawn(|| {
            let mut cut = 0;
            while cutting.load(std::sync::atomic::Ordering::Relaxed) {
                let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'paraph'";
                cut += cluster.sql("postgres", all).parse::<u32>().unwrap();
            }
            cut
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                for write in writes {
                    write.await.unwrap();
                }
            });
        });
        cutting.store(false, std::sync::atomic::Ordering::Relaxed);
        assert!(cutter.join().unwrap() > 10);
    });
    for lane in 0..8 {
        assert_eq!(counted(&store, &format!("c{lane}")).await, 150);
    }
}

/// Stands between a client and the server at this port, and cuts connections at commits: of three, one is cut before the server has it,
/// one when the server has answered and the client does not hear of it. Says its own port.
fn cutting_proxy(server: u16, cut: Arc<AtomicU32>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let commits = Arc::new(AtomicU32::new(0));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(mut client), Ok(mut server)) =
                (client, TcpStream::connect(("127.0.0.1", server)))
            else {
                continue;
            };
            let (mut answers, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut answers, &mut to));
            let (commits, cut) = (commits.clone(), cut.clone());
            std::thread::spawn(move || {
                let mut bytes = [0; 65536];
                while let Ok(n @ 1..) = client.read(&mut bytes) {
                    let commit = bytes[..n].windows(7).any(|w| w == b"COMMIT\0");
                    let which = match commit {
                        true => commits.fetch_add(1, Ordering::Relaxed) % 3,
                        false => 2,
                    };
                    if which == 1 {
                        // From here on nothing reaches the client.
                        client.shutdown(Shutdown::Write).unwrap();
                    }
                    if which == 0 || server.write_all(&bytes[..n]).is_err() || which == 1 {
                        cut.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                }
                let _ = client.shutdown(Shutdown::Both);
                // The server reads to the end what it was sent.
                let _ = server.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_neither_lost_nor_repeated() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let cut = Arc::new(AtomicU32::new(0));
    let port = cutting_proxy(cluster.port(), cut.clone());
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    // The proxy would also cut what makes the tables.
    drop(
        Postgres::connect(&cluster.url(), Options::default())
            .await
            .unwrap(),
    );
    let store = Arc::new(loop {
        if let Ok(store) = Postgres::connect(&url, Options::default()).await {
            break store;
        }
    });
    let writes = (0..8).map(|lane| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..8 {
                count(&store, &format!("c{lane}"), 1).await.unwrap();
            }
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    for lane in 0..8 {
        assert_eq!(counted(&store, &format!("c{lane}")).await, 8);
    }
    assert!(cut.load(Ordering::Relaxed) > 20, "{cut:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_gone_when_its_store_is_and_not_when_its_connection_was_cut() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let options = || Options {
        lease: Duration::from_millis(1),
        ..Options::default()
    };
    let one = Postgres::connect(&cluster.url(), options()).await.unwrap();
    let two = Postgres::connect(&cluster.url(), options()).await.unwrap();
    let owner = two.db.owner();
    assert_ne!(owner, one.db.owner());
    assert!(!one.db.is_gone(&owner).await);
    assert!(!one.db.is_gone(&one.db.owner()).await);
    let locks = "FROM pg_locks WHERE locktype = 'advisory'";
    let both_are_back = async || {
        while cluster.sql("postgres", &format!("SELECT count(*) {locks}")) != "2" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    cluster.sql(
        "postgres",
        &format!("SELECT pg_terminate_backend(pid) {locks}"),
    );
    both_are_back().await;
    assert!(!one.db.is_gone(&owner).await);
    cluster.restart(Stop::Abrupt, Duration::ZERO);
    both_are_back().await;
    assert!(!one.db.is_gone(&owner).await);
    drop(two);
    while !one.db.is_gone(&owner).await {}
    assert!(one.db.is_gone("nobody").await);
    // A server that is up for less than a lease has not heard of everybody.
    let three = Options {
        lease: Duration::from_secs(3600),
        ..Options::default()
    };
    let three = Postgres::connect(&cluster.url(), three).await.unwrap();
    assert!(!three.db.is_gone("nobody").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_is_the_servers() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default())
        .await
        .unwrap();
    let select = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let before: u64 = cluster.sql("postgres", select).parse().unwrap();
    let asked = [store.now_ms().await.unwrap(), store.now_ms().await.unwrap()];
    let after: u64 = cluster.sql("postgres", select).parse().unwrap();
    assert!(
        before <= asked[0] && asked[0] <= asked[1] && asked[1] <= after + 5,
        "{before} {asked:?} {after}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_open_an_empty_database_at_the_same_time() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let url = cluster.database("fresh");
    let few = || Options {
        connections: 2,
        ..Options::default()
    };
    let opened = futures::future::join_all((0..10).map(|_| Postgres::connect(&url, few()))).await;
    for (n, store) in opened.iter().enumerate() {
        count(store.as_ref().map_err(ToString::to_string).unwrap(), "a", 1)
            .await
            .unwrap();
        assert_eq!(
            counted(opened[0].as_ref().unwrap(), "a").await,
            n as i64 + 1
        );
    }
}

/// Tables with their columns, read from statements as they are written in this crate.
fn tables(sql: &str) -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut open = None;
    for line in sql.lines() {
        if let Some(name) = line.strip_prefix("CREATE TABLE ") {
            open = name.split(' ').next().map(str::to_owned);
        } else if line.starts_with(')') {
            open = None;
        } else if let (Some(table), Some(column)) = (&open, line.trim().split(' ').next())
            && column.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        {
            tables
                .entry(table.clone())
                .or_default()
                .push(column.to_owned());
        }
    }
    tables
}

#[test]
fn both_databases_have_the_same_tables_and_columns() {
    let mut postgres = tables(include_str!("v1.sql"));
    let own = ["mark", "paraph_format"].map(|table| postgres.remove(table).is_some());
    assert_eq!(own, [true, true]);
    let sqlite = tables(include_str!("../sqlite/v1.sql"));
    assert_eq!(postgres, sqlite);
    assert!(sqlite.len() >= 12, "{sqlite:?}");
}
