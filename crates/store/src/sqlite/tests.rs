//! The database itself: what shares a transaction, what is refused, and what is heard of it.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use super::*;
use crate::sql::{Statement, one};

async fn store() -> (tempfile::TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("a/b.db"), Options::default());
    let store = store.await.unwrap();
    (folder, store)
}

fn count(
    store: &Sqlite,
    name: &'static str,
    by: i64,
) -> BoxFuture<'static, Result<(), paraph_graph::Error>> {
    store.write("", move |tx| {
        Box::pin(async move {
            let add = "INSERT INTO gateway_counter (run, name, value) VALUES ('', $2, $1)
                       ON CONFLICT (run, name) DO UPDATE SET value = value + $1";
            one(tx, Statement::new(add, [by.into(), name.into()])).await?;
            if by < 0 {
                return Err(paraph_graph::Error::NoTarget("negative".into()).into());
            }
            Ok(())
        })
    })
}

async fn counted(store: &Sqlite, name: &'static str) -> i64 {
    let read = store.read(move |tx| {
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

#[tokio::test]
async fn what_is_queued_together_shares_commits_and_a_refused_work_takes_nothing_with_it() {
    let (_folder, store) = store().await;
    let before = store.db.writer.commits();
    let works: Vec<_> = (0..100)
        .map(|i| count(&store, "n", if i % 10 == 0 { -1 } else { 1 }))
        .collect();
    let done = futures::future::join_all(works).await;
    assert_eq!(done.iter().filter(|d| d.is_err()).count(), 10);
    assert_eq!(counted(&store, "n").await, 90);
    let commits = store.db.writer.commits() - before;
    assert!(commits < 50, "{commits} commits for 100 works");
}
