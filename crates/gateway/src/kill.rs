//! Kill switches: which of them concern a call, and what they do to a run.
//!
//! They are rows in the store, so that every process sees them. The session looks before each call, for reads at a
//! list that is at most [`FRESH`] old; an effect is started only in a transaction that sees that none is on.

use crate::session::Scope;
use crate::stop::Stop;
use crate::store::{Kill, Store, StoreError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How old the list may be by which reads go.
const FRESH: Duration = Duration::from_millis(200);

/// The scope that stops everything.
pub(crate) const GLOBAL: &str = "global";

/// The scope that stops whatever changes something.
pub(crate) const WRITES: &str = "writes";

/// What a scope's text may be; the error says what there is.
pub(crate) fn check(scope: &str) -> Result<(), String> {
    let named = ["agent:", "tool:", "tenant:"];
    let fine = matches!(scope, GLOBAL | WRITES)
        || named.iter().any(|kind| {
            let name = scope.strip_prefix(kind);
            name.is_some_and(|name| (1..=256).contains(&name.len()))
        });
    match fine {
        true => Ok(()),
        false => Err("there are global, writes, agent:NAME, tool:NAME and tenant:NAME".to_owned()),
    }
}

/// The scopes that concern a call of a tool in a run.
pub(crate) fn scopes(scope: &Scope, tool: &str, writes: bool) -> Vec<String> {
    let mut scopes = vec![
        GLOBAL.to_owned(),
        format!("tenant:{}", scope.tenant),
        format!("agent:{}", scope.agent),
        format!("tool:{tool}"),
    ];
    if writes {
        scopes.push(WRITES.to_owned());
    }
    scopes
}

/// Whether a switch concerns an action of this agent, tenant and tool.
pub(crate) fn concerns(scope: &str, said: &crate::action::Proposal) -> bool {
    match scope.split_once(':') {
        None => matches!(scope, GLOBAL | WRITES),
        Some(("agent", name)) => said.run.agent == name,
        Some(("tool", name)) => said.tool == name,
        Some(("tenant", name)) => said.run.tenant == name,
        Some(_) => false,
    }
}

/// The end of a run that met this switch.
pub(crate) fn stop(scope: &str) -> Stop {
    match scope.split_once(':') {
        None if scope == WRITES => Stop::WritesDisabled,
        Some(("tool", name)) => Stop::ToolDisabled(name.to_owned()),
        Some(("tenant", _)) => Stop::KilledTenant,
        _ => Stop::KilledGlobal,
    }
}

/// The switches as they were a moment ago.
#[derive(Default)]
pub(crate) struct Kills(Mutex<Option<(Instant, Arc<Vec<Kill>>)>>);

impl Kills {
    /// The first switch that is on of those that concern a call. What writes does not go by what was a moment ago.
    pub(crate) async fn on(
        &self,
        store: &dyn Store,
        scopes: &[String],
        now: bool,
    ) -> Result<Option<String>, StoreError> {
        let kills = match (now, self.recent()) {
            (false, Some(kills)) => kills,
            _ => self.look(store).await?,
        };
        let on = |scope: &&String| kills.iter().any(|kill| kill.scope == **scope);
        Ok(scopes.iter().find(on).cloned())
    }

    fn recent(&self) -> Option<Arc<Vec<Kill>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, kills) = known.as_ref()?;
        (at.elapsed() < FRESH).then(|| kills.clone())
    }

    async fn look(&self, store: &dyn Store) -> Result<Arc<Vec<Kill>>, StoreError> {
        let at = Instant::now();
        let kills = Arc::new(store.kills().await?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((at, kills.clone()));
        Ok(kills)
    }
}
