//! A run under way, followed to its end: its trace, its events, its result, and Ctrl-C.

use super::threads::after_run;
use crate::args::PrintingArgs;
use crate::config::Config;
use crate::failure::{BROKEN, FINISHED, Failure};
use crate::lines::{TraceFile, line};
use crate::output::{note, print};
use crate::signals::Interrupt;
use crate::stores::Kept;
use crate::terminal::{printable, printable_json};
use crate::trace::{TICK, Trace};
use crate::writing::refuse_own;
use paraph_agents::{AgentEvent, AgentEventData, AgentRun, RunResult};
use paraph_gateway::Stop;
use paraph_graph::CancelReason;
use std::path::Path;

/// How the explanations call the command that goes on with a run.
const RESUME: &str = "paraph runs resume RUN";

/// Where what a run tells goes.
pub(crate) struct Told {
    pub(crate) printing: Printing,
    pub(crate) trace: Trace,
    /// Whether the run is saved as it goes.
    pub(crate) saved: bool,
}

/// Where a run's events and its result go.
pub(crate) struct Printing {
    json: bool,
    events: bool,
    trace_file: Option<TraceFile>,
}

/// Reads the run to its end.
pub(crate) async fn follow(
    mut run: AgentRun,
    kept: &Kept,
    config: &Config,
    told: Told,
) -> Result<u8, Failure> {
    let Told {
        mut printing,
        mut trace,
        saved,
    } = told;
    let mut interrupt = Interrupt::listen()
        .map_err(|error| Failure::Broken(format!("signals cannot be received: {error}")))?;
    let control = run.control();
    let again = saved.then(|| resume_command(&run, kept)).flatten();
    let mut interrupted = false;
    let mut ticks = tokio::time::interval(TICK);
    let mut code = FINISHED;
    loop {
        let event = tokio::select! {
            event = run.next() => event,
            () = interrupt.wait(), if !interrupted => {
                trace.clear();
                interrupted = true;
                note("interrupted: the run is being stopped; once more stops it at once");
                control.request_cancel(CancelReason::User);
                continue;
            }
            _ = ticks.tick(), if trace.spins() => {
                trace.tick();
                continue;
            }
        };
        let Some(event) = event else { break };
        trace.show(&event);
        printing.event(&event)?;
        if let AgentEventData::RunEnded {
            exit_code,
            detail,
            result,
        } = &event.data
        {
            code = *exit_code;
            printing.result(result, detail.as_deref(), again.as_deref())?;
            if let (Stop::Cancelled, Some(again)) = (result.stop(), &again) {
                note(&printable(&format!("saved; go on with: {again}")));
            }
        }
    }
    // A thread that is somebody else's, or a store that is broken, is left alone.
    if saved && code != BROKEN {
        after_run(kept, config, run.thread()).await?;
    }
    Ok(code)
}

/// The command that goes on with this run, if anything of it is left when the program has ended.
fn resume_command(run: &AgentRun, kept: &Kept) -> Option<String> {
    let flag = kept.flag.as_deref().unwrap_or_default();
    kept.lasts()
        .then(|| format!("paraph runs resume {}{flag}", run.run_id()))
}

impl Printing {
    /// What the arguments ask for. The trace may be no file of the store's.
    pub(crate) fn of(args: &PrintingArgs, store: Option<&Path>) -> Result<Printing, Failure> {
        if let Some(path) = &args.trace {
            refuse_own("--trace", path, store)?;
        }
        Ok(Printing {
            json: args.json,
            events: args.events,
            trace_file: args.trace.as_deref().map(TraceFile::create).transpose()?,
        })
    }

    /// Prints the result of a run that was over before; gives the exit code.
    pub(crate) fn over(&mut self, result: &RunResult) -> Result<u8, Failure> {
        self.result(result, None, None)?;
        Ok(result.stop().exit_code())
    }

    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        if !self.events && self.trace_file.is_none() {
            return Ok(());
        }
        let line = line(event)?;
        if let Some(file) = &mut self.trace_file {
            file.write(&line);
        }
        match self.events {
            true => print(&line),
            false => Ok(()),
        }
    }

    fn result(
        &self,
        result: &RunResult,
        detail: Option<&str>,
        again: Option<&str>,
    ) -> Result<(), Failure> {
        match (self.events, self.json) {
            (true, _) => Ok(()),
            (false, true) => print(&printable_json(result.to_json()?)),
            (false, false) => print(&in_words(result, detail, again)),
        }
    }
}

/// A result for people: the answer, or what stopped the run and what to do.
fn in_words(result: &RunResult, detail: Option<&str>, again: Option<&str>) -> String {
    if let Some(answer) = result.answer() {
        return printable(answer);
    }
    let explanation = result.stop().explain();
    let mut text = format!("Stopped: {}\n{}", explanation.reason, explanation.happened);
    if let Some(detail) = detail {
        text.push_str(&format!("\nIn its own words: {detail}"));
    }
    let remedy = match (result.stop(), again) {
        (Stop::Cancelled, Some(again)) => format!("Go on with it: {again}"),
        (_, Some(again)) => explanation.remedy.replace(RESUME, again),
        (Stop::Cancelled, None) => {
            "Nothing was stored, so there is nothing to resume; run it again.".to_owned()
        }
        (_, None) => explanation.remedy.to_owned(),
    };
    text.push_str(&format!("\nWhat to do: {remedy}"));
    printable(&text)
}
