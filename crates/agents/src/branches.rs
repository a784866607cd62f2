//! Parts of a run that have a session of their own: with a share of the run's purse, calls that are counted and looked
//! at for loops by themselves, and a gateway that may have other tools.
//!
//! A part is known by a name that is the same in every life of the run, so that a part which was cut off goes on with
//! what it has used. Which parts there are is an agent's business; `asking` opens them.

use paraph_gateway::{Gateway, Limits, Session, Stop};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// A part of a run.
pub(crate) struct Branch<'b> {
    /// The same in every life of the run, and no other part's.
    pub(crate) name: &'b str,
    /// Where its calls go.
    pub(crate) gateway: &'b Gateway,
    /// What it may use of the run's purse.
    pub(crate) share: &'b Limits,
}

/// The sessions of the parts that this process drives.
#[derive(Default)]
pub(crate) struct Branches(Mutex<BTreeMap<String, Arc<OnceCell<Session>>>>);

impl Branches {
    /// The part's session, which `open` opens if it is not there yet.
    pub(crate) async fn open(
        &self,
        name: &str,
        open: impl AsyncFnOnce() -> Result<Session, Stop>,
    ) -> Result<Session, Stop> {
        let cell = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(name.to_owned()).or_default().clone()
        };
        cell.get_or_try_init(async || open().await).await.cloned()
    }

    /// Forgets a part's session. Its share goes back to the run's purse once nobody uses it any more.
    pub(crate) fn close(&self, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(name);
    }
}
