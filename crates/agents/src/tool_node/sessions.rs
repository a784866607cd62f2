//! The gateway's sessions of the runs that pass a tool node: one per run and driver.
//!
//! A node is built once and serves many runs, at the same time and one after the other; nobody tells it
//! that a run is over. Sessions are therefore kept for the runs that were seen last and opened again for
//! others: what a run has used and what it has called is read from the gateway's store.

use paraph_gateway::{Dialect, Gateway, Limits, Scope, Session, Stop};
use paraph_graph::{Ctx, RunId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// How many sessions are kept. Above it, the one goes that was used longest ago and that no call uses now: a
/// run's calls must not be counted in two sessions at once.
const MAX_KEPT: usize = 256;

pub(super) struct Sessions {
    pub(super) gateway: Gateway,
    pub(super) limits: Limits,
    pub(super) agent: String,
    /// The one that was used last comes last.
    kept: Mutex<VecDeque<Kept>>,
}

/// A run under the lease of one driver. A run that is taken up again has a later lease, and begins with
/// what is stored: the time in between is not its own.
type Driven = (RunId, u64);

struct Kept {
    driven: Driven,
    session: Held,
}

/// A run's session, kept as long as somebody holds this.
pub(crate) type Held = Arc<OnceCell<Session>>;

impl Sessions {
    pub(super) fn new(gateway: Gateway) -> Sessions {
        Sessions {
            gateway,
            limits: Limits::default(),
            agent: "graph".to_owned(),
            kept: Mutex::default(),
        }
    }

    /// The session of the run that `ctx` belongs to, to be held while it is used.
    pub(super) async fn of(&self, ctx: &Ctx) -> Result<(Session, Held), Stop> {
        let epoch = ctx.lease().epoch;
        let cell = self.cell((ctx.run_id(), epoch));
        let open = || {
            let scope = Scope {
                run: ctx.run_id().to_string(),
                epoch,
                dialect: Dialect::Native,
                ..Scope::new(&self.agent, ctx.thread())
            };
            self.gateway.session(scope, self.limits.clone())
        };
        let session = cell.get_or_try_init(open).await.cloned()?;
        Ok((session, cell))
    }

    fn cell(&self, driven: Driven) -> Held {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().rposition(|kept| kept.driven == driven);
        let known = known.and_then(|at| kept.remove(at));
        let kept_now = known.unwrap_or_else(|| Kept {
            driven,
            session: Arc::default(),
        });
        let session = kept_now.session.clone();
        kept.push_back(kept_now);
        while kept.len() > MAX_KEPT {
            let idle = |kept: &Kept| Arc::strong_count(&kept.session) == 1;
            match kept.iter().position(idle) {
                Some(oldest) => kept.remove(oldest),
                None => break,
            };
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paraph_gateway::MemoryStore;

    #[test]
    fn a_run_has_one_session_per_driver_and_the_idle_one_used_longest_ago_goes_first() {
        let gateway = Gateway::builder(MemoryStore::shared()).build().unwrap();
        let sessions = Sessions::new(gateway);
        let run = RunId::fresh();
        let known = |epoch| {
            let kept = sessions.kept.lock().unwrap();
            kept.iter().any(|kept| kept.driven == (run, epoch))
        };
        let first = sessions.cell((run, 1));
        assert!(Arc::ptr_eq(&first, &sessions.cell((run, 1))));
        assert!(!Arc::ptr_eq(&first, &sessions.cell((run, 2))));
        for _ in 0..2 * MAX_KEPT {
            sessions.cell((RunId::fresh(), 1));
        }
        // The one that is held stays, whenever it was used.
        assert_eq!([1, 2].map(known), [true, false]);
        drop(first);
        sessions.cell((RunId::fresh(), 1));
        assert!(!known(1));
        assert_eq!(sessions.kept.lock().unwrap().len(), MAX_KEPT);
    }
}
