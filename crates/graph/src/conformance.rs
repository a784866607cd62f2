//! What every store must do: suites that each implementation runs.
//!
//! Called by the tests of stores: memory's in this crate, SQLite's and Postgres' in theirs. [`RULES`] look
//! through [`Checkpoints`] only, [`THREAD_RULES`] through [`Threads`], [`MEMORY_RULES`] through [`Memory`],
//! and [`ENGINE_RULES`] run graphs on a store.
//! They use threads and namespaces of their own names, so that they also run on a store that has others.
//! They must not know what notes and channels mean.
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

mod copies;
mod deletes;
mod engine;
mod logs;
mod memories;
mod prunes;
mod reads;
mod rows;
mod runs;
mod scene;
mod stage;
mod strange;
mod writes;

use crate::{Checkpoints, Error, Memory, Threads};
use copies::*;
use deletes::*;
use engine::*;
use futures::{FutureExt, future::BoxFuture};
use logs::*;
use memories::*;
use prunes::*;
use reads::*;
use rows::*;
use runs::*;
use scene::Scene;
use stage::Stage;
use std::sync::Arc;
use strange::*;
use writes::*;

/// What a rule finds.
type Checked = Result<(), String>;

/// One thing that every store of a kind must do.
pub struct Rule<S: ?Sized + 'static = dyn Checkpoints> {
    /// The rule, as a sentence.
    pub name: &'static str,
    run: fn(Arc<S>) -> BoxFuture<'static, Checked>,
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

impl<S: ?Sized> Rule<S> {
    /// Checks a store. Needs a Tokio runtime.
    ///
    /// # Errors
    /// What the store does instead.
    pub async fn check(&self, store: &Arc<S>) -> Result<(), Broken> {
        (self.run)(store.clone()).await.map_err(|why| Broken {
            rule: self.name,
            why,
        })
    }
}

macro_rules! rules {
    ($(#[$doc:meta])* $rules:ident: $kind:ty, $scene:ty; $($function:ident: $name:literal,)*) => {
        $(#[$doc])*
        pub const $rules: &[Rule<$kind>] = &[
            $(Rule {
                name: $name,
                run: |store| $function(<$scene>::on(store, stringify!($function))).boxed(),
            },)*
        ];
    };
}

rules! {
    /// All rules of [`Checkpoints`].
    RULES: dyn Checkpoints, Scene;
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
    long_keys: "a key is kept up to its bound, and refused beyond it with what may be",
    texts: "any text is kept: of every script, with NUL, and ten megabytes long",
    order: "writes take effect in the order in which they were called",
    dropped: "a write whose future is dropped happened or did not, but never in part",
    long: "a long line of checkpoints is read from any point",
}

rules! {
    /// All rules of [`Threads`], which are about rows, logs and whole threads; [`RULES`] are about the
    /// rest of it.
    THREAD_RULES: dyn Threads, Stage;
    nothing: "what is not there is not there, and cannot be copied, pruned or cancelled",
    standing: "a thread's row says what the last put, or the end of the run, says",
    holder: "a thread's row names the run that has the lease, and no other",
    described: "metadata of a thread is added to and removed from, and nothing else changes it",
    listed: "threads are listed by what their rows have, those last written first",
    paged: "pages of a list make the list",
    begun: "a run's row says that it was begun, how often, and with what",
    adopted: "what another store knew of a thread and its runs is written down as it was",
    over: "nothing more is done under the id of a run that is over",
    ended: "a run's row says how it ended, and its lease is given back with that",
    unwritten: "a claim without a start leaves no row of a run",
    handed_in: "a run is handed in once, and keeps its row when it is begun",
    queue: "runs are listed by thread and status, in either order",
    cancelled_early: "a run that nobody drives is cancelled at once, and one at rest stays as it is",
    cancelled_at_work: "the driver of a run learns that it is to end; the first reason counts",
    cancelled_after: "a run whose driver left without a word is cancelled at once",
    taken_up: "a run that is taken up again has no wish left from before",
    log_order: "the log has what puts, notes and ends gave it, in their order",
    log_picks: "a log is read by number, run and limit",
    log_refused: "what comes with a refused write is not in the log",
    log_same: "values that an entry has in common with its put are put back",
    log_not_saved: "an entry that names a channel which is not saved with it is refused with all that came with it",
    log_grown: "whoever waits for the log learns that it has grown",
    log_trimmed: "what was trimmed is gone, and the numbers go on",
    log_texts: "the log keeps any text, also a long one",
    copied: "a copy reads as its original did, and goes its own way",
    copied_log: "the log of a copy says what its original's said, and outlives it",
    copy_refused: "a thread is not copied over another, nor while a run drives it",
    deleted: "what is deleted leaves nothing behind",
    delete_refused: "a thread is not deleted while a run drives it",
    epochs: "epochs grow over the deletion of a thread",
    made_anew: "a thread made anew is no older than whoever wrote to the deleted one",
    fenced_scopes: "the first put of a subgraph is fenced like all others",
    deleted_runs: "what runs wrote is removed, and the thread stands where what is left of it stands",
    deleted_runs_refused: "runs are removed all or none",
    pruned_last: "the newest checkpoints stay, and read as before",
    pruned_since: "checkpoints that are young enough stay, and the head",
    pruned_up_to: "what came after a checkpoint is undone, in subgraphs too",
    pruned_edits: "values that were edited read as before when older checkpoints are gone",
    pruned_forks: "branches that stay read as before",
    pruned_children: "a checkpoint of a subgraph that one of the graph names stays with it",
    pruned_log: "the log of runs of which nothing is left goes, and the rest reads as before",
    pruned_never: "nothing is pruned while something is pending, or a run drives the thread",
    pruned_often: "a thread that is pruned after each of its runs goes on as if it were not",
    stats: "what is stored is counted, by thread and by channel",
    strange: "names and values of any text are kept, copied, pruned and listed",
}

rules! {
    /// All rules of [`Memory`].
    MEMORY_RULES: dyn Memory, Corner;
    kept: "a document is read as it was written, until it is written over or removed",
    below: "a namespace has what is in it and below it, and nothing beside it",
    filtered: "a search finds the documents whose fields have these values",
    newest: "without words the newest comes first",
    ranked: "with words the best comes first, and what has none of them is left out",
    cut: "limit and offset cut a search",
    expired: "what has expired is not there any more",
    long_names: "namespaces and keys are kept up to their bounds, and refused beyond them with what may be",
    any_text: "names and values of any text are kept",
    at_once: "a hundred documents are written at the same time",
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. })
}

fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::UnknownCheckpoint { .. })
}

rules! {
    /// All rules about graphs that run on a store.
    ENGINE_RULES: dyn Threads, Play;
    run_saved: "a run is saved and read back, the next one goes on from it, and the rows say so",
    cut_anywhere: "a run that is cut after any event goes on and comes to the same as an uncut one",
    steps_kept: "what a step did is not done again",
    questions_by_id: "questions are answered by id, in any order, once",
    written_between: "what is written between runs leaves what is open, or follows the way of the node it is for",
    failures_kept: "attempts and failures are on record, and what finished beside them is not run again",
    history_read: "the history has every superstep, with its state",
    forks_apart: "forks and replays go their own ways and change nothing that was there",
    old_questions: "an old question is answered otherwise on a branch of its own",
    whole_threads: "a copied, pruned, undone or deleted thread is run on",
    stateless: "each call of a subgraph has its own place, in which it can be read, written to and answered",
    persistent: "a persistent subgraph remembers its calls, and goes back in time with its parent",
    persistent_kept: "where a persistent subgraph stands stays when the run that brought it there is deleted",
    one_driver: "one run drives a thread, and the others are told who",
    cancelled_from_afar: "a wish that is written down ends a run, which says when",
    left_behind: "a run that was over and had not said so is finished without running anything again",
    logged: "the log has what was told, in order",
    logged_once: "what the log shares with checkpoints reads as it was told",
    random_programs: "random graphs that are cut at random come to the same as uncut ones",
}

/// The rule about random graphs with these seeds: for more of them than a suite takes, or for one that failed.
///
/// # Errors
/// What the store does instead.
pub async fn check_programs(
    store: &Arc<dyn Threads>,
    seeds: std::ops::Range<u64>,
) -> Result<(), Broken> {
    let checked = programs(&Play::on(store.clone(), "check_programs"), seeds).await;
    checked.map_err(|why| Broken {
        rule: "random graphs that are cut at random come to the same as uncut ones",
        why,
    })
}
