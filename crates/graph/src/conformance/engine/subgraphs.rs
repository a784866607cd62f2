//! Subgraphs on a store: each call a place of its own, a persistent one the same place for the thread.

use super::{
    super::{
        Checked,
        scene::{same, text},
    },
    ALL, Play,
    graphs::{Case, inner, log},
};
use crate::{Error, Graph, State as _};
use serde_json::json;

fn outer(persistent: bool) -> Result<Graph<Case>, Error> {
    let node = inner()?.mapped(
        |case: &Case| log(format!("turn {}", case.turn)),
        |case: Case| log(case.log.join(",")),
    );
    let graph = Graph::<Case>::new("outer");
    let graph = match persistent {
        true => graph.node("sub", node.persistent()),
        false => graph.node("sub", node),
    };
    graph.start("sub").end("sub").build()
}

pub(in crate::conformance) async fn stateless(p: Play) -> Checked {
    let graph = outer(false).map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        for turn in 0..2 {
            let run = thread.run(Case::update().turn(turn)).durability(durability);
            let paused = run.await.map_err(text)?;
            let question = paused
                .interrupts()
                .first()
                .ok_or("it does not ask")?
                .clone();
            let inside = thread
                .subgraph(&question.namespace, None)
                .await
                .map_err(text)?;
            let inside = inside.ok_or("the subgraph is not there")?;
            let lines = json!([format!("turn {turn}"), "one 1"]);
            same(
                "the subgraph's log",
                inside.state.get("log").cloned(),
                Some(lines),
            )?;
            same("what is due in it", inside.next, vec!["two".into()])?;
            thread
                .update_subgraph(&question.namespace, json!({"log": ["written"]}), None)
                .await
                .map_err(text)?;
            let answer = thread.answer(&question.id, "yes").durability(durability);
            let state = answer.await.map_err(text)?.done().map_err(text)?;
            let expected = format!("turn {turn},one 1,written,two 3 yes");
            same("what it left", state.log.last().cloned(), Some(expected))?;
        }
    }
    Ok(())
}

pub(in crate::conformance) async fn persistent(p: Play) -> Checked {
    let graph = outer(true).map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        let mut ends = Vec::new();
        for turn in 0..3 {
            let run = thread.run(Case::update().turn(turn)).durability(durability);
            let paused = run.await.map_err(text)?;
            let question = paused
                .interrupts()
                .first()
                .ok_or("it does not ask")?
                .clone();
            same("where it asks", &*question.namespace, "sub")?;
            let answer = thread
                .answer(&question.id, turn.to_string())
                .durability(durability);
            let state = answer.await.map_err(text)?.done().map_err(text)?;
            let lines = state.log.last().map_or(0, |line| line.split(',').count());
            same("what it remembers", lines, (turn as usize + 1) * 3)?;
            let now = thread
                .snapshot(None)
                .await
                .map_err(text)?
                .ok_or("nothing")?;
            ends.push(now.checkpoint);
        }
        // The parent goes back to after its first turn: so does what it called.
        let [first, ..] = ends.as_slice() else {
            return Err("no end".to_owned());
        };
        thread.fork(*first).await.map_err(text)?;
        let run = thread.run(Case::update().turn(9)).durability(durability);
        let paused = run.await.map_err(text)?;
        let question = paused
            .interrupts()
            .first()
            .ok_or("it does not ask")?
            .clone();
        let answer = thread.answer(&question.id, "back").durability(durability);
        let state = answer.await.map_err(text)?.done().map_err(text)?;
        let expected = "turn 0,one 1,two 2 0,turn 9,one 4,two 5 back";
        same(
            "what it remembers then",
            state.log.last().map(String::as_str),
            Some(expected),
        )?;
    }
    Ok(())
}
