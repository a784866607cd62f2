//! One tool at work: within its time, with what the program injects, and with a listener for its progress.
//!
//! Called by `finish` when everything has been checked. It decides nothing and records nothing.

use super::{Session, Ticket};
use crate::budget::Late;
use crate::json::{Bounds, Json};
use crate::tool::{
    Injections, Listener, Progress, ProgressReport, Queue, Registered, ToolContext, Tried,
};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::Instant;

/// Runs the tool, within its own time and the run's, and says how many milliseconds it took.
pub(super) async fn run(
    session: &Session,
    tool: &Registered,
    ticket: &Ticket<'_>,
    injections: &Injections<'_>,
) -> (Result<Tried, Late>, u64) {
    let started = Instant::now();
    let ms = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let parts = &session.0.parts;
    let (key, call) = (&ticket.place.record.key, ticket.call);
    let context = |progress| ToolContext::new(key, injections, &parts.provided, progress);
    let Some(listener) = injections.listener else {
        let context = context(Progress::default());
        let running = tool.run(call, &context);
        let tried = session.0.budget.within(tool.timeout, running).await;
        return (tried, ms());
    };
    let queue = Arc::new(Queue::default());
    let context = context(Progress::to(queue.clone()));
    let mut telling = pin!(tell(session, tool, &queue, listener));
    let working = async {
        let mut running = pin!(tool.run(call, &context));
        poll_fn(|cx| {
            // It is not over before the queue is.
            let _ = telling.as_mut().poll(cx);
            running.as_mut().poll(cx)
        })
        .await
    };
    let tried = session.0.budget.within(tool.timeout, working).await;
    let ms = ms();
    // What was said in time is told in full: a slow listener takes none of the tool's time.
    queue.end();
    telling.await;
    (tried, ms)
}

/// Passes a tool's reports on, without secrets, until it has ended and all are told.
async fn tell(session: &Session, tool: &Registered, queue: &Queue, listener: &dyn Listener) {
    let redactor = &session.0.parts.redactor;
    while let Some(said) = queue.next().await {
        let Ok(json) = Json::read(&said.json, Bounds::default()) else {
            continue;
        };
        let report = ProgressReport {
            tool: tool.spec.name.clone(),
            json: redactor.json(json.view()),
            left_out: said.left_out,
        };
        listener.progress(report).await;
    }
}
