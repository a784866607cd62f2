//! A call that needs a signature: the action that is made of it, and the way from one of its states to the next.
//!
//! Called by `finish` for a call that was counted and has its key to itself. Everything that is written here is one
//! commit on the condition that nobody else was quicker; whoever was too late looks again. What hands an action to its
//! effect is in `sending.rs`.

use super::daily::of_day;
use super::finish::{After, by_rule};
use super::{Session, Ticket, broken, failed, resolved};
use crate::action::{
    Action, ActionId, ActionRow, Evidence, Proposal, Resolved, Signer, State, Vote,
};
use crate::audit::EventKind;
use crate::call::{ToolCall, sha256};
use crate::effect::Prepared;
use crate::json::Json;
use crate::kill::{self, Target};
use crate::output;
use crate::policy::{Ask, Fit, Verdict, grants_of};
use crate::record::{Observation, Outcome, Ruling, Waiting, Why};
use crate::stop::{Failure, Stop};
use crate::store::{Add, Change, Find, Guard, StoreError};
use crate::tool::{Injections, Registered};
use std::sync::Arc;

/// How often a call looks again when somebody else was quicker. More is no race any more.
const MAX_LOOKS: usize = 32;

/// How one look at an action ended.
#[expect(
    clippy::large_enum_variant,
    reason = "it stands on the stack for a moment, and a box would cost every call"
)]
pub(super) enum Look {
    /// The call is over, or waits.
    Over(After),
    /// Something has changed: look again.
    Again,
}

impl Session {
    /// The checks 8 and 9 for a call that needs a signature.
    pub(super) async fn signed(
        &self,
        mut ticket: Ticket<'_>,
        tool: &Registered,
        injections: &Injections<'_>,
    ) -> Result<After, Stop> {
        for _ in 0..MAX_LOOKS {
            let Some(id) = ticket.place.record.action else {
                if let Some(refused) = self.propose(&mut ticket, tool).await? {
                    let outcome = self.record(&mut ticket, refused.into()).await?;
                    return Ok(After::Ended(outcome));
                }
                continue;
            };
            let row = self.standing(id).await?;
            match self.look(&mut ticket, tool, row, injections).await? {
                Look::Over(after) => return Ok(after),
                Look::Again => {}
            }
        }
        let key = &ticket.place.record.key;
        Err(Stop::Conflict(format!(
            "the action of the call `{key}` does not come to rest"
        )))
    }

    async fn look(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
        row: ActionRow,
        injections: &Injections<'_>,
    ) -> Result<Look, Stop> {
        match row.state {
            State::Pending | State::Held => self.wait(row).await,
            State::Approved => self.start(ticket, tool, row, injections).await,
            State::Executing => self.overtake(tool, row).await,
            State::Unknown => self.find_out(ticket, tool, row, injections).await,
            // `standing` has followed those.
            State::Edited => Err(Stop::Internal(
                "an edited action has no successor".to_owned(),
            )),
            State::Drifted => Err(Stop::Drifted),
            State::Succeeded
            | State::Failed
            | State::Rejected
            | State::Expired
            | State::Cancelled
            | State::Superseded
            | State::Answered => {
                let outcome = outcome(ticket.call, tool.output_cap, &row);
                self.record(ticket, outcome.clone().into()).await?;
                Ok(Look::Over(After::Ended(outcome)))
            }
        }
    }

    /// An action as it stands, or what stands in its place.
    pub(super) async fn standing(&self, id: ActionId) -> Result<ActionRow, Stop> {
        let mut id = id;
        loop {
            let found = self
                .0
                .parts
                .store
                .actions(Find::Id(id))
                .await
                .map_err(broken)?;
            let Some(row) = found.into_iter().next() else {
                return Err(Stop::StoreError(format!(
                    "the action {id} is not in this store"
                )));
            };
            match row.replaced_by {
                // Later ones are greater, so this ends.
                Some(next) if row.state == State::Edited && next > id => id = next,
                _ => return Ok(row),
            }
        }
    }

    /// Makes an action of a call, or says why that is refused.
    async fn propose(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
    ) -> Result<Option<Outcome>, Stop> {
        let name = tool.spec.name.clone();
        let prepared = match fixed(tool, ticket.call.args()) {
            Ok(prepared) => prepared,
            Err(why) => {
                let detail = self.words(&why);
                let failure = Failure::BadArgs { tool: name, detail };
                return Ok(Some(failed(ticket.call, failure)));
            }
        };
        let now_ms = self.now().await?;
        let judged = self.judge(&name, &prepared.args, now_ms);
        ticket.place.record.ruling = Some(Ruling::of(&judged));
        let ask = match judged.verdict {
            Verdict::Denied { .. } => {
                return Ok(Some(failed(ticket.call, by_rule(ticket.call, &judged))));
            }
            Verdict::Ask(ask) => ask,
            // What only reads was to be asked about a moment ago.
            Verdict::Allowed => Ask::default(),
        };
        let scope = &self.0.scope;
        let find = Find::Subject {
            tenant: &scope.tenant,
            thread: &scope.thread,
            subject: &prepared.subject,
        };
        let earlier = self.0.parts.store.actions(find).await.map_err(broken)?;
        if let Some(closed) = earlier.iter().rev().find(|row| row.closes) {
            return Ok(Some(failed(ticket.call, ending_failure(closed))));
        }
        let again = earlier.iter().rev().find(|row| row.was_signed());
        let resolved = match self.resolve(tool, &prepared.args).await? {
            Ok(resolved) => resolved,
            Err(failure) => return Ok(Some(failed(ticket.call, failure))),
        };
        let evidence = self.evidence(ticket.place.record.step).await?;
        let action = Action::of(Proposal {
            run: self.0.run.clone(),
            key: ticket.place.record.key.clone(),
            requester: scope.user.clone(),
            tool: name,
            level: tool.spec.level,
            args: prepared.args,
            says: prepared.says,
            subject: prepared.subject,
            resolved,
            quorum: ask.quorum.max(1),
            not_by_requester: ask.not_by_requester,
            verified: ask.verified,
            policy: judged.policy.to_owned(),
            evidence,
            again: again.map(ActionRow::id),
            edited: None,
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(millis(ask.expires)),
        });
        let action = action.map_err(|error| Stop::Internal(error.to_string()))?;
        // No grant signs the same thing twice on one thread: a fork would do everything again.
        let grants = match again {
            None => judged.grants.as_slice(),
            Some(_) => &[],
        };
        for grant in grants {
            if self.put(ticket, &action, Some(grant), &earlier).await? {
                return Ok(None);
            }
        }
        self.put(ticket, &action, None, &earlier).await?;
        Ok(None)
    }

    /// What the run has read in the steps before this one.
    async fn evidence(&self, step: u64) -> Result<Option<Evidence>, Stop> {
        if let Some(evidence) = self.book().evidence(step) {
            return Ok(evidence);
        }
        let records = self.0.parts.store.calls(&self.0.run).await;
        Ok(Evidence::before(step, &records.map_err(broken)?))
    }

    /// What the effect finds out about its arguments, within the run's time; or why the call fails, because of them or
    /// because the tool could not be called at all.
    async fn resolve(
        &self,
        tool: &Registered,
        args: &Json,
    ) -> Result<Result<Resolved, Failure>, Stop> {
        let looking = async {
            tool.ready().await?;
            resolved(tool, args).await
        };
        let Ok(found) = self.0.budget.within(tool.timeout, looking).await else {
            return match self.0.budget.time_left().is_zero() {
                true => Err(Stop::MaxSeconds),
                false => Ok(Err(Failure::Timeout {
                    tool: tool.spec.name.clone(),
                })),
            };
        };
        Ok(found.map_err(|error| {
            let (tool, detail) = (tool.spec.name.clone(), self.words(&error.text));
            match error.bad_args {
                true => Failure::BadArgs { tool, detail },
                false => Failure::Error { tool, detail },
            }
        }))
    }

    /// Whether an action about the same waits for people although its run is left behind: a later run of the same
    /// agent on the same thread asks now.
    fn left_behind(&self, row: &ActionRow) -> bool {
        let (own, theirs) = (&self.0.run, &row.action.said.run);
        row.state.is_undecided() && own.agent == theirs.agent && own.run != theirs.run
    }

    /// Writes a new action together with the record that it belongs to, in the place of those among the `earlier` ones
    /// about the same that are left behind: signed, if a grant has room for it and no grant has signed for another one
    /// meanwhile. Says no if it has not; else whatever there is now is looked at next.
    async fn put(
        &self,
        ticket: &mut Ticket<'_>,
        action: &Action,
        grant: Option<&Fit<'_>>,
        earlier: &[ActionRow],
    ) -> Result<bool, Stop> {
        let said = &action.said;
        let signed = grant.map(|fit| Vote {
            by: Signer::Rule(fit.grant.to_owned()),
            digest: action.digest.clone(),
            at_ms: said.created_ms,
            seal: None,
        });
        let mut row = ActionRow::proposed(action.clone(), signed);
        self.0.parts.seal.newest(&mut row);
        ticket.place.record.action = Some(row.id());
        if let Some(ruling) = &mut ticket.place.record.ruling {
            ruling.grant = grant.map(|fit| fit.grant.to_owned());
        }
        let ruling = ticket.place.record.ruling.as_ref();
        let in_force = kill::granted(&row);
        let mut change = Change {
            guards: vec![Guard::Alive {
                scopes: Target::of(said).scopes(),
            }],
            audit: vec![row.proposed_by(ruling, &self.0.parts.redactor, said.created_ms)],
            ..Change::default()
        };
        if let Some(fit) = grant {
            change.audit.extend(row.told_granted(fit));
        }
        change.actions.push(row);
        self.supersede(&mut change, action, earlier);
        if let Some(fit) = grant {
            change.guards.push(Guard::Before { at_ms: fit.until });
            change.guards.extend(in_force);
            let by_rule = earlier.iter().filter(|row| row.is_by_rule()).count() as u64;
            let once = (subject_counter(said), 1, by_rule.saturating_add(1));
            let takes = fit.takes.iter();
            let takes = takes.map(|take| (take.counter.clone(), take.by, take.max));
            for (counter, by, most) in takes.chain([once]) {
                let run = Arc::new(grants_of(&said.run.tenant));
                change.guards.push(Guard::Most {
                    run: run.clone(),
                    counter: counter.clone(),
                    most,
                });
                change.add.push(Add { run, counter, by });
            }
        }
        match self.write_with(ticket, change).await {
            Ok(()) => Ok(true),
            Err(StoreError::Refused(guard)) => match *guard {
                // People are asked, then, or another grant is.
                _ if kill::revoked(&guard).is_some() => Ok(false),
                Guard::Alive { .. } => Err(self.killed_by(Target::of(said)).await?),
                // Somebody has decided meanwhile about what is left behind.
                Guard::At { .. } => {
                    ticket.place.record.action = None;
                    Ok(true)
                }
                // It is used up, or over. That the user's day is used up is no matter of grants.
                Guard::Most { .. } | Guard::Before { .. }
                    if grant.is_some() && of_day(&guard).is_none() =>
                {
                    Ok(false)
                }
                _ => Err(broken(StoreError::Refused(guard))),
            },
            Err(error) => Err(broken(error)),
        }
    }

    /// Puts a new action in the place of those among earlier ones that are left behind.
    fn supersede(&self, change: &mut Change, new: &Action, earlier: &[ActionRow]) {
        let at_ms = new.said.created_ms;
        for row in earlier.iter().filter(|row| self.left_behind(row)) {
            let why = self.ended("a later run on the thread asks about the same", at_ms);
            // What waits for people can always be superseded.
            if let Ok(over) = row.supersede((why, new.id)) {
                change.guards.push(at(row));
                change.audit.push(over.told(EventKind::Superseded, at_ms));
                change.actions.push(over);
            }
        }
    }

    /// An action that people have to decide about: the run waits, unless the time is over.
    async fn wait(&self, row: ActionRow) -> Result<Look, Stop> {
        let now_ms = self.now().await?;
        if let Ok(expired) = row.expire(now_ms) {
            return self.step(&row, expired, EventKind::Expired).await;
        }
        let why = match row.state {
            State::Held => Why::Held,
            _ => Why::Approval,
        };
        Ok(Look::Over(After::Waiting(self.waiting(&row, why))))
    }

    /// An action that somebody handed to its effect: somebody who is gone, if that was under an older lease.
    ///
    /// An effect goes on in a task of its own when its caller is cut off, so under the same lease it still is under way.
    /// What only reads ends with its caller, and whoever has its key is alone with it: it may be read again.
    async fn overtake(&self, tool: &Registered, row: ActionRow) -> Result<Look, Stop> {
        let mine = self.0.scope.epoch;
        let gone = match tool.effect {
            Some(_) => row.sending.epoch < mine,
            None => row.sending.epoch <= mine,
        };
        if !gone {
            let id = row.id();
            return Err(Stop::Conflict(format!("the action {id} is under way")));
        }
        let now_ms = self.now().await?;
        let why = self.ended("whoever started it is gone", now_ms);
        let lost = row
            .lose_sight(why, Some(now_ms))
            .map_err(|_| impossible(&row))?;
        self.step(&row, lost, EventKind::Unknown).await
    }

    /// Writes the next row of an action, if it still stands where it was seen.
    pub(super) async fn step(
        &self,
        from: &ActionRow,
        to: ActionRow,
        kind: EventKind,
    ) -> Result<Look, Stop> {
        let now_ms = to
            .ended
            .as_ref()
            .map_or(to.sending.at_ms, |ended| ended.at_ms);
        let change = Change {
            guards: vec![at(from)],
            audit: vec![to.told(kind, now_ms)],
            actions: vec![to],
            ..Change::default()
        };
        match self.commit(change).await {
            Ok(()) | Err(StoreError::Refused(_)) => Ok(Look::Again),
            Err(error) => Err(broken(error)),
        }
    }

    /// What a call waits for. It is kept in checkpoints and events, and shown to anybody: so without secrets.
    pub(super) fn waiting(&self, row: &ActionRow, why: Why) -> Waiting {
        let said = &row.action.said;
        let because = row.ended.as_ref().filter(|ended| !ended.why.is_empty());
        Waiting {
            why,
            action: row.id(),
            digest: row.digest.clone(),
            key: said.key.clone(),
            tool: said.tool.clone(),
            says: self.0.parts.redactor.said(&said.says),
            expires_ms: said.expires_ms,
            due_ms: row.due_ms,
            because: because.map(|ended| ended.why.clone()),
        }
    }

    pub(super) async fn now(&self) -> Result<u64, Stop> {
        self.0.parts.store.now_ms().await.map_err(broken)
    }

    /// The end of a run that met one of these switches.
    pub(super) async fn killed_by(&self, target: Target<'_>) -> Result<Stop, Stop> {
        let parts = &self.0.parts;
        let on = parts
            .kills
            .on(&*parts.store, target)
            .await
            .map_err(broken)?;
        Ok(kill::stop(on.as_deref().unwrap_or(kill::GLOBAL)))
    }
}

pub(super) fn at(row: &ActionRow) -> Guard {
    Guard::At {
        id: row.id(),
        version: row.version,
    }
}

pub(super) fn impossible(row: &ActionRow) -> Stop {
    Stop::Internal(format!(
        "the action {} cannot go on from {}",
        row.id(),
        row.state
    ))
}

/// What would be signed of a call: arguments that the tool, given them again, reads in the same way.
pub(crate) fn fixed(tool: &Registered, args: &Json) -> Result<Prepared, String> {
    let prepared = tool.prepare(args).map_err(|error| error.text)?;
    let again = tool.prepare(&prepared.args).map_err(|error| error.text)?;
    match again == prepared {
        true => Ok(prepared),
        false => Err("the tool reads its own arguments in another way each time".to_owned()),
    }
}

/// Counts how often grants have signed for something about the same on a thread, so that of two calls at once one is
/// signed and the other asks people.
fn subject_counter(said: &Proposal) -> String {
    let (thread, subject) = (&said.run.thread, &said.subject);
    let hash = sha256(&format!("{} {thread} {subject}", thread.len()));
    format!("subject/{hash}")
}

/// What a call ends with whose action is over.
pub(super) fn outcome(call: &ToolCall, output_cap: usize, row: &ActionRow) -> Outcome {
    let read = match (&row.state, &row.receipt) {
        (State::Succeeded, Some(receipt)) => Some(output::shown(receipt.clone(), output_cap).0),
        (State::Answered, _) => Some(in_words("answers", row)),
        (State::Superseded, _) if row.wants_change() => Some(in_words("asks for a change", row)),
        _ => None,
    };
    match read {
        Some(content) => Outcome::Observed(Observation {
            tool: call.name().to_owned(),
            args_hash: call.args_hash().to_owned(),
            content,
            failure: None,
            artifact: None,
            command: None,
            action: Some(row.id()),
        }),
        None => match failed(call, ending_failure(row)) {
            Outcome::Observed(seen) => Outcome::Observed(Observation {
                action: Some(row.id()),
                ..seen
            }),
            stopped => stopped,
        },
    }
}

/// What the model reads of a person's words: data, which says that nothing was done.
fn in_words(what: &str, row: &ActionRow) -> String {
    let words = row.ended.as_ref().map(|ended| ended.why.as_str());
    serde_json::json!({"happened": false, "a_person": what, "words": words.unwrap_or_default()})
        .to_string()
}

/// What the model reads of an action that did not happen.
fn ending_failure(row: &ActionRow) -> Failure {
    let tool = row.action.said.tool.clone();
    let why = row
        .ended
        .as_ref()
        .map(|ended| ended.why.clone())
        .unwrap_or_default();
    match row.state {
        State::Expired => Failure::Expired { tool },
        State::Failed | State::Superseded => Failure::Error { tool, detail: why },
        _ => Failure::Rejected { tool, why },
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
