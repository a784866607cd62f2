//! A person changes what is asked for: another action takes its place, checked like any other, to be decided about.
//!
//! It needs the tool, to read the changed arguments as it will; so it belongs to the gateway and not to the desk alone.

use super::{ApprovalError, Approvals, MAX_LOOKS};
use crate::action::{Action, ActionRow, Ended, Person, Proposal, Refusal, Signer};
use crate::audit::EventKind;
use crate::call::ToolCall;
use crate::gateway::Gateway;
use crate::policy::Verdict;
use crate::store::{Change, Guard, StoreError};

impl Gateway {
    /// Puts other arguments in the place of an action's: a new action with a new digest, under the same key. Whoever
    /// edits may approve it, unless several have to or the requester may not.
    ///
    /// # Errors
    /// [`ApprovalError::BadArgs`] if they do not fit; as [`Approvals::approve`].
    pub async fn edit(
        &self,
        row: &ActionRow,
        digest: &str,
        by: impl Into<Person>,
        arguments: &str,
    ) -> Result<ActionRow, ApprovalError> {
        let (person, desk) = (by.into(), self.approvals());
        for _ in 0..MAX_LOOKS {
            let row = desk.show(row.id()).await?;
            let at_ms = desk.now().await?;
            let said = self.edited(&row, &person, (arguments, at_ms)).await?;
            let new =
                Action::of(said).map_err(|error| ApprovalError::BadArgs(error.to_string()))?;
            let ended = Ended {
                by: Signer::Person(person.clone()),
                why: String::new(),
                at_ms,
            };
            let old = row.edit(digest, (ended, new.id));
            let old = old.map_err(|refusal| match refusal {
                Refusal::OtherDigest => ApprovalError::OtherDigest,
                _ => ApprovalError::Conflict(Box::new(row.clone())),
            })?;
            let new = ActionRow::proposed(new, None);
            match desk.replace(&row, (&old, &new), at_ms).await {
                Ok(()) => return Ok(new),
                Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApprovalError::Conflict(Box::new(
            desk.show(row.id()).await?,
        )))
    }

    /// What would be proposed with other arguments.
    async fn edited(
        &self,
        row: &ActionRow,
        person: &Person,
        (arguments, now_ms): (&str, u64),
    ) -> Result<Proposal, ApprovalError> {
        let said = &row.action.said;
        let parts = self.parts();
        let tool = parts.tool(&said.tool);
        let tool = tool.ok_or_else(|| ApprovalError::NoTool(said.tool.clone()))?;
        let bad = |why: String| ApprovalError::BadArgs(why);
        let call = ToolCall::new(said.tool.clone(), arguments);
        let call = call.map_err(|error| bad(error.to_string()))?;
        tool.check(call.args()).map_err(bad)?;
        if matches!(
            parts.rules.policy().verdict(&said.tool),
            Verdict::Denied { .. }
        ) {
            return Err(bad("a rule denies the tool by now".to_owned()));
        }
        let prepared = tool.prepare(call.args()).map_err(|error| bad(error.text))?;
        let resolved = crate::session::resolved(tool, &prepared.args).await;
        let resolved = resolved.map_err(|error| bad(error.text))?;
        let stood = said.expires_ms.saturating_sub(said.created_ms);
        Ok(Proposal {
            args: prepared.args,
            says: prepared.says,
            subject: prepared.subject,
            resolved,
            edited: Some((row.id(), person.id.clone())),
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(stood),
            ..said.clone()
        })
    }
}

impl Approvals {
    async fn replace(
        &self,
        from: &ActionRow,
        (old, new): (&ActionRow, &ActionRow),
        at_ms: u64,
    ) -> Result<(), StoreError> {
        let change = Change {
            guards: vec![Guard::At {
                id: from.id(),
                version: from.version,
            }],
            audit: vec![
                old.told(EventKind::Decided, at_ms),
                new.told(EventKind::Proposed, at_ms),
            ],
            actions: vec![old.clone(), new.clone()],
            ..Change::default()
        };
        self.store.commit(change).await
    }
}
