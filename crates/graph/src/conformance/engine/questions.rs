//! Questions, answers, and writes while something is open.

use super::{
    super::{
        Checked,
        scene::{fails, same, text},
    },
    ALL, Play,
    graphs::{Case, asking, log},
};
use crate::{Ctx, Error, Graph, NodeError, Policy, State as _, Update, with};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

pub(in crate::conformance) async fn questions_by_id(p: Play) -> Checked {
    const ASK: crate::Each<u32> = crate::Each::new("ask");
    let runs = Arc::new(AtomicU32::new(0));
    let graph = Graph::<Case>::new("questions")
        .each(
            ASK,
            with(
                runs.clone(),
                async |runs: &Arc<AtomicU32>, n: u32, _: &Case, ctx: &Ctx| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    let said: String = ctx.interrupt("q", n)?;
                    Ok(log(format!("{n} {said}")))
                },
            ),
        )
        .start_branch(|_| ASK.send_all(0..3), ASK)
        .end(ASK)
        .build()
        .map_err(text)?;
    for durability in ALL {
        runs.store(0, Ordering::SeqCst);
        let thread = p.thread(&graph, format!("{durability:?}"));
        let paused = thread
            .run(Case::update())
            .durability(durability)
            .await
            .map_err(text)?;
        let asked = paused.interrupts().to_vec();
        let questions: Vec<_> = asked.iter().map(|q| q.question.clone()).collect();
        same(
            "the questions",
            questions,
            vec![json!(0), json!(1), json!(2)],
        )?;
        let row = p.threads.thread(thread.name()).await.map_err(text)?;
        same(
            "those of the row",
            row.map(|r| r.interrupts),
            Some(asked.clone()),
        )?;
        let [first, second, third] = asked.as_slice() else {
            return Err("not three questions".to_owned());
        };
        let answer = |id: &str| thread.answer(id, "yes").durability(durability);
        let left = answer(&second.id).await.map_err(text)?;
        same(
            "what is open",
            left.interrupts(),
            &[first.clone(), third.clone()][..],
        )?;
        let used = |e: &Error| matches!(e, Error::UnknownInterrupt(_));
        fails("a second answer", answer(&second.id).await, used)?;
        fails("an answer to nothing", answer("nobody asked").await, used)?;
        let rest = [
            (third.id.clone(), json!("3")),
            (first.id.clone(), json!("1")),
        ];
        let state = thread
            .answers(rest)
            .durability(durability)
            .await
            .map_err(text)?;
        let state = state.done().map_err(text)?;
        same(
            "what was said",
            state.log,
            vec!["0 1".into(), "1 yes".into(), "2 3".into()],
        )?;
        // Those who were not answered did not run.
        same("how often they ran", runs.load(Ordering::SeqCst), 6)?;
        let nothing = |e: &Error| matches!(e, Error::NothingToResume(_));
        fails(
            "an answer to a thread that is over",
            answer(&first.id).await,
            nothing,
        )?;
    }
    Ok(())
}

pub(in crate::conformance) async fn written_between(p: Play) -> Checked {
    let graph = asking().map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        let paused = thread
            .run(Case::update())
            .durability(durability)
            .await
            .map_err(text)?;
        let question = paused
            .interrupts()
            .first()
            .ok_or("it does not ask")?
            .clone();
        // An update leaves what is open, and what the sibling wrote.
        thread.update(Case::update().turn(7)).await.map_err(text)?;
        let now = thread
            .snapshot(None)
            .await
            .map_err(text)?
            .ok_or("nothing is there")?;
        same("what is asked", now.interrupts, vec![question.clone()])?;
        same(
            "the log",
            now.state.log.clone(),
            vec!["a".to_owned(), "side".to_owned()],
        )?;
        let done = thread
            .answer(&question.id, "yes")
            .durability(durability)
            .await;
        let state = done.map_err(text)?.done().map_err(text)?;
        same(
            "the state",
            (state.turn, state.log.join(" ")),
            (7, "a yes side end".to_owned()),
        )?;
        // As the node that asks: it is not asked any more, and its way is followed.
        let paused = thread
            .run(Case::update())
            .durability(durability)
            .await
            .map_err(text)?;
        same("the questions", paused.interrupts().len(), 1)?;
        thread
            .update_as("ask", log("by hand"))
            .await
            .map_err(text)?;
        let state = thread.resume().durability(durability).await.map_err(text)?;
        let state = state.done().map_err(text)?;
        let rest = state.log.get(4..).unwrap_or_default().join(" ");
        same("the rest of the log", rest, "a by hand side end".to_owned())?;
        // As the end: nothing is due.
        thread
            .run(Case::update())
            .durability(durability)
            .await
            .map_err(text)?;
        thread
            .update_as(crate::END, log("enough"))
            .await
            .map_err(text)?;
        let now = thread
            .snapshot(None)
            .await
            .map_err(text)?
            .ok_or("nothing is there")?;
        same(
            "whether it is over",
            (now.finished, now.next.len()),
            (true, 0),
        )?;
    }
    Ok(())
}

pub(in crate::conformance) async fn failures_kept(p: Play) -> Checked {
    let runs = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let graph = Graph::<Case>::new("failures")
        .node(
            "fine",
            with(
                runs.clone(),
                async |runs: &Arc<(AtomicU32, AtomicU32)>, _: &Case, _: &Ctx| {
                    runs.0.fetch_add(1, Ordering::SeqCst);
                    Ok(log("fine"))
                },
            ),
        )
        .node(
            "fails",
            with(
                runs.clone(),
                async |runs: &Arc<(AtomicU32, AtomicU32)>, case: &Case, ctx: &Ctx| {
                    runs.1.fetch_add(1, Ordering::SeqCst);
                    match case.turn {
                        0 => Err::<Update<Case>, _>(NodeError::msg(format!(
                            "attempt {}",
                            ctx.attempt()
                        ))),
                        _ => Ok(log("mended")),
                    }
                },
            ),
        )
        .policy(
            "fails",
            Policy {
                attempts: 2,
                backoff: Duration::ZERO,
                ..Policy::default()
            },
        )
        .start(["fine", "fails"])
        .end(["fine", "fails"])
        .build()
        .map_err(text)?;
    for durability in ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        let failed = |e: &Error| e.to_string() == "node `fails` failed: attempt 2";
        fails(
            "the run",
            thread.run(Case::update()).durability(durability).await,
            failed,
        )?;
        let now = thread
            .snapshot(None)
            .await
            .map_err(text)?
            .ok_or("nothing is there")?;
        same("what is due", now.next, vec!["fails".into()])?;
        same("the log", now.state.log.clone(), vec!["fine".to_owned()])?;
        let error = now.tasks.iter().find_map(|task| task.error.clone());
        let error = error.ok_or("the failure is not on record")?;
        same(
            "the failure",
            (error.message, error.attempts),
            ("attempt 2".to_owned(), 2),
        )?;
        thread.update(Case::update().turn(1)).await.map_err(text)?;
        let state = thread.resume().durability(durability).await.map_err(text)?;
        same(
            "the state",
            state.state().log.clone(),
            vec!["fine".into(), "mended".into()],
        )?;
        let ran = (
            runs.0.swap(0, Ordering::SeqCst),
            runs.1.swap(0, Ordering::SeqCst),
        );
        same("how often they ran", ran, (1, 3))?;
    }
    Ok(())
}
