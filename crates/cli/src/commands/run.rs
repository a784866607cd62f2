//! `paraph run`: runs an agent, shows it on standard error, and prints its result.

use super::follow::{Printing, Told, follow};
use crate::args::RunArgs;
use crate::choice::{check_price, choose, limits};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use crate::started::{Chosen, Started};
use crate::stores::{Kept, file_of};
use crate::terminal::{Screen, printable};
use crate::trace::Trace;
use paraph_agents::{AgentInfo, AgentRun, Case, Support, Terms};
use paraph_gateway::LoopRule;
use paraph_graph::{CheckpointId, RunId};
use std::io::Read as _;

/// The most that is read from standard input as a task, in bytes. An agent takes less.
const MAX_INPUT: u64 = 1024 * 1024;

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let agent = super::agent(&args.agent)?;
    let config = Config::load(&args.store.sources, flags(args))?;
    let screen = Screen::of_stderr(&config.environment);
    super::start_log(&config)?;
    let store = crate::stores::address(&config)?;
    crate::stores::key(&config)?;
    crate::stores::lease(&config)?;
    super::threads::retention(&config)?;
    let asked = Asked {
        user: args.user,
        task: task(args, &agent)?,
        from: match &args.from {
            Some(id) => Some(super::threads::checkpoint(id, "--from")?),
            None => None,
        },
    };
    let terms = terms(args, &agent, &config, &asked)?;
    let printing = Printing::of(&args.printing, file_of(&store.text).as_deref())?;
    super::runtime()?.block_on(async {
        let kept = Kept::open(&config).await?;
        let support = Support::on(&kept.stores(), &args.allow, &args.deny);
        let support = support.map_err(Failure::usage)?;
        for warning in support.warnings() {
            note(&format!("warning: {}", printable(warning)));
        }
        if !args.printing.quiet {
            kept.warn_of_short_disk();
            if asked.from.is_none() {
                tell_of_unfinished(&kept, &terms.thread).await?;
            }
        }
        let run = asked.start(&kept, &support, &terms).await?;
        let told = Told {
            printing,
            trace: Trace::new(screen, args.printing.quiet),
        };
        follow(run, &kept, &config, told).await
    })
}

/// Says so if a new question leaves an unfinished run behind.
async fn tell_of_unfinished(kept: &Kept, thread: &str) -> Result<(), Failure> {
    let Some(row) = kept.threads.thread(thread).await? else {
        return Ok(());
    };
    if let (false, None, Some(head)) = (row.next.is_empty(), row.holder, row.head) {
        note(&printable(&format!(
            "note: the last run on `{thread}` was not finished; this one leaves it behind (--from {head} goes back there)"
        )));
    }
    Ok(())
}

/// What the run is to do, and where it begins.
struct Asked {
    user: u64,
    /// Nothing for what is due at a checkpoint.
    task: Option<String>,
    from: Option<CheckpointId>,
}

impl Asked {
    async fn start(
        &self,
        kept: &Kept,
        support: &Support,
        terms: &Terms,
    ) -> Result<AgentRun, Failure> {
        let case = self.task.clone().map(|question| Case {
            user: self.user,
            question,
        });
        let run = match (self.from, case) {
            (Some(from), case) => {
                super::threads::row(kept, &terms.thread).await?;
                support.replay(from, case.as_ref(), terms).await
            }
            (None, Some(case)) => support.start(&case, terms).await,
            (None, None) => Err(paraph_agents::Error::EmptyTask),
        };
        run.map_err(super::not_started)
    }
}

fn flags(args: &RunArgs) -> Vec<(&'static str, &'static str, Option<&str>)> {
    let budget = &args.budget;
    vec![
        ("model", "--model", args.model.as_deref()),
        ("store", "--store", args.store.store.as_deref()),
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

/// The terms of the run; remarks go to standard error.
fn terms(
    args: &RunArgs,
    agent: &AgentInfo,
    config: &Config,
    asked: &Asked,
) -> Result<Terms, Failure> {
    let limits = limits(config, agent)?;
    let loops = config.parse::<LoopRule>("loop")?.unwrap_or_default();
    let thread = thread(args, agent)?;
    let choice = choose(config, agent)?;
    check_price(&choice, &limits)?;
    if let (Some(remark), false) = (&choice.note, args.printing.quiet) {
        note(remark);
    }
    let chosen = Chosen {
        agent: agent.name,
        dialect: agent.dialect,
        user: asked.user,
        task: asked.task.as_deref(),
        from: asked.from,
        limits: &limits,
        loops,
        allow: &args.allow,
        deny: &args.deny,
    };
    let arguments = Started::now(chosen, &choice.spec).to_value()?;
    Ok(Terms {
        price: choice.price,
        limits,
        loops,
        dialect: agent.dialect,
        tell_messages: args.printing.verbose,
        arguments,
        ..Terms::new(choice.model, thread)
    })
}

/// The task; nothing if what is due at a checkpoint is to be run.
fn task(args: &RunArgs, agent: &AgentInfo) -> Result<Option<String>, Failure> {
    match args.task.as_deref() {
        None if args.from.is_some() => Ok(None),
        None => Ok(Some(agent.default_task.to_owned())),
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
            let text = String::from_utf8(bytes).map_err(|error| wrong(&error.utf8_error()))?;
            Ok(Some(text))
        }
        Some(task) => Ok(Some(task.to_owned())),
    }
}

fn thread(args: &RunArgs, agent: &AgentInfo) -> Result<String, Failure> {
    let Some(name) = &args.thread else {
        let id = RunId::fresh().to_string();
        let (_, tail) = id.rsplit_once('-').unwrap_or(("", &id));
        return Ok(format!("{}-{tail}", agent.name));
    };
    super::check_thread_name("--thread", name)?;
    Ok(name.clone())
}
