//! The second half of a call: schema, approval, the tool itself, and the record.
//!
//! Everything here belongs to a call that was counted and has its key to itself.

use super::running::run;
use super::{Admitted, Session, Ticket, broken, failed};
use crate::budget::Late;
use crate::call::ToolCall;
use crate::dialect::Dialect;
use crate::output;
use crate::policy::Verdict;
use crate::record::{Observation, Outcome, Reply};
use crate::stop::{Failure, Stop};
use crate::store::{Change, Guard};
use crate::tool::{Injections, Registered, ToolError, ToolOutput, Tried};

/// How a call ended, before it is recorded.
struct Ending {
    outcome: Outcome,
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
        let outcome = match admitted {
            Admitted::Ended(outcome) => Some(outcome),
            Admitted::Refused(ticket, outcome) => Some(self.record(ticket, outcome.into()).await?),
            Admitted::Go(ticket) => self.go(ticket, injections).await?,
        };
        // Here, and only here, the two dialects part.
        match outcome {
            None => Ok(Reply::Unfinished),
            Some(Outcome::Stopped(stop)) => Err(stop),
            Some(Outcome::Observed(Observation {
                failure: Some(failure),
                ..
            })) if self.0.scope.dialect == Dialect::Strict => Err(Stop::Failed(failure)),
            Some(Outcome::Observed(seen)) => Ok(Reply::Observed(seen)),
        }
    }

    /// The checks 6 to 8, the tool, and the record. Nothing if the tool has not ended.
    async fn go(
        &self,
        mut ticket: Ticket<'_>,
        injections: &Injections<'_>,
    ) -> Result<Option<Outcome>, Stop> {
        let Some(tool) = self.0.parts.tool(ticket.call.name()) else {
            let name = ticket.call.name();
            return Err(Stop::Internal(format!(
                "`{name}` vanished between two checks"
            )));
        };
        if let Err(failure) = self.may_run(tool, ticket.call) {
            let outcome = failed(ticket.call, failure);
            return self.record(ticket, outcome.into()).await.map(Some);
        }
        // Known before it runs: whoever opens the run after a crash must see that it was begun.
        if !ticket.place.stored {
            self.write(&mut ticket).await?;
        }
        let (tried, ms) = run(self, tool, &ticket, injections).await;
        let tried = match tried {
            Ok(Tried::Open(None)) => {
                self.leave_open(ticket, ms).await;
                return Ok(None);
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
        self.record(ticket, ending).await.map(Some)
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
        let name = || call.name().to_owned();
        let checked = match call.fault() {
            Some(fault) => Err(fault.to_string()),
            None => tool.check(call.args()),
        };
        checked.map_err(|detail| Failure::BadArgs {
            tool: name(),
            detail: self.words(&detail),
        })?;
        let asks = matches!(self.0.parts.policy.verdict(call.name()), Verdict::Ask(_));
        match asks || tool.spec.level.is_effect() {
            true => Err(Failure::Denied {
                tool: name(),
                why: "a person has to approve it, and there is nobody to ask yet".to_owned(),
            }),
            false => Ok(()),
        }
    }

    fn ending(
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
    fn words(&self, text: &str) -> String {
        output::detail(self.0.parts.redactor.text(text))
    }

    /// Ends the call: in the store first, then in the book.
    async fn record(&self, mut ticket: Ticket<'_>, ending: Ending) -> Result<Outcome, Stop> {
        let record = &mut ticket.place.record;
        record.outcome = Some(ending.outcome.clone());
        record.full_output = ending.full_output;
        record.ms = ending.ms;
        self.write(&mut ticket).await?;
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
        let (run, key) = (self.0.run.clone(), ticket.place.record.key.clone());
        let guard = match ticket.place.stored {
            true => Guard::Open { run, key },
            false => Guard::Fresh { run, key },
        };
        ticket.place.in_doubt = true;
        self.commit(Change {
            guards: vec![guard],
            calls: vec![ticket.place.record.clone()],
            add: Vec::new(),
        })
        .await
        .map_err(broken)?;
        ticket.place.in_doubt = false;
        ticket.place.stored = true;
        Ok(())
    }
}
