//! The door: one run's calls, checked in one order, run at most once per key, recorded.
//!
//! Agents call [`Session::call`]; nothing else in the project runs a tool. The order of the checks is
//! written down at [`Session::call`] and followed by [`Session::admit`] and `finish`. Rules are asked
//! elsewhere (`policy`, `budget`, `book`), the store is only told.

mod daily;
mod finish;
mod judging;
mod ledger;
mod looking;
mod running;
mod sending;
mod signing;
mod telling;

use crate::book::{Book, Known, Place, Stands};
use crate::budget::{Budget, Usage};
use crate::call::ToolCall;
use crate::dialect::Dialect;
use crate::gateway::Parts;
use crate::kill::{self, Target};
use crate::loops::LoopRule;
use crate::output;
use crate::policy::{Targets, Verdict, closest};
use crate::record::{CallRecord, Observation, Outcome, Reply, Ruling, RunRef, Waiting, Why};
use crate::stop::{Failure, Stop};
use crate::store::{Change, StoreError};
use crate::tool::{Injections, Progress, ToolContext};
pub use daily::SetAside;
use futures::future::join_all;
use judging::Taint;
use ledger::Ledger;
pub(crate) use looking::resolved;
pub(crate) use signing::fixed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whose run a session is, and how it answers.
///
/// ```
/// use paraph_gateway::{Dialect, Scope};
/// let scope = Scope { dialect: Dialect::Strict, run: "run-2".into(), ..Scope::new("support", "case-7") };
/// # let _ = scope;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Whose data it is.
    pub tenant: String,
    /// For whom the agent acts.
    pub user: String,
    /// The agent's name.
    pub agent: String,
    /// The thread's name.
    pub thread: String,
    /// The run's id. A run that goes on has the same one; a fork, like a child, has its own.
    pub run: String,
    /// Which lease of the run this is made under: a newer one has a larger number.
    pub epoch: u64,
    /// What a failed call does to the run.
    pub dialect: Dialect,
    /// What counts as a loop.
    pub loops: LoopRule,
    /// What the program, and no model, says that the run is about: flow rules hold effects to it.
    pub targets: Targets,
}

impl Scope {
    /// A thread's only run, of the local user, with native tool calls and exact loop detection.
    pub fn new(agent: impl Into<String>, thread: impl Into<String>) -> Scope {
        let thread = thread.into();
        Scope {
            tenant: "local".to_owned(),
            user: "local".to_owned(),
            agent: agent.into(),
            run: thread.clone(),
            thread,
            epoch: 1,
            dialect: Dialect::default(),
            loops: LoopRule::default(),
            targets: Targets::new(),
        }
    }

    /// What its records are kept under.
    pub fn run_ref(&self) -> RunRef {
        RunRef {
            tenant: self.tenant.clone(),
            agent: self.agent.clone(),
            thread: self.thread.clone(),
            run: self.run.clone(),
        }
    }
}

/// One run at the gateway. A handle: clones are the same session, and any thread may call.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    parts: Arc<Parts>,
    scope: Scope,
    run: Arc<RunRef>,
    budget: Budget,
    book: Mutex<Book>,
    ledger: Ledger,
    taint: Taint,
}

/// A call that has passed the counting checks: taken in the book until it is dropped.
struct Ticket<'c> {
    session: &'c Session,
    call: &'c ToolCall,
    place: Place,
}

#[expect(
    clippy::large_enum_variant,
    reason = "it stands on the stack for a moment, and a box would cost every call"
)]
enum Admitted<'c> {
    /// The key is known and the call has ended.
    Ended(Outcome),
    /// The call was counted and goes no further than this.
    Refused(Ticket<'c>, Outcome),
    /// The call may go on to its schema.
    Go(Ticket<'c>),
    /// The call's action is not over, and a kill switch is on.
    Waits(Waiting),
}

/// What a kill switch makes of a call.
enum Switched {
    /// None is on, or none that matters to it.
    Off,
    /// Its action is not over, and waits.
    Waits(Waiting),
    /// It was begun, and what it was begun for may wait.
    Begun(Stop),
}

impl Session {
    pub(crate) async fn open(
        parts: Arc<Parts>,
        scope: Scope,
        budget: Budget,
        known: &Usage,
    ) -> Result<Session, Stop> {
        let run = Arc::new(scope.run_ref());
        let records = parts.store.calls(&run).await.map_err(broken)?;
        let counters = parts.store.counters(&run).await.map_err(broken)?;
        let earlier = ledger::usage(&records, &counters);
        let children = ledger::children(&counters);
        budget.know_children(children.clone());
        budget.charge_earlier(&earlier.clone().at_least(known));
        // Whatever else the purse has used by now is the run's too, and the store has yet to be told.
        Ok(Session(Arc::new(Inner {
            book: Mutex::new(Book::open(scope.loops, scope.dialect, records)),
            ledger: Ledger::knowing(&earlier, children),
            taint: Taint::of(&parts, &run).await?,
            parts,
            scope,
            run,
            budget,
        })))
    }

    /// Calls a tool, once per key.
    ///
    /// `key` names the call: in a plain loop the step, in a graph `ctx.key("call")`. A key that is known
    /// gives what was recorded under it, without being counted or checked again; a call that was cut off
    /// before it ended runs again under its key. The same key for another call is [`Stop::KeyReused`], a
    /// key whose call is under way [`Stop::Conflict`].
    ///
    /// At first sight the checks are, in this order:
    ///
    /// 1. the kill switch, which consumes nothing; a key whose action is not over waits until it is off,
    /// 2. the run's time, its calls, and those of this tool; from here on the call is counted,
    /// 3. the policy: denied, and what no rule names,
    /// 4. whether the tool is registered,
    /// 5. loops; the call is noted before it runs, with the key that was first. In the native dialect a
    ///    call that 3 or 4 refused is noted too: the run goes on, and a model that asks for the same
    ///    refused call again is in a loop,
    /// 6. the arguments against the tool's schema,
    /// 7. the rules that look further than at the name: arguments, people, hours, what the run has read from strangers,
    /// 8. approval: what needs one becomes an action, which a person or a standing grant has to sign
    ///    ([`Reply::Waiting`]). A key whose action is known skips all before and goes to where that stands,
    /// 9. the tool, within its own time and the run's; the earlier one names the reason,
    /// 10. the output cap, and the record.
    ///
    /// A failure of this call is an observation in the native dialect and the end of the run in the
    /// strict one. Time, budget and loops always end the run.
    ///
    /// When calls run in parallel, those that arrive first get the last slots of the budget; never do
    /// more run than there are slots. [`Session::call_all`] makes the order certain.
    pub async fn call(&self, key: &str, call: &ToolCall) -> Result<Reply, Stop> {
        self.call_with(key, call, &Injections::new()).await
    }

    /// [`Session::call`], with values for the tool that the model neither sees nor reaches. They are no
    /// part of what is judged, hashed or recorded.
    pub async fn call_with(
        &self,
        key: &str,
        call: &ToolCall,
        injections: &Injections<'_>,
    ) -> Result<Reply, Stop> {
        let admitted = match self.under_switch(key, call).await? {
            Switched::Off => self.admit(key, call)?,
            Switched::Waits(waiting) => Admitted::Waits(waiting),
            Switched::Begun(stop) => return self.still_waits(key, call, injections, stop).await,
        };
        self.finish(admitted, injections).await
    }

    /// Calls several tools in parallel, as a model asked for them in one turn.
    ///
    /// All of them pass the counting checks in the order of the list before any of them runs: if the
    /// budget has fewer slots than there are calls, the first ones get them, in every run alike. There is
    /// one result for each call, in the order of the list.
    pub async fn call_all(&self, calls: &[(String, ToolCall)]) -> Vec<Result<Reply, Stop>> {
        let mut waits = Vec::new();
        for (key, call) in calls {
            waits.push(self.under_switch(key, call).await);
        }
        let admitted: Vec<_> = calls
            .iter()
            .zip(waits)
            .map(|((key, call), waits)| match waits? {
                Switched::Off => self.admit(key, call),
                Switched::Waits(waiting) => Ok(Admitted::Waits(waiting)),
                Switched::Begun(stop) => Err(stop),
            })
            .collect();
        let finished = admitted
            .into_iter()
            .map(async |admitted| self.finish(admitted?, &Injections::new()).await);
        join_all(finished).await
    }

    /// The run's purse, for its steps, model calls, pauses and children.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    /// Whose run it is.
    pub fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// The run's calls so far, in the order in which they were admitted.
    pub fn records(&self) -> Vec<CallRecord> {
        self.book().records()
    }

    /// Saves what the run has used beside its calls: steps, time, tokens, money. Every call saves it
    /// too; an agent does so before it pauses or ends.
    pub async fn save(&self) -> Result<(), Stop> {
        self.commit(Change::default()).await.map_err(broken)
    }

    /// The check 1, and what is in doubt about the key. A call that was there before the switch loses nothing by it: one
    /// that has ended gives what it gave, and one whose action is not over waits until the switch is off.
    async fn under_switch(&self, key: &str, call: &ToolCall) -> Result<Switched, Stop> {
        let killed = self.alive(call).await;
        if let Err(stop @ Stop::StoreError(_)) = killed {
            return Err(stop);
        }
        self.settle_doubt(key).await?;
        let Err(stop) = killed else {
            return Ok(Switched::Off);
        };
        let stands = self.book().stands(key, call);
        let row = match stands {
            Stands::Ended => return Ok(Switched::Off),
            Stands::Begun => return Ok(Switched::Begun(stop)),
            Stands::Nowhere => return Err(stop),
            Stands::At(id) => self.standing(id).await?,
        };
        let over = row.state.is_final() || row.expire(self.now().await?).is_ok();
        Ok(match over {
            true => Switched::Off,
            false => Switched::Waits(self.waiting(&row, Why::Killed)),
        })
    }

    /// A call that was begun before the switch came, and has no action of its own: that of an agent which was called and
    /// waits for people. What it waits for is not lost by the switch either.
    async fn still_waits(
        &self,
        key: &str,
        call: &ToolCall,
        injections: &Injections<'_>,
        stop: Stop,
    ) -> Result<Reply, Stop> {
        let parts = &self.0.parts;
        let Some(tool) = parts.tool(call.name()) else {
            return Err(stop);
        };
        let Known::CutOff(place) = self.book().look_up(key, call)? else {
            return Err(stop);
        };
        let ticket = Ticket {
            session: self,
            call,
            place: *place,
        };
        let context = ToolContext::new(key, injections, &parts.provided, Progress::default());
        let waits = tool.still_waits(call, &context).await;
        drop(ticket);
        match waits {
            true => Ok(Reply::Unfinished),
            false => Err(stop),
        }
    }

    /// Whether no kill switch is on that concerns this call.
    async fn alive(&self, call: &ToolCall) -> Result<(), Stop> {
        let parts = &self.0.parts;
        let tool = parts.tool(call.name());
        let writes = tool.is_some_and(|tool| tool.spec.level.is_effect());
        let target = Target {
            tenant: &self.0.scope.tenant,
            agent: &self.0.scope.agent,
            tool: call.name(),
            writes,
        };
        match parts
            .kills
            .on(&*parts.store, target)
            .await
            .map_err(broken)?
        {
            None => Ok(()),
            Some(scope) => Err(kill::stop(&scope)),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The checks 2 to 5, under one lock: nobody else's call comes between them.
    fn admit<'c>(&'c self, key: &str, call: &'c ToolCall) -> Result<Admitted<'c>, Stop> {
        let mut book = self.book();
        let mut place = match book.look_up(key, call)? {
            Known::Ended(outcome) => return Ok(Admitted::Ended(outcome)),
            Known::CutOff(place) => *place,
            Known::No => {
                self.0.budget.count_call(call.name())?;
                book.enter(self.first_record(key, call))
            }
        };
        if place.record.action.is_some() {
            // It goes to where its action stands, whatever the rules say by now: it may have been done already.
            return Ok(Admitted::Go(Ticket {
                session: self,
                call,
                place,
            }));
        }
        let refusal = self.refusal(call).map(|(failure, ruling)| {
            place.record.ruling = Some(ruling);
            failure
        });
        let watched = refusal.is_none() || self.0.scope.dialect.watches_refusals();
        let refusal = match watched && book.closes_loop(key, call) {
            true => Some(Outcome::Stopped(Stop::LoopDetected)),
            false => refusal.map(|failure| failed(call, failure)),
        };
        let ticket = Ticket {
            session: self,
            call,
            place,
        };
        Ok(match refusal {
            Some(outcome) => Admitted::Refused(ticket, outcome),
            None => Admitted::Go(ticket),
        })
    }

    /// The checks 3 and 4. They are made again for a call that was cut off: the rules may have changed.
    fn refusal(&self, call: &ToolCall) -> Option<(Failure, Ruling)> {
        let name = call.name();
        let rules = &self.0.parts.rules;
        let verdict = rules.policy().verdict(name);
        let failure = match verdict {
            Verdict::Denied { named } => self.denied(name, named),
            Verdict::Allowed | Verdict::Ask(_) if self.0.parts.tool(name).is_none() => {
                Failure::Missing {
                    tool: name.to_owned(),
                }
            }
            Verdict::Allowed | Verdict::Ask(_) => return None,
        };
        Some((failure, rules.by_name(name, verdict)))
    }

    fn first_record(&self, key: &str, call: &ToolCall) -> CallRecord {
        CallRecord {
            run: self.0.run.clone(),
            key: key.to_owned(),
            seq: 0,
            step: self.0.budget.totals().steps,
            epoch: self.0.scope.epoch,
            tool: call.name().to_owned(),
            arguments: call.arguments(),
            args_hash: call.args_hash().to_owned(),
            args_digest: call.digest().to_owned(),
            action: None,
            ruling: None,
            outcome: None,
            full_output: None,
            ms: 0,
        }
    }

    /// Denied, with words that tell a model which mistake it made: a tool it may not use, or one that
    /// does not exist.
    fn denied(&self, name: &str, named: bool) -> Failure {
        const MOST_NAMES: usize = 20;
        let parts = &self.0.parts;
        let why = match (parts.tool(name).is_some(), named) {
            (false, _) => {
                let names: Vec<_> = parts.usable_names().take(MOST_NAMES).collect();
                let close = match closest(name, parts.usable_names()) {
                    Some(close) => format!("; the closest is `{close}`"),
                    None => String::new(),
                };
                match names.as_slice() {
                    [] => "no tool has that name".to_owned(),
                    [only] => format!("no tool has that name; there is only {only}"),
                    names => format!(
                        "no tool has that name; there are {}{close}",
                        names.join(", ")
                    ),
                }
            }
            (true, true) => "a rule denies it".to_owned(),
            (true, false) => "no rule allows it".to_owned(),
        };
        Failure::Denied {
            tool: name.to_owned(),
            why,
        }
    }

    /// Writes to the store, together with whatever usage it does not know of yet.
    async fn commit(&self, mut change: Change) -> Result<(), StoreError> {
        let (used, children) = (self.0.budget.totals(), self.0.budget.children());
        let spent = self.0.ledger.take(&used, &children);
        change.add.extend(spent.adds(&self.0.run));
        if change == Change::default() {
            return Ok(());
        }
        self.0.parts.store.commit(change).await?;
        spent.told();
        Ok(())
    }

    /// If it is not known whether the last write about a key arrived, asks the store.
    async fn settle_doubt(&self, key: &str) -> Result<(), Stop> {
        if !self.book().is_in_doubt(key) {
            return Ok(());
        }
        let records = self
            .0
            .parts
            .store
            .calls(&self.0.run)
            .await
            .map_err(broken)?;
        let stored = records.into_iter().find(|record| record.key == key);
        self.book().settle_doubt(key, stored);
        Ok(())
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("scope", &self.0.scope)
            .field("used", &self.0.budget.used())
            .finish_non_exhaustive()
    }
}

impl Drop for Ticket<'_> {
    /// Gives the key back. A caller that was cut off leaves a record without an outcome.
    fn drop(&mut self) {
        self.session.book().leave(&mut self.place);
    }
}

/// What is remembered of a call that failed.
fn failed(call: &ToolCall, failure: Failure) -> Outcome {
    Outcome::Observed(Observation {
        tool: call.name().to_owned(),
        args_hash: call.args_hash().to_owned(),
        content: output::of_failure(&failure),
        failure: Some(failure),
        artifact: None,
        command: None,
        action: None,
    })
}

fn broken(error: StoreError) -> Stop {
    if let StoreError::Refused(guard) = &error
        && let Some(stop) = daily::of_day(guard)
    {
        return stop;
    }
    match error {
        StoreError::Refused(_) => Stop::Conflict(error.to_string()),
        StoreError::Broken(text) => Stop::StoreError(text),
    }
}
