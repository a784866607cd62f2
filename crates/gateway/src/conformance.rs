//! What every store of the gateway must do: a suite that each implementation runs.
//!
//! Called by the tests of stores: memory's in this crate, those of databases in theirs. The rules look through
//! [`Store`] only. They use names of their own, so that they also run on a store that has other data, again and again;
//! what they put on, they take away. They must not know how a store keeps anything.
//!
//! ```
//! # #[tokio::main] async fn main() {
//! use paraph_gateway::{MemoryStore, conformance};
//! let store = MemoryStore::shared();
//! for rule in conformance::RULES {
//!     assert_eq!(rule.check(&[store.clone()]).await, Ok(()));
//! }
//! # }
//! ```

mod actions;
mod audits;
mod calls;
mod decisions;
mod guards;
mod kills;
mod races;
mod scene;
mod strange;
mod wakes;

use crate::store::Store;
use actions::*;
use audits::*;
use calls::*;
use decisions::*;
use futures::{FutureExt, future::BoxFuture};
use guards::*;
use kills::*;
use races::*;
use scene::Scene;
use std::sync::Arc;
use strange::*;
use wakes::*;

/// What a rule finds.
type Checked = Result<(), String>;

/// One thing that every store must do.
pub struct Rule {
    /// The rule, as a sentence.
    pub name: &'static str,
    run: fn(Scene) -> BoxFuture<'static, Checked>,
    key: &'static str,
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
    /// Checks a store: one handle to it, or several, of other processes say, among which the work is divided. Needs a
    /// Tokio runtime; one with several threads lets more come between.
    ///
    /// # Errors
    /// What the store does instead.
    pub async fn check(&self, handles: &[Arc<dyn Store>]) -> Result<(), Broken> {
        let scene = Scene::on(handles, self.key);
        let checked = (self.run)(scene).await;
        checked.map_err(|why| Broken {
            rule: self.name,
            why,
        })
    }
}

macro_rules! rules {
    ($($function:ident: $name:literal,)*) => {
        /// All rules of [`Store`].
        pub const RULES: &[Rule] = &[
            $(Rule {
                name: $name,
                run: |scene| $function(scene).boxed(),
                key: stringify!($function),
            },)*
        ];
    };
}

rules! {
    records: "a record replaces the one of its key, and a run's records come in the order of their numbers",
    counters: "a counter begins at 0, adds up, and stays at the greatest number there is",
    runs_apart: "runs whose four names differ have nothing to do with each other, however alike the names are",
    fresh_and_open: "a key is fresh until it has a record, and open until that has an outcome",
    at_version: "an action is at its version, and at no other",
    most_counts_what_is_added: "a counter's most counts all that the change itself adds",
    what_is_given_back_is_there_again: "what is given back to a counter can be taken again, and none goes below 0",
    clock: "before is before, by the clock that the store tells",
    all_or_nothing: "each guard that does not hold keeps back every kind of write, and each that holds lets all pass",
    first_guard: "of several guards the first that does not hold is named",
    actions_found: "actions are found by id, run and subject, the oldest first",
    actions_by_state: "actions are listed by their states in the order of their ids, page by page",
    decided: "a decision of a person is written with its audit and its wake, or it names what was quicker",
    erased_and_anchored: "what is personal of one person is erased once, and an anchor is told once, whoever tells it",
    tenants_apart: "what belongs to one tenant is not found for another, though all names are the same",
    one_wake: "a call has one wake, the newest, and only the very same one is removed",
    wakes_in_order: "wakes come in the order in which they are due, and as many as asked for",
    switches: "a kill switch is on until it is taken away, and says who, why and when",
    grants: "a grant that was revoked is named by whoever revoked it until it is restored, and guards whose scope it is do not hold",
    audit_follows: "each entry of the audit follows the one before it, in one commit or in several",
    audit_pages: "the audit is read page by page, with its details",
    erased: "a detail of the audit is erased for ever, and the chain stays whole",
    one_first: "of many who want to be the first to write a key one is, whoever they are",
    one_winner: "of 32 who change the same version of an action one does, 20 times",
    never_over: "a counter with a most is never over it, with 64 who add at the same time",
    kill_wins: "when a kill has returned, nothing that it forbids is written any more, 200 times",
    audit_gapless: "16 who write to the audits of two tenants at the same time leave no gap and no fork",
    no_deadlock: "changes that name the same things in opposite orders are all made",
    long_arguments: "an action with a megabyte of arguments is kept, byte for byte",
    any_text: "names, reasons and words keep all characters there are, NUL among them",
    sql_names: "names that look like statements are names",
}
