//! The places at which a child may end, counted, and the end at a chosen one.
//!
//! Called by whatever stands between a child and what outlives it: its stores (`failpoint`, `effects/watched`) and the
//! outside world (`effects/acting`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::child::{Stop, When};

/// Counts what a child does to the world that outlives it, and ends the child before or after a chosen deed.
#[derive(Debug, Default)]
pub(crate) struct Fuse {
    stop: Option<Stop>,
    next: AtomicUsize,
    names: Mutex<Vec<&'static str>>,
}

impl Fuse {
    pub(crate) fn new(stop: Option<Stop>) -> Self {
        Fuse {
            stop,
            ..Fuse::default()
        }
    }

    /// The deeds so far, in the order in which they began, with spaces between.
    pub(crate) fn deeds(&self) -> String {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.join(" ")
    }

    /// One deed more; its number. Must come before it is begun, which may be at once.
    pub(crate) fn begin(&self, name: &'static str) -> usize {
        let at = {
            // Under one lock, so that the order of the names is that of the numbers.
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.push(name);
            self.next.fetch_add(1, Ordering::SeqCst)
        };
        self.burn(at, When::Before);
        at
    }

    /// A deed is done, and nobody has heard of it yet.
    pub(crate) fn end(&self, at: usize) {
        self.burn(at, When::After);
    }

    /// Ends the process without a word to anybody, if it is to end here. Nothing in it runs any more.
    fn burn(&self, at: usize, when: When) {
        let here = |stop: &Stop| stop.write == at && stop.when == when;
        if self.stop.as_ref().is_some_and(here) {
            std::process::abort();
        }
    }
}
