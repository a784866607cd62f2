//! One task under its node's policy: attempts, timeouts, the cache, and being ended from outside.

use crate::{
    Command, Ctx, Error, NodeError, State,
    checkpoint::{Note, NoteKind},
    control::Halt,
    ctx::halted,
    error::{Kind, TimedOut},
    graph::Shape,
    ids::Birth,
    node::{Call, Payload},
    policy::Policy,
    run::Failed,
    session::{Session, lock},
};
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use std::{any::Any, future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

/// One task to be done, apart from the machine that knows it.
pub(crate) struct Assignment {
    pub(crate) node: usize,
    pub(crate) birth: Birth,
    pub(crate) payload: Option<Payload>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) failed: Option<Arc<Failed>>,
    pub(crate) tried: Tried,
}

/// Attempts made so far, as a note says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried {
    pub(crate) attempts: u32,
    /// When the next one is due, in milliseconds since the Unix epoch.
    pub(crate) due_ms: u64,
}

/// How a task ended.
pub(crate) struct Settled<S: State> {
    pub(crate) result: Result<Command<S>, NodeError>,
    pub(crate) attempts: u32,
    pub(crate) cached: bool,
}

/// Runs one task to its end.
pub(crate) async fn attempt<S: State>(
    shape: &Arc<Shape<S>>,
    session: &Arc<Session>,
    task: &Assignment,
    state: &S,
    halt: &Halt,
) -> Settled<S> {
    let policy = &shape.policies[task.node];
    let mut attempts = task.tried.attempts;
    let settled = |result, attempts| Settled {
        result,
        attempts,
        cached: false,
    };
    let cache_key = match shape.cached(task, state) {
        None => None,
        Some((_, Some(command))) => {
            return Settled {
                cached: true,
                ..settled(Ok(command), attempts)
            };
        }
        Some((key, None)) => Some(key),
    };
    if attempts > 0 {
        let now = session.run.clock.now_ms();
        let wait = Duration::from_millis(task.tried.due_ms.saturating_sub(now));
        if !wait.is_zero() && !pause(halt, wait).await {
            return settled(Err(NodeError::halted()), attempts);
        }
    }
    loop {
        attempts += 1;
        let name = shape.topology.name(task.node);
        let mut ctx = Ctx::new(session.clone(), name, task.birth, attempts, halt.clone());
        ctx.failed.clone_from(&task.failed);
        let result = once(shape, task, state, &ctx).await;
        let error = match result {
            Err(NodeError(Kind::Failed(e))) => NodeError(Kind::Failed(e)),
            other => {
                if let (Ok(command), Some(key)) = (&other, cache_key) {
                    shape.remember(key, command);
                }
                return settled(other, attempts);
            }
        };
        if attempts >= policy.attempts || !is_transient(&error) || !(policy.retry_on)(&error) {
            return settled(Err(error), attempts);
        }
        let wait = policy.wait_with(
            attempts,
            task.birth.at.as_u64_pair().1 ^ u64::from(task.birth.index),
        );
        // Boxed, as what follows a failure mostly is: a task that does not fail need not keep room for it.
        let noted = Box::pin(note_retry(session, task, attempts, wait)).await;
        if let Err(e) = noted {
            return settled(Err(e.into()), attempts);
        }
        if !pause(halt, wait).await {
            return settled(Err(NodeError::halted()), attempts);
        }
    }
}

/// Whether another attempt could possibly help: a store that refuses will refuse again.
fn is_transient(error: &NodeError) -> bool {
    !error
        .downcast_ref::<Error>()
        .is_some_and(Error::ends_the_run)
}

/// Waits, unless the task is to end first.
async fn pause(halt: &Halt, wait: Duration) -> bool {
    tokio::select! {
        biased;
        () = halt.cancelled() => false,
        () = tokio::time::sleep(wait) => true,
    }
}

async fn note_retry(
    session: &Session,
    task: &Assignment,
    attempts: u32,
    wait: Duration,
) -> Result<(), Error> {
    if session.journal.store.is_none() {
        return Ok(());
    }
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let tried = Tried {
        attempts,
        due_ms: session.run.clock.now_ms().saturating_add(wait_ms),
    };
    let note = Note {
        task: session.task(task.birth),
        kind: NoteKind::Retry,
        key: String::new(),
        json: serde_json::to_string(&tried).map_err(Error::store)?,
    };
    session.journal.note(vec![note], Vec::new(), true).await
}

/// One attempt.
async fn once<S: State>(
    shape: &Shape<S>,
    task: &Assignment,
    state: &S,
    ctx: &Ctx,
) -> Result<Command<S>, NodeError> {
    let call = Call {
        state,
        ctx,
        payload: task.payload.as_deref(),
    };
    // The call is made inside, so that a panic before the first await is caught too.
    let work = AssertUnwindSafe(async { shape.nodes[task.node].call(call).await })
        .catch_unwind()
        .map(|out| out.unwrap_or_else(|panic| Err(panicked(&*panic))));
    let policy = &shape.policies[task.node];
    let timeout = task.timeout.or(policy.timeout);
    let unlimited = timeout.is_none() && policy.idle.is_none() && ctx.session.run.permits.is_none();
    match shape.leaf[task.node] {
        true if unlimited => tokio::select! {
            biased;
            out = work => out,
            () = halted(ctx) => Err(NodeError::halted()),
        },
        true => tokio::select! {
            biased;
            // Boxed, so that only tasks under a limit need the room that it takes.
            out = Box::pin(permitted(work, ctx, timeout, policy)) => out,
            () = halted(ctx) => Err(NodeError::halted()),
        },
        // A subgraph ends its own tasks, and they take the permits.
        false if unlimited => work.await,
        false => Box::pin(limited(work, ctx, timeout, policy)).await,
    }
}

async fn permitted<S: State>(
    work: impl Future<Output = Result<Command<S>, NodeError>>,
    ctx: &Ctx,
    timeout: Option<Duration>,
    policy: &Policy,
) -> Result<Command<S>, NodeError> {
    if let Some(permits) = &ctx.session.run.permits {
        *lock(&ctx.permit) = Some(permits.clone().acquire_owned().await?);
    }
    let out = limited(work, ctx, timeout, policy).await;
    lock(&ctx.permit).take();
    out
}

async fn limited<S: State>(
    work: impl Future<Output = Result<Command<S>, NodeError>>,
    ctx: &Ctx,
    timeout: Option<Duration>,
    policy: &Policy,
) -> Result<Command<S>, NodeError> {
    if timeout.is_none() && policy.idle.is_none() {
        return work.await;
    }
    tokio::select! {
        biased;
        out = work => out,
        () = after(timeout) => Err(TimedOut { after: timeout.unwrap_or_default(), idle: false }.into()),
        () = silent(policy.idle, ctx) => Err(TimedOut { after: policy.idle.unwrap_or_default(), idle: true }.into()),
    }
}

async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Resolves when the task has shown no sign of life for `limit`.
async fn silent(limit: Option<Duration>, ctx: &Ctx) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    // Looking ten times as often as the limit makes it at most a tenth late.
    let look = (limit / 10).max(Duration::from_millis(1));
    let (mut seen, mut since) = (ctx.pulse.count(), tokio::time::Instant::now());
    while since.elapsed() < limit {
        tokio::time::sleep(look).await;
        let now = ctx.pulse.count();
        if now != seen {
            (seen, since) = (now, tokio::time::Instant::now());
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> NodeError {
    NodeError::msg(format!("panicked: {}", words_of(panic)))
}

/// Work whose panics end as an error: for what runs between nodes, which have their own guard.
///
/// No `async fn`, which would hold the work twice: as an argument and where it is awaited.
pub(crate) fn guarded<T>(
    work: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    let done = AssertUnwindSafe(work).catch_unwind();
    done.map(|done| done.unwrap_or_else(|panic| Err(as_error(&*panic))))
}

/// The same for work that waits for nothing.
pub(crate) fn guarded_now<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(as_error(&*panic)))
}

fn as_error(panic: &(dyn Any + Send)) -> Error {
    Error::Panicked(words_of(panic).to_owned())
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message")
}
