//! A signed action on its way: looked at once more, started in one transaction, run, and its end written in another.
//!
//! Called by `signing.rs`. An action is handed to its effect at most once for each call of the gateway, in a task of
//! its own: whoever is cut off while it runs leaves it running, and its end is written all the same.

use super::finish::After;
use super::looking::Sight;
use super::signing::{Look, at, impossible, outcome};
use super::{Session, Ticket, broken};
use crate::action::{ActionRow, Ended, Signer, State};
use crate::audit::EventKind;
use crate::effect::{Chance, Erased, Found, Sent, patience};
use crate::json::{Bounds, Json};
use crate::kill::{self, Target};
use crate::record::{CallRecord, Outcome, Why};
use crate::stop::Stop;
use crate::store::{Change, Guard, StoreError, Wake};
use crate::tool::{Injections, Registered, Tried};
use std::sync::Arc;
use std::time::Duration;

impl Session {
    /// Starts what was signed, if it still is what would happen.
    pub(super) async fn start(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
        row: ActionRow,
        injections: &Injections<'_>,
    ) -> Result<Look, Stop> {
        let now_ms = self.now().await?;
        if let Ok(expired) = row.expire(now_ms) {
            return self.step(&row, expired, EventKind::Expired).await;
        }
        if row.due_ms.is_some_and(|due| due > now_ms) {
            return Ok(Look::Over(After::Waiting(
                self.waiting(&row, Why::Unchecked),
            )));
        }
        match self.look_again(tool, &row, now_ms).await {
            Sight::Same => self.send(ticket, tool, (row, now_ms), injections).await,
            sight => {
                let next = self.unsent(&row, sight, now_ms)?;
                self.commit_unsent(&row, next).await
            }
        }
    }

    /// What becomes of an action that was signed, or claimed for the first time, and must not be handed over now.
    fn unsent(&self, row: &ActionRow, sight: Sight, now_ms: u64) -> Result<Unsent, Stop> {
        let ended = |why: &str| self.ended(why, now_ms);
        let next = match sight {
            Sight::Same => return Err(impossible(row)),
            Sight::Drifted(why, changed) => {
                let next = row.drift(ended(&why), changed);
                next.map(|row| (row, EventKind::Drifted))
            }
            Sight::NotEntitled(why) => {
                let next = row.hold_back(ended(&why));
                next.map(|row| (row, EventKind::Held))
            }
            Sight::Killed => {
                let next = row.hold_back(ended(KILLED));
                next.map(|row| (row, EventKind::Held))
            }
            Sight::Unclear(why) => {
                let due_ms = later(now_ms, patience(row.version));
                let next = row.postpone(ended(&why), due_ms);
                next.map(|row| (row, EventKind::Revalidated))
            }
        };
        let (row, kind) = next.map_err(|_| impossible(row))?;
        Ok(Unsent { row, kind })
    }

    /// Writes that down, if the action still stands where it was seen; the next look shows it.
    async fn commit_unsent(&self, from: &ActionRow, next: Unsent) -> Result<Look, Stop> {
        let change = next.change(from);
        match self.commit(change).await {
            Ok(()) | Err(StoreError::Refused(_)) => Ok(Look::Again),
            Err(error) => Err(broken(error)),
        }
    }

    /// That the gateway itself found this.
    pub(super) fn ended(&self, why: &str, at_ms: u64) -> Ended {
        Ended {
            by: Signer::Gateway,
            why: self.words(why),
            at_ms,
        }
    }

    /// Claims the action and hands it over.
    async fn send(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
        (row, now_ms): (ActionRow, u64),
        injections: &Injections<'_>,
    ) -> Result<Look, Stop> {
        let epoch = self.0.scope.epoch;
        let sent = row.send(epoch, now_ms).map_err(|_| impossible(&row))?;
        let said = &row.action.said;
        let scopes = Target::of(said).scopes();
        let mut guards = vec![at(&row), Guard::Alive { scopes }];
        guards.extend(kill::granted(&row));
        let mut audit = Vec::new();
        if row.state == State::Approved {
            guards.push(Guard::Before {
                at_ms: said.expires_ms,
            });
            audit.push(row.told(EventKind::Revalidated, now_ms));
        }
        audit.push(sent.told(EventKind::AttemptStarted, now_ms));
        let claim = Change {
            guards,
            audit,
            actions: vec![sent.clone()],
            ..Change::default()
        };
        match self.commit(claim).await {
            Ok(()) => {}
            Err(StoreError::Refused(guard)) => return self.not_started(&row, *guard).await,
            Err(error) => return Err(broken(error)),
        }
        let settled = match &tool.effect {
            Some(effect) => self.do_it(ticket, tool, effect.clone(), sent).await?,
            None => self.read_it(ticket, tool, sent, injections).await?,
        };
        Ok(Look::Over(settled))
    }

    /// Why an action was not started, and what becomes of it.
    async fn not_started(&self, row: &ActionRow, guard: Guard) -> Result<Look, Stop> {
        if let Some(grant) = kill::revoked(&guard) {
            return self.not_granted(row, &grant).await;
        }
        let Guard::Alive { .. } = guard else {
            // Somebody was quicker, or the time is over: the next look shows it.
            return Ok(Look::Again);
        };
        if row.state == State::Approved {
            let why = self.ended(KILLED, self.now().await?);
            let held = row.hold_back(why).map_err(|_| impossible(row))?;
            return self.step(row, held, EventKind::Held).await;
        }
        // What may have arrived stays unknown.
        Ok(Look::Over(After::Waiting(self.waiting(row, Why::Killed))))
    }

    /// What becomes of an action whose grant was revoked before it was started: people decide anew. Of one that may have
    /// arrived, a person says what came of it.
    async fn not_granted(&self, row: &ActionRow, grant: &str) -> Result<Look, Stop> {
        let why = self.ended(&revoked_words(grant), self.now().await?);
        let (next, kind) = match row.state {
            State::Approved => (row.hold_back(why), EventKind::Held),
            _ => (row.lose_sight(why, None), EventKind::Unknown),
        };
        let next = next.map_err(|_| impossible(row))?;
        self.step(row, next, kind).await
    }

    /// Hands an action to its effect, in a task that goes on if this one is cut off.
    async fn do_it(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
        effect: Arc<dyn Erased>,
        row: ActionRow,
    ) -> Result<After, Stop> {
        // Whoever looks at the key meanwhile has to ask the store.
        ticket.place.in_doubt = true;
        let limit = tool.timeout;
        let (session, record) = (self.clone(), ticket.place.record.clone());
        let of_call = outcome_of(ticket, tool);
        let work = async move {
            if session.depends(&row)
                && let Some(row) = session.just_before(&row).await?
            {
                return Ok(Settled { row, record });
            }
            let sending = tokio::time::timeout(limit, effect.send(row.action.clone())).await;
            let sent = sending.unwrap_or_else(|_| {
                Sent::Unknown(format!(
                    "it took longer than {} seconds",
                    limit.as_secs_f32()
                ))
            });
            session.settle(row, sent, record, of_call).await
        };
        let settled = tokio::spawn(work).await;
        let settled = settled.map_err(|error| Stop::Internal(error.to_string()))?;
        self.take(ticket, settled?)
    }

    /// The last look at an action that this process has claimed and not handed over yet: that it still is as it was
    /// signed, and is ours, and that no kill switch came while that was looked at. Gives what became of it otherwise.
    ///
    /// What was handed over before, by an attempt whose end nobody saw, stays unknown: that attempt itself may be what
    /// changed the world.
    async fn just_before(&self, row: &ActionRow) -> Result<Option<ActionRow>, Stop> {
        let said = &row.action.said;
        let tool = self.0.parts.tool(&said.tool);
        let tool = tool.ok_or_else(|| impossible(row))?;
        let now_ms = self.now().await?;
        let sight = self.look_again(tool, row, now_ms).await;
        if sight == Sight::Same {
            let mut ours = Change {
                guards: vec![
                    at(row),
                    Guard::Alive {
                        scopes: Target::of(said).scopes(),
                    },
                ],
                ..Change::default()
            };
            ours.guards.extend(kill::granted(row));
            return match self.commit(ours).await {
                Ok(()) => Ok(None),
                Err(StoreError::Refused(guard)) if let Some(grant) = kill::revoked(&guard) => {
                    let sight = Sight::NotEntitled(revoked_words(&grant));
                    self.not_handed_over(row, sight, now_ms).await.map(Some)
                }
                Err(StoreError::Refused(guard)) if matches!(*guard, Guard::Alive { .. }) => {
                    let row = self.not_handed_over(row, Sight::Killed, now_ms).await?;
                    Ok(Some(row))
                }
                Err(error) => Err(broken(error)),
            };
        }
        self.not_handed_over(row, sight, now_ms).await.map(Some)
    }

    /// Writes down that a claimed action was not handed over.
    async fn not_handed_over(
        &self,
        row: &ActionRow,
        sight: Sight,
        now_ms: u64,
    ) -> Result<ActionRow, Stop> {
        let next = match row.sending.times {
            1 => self.unsent(row, sight, now_ms)?,
            _ => {
                let (why, due_ms) = match sight {
                    Sight::Drifted(why, _) | Sight::NotEntitled(why) => (why, None),
                    Sight::Unclear(why) => (why, Some(later(now_ms, patience(row.version)))),
                    Sight::Killed => (KILLED.to_owned(), Some(now_ms)),
                    Sight::Same => return Err(impossible(row)),
                };
                let next = row.lose_sight(self.ended(&why, now_ms), due_ms);
                Unsent {
                    row: next.map_err(|_| impossible(row))?,
                    kind: EventKind::Unknown,
                }
            }
        };
        let mut change = next.change(row);
        if next.row.state == State::Approved {
            // Votes that a kill switch or a revocation has made void do not come back by this.
            let scopes = Target::of(&row.action.said).scopes();
            change.guards.push(Guard::Alive { scopes });
            change.guards.extend(kill::granted(row));
        }
        match self.commit(change).await {
            Ok(()) => Ok(next.row),
            Err(StoreError::Refused(guard)) if matches!(*guard, Guard::Alive { .. }) => {
                let sight = match kill::revoked(&guard) {
                    Some(grant) => Sight::NotEntitled(revoked_words(&grant)),
                    None => Sight::Killed,
                };
                let held = self.unsent(row, sight, now_ms)?;
                self.commit(held.change(row)).await.map_err(broken)?;
                Ok(held.row)
            }
            Err(error) => Err(broken(error)),
        }
    }

    /// Runs a tool that reads, now that somebody has approved it.
    async fn read_it(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
        row: ActionRow,
        injections: &Injections<'_>,
    ) -> Result<After, Stop> {
        let (tried, ms) = super::running::run(self, tool, ticket, injections).await;
        let (sent, read) = match tried {
            Ok(Tried::Output(output)) => (Sent::Done(output.content.clone()), Some(output)),
            Ok(Tried::Failed(error)) => (Sent::Nothing(error.text), None),
            Ok(Tried::Open(why)) => (Sent::Unknown(why.unwrap_or_default()), None),
            Err(_) => (Sent::Nothing("it did not finish in time".to_owned()), None),
        };
        let read = read.map(|output| self.ending(tool, ticket.call, Ok(Ok(output)), ms).outcome);
        ticket.place.in_doubt = true;
        let (record, of_action) = (ticket.place.record.clone(), outcome_of(ticket, tool));
        // What it gave the program beside its text goes with it.
        let of_call = |row: &ActionRow| match &read {
            Some(outcome) if row.state == State::Succeeded => outcome.clone(),
            _ => of_action(row),
        };
        let settled = self.settle(row, sent, record, of_call).await?;
        self.take(ticket, settled)
    }

    /// Writes how an attempt ended: the action, its call and the audit in one commit.
    async fn settle(
        &self,
        row: ActionRow,
        sent: Sent,
        record: CallRecord,
        of_call: impl Fn(&ActionRow) -> Outcome,
    ) -> Result<Settled, Stop> {
        let now_ms = self.now().await?;
        let ended = |why: &str| self.ended(why, now_ms);
        let next = match sent {
            Sent::Done(receipt) => row.succeed(receipt, ended("")),
            Sent::Nothing(why) => row.fail(ended(&why)),
            Sent::Unknown(why) => {
                let due_ms = later(now_ms, patience(row.sending.times));
                row.lose_sight(ended(&why), Some(due_ms))
            }
        };
        let next = next.map_err(|_| impossible(&row))?;
        self.write_down(&row, next, record, of_call).await
    }

    /// Writes the next row of an action that was handed over, with the end of its call if it has one.
    async fn write_down(
        &self,
        from: &ActionRow,
        to: ActionRow,
        mut record: CallRecord,
        of_call: impl Fn(&ActionRow) -> Outcome,
    ) -> Result<Settled, Stop> {
        let at_ms = to.ended.as_ref().map_or(0, |ended| ended.at_ms);
        let kind = match (to.state, from.state) {
            (State::Unknown, _) => EventKind::Unknown,
            (_, State::Unknown) => EventKind::Reconciled,
            _ => EventKind::ProviderReplied,
        };
        let reply = self.reply(to.receipt.as_deref().unwrap_or_default());
        let mut change = Change {
            guards: vec![at(from)],
            audit: vec![to.told_reply(kind, &reply, at_ms)],
            actions: vec![to.clone()],
            ..Change::default()
        };
        if to.state.is_final() {
            record.outcome = Some(of_call(&to));
            record.ms = at_ms.saturating_sub(to.sending.at_ms);
            change.guards.push(Guard::Open {
                run: record.run.clone(),
                key: record.key.clone(),
            });
            if record.ok() {
                change.add.extend(self.was_read(&record.tool));
            }
            change.calls.push(record.clone());
        } else if let Some(due_ms) = to.due_ms {
            change.wake.push(Wake::of(&to, due_ms));
        }
        self.commit(change).await.map_err(broken)?;
        Ok(Settled { row: to, record })
    }

    /// A receipt as the audit keeps it: without secrets.
    fn reply(&self, receipt: &str) -> String {
        let redactor = &self.0.parts.redactor;
        match Json::read(receipt, Bounds::default()) {
            Ok(json) => redactor.json(json.view()),
            Err(_) => redactor.text(receipt),
        }
    }

    /// What was written becomes what this call knows.
    fn take(&self, ticket: &mut Ticket<'_>, settled: Settled) -> Result<After, Stop> {
        ticket.place.in_doubt = false;
        ticket.place.record = settled.record;
        let why = match settled.row.state {
            State::Drifted => return Err(Stop::Drifted),
            State::Approved => Why::Unchecked,
            State::Held => Why::Held,
            _ => Why::Unknown,
        };
        Ok(match &ticket.place.record.outcome {
            Some(outcome) => After::Ended(outcome.clone()),
            None => After::Waiting(self.waiting(&settled.row, why)),
        })
    }

    /// An attempt whose end nobody saw: finds out what came of it, once it is due.
    pub(super) async fn find_out(
        &self,
        ticket: &mut Ticket<'_>,
        tool: &Registered,
        row: ActionRow,
        injections: &Injections<'_>,
    ) -> Result<Look, Stop> {
        let now_ms = self.now().await?;
        if row.due_ms.is_none_or(|due| due > now_ms) {
            return Ok(Look::Over(After::Waiting(self.waiting(&row, Why::Unknown))));
        }
        let found = match &tool.effect {
            // What only reads can be done again.
            None => Ok(Found::SendAgain),
            Some(effect) => {
                let since = Duration::from_millis(now_ms.saturating_sub(row.sending.at_ms));
                looked_up(tool.timeout, effect.clone(), (&row, since)).await
            }
        };
        let ended = |why: &str| self.ended(&first_and(&row, why), now_ms);
        let next = match found {
            // What is handed over is signed, however often: the store may say anything of what was before.
            Ok(Found::SendAgain) => match self
                .drifted(tool, &row, now_ms)
                .or_else(|| self.unproved(&row).map(str::to_owned))
            {
                None => return self.send(ticket, tool, (row, now_ms), injections).await,
                Some(why) => row.lose_sight(ended(&why), None),
            },
            Ok(Found::Done(receipt)) => row.succeed(receipt, self.ended("", now_ms)),
            Ok(Found::NotYet(wait)) => {
                row.lose_sight(ended("it may still arrive"), Some(later(now_ms, wait)))
            }
            Ok(Found::CannotTell) => row.lose_sight(
                ended("nobody but a person can find out what came of it"),
                None,
            ),
            Err(why) => {
                let due_ms = later(now_ms, patience(row.version));
                row.lose_sight(ended(&why), Some(due_ms))
            }
        };
        let next = next.map_err(|_| impossible(&row))?;
        let (record, of_call) = (ticket.place.record.clone(), outcome_of(ticket, tool));
        ticket.place.in_doubt = true;
        let settled = self.write_down(&row, next, record, of_call).await?;
        self.take(ticket, settled).map(Look::Over)
    }
}

/// Why nobody saw what came of an attempt, which stays the first that is said of it, and what was found out since.
fn first_and(row: &ActionRow, found: &str) -> String {
    const SINCE: &str = "; looked up since: ";
    let known = row.ended.as_ref().map_or("", |ended| ended.why.as_str());
    let first = known.split(SINCE).next().unwrap_or_default();
    match first.is_empty() {
        true => found.to_owned(),
        false => format!("{first}{SINCE}{found}"),
    }
}

/// What is said of an action that a kill switch came before while it was looked at.
const KILLED: &str = "a kill switch came before it was handed over";

/// What is said of an action whose grant was revoked after it had signed.
fn revoked_words(grant: &str) -> String {
    format!("the grant `{grant}`, which signed it, was revoked")
}

/// The next row of an action that was not handed over, and what the audit calls it.
struct Unsent {
    row: ActionRow,
    kind: EventKind,
}

impl Unsent {
    /// It in the place of the row that it was made from, with a wake if it is to be looked at again.
    fn change(&self, from: &ActionRow) -> Change {
        let row = &self.row;
        let at_ms = row.ended.as_ref().map_or(0, |ended| ended.at_ms);
        let wakes = row.due_ms.map(|due_ms| Wake::of(row, due_ms));
        Change {
            guards: vec![at(from)],
            audit: vec![row.told(self.kind, at_ms)],
            actions: vec![row.clone()],
            wake: wakes.into_iter().collect(),
            ..Change::default()
        }
    }
}

/// What was written about an attempt.
struct Settled {
    row: ActionRow,
    record: CallRecord,
}

/// What the call gets once its action is over; on its own, so that a task can have it.
fn outcome_of(
    ticket: &Ticket<'_>,
    tool: &Registered,
) -> impl Fn(&ActionRow) -> Outcome + Send + use<> {
    let (call, cap) = (ticket.call.clone(), tool.output_cap);
    move |row| outcome(&call, cap, row)
}

async fn looked_up(
    limit: Duration,
    effect: Arc<dyn Erased>,
    (row, since): (&ActionRow, Duration),
) -> Chance {
    let looking = tokio::spawn(tokio::time::timeout(
        limit,
        effect.look(row.action.clone(), row.sending.times, since),
    ));
    match looking.await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Err("looking it up took too long".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn later(now_ms: u64, wait: Duration) -> u64 {
    now_ms.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}
