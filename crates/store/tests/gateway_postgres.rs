//! What the gateway keeps, in Postgres: the rules of every store, and what only this database has.
#![cfg(feature = "postgres")]
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;
mod deeds;

use cluster::Cluster;
use deeds::{action, audited, change, run};
use paraph_gateway::{Change, Find, State, Store, StoreError, conformance};
use paraph_graph::{Error, Threads};
use paraph_store::{Options, Postgres, Verify};
use std::sync::Arc;

async fn open(url: &str, key: Option<&str>) -> Arc<Postgres> {
    let options = Options {
        key: key.map(|digit| digit.repeat(64).parse().unwrap()),
        ..Options::default()
    };
    Arc::new(Postgres::connect(url, options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_keeps_all_rules() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store: Arc<dyn Store> = open(&cluster.url(), None).await;
    for rule in conformance::RULES {
        assert_eq!(rule.check(std::slice::from_ref(&store)).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_keep_all_rules_together_also_with_a_key() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..3 {
        stores.push(open(&cluster.url(), Some("a")).await);
    }
    for rule in conformance::RULES {
        assert_eq!(rule.check(&stores).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_transactions_see_one_moment_only_makes_no_difference() {
    let Some(cluster) =
        Cluster::with(&["fsync=off", "default_transaction_isolation=repeatable read"])
    else {
        return;
    };
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        stores.push(open(&cluster.url(), None).await);
    }
    let races = conformance::RULES.iter().filter(|rule| {
        let races = [
            "of 32 who",
            "a counter with a most",
            "of many who",
            "16 who write",
        ];
        races.iter().any(|start| rule.name.starts_with(start))
    });
    let mut count = 0;
    for rule in races {
        assert_eq!(rule.check(&stores).await, Ok(()));
        count += 1;
    }
    assert_eq!(count, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_takes_nothing_but_the_next_entry_and_details_can_only_be_erased() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = open(&cluster.url(), None).await;
    store.commit(audited(3)).await.unwrap();
    for statement in [
        "UPDATE gateway_audit SET event = '{}' WHERE seq = 2",
        "DELETE FROM gateway_audit WHERE seq = 3",
        "TRUNCATE gateway_audit CASCADE",
        "SET session_replication_role = replica; DELETE FROM gateway_audit",
    ] {
        let said = cluster.refusal("postgres", statement);
        assert!(
            said.contains("the table gateway_audit is append-only"),
            "{statement}: {said}"
        );
    }
    for statement in [
        "UPDATE gateway_audit_detail SET value = '{}'",
        "TRUNCATE gateway_audit_detail",
    ] {
        let said = cluster.refusal("postgres", statement);
        assert!(
            said.contains("the table gateway_audit_detail is append-only"),
            "{statement}: {said}"
        );
    }
    let again = "INSERT INTO gateway_audit VALUES ('acme', 2, '', '', '{}')";
    assert!(cluster.refusal("postgres", again).contains("duplicate key"));
    let before = store.audit("acme", 0, 9).await.unwrap();
    assert!(before.iter().all(|entry| entry.detail.is_some()));
    cluster.sql("postgres", "DELETE FROM gateway_audit_detail WHERE seq = 2");
    let after = store.audit("acme", 0, 9).await.unwrap();
    let left: Vec<bool> = after.iter().map(|entry| entry.detail.is_some()).collect();
    assert_eq!(left, [true, false, true]);
    assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_is_an_error_that_names_it() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = open(&cluster.url(), None).await;
    let row = action("t", 1, State::Pending);
    store
        .commit(change(std::slice::from_ref(&row)))
        .await
        .unwrap();
    for damage in [
        "UPDATE gateway_action SET state = 'approved'",
        "UPDATE gateway_action SET value = replace(value, 'Pay', 'Pey')",
        "UPDATE gateway_action SET sum = sum + 1",
    ] {
        cluster.sql(
            "postgres",
            &format!("CREATE TABLE kept AS SELECT * FROM gateway_action; {damage}"),
        );
        let found = store.actions(Find::Id(row.id())).await;
        let Err(StoreError::Broken(why)) = found else {
            panic!("{damage}: {found:?}")
        };
        let place = format!(
            "the row {} of tenant `acme` in table gateway_action",
            row.id()
        );
        assert!(why.contains(&place), "{damage}: {why}");
        assert_eq!(store.problems().await.unwrap().len(), 1, "{damage}");
        let back = "TRUNCATE gateway_action; INSERT INTO gateway_action SELECT * FROM kept; DROP TABLE kept";
        cluster.sql("postgres", back);
    }
    let found = store.actions(Find::Id(row.id())).await;
    assert_eq!(found, Ok(vec![row]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_stays_while_an_action_of_it_is_open() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = open(&cluster.url(), None).await;
    deeds::stays_while_open(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_format_1_is_brought_up_to_date_with_what_is_in_it() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let store = open(&cluster.url(), None).await;
    let call = deeds::call(&run("t", "1"));
    let record = Change {
        calls: vec![call.clone()],
        ..Change::default()
    };
    store.commit(record).await.unwrap();
    drop(store);
    cluster.sql(
        "postgres",
        "DROP TABLE gateway_audit_detail, gateway_audit, gateway_action, gateway_wake, gateway_kill; \
         DROP FUNCTION gateway_audit_stays(); \
         DROP TABLE corpus, corpus_document, corpus_vectors, corpus_cursor, corpus_floors; UPDATE paraph_format SET version = 1",
    );
    let store = open(&cluster.url(), None).await;
    let format = cluster.sql("postgres", "SELECT version FROM paraph_format");
    assert_eq!(format, "3");
    assert_eq!(store.calls(&run("t", "1")).await, Ok(vec![call]));
    let row = action("t", 1, State::Pending);
    store
        .commit(change(std::slice::from_ref(&row)))
        .await
        .unwrap();
    assert_eq!(store.actions(Find::Id(row.id())).await, Ok(vec![row]));
    assert!(matches!(
        store.delete("t").await,
        Err(Error::StillNeeded { .. })
    ));
}
