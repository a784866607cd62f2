//! What becomes of works that share a transaction when one of them fails, wherever and however it does.

use super::{cluster::Cluster, *};
use std::sync::atomic::AtomicUsize;
use tokio::sync::Notify;

async fn narrow(cluster: &Cluster) -> Postgres {
    // One lane, so that what is queued while it is held up becomes one transaction.
    let options = Options {
        connections: 1,
        ..Options::default()
    };
    Postgres::connect(&cluster.url(), options).await.unwrap()
}

/// Holds up the lane until it is told to go on.
async fn hold(store: &Postgres) -> Arc<Notify> {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gates = (entered.clone(), go.clone());
    let held = store.write("hold", move |tx| {
        let (entered, go) = gates.clone();
        Box::pin(async move {
            one(tx, Statement::new("SELECT 1", [])).await?;
            entered.notify_one();
            go.notified().await;
            Ok(())
        })
    });
    drop(held);
    entered.notified().await;
    go
}

/// How a work fails, and with which words.
const FAULTS: [(&str, &str); 3] = [
    // The server refuses to do it.
    ("INSERT INTO store (one, epoch) VALUES (7, 0)", "23514"),
    // The server does not even prepare it.
    ("SELECT x FROM nowhere", "42P01"),
    // It is not even sent.
    (
        "INSERT INTO gateway_counter (run, name, value) VALUES ('', 'odd', $1)",
        "a text where the server expects",
    ),
];

/// What a work does: raises its counter, and fails if it is to.
#[derive(Clone)]
struct Deed {
    name: String,
    fault: Option<&'static str>,
    /// Whether it waits for the answers.
    waits: bool,
    /// How often it was done.
    tries: Arc<AtomicUsize>,
}

fn does(store: &Postgres, deed: Deed) -> BoxFuture<'static, Result<(), paraph_graph::Error>> {
    store.write(&deed.name.clone(), move |tx| {
        let deed = deed.clone();
        Box::pin(async move {
            deed.tries.fetch_add(1, Ordering::Relaxed);
            let add = Statement::new(ADD, [1_i64.into(), deed.name.into()]);
            let fails = deed.fault.map(|sql| {
                let odd = sql.contains("$1").then(|| "odd".into());
                Statement::new(sql, odd.into_iter().collect::<Vec<_>>())
            });
            let statements = [Some(add), fails].into_iter().flatten().collect();
            match deed.waits {
                true => tx.all(statements).await.map(drop)?,
                false => tx.later(statements).await?,
            }
            Ok(())
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_work_that_fails_takes_nothing_of_the_others_however_late_that_is_seen() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = narrow(&cluster).await;
    let mut round = 0;
    for (sql, words) in FAULTS {
        for waits in [true, false] {
            for (works, bad) in [(1, 0), (5, 0), (5, 2), (5, 4)] {
                round += 1;
                let what = format!("{sql}, waits: {waits}, {bad} of {works}");
                let deeds: Vec<Deed> = (0..works)
                    .map(|n| Deed {
                        name: format!("round {round} work {n}"),
                        fault: (n == bad).then_some(sql),
                        waits: waits || n % 2 == 0 && n != bad,
                        tries: Arc::default(),
                    })
                    .collect();
                let go = hold(&store).await;
                let all: Vec<_> = deeds.iter().map(|d| does(&store, d.clone())).collect();
                go.notify_one();
                for (n, done) in all.into_iter().enumerate() {
                    match done.await {
                        Ok(()) => assert_ne!(n, bad, "{what}"),
                        Err(e) => {
                            assert_eq!(n, bad, "{what}: {e}");
                            assert!(e.to_string().contains(words), "{what}: {e}");
                        }
                    }
                    let name = format!("round {round} work {n}");
                    assert_eq!(counted(&store, &name).await, i64::from(n != bad), "{what}");
                }
                // They shared a transaction, so that there was something to be parted.
                let most = deeds.iter().map(|d| d.tries.load(Ordering::Relaxed)).max();
                assert!(waits || works == 1 || most == Some(2), "{what}: {most:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_statements_than_are_sent_at_a_time_are_all_done_or_none_of_them() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = narrow(&cluster).await;
    let many = |name: &'static str, bad: Option<usize>| {
        store.write(name, move |tx| {
            Box::pin(async move {
                let add = |n: usize| match bad == Some(n) {
                    true => Statement::new(FAULTS[0].0, []),
                    false => Statement::new(ADD, [1_i64.into(), name.into()]),
                };
                tx.later((0..1500).map(add).collect()).await?;
                Ok(one(tx, Statement::new("SELECT 1", [])).await?.rows.len())
            })
        })
    };
    assert_eq!(many("good", None).await.unwrap(), 1);
    assert_eq!(counted(&store, "good").await, 1500);
    for bad in [0, 700, 1499] {
        let said = many("bad", Some(bad)).await.unwrap_err().to_string();
        assert!(said.contains("23514"), "{bad}: {said}");
        assert_eq!(counted(&store, "bad").await, 0, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_refused_work_had_handed_over_is_not_done() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = narrow(&cluster).await;
    let refused = |name: &'static str| {
        store.write::<(), _>(name, move |tx| {
            Box::pin(async move {
                let add = Statement::new(ADD, [1_i64.into(), name.into()]);
                tx.later(vec![add]).await?;
                Err(paraph_graph::Error::NoTarget("refused".into()).into())
            })
        })
    };
    assert!(refused("alone").await.is_err());
    let go = hold(&store).await;
    let all = [
        refused("first"),
        count(&store, "between", 1),
        refused("last"),
    ];
    go.notify_one();
    let ended = futures::future::join_all(all).await;
    let well: Vec<bool> = ended.iter().map(Result::is_ok).collect();
    assert_eq!(well, [false, true, false]);
    for (name, times) in [("alone", 0), ("first", 0), ("between", 1), ("last", 0)] {
        assert_eq!(counted(&store, name).await, times, "{name}");
    }
}
