//! What the tests of effects have in common: a store whose clock the test turns, the call that most of them make, and
//! what a reply has to be.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test uses a part of it, and a test may panic"
)]

use paraph_gateway::{MemoryStore, Observation, Reply, Scope, Stop, Store, ToolCall, Waiting};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store, and its clock in milliseconds.
pub(crate) fn clocked(start_ms: u64) -> (Arc<dyn Store>, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(start_ms));
    let time = clock.clone();
    let store = MemoryStore::with_clock(move || time.load(Ordering::SeqCst));
    (store, clock)
}

/// The run that most tests are about.
pub(crate) fn scope() -> Scope {
    Scope::new("clerk", "case-7")
}

/// A call that pays so many cents.
pub(crate) fn cents(cents: u32) -> ToolCall {
    ToolCall::native("pay", &format!(r#"{{"cents":{cents}}}"#))
}

/// What a call came to, with or without the ways in which a run can end there.
pub(crate) trait Replied {
    fn reply(self) -> Reply;
}

impl Replied for Reply {
    fn reply(self) -> Reply {
        self
    }
}

impl Replied for Result<Reply, Stop> {
    fn reply(self) -> Reply {
        self.unwrap()
    }
}

/// What the call waits for.
pub(crate) fn waits(replied: impl Replied) -> Waiting {
    match replied.reply() {
        Reply::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

/// What the model reads of it.
pub(crate) fn seen(replied: impl Replied) -> Observation {
    match replied.reply() {
        Reply::Observed(seen) => seen,
        other => panic!("{other:?}"),
    }
}
