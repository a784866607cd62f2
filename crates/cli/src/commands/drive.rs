//! A run that is driven on from stop to stop: past what somebody at the terminal decides, and past a short wait for
//! what nobody saw. Called by whatever begins a run or goes on with one.

use super::approvals::{Asked, answer, ask, lineage, switch, take_back, tell_of_switches};
use super::follow::{Ended, Told, finish, follow};
use super::not_started;
use crate::cells::now_ms;
use crate::config::Config;
use crate::failure::{BROKEN, Failure, INTERRUPTED};
use crate::hook;
use crate::output::note;
use crate::person::local;
use crate::signals::Interrupt;
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use paraph_agents::{Agent, AgentRun, Approval, Terms};
use paraph_gateway::{Approvals, Kill, Stop, Wake, Why};
use paraph_graph::RunId;
use std::io::IsTerminal as _;
use std::time::Duration;

/// How long a process waits altogether for what came of effects that nobody saw.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest text of an action in a note, in characters.
const SAYS: usize = 200;

/// What a run is driven with.
pub(crate) struct Driver<'a> {
    pub(crate) kept: &'a Kept,
    pub(crate) config: &'a Config,
    pub(crate) agent: &'a Agent,
    pub(crate) terms: &'a Terms,
}

impl Driver<'_> {
    /// Drives the run until it ends, or waits for somebody who is not here.
    pub(crate) async fn drive(&self, mut run: AgentRun, mut told: Told) -> Result<u8, Failure> {
        let mut interrupt = Interrupt::listen()
            .map_err(|error| Failure::Broken(format!("signals cannot be received: {error}")))?;
        let (mut patience, mut asks) = (PATIENCE, true);
        let (id, thread) = (run.run_id(), run.thread().to_owned());
        loop {
            let wakes = self.wakes(&thread).await;
            let ended = follow(run, self.kept, &mut told, &mut interrupt).await?;
            if ended.code != BROKEN && ended.code != INTERRUPTED {
                self.woken(wakes).await;
            }
            if let Some(answers) = self.answers(&ended, &told, &mut interrupt).await {
                run = self.answered(id, answers).await?;
                continue;
            }
            match self
                .goes_on(&ended, &told, (&mut patience, &mut interrupt), asks)
                .await
            {
                Ok(Some(still_asks)) => {
                    asks = still_asks;
                    run = self.again(id).await?;
                }
                Ok(None) => {
                    if told.saved && ended.is_over() {
                        self.take_back(id, &ended).await;
                    }
                    self.tell_of_switches(&ended, &told).await;
                    return finish(ended, (self.kept, self.config), &mut told).await;
                }
                Err(failure) => {
                    // The question is lost, not what was asked: that still waits.
                    finish(ended, (self.kept, self.config), &mut told).await?;
                    return Err(failure);
                }
            }
        }
    }

    /// What somebody at the terminal answers to what the run asks; nothing if nobody does.
    async fn answers(
        &self,
        ended: &Ended,
        told: &Told,
        interrupt: &mut Interrupt,
    ) -> Option<Vec<(String, serde_json::Value)>> {
        let open = ended.questions();
        let somebody = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if open.is_empty() || !told.saved || !somebody || !told.printing.is_for_people() {
            return None;
        }
        let mut answers = Vec::new();
        for asked in open {
            note(&printable(&crate::research::in_words(asked)));
            let hint = match asked.name.as_str() {
                "direction" => "[continue, stop, or a new instruction] > ",
                _ => "> ",
            };
            let line = answer(hint, interrupt).await?;
            answers.push((asked.id.clone(), crate::research::answer(line.trim())));
        }
        Some(answers)
    }

    async fn answered(
        &self,
        id: RunId,
        answers: Vec<(String, serde_json::Value)>,
    ) -> Result<AgentRun, Failure> {
        let terms = Terms {
            run: Some(id),
            ..self.terms.clone()
        };
        self.agent
            .answer(id, answers, &terms)
            .await
            .map_err(not_started)
    }

    async fn again(&self, id: RunId) -> Result<AgentRun, Failure> {
        let terms = Terms {
            run: Some(id),
            ..self.terms.clone()
        };
        self.agent.resume(id, &terms).await.map_err(not_started)
    }

    /// Whether a run that rests goes on in this process, and if so whether somebody is asked when it rests again.
    async fn goes_on(
        &self,
        ended: &Ended,
        told: &Told,
        (patience, interrupt): (&mut Duration, &mut Interrupt),
        asks: bool,
    ) -> Result<Option<bool>, Failure> {
        let waits = ended.approvals();
        if waits.is_empty() || !told.saved {
            return Ok(None);
        }
        if let Some(pause) = soon(waits, *patience) {
            *patience = patience.saturating_sub(pause.max(Duration::from_secs(1)));
            for wait in waits {
                let what = match wait.why {
                    Why::Unchecked => "it cannot be looked at once more yet, and was not done",
                    _ => "nobody saw what came of it",
                };
                note(&format!(
                    "{what}; looking again in {:.0} s: {}",
                    pause.as_secs_f32().ceil(),
                    printable_line(&wait.says, SAYS)
                ));
            }
            return Ok(tokio::select! {
                () = tokio::time::sleep(pause) => Some(asks),
                () = interrupt.wait() => None,
            });
        }
        hook::tell(self.config, waits).await?;
        let somebody = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !asks || !somebody || !told.printing.is_for_people() {
            return Ok(None);
        }
        let stands = (self.kept, self.config);
        let asked = ask(stands, self.agent, waits, interrupt).await?;
        Ok(match asked {
            Asked::Decided => Some(true),
            Asked::Changed => Some(false),
            Asked::Left => None,
        })
    }

    /// Takes back what the run has asked for and is not done. If that cannot be written, time ends it.
    async fn take_back(&self, run: RunId, ended: &Ended) {
        let by = local(&self.config.environment);
        let why = format!("its run ended: {}", ended.reason());
        let taken = take_back(self.kept, run, (&by, &why)).await;
        say_if_not(taken);
    }

    /// Says which kill switches a run has met, and why they are on.
    async fn tell_of_switches(&self, ended: &Ended, told: &Told) {
        if !told.saved {
            return;
        }
        tell_of_switches(self.kept, ended.approvals().iter().map(|wait| wait.id)).await;
        let held = ended.approvals().iter().any(|wait| wait.why == Why::Killed);
        let met = |kill: &Kill| match (ended.stop(), kill.scope.split_once(':')) {
            (Some(Stop::KilledGlobal), None) => kill.scope == "global",
            (Some(Stop::KilledGlobal), Some(("agent", name))) => {
                self.agent.gateway_of(name).is_some()
            }
            // What agents that it called wait for is not within the switch that holds itself.
            (Some(Stop::ApprovalPending), Some(("agent", name))) => {
                held && name == self.agent.name()
            }
            (Some(Stop::ApprovalPending), Some(("tool", name))) => {
                held && self.agent.gateway_of(name).is_some()
            }
            (Some(Stop::KilledTenant), Some((kind, _))) => kind == "tenant",
            (Some(Stop::WritesDisabled), None) => kill.scope == "writes",
            (Some(Stop::ToolDisabled(tool)), Some(("tool", name))) => tool == name,
            _ => false,
        };
        match self.desk().kills().await {
            Ok(kills) => {
                for kill in kills.iter().filter(|kill| met(kill)) {
                    note(&switch(self.kept, kill));
                }
            }
            Err(error) => not_written(&error),
        }
    }

    /// What wakes the runs of a thread, and of the agents that are called there.
    async fn wakes(&self, thread: &str) -> Vec<Wake> {
        let wakes = self.desk().wakes().await;
        let wakes = wakes.unwrap_or_else(|error| {
            not_written(&error);
            Vec::new()
        });
        let mut own = Vec::new();
        for wake in wakes {
            if wake.run.thread == thread || self.is_called_from(&wake.run.run, thread).await {
                own.push(wake);
            }
        }
        own
    }

    /// Whether a run is that of an agent which was called on this thread, if only by way of further agents.
    async fn is_called_from(&self, run: &str, thread: &str) -> bool {
        match lineage(self.kept, run).await {
            Ok(above) => above.iter().any(|row| row.thread == thread),
            Err(failure) => {
                say_if_not(Err(failure));
                false
            }
        }
    }

    /// Says that the runs went on because of these. One that is not due yet still has somebody to wake.
    async fn woken(&self, wakes: Vec<Wake>) {
        let (desk, now_ms) = (self.desk(), now_ms());
        for wake in wakes.into_iter().filter(|wake| wake.due_ms <= now_ms) {
            if let Err(error) = desk.woken(&wake).await {
                not_written(&error);
            }
        }
    }

    fn desk(&self) -> Approvals {
        self.kept.desk()
    }
}

/// Says so if what a run has asked for could not be taken back: the run itself matters more.
pub(crate) fn say_if_not(taken: Result<(), Failure>) {
    if let Err(Failure::Usage(text) | Failure::Refused(text) | Failure::Broken(text)) = taken {
        not_written(&text);
    }
}

/// What stays in the store for want of this does no harm: a wake finds nothing to do, an action expires.
fn not_written(error: &dyn std::fmt::Display) {
    note(&printable(&format!(
        "warning: how the run's actions stand could not be written down: {error}"
    )));
}

/// How long until the last of these can be looked up, if nothing but time is needed and it is soon.
fn soon(waits: &[Approval], patience: Duration) -> Option<Duration> {
    let mut pause = Duration::ZERO;
    for wait in waits {
        let by_time = matches!(wait.why, Why::Unknown | Why::Unchecked);
        let due_ms = wait.due_ms.filter(|_| by_time)?;
        let left = Duration::from_millis(due_ms.saturating_sub(now_ms()));
        pause = pause.max(left);
    }
    (!patience.is_zero() && pause <= patience).then_some(pause)
}
