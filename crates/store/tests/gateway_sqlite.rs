//! What the gateway keeps, in SQLite: the rules of every store, and what only this database has.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod deeds;

use deeds::{action, audited, call, change, kill, run, wake};
use paraph_gateway::{
    ActionRow, Approvals, Change, Event, EventKind, Find, State, Store, StoreError, conformance,
};
use paraph_graph::{Checkpoints, Claim, RunEnd, RunId, RunStart, RunStatus, Threads};
use paraph_store::{Options, Sqlite, Verify};
use rusqlite::Connection;
use std::{path::Path, sync::Arc};

async fn open(path: &Path, key: Option<&str>) -> Arc<Sqlite> {
    let options = Options {
        key: key.map(|digit| digit.repeat(64).parse().unwrap()),
        ..Options::default()
    };
    Arc::new(Sqlite::open(path, options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_keeps_all_rules() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = open(&folder.path().join("a.db"), None).await;
    for rule in conformance::RULES {
        assert_eq!(rule.check(std::slice::from_ref(&store)).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_keep_all_rules_together_also_with_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        stores.push(open(&path, Some("a")).await);
    }
    for rule in conformance::RULES {
        assert_eq!(rule.check(&stores).await, Ok(()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_kept_is_there_when_the_file_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    for key in [None, Some("b")] {
        let path = folder.path().join(format!("{key:?}.db"));
        let row = action("t", 1, State::Unknown);
        let store = open(&path, key).await;
        assert!(store.is_lasting());
        let everything = Change {
            calls: vec![call(&run("t", "1"))],
            wake: vec![wake(&row)],
            kill: vec![kill("writes")],
            ..audited(2)
        };
        let everything = Change {
            actions: vec![row.clone()],
            ..everything
        };
        store.commit(everything).await.unwrap();
        let chain = store.audit("acme", 0, 9).await.unwrap();
        drop(store);
        let store = open(&path, key).await;
        assert_eq!(
            store.actions(Find::Id(row.id())).await,
            Ok(vec![row.clone()])
        );
        assert_eq!(store.wakes(9).await, Ok(vec![wake(&row)]));
        assert_eq!(store.kills().await, Ok(vec![kill("writes")]));
        assert_eq!(store.audit("acme", 0, 9).await, Ok(chain));
        assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
        drop(store);
        let secrets = [&b"Pay 1 cents"[..], b"something is wrong", b"\"ann\""];
        let bytes = std::fs::read(&path).unwrap();
        for secret in secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret);
            assert_eq!(found, key.is_none(), "{}", String::from_utf8_lossy(secret));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn records_go_with_their_thread_and_with_their_run() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"), None).await;
    let mut rows = Vec::new();
    for thread in ["th\"re,ad", "th\"re", "th\"re,ad2"] {
        for _ in 0..2 {
            let id = RunId::fresh();
            let start = Some(RunStart::default());
            let claim = Claim { run: id, start };
            let lease = store.lease(thread, claim).await.unwrap();
            let end = RunEnd {
                run: id,
                epoch: lease.epoch,
                status: RunStatus::Success,
                error: None,
                standing: None,
                events: Vec::new(),
            };
            store.finish(thread, end).await.unwrap();
            let record = call(&run(thread, &id.to_string()));
            let change = Change {
                calls: vec![record.clone()],
                ..Change::default()
            };
            store.commit(change).await.unwrap();
            rows.push((id, record));
        }
    }
    let left = async || {
        let mut left = Vec::new();
        for (i, (_, record)) in rows.iter().enumerate() {
            if !store.calls(&record.run).await.unwrap().is_empty() {
                left.push(i);
            }
        }
        left
    };
    assert_eq!(left().await, [0, 1, 2, 3, 4, 5]);
    store.delete_runs(&[rows[3].0]).await.unwrap();
    assert_eq!(left().await, [0, 1, 2, 4, 5]);
    assert!(Threads::delete(&*store, "th\"re,ad").await.unwrap());
    assert_eq!(left().await, [2, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_stays_while_an_action_of_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"), None).await;
    deeds::stays_while_open(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_takes_nothing_but_the_next_entry_and_details_can_only_be_erased() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path, None).await;
    store.commit(audited(3)).await.unwrap();
    let before = store.audit("acme", 0, 9).await.unwrap();
    let file = Connection::open(&path).unwrap();
    file.pragma_update(None, "foreign_keys", "ON").unwrap();
    let append = "the table gateway_audit is append-only";
    let next = "the table gateway_audit takes nothing but the next entry";
    let detail = "a detail of the audit can be erased and not changed";
    for (statement, words) in [
        (
            "UPDATE gateway_audit SET event = '{}' WHERE seq = 2",
            append,
        ),
        (
            "UPDATE OR REPLACE gateway_audit SET seq = 1 WHERE seq = 2",
            append,
        ),
        ("DELETE FROM gateway_audit", append),
        (
            "INSERT OR REPLACE INTO gateway_audit VALUES (NULL, 'acme', 2, '', '', '{}')",
            next,
        ),
        (
            "INSERT OR REPLACE INTO gateway_audit VALUES (2, 'acme', 4, '', '', '{}')",
            next,
        ),
        (
            "INSERT INTO gateway_audit VALUES (NULL, 'acme', 5, '', '', '{}')",
            next,
        ),
        (
            "INSERT INTO gateway_audit VALUES (NULL, 'other', 2, '', '', '{}')",
            next,
        ),
        (
            "INSERT INTO gateway_audit VALUES (NULL, 'other', NULL, '', '', '{}')",
            next,
        ),
        ("UPDATE gateway_audit_detail SET value = '{}'", detail),
        (
            "REPLACE INTO gateway_audit_detail VALUES (NULL, 'acme', 2, '{}', NULL, 0)",
            detail,
        ),
        (
            "REPLACE INTO gateway_audit_detail VALUES (2, 'acme', 9, '{}', NULL, 0)",
            detail,
        ),
        (
            "INSERT INTO gateway_audit_detail VALUES (NULL, 'acme', 9, '{}', NULL, 0)",
            "FOREIGN KEY constraint failed",
        ),
    ] {
        let said = file.execute(statement, []).unwrap_err().to_string();
        assert!(said.contains(words), "{statement}: {said}");
    }
    assert_eq!(store.audit("acme", 0, 9).await, Ok(before));
    let erase = "DELETE FROM gateway_audit_detail WHERE seq = 2";
    assert_eq!(file.execute(erase, []), Ok(1));
    let after = store.audit("acme", 0, 9).await.unwrap();
    let left: Vec<bool> = after.iter().map(|entry| entry.detail.is_some()).collect();
    assert_eq!(left, [true, false, true]);
    assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
}

/// What the store says of what it keeps, after this was done to the file behind its back.
async fn after(damage: &str, key: Option<&str>) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = open(&path, key).await;
    let rows = [
        action("t", 1, State::Pending),
        action("t", 2, State::Pending),
    ];
    let everything = Change {
        calls: vec![call(&run("t", "1"))],
        wake: vec![wake(&rows[0])],
        kill: vec![kill("writes"), kill("tool:x")],
        actions: rows.to_vec(),
        ..audited(3)
    };
    store.commit(everything).await.unwrap();
    assert_eq!(store.problems().await.unwrap(), Vec::<String>::new());
    let file = Connection::open(&path).unwrap();
    file.execute_batch(damage).unwrap();
    let mut errors = Vec::new();
    let mut note = |read: Option<StoreError>| match read {
        Some(StoreError::Broken(why)) => errors.push(why),
        Some(other) => panic!("{other:?}"),
        None => {}
    };
    for row in &rows {
        note(store.actions(Find::Id(row.id())).await.err());
    }
    note(store.wakes(9).await.err());
    note(store.kills().await.err());
    note(store.audit("acme", 0, 9).await.err());
    note(store.calls(&run("t", "1")).await.err());
    (errors, store.problems().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_is_an_error_that_names_its_table_tenant_and_row() {
    let first =
        "the row 01900000-0000-7000-8000-000000000001 of tenant `acme` in table gateway_action";
    let of_first = "WHERE id LIKE '%01'";
    let flip = |table: &str| {
        format!(
            "UPDATE {table} SET value_packed = CAST(substr(value_packed, 1, 40) || x'00' || \
             substr(value_packed, 42) AS BLOB)"
        )
    };
    let table = [
        (format!("UPDATE gateway_action SET value = replace(value, 'Pay', 'Pey') {of_first}"), first),
        (format!("UPDATE gateway_action SET state = 'approved' {of_first}"), first),
        (format!("UPDATE gateway_action SET version = 2 {of_first}"), first),
        (format!("UPDATE gateway_action SET expires_ms = 9999999999999 {of_first}"), first),
        (format!("UPDATE gateway_action SET thread = 'u' {of_first}"), first),
        (
            "UPDATE gateway_action SET value = (SELECT value FROM gateway_action WHERE id LIKE '%02'), \
             sum = (SELECT sum FROM gateway_action WHERE id LIKE '%02') WHERE id LIKE '%01'"
                .to_owned(),
            first,
        ),
        (
            "UPDATE gateway_wake SET due_ms = 6".to_owned(),
            "the row [\"t\",\"1\",\"acme\",\"support\"] `k` in table gateway_wake",
        ),
        (
            "UPDATE gateway_kill SET scope = 'agent:x' WHERE scope = 'writes'".to_owned(),
            "the row `agent:x` in table gateway_kill",
        ),
        (
            "UPDATE gateway_kill SET value = NULL WHERE scope = 'writes'".to_owned(),
            "the row `writes` in table gateway_kill",
        ),
        (
            "UPDATE gateway_call SET value = replace(value, 'tool', 'look')".to_owned(),
            "a record of run [\"t\",\"1\",\"acme\",\"support\"] (table gateway_call)",
        ),
        (
            "DROP TRIGGER gateway_audit_detail_update; \
             UPDATE gateway_audit_detail SET value = replace(value, 'ann', 'eve') WHERE seq = 2"
                .to_owned(),
            "the row 2 of tenant `acme` in table gateway_audit_detail",
        ),
    ];
    for (damage, place) in table {
        let (errors, problems) = after(&damage, None).await;
        assert_eq!(
            (errors.len(), problems.len()),
            (1, 1),
            "{damage}: {errors:?} {problems:?}"
        );
        assert!(errors[0].contains(place), "{damage}: {errors:?}");
        assert!(problems[0].contains(place), "{damage}: {problems:?}");
    }
    for table in ["gateway_action", "gateway_kill", "gateway_call"] {
        let damage = flip(table);
        let (errors, problems) = after(&damage, Some("c")).await;
        assert!(!errors.is_empty() && !problems.is_empty(), "{damage}");
        let named = errors
            .iter()
            .chain(&problems)
            .all(|why| why.contains(table) || why.contains("gateway call"));
        assert!(named, "{damage}: {errors:?} {problems:?}");
    }
    // With a key, also who makes the sum fit is found out: the document was encrypted for its columns.
    let (errors, _) = after("UPDATE gateway_action SET state = 'approved'", Some("c")).await;
    assert_eq!(errors.len(), 2, "{errors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_somebody_changed_is_found_by_the_check() {
    let off = "DROP TRIGGER gateway_audit_update; DROP TRIGGER gateway_audit_delete; \
               DROP TRIGGER gateway_audit_insert; PRAGMA foreign_keys = OFF; ";
    for (damage, words) in [
        (
            "UPDATE gateway_audit SET event = replace(event, 'budget', 'killed') WHERE seq = 2",
            "entry 2: it was changed: its hash is not that of its content",
        ),
        (
            "DELETE FROM gateway_audit WHERE seq = 2",
            "entry 2: it is missing; entry 3 stands in its place",
        ),
        (
            "DELETE FROM gateway_audit WHERE seq = 1",
            "entry 1: it is missing; entry 2 stands in its place",
        ),
        (
            "UPDATE gateway_audit SET prev = hash WHERE seq = 3",
            "entry 3: it does not follow the entry before it",
        ),
        (
            "UPDATE gateway_audit SET tenant = 'other' WHERE seq = 1",
            "entry 1: ",
        ),
    ] {
        let (_, problems) = after(&format!("{off}{damage}"), None).await;
        let all = problems.join("\n");
        assert!(all.contains(words), "{damage}: {problems:?}");
        assert!(all.contains("(table gateway_audit)"), "{problems:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_of_the_gateway_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("a.db"), None).await;
    let counts = store.gateway_counts().await.unwrap();
    assert_eq!(counts, paraph_store::GatewayCounts::default());
    let states = [State::Pending, State::Failed, State::Pending];
    let rows = (1..).zip(states).map(|(n, state)| action("t", n, state));
    let everything = Change {
        calls: vec![call(&run("t", "1"))],
        kill: vec![kill("writes")],
        actions: rows.collect(),
        ..audited(3)
    };
    store.commit(everything).await.unwrap();
    let counts = store.gateway_counts().await.unwrap();
    let states = [("failed".to_owned(), 1), ("pending".to_owned(), 2)];
    assert_eq!((counts.calls, counts.wakes, counts.kills), (1, 0, 1));
    assert_eq!(counts.actions, states.into());
    assert_eq!(counts.audit, [("acme".to_owned(), 3)].into());
    assert!(counts.bytes > 2000, "{}", counts.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_that_were_removed_set_back_or_never_told_of_are_found_without_an_anchor() {
    let off = "DROP TRIGGER gateway_audit_delete; PRAGMA foreign_keys = OFF;";
    let first = "action 01900000-0000-7000-8000-000000000001: ";
    for (damage, words) in [
        ("", None),
        (
            "DELETE FROM gateway_action WHERE id LIKE '%01'",
            Some("the audit tells that it is pending, and its row is gone"),
        ),
        // What is over goes with its thread, and then the records of its run go too.
        (
            "DELETE FROM gateway_action WHERE id LIKE '%02'",
            Some("the audit tells that it is rejected, and its row is gone"),
        ),
        (
            "DELETE FROM gateway_action WHERE id LIKE '%02'; DELETE FROM gateway_call",
            None,
        ),
        (
            &format!("{off} DELETE FROM gateway_audit_detail; DELETE FROM gateway_audit"),
            Some("it is pending, and the audit does not tell of it"),
        ),
        (
            &format!("{off} DELETE FROM gateway_audit WHERE seq = 3"),
            Some(
                "it is rejected (version 2), and the audit tells last that it is pending (version 1)",
            ),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = open(&path, None).await;
        let desk = Approvals::new(store.clone());
        let rows = [
            action("t", 1, State::Pending),
            action("t", 2, State::Pending),
        ];
        let proposed = rows.iter().map(|row| told(row, EventKind::Proposed));
        let everything = Change {
            audit: proposed.collect(),
            calls: vec![call(&run("t", "1"))],
            ..change(&rows)
        };
        store.commit(everything).await.unwrap();
        let rejected = ActionRow {
            state: State::Rejected,
            version: 2,
            ..rows[1].clone()
        };
        let decided = Change {
            audit: vec![told(&rejected, EventKind::Decided)],
            ..change(&[rejected])
        };
        store.commit(decided).await.unwrap();
        assert_eq!(desk.astray("acme").await.unwrap(), []);
        assert_eq!(desk.tenants().await.unwrap(), ["acme"]);
        let file = Connection::open(&path).unwrap();
        file.execute_batch(damage).unwrap();
        let found = desk.astray("acme").await.unwrap();
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        match words {
            None => assert_eq!(found, Vec::<String>::new(), "{damage}"),
            Some(words) => assert!(
                found.iter().any(|one| one.ends_with(words)),
                "{damage}: {found:?}"
            ),
        }
        if damage.ends_with("'%01'") {
            assert_eq!(found, [format!("{first}{}", words.unwrap())]);
        }
    }
}

/// That an action stands where its row says.
fn told(row: &ActionRow, kind: EventKind) -> paraph_gateway::Draft {
    let event = Event {
        action: Some(row.id().to_string()),
        state: Some(row.state.name().to_owned()),
        ..Event::of_run(kind, &row.action.said.run, 1)
    };
    event.with("version", row.version).draft()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_of_the_audit_that_somebody_took_away_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let _store = open(&path, None).await;
    assert_eq!(
        Sqlite::complaints(&path).await.unwrap(),
        Vec::<String>::new()
    );
    let gone = |name: &str| {
        format!("the trigger `{name}` is gone: nothing keeps the audit from being changed")
    };
    let file = Connection::open(&path).unwrap();
    file.execute_batch(
        "DROP TRIGGER gateway_audit_delete; DROP TRIGGER gateway_audit_detail_update; \
         CREATE TRIGGER gateway_audit_detail_update BEFORE UPDATE ON gateway_audit_detail BEGIN SELECT 1; END;",
    )
    .unwrap();
    assert_eq!(
        Sqlite::complaints(&path).await.unwrap(),
        [
            gone("gateway_audit_delete"),
            gone("gateway_audit_detail_update")
        ]
    );
}
