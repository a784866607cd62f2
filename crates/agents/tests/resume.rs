//! Runs that are cut off and go on elsewhere: what had finished is not done again, what was used stays
//! used, and the end is that of a run which nobody cut off.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use paraph_agents::{Agent, AgentEventData, AgentRun, Case, RunResult, Stores, Terms};
use paraph_gateway::{Dialect, Limits};
use paraph_graph::{CancelReason, HistoryQuery, RunId, Scope};
use paraph_models::ScriptedModel;
use serde_json::{Value, json};
use std::sync::Arc;

/// Two tools and an answer, in either dialect.
fn script(dialect: Dialect) -> String {
    let calls = [
        ("get_user_profile", json!({"user_id": 42})),
        ("get_user_billing", json!({"user_id": 42})),
    ];
    let call = |(name, args): &(&str, Value)| match dialect {
        Dialect::Strict => {
            let action = json!({"kind": "tool", "name": name, "args": args});
            json!({"content": action.to_string(), "usage": {"input_tokens": 10, "output_tokens": 1}})
        }
        Dialect::Native => json!({"tool_calls": [{"id": name, "name": name, "arguments": args}],
            "usage": {"input_tokens": 10, "output_tokens": 1}}),
    };
    let answer = match dialect {
        Dialect::Strict => json!({"content": r#"{"kind":"final","answer":"Done."}"#}),
        Dialect::Native => json!({"content": "Done."}),
    };
    let lines = calls.iter().map(call).chain([answer]);
    lines.map(|line| line.to_string() + "\n").collect()
}

fn terms(dialect: Dialect) -> Terms {
    let model = ScriptedModel::parse(&script(dialect), "script").unwrap();
    Terms {
        limits: Limits {
            steps: 3,
            tool_calls: 2,
            ..Limits::default()
        },
        ..Terms::new(Arc::new(model), "t")
    }
}

fn case(user: u64, question: &str) -> Case {
    Case {
        user,
        question: question.to_owned(),
    }
}

/// An agent as another process would build it, on the same stores.
fn support(stores: &Stores, dialect: Dialect) -> Agent {
    paraph_agents::support(stores, dialect, &[], &[]).unwrap()
}

/// Reads the run up to the n-th event and cuts it off there, by dropping it or by a person's wish. Says
/// whether there were so many events.
async fn cut(mut run: AgentRun, at: usize, drops: bool) -> bool {
    for _ in 0..at {
        if run.next().await.is_none() {
            return false;
        }
    }
    let control = run.control();
    match drops {
        true => drop(run),
        false => {
            control.request_cancel(CancelReason::User);
            run.result().await;
        }
    }
    control.ended().await;
    true
}

/// What of a result is the same in every run: messages have ids of their own.
fn comparable(result: &RunResult) -> Value {
    let mut json: Value = serde_json::from_str(&result.to_json().unwrap()).unwrap();
    for message in json["messages"].as_array_mut().into_iter().flatten() {
        message.as_object_mut().unwrap().remove("id");
    }
    json
}

async fn uncut(dialect: Dialect) -> Value {
    let agent = support(&Stores::in_memory(), dialect);
    let run = agent
        .start(&case(42, "Refund?"), &terms(dialect))
        .await
        .unwrap();
    comparable(&run.result().await)
}

#[tokio::test]
async fn wherever_a_run_is_cut_off_it_ends_as_if_it_had_not_been() {
    for dialect in [Dialect::Strict, Dialect::Native] {
        let expected = uncut(dialect).await;
        for drops in [false, true] {
            for at in 1.. {
                let stores = Stores::in_memory();
                let first = support(&stores, dialect);
                let run = first
                    .start(&case(42, "Refund?"), &terms(dialect))
                    .await
                    .unwrap();
                let id = run.run_id();
                if !cut(run, at, drops).await {
                    assert!(at > 15, "only {at} events");
                    break;
                }
                let result = gone_on(&stores, id, dialect).await;
                // Exactly as many steps and calls as there may be: none was counted twice.
                assert_eq!(comparable(&result), expected, "{dialect:?} {drops} {at}");
            }
        }
    }
}

/// The run's result after it went on, or that of the run if it was over already.
async fn gone_on(stores: &Stores, id: RunId, dialect: Dialect) -> RunResult {
    let (second, terms) = (support(stores, dialect), terms(dialect));
    match second.resume(id, &terms).await {
        Ok(run) => {
            assert_eq!(run.run_id(), id);
            run.result().await
        }
        Err(paraph_agents::Error::NothingLeft(_)) => {
            match second.result(id, "t").await.unwrap() {
                Some(result) => result,
                // It was cut off before anything was saved.
                None => {
                    let run = second.start(&case(42, "Refund?"), &terms).await;
                    run.unwrap().result().await
                }
            }
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_resumed_run_tells_what_it_has_used_and_goes_on_counting() {
    let stores = Stores::in_memory();
    let first = support(&stores, Dialect::Strict);
    // Its second answer does not come.
    let hangs =
        script(Dialect::Strict).replacen('\n', "\n{\"content\":\"{}\",\"delay_ms\":3600000}\n", 1);
    let slow = Terms {
        model: Arc::new(ScriptedModel::parse(&hangs, "script").unwrap()),
        ..terms(Dialect::Strict)
    };
    let mut run = first.start(&case(42, "Refund?"), &slow).await.unwrap();
    let id = run.run_id();
    while !matches!(
        run.next().await.unwrap().data,
        AgentEventData::StepStarted { step: 2, .. }
    ) {}
    cut(run, 0, false).await;
    let mut run = support(&stores, Dialect::Strict)
        .resume(id, &terms(Dialect::Strict))
        .await
        .unwrap();
    let AgentEventData::RunStarted { task, budget, .. } = run.next().await.unwrap().data else {
        panic!("a run begins with its beginning")
    };
    assert!(task.starts_with("User 42 asks: Refund?"));
    assert_eq!((budget.steps, budget.tool_calls, budget.tokens), (1, 1, 11));
    let AgentEventData::StepStarted { step, .. } = run.next().await.unwrap().data else {
        panic!("what was cut off begins anew")
    };
    assert_eq!(step, 2);
}

#[tokio::test]
async fn a_run_that_is_over_has_nothing_left_but_its_result() {
    let stores = Stores::in_memory();
    let agent = support(&stores, Dialect::Strict);
    let terms = terms(Dialect::Strict);
    let run = agent.start(&case(42, "Refund?"), &terms).await.unwrap();
    let id = run.run_id();
    let result = run.result().await;
    let found = agent.result(id, "t").await.unwrap();
    assert_eq!(found.as_ref(), Some(&result));
    // Its process may have been killed before it could say that it was over.
    let again = agent.resume(id, &terms).await.unwrap();
    assert_eq!(again.result().await, result);
    let other = RunId::fresh();
    let found = agent.result(other, "t").await.unwrap();
    assert_eq!(found, None);
    let error = agent.resume(other, &terms).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothing is left to do on thread `t` there"
    );
}

#[tokio::test]
async fn a_replay_begins_on_a_branch_with_a_budget_of_its_own() {
    let stores = Stores::in_memory();
    let agent = support(&stores, Dialect::Strict);
    let first = agent
        .start(&case(42, "Refund?"), &terms(Dialect::Strict))
        .await
        .unwrap()
        .result()
        .await;
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let all = HistoryQuery::default();
    let entries = stores.threads.history(&scope, &all).await.unwrap();
    // After the first call: the model is due, and has two lines of its script before it.
    let after_call = &entries[entries.len() - 3];
    let rest = script(Dialect::Strict)
        .lines()
        .skip(1)
        .collect::<Vec<_>>()
        .join("\n");
    let terms = Terms {
        model: Arc::new(ScriptedModel::parse(&rest, "rest").unwrap()),
        ..terms(Dialect::Strict)
    };
    let run = agent.replay(after_call.id, None, &terms).await.unwrap();
    assert_eq!(comparable(&run.result().await), comparable(&first));
    // Another question from there.
    let yes = r#"{"content":"{\"kind\":\"final\",\"answer\":\"Yes.\"}"}"#;
    let terms = Terms {
        model: Arc::new(ScriptedModel::parse(yes, "yes").unwrap()),
        ..terms
    };
    let other = case(42, "And now?");
    let run = agent
        .replay(after_call.id, Some(other), &terms)
        .await
        .unwrap();
    let result = run.result().await;
    assert_eq!((result.answer(), result.trace().len()), (Some("Yes."), 0));
    let head = entries[0].id;
    let over = agent.replay(head, None, &terms).await.unwrap_err();
    assert!(over.to_string().contains("nothing is left"), "{over}");
    let unknown = paraph_graph::CheckpointId::fresh();
    let unknown = agent.replay(unknown, None, &terms).await.unwrap_err();
    assert!(
        unknown.to_string().contains("has no checkpoint"),
        "{unknown}"
    );
}

#[tokio::test]
async fn a_second_run_on_a_busy_thread_is_a_conflict_and_shows_nothing_of_the_first() {
    let stores = Stores::in_memory();
    let agent = support(&stores, Dialect::Strict);
    let mut first = agent
        .start(&case(42, "Refund?"), &terms(Dialect::Strict))
        .await
        .unwrap();
    while !matches!(
        first.next().await.unwrap().data,
        AgentEventData::ToolEnded { .. }
    ) {}
    let second = support(&stores, Dialect::Strict)
        .start(&case(7, "And mine?"), &terms(Dialect::Strict))
        .await
        .unwrap();
    let mut last = None;
    let mut second = second;
    while let Some(event) = second.next().await {
        last = Some(event.data);
    }
    let Some(AgentEventData::RunEnded {
        detail,
        exit_code,
        result,
    }) = last
    else {
        panic!("a run ends with its end")
    };
    assert_eq!(
        (exit_code, result.stop().to_string().as_str()),
        (6, "conflict")
    );
    assert!(detail.unwrap().contains(&first.run_id().to_string()));
    assert!(result.trace().is_empty());
    assert_eq!(first.result().await.answer(), Some("Done."));
}

/// What the model was sent last.
fn payloads(sent: &std::sync::Mutex<Vec<String>>) -> Vec<Value> {
    let sent = sent.lock().unwrap();
    sent.iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

/// Answers each question with its number, and notes what it was sent.
#[derive(Default)]
struct Noting(std::sync::Mutex<Vec<String>>);

impl paraph_models::ChatModel for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn stream<'a>(
        &'a self,
        request: &'a paraph_models::ChatRequest,
    ) -> paraph_models::ChunkStream<'a> {
        let mut sent = self.0.lock().unwrap();
        sent.push(request.messages.last().unwrap().text().into_owned());
        let answer = json!({"kind": "final", "answer": format!("Answer {}.", sent.len())});
        let chunk = paraph_models::Chunk::text(answer.to_string());
        Box::pin(futures::stream::iter([Ok(chunk)]))
    }
}

#[tokio::test]
async fn a_question_on_a_thread_comes_with_what_the_same_customer_asked_before() {
    let stores = Stores::in_memory();
    let model = Arc::new(Noting::default());
    let terms = Terms::new(model.clone(), "t");
    for (user, question) in [(42, "Refund?"), (7, "Which plan?"), (42, "How much?")] {
        let run = support(&stores, Dialect::Strict)
            .start(&case(user, question), &terms)
            .await;
        run.unwrap().result().await;
    }
    let earlier: Vec<_> = payloads(&model.0)
        .into_iter()
        .map(|payload| payload.get("earlier_exchanges").cloned())
        .collect();
    let had = json!([{"question": "Refund?", "answer": "Answer 1."}]);
    assert_eq!(earlier, [None, None, Some(had)]);
}

/// A gateway's store one of whose writes fails.
struct FailsOnce {
    inner: Arc<dyn paraph_gateway::Store>,
    writes: std::sync::atomic::AtomicUsize,
    at: usize,
}

impl paraph_gateway::StoreLayer for FailsOnce {
    fn inner(&self) -> &dyn paraph_gateway::Store {
        &*self.inner
    }

    fn commit(&self, change: paraph_gateway::Change) -> paraph_gateway::StoreFuture<'_, ()> {
        use std::sync::atomic::Ordering;
        match self.writes.fetch_add(1, Ordering::SeqCst) == self.at {
            true => {
                Box::pin(async { Err(paraph_gateway::StoreError::Broken("no room".to_owned())) })
            }
            false => self.inner.commit(change),
        }
    }
}

#[tokio::test]
async fn a_run_whose_records_cannot_be_written_is_not_over() {
    for dialect in [Dialect::Strict, Dialect::Native] {
        let expected = uncut(dialect).await;
        // Two writes for each call; the last one, at the end, is missed by nobody.
        for at in 0..4 {
            let whole = Stores::in_memory();
            let broken = Stores {
                records: Arc::new(FailsOnce {
                    inner: whole.records.clone(),
                    writes: Default::default(),
                    at,
                }),
                threads: whole.threads.clone(),
                seal: None,
            };
            let agent = support(&broken, dialect);
            let run = agent.start(&case(42, "Refund?"), &terms(dialect)).await;
            let run = run.unwrap();
            let id = run.run_id();
            let result = run.result().await;
            assert_eq!(result.stop().to_string(), "store_error", "{at}");
            let result = gone_on(&whole, id, dialect).await;
            assert_eq!(comparable(&result), expected, "{dialect:?} {at}");
        }
    }
}
