//! Kill switches: which of them concern a call, and what they do to a run.
//!
//! They are rows in the store, so that every process sees them. The session looks before each call, for reads at a
//! list that is at most [`FRESH`] old; an effect is started only in a transaction that sees that none is on.
//!
//! A standing grant that was revoked is a row of the same kind, under a scope that no call has: it stops what the grant
//! signs, and nothing else.

use crate::action::{ActionRow, Proposal, Signer};
use crate::stop::Stop;
use crate::store::{Guard, Kill, Store, StoreError};
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
            // A star would read like a pattern, and match nothing.
            name.is_some_and(|name| (1..=256).contains(&name.len()) && !name.contains('*'))
        });
    match fine {
        true => Ok(()),
        false => Err("there are global, writes, agent:NAME, tool:NAME and tenant:NAME, each of one name and no pattern".to_owned()),
    }
}

/// What stands before an agent and one of its grants in the scope of a revocation.
const GRANT: &str = "grant:";

/// The scope under which the revocation of an agent's grant is kept.
pub(crate) fn grant_scope(agent: &str, grant: &str) -> String {
    // The name of an agent cannot reach into that of a grant.
    let agent = agent.replace('%', "%25").replace('/', "%2F");
    format!("{GRANT}{agent}/{grant}")
}

/// The agent and the grant of a revocation's scope; nothing if it is that of a kill switch.
pub(crate) fn grant_of(scope: &str) -> Option<(String, String)> {
    let (agent, grant) = scope.strip_prefix(GRANT)?.split_once('/')?;
    let agent = agent.replace("%2F", "/").replace("%25", "%");
    Some((agent, grant.to_owned()))
}

/// That the grants which signed an action are in force; nothing if only people did.
pub(crate) fn granted(row: &ActionRow) -> Option<Guard> {
    let agent = &row.action.said.run.agent;
    let scopes = row.votes.iter().filter_map(|vote| match &vote.by {
        Signer::Rule(grant) => Some(grant_scope(agent, grant)),
        _ => None,
    });
    let scopes: Vec<_> = scopes.collect();
    (!scopes.is_empty()).then_some(Guard::Alive { scopes })
}

/// The grant that was revoked, if that is what this guard did not find to hold.
pub(crate) fn revoked(guard: &Guard) -> Option<String> {
    match guard {
        Guard::Alive { scopes } => scopes.iter().find_map(|scope| Some(grant_of(scope)?.1)),
        _ => None,
    }
}

/// What a kill switch can concern: a call, or an action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'t> {
    pub(crate) tenant: &'t str,
    pub(crate) agent: &'t str,
    pub(crate) tool: &'t str,
    /// Whether it changes something.
    pub(crate) writes: bool,
}

impl<'t> Target<'t> {
    pub(crate) fn of(said: &'t Proposal) -> Target<'t> {
        Target {
            tenant: &said.run.tenant,
            agent: &said.run.agent,
            tool: &said.tool,
            writes: said.level.is_effect(),
        }
    }

    /// Whether a switch of this scope concerns it.
    pub(crate) fn is_within(&self, scope: &str) -> bool {
        match scope.split_once(':') {
            None => scope == GLOBAL || (scope == WRITES && self.writes),
            Some(("agent", name)) => self.agent == name,
            Some(("tool", name)) => self.tool == name,
            Some(("tenant", name)) => self.tenant == name,
            Some(_) => false,
        }
    }

    /// All scopes that concern it.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let mut scopes = vec![
            GLOBAL.to_owned(),
            format!("tenant:{}", self.tenant),
            format!("agent:{}", self.agent),
            format!("tool:{}", self.tool),
        ];
        if self.writes {
            scopes.push(WRITES.to_owned());
        }
        scopes
    }
}

/// Of several switches the widest names the end of a run.
fn width(scope: &str) -> u8 {
    match scope.split_once(':') {
        None if scope == GLOBAL => 0,
        Some(("tenant", _)) => 1,
        Some(("agent", _)) => 2,
        Some(("tool", _)) => 3,
        _ => 4,
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
    /// The widest switch that is on and concerns this. What writes does not go by what was a moment ago.
    pub(crate) async fn on(
        &self,
        store: &dyn Store,
        target: Target<'_>,
    ) -> Result<Option<String>, StoreError> {
        let kills = match (target.writes, self.recent()) {
            (false, Some(kills)) => kills,
            _ => self.look(store).await?,
        };
        let on = kills.iter().map(|kill| &kill.scope);
        let on = on.filter(|scope| target.is_within(scope));
        Ok(on.min_by_key(|scope| width(scope)).cloned())
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
