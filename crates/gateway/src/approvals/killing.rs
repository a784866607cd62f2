//! The kill switch: put first, on no condition; what was signed and not started is held after that.

use super::deciding::reason;
use super::{ApprovalError, Approvals};
use crate::action::{ActionRow, State};
use crate::audit::{Draft, Event, EventKind, Field};
use crate::kill::{Target, check};
use crate::store::{Change, Kill};

/// The chain in which switches are told that do not concern one tenant alone.
const EVERYBODY: &str = "local";

impl Approvals {
    /// Stops everything within a scope: `global`, `writes`, `agent:NAME`, `tool:NAME` or `tenant:NAME`. When this has
    /// returned, no effect within it starts any more, in whatever process. What was signed and not started is held, to
    /// be decided anew; says how many actions that were.
    ///
    /// # Errors
    /// [`ApprovalError::BadScope`], [`ApprovalError::NoReason`], [`ApprovalError::Store`].
    pub async fn kill(&self, scope: &str, by: &str, why: &str) -> Result<usize, ApprovalError> {
        known(scope)?;
        let reason = reason(why)?;
        let at_ms = self.now().await?;
        let change = Change {
            kill: vec![Kill {
                scope: scope.to_owned(),
                by: by.to_owned(),
                reason: reason.clone(),
                at_ms,
            }],
            audit: vec![told(EventKind::Killed, scope, (by, &reason), at_ms)],
            ..Change::default()
        };
        self.store.commit(change).await?;
        self.hold(scope).await
    }

    /// Lets a scope go on. What was signed before is not started: it is held first.
    ///
    /// # Errors
    /// [`ApprovalError::BadScope`], [`ApprovalError::Store`].
    pub async fn unkill(&self, scope: &str, by: &str) -> Result<usize, ApprovalError> {
        known(scope)?;
        let held = self.hold(scope).await?;
        let at_ms = self.now().await?;
        let change = Change {
            unkill: vec![scope.to_owned()],
            audit: vec![told(EventKind::Unkilled, scope, (by, ""), at_ms)],
            ..Change::default()
        };
        self.store.commit(change).await?;
        Ok(held)
    }

    /// The switches that keep an action from being started now.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn kills_of(&self, row: &ActionRow) -> Result<Vec<Kill>, ApprovalError> {
        let target = Target::of(&row.action.said);
        let mut kills = self.kills().await?;
        kills.retain(|kill| target.is_within(&kill.scope));
        Ok(kills)
    }

    async fn hold(&self, scope: &str) -> Result<usize, ApprovalError> {
        let mut count = 0;
        for row in self.list(&[State::Approved]).await? {
            if !Target::of(&row.action.said).is_within(scope) {
                continue;
            }
            match self.decide(row.id(), |row, _| row.hold().map(Some)).await {
                Ok(_) => count += 1,
                // It is somewhere else by now.
                Err(ApprovalError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

fn known(scope: &str) -> Result<(), ApprovalError> {
    check(scope).map_err(|there_are| ApprovalError::BadScope {
        scope: scope.chars().take(100).collect(),
        there_are,
    })
}

fn told(kind: EventKind, scope: &str, (by, reason): (&str, &str), at_ms: u64) -> Draft {
    let tenant = scope.strip_prefix("tenant:").unwrap_or(EVERYBODY);
    let event = Event {
        scope: Some(scope.to_owned()),
        ..Event::new(kind, tenant, at_ms)
    };
    let said = [("by", by), ("why", reason)];
    let said = said.into_iter().filter(|(_, text)| !text.is_empty());
    event.draft_with(
        said.map(|(name, text)| (name.to_owned(), Field::from(text)))
            .collect(),
    )
}
