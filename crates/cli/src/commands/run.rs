//! `paraph run`: runs an agent, shows it on standard error, and prints its result.

use crate::args::RunArgs;
use crate::choice::{check_price, choose, limits};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::lines::{TraceFile, line};
use crate::logging::Log;
use crate::output::{note, print};
use crate::signals::Interrupt;
use crate::terminal::{Screen, printable, printable_json};
use crate::trace::{TICK, Trace};
use paraph_agents::{
    AgentEvent, AgentEventData, AgentInfo, AgentRun, Case, RunResult, Support, Terms,
};
use paraph_gateway::{LoopRule, Stop};
use paraph_graph::{CancelReason, RunId};
use std::io::Read as _;

/// The most that is read from standard input as a task, in bytes. An agent takes less.
const MAX_INPUT: u64 = 1024 * 1024;

/// The longest name of a thread, in characters.
const LONGEST_THREAD: usize = 200;

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let agent = super::agent(&args.agent)?;
    let config = Config::load(&args.sources, flags(args))?;
    let screen = Screen::of_stderr(&config.environment);
    config
        .parse::<Log>("log")?
        .unwrap_or("off".parse().map_err(Failure::Broken)?)
        .start(screen.colour)?;
    check_store(&config)?;
    let case = Case {
        user: args.user,
        question: task(args, &agent)?,
    };
    let (support, terms) = prepare(args, &agent, &config)?;
    let trace_file = args.trace.as_deref().map(TraceFile::create).transpose()?;
    super::runtime()?.block_on(async {
        let run = support.start(&case, &terms).await.map_err(not_started)?;
        let interrupt = Interrupt::listen()
            .map_err(|error| Failure::Broken(format!("signals cannot be received: {error}")))?;
        let printing = Printing {
            json: args.json,
            events: args.events,
            trace_file,
        };
        follow(run, interrupt, printing, Trace::new(screen, args.quiet)).await
    })
}

fn flags(args: &RunArgs) -> Vec<(&'static str, &'static str, Option<&str>)> {
    let budget = &args.budget;
    vec![
        ("model", "--model", args.model.as_deref()),
        ("store", "--store", args.store.as_deref()),
        ("loop", "--loop", args.loops.as_deref()),
        ("max_steps", "--max-steps", budget.max_steps.as_deref()),
        (
            "max_tool_calls",
            "--max-tool-calls",
            budget.max_tool_calls.as_deref(),
        ),
        (
            "max_seconds",
            "--max-seconds",
            budget.max_seconds.as_deref(),
        ),
        ("max_tokens", "--max-tokens", budget.max_tokens.as_deref()),
        ("max_cost", "--max-cost", budget.max_cost.as_deref()),
    ]
}

/// The agent and the terms of its run; remarks go to standard error.
fn prepare(
    args: &RunArgs,
    agent: &AgentInfo,
    config: &Config,
) -> Result<(Support, Terms), Failure> {
    let limits = limits(config, agent)?;
    let loops = config.parse::<LoopRule>("loop")?.unwrap_or_default();
    let thread = thread(args, agent)?;
    let choice = choose(config, agent)?;
    check_price(&choice, &limits)?;
    let support = Support::new(&args.allow, &args.deny).map_err(Failure::usage)?;
    for warning in support.warnings() {
        note(&format!("warning: {}", printable(warning)));
    }
    if let (Some(remark), false) = (&choice.note, args.quiet) {
        note(remark);
    }
    let terms = Terms {
        price: choice.price,
        limits,
        loops,
        dialect: agent.dialect,
        tell_messages: args.verbose,
        ..Terms::new(choice.model, thread)
    };
    Ok((support, terms))
}

fn check_store(config: &Config) -> Result<(), Failure> {
    let Some(found) = config.get("store")? else {
        return Ok(());
    };
    let scheme = found.text.split(':').next().unwrap_or_default();
    match (scheme, found.text.as_str()) {
        (_, "memory:") => Ok(()),
        ("sqlite" | "postgres" | "postgresql", _) => Err(found.wrong(
            "store",
            format!("{scheme} stores come in a later version; use memory:"),
        )),
        _ => Err(found.wrong(
            "store",
            format!("`{scheme}` is no kind of store; use memory:"),
        )),
    }
}

fn task(args: &RunArgs, agent: &AgentInfo) -> Result<String, Failure> {
    match args.task.as_deref() {
        None => Ok(agent.default_task.to_owned()),
        Some("-") => {
            let wrong =
                |why: &dyn std::fmt::Display| Failure::Usage(format!("standard input: {why}"));
            let mut bytes = Vec::new();
            let mut input = std::io::stdin().lock().take(MAX_INPUT + 1);
            input
                .read_to_end(&mut bytes)
                .map_err(|error| wrong(&error))?;
            if bytes.len() as u64 > MAX_INPUT {
                return Err(wrong(&format_args!(
                    "the task is larger than {MAX_INPUT} bytes"
                )));
            }
            String::from_utf8(bytes).map_err(|error| wrong(&error.utf8_error()))
        }
        Some(task) => Ok(task.to_owned()),
    }
}

fn thread(args: &RunArgs, agent: &AgentInfo) -> Result<String, Failure> {
    let Some(name) = &args.thread else {
        let id = RunId::fresh().to_string();
        let (_, tail) = id.rsplit_once('-').unwrap_or(("", &id));
        return Ok(format!("{}-{tail}", agent.name));
    };
    match name.chars().count() {
        1..=LONGEST_THREAD => Ok(name.clone()),
        count => Err(Failure::Usage(format!(
            "--thread: a name has 1 to {LONGEST_THREAD} characters, not {count}"
        ))),
    }
}

fn not_started(error: paraph_agents::Error) -> Failure {
    match error {
        paraph_agents::Error::Stopped(stop) => Failure::Broken(stop.to_string()),
        error => Failure::usage(error),
    }
}

/// Where a run's events and its result go.
struct Printing {
    json: bool,
    events: bool,
    trace_file: Option<TraceFile>,
}

/// Reads the run to its end.
async fn follow(
    mut run: AgentRun,
    mut interrupt: Interrupt,
    mut printing: Printing,
    mut trace: Trace,
) -> Result<u8, Failure> {
    let control = run.control();
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
        let Some(event) = event else {
            return Ok(code);
        };
        trace.show(&event);
        printing.event(&event)?;
        if let AgentEventData::RunEnded {
            exit_code,
            detail,
            result,
        } = &event.data
        {
            code = *exit_code;
            printing.result(result, detail.as_deref())?;
        }
    }
}

impl Printing {
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

    fn result(&self, result: &RunResult, detail: Option<&str>) -> Result<(), Failure> {
        match (self.events, self.json) {
            (true, _) => Ok(()),
            (false, true) => print(&printable_json(result.to_json()?)),
            (false, false) => print(&in_words(result, detail)),
        }
    }
}

/// A result for people: the answer, or what stopped the run and what to do.
fn in_words(result: &RunResult, detail: Option<&str>) -> String {
    if let Some(answer) = result.answer() {
        return printable(answer);
    }
    let explanation = result.stop().explain();
    let mut text = format!("Stopped: {}\n{}", explanation.reason, explanation.happened);
    if let Some(detail) = detail {
        text.push_str(&format!("\nIn its own words: {detail}"));
    }
    let remedy = match result.stop() {
        Stop::Cancelled => "Nothing was stored, so there is nothing to resume; run it again.",
        _ => explanation.remedy,
    };
    text.push_str(&format!("\nWhat to do: {remedy}"));
    printable(&text)
}
