//! Runs that are saved, cut at every event, and go on.

use super::{
    super::{
        Checked,
        scene::{same, text},
    },
    ALL, Play,
    graphs::{Case, Done, chain, log, rich},
    story, to_the_end,
};
use crate::{
    Ctx, Durability, Error, Graph, Mode, NodeError, Outcome, RunId, RunOptions, RunStatus,
    State as _, ThreadStatus, Update, with,
};
use serde_json::json;

pub(in crate::conformance) async fn run_saved(p: Play) -> Checked {
    let graph = chain().map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        for turn in 1..=2 {
            let run = RunId::fresh();
            let start = thread.run(Case::update().turn(turn)).run_id(run);
            let options = RunOptions {
                durability,
                arguments: json!({"turn": turn}),
                ..RunOptions::default()
            };
            let state = start
                .options(options)
                .await
                .map_err(text)?
                .done()
                .map_err(text)?;
            let read = thread
                .snapshot(None)
                .await
                .map_err(text)?
                .ok_or("nothing is there")?;
            same("the state", &*read.state, &state)?;
            same("whether it is over", read.finished, true)?;
            same("how much was added", state.log.len(), turn as usize * 3)?;
            let row = p.threads.thread(thread.name()).await.map_err(text)?;
            let row = row.ok_or("the thread has no row")?;
            same("the thread's status", row.status, ThreadStatus::Idle)?;
            same("the thread's holder", row.holder, None)?;
            let values = row.values.unwrap_or_default();
            same(
                "its values",
                values.get("sum").cloned(),
                Some(json!(turn * 3)),
            )?;
            let row = p
                .threads
                .run(run)
                .await
                .map_err(text)?
                .ok_or("the run has no row")?;
            same("the run's status", row.status, RunStatus::Success)?;
            same("how often it was begun", row.attempts, 1)?;
            same("its arguments", row.arguments, json!({"turn": turn}))?;
        }
        if durability != Durability::Exit {
            let told = story(&thread).await?;
            let logs: Vec<usize> = told.iter().map(|(case, _)| case.log.len()).collect();
            same("the history", logs, vec![6, 5, 4, 3, 3, 2, 1, 0])?;
        }
    }
    Ok(())
}

pub(in crate::conformance) async fn cut_anywhere(p: Play) -> Checked {
    let uncut = Done::default();
    let graph = rich(&uncut).map_err(text)?;
    let thread = p.thread(&graph, "uncut");
    let expected = to_the_end(&thread, Durability::Sync).await?;
    let told = story(&thread).await?;
    for durability in ALL {
        for events in [0, 1, 2, 5, 9, 14, 20] {
            let done = Done::default();
            let graph = rich(&done).map_err(text)?;
            let what = format!("{durability:?} cut after {events} events");
            let thread = p.thread(&graph, &what);
            let start = thread.run(Case::update()).durability(durability);
            let mut stream = start.stream([Mode::Updates, Mode::Checkpoints, Mode::Tasks]);
            for _ in 0..events {
                if stream.next().await.is_none() {
                    break;
                }
            }
            let control = stream.control();
            drop(stream);
            if events > 0 {
                control.ended().await;
            }
            same(
                &what,
                to_the_end(&thread, durability).await?,
                expected.clone(),
            )?;
            if durability != Durability::Exit {
                same(
                    &format!("{what}: the history"),
                    story(&thread).await?,
                    told.clone(),
                )?;
            }
            // A run that is dropped lets its steps finish and be saved.
            same(
                &format!("{what}: steps done twice"),
                done.repeated(),
                Vec::new(),
            )?;
            same(&what, done.all(), uncut.all())?;
        }
    }
    Ok(())
}

pub(in crate::conformance) async fn steps_kept(p: Play) -> Checked {
    let done = Done::default();
    let graph = Graph::<Case>::new("steps")
        .node(
            "work",
            with(done.clone(), async |done: &Done, _: &Case, ctx: &Ctx| {
                let mut all = Vec::new();
                for n in 0..4 {
                    let before = done.all().len();
                    let word = async {
                        done.did(n.to_string());
                        Ok(format!("result {n}"))
                    };
                    all.push(ctx.step("piece", word).await?);
                    if n < 3 && done.all().len() > before {
                        return Err(NodeError::msg("this far and no further"));
                    }
                }
                Ok::<Update<Case>, _>(log(all.join(",")))
            }),
        )
        .start("work")
        .end("work")
        .build()
        .map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        let mut run = thread.run(Case::update()).durability(durability);
        let state = loop {
            match run.await {
                Ok(Outcome::Done(state)) => break state,
                Err(Error::Node { .. }) => run = thread.resume().durability(durability),
                other => return Err(format!("a run of steps: {other:?}")),
            }
        };
        same(
            "the results",
            state.log,
            vec!["result 0,result 1,result 2,result 3".to_owned()],
        )?;
        same("steps done twice", done.repeated(), Vec::new())?;
        done.clear();
    }
    Ok(())
}
