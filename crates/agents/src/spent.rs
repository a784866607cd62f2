//! What a run has used of its model, as part of its state: saved with each decision, so that neither a step
//! nor a token is lost or counted twice when the run goes on in another process.
//!
//! The gateway counts calls and time, and knows of the rest what it was told last; the larger figure counts.

use paraph_gateway::Usage;
use paraph_graph::RunId;
use serde::{Deserialize, Serialize};

/// What a run has used of its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// The run. Another run on the same state (a replay) begins at nothing.
    run: RunId,
    /// The number of the last step before the run's own.
    pub(crate) base: u64,
    /// Decisions.
    steps: u64,
    /// Attempts of the model that are behind these decisions: which line of a script comes next.
    pub(crate) attempts: u64,
    tokens: u64,
    micro_dollars: u64,
    unpriced: u64,
}

impl Spent {
    /// What a state says of this run, whose last step has the number `step`.
    pub(crate) fn of(run: RunId, saved: Option<&Spent>, step: u64) -> Spent {
        match saved {
            Some(saved) if saved.run == run => saved.clone(),
            _ => Spent::now(run, step, &Usage::default(), 0),
        }
    }

    pub(crate) fn now(run: RunId, base: u64, used: &Usage, attempts: u64) -> Spent {
        Spent {
            run,
            base,
            steps: used.steps,
            attempts,
            tokens: used.tokens,
            micro_dollars: used.micro_dollars,
            unpriced: used.unpriced,
        }
    }

    /// As the gateway takes it.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            steps: self.steps,
            tokens: self.tokens,
            micro_dollars: self.micro_dollars,
            unpriced: self.unpriced,
            ..Usage::default()
        }
    }
}
