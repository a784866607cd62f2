//! What must not be late is not, whatever else the store does; and what was queued is written before it closes.

use super::{cluster::Cluster, *};
use paraph_graph::{CancelReason, Checkpoints, Claim, RunId, RunStart, Threads};

fn claim(run: RunId) -> Claim {
    Claim {
        run,
        start: Some(RunStart::default()),
    }
}

/// A write that takes its connection and its lane for this long.
fn busy(store: &Postgres, seconds: i64) -> BoxFuture<'static, Result<(), paraph_graph::Error>> {
    store.write("busy", move |tx| {
        Box::pin(async move {
            let sleep = Statement::new("SELECT pg_sleep($1)::text", [seconds.into()]);
            one(tx, sleep).await?;
            Ok(())
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_kept_and_a_wish_is_heard_while_every_lane_and_connection_is_taken() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let options = || Options {
        connections: 1,
        lease: Duration::from_secs(2),
        ..Options::default()
    };
    let store = Postgres::connect(&cluster.url(), options()).await.unwrap();
    let other = Postgres::connect(&cluster.url(), options()).await.unwrap();
    let run = RunId::fresh();
    let mut held = store.lease("t", claim(run)).await.unwrap();
    let busy = tokio::spawn(busy(&store, 6));
    // Until the server has it.
    let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while cluster.sql("postgres", asleep) == "0" {}
    // Two leases later it is still ours: nobody else gets it, and we were not told that it is lost.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(!busy.is_finished());
    let left = "SELECT expires_ms > extract(epoch FROM now()) * 1000 FROM thread";
    assert_eq!(cluster.sql("postgres", left), "t");
    let wish = held.wish.as_mut().unwrap();
    assert_eq!(*wish.borrow(), None);
    other.cancel(run, CancelReason::User).await.unwrap();
    let heard = *wish.wait_for(Option::is_some).await.unwrap();
    assert_eq!(heard, Some(CancelReason::User));
    assert!(!busy.is_finished());
    busy.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_whose_row_is_locked_by_others_keeps_no_other_lease_from_being_renewed() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let options = Options {
        lease: Duration::from_secs(3),
        ..Options::default()
    };
    let store = Postgres::connect(&cluster.url(), options).await.unwrap();
    let locked = store.lease("locked", claim(RunId::fresh())).await.unwrap();
    let free = store.lease("free", claim(RunId::fresh())).await.unwrap();
    // Another program has the row for longer than the lease lasts.
    let lock =
        "BEGIN; SELECT 1 FROM thread WHERE name = 'locked' FOR UPDATE; SELECT pg_sleep(5)::text";
    tokio::task::block_in_place(|| cluster.sql("postgres", lock));
    let lost = |lease: &paraph_graph::Lease| *lease.wish.as_ref().unwrap().borrow();
    assert_eq!(lost(&free), None);
    assert_eq!(lost(&locked), Some(CancelReason::LeaseLost));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_queued_is_written_before_a_store_is_closed() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let one = Options {
        connections: 1,
        ..Options::default()
    };
    let store = Postgres::connect(&cluster.url(), one).await.unwrap();
    let held = store.lease("t", claim(RunId::fresh())).await.unwrap();
    for n in 0..200 {
        drop(count(&store, &format!("c{}", n % 5), 1));
    }
    drop(held);
    tokio::task::block_in_place(|| drop(store));
    let sum = "SELECT sum(value) FROM gateway_counter";
    assert_eq!(cluster.sql("postgres", sum), "200");
    let holder = "SELECT holder IS NULL, owner IS NULL FROM thread";
    assert_eq!(cluster.sql("postgres", holder), "t|t");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_does_not_wait_long_for_a_server_that_is_away() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = Postgres::connect(&cluster.url(), Options::default())
        .await
        .unwrap();
    cluster.stop(Stop::Abrupt);
    drop(count(&store, "a", 1));
    let began = std::time::Instant::now();
    tokio::task::block_in_place(|| drop(store));
    let took = began.elapsed();
    assert!(took >= CLOSING && took < CLOSING * 5, "{took:?}");
}
