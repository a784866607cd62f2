//! Rows of the gateway as tests of databases need them, made of their JSON, which stays what it is when programs change.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic; and each test crate uses a part of it"
)]

use paraph_gateway::{
    Action, ActionRow, CallRecord, Change, Event, EventKind, Field, Kill, RunRef, Sending, State,
    Store, Wake,
};
use paraph_graph::{Claim, Error, Keep, RunEnd, RunId, RunStart, RunStatus, Threads};
use std::sync::Arc;

pub(crate) fn run(thread: &str, run: &str) -> Arc<RunRef> {
    Arc::new(RunRef {
        tenant: "acme".to_owned(),
        agent: "support".to_owned(),
        thread: thread.to_owned(),
        run: run.to_owned(),
    })
}

pub(crate) fn call(run: &Arc<RunRef>) -> CallRecord {
    CallRecord {
        run: run.clone(),
        key: "k".to_owned(),
        seq: 1,
        step: 1,
        epoch: 1,
        tool: "tool".to_owned(),
        arguments: "{}".to_owned(),
        args_hash: String::new(),
        args_digest: String::new(),
        action: None,
        ruling: None,
        outcome: None,
        full_output: None,
        ms: 0,
    }
}

/// The `n`th action of a thread's run `1`.
pub(crate) fn action(thread: &str, n: u64, state: State) -> ActionRow {
    of_run(&run(thread, "1"), n, state)
}

pub(crate) fn of_run(run: &RunRef, n: u64, state: State) -> ActionRow {
    let text = |text: &str| serde_json::to_string(text).unwrap();
    let bytes = format!(
        r#"{{"agent":{},"args":{{"cents":{n}}},"created_ms":1700000000000,"expires_ms":1700000600000,"id":"01900000-0000-7000-8000-{n:012x}","key":"k","level":"write","not_by_requester":false,"policy":"","quorum":1,"requester":"ann","run":{},"says":"Pay {n} cents","schema":1,"subject":"order:{n}","tenant":{},"thread":{},"tool":"pay","verified":false}}"#,
        text(&run.agent),
        text(&run.run),
        text(&run.tenant),
        text(&run.thread)
    );
    let action = Action::read(&bytes).unwrap();
    ActionRow {
        digest: action.digest.clone(),
        action: Arc::new(action),
        state,
        version: 1,
        votes: Vec::new(),
        sending: Sending::default(),
        receipt: None,
        ended: None,
        due_ms: None,
        replaced_by: None,
        changed: Vec::new(),
        closes: false,
        reopened: None,
    }
}

pub(crate) fn change(rows: &[ActionRow]) -> Change {
    Change {
        actions: rows.to_vec(),
        ..Change::default()
    }
}

pub(crate) fn wake(row: &ActionRow) -> Wake {
    Wake {
        run: row.action.said.run.clone(),
        key: "k".to_owned(),
        action: row.id(),
        version: row.version,
        due_ms: 5,
    }
}

pub(crate) fn kill(scope: &str) -> Kill {
    Kill {
        scope: scope.to_owned(),
        by: "ann".to_owned(),
        reason: "something is wrong".to_owned(),
        at_ms: 1_700_000_000_000,
    }
}

/// So many entries for the audit of `acme`, each with a detail.
pub(crate) fn audited(count: u64) -> Change {
    let draft = |n: u64| {
        let who = [("who".to_owned(), Field::from("ann"))];
        let event = Event::new(EventKind::Budget, "acme", 1).with("n", n);
        event.draft_with(who.into())
    };
    Change {
        audit: (1..=count).map(draft).collect(),
        ..Change::default()
    }
}

/// A run that has ended on a thread.
async fn ended(store: &impl Threads, thread: &str) -> RunId {
    let run = RunId::fresh();
    let start = Some(RunStart::default());
    let lease = store.lease(thread, Claim { run, start }).await.unwrap();
    let end = RunEnd {
        run,
        epoch: lease.epoch,
        status: RunStatus::Success,
        error: None,
        standing: None,
        events: Vec::new(),
    };
    store.finish(thread, end).await.unwrap();
    run
}

/// A thread, and each of its runs, is not deleted while an action of it is not over, and not pruned; then it goes with
/// its actions and wakes, and the audit stays.
pub(crate) async fn stays_while_open(store: &(impl Store + Threads)) {
    store.commit(audited(2)).await.unwrap();
    let open = State::ALL.into_iter().filter(|state| !state.is_final());
    for (n, state) in (1..).zip(open) {
        let thread = format!("th\"re,ad {n}");
        let first = ended(store, &thread).await;
        let second = ended(store, &thread).await;
        let of = |id: RunId, n, state| of_run(&run(&thread, &id.to_string()), n, state);
        let row = of(first, 100 * n, state);
        let over = of(second, 100 * n + 1, State::Succeeded);
        let neighbour = of_run(&run(&format!("{thread}2"), "1"), 100 * n + 2, state);
        let all = [row.clone(), over.clone(), neighbour.clone()];
        let wakes: Vec<Wake> = all.iter().map(wake).collect();
        store
            .commit(Change {
                wake: wakes.clone(),
                ..change(&all)
            })
            .await
            .unwrap();
        let why = format!(
            "thread `{thread}` is still needed: its action {} is {state}, and has to be settled first",
            row.id()
        );
        let said = |error: Error| {
            assert!(matches!(error, Error::StillNeeded { .. }), "{error:?}");
            error.to_string()
        };
        assert_eq!(
            said(Threads::delete(store, &thread).await.unwrap_err()),
            why
        );
        assert_eq!(
            said(store.delete_runs(&[second, first]).await.unwrap_err()),
            why
        );
        assert!(
            store
                .prunable(&thread, Keep::Last(1))
                .await
                .unwrap()
                .pending
        );
        assert!(store.prune(&thread, Keep::Last(1)).await.unwrap().pending);
        let rows = async |row: &ActionRow| {
            let find = paraph_gateway::Find::Id(row.id());
            store.actions(find).await.unwrap()
        };
        for kept in &all {
            assert_eq!(rows(kept).await, std::slice::from_ref(kept));
        }
        // The run whose actions are over may go.
        store.delete_runs(&[second]).await.unwrap();
        assert_eq!(rows(&over).await, []);
        let settled = ActionRow {
            state: State::Failed,
            version: 2,
            ..row.clone()
        };
        store.commit(change(&[settled])).await.unwrap();
        assert!(!store.prune(&thread, Keep::Last(1)).await.unwrap().pending);
        assert!(Threads::delete(store, &thread).await.unwrap());
        assert_eq!(rows(&row).await, []);
        assert_eq!(rows(&neighbour).await, std::slice::from_ref(&neighbour));
        let left = store.wakes(100).await.unwrap();
        let left: Vec<_> = left.into_iter().filter(|w| wakes.contains(w)).collect();
        assert_eq!(left, [wake(&neighbour)]);
    }
    assert_eq!(store.audit("acme", 0, 9).await.unwrap().len(), 2);
}
