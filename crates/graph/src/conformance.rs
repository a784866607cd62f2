//! What every store of checkpoints must do: one suite that each implementation runs.
//!
//! Called by the tests of stores: memory's in this crate, SQLite's and Postgres' in theirs. It looks
//! through [`Checkpoints`](crate::Checkpoints) only and uses threads of its own names, so that it also
//! runs on a store that has other threads. It must not know what machines, notes and channels mean.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use paraph_graph::{MemoryStore, conformance};
//! let store = MemoryStore::shared();
//! for rule in conformance::RULES {
//!     assert_eq!(rule.check(&store).await, Ok(()));
//! }
//! # }
//! ```

mod reads;
mod scene;
mod writes;

use crate::{Error, Store};
use futures::{FutureExt, future::BoxFuture};
use reads::*;
use scene::Scene;
use writes::*;

/// What a rule finds.
type Checked = Result<(), String>;

/// One thing that every store must do.
pub struct Rule {
    /// The rule, as a sentence.
    pub name: &'static str,
    run: fn(Store) -> BoxFuture<'static, Checked>,
}

/// A rule that a store breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {why}")]
pub struct Broken {
    /// The rule.
    pub rule: &'static str,
    /// What was seen instead.
    pub why: String,
}

impl Rule {
    /// Checks a store. Needs a Tokio runtime.
    ///
    /// # Errors
    /// What the store does instead.
    pub async fn check(&self, store: &Store) -> Result<(), Broken> {
        (self.run)(store.clone()).await.map_err(|why| Broken {
            rule: self.name,
            why,
        })
    }
}

macro_rules! rules {
    ($($function:ident: $name:literal,)*) => {
        /// All rules.
        pub const RULES: &[Rule] = &[
            $(Rule { name: $name, run: |store| $function(Scene::on(store, stringify!($function))).boxed() },)*
        ];
    };
}

rules! {
    empty: "a scope on which nothing was saved has nothing",
    roundtrip: "what was put is loaded, as the head and by its id",
    compare_and_set: "a put that expects another head is refused and changes nothing",
    two_writers: "of two writers who saw the same head one wins and the other gets a conflict",
    unknown_parent: "a put after a checkpoint that is not there is refused and changes nothing",
    lease: "a thread has one holder at a time, and each lease a greater epoch",
    fence: "what is written under an older epoch is refused, put and notes alike",
    notes: "a note replaces the one with its task, kind and key, and comes last",
    notes_of_a_put: "notes that come with a put follow the same rule",
    notes_belong: "notes belong to their checkpoint alone",
    unknown_note: "notes on a checkpoint that is not there are refused, all of them",
    history: "the history is newest first, and before, limit, parent and filter pick from it",
    forks: "a fork follows its parent and knows nothing of what came after that",
    deltas: "the pieces of a channel make its whole value at every point of the history",
    scopes: "threads and namespaces have nothing to do with each other, however alike their names",
    hundred: "a hundred threads are written to at the same time",
    texts: "any text is kept: of every script, with NUL, and ten megabytes long",
    order: "writes take effect in the order in which they were called",
    dropped: "a write whose future is dropped happened or did not, but never in part",
    long: "a long line of checkpoints is read from any point",
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. })
}

fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::UnknownCheckpoint { .. })
}
