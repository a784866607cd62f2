//! Where an agent's threads and its gateway's records are kept. The program opens the stores; agents do not
//! know what is behind them.

use paraph_gateway::{Builder, Gateway, SealKey};
use std::sync::Arc;

/// The stores of an agent. For what is to outlive the process, both are the same database.
///
/// ```
/// use paraph_agents::{Case, Rehearsal, Stores, Terms, support};
/// use paraph_gateway::Dialect;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), paraph_agents::Error> {
/// // Those of `paraph_store::open` are as good, and last.
/// let stores = Stores::in_memory();
/// let terms = Terms::new(Arc::new(Rehearsal::Support), "case-7");
/// let case = Case { user: 42, question: "Can I get a refund now?".into() };
/// let mut run = support(&stores, Dialect::Strict, &[], &[])?.start(&case, &terms).await?;
/// let id = run.run_id();
/// for _ in 0..8 {
///     run.next().await; // …and then the process is killed.
/// }
/// let control = run.control();
/// drop(run);
/// control.ended().await;
///
/// let again = support(&stores, Dialect::Strict, &[], &[])?.resume(id, &terms).await?;
/// assert_eq!(again.result().await.trace().len(), 3);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Stores {
    /// Threads: checkpoints, runs, events.
    pub threads: paraph_graph::Store,
    /// The gateway's records and counters.
    pub records: Arc<dyn paraph_gateway::Store>,
    /// The key under which approvals are proved; without one none is asked for.
    pub seal: Option<SealKey>,
}

impl Stores {
    /// Fresh ones that die with the process.
    #[must_use]
    pub fn in_memory() -> Stores {
        Stores {
            threads: paraph_graph::MemoryStore::shared(),
            records: paraph_gateway::MemoryStore::shared(),
            seal: None,
        }
    }

    /// Begins a gateway on its records.
    pub(crate) fn gateway(&self) -> Builder {
        let builder = Gateway::builder(self.records.clone());
        match &self.seal {
            Some(key) => builder.seal(key.clone()),
            None => builder,
        }
    }
}

impl std::fmt::Debug for Stores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stores")
    }
}
