//! What a run keeps back of its tokens and its money, so that the model can still be asked for a last answer when the
//! rest is used up.
//!
//! Kept when the run's session is opened, in every process anew; given back to the purse at the moment of the last
//! answer, which is then paid for like anything else.

use paraph_gateway::{Budget, Spend};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is kept back.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// How many tokens, in and out; 0 for none.
    tokens: u64,
    kept: Mutex<Option<Budget>>,
}

impl Reserve {
    /// So many tokens, once there is a purse to keep them back from.
    pub(crate) fn of(tokens: u64) -> Reserve {
        Reserve {
            tokens,
            kept: Mutex::default(),
        }
    }

    /// Keeps it back, with the money that it costs at worst. A purse that has not so much left keeps nothing: its run
    /// ends without a last answer.
    pub(crate) fn keep(&self, budget: &Budget, costs: impl Fn(u64) -> Spend) {
        if self.tokens == 0 {
            return;
        }
        let kept = budget.keep_back(costs(self.tokens));
        if let Err(stop) = &kept {
            tracing::debug!(%stop, "nothing is kept back for a last answer");
        }
        *self.kept() = kept.ok();
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.kept().is_some()
    }

    /// Gives back what was kept, and says how many tokens that were; nothing if there is nothing to give back.
    pub(crate) fn release(&self) -> Option<u64> {
        let kept = self.kept().take();
        kept.map(|_| self.tokens)
    }

    fn kept(&self) -> MutexGuard<'_, Option<Budget>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
