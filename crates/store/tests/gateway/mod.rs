//! What the gateway needs of a store: one function per rule, for each database's tests.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use futures::future::join_all;
use paraph_gateway::{
    Add, CallRecord, Change, Guard, Observation, Outcome, RunRef, Store, StoreError, ToolCommand,
};
use std::{collections::BTreeMap, sync::Arc};

fn run(thread: &str, run: &str) -> Arc<RunRef> {
    Arc::new(RunRef {
        tenant: "ten\u{0}ant".to_owned(),
        agent: "agent".to_owned(),
        thread: thread.to_owned(),
        run: run.to_owned(),
    })
}

fn call(run: &Arc<RunRef>, key: &str, seq: u64) -> CallRecord {
    CallRecord {
        run: run.clone(),
        key: key.to_owned(),
        seq,
        step: 1,
        epoch: 7,
        tool: "look \u{0}é".to_owned(),
        arguments: r#"{"n": 1e999, "text": "\u0000"}"#.to_owned(),
        args_hash: "0".repeat(12),
        args_digest: "0".repeat(64),
        outcome: None,
        full_output: None,
        ms: 0,
    }
}

fn done(mut call: CallRecord, text: &str) -> CallRecord {
    call.outcome = Some(Outcome::Observed(Observation {
        tool: call.tool.clone(),
        args_hash: call.args_hash.clone(),
        content: text.to_owned(),
        failure: None,
        artifact: Some(r#"{"rows":[1,2]}"#.to_owned()),
        command: Some(ToolCommand {
            update: Some(r#"{"n": 1e999}"#.to_owned()),
            goto: vec!["report".to_owned()],
        }),
    }));
    call.full_output = Some("x".repeat(50_000));
    call.ms = 12;
    call
}

fn add(run: &Arc<RunRef>, counter: &str, by: u64) -> Add {
    Add {
        run: run.clone(),
        counter: counter.to_owned(),
        by,
    }
}

fn fresh(run: &Arc<RunRef>, key: &str) -> Guard {
    Guard::Fresh {
        run: run.clone(),
        key: key.to_owned(),
    }
}

fn open(run: &Arc<RunRef>, key: &str) -> Guard {
    Guard::Open {
        run: run.clone(),
        key: key.to_owned(),
    }
}

fn refused(guard: Guard) -> Result<(), StoreError> {
    Err(StoreError::Refused(Box::new(guard)))
}

/// All of it, on threads of these names.
pub(crate) async fn keeps_the_rules(store: &Arc<dyn Store>, thread: &str) {
    records(store, &format!("{thread} records")).await;
    counters(store, &format!("{thread} counters")).await;
    guards(store, &format!("{thread} guards")).await;
    runs_apart(store, &format!("{thread} apart")).await;
    first_of_many(store, &format!("{thread} first")).await;
}

async fn records(store: &Arc<dyn Store>, thread: &str) {
    let run = run(thread, "1");
    assert_eq!(store.calls(&run).await, Ok(vec![]));
    let calls = [
        call(&run, "b", 2),
        call(&run, "c\u{0}'", 3),
        call(&run, "a", 1),
    ];
    let change = Change {
        calls: calls.to_vec(),
        ..Change::default()
    };
    assert_eq!(store.commit(change).await, Ok(()));
    // In the order of their numbers, whatever their keys.
    let [b, c, a] = calls;
    assert_eq!(
        store.calls(&run).await,
        Ok(vec![a.clone(), b.clone(), c.clone()])
    );
    let b = done(b, "\u{0}\"done\"");
    let change = Change {
        calls: vec![b.clone()],
        ..Change::default()
    };
    assert_eq!(store.commit(change).await, Ok(()));
    assert_eq!(store.calls(&run).await, Ok(vec![a, b, c]));
}

async fn counters(store: &Arc<dyn Store>, thread: &str) {
    let run = run(thread, "1");
    assert_eq!(store.counters(&run).await, Ok(BTreeMap::new()));
    let raise = async |adds: &[(&str, u64)]| {
        let add = adds.iter().map(|(name, by)| add(&run, name, *by)).collect();
        let change = Change {
            add,
            ..Change::default()
        };
        assert_eq!(store.commit(change).await, Ok(()));
        store
            .counters(&run)
            .await
            .unwrap()
            .into_iter()
            .collect::<Vec<_>>()
    };
    let is = |counters: &[(&str, u64)]| -> Vec<(String, u64)> {
        let all = counters.iter();
        all.map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    };
    assert_eq!(
        raise(&[("steps", 1), ("a\u{0}b", 5)]).await,
        is(&[("a\u{0}b", 5), ("steps", 1)])
    );
    assert_eq!(
        raise(&[("steps", 2), ("steps", 0), ("steps", 4)]).await,
        is(&[("a\u{0}b", 5), ("steps", 7)])
    );
    let most = i64::MAX as u64;
    assert_eq!(
        raise(&[("steps", u64::MAX), ("steps", 1)]).await,
        is(&[("a\u{0}b", 5), ("steps", most)]),
        "a counter stays at the greatest number"
    );
}

async fn guards(store: &Arc<dyn Store>, thread: &str) {
    let run = run(thread, "1");
    let first = call(&run, "k", 1);
    let change = |guards: Vec<Guard>, calls: Vec<CallRecord>| Change {
        guards,
        calls,
        add: vec![add(&run, "calls", 1)],
    };
    let commit = async |guards, calls| store.commit(change(guards, calls)).await;
    let nothing = commit(vec![open(&run, "k")], vec![first.clone()]).await;
    assert_eq!(nothing, refused(open(&run, "k")));
    assert_eq!(store.calls(&run).await, Ok(vec![]));
    assert_eq!(store.counters(&run).await, Ok(BTreeMap::new()));
    assert_eq!(
        commit(vec![fresh(&run, "k")], vec![first.clone()]).await,
        Ok(())
    );
    // The first that does not hold is named, and nothing of the change is there.
    let both = vec![open(&run, "k"), fresh(&run, "new"), fresh(&run, "k")];
    let again = commit(both, vec![call(&run, "new", 2)]).await;
    assert_eq!(again, refused(fresh(&run, "k")));
    assert_eq!(store.calls(&run).await, Ok(vec![first.clone()]));
    let ended = done(first, "1");
    assert_eq!(
        commit(vec![open(&run, "k")], vec![ended.clone()]).await,
        Ok(())
    );
    let late = commit(vec![open(&run, "k")], vec![call(&run, "k", 9)]).await;
    assert_eq!(late, refused(open(&run, "k")));
    assert_eq!(store.calls(&run).await, Ok(vec![ended]));
    let counted = store.counters(&run).await.unwrap();
    assert_eq!(counted, BTreeMap::from([("calls".to_owned(), 2)]));
}

async fn runs_apart(store: &Arc<dyn Store>, thread: &str) {
    // Names that would run into each other if they were only put together.
    let runs = [
        run(thread, "1"),
        run(thread, "1\",\"2"),
        run(&format!("{thread}\",\"1"), "2"),
        run(&format!("{thread} "), "1"),
        Arc::new(RunRef {
            agent: "another".to_owned(),
            ..(*run(thread, "1")).clone()
        }),
    ];
    for (i, run) in (1..).zip(&runs) {
        let change = Change {
            guards: vec![fresh(run, "k")],
            calls: vec![call(run, "k", i)],
            add: vec![add(run, "n", i)],
        };
        assert_eq!(store.commit(change).await, Ok(()));
    }
    for (i, run) in (1..).zip(&runs) {
        assert_eq!(store.calls(run).await, Ok(vec![call(run, "k", i)]));
        let counters = BTreeMap::from([("n".to_owned(), i)]);
        assert_eq!(store.counters(run).await, Ok(counters));
    }
}

async fn first_of_many(store: &Arc<dyn Store>, thread: &str) {
    let run = run(thread, "1");
    let at_once = (0..40).map(|i| {
        let (store, run) = (store.clone(), run.clone());
        tokio::spawn(async move {
            let key = format!("{}", i % 4);
            let change = Change {
                guards: vec![fresh(&run, &key)],
                calls: vec![call(&run, &key, i)],
                add: vec![add(&run, "won", 1)],
            };
            store.commit(change).await
        })
    });
    let done: Vec<_> = join_all(at_once)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let won = done.iter().filter(|done| done.is_ok()).count();
    let lost = done
        .iter()
        .filter(|done| matches!(done, Err(StoreError::Refused(_))));
    assert_eq!((won, lost.count()), (4, 36));
    let counters = BTreeMap::from([("won".to_owned(), 4)]);
    assert_eq!(store.counters(&run).await, Ok(counters));
    assert_eq!(store.calls(&run).await.unwrap().len(), 4);
}

/// Of what several stores over one database want to be the first to write, each is written once.
pub(crate) async fn one_of_two_is_first(stores: &[Arc<dyn Store>], thread: &str) {
    let run = run(thread, "1");
    for round in 0..20 {
        let key = round.to_string();
        let at_once = stores.iter().map(|store| {
            let (store, run, key) = (store.clone(), run.clone(), key.clone());
            tokio::spawn(async move {
                let change = Change {
                    guards: vec![fresh(&run, &key)],
                    calls: vec![call(&run, &key, round)],
                    add: vec![add(&run, "won", 1)],
                };
                store.commit(change).await
            })
        });
        let done: Vec<_> = join_all(at_once)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let won = done.iter().filter(|done| done.is_ok()).count();
        assert_eq!(won, 1, "{done:?}");
    }
    let counters = BTreeMap::from([("won".to_owned(), 20)]);
    assert_eq!(stores.last().unwrap().counters(&run).await, Ok(counters));
}
