//! Whether the actions of a tenant stand where the audit says that they do.
//!
//! Every change of an action is told in the commit that makes it. So a row that is gone, was set back or was never told
//! of was written by hand, and no anchor is needed to see that. Called by whoever verifies a store; nothing is changed.

use super::{ApprovalError, Approvals};
use crate::action::{ActionId, ActionRow, State};
use crate::audit::{AuditEntry, Event, Field};
use crate::record::RunRef;
use crate::store::{Find, READ_IN};
use std::collections::{BTreeMap, BTreeSet};

/// How many entries or rows are read at a time.
const PAGE: usize = 500;

/// How many actions are named at most.
const MOST: usize = 1_000;

/// How often something is looked at again that others may be changing just now.
const LOOKS: usize = 8;

/// An action that does not stand where the audit says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("action {action}: {fault}")]
pub struct Astray {
    /// The action.
    pub action: ActionId,
    /// What is wrong.
    pub fault: AstrayFault,
}

/// How an action can differ from what the audit tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AstrayFault {
    /// Its row is not there.
    #[error("the audit tells that it is {told}, and its row is gone")]
    Gone {
        /// Where it stood.
        told: State,
    },
    /// Its row is there alone.
    #[error("it is {found}, and the audit does not tell of it")]
    Untold {
        /// Where it stands.
        found: State,
    },
    /// Its row is another than the one that was told of last.
    #[error(
        "it is {found} (version {version}), and the audit tells last that it is {told} (version {told_version})"
    )]
    Elsewhere {
        /// Where it stands.
        found: State,
        /// How often its row changed.
        version: u64,
        /// Where it stood, as the audit has it.
        told: State,
        /// How often it had changed then.
        told_version: u64,
    },
}

/// What the audit tells last of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    seq: u64,
    version: u64,
    state: State,
}

impl Told {
    fn is_of(&self, row: &ActionRow) -> bool {
        (self.version, self.state) == (row.version, row.state)
    }
}

/// A tenant's chain, as far as it was read.
struct Chain<'c> {
    tenant: &'c str,
    last: u64,
    told: BTreeMap<ActionId, Told>,
}

impl Approvals {
    /// The actions of a tenant that are gone, were set back or were never told of; at most a thousand. What went with its
    /// thread is not among them: only what was over goes so, and its run's records go with it.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], also for a row that cannot be read.
    pub async fn astray(&self, tenant: &str) -> Result<Vec<Astray>, ApprovalError> {
        let mut chain = Chain {
            tenant,
            last: 0,
            told: BTreeMap::new(),
        };
        self.read_on(&mut chain).await?;
        let (mut there, mut odd) = (Vec::new(), Vec::new());
        let mut after = None;
        loop {
            let find = Find::States {
                states: &State::ALL,
                after,
                limit: PAGE,
            };
            let page = self.store.actions(find).await?;
            for row in page
                .iter()
                .filter(|row| row.action.said.run.tenant == tenant)
            {
                there.push(row.id());
                let told = chain.told.get(&row.id());
                if !told.is_some_and(|told| told.is_of(row)) {
                    odd.push(row.id());
                }
            }
            after = page.last().map(ActionRow::id);
            if page.len() < PAGE {
                break;
            }
        }
        let mut found = Vec::new();
        for id in odd {
            found.extend(self.differs(&mut chain, id).await?);
        }
        there.sort_unstable();
        let gone = chain.told.keys().copied();
        let gone: Vec<_> = gone.filter(|id| there.binary_search(id).is_err()).collect();
        for id in gone {
            if found.len() < MOST {
                found.extend(self.is_gone(&mut chain, id).await?);
            }
        }
        found.truncate(MOST);
        found.sort_by_key(|astray| astray.action);
        Ok(found)
    }

    /// The tenants that have actions, in their order.
    ///
    /// # Errors
    /// [`ApprovalError::Store`], also for a row that cannot be read.
    pub async fn tenants(&self) -> Result<Vec<String>, ApprovalError> {
        let (mut tenants, mut after) = (BTreeSet::new(), None);
        loop {
            let find = Find::States {
                states: &State::ALL,
                after,
                limit: PAGE,
            };
            let page = self.store.actions(find).await?;
            after = page.last().map(ActionRow::id);
            let last = page.len() < PAGE;
            tenants.extend(page.iter().map(|row| row.action.said.run.tenant.clone()));
            if last {
                return Ok(tenants.into_iter().collect());
            }
        }
    }

    /// Reads the rest of a chain. An event that cannot be read is found by whoever verifies the chain itself.
    async fn read_on(&self, chain: &mut Chain<'_>) -> Result<(), ApprovalError> {
        loop {
            let page = self.store.audit(chain.tenant, chain.last, PAGE).await?;
            for entry in &page {
                chain.last = entry.seq;
                if let Some((action, told)) = told(entry) {
                    chain.told.insert(action, told);
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// What is wrong with a row that is not the one which was told of, once nobody is changing it any more.
    async fn differs(
        &self,
        chain: &mut Chain<'_>,
        id: ActionId,
    ) -> Result<Option<Astray>, ApprovalError> {
        let mut fault = None;
        for _ in 0..LOOKS {
            let Some(row) = self.store.actions(Find::Id(id)).await?.pop() else {
                return Ok(None);
            };
            // After the row, so that it has whatever made the row what it is.
            self.read_on(chain).await?;
            let found = row.state;
            let now = match chain.told.get(&id) {
                None => AstrayFault::Untold { found },
                Some(told) if told.is_of(&row) => return Ok(None),
                Some(told) => AstrayFault::Elsewhere {
                    found,
                    version: row.version,
                    told: told.state,
                    told_version: told.version,
                },
            };
            if fault == Some(now) {
                break;
            }
            fault = Some(now);
        }
        Ok(fault.map(|fault| Astray { action: id, fault }))
    }

    /// Whether an action that has no row should have one.
    async fn is_gone(
        &self,
        chain: &mut Chain<'_>,
        id: ActionId,
    ) -> Result<Option<Astray>, ApprovalError> {
        let Some(told) = chain.told.get(&id).copied() else {
            return Ok(None);
        };
        // It may have been proposed after the rows were read.
        if !self.store.actions(Find::Id(id)).await?.is_empty() {
            return Ok(None);
        }
        if told.state.is_final() && !self.has_records(chain.tenant, told.seq).await? {
            return Ok(None);
        }
        let fault = AstrayFault::Gone { told: told.state };
        Ok(Some(Astray { action: id, fault }))
    }

    /// Whether the run that an entry is about has records which were made here.
    async fn has_records(&self, tenant: &str, seq: u64) -> Result<bool, ApprovalError> {
        let entry = self.store.audit(tenant, seq.saturating_sub(1), 1).await?;
        let event = entry.first().map(|entry| Event::read(&entry.event));
        let Some(Ok(event)) = event else {
            return Ok(false);
        };
        let run = RunRef {
            tenant: event.tenant,
            agent: event.agent,
            thread: event.thread,
            run: event.run,
        };
        if self.store.calls(&run).await?.is_empty() {
            return Ok(false);
        }
        Ok(!self.store.counters(&run).await?.contains_key(READ_IN))
    }
}

/// Which action an entry tells of, and where it stands by it; nothing if it tells of none, or not where one stands.
fn told(entry: &AuditEntry) -> Option<(ActionId, Told)> {
    let event = Event::read(&entry.event).ok()?;
    let action = event.action?.parse().ok()?;
    let name = event.state?;
    let state = State::ALL.into_iter().find(|state| state.name() == name)?;
    let Field::Number(version) = event.fields.get("version")? else {
        return None;
    };
    let told = Told {
        seq: entry.seq,
        version: *version,
        state,
    };
    Some((action, told))
}
