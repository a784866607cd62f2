//! Subgraphs on a store: each call a place of its own, a persistent one the same place for the thread.

use super::{
    super::{
        Checked,
        scene::{same, text},
    },
    ALL, Play,
    graphs::{Case, inner, log},
};
use crate::{Durability, Error, Graph, RunId, RunQuery, Source, State as _};
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

pub(in crate::conformance) async fn persistent_kept(p: Play) -> Checked {
    let graph = outer(true).map_err(text)?;
    // With the third durability nothing is saved between the ends of two runs.
    for durability in [Durability::Sync, Durability::Async] {
        let thread = p.thread(&graph, format!("{durability:?}"));
        let asks = async |turn: u32| {
            let run = thread.run(Case::update().turn(turn)).durability(durability);
            let paused = run.await.map_err(text)?;
            let question = paused
                .interrupts()
                .first()
                .ok_or("it does not ask")?
                .clone();
            let answer = thread.answer(&question.id, turn.to_string());
            answer.durability(durability).await.map_err(text)
        };
        asks(0).await?;
        let of_thread = RunQuery {
            thread: Some(thread.name().to_owned()),
            ..RunQuery::default()
        };
        let runs = p.threads.runs(&of_thread).await.map_err(text)?;
        let runs: Vec<RunId> = runs.into_iter().map(|run| run.id).collect();
        asks(1).await?;
        p.threads.delete_runs(&runs).await.map_err(text)?;
        let left = thread.history().await.map_err(text)?;
        let gone = left.iter().any(|e| runs.contains(&e.metadata.run));
        same("whether something is left of the first turn", gone, false)?;
        // The second turn is begun once more, from before it called the subgraph.
        let begin = left.iter().find(|e| e.metadata.source == Source::Input);
        let begin = begin.ok_or("the second turn has no beginning")?;
        thread.fork(begin.id).await.map_err(text)?;
        let paused = thread.resume().durability(durability).await.map_err(text)?;
        let question = paused
            .interrupts()
            .first()
            .ok_or("it does not ask")?
            .clone();
        let answer = thread.answer(&question.id, "again").durability(durability);
        let state = answer.await.map_err(text)?.done().map_err(text)?;
        let expected = "turn 0,one 1,two 2 0,turn 1,one 4,two 5 again";
        let last = state.log.last().map(String::as_str);
        same("what the subgraph remembers", last, Some(expected))?;
    }
    Ok(())
}
