//! Going back: histories, forks, replays, older questions answered otherwise; copies and what is left after
//! pruning.

use super::{
    super::{
        Checked,
        scene::{fails, same, text},
    },
    Play,
    graphs::{Case, asking, chain, log},
    story, to_the_end,
};
use crate::{Durability, Error, HistoryQuery, Keep, Source, State as _, Thread};
use serde_json::json;

/// What the log says at the head.
async fn lines(thread: &Thread<Case>) -> Result<String, String> {
    let now = thread.snapshot(None).await.map_err(text)?;
    Ok(now.ok_or("nothing is there")?.state.log.join(" "))
}

pub(in crate::conformance) async fn history_read(p: Play) -> Checked {
    let graph = chain().map_err(text)?;
    let thread = p.thread(&graph, "");
    for turn in 0..3 {
        let run = thread.run(Case::update().turn(turn)).metadata("turn", turn);
        run.await.map_err(text)?;
    }
    let all = thread.history().await.map_err(text)?;
    same("how many there are", all.len(), 12)?;
    let steps: Vec<i64> = all.iter().map(|entry| entry.metadata.superstep).collect();
    same("the supersteps", steps, (-1..11).rev().collect())?;
    let inputs = all
        .iter()
        .filter(|entry| entry.metadata.source == Source::Input);
    same("the inputs", inputs.count(), 3)?;
    let parents = all
        .windows(2)
        .all(|pair| pair[0].parent == Some(pair[1].id));
    same("whether each follows the one before", parents, true)?;
    let query = HistoryQuery {
        filter: [("turn".to_owned(), json!(1))].into_iter().collect(),
        limit: Some(3),
        ..HistoryQuery::default()
    };
    let some = thread.history_of(&query).await.map_err(text)?;
    same("some of it", &some[..], &all[4..7])?;
    for (i, (case, next)) in story(&thread).await?.into_iter().rev().enumerate() {
        // Of each four the first is an input.
        same("the log's length", case.log.len(), i - i / 4)?;
        same("what is due", next.len(), usize::from(i % 4 != 3))?;
    }
    Ok(())
}

pub(in crate::conformance) async fn forks_apart(p: Play) -> Checked {
    let graph = chain().map_err(text)?;
    for durability in super::ALL {
        let thread = p.thread(&graph, format!("{durability:?}"));
        thread.run(Case::update()).await.map_err(text)?;
        let old = thread.history().await.map_err(text)?;
        let before = story(&thread).await?;
        let [_, at_c, at_b, _] = old.as_slice() else {
            return Err("not four checkpoints".to_owned());
        };
        // A replay runs what came after, on a branch of its own.
        let again = thread.resume().at(at_b.id).durability(durability).await;
        same(
            "the replay",
            again.map_err(text)?.state().log.join(" "),
            "a 0 b 1 c 2".to_owned(),
        )?;
        // A fork with another state, and one as another node.
        let fork = thread
            .fork_with(at_c.id, log("forked").turn(5))
            .await
            .map_err(text)?;
        let state = thread.resume().durability(durability).await.map_err(text)?;
        same(
            "the fork",
            state.state().log.join(" "),
            "a 0 b 1 forked c 3".to_owned(),
        )?;
        let edited = vec![(0, "b".to_owned()), (5, "c".to_owned())];
        same("its items", state.state().items.clone(), edited)?;
        let other = [("a".into(), log("again").into())];
        thread.fork_as(at_b.id, other).await.map_err(text)?;
        let state = thread.resume().durability(durability).await.map_err(text)?;
        same(
            "the other",
            state.state().log.join(" "),
            "a 0 again b 2 c 3".to_owned(),
        )?;
        // What was there is as it was.
        let now = story(&thread).await?;
        let first = now.get(now.len() - 4..).unwrap_or_default();
        same("the old branch", first, &before[..])?;
        let entry = thread.history().await.map_err(text)?;
        let entry = entry.iter().find(|entry| entry.id == fork);
        same(
            "what the fork follows",
            entry.and_then(|e| e.parent),
            Some(at_c.id),
        )?;
    }
    Ok(())
}

pub(in crate::conformance) async fn old_questions(p: Play) -> Checked {
    let graph = asking().map_err(text)?;
    let thread = p.thread(&graph, "");
    let paused = thread.run(Case::update()).await.map_err(text)?;
    let question = paused
        .interrupts()
        .first()
        .ok_or("it does not ask")?
        .clone();
    let asked_at = thread
        .snapshot(None)
        .await
        .map_err(text)?
        .ok_or("nothing")?
        .checkpoint;
    thread.answer(&question.id, "yes").await.map_err(text)?;
    same(
        "the first answer",
        lines(&thread).await?,
        "a yes side end".to_owned(),
    )?;
    // The same question again, on a new branch, in one call; on the old one it is used up.
    let used = |e: &Error| matches!(e, Error::NothingToResume(_));
    fails("the old id", thread.answer(&question.id, "no").await, used)?;
    thread
        .answer(&question.id, "no")
        .at(asked_at)
        .await
        .map_err(text)?;
    same(
        "the other answer",
        lines(&thread).await?,
        "a no side end".to_owned(),
    )?;
    // A replay asks under a new id.
    let again = thread.resume().at(asked_at).await.map_err(text)?;
    let renewed = again
        .interrupts()
        .first()
        .ok_or("it does not ask again")?
        .id
        .clone();
    same(
        "whether the id is the old one",
        renewed == question.id,
        false,
    )?;
    thread.answer(&renewed, "maybe").await.map_err(text)?;
    same(
        "the third answer",
        lines(&thread).await?,
        "a maybe side end".to_owned(),
    )
}

pub(in crate::conformance) async fn whole_threads(p: Play) -> Checked {
    let graph = asking().map_err(text)?;
    let thread = p.thread(&graph, "original");
    thread.run(Case::update()).await.map_err(text)?;
    let copy = p.thread(&graph, "copy");
    p.threads
        .copy(thread.name(), copy.name())
        .await
        .map_err(text)?;
    // The copy asks for itself, under ids of its own.
    let now = copy
        .snapshot(None)
        .await
        .map_err(text)?
        .ok_or("the copy is empty")?;
    same("what is due in the copy", now.next.len(), 2)?;
    let end = to_the_end(&copy, Durability::Sync).await?;
    same(
        "the copy's end",
        end.log.join(" "),
        "a yes to \"sure?\" side end".to_owned(),
    )?;
    let now = thread
        .snapshot(None)
        .await
        .map_err(text)?
        .ok_or("nothing is there")?;
    same("what the original still asks", now.interrupts.len(), 1)?;
    to_the_end(&thread, Durability::Sync).await?;
    // Little is left, and the next run goes on from it.
    for keep in [Keep::Last(1), Keep::Since(u64::MAX)] {
        let before = lines(&thread).await?;
        p.threads.prune(thread.name(), keep).await.map_err(text)?;
        same("what is left", lines(&thread).await?, before.clone())?;
        same(
            "how much is left",
            thread.history().await.map_err(text)?.len(),
            1,
        )?;
        thread.run(Case::update()).await.map_err(text)?;
        to_the_end(&thread, Durability::Sync).await?;
        let more = format!("{before} a yes to \"sure?\" side end");
        same("what came after", lines(&thread).await?, more)?;
    }
    // A run is undone: the thread stands where it stood, and goes on from there.
    let stood = thread
        .snapshot(None)
        .await
        .map_err(text)?
        .ok_or("nothing")?
        .checkpoint;
    let before = lines(&thread).await?;
    thread.run(log("never said")).await.map_err(text)?;
    p.threads
        .prune(thread.name(), Keep::UpTo(stood))
        .await
        .map_err(text)?;
    same("where it stands", lines(&thread).await?, before)?;
    let nothing = |e: &Error| matches!(e, Error::NothingToResume(_));
    fails("resuming what was undone", thread.resume().await, nothing)?;
    p.threads.delete(thread.name()).await.map_err(text)?;
    same(
        "what is left then",
        thread.history().await.map_err(text)?.len(),
        0,
    )?;
    thread.run(Case::update()).await.map_err(text)?;
    same(
        "a new thread of the name",
        lines(&thread).await?,
        "a side".to_owned(),
    )
}
