//! The one driver: asks the machine what is due, runs it, closes the superstep, and so on.
//!
//! Called for the graph itself by `start.rs`, for subgraphs by `subgraph.rs`. What a run shows of
//! itself, it shows through the session's journal, after it is saved. How a task ended is noted in
//! `settle.rs`.

mod settle;

pub(crate) use settle::note_open;

use crate::{
    Error, Name, State, StoppedBy,
    attempt::{Assignment, Settled, attempt},
    checkpoint::{Note, NoteKind, Source},
    control::Halt,
    event::{EventData, Mode},
    graph::Shape,
    live::Live,
    options::RunOptions,
    run::{Saved, Status},
    session::Session,
    wire::FailureKind,
};
use futures::future::BoxFuture;
use settle::{settle, tell_finished};
use std::{
    panic::resume_unwind,
    sync::{Arc, atomic::Ordering},
    task::Poll,
};
use tokio::{task::JoinSet, time::Instant};

/// How the driver came to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing is due any more.
    Over,
    /// Questions are open.
    Waiting,
    /// Between two supersteps.
    Stopped(StoppedBy),
    /// Ended from outside, perhaps within a superstep.
    Halted,
}

/// Runs supersteps until the run comes to rest.
pub(crate) async fn drive<S: State>(
    live: &mut Live<S>,
    shape: &Arc<Shape<S>>,
    session: &Arc<Session>,
) -> Result<End, Error> {
    let options = &session.run.options;
    let first = live.run.superstep;
    let limit = i64::try_from(options.limit).unwrap_or(i64::MAX);
    let stop = first.saturating_add(limit);
    session.stop.store(stop, Ordering::Relaxed);
    if !options.pause_after.is_empty() && Box::pin(owes_pause(live, shape, session)).await? {
        Box::pin(note_pause(live, session)).await?;
        return Ok(End::Stopped(StoppedBy::Breakpoint));
    }
    loop {
        session
            .superstep
            .store(live.run.superstep, Ordering::Relaxed);
        if live.run.is_over() {
            return Ok(End::Over);
        }
        if session.is_halted() {
            return Ok(End::Halted);
        }
        if live.run.superstep > first && session.run.control.draining() {
            return Ok(End::Stopped(StoppedBy::Drain));
        }
        if !options.pause_before.is_empty() && Box::pin(breaks_before(live, shape, session)).await?
        {
            return Ok(End::Stopped(StoppedBy::Breakpoint));
        }
        if live.run.superstep >= stop {
            return Err(Error::RecursionLimit(options.limit));
        }
        if let Some(end) = superstep(live, shape, session).await? {
            return Ok(end);
        }
        let after = breaks_after(live, shape, session);
        let id = live.close_superstep(shape, session)?;
        if !live.is_told_at_once(shape, session) {
            live.save(shape, session, (id, Source::Loop), Vec::new())
                .await?;
        }
        session.beat();
        if session.is_root() {
            // A reader who cancels or drains on what it reads must not find the run far ahead.
            session.journal.give_way().await;
        }
        if after && !live.run.is_over() {
            session
                .superstep
                .store(live.run.superstep, Ordering::Relaxed);
            Box::pin(note_pause(live, session)).await?;
            return Ok(End::Stopped(StoppedBy::Breakpoint));
        }
    }
}

async fn breaks_before<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
) -> Result<bool, Error> {
    let wanted = &session.run.options.pause_before;
    if std::mem::take(&mut live.passed_breakpoint) {
        return Ok(false);
    }
    let named = |i: usize| is_named(wanted, shape, session, live.run.tasks[i].node);
    if !live.run.due().any(named) {
        return Ok(false);
    }
    note_pause(live, session).await?;
    Ok(true)
}

fn breaks_after<S: State>(live: &Live<S>, shape: &Shape<S>, session: &Session) -> bool {
    let wanted = &session.run.options.pause_after;
    let mut nodes = live.run.tasks.iter().map(|t| t.node);
    !wanted.is_empty() && nodes.any(|n| is_named(wanted, shape, session, n))
}

/// Whether the superstep that led here was to be stopped after, and its process ended before it could say
/// that it had stopped: what was saved says which nodes ran.
async fn owes_pause<S: State>(
    live: &mut Live<S>,
    shape: &Shape<S>,
    session: &Session,
) -> Result<bool, Error> {
    let untouched = live.untouched_since.take();
    let (Some(store), Some(before)) = (&session.journal.store, untouched) else {
        return Ok(false);
    };
    if live.run.is_over() || session.is_halted() {
        return Ok(false);
    }
    // One that was pruned can say nothing.
    let Some(before) = store.load(session.scope(), Some(before)).await? else {
        return Ok(false);
    };
    let wanted = &session.run.options.pause_after;
    let saved: Saved = serde_json::from_slice(&before.machine).map_err(|e| Error::Corrupt {
        thread: session.scope().to_string(),
        checkpoint: before.id,
        why: e.to_string(),
    })?;
    let mut ran = saved
        .tasks
        .iter()
        .filter_map(|task| shape.topology.find(&task.node));
    Ok(ran.any(|node| is_named(wanted, shape, session, node)))
}

fn is_named<S: State>(wanted: &[Name], shape: &Shape<S>, session: &Session, node: usize) -> bool {
    RunOptions::names(wanted, &session.path_of(&shape.topology.nodes[node].name))
}

/// Marks the place, so that resuming does not stop here again.
async fn note_pause<S: State>(live: &Live<S>, session: &Session) -> Result<(), Error> {
    let Some(task) = live.run.tasks.first() else {
        return Ok(());
    };
    let note = Note {
        task: session.task(task.birth),
        kind: NoteKind::Pause,
        key: String::new(),
        json: "true".to_owned(),
    };
    session.journal.note(vec![note], Vec::new(), true).await
}

/// Runs what is due. `None` when every task of the superstep is done.
async fn superstep<S: State>(
    live: &mut Live<S>,
    shape: &Arc<Shape<S>>,
    session: &Arc<Session>,
) -> Result<Option<End>, Error> {
    let mut due = live.run.due();
    let (first, more) = (due.next(), due.next().is_some());
    drop(due);
    let mut step = Step::default();
    match first {
        None => {}
        // A step timeout must be able to end even a task that shares the driver's thread.
        Some(i) if !more && session.run.options.step_timeout.is_none() => {
            alone(live, shape, session, i, &mut step).await?;
        }
        // Boxed: most supersteps have one task, and their run need not keep room for several.
        Some(_) => Box::pin(parallel(live, shape, session, &mut step)).await?,
    }
    if let Some(error) = step.failed {
        return Err(error);
    }
    if live.run.all_done() {
        return Ok(None);
    }
    Ok(Some(match step.stopped {
        Some(why) => End::Stopped(why),
        None if step.halted => End::Halted,
        None => End::Waiting,
    }))
}

/// What came of the tasks of one superstep besides their updates.
#[derive(Default)]
struct Step {
    failed: Option<Error>,
    halted: bool,
    stopped: Option<StoppedBy>,
}

/// One task, on the driver's own thread.
async fn alone<S: State>(
    live: &mut Live<S>,
    shape: &Arc<Shape<S>>,
    session: &Arc<Session>,
    task: usize,
    step: &mut Step,
) -> Result<(), Error> {
    loop {
        begins(live, shape, session, task).await?;
        let assignment = assign(live, session, task);
        let settled = attempt(shape, session, &assignment, &live.state, &session.halt).await;
        if live.run.tasks.len() == 1
            && let Ok(command) = settled.result
        {
            // The common case, on the shortest way: the checkpoint that follows saves and tells.
            if session.journal.is_heard() {
                tell_finished(live, shape, session, task, (&command, settled.cached))?;
            }
            live.run.tasks[task].status = Status::Done;
            live.done[task] = Some(command);
            return Ok(());
        }
        if !Box::pin(settle(live, shape, session, (task, settled), step)).await? {
            return Ok(());
        }
    }
}

/// Several tasks at the same time.
async fn parallel<S: State>(
    live: &mut Live<S>,
    shape: &Arc<Shape<S>>,
    session: &Arc<Session>,
    step: &mut Step,
) -> Result<(), Error> {
    let halt = Arc::new(session.halt.child_token());
    let limit = session.run.options.step_timeout;
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut siblings = Siblings {
        set: JoinSet::new(),
        own: None,
        ended: None,
        shares: limit.is_none(),
    };
    let due: Vec<usize> = live.run.due().collect();
    for (n, &i) in due.iter().enumerate() {
        begins(live, shape, session, i).await?;
        siblings.launch(live, shape, session, (i, n == 0, &halt));
    }
    loop {
        let ended = tokio::select! {
            ended = siblings.next() => ended,
            () = sleep_until(deadline), if !halt.is_cancelled() => {
                let running = due.iter().filter(|&&i| live.run.tasks[i].status == Status::Due);
                let running = running.map(|&i| shape.topology.nodes[live.run.tasks[i].node].name.to_string());
                step.failed.get_or_insert(Error::StepTimeout {
                    superstep: live.run.superstep,
                    after: limit.unwrap_or_default(),
                    running: running.collect(),
                });
                halt.cancel();
                continue;
            }
        };
        let Some(ended) = ended else { break };
        let Some((i, settled)) = ended else {
            step.halted = true;
            continue;
        };
        let settling = settle(live, shape, session, (i, settled), step);
        match siblings.beside(settling).await {
            Ok(true) => {
                siblings.beside(begins(live, shape, session, i)).await?;
                siblings.launch(live, shape, session, (i, false, &halt));
            }
            Ok(false) => {}
            Err(e) => {
                step.failed.get_or_insert(e);
            }
        }
        if step.failed.is_some() {
            // Whoever is inside `ctx.step` may finish and save that step first.
            halt.cancel();
        }
    }
    if let Some(late @ Error::StepTimeout { .. }) = &step.failed {
        note_open(live, session, FailureKind::Timeout, late.to_string()).await?;
    }
    Ok(())
}

/// Tasks that run at the same time: the first with the driver, the others in tasks of the runtime,
/// where they begin at once. The first saves a change of threads, which costs more than most
/// supersteps; it begins when all are launched.
struct Siblings<S: State> {
    /// Dropping the set aborts what still runs; that happens only without a graceful end.
    set: JoinSet<(usize, Settled<S>)>,
    own: Option<BoxFuture<'static, (usize, Settled<S>)>>,
    /// The driver's own task, if it ended while the driver was busy with another.
    ended: Option<(usize, Settled<S>)>,
    /// Whether the driver's thread may be shared: not where a timer must be able to end every task.
    shares: bool,
}

impl<S: State> Siblings<S> {
    fn launch(
        &mut self,
        live: &Live<S>,
        shape: &Arc<Shape<S>>,
        session: &Arc<Session>,
        (task, own, halt): (usize, bool, &Halt),
    ) {
        let assignment = assign(live, session, task);
        let (shape, session) = (shape.clone(), session.clone());
        let (state, halt) = (live.state.clone(), halt.clone());
        let work = async move {
            let settled = attempt(&shape, &session, &assignment, &state, &halt).await;
            drop(state);
            (task, settled)
        };
        if own && self.shares {
            self.own = Some(Box::pin(work));
        } else {
            self.set.spawn(work);
        }
    }

    /// Goes on with the driver's own task while the driver waits for `work`. The journal holds no lock over
    /// a wait, but that task may have been given what `work` waits for: places in the reader's queue, its
    /// turn in a store. And it need not stand still while a sibling is saved.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            let done = work.as_mut().poll(cx);
            if done.is_pending()
                && let Some(own) = &mut self.own
                && let Poll::Ready(ended) = own.as_mut().poll(cx)
            {
                self.own = None;
                self.ended = Some(ended);
            }
            done
        })
        .await
    }

    /// The next that ended, `Some(None)` if it was aborted (panics of nodes are caught inside); `None` when
    /// all have.
    async fn next(&mut self) -> Option<Option<(usize, Settled<S>)>> {
        if let Some(ended) = self.ended.take() {
            return Some(Some(ended));
        }
        std::future::poll_fn(|cx| {
            if let Some(own) = &mut self.own
                && let Poll::Ready(ended) = own.as_mut().poll(cx)
            {
                self.own = None;
                return Poll::Ready(Some(Some(ended)));
            }
            match self.set.poll_join_next(cx) {
                // A panic outside of the node's own code is no end from outside.
                Poll::Ready(Some(Err(e))) if e.is_panic() => resume_unwind(e.into_panic()),
                Poll::Ready(Some(joined)) => Poll::Ready(Some(joined.ok())),
                Poll::Ready(None) if self.own.is_none() => Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Tells that a task begins, if somebody wants to know.
async fn begins<S: State>(
    live: &Live<S>,
    shape: &Shape<S>,
    session: &Session,
    i: usize,
) -> Result<(), Error> {
    if !session.journal.wants(Mode::Tasks) {
        return Ok(());
    }
    let task = &live.run.tasks[i];
    let payload = task.payload.as_ref();
    let start = EventData::TaskStart {
        node: shape.topology.name(task.node),
        payload: payload.and_then(|p| serde_json::from_str(p.get()).ok()),
    };
    let event = session.event(Some(task.birth), start);
    session.journal.tell_in_turn(vec![event]).await
}

/// What a task needs to run without the machine.
fn assign<S: State>(live: &Live<S>, session: &Session, i: usize) -> Assignment {
    let task = &live.run.tasks[i];
    if !live.run.children.is_empty() {
        let children = live.run.children.iter().map(|(k, v)| (k.clone(), *v));
        *crate::session::lock(&session.children) = children.collect();
    }
    Assignment {
        node: task.node,
        birth: task.birth,
        payload: task.payload.clone(),
        timeout: task.timeout,
        failed: task.failed.clone().map(Arc::new),
        tried: live.tried[i],
    }
}
