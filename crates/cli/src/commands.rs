//! The commands, one file each. They parse what is left to parse, call libraries, and print.

mod agents;
mod approvals;
mod audit;
mod check;
mod completions;
mod config_show;
mod corpus;
mod doctor;
mod drive;
mod eval;
mod explain;
mod follow;
mod graph;
mod init;
mod kill;
mod policy;
mod run;
mod runs;
mod schema;
mod store;
mod threads;
mod triage;

pub(crate) use approvals::lineage;

use crate::application::{Said, own, reader};
use crate::args::{Args, Command, ConfigCommand, StoreArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::logging::Log;
use crate::started::Started;
use crate::stores::{Kept, missing};
use crate::suggest::hint;
use crate::terminal::Screen;
use paraph_agents::{Agent, AgentInfo, builtin};
use paraph_graph::{RunQuery, ThreadRow};
use std::time::{Duration, SystemTime};

/// The longest name of a thread, in characters.
const LONGEST_THREAD: usize = 200;

/// Runs a command; gives the exit code.
pub(crate) fn dispatch(args: Args) -> Result<u8, Failure> {
    check_clock(SystemTime::now())?;
    match args.command {
        Command::Run(args) => run::run(&args),
        Command::Agents(args) => agents::list(&args),
        Command::Init(args) => init::init(&args),
        Command::Check(args) => check::check(&args),
        Command::Policy { command } => policy::run(&command),
        Command::Eval { command } => eval::run(&command),
        Command::Triage { command } => triage::run(&command),
        Command::Schema { command } => schema::print(&command),
        Command::Threads { command } => threads::run(&command),
        Command::Runs { command } => runs::run(&command),
        Command::Approvals { command } => approvals::run(&command),
        Command::Kill { command } => kill::run(&command),
        Command::Audit { command } => audit::run(&command),
        Command::Corpus { command } => corpus::run(&command),
        Command::Store { command } => store::run(&command),
        Command::Graph(args) => graph::draw(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Doctor(args) => doctor::examine(&args),
        Command::Config {
            command: ConfigCommand::Show(args),
        } => config_show::show(&args),
        Command::Completions(args) => completions::write(&args),
    }
}

/// Refuses a clock that cannot be right: expiries, leases and ids go by it.
fn check_clock(now: SystemTime) -> Result<(), Failure> {
    match now < SystemTime::UNIX_EPOCH {
        true => Err(Failure::Broken(
            "this machine's clock is before 1970: set it first, for approvals expire by it"
                .to_owned(),
        )),
        false => Ok(()),
    }
}

/// The built-in agent of this name.
pub(crate) fn agent(name: &str) -> Result<AgentInfo, Failure> {
    let all = builtin();
    if let Some(found) = all.iter().find(|agent| agent.name == name) {
        return Ok(found.clone());
    }
    if name.contains(char::is_whitespace) {
        return Err(Failure::Usage(format!(
            "the agent comes before the task: paraph run support {name:?}"
        )));
    }
    if std::path::Path::new(name).is_dir() {
        return Err(Failure::Usage(format!(
            "{name} is a folder: name the agent's file in it, such as {name}/agent.toml"
        )));
    }
    let hint = hint(name, all.iter().map(|agent| agent.name.as_str()));
    let names: Vec<_> = all.iter().map(|agent| agent.name.as_str()).collect();
    Err(Failure::Usage(format!(
        "there is no agent `{name}`{hint} (known: {})",
        names.join(", ")
    )))
}

/// How long whatever still reads or writes when a command is done may take to end.
const WINDING_DOWN: Duration = Duration::from_secs(5);

/// Does what waits.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    within(WINDING_DOWN, work)
}

/// The same, with a bound on its end: a thread that the system holds up, in a pipe that nobody opens or on a disk that
/// does not answer, ends with the program.
fn within<T>(
    winding_down: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(winding_down);
    done
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Broken(format!("no runtime: {error}")))?;
    {
        let _inside = runtime.enter();
        crate::signals::outlive_large_files();
    }
    Ok(runtime)
}

/// The log of the libraries, as the settings want it.
fn start_log(config: &Config) -> Result<(), Failure> {
    let log = config.parse::<Log>("log")?;
    let log = log.map_or_else(|| "off".parse().map_err(Failure::Broken), Ok)?;
    log.start(Screen::of_stderr(&config.environment).colour)
}

/// The settings of a command on what is stored.
fn config_of(args: &StoreArgs) -> Result<Config, Failure> {
    let flags = vec![("store", "--store", args.store.as_deref())];
    let config = Config::load(&args.sources, flags)?;
    start_log(&config)?;
    Ok(config)
}

/// Opens the store of the settings for a command that works on what is there: it makes none.
fn on_store(
    args: &StoreArgs,
    work: impl AsyncFnOnce(Kept, Config) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let config = config_of(args)?;
    if let Some(missing) = missing(&config)? {
        return Err(Failure::Usage(format!("{missing}; `paraph run` makes one")));
    }
    opened(config, work)
}

/// The same for a list, which is empty if there is no store.
fn on_listed(
    args: &StoreArgs,
    (what, json): (&str, bool),
    work: impl AsyncFnOnce(Kept, Config) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let config = config_of(args)?;
    let Some(missing) = missing(&config)? else {
        return opened(config, work);
    };
    match json {
        true => crate::output::print("[]")?,
        false => crate::output::note(&format!("no {what} yet; `paraph run` makes one")),
    }
    crate::output::note(&crate::terminal::printable(&missing));
    Ok(crate::failure::FINISHED)
}

fn opened(
    config: Config,
    work: impl AsyncFnOnce(Kept, Config) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    block_on(async {
        let kept = Kept::open(&config).await?;
        let settled = kept.settled();
        let code = work(kept, config).await;
        settled.await;
        code
    })
}

pub(crate) fn check_thread_name(flag: &str, name: &str) -> Result<(), Failure> {
    match name.chars().count() {
        _ if name.contains('\0') => Err(Failure::Usage(format!(
            "{flag}: a name has no NUL in it, for no command could be given it"
        ))),
        1.. if name.trim().is_empty() => Err(Failure::Usage(format!(
            "{flag}: a name has something in it that can be seen"
        ))),
        1..=LONGEST_THREAD => Ok(()),
        count => Err(Failure::Usage(format!(
            "{flag}: a name has 1 to {LONGEST_THREAD} characters, not {count}"
        ))),
    }
}

/// Why a run does not begin.
fn not_started(error: paraph_agents::Error) -> Failure {
    match error {
        paraph_agents::Error::Stopped(stop) => Failure::Broken(stop.to_string()),
        paraph_agents::Error::Graph(error) => error.into(),
        error => Failure::usage(error),
    }
}

/// The agent of a thread.
async fn agent_of(kept: &Kept, row: &ThreadRow) -> Result<Agent, Failure> {
    let newest = RunQuery {
        thread: Some(row.name.clone()),
        limit: Some(1),
        ..RunQuery::default()
    };
    let rows = kept.threads.runs(&newest).await?;
    let started = rows.first().and_then(|row| Started::of(row).ok());
    if let Some(started) = &started {
        return reader(kept.stores(), started);
    }
    let graph = row.graph.as_deref().unwrap_or_default();
    let known = builtin().into_iter().find(|agent| agent.name == graph);
    let Some(known) = known else {
        return Err(Failure::Usage(format!(
            "the thread `{}` is of the graph `{graph}`, which is none of this program's: fork it where that \
             graph runs",
            row.name
        )));
    };
    own(
        &known.name,
        &kept.stores(),
        known.dialect,
        Said::default(),
        Vec::new(),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;

    #[test]
    fn a_thread_that_is_held_up_does_not_hold_up_the_end() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let done = within(Duration::from_millis(50), async {
            tokio::task::spawn_blocking(move || receiver.recv());
            Ok(7)
        });
        assert_eq!(done.unwrap(), 7);
        // It was still waiting, for this is what it waits for.
        sender.send(()).unwrap();
    }

    #[test]
    fn a_clock_that_cannot_be_right_is_refused() {
        assert!(check_clock(SystemTime::now()).is_ok());
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let failure = check_clock(before).unwrap_err();
        assert!(
            matches!(&failure, Failure::Broken(why) if why.starts_with("this machine's clock is before 1970")),
            "{failure:?}"
        );
    }
}
