//! A person changes what is asked for: another action takes its place, checked like any other, to be decided about.
//!
//! It needs the tool, to read the changed arguments as it will; so it belongs to the gateway and not to the desk alone.

use super::{ApprovalError, Approvals, MAX_LOOKS};
use crate::action::{Action, ActionRow, Ended, Person, Proposal, Refusal, Signer};
use crate::audit::{Draft, EventKind};
use crate::call::ToolCall;
use crate::gateway::Gateway;
use crate::policy::{Ask, Request, Targets, Verdict};
use crate::record::Ruling;
use crate::store::{Change, Find, Guard, StoreError};

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
            let ended = Ended {
                by: Signer::Person(person.clone()),
                why: String::new(),
                at_ms,
            };
            let mut old = match row.edit(digest, ended) {
                Ok(old) => old,
                Err(Refusal::OtherDigest) => return Err(ApprovalError::OtherDigest),
                Err(Refusal::Late) => {
                    // What comes too late is written down as over, as for every other decision.
                    let expired = desk.decide(row.id(), |row, now_ms| row.expire(now_ms).map(Some));
                    return Err(ApprovalError::Conflict(Box::new(expired.await?)));
                }
                Err(_) => return Err(ApprovalError::Conflict(Box::new(row))),
            };
            let edited = self.edited(&row, &person, (arguments, at_ms)).await;
            let (said, ruling) = edited?;
            let new =
                Action::of(said).map_err(|error| ApprovalError::BadArgs(error.to_string()))?;
            old.replaced_by = Some(new.id);
            let new = ActionRow::proposed(new, None);
            let told = [
                old.told(EventKind::Decided, at_ms),
                new.proposed_by(Some(&ruling), self.redactor(), at_ms),
            ];
            match desk.replace(&row, (&old, &new), told).await {
                Ok(()) => return Ok(new),
                Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApprovalError::Conflict(Box::new(
            desk.show(row.id()).await?,
        )))
    }

    /// What would be proposed with other arguments, and by which rule. The rules are asked anew: what they want for
    /// these arguments holds beside what they wanted before. (Of what the run has read only its own session knows, which
    /// asks them once more before the action is started.)
    async fn edited(
        &self,
        row: &ActionRow,
        person: &Person,
        (arguments, now_ms): (&str, u64),
    ) -> Result<(Proposal, Ruling), ApprovalError> {
        let said = &row.action.said;
        let parts = self.parts();
        let tool = parts.tool(&said.tool);
        let tool = tool.ok_or_else(|| ApprovalError::NoTool(said.tool.clone()))?;
        let bad = |why: String| ApprovalError::BadArgs(why);
        let call = ToolCall::new(said.tool.clone(), arguments);
        let call = call.map_err(|error| bad(error.to_string()))?;
        tool.check(call.args()).map_err(bad)?;
        let prepared = crate::session::fixed(tool, call.args()).map_err(bad)?;
        let same = Find::Subject {
            tenant: &said.run.tenant,
            thread: &said.run.thread,
            subject: &prepared.subject,
        };
        let mut earlier = parts.store.actions(same).await?;
        earlier.retain(|other| other.id() != row.id());
        if let Some(closed) = earlier.iter().rev().find(|other| other.closes) {
            let id = closed.id();
            return Err(bad(format!(
                "what it is about then is closed by the action {id}"
            )));
        }
        let again = earlier.iter().rev().find(|other| other.was_signed());
        let resolved = crate::session::resolved(tool, &prepared.args).await;
        let resolved = resolved.map_err(|error| bad(error.text))?;
        let judged = parts.rules.decide(&Request {
            tenant: &said.run.tenant,
            agent: &said.run.agent,
            user: &said.requester,
            thread: &said.run.thread,
            tool: &said.tool,
            args: &prepared.args,
            tainted: &[],
            targets: &Targets::new(),
            now_ms,
        });
        let ask = match judged.verdict {
            Verdict::Denied { .. } => return Err(bad(judged.to_string())),
            Verdict::Ask(ask) => ask,
            Verdict::Allowed => Ask::default(),
        };
        let stood = said.expires_ms.saturating_sub(said.created_ms);
        let asked = u64::try_from(ask.expires.as_millis()).unwrap_or(u64::MAX);
        let ruling = Ruling::of(&judged);
        // Other arguments may need more than those that were asked about, and never less.
        let proposal = Proposal {
            quorum: said.quorum.max(ask.quorum),
            not_by_requester: said.not_by_requester || ask.not_by_requester,
            verified: said.verified || ask.verified,
            policy: judged.policy.to_owned(),
            args: prepared.args,
            says: prepared.says,
            subject: prepared.subject,
            resolved,
            again: again.map(ActionRow::id),
            edited: Some((row.id(), person.id.clone())),
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(stood.min(asked)),
            ..said.clone()
        };
        Ok((proposal, ruling))
    }
}

impl Approvals {
    async fn replace(
        &self,
        from: &ActionRow,
        (old, new): (&ActionRow, &ActionRow),
        told: [Draft; 2],
    ) -> Result<(), StoreError> {
        let change = Change {
            guards: vec![Guard::At {
                id: from.id(),
                version: from.version,
            }],
            audit: told.into(),
            actions: vec![old.clone(), new.clone()],
            ..Change::default()
        };
        self.store.commit(change).await
    }
}
