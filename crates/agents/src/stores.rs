//! Where an agent's threads and its gateway's records are kept. The program opens the stores; agents do not
//! know what is behind them.

use std::sync::Arc;

/// The stores of an agent. For what is to outlive the process, both are the same database.
#[derive(Clone)]
pub struct Stores {
    /// Threads: checkpoints, runs, events.
    pub threads: paraph_graph::Store,
    /// The gateway's records and counters.
    pub records: Arc<dyn paraph_gateway::Store>,
}

impl Stores {
    /// Fresh ones that die with the process.
    #[must_use]
    pub fn in_memory() -> Stores {
        Stores {
            threads: paraph_graph::MemoryStore::shared(),
            records: paraph_gateway::MemoryStore::shared(),
        }
    }
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stores")
    }
}
