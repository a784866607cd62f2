//! `paraph run`: runs an agent, shows it on standard error, and prints its result.

use super::approvals::take_back;
use super::drive::{Driver, say_if_not};
use super::follow::{Printing, Told};
use crate::application::{Described, RESEARCH, Said, TRIAGE, WEATHER};
use crate::args::RunArgs;
use crate::choice::{check_price, choose, limits};
use crate::config::{Config, Source};
use crate::failure::Failure;
use crate::output::note;
use crate::person::local;
use crate::research::StartedResearch;
use crate::started::{Chosen, Started};
use crate::stores::{Kept, file_of};
use crate::terminal::{Screen, printable};
use crate::trace::Trace;
use crate::triage::StartedTriage;
use paraph_agents::{Agent, AgentInfo, AgentRun, Case, Stores, Terms, weather_by_hand};
use paraph_gateway::LoopRule;
use paraph_graph::{CheckpointId, RunId, RunQuery};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};

/// The most that is read from standard input as a task, in bytes. An agent takes less.
const MAX_INPUT: u64 = 1024 * 1024;

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let mut described = Described::of(&args.agent)?;
    if args.vanilla && described.info.name != WEATHER {
        return Err(Failure::Usage(format!(
            "--vanilla is an option of {WEATHER}: no other agent has a loop by hand"
        )));
    }
    let variables = variables(args, &described)?;
    let config = Config::load(&args.store.sources, flags(args))?;
    if !own_models(&config)? {
        described.info.fallbacks.clear();
    }
    let screen = Screen::of_stderr(&config.environment);
    super::start_log(&config)?;
    let store = crate::stores::address(&config)?;
    crate::stores::key(&config)?;
    crate::stores::lease(&config)?;
    super::threads::retention(&config)?;
    let asking = asked(args, (&described, &config, &screen), variables)?;
    let terms = terms(args, &described, &config, &asking)?;
    is_asked(args, &described, &terms)?;
    let printing = Printing::of(&args.printing, file_of(&store.text).as_deref())?;
    super::block_on(async {
        let kept = Kept::open(&config).await?;
        let said = Said {
            allow: &args.allow,
            deny: &args.deny,
            variables: Some(&asking.variables),
            own_models: own_models(&config)?,
            resumed: false,
            rehearsed: is_rehearsal(&terms),
            research: asking.research.as_ref(),
            triage: asking.triage.as_ref(),
            kept: Some(&kept),
        };
        if !args.vanilla {
            is_its_own(&kept, &terms.thread, &described.info).await?;
        }
        let stores = match args.vanilla {
            true => Stores::in_memory(),
            false => kept.stores(),
        };
        let opened = described.open(&config, stores, said).await?;
        if let Err(forgets) = remembers(&described, &asking, (&kept, &opened.agent)) {
            opened.close().await;
            return Err(forgets);
        }
        if !args.printing.quiet {
            tell_of_ways(args, &described, said);
            tell_of_refunds(&described, &config)?;
            if let Some(triage) = &asking.triage {
                crate::triage::tell(triage, &config)?;
            }
        }
        opened.warn();
        if !args.printing.quiet {
            kept.warn_of_short_disk();
        }
        let run = asking
            .begin(&kept, &opened.agent, (&terms, &config, args.printing.quiet))
            .await?;
        let told = Told {
            printing,
            trace: Trace::new(screen, args.printing.quiet),
            saved: !args.vanilla,
        };
        let driver = Driver {
            kept: &kept,
            config: &config,
            agent: &opened.agent,
            terms: &terms,
        };
        let code = driver.drive(run, told).await;
        opened.close().await;
        kept.settled().await;
        code
    })
}

/// What the run is to do, by what is said.
fn asked(
    args: &RunArgs,
    (described, config, screen): (&Described, &Config, &Screen),
    variables: BTreeMap<String, String>,
) -> Result<Asking, Failure> {
    let from = args.from.as_deref();
    let from = from.map(|id| super::threads::checkpoint(id, "--from"));
    let triage = crate::triage::said(args, &described.info, config)?;
    Ok(Asking {
        user: args.user,
        task: match &triage {
            Some(_) if args.task.is_none() && args.from.is_some() => None,
            Some(triage) => Some(triage.target.url()),
            None => task(args, described)?,
        },
        by_hand: args.vanilla,
        from: from.transpose()?,
        variables,
        research: crate::research::said(args, &described.info, screen)?,
        triage,
    })
}

/// Refuses an agent that may have to ask people on a store that dies with the process.
fn remembers(
    described: &Described,
    asking: &Asking,
    (kept, agent): (&Kept, &Agent),
) -> Result<(), Failure> {
    if kept.lasts() {
        return Ok(());
    }
    let asks = asking.research.as_ref().is_some_and(StartedResearch::asks);
    if asks && !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "store: with --checkpoint-every, --checkpoint-cost or --clarify the run asks people, and what waits for them \
             would die with this process: use a store that lasts",
        ));
    }
    // The support agent has a refund to ask for and seldom does: on such a store it is refused when it would ask.
    if (described.file.is_some() || asking.triage.is_some()) && agent.may_ask() {
        return Err(Failure::Usage(format!(
            "store: `{}` asks people before it changes something, and what waits for them would die with this process: \
             use a store that lasts, or --deny its tools that change something",
            described.info.name
        )));
    }
    Ok(())
}

/// Refuses research of which nobody said what is to be found out, unless all of it is built in.
fn is_asked(args: &RunArgs, described: &Described, terms: &Terms) -> Result<(), Failure> {
    let unasked = described.info.name == RESEARCH && args.task.is_none() && args.from.is_none();
    let built_in = is_rehearsal(terms) && args.research.sources.is_none();
    match unasked && !built_in {
        true => Err(Failure::usage(
            "what is to be found out? paraph run research \"QUESTION\"",
        )),
        false => Ok(()),
    }
}

/// Whether nothing outside is asked, not even a model.
fn is_rehearsal(terms: &Terms) -> bool {
    terms.model.name() == "rehearsal"
}

/// Says what is not as it would be in earnest.
fn tell_of_ways(args: &RunArgs, described: &Described, said: Said<'_>) {
    if described.info.name == WEATHER && said.rehearsed {
        note(
            "rehearsal: searches and temperatures come from a built-in sample, not from the network",
        );
    }
    if let Some(research) = said.research {
        crate::research::tell(research, said.rehearsed);
    }
    if args.vanilla {
        note("by hand: nothing of this run is saved, so it cannot be gone on with");
    }
}

/// Says where refunds go, if the agent may make any.
pub(super) fn tell_of_refunds(described: &Described, config: &Config) -> Result<(), Failure> {
    if described.may_refund() {
        note(&printable(&crate::tools::tell_of_refunds(config)?));
    }
    Ok(())
}

/// Refuses another agent's conversation: what is in it would mean nothing to this one.
async fn is_its_own(kept: &Kept, thread: &str, agent: &AgentInfo) -> Result<(), Failure> {
    let row = kept.threads.thread(thread).await?;
    match row.and_then(|row| row.graph) {
        Some(graph) if graph != agent.name => Err(Failure::Usage(format!(
            "thread `{thread}` is a conversation with `{graph}`, not with `{}`: choose another --thread",
            agent.name
        ))),
        _ => Ok(()),
    }
}

/// The unfinished run that a new one on its thread leaves behind: what it has asked people for leads nowhere then.
async fn left_behind(kept: &Kept, thread: &str, quiet: bool) -> Result<Option<RunId>, Failure> {
    let Some(row) = kept.threads.thread(thread).await? else {
        return Ok(None);
    };
    let (false, None, Some(head)) = (row.next.is_empty(), row.holder, row.head) else {
        return Ok(None);
    };
    if !quiet {
        note(&printable(&format!(
            "note: the last run on `{thread}` was not finished; this one leaves it behind (--from {head} goes back there)"
        )));
    }
    let newest = RunQuery {
        thread: Some(thread.to_owned()),
        limit: Some(1),
        ..RunQuery::default()
    };
    let row = kept.threads.runs(&newest).await?.pop();
    Ok(row.map(|row| row.id))
}

/// What the run is to do, and where it begins.
struct Asking {
    /// For whom the support agent acts.
    user: u64,
    /// Nothing for what is due at a checkpoint.
    task: Option<String>,
    /// Whether the loop by hand does it, where there is one.
    by_hand: bool,
    from: Option<CheckpointId>,
    /// What stands for variables in prompts.
    variables: BTreeMap<String, String>,
    /// How research is done.
    research: Option<StartedResearch>,
    /// Which issue triage is about.
    triage: Option<StartedTriage>,
}

impl Asking {
    /// Begins the run. What an unfinished one that it leaves behind has asked people for is taken back.
    async fn begin(
        &self,
        kept: &Kept,
        agent: &Agent,
        (terms, config, quiet): (&Terms, &Config, bool),
    ) -> Result<AgentRun, Failure> {
        let thread = terms.thread.as_str();
        let left = left_behind(kept, thread, quiet || self.from.is_some()).await?;
        let run = self.start(kept, agent, terms).await?;
        if let (Some(left), false) = (left, self.by_hand) {
            let by = local(&config.environment);
            let why = "a later run on its thread left it behind";
            say_if_not(take_back(kept, left, (&by, why)).await);
        }
        Ok(run)
    }

    async fn start(&self, kept: &Kept, agent: &Agent, terms: &Terms) -> Result<AgentRun, Failure> {
        let case = self.task.clone().map(|question| Case {
            user: self.user,
            question,
        });
        let run = match self.from {
            Some(from) => {
                super::threads::row(kept, &terms.thread).await?;
                agent.replay(from, case, terms).await
            }
            None if self.by_hand => weather_by_hand(agent, case.unwrap_or_default(), terms).await,
            None => agent.start(case.unwrap_or_default(), terms).await,
        };
        run.map_err(super::not_started)
    }
}

fn flags(args: &RunArgs) -> Vec<(&'static str, &'static str, Option<&str>)> {
    // Without an issue triage is rehearsed, whatever keys are there.
    let rehearsed = (args.agent == TRIAGE && args.task.is_none()).then_some("rehearsal");
    let mut flags = vec![
        ("model", "--model", args.model.as_deref().or(rehearsed)),
        ("store", "--store", args.store.store.as_deref()),
        ("loop", "--loop", args.loops.as_deref()),
    ];
    flags.extend(args.budget.flags());
    flags
}

/// The terms of the run; remarks go to standard error.
fn terms(
    args: &RunArgs,
    described: &Described,
    config: &Config,
    asking: &Asking,
) -> Result<Terms, Failure> {
    let agent = &described.info;
    let limits = limits(config, agent)?;
    let loops = loops(config, described)?;
    let thread = thread(args, agent)?;
    let choice = choose(config, agent, described.model()?)?;
    check_price(config, &choice, &limits)?;
    if args.research.checkpoint_cost.is_some() && choice.price.is_none() {
        return Err(crate::research::unpriced());
    }
    if let (Some(remark), false) = (&choice.note, args.printing.quiet) {
        note(remark);
    }
    let requester = local(&config.environment);
    let chosen = Chosen {
        agent: &agent.name,
        dialect: agent.dialect,
        user: asking.user,
        requester: &requester,
        task: asking.task.as_deref(),
        from: asking.from,
        limits: &limits,
        loops,
        allow: &args.allow,
        deny: &args.deny,
        file: described.started_file(&asking.variables, own_models(config)?),
        research: asking.research.clone(),
        triage: asking.triage.clone(),
    };
    let arguments = Started::now(chosen, &choice.spec).to_value()?;
    Ok(Terms {
        price: choice.price,
        limits,
        loops,
        tell_messages: args.printing.verbose,
        arguments,
        user: requester,
        ..Terms::new(described.tooled(choice.model), thread)
    })
}

/// The task; nothing if what is due at a checkpoint is to be run.
fn task(args: &RunArgs, described: &Described) -> Result<Option<String>, Failure> {
    let agent = &described.info;
    match args.task.as_deref() {
        None if args.from.is_some() => Ok(None),
        None if agent.default_task.is_empty() => Err(Failure::Usage(format!(
            "what is it to do? paraph run {} \"TASK\" (or write `task` into the file)",
            crate::stores::quoted(&args.agent)
        ))),
        None => Ok(Some(agent.default_task.clone())),
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

/// Whether the agents of a file speak by the models that it names: unless the configuration names one for all.
fn own_models(config: &Config) -> Result<bool, Failure> {
    Ok(config.get("model")?.is_none())
}

/// What counts as a loop: what the configuration says, else the file, else the same as always.
fn loops(config: &Config, described: &Described) -> Result<LoopRule, Failure> {
    let own = described
        .file
        .as_ref()
        .map(|file| file.checked.file.main.loops);
    match (config.get("loop")?, own) {
        (Some(found), Some(own)) if found.source == Source::Default => Ok(own),
        _ => Ok(config.parse::<LoopRule>("loop")?.unwrap_or_default()),
    }
}

/// What `--var` says. Only agents in files have variables.
fn variables(args: &RunArgs, described: &Described) -> Result<BTreeMap<String, String>, Failure> {
    if described.file.is_none() && !args.variables.is_empty() {
        let agent = &described.info.name;
        return Err(Failure::Usage(format!(
            "--var: `{agent}` is no agent in a file and has no variables"
        )));
    }
    let mut variables = BTreeMap::new();
    for (name, value) in &args.variables {
        if variables.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::Usage(format!("--var: `{name}` is given twice")));
        }
    }
    Ok(variables)
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
