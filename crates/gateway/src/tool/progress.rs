//! How a tool says how far it is while it runs, within bounds, and never in the way of its own work.
//!
//! A tool has a [`Progress`], the session reads what is said on its other end (`Queue`) and hands it to
//! the caller's [`Listener`]. What comes faster than it is read is left out and counted.

use futures::future::BoxFuture;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How many reports wait to be read at most.
const MAX_WAITING: usize = 64;
/// How many reports of one call are passed on: they are kept with the run's events.
const MAX_REPORTS: u64 = 1_000;
/// How many bytes of JSON one report may have.
const MAX_REPORT: usize = 4_096;

/// Says how far a tool is. Clones speak for the same call, from any thread; once the call has ended
/// nobody listens.
///
/// Up to 1000 reports of a call are passed on, each of up to 4096 bytes of JSON, and up to 64 wait to
/// be read. Others are left out, and the next one says how many.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<Queue>>);

/// Reports on their way from a tool to whoever listens.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Said>,
    /// How many were taken in so far.
    taken: u64,
    /// How many were left out since the last one that was taken in.
    left_out: u64,
    ended: bool,
}

/// What a tool said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// JSON text.
    pub(crate) json: String,
    pub(crate) left_out: u64,
}

/// One report, as the caller of a tool gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressReport {
    /// The tool.
    pub tool: String,
    /// JSON text, redacted.
    pub json: String,
    /// How many reports before this one were left out: too long, too many, or too fast.
    pub left_out: u64,
}

/// Who is told how far a tool is.
pub trait Listener: Send + Sync {
    /// Takes one report. The tool goes on meanwhile.
    fn progress(&self, report: ProgressReport) -> BoxFuture<'_, ()>;
}

impl Progress {
    /// One that is read at the other end.
    pub(crate) fn to(queue: Arc<Queue>) -> Progress {
        Progress(Some(queue))
    }

    /// Says it: a text, a share, anything that can be written as JSON. Never waits and never fails.
    pub fn report(&self, value: impl Serialize) {
        if let Some(queue) = &self.0 {
            queue.put(serde_json::to_string(&value).ok());
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a report in, or leaves it out.
    fn put(&self, json: Option<String>) {
        let mut state = self.lock();
        let fits = |json: &String| json.len() <= MAX_REPORT;
        let room = !state.ended && state.waiting.len() < MAX_WAITING && state.taken < MAX_REPORTS;
        match json.filter(fits).filter(|_| room) {
            Some(json) => {
                let left_out = std::mem::take(&mut state.left_out);
                state.taken += 1;
                state.waiting.push_back(Said { json, left_out });
                self.news.notify_one();
            }
            None => state.left_out = state.left_out.saturating_add(1),
        }
    }

    /// Nothing is said any more.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.news.notify_one();
    }

    /// The next report; nothing once all are read and the tool has ended. For one reader.
    pub(crate) async fn next(&self) -> Option<Said> {
        loop {
            {
                let mut state = self.lock();
                if let Some(said) = state.waiting.pop_front() {
                    return Some(said);
                }
                if state.ended {
                    return None;
                }
            }
            self.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn read(queue: &Queue) -> Vec<(String, u64)> {
        let next = || queue.next().now_or_never().flatten();
        std::iter::from_fn(next)
            .map(|said| (said.json, said.left_out))
            .collect()
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_counted() {
        let queue = Arc::new(Queue::default());
        let progress = Progress::to(queue.clone());
        progress.report("x".repeat(MAX_REPORT));
        progress.report(f64::NAN.to_string());
        progress.report(serde_json::json!({"share": 0.5}));
        let expected = [
            ("\"NaN\"".to_owned(), 1),
            (r#"{"share":0.5}"#.to_owned(), 0),
        ];
        assert_eq!(read(&queue), expected);

        for n in 0..100 {
            progress.report(n);
        }
        assert_eq!(read(&queue).len(), MAX_WAITING);
        progress.report("late");
        assert_eq!(read(&queue), [("\"late\"".to_owned(), 36)]);
    }

    #[test]
    fn one_call_has_so_many_reports_and_none_after_its_end() {
        let queue = Arc::new(Queue::default());
        let progress = Progress::to(queue.clone());
        let mut passed = 0;
        for n in 0..2_000 {
            progress.report(n);
            passed += read(&queue).len() as u64;
        }
        assert_eq!(passed, MAX_REPORTS);

        let queue = Arc::new(Queue::default());
        let progress = Progress::to(queue.clone());
        progress.report(1);
        queue.end();
        progress.report(2);
        assert_eq!(read(&queue), [("1".to_owned(), 0)]);
        assert_eq!(queue.next().now_or_never(), Some(None));
    }
}
