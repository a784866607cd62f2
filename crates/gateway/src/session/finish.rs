//! The second half of a call: schema, approval, the tool itself, and the record.
//!
//! Everything here belongs to a call that was counted and has its key to itself.

use super::judging::system_ms;
use super::running::run;
use super::{Admitted, Session, Ticket, broken, failed};
use crate::budget::Late;
use crate::call::ToolCall;
use crate::dialect::Dialect;
use crate::output;
use crate::policy::{Decision, Verdict};
use crate::record::{Observation, Outcome, Reply, Ruling, Waiting};
use crate::stop::{Failure, Stop};
use crate::store::{Change, Guard, StoreError};
use crate::tool::{Injections, Registered, ToolError, ToolOutput, Tried};

/// What came of a call for now.
pub(super) enum After {
    Ended(Outcome),
    Waiting(Waiting),
    /// The tool has not ended.
    Open,
}

/// How a call ended, before it is recorded.
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    full_output: Option<String>,
    ms: u64,
}

impl From<Outcome> for Ending {
    fn from(outcome: Outcome) -> Ending {
        Ending {
            outcome,
            full_output: None,
            ms: 0,
        }
    }
}

impl Session {
    pub(super) async fn finish(
        &self,
        admitted: Admitted<'_>,
        injections: &Injections<'_>,
    ) -> Result<Reply, Stop> {
        let after = match admitted {
            Admitted::Ended(outcome) => After::Ended(outcome),
            Admitted::Refused(mut ticket, outcome) => {
                After::Ended(self.record(&mut ticket, outcome.into()).await?)
            }
            Admitted::Go(ticket) => self.go(ticket, injections).await?,
            Admitted::Waits(waiting) => After::Waiting(waiting),
        };
        // Here, and only here, the two dialects part.
        match after {
            After::Open => Ok(Reply::Unfinished),
            After::Waiting(waiting) => Ok(Reply::Waiting(waiting)),
            After::Ended(Outcome::Stopped(stop)) => Err(stop),
            After::Ended(Outcome::Observed(Observation {
                failure: Some(failure),
                ..
            })) if self.0.scope.dialect == Dialect::Strict => Err(Stop::Failed(failure)),
            After::Ended(Outcome::Observed(seen)) => Ok(Reply::Observed(seen)),
        }
    }

    /// The checks 6 to 8, the tool, and the record. Nothing if the tool has not ended.
    async fn go(&self, mut ticket: Ticket<'_>, injections: &Injections<'_>) -> Result<After, Stop> {
        let Some(tool) = self.0.parts.tool(ticket.call.name()) else {
            let name = ticket.call.name();
            return Err(Stop::Internal(format!(
                "a call of `{name}` is open, and it is not registered"
            )));
        };
        if ticket.place.record.action.is_some() {
            return self.signed(ticket, tool, injections).await;
        }
        if let Err(failure) = self.may_run(tool, ticket.call) {
            let outcome = failed(ticket.call, failure);
            let outcome = self.record(&mut ticket, outcome.into()).await?;
            return Ok(After::Ended(outcome));
        }
        // What an effect would get is known when it was prepared: it is judged there.
        if tool.effect.is_some() {
            return self.signed(ticket, tool, injections).await;
        }
        let judged = self.judge(&tool.spec.name, ticket.call.args(), system_ms());
        ticket.place.record.ruling = Some(Ruling::of(&judged));
        match judged.verdict {
            Verdict::Allowed => {}
            Verdict::Ask(_) => return self.signed(ticket, tool, injections).await,
            Verdict::Denied { .. } => {
                let outcome = failed(ticket.call, by_rule(ticket.call, &judged));
                let outcome = self.record(&mut ticket, outcome.into()).await?;
                return Ok(After::Ended(outcome));
            }
        }
        // Known before it runs: whoever opens the run after a crash must see that it was begun.
        if !ticket.place.stored {
            self.write(&mut ticket).await?;
        }
        let (tried, ms) = run(self, tool, &ticket, injections).await;
        let tried = match tried {
            Ok(Tried::Open(None)) => {
                self.leave_open(ticket, ms).await;
                return Ok(After::Open);
            }
            Ok(Tried::Open(Some(misuse))) => {
                self.leave_open(ticket, ms).await;
                let name = &tool.spec.name;
                return Err(Stop::Internal(format!("`{name}` cannot run: {misuse}")));
            }
            Ok(Tried::Output(output)) => Ok(Ok(output)),
            Ok(Tried::Failed(error)) => Ok(Err(error)),
            Err(Late::Own) => Err(Failure::Timeout {
                tool: tool.spec.name.clone(),
            }),
            Err(Late::Run) => {
                // With more time, the call may run again under its key.
                self.leave_open(ticket, ms).await;
                return Err(Stop::MaxSeconds);
            }
        };
        let ending = self.ending(tool, ticket.call, tried, ms);
        let outcome = self.record(&mut ticket, ending).await?;
        Ok(After::Ended(outcome))
    }

    /// Gives a key back without an outcome, and saves the time that was used.
    async fn leave_open(&self, mut ticket: Ticket<'_>, ms: u64) {
        ticket.place.record.ms = ms;
        drop(ticket);
        if let Err(error) = self.save().await {
            tracing::warn!(%error, "the time of a run was not saved");
        }
    }

    /// Whether a call that was admitted may run.
    fn may_run(&self, tool: &Registered, call: &ToolCall) -> Result<(), Failure> {
        let checked = match call.fault() {
            Some(fault) => Err(fault.to_string()),
            None => tool.check_call(call),
        };
        checked.map_err(|detail| Failure::BadArgs {
            tool: call.name().to_owned(),
            detail: self.words(&detail),
        })
    }

    pub(super) fn ending(
        &self,
        tool: &Registered,
        call: &ToolCall,
        tried: Result<Result<ToolOutput, ToolError>, Failure>,
        ms: u64,
    ) -> Ending {
        let name = call.name().to_owned();
        let failure = match tried {
            Ok(Ok(given)) => {
                let (content, full_output) = output::shown(given.content, tool.output_cap);
                return Ending {
                    outcome: Outcome::Observed(Observation {
                        tool: name,
                        args_hash: call.args_hash().to_owned(),
                        content,
                        failure: None,
                        artifact: given.artifact,
                        command: given.command,
                        action: None,
                    }),
                    full_output,
                    ms,
                };
            }
            Ok(Err(error)) => {
                let (tool, detail) = (name, self.words(&error.text));
                match error.bad_args {
                    true => Failure::BadArgs { tool, detail },
                    false => Failure::Error { tool, detail },
                }
            }
            Err(failure) => failure,
        };
        Ending {
            ms,
            ..failed(call, failure).into()
        }
    }

    /// A failure's own words as the model may read them: without secrets, and bounded.
    pub(super) fn words(&self, text: &str) -> String {
        output::detail(self.0.parts.redactor.text(text))
    }

    /// Ends the call: in the store first, then in the book.
    pub(super) async fn record(
        &self,
        ticket: &mut Ticket<'_>,
        ending: Ending,
    ) -> Result<Outcome, Stop> {
        let record = &mut ticket.place.record;
        record.outcome = Some(ending.outcome.clone());
        record.full_output = ending.full_output;
        record.ms = ending.ms;
        self.write(ticket).await?;
        let record = &ticket.place.record;
        tracing::debug!(
            tool = record.tool,
            args_hash = record.args_hash,
            key = record.key,
            ok = record.ok(),
            stop_reason = record.stop_reason(),
            ms = record.ms,
            "call"
        );
        Ok(ending.outcome)
    }

    /// Writes the ticket's record, unless another driver has written it meanwhile.
    ///
    /// Until the store has answered, the key is in doubt: if the answer never comes, because the caller
    /// was cut off or the store broke, the store is asked before the key is used again.
    async fn write(&self, ticket: &mut Ticket<'_>) -> Result<(), Stop> {
        let mut change = Change::default();
        let record = &ticket.place.record;
        if record.ok() {
            change.add.extend(self.was_read(&record.tool));
        }
        change.audit.extend(self.denial(record));
        let written = self.write_with(ticket, change).await;
        written.map_err(broken)
    }

    /// The same together with a change that belongs to it.
    pub(super) async fn write_with(
        &self,
        ticket: &mut Ticket<'_>,
        mut change: Change,
    ) -> Result<(), StoreError> {
        let (run, key) = (self.0.run.clone(), ticket.place.record.key.clone());
        if !ticket.place.stored {
            self.count_call_of_day(&mut change).await?;
        }
        let guard = match ticket.place.stored {
            true => Guard::Open { run, key },
            false => Guard::Fresh { run, key },
        };
        ticket.place.in_doubt = true;
        change.guards.insert(0, guard);
        change.calls.push(ticket.place.record.clone());
        self.commit(change).await?;
        ticket.place.in_doubt = false;
        ticket.place.stored = true;
        Ok(())
    }
}

/// A call that a rule denies, in words for the model.
pub(super) fn by_rule(call: &ToolCall, judged: &Decision<'_>) -> Failure {
    Failure::Denied {
        tool: call.name().to_owned(),
        why: match judged.because.is_empty() {
            true => "a rule denies it".to_owned(),
            false => judged.because.trim_end_matches('.').to_owned(),
        },
    }
}
