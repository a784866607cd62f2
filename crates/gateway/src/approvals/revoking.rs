//! Standing grants that a person takes back without touching the policy: from then on they sign nothing, in whatever
//! process, and what they had signed and nobody had started is decided anew.
//!
//! A revocation is kept where the kill switches are, and is looked at where these are: in the transaction that signs and
//! in the one that starts.

use super::deciding::reason;
use super::{ApprovalError, Approvals};
use crate::action::{Ended, Person, Refusal, Signer, State};
use crate::audit::{Event, EventKind, Field};
use crate::kill::{grant_of, grant_scope};
use crate::policy::{GrantUse, grants_of};
use crate::store::{Change, Kill};

/// The most bytes of a name of an agent or a grant.
const MOST_NAME: usize = 256;

/// The chain in which revocations are told: a grant may concern many tenants.
const EVERYBODY: &str = "local";

/// That a standing grant was revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The agent whose grant it is.
    pub agent: String,
    /// The grant.
    pub grant: String,
    /// Who revoked it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl Approvals {
    /// Revokes a standing grant of an agent. When this has returned, the grant signs nothing any more, and nothing that
    /// it has signed is started: that is held, to be decided by people; says how many actions that were. Whether there
    /// is such a grant only the policy knows.
    ///
    /// # Errors
    /// [`ApprovalError::BadName`], [`ApprovalError::NoReason`], [`ApprovalError::TooLong`], [`ApprovalError::Store`].
    pub async fn revoke(
        &self,
        (agent, grant): (&str, &str),
        by: &str,
        why: &str,
    ) -> Result<usize, ApprovalError> {
        let (scope, reason, at_ms) = (named(agent, grant)?, reason(why)?, self.now().await?);
        let change = Change {
            kill: vec![Kill {
                scope: scope.clone(),
                by: by.to_owned(),
                reason: reason.clone(),
                at_ms,
            }],
            audit: vec![told(
                EventKind::Revoked,
                (&scope, agent, grant),
                (by, &reason),
                at_ms,
            )],
            ..Change::default()
        };
        self.store.commit(change).await?;
        self.hold_granted((agent, grant), (by, &reason)).await
    }

    /// Lets a grant that was revoked sign again. What it had signed before is not started: it is held first.
    ///
    /// # Errors
    /// As [`Approvals::revoke`].
    pub async fn restore(
        &self,
        (agent, grant): (&str, &str),
        by: &str,
        why: &str,
    ) -> Result<usize, ApprovalError> {
        let (scope, reason) = (named(agent, grant)?, reason(why)?);
        let held = self.hold_granted((agent, grant), (by, &reason)).await?;
        let at_ms = self.now().await?;
        let change = Change {
            unkill: vec![scope.clone()],
            audit: vec![told(
                EventKind::Restored,
                (&scope, agent, grant),
                (by, &reason),
                at_ms,
            )],
            ..Change::default()
        };
        self.store.commit(change).await?;
        Ok(held)
    }

    /// The grants that are revoked.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn revocations(&self) -> Result<Vec<Revocation>, ApprovalError> {
        let kills = self.store.kills().await?;
        let revocations = kills.into_iter().filter_map(|kill| {
            let (agent, grant) = grant_of(&kill.scope)?;
            Some(Revocation {
                agent,
                grant,
                by: kill.by,
                reason: kill.reason,
                at_ms: kill.at_ms,
            })
        });
        Ok(revocations.collect())
    }

    /// How much of a grant a tenant's runs have used up. Grants of one name have one set of counters.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn grant_use(&self, tenant: &str, grant: &str) -> Result<GrantUse, ApprovalError> {
        let counters = self.store.counters(&grants_of(tenant)).await?;
        Ok(GrantUse::read(
            &counters,
            (tenant, grant),
            self.now().await?,
        ))
    }

    /// Holds what the grant has signed and nobody has started.
    async fn hold_granted(
        &self,
        (agent, grant): (&str, &str),
        (by, why): (&str, &str),
    ) -> Result<usize, ApprovalError> {
        let mut count = 0;
        for row in self.list(&[State::Approved]).await? {
            let is_by = |by: &Signer| matches!(by, Signer::Rule(name) if name == grant);
            if row.action.said.run.agent != agent || !row.votes.iter().any(|vote| is_by(&vote.by)) {
                continue;
            }
            let next = |row: &crate::action::ActionRow, at_ms| match row.state {
                State::Approved => row.hold_back(Ended {
                    by: Signer::Person(Person::from(by)),
                    why: format!("the grant `{grant}`, which signed it, was revoked: {why}"),
                    at_ms,
                }),
                _ => Err(Refusal::State),
            };
            match self
                .decide(row.id(), |row, at_ms| next(row, at_ms).map(Some))
                .await
            {
                Ok(_) => count += 1,
                // It is somewhere else by now.
                Err(ApprovalError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

fn named(agent: &str, grant: &str) -> Result<String, ApprovalError> {
    let fine = |name: &str| (1..=MOST_NAME).contains(&name.len());
    match fine(agent) && fine(grant) {
        true => Ok(grant_scope(agent, grant)),
        false => Err(ApprovalError::BadName { most: MOST_NAME }),
    }
}

fn told(
    kind: EventKind,
    (scope, agent, grant): (&str, &str, &str),
    (by, reason): (&str, &str),
    at_ms: u64,
) -> crate::audit::Draft {
    let event = Event {
        scope: Some(scope.to_owned()),
        agent: agent.to_owned(),
        ..Event::new(kind, EVERYBODY, at_ms)
    };
    let said = [("by", by), ("why", reason)];
    let said = said.map(|(name, text)| (name.to_owned(), Field::from(text)));
    event.with("grant", grant).draft_with(said.into())
}
