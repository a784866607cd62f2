//! Runs that wait for people: both calls of a message at once, decided elsewhere, gone on with in another process.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use paraph_agents::{Agent, RunResult, Stores, Terms, react};
use paraph_gateway::examples::Pay;
use paraph_gateway::{
    ApprovalError, Approvals, Ask, Gateway, LoopRule, Person, Policy, State, Stop,
};
use paraph_models::ScriptedModel;
use serde_json::json;
use std::sync::Arc;

fn script() -> String {
    let call =
        |id: &str, cents: u32| json!({"id": id, "name": "pay", "arguments": {"cents": cents}});
    let asks = json!({"content": "", "tool_calls": [call("a", 1), call("b", 2)]});
    let answer = json!({"content": "Done."});
    format!("{asks}\n{answer}\n")
}

/// The agent as a process has it.
fn agent(stores: &Stores, pay: &Pay) -> Agent {
    agent_asking(stores, pay, Ask::default())
}

fn agent_asking(stores: &Stores, pay: &Pay, ask: Ask) -> Agent {
    let gateway = Gateway::builder(stores.records.clone())
        .effect(pay.clone())
        .policy(Policy::new().ask("pay", ask))
        .build()
        .unwrap();
    react("clerk", "Pay.", gateway)
        .unwrap()
        .on(stores.threads.clone())
}

fn terms(lines: &str) -> Terms {
    let model = ScriptedModel::parse(lines, "script").unwrap();
    Terms {
        loops: LoopRule::Exact,
        ..Terms::new(Arc::new(model), "case-7")
    }
}

fn waits(result: &RunResult) -> usize {
    assert_eq!(result.stop(), &Stop::ApprovalPending);
    result.approvals().len()
}

#[tokio::test]
async fn a_run_waits_for_each_of_its_calls_and_goes_on_with_those_that_were_decided() {
    let (stores, pay) = (Stores::in_memory(), Pay::default());
    let run = agent(&stores, &pay)
        .start("Pay.", &terms(&script()))
        .await
        .unwrap();
    let id = run.run_id();
    let first = run.result().await;
    assert_eq!(waits(&first), 2);
    let json = serde_json::to_value(&first).unwrap();
    assert_eq!(
        (json["status"].as_str(), &json["stop_reason"]),
        (Some("waiting"), &json!("approval_pending"))
    );
    let says: Vec<_> = first
        .approvals()
        .iter()
        .map(|it| it.says.as_str())
        .collect();
    assert_eq!(says, ["Pay 1 cents", "Pay 2 cents"]);
    assert!(pay.paid().is_empty());

    // Another process, before anybody has decided: it waits on, for the same.
    // The model goes on where it was.
    let rest = script();
    let again = agent(&stores, &pay)
        .resume(id, &terms(&rest))
        .await
        .unwrap()
        .result()
        .await;
    assert_eq!(again.approvals(), first.approvals());

    let desk = Approvals::new(stores.records.clone());
    let [one, two] = first.approvals() else {
        panic!()
    };
    desk.approve(one.id, &one.digest, "ann").await.unwrap();
    let again = agent(&stores, &pay)
        .resume(id, &terms(&rest))
        .await
        .unwrap()
        .result()
        .await;
    assert_eq!(again.approvals(), std::slice::from_ref(two));
    assert_eq!(pay.paid().values().copied().collect::<Vec<_>>(), [1]);

    desk.reject(
        two.id,
        &two.digest,
        Person::verified("bob"),
        "once is enough",
    )
    .await
    .unwrap();
    let last = agent(&stores, &pay)
        .resume(id, &terms(&rest))
        .await
        .unwrap()
        .result()
        .await;
    assert_eq!(
        (last.stop(), last.answer()),
        (&Stop::Success, Some("Done."))
    );
    let RunResult::Messages(last) = last else {
        panic!()
    };
    let read = serde_json::to_string(&last.messages).unwrap();
    assert!(
        read.contains("paid 1 cents") && read.contains("once is enough"),
        "{read}"
    );
    let rows: Vec<_> = last
        .trace
        .iter()
        .map(|row| (row.ok, row.stop_reason.as_deref()))
        .collect();
    assert_eq!(rows, [(true, None), (false, Some("approval_rejected"))]);
    assert_eq!(pay.paid().len(), 1);
    assert_eq!(desk.show(one.id).await.unwrap().state, State::Succeeded);
}

#[tokio::test]
async fn nobody_approves_what_they_asked_for_where_the_rules_say_so() {
    let (stores, pay) = (Stores::in_memory(), Pay::default());
    let ask = Ask {
        not_by_requester: true,
        ..Ask::default()
    };
    let terms = Terms {
        user: "ann".into(),
        ..terms(&script())
    };
    let run = agent_asking(&stores, &pay, ask).start("Pay.", &terms).await;
    let result = run.unwrap().result().await;
    assert_eq!(waits(&result), 2);
    let [one, two] = result.approvals() else {
        panic!()
    };
    let desk = Approvals::new(stores.records.clone());
    let row = desk.show(one.id).await.unwrap();
    assert_eq!(row.action.said.requester, "ann");
    for own in [Person::from("ann"), Person::verified("ann")] {
        let refused = desk.approve(one.id, &one.digest, own).await.unwrap_err();
        assert!(matches!(refused, ApprovalError::OwnRequest), "{refused}");
    }
    let others = [Person::from("bob"), Person::verified("bob")];
    for (waiting, other) in [one, two].into_iter().zip(others) {
        let approved = desk.approve(waiting.id, &waiting.digest, other).await;
        assert_eq!(approved.unwrap().state, State::Approved);
    }
}
