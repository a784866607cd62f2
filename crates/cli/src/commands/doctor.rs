//! `paraph doctor`: is everything there that a run needs? It asks nobody over the network unless told to.

mod effects;

use crate::application::{AgentPath, Described};
use crate::args::DoctorArgs;
use crate::choice::{check_price, chosen, limits, spec, spoken_by};
use crate::config::{Config, Environment, FILE_NAME};
use crate::failure::{FINISHED, Failure, USAGE};
use crate::mcp::Servers;
use crate::output::{print, print_json, table};
use crate::stores::Kept;
use crate::terminal::{Screen, printable};
use paraph_agents::{AgentFile, AgentInfo, Parts, Stores, builtin, declared};
use paraph_graph::ThreadQuery;
use paraph_models::{ChatModel, ChatRequest, Message, ModelSpec, providers};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the model may take to say one word.
const PATIENCE: Duration = Duration::from_secs(20);

/// How one check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    /// Fine, but worth knowing.
    Note,
    Wrong,
}

#[derive(PartialEq, Serialize)]
struct Check {
    check: &'static str,
    verdict: Verdict,
    detail: String,
    /// What a person is to read, as lines of an agent's file that say it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<String>,
}

impl Check {
    fn new(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Check {
        Check {
            check,
            verdict,
            detail: detail.into(),
            review: None,
        }
    }

    fn of(check: &'static str, result: Result<String, Failure>) -> Check {
        match result {
            Ok(detail) => Check::new(check, Verdict::Ok, detail),
            Err(Failure::Usage(why) | Failure::Refused(why) | Failure::Broken(why)) => {
                Check::new(check, Verdict::Wrong, why)
            }
            Err(Failure::ClosedPipe) => Check::new(check, Verdict::Wrong, "the output was closed"),
        }
    }
}

pub(super) fn examine(args: &DoctorArgs) -> Result<u8, Failure> {
    let mut checks = vec![version()];
    match Config::load(&args.sources, Vec::new()) {
        Ok(config) => checks.extend(with_config(&config, args)),
        Err(failure) => checks.push(Check::of("configuration", Err(failure))),
    }
    if args.json {
        print_json(&checks)?;
    } else {
        print(&printable(&table(
            &checks.iter().map(line).collect::<Vec<_>>(),
        )))?;
        for review in checks.iter().filter_map(|check| check.review.as_ref()) {
            print(&format!(
                "\nOnce you have read this, put it into the file, in place of such a table if it has one:\n\n{review}"
            ))?;
        }
    }
    let wrong = checks.iter().any(|check| check.verdict == Verdict::Wrong);
    Ok(if wrong { USAGE } else { FINISHED })
}

fn line(check: &Check) -> Vec<String> {
    let verdict = match check.verdict {
        Verdict::Ok => "ok",
        Verdict::Note => "note",
        Verdict::Wrong => "WRONG",
    };
    vec![
        verdict.to_owned(),
        check.check.to_owned(),
        check.detail.clone(),
    ]
}

fn version() -> Check {
    let (version, os, arch) = (
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
    );
    Check::new(
        "version",
        Verdict::Ok,
        format!("paraph {version} on {os} {arch}"),
    )
}

fn with_config(config: &Config, args: &DoctorArgs) -> Vec<Check> {
    let mut checks = vec![
        terminal(&config.environment),
        env_file(&config.environment),
        files(config),
    ];
    checks.extend(keys(config));
    match &args.file {
        None => {
            for agent in builtin() {
                for check in models(config, &agent, None, args.online) {
                    // What is wrong with a setting is wrong for all of them.
                    if !checks.contains(&check) {
                        checks.push(check);
                    }
                }
            }
        }
        Some(name) => checks.extend(agent_file(config, name, args.online)),
    }
    checks.push(Check::of("data directory", data_dir(config)));
    checks.push(store(config));
    checks.extend(effects::checks(config));
    checks
}

fn terminal(environment: &Environment) -> Check {
    let screen = Screen::of_stderr(environment);
    let detail = match (screen.live, screen.colour) {
        (true, true) => "live, with colours",
        (true, false) => "live, without colours",
        (false, _) => "plain lines: standard error is no terminal, or a dumb one",
    };
    Check::new("terminal", Verdict::Ok, detail)
}

fn env_file(environment: &Environment) -> Check {
    let path = environment.file_path().display();
    match environment.has_file {
        true => Check::new("env file", Verdict::Ok, format!("{path} was read")),
        false => Check::new(
            "env file",
            Verdict::Note,
            format!("no {path}; the environment alone counts"),
        ),
    }
}

fn files(config: &Config) -> Check {
    let paths: Vec<_> = config
        .file_paths()
        .map(|path| path.display().to_string())
        .collect();
    match paths.is_empty() {
        true => Check::new(
            "configuration",
            Verdict::Note,
            format!("no {FILE_NAME}: defaults"),
        ),
        false => Check::new(
            "configuration",
            Verdict::Ok,
            format!("{} was read", paths.join(", ")),
        ),
    }
}

fn keys(config: &Config) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut any = false;
    for provider in providers() {
        match config.get(&format!("providers.{}.api_key", provider.name)) {
            Ok(None) => {}
            Ok(Some(found)) => {
                any = true;
                let detail = format!("{}: set by {}", provider.name, found.source);
                checks.push(Check::new("key", Verdict::Ok, detail));
            }
            Err(failure) => checks.push(Check::of("key", Err(failure))),
        }
    }
    match crate::tools::lacks_search(config) {
        Ok(false) => {}
        Ok(true) => {
            let detail = "TAVILY_API_KEY is not set: the web cannot be searched (research has --sources DIR)";
            checks.push(Check::new("search", Verdict::Note, detail));
        }
        Err(failure) => checks.push(Check::of("search", Err(failure))),
    }
    if !any {
        let detail = "no provider's key is set; the rehearsal model needs none";
        checks.push(Check::new("key", Verdict::Note, detail));
    }
    checks
}

/// An agent's file: its mistakes, its model, and whether its tools have what they need.
fn agent_file(config: &Config, name: &str, online: bool) -> Vec<Check> {
    const CHECK: &str = "agent file";
    let described = match Described::of(name) {
        Ok(described) => described,
        Err(failure) => return vec![Check::of(CHECK, Err(failure))],
    };
    let mut checks = vec![Check::new(
        CHECK,
        Verdict::Ok,
        format!("{name} has no mistakes"),
    )];
    if let Some(file) = &described.file {
        for remark in &file.checked.remarks {
            checks.push(Check::new(CHECK, Verdict::Note, format!("{name}:{remark}")));
        }
        let tools = crate::tools::of_file(config, &file.checked.file, &Servers::default());
        let count = |all: std::collections::BTreeMap<String, Vec<_>>| {
            let count: usize = all.values().map(Vec::len).sum();
            format!("{count} can be made")
        };
        checks.push(Check::of("tools", tools.map(count)));
        checks.extend(servers(config, file, online));
    }
    match described.model() {
        Ok(own) => checks.extend(models(config, &described.info, own, online)),
        Err(failure) => checks.push(Check::of("model", Err(failure))),
    }
    checks
}

/// The MCP servers of a file. They are started or reached only when that was asked for.
fn servers(config: &Config, file: &AgentPath, online: bool) -> Vec<Check> {
    const CHECK: &str = "mcp server";
    let names: Vec<&str> = file.checked.file.mcp.keys().map(String::as_str).collect();
    if names.is_empty() {
        return Vec::new();
    }
    if !online {
        let detail = format!("{}: not asked; --online does", names.join(", "));
        return vec![Check::new(CHECK, Verdict::Note, detail)];
    }
    let looked = super::block_on(async {
        let folder = crate::agent_file::folder(&file.path);
        let file = &file.checked.file;
        let (servers, failures) = Servers::attempt(config, file, &folder).await?;
        let mut checks = Vec::new();
        for server in servers.all() {
            let mut check = Check::new(CHECK, Verdict::Ok, server.summary().await);
            check.review = server.to_review();
            checks.push(check);
        }
        let remarks = servers.remarks(file);
        let remarks = remarks
            .into_iter()
            .map(|it| Check::new(CHECK, Verdict::Note, it));
        checks.extend(remarks);
        let wrong = failures
            .iter()
            .map(|why| Check::new(CHECK, Verdict::Wrong, why));
        checks.extend(wrong);
        let made = failures.is_empty().then(|| made(config, file, &servers));
        checks.extend(
            made.and_then(|it| it.err())
                .map(|it| Check::of(CHECK, Err(it))),
        );
        servers.close().await;
        Ok(checks)
    });
    looked.unwrap_or_else(|failure| vec![Check::of(CHECK, Err(failure))])
}

/// Whether the agent's rules fit the tools that its servers have.
fn made(config: &Config, file: &AgentFile, servers: &Servers) -> Result<(), Failure> {
    let parts = Parts {
        tools: crate::tools::of_file(config, file, servers)?,
        ..Parts::of(Stores::in_memory())
    };
    declared(file, parts).map(|_| ()).map_err(Failure::usage)
}

fn models(config: &Config, agent: &AgentInfo, own: Option<ModelSpec>, online: bool) -> Vec<Check> {
    // Asked for its health, a model is not recorded.
    let spec = match spec(config, agent, own) {
        Ok((spec, _)) => spoken_by(&spec).clone(),
        Err(failure) => return vec![Check::of("model", Err(failure))],
    };
    if spec == ModelSpec::Rehearsal {
        let detail = format!("{}: rehearsal", agent.name);
        return vec![Check::new("model", Verdict::Note, detail)];
    }
    // A recording answers what it was asked, and nothing else.
    let asks = online && !matches!(spec, ModelSpec::Replay(_));
    let choice = chosen(config, agent, spec, false).and_then(|choice| {
        check_price(config, &choice, &limits(config, agent)?)?;
        Ok(choice)
    });
    let model = choice.map(|choice| choice.model);
    let mut checks = vec![Check::of(
        "model",
        model
            .as_ref()
            .map(|model| format!("{}: {}", agent.name, model.name()))
            .map_err(again),
    )];
    if let (Ok(model), true) = (model, asks) {
        checks.push(Check::of("answer", one_word(&model)));
    }
    checks
}

/// The same failure once more.
fn again(failure: &Failure) -> Failure {
    match failure {
        Failure::Usage(text) => Failure::Usage(text.clone()),
        Failure::Refused(text) => Failure::Refused(text.clone()),
        Failure::Broken(text) => Failure::Broken(text.clone()),
        Failure::ClosedPipe => Failure::ClosedPipe,
    }
}

fn one_word(model: &Arc<dyn ChatModel>) -> Result<String, Failure> {
    super::block_on(async {
        let request = ChatRequest {
            deadline: tokio::time::Instant::now().checked_add(PATIENCE),
            ..ChatRequest::new([Message::human("Reply with the single word: ready")])
        };
        match model.complete(&request).await {
            Ok(_) => Ok(format!("{} answers", model.name())),
            Err(error) => Err(Failure::Usage(format!("{}: {error}", error.reason()))),
        }
    })
}

/// Whether the data directory, or the place where it would be made, can be written to.
fn data_dir(config: &Config) -> Result<String, Failure> {
    let Some(dir) = config.data_dir()? else {
        return Err(Failure::usage(
            "this platform names none: set PARAPH_DATA_DIR",
        ));
    };
    let shown = dir.display();
    let Some(there) = dir.ancestors().find(|place| place.is_dir()) else {
        return Err(Failure::Usage(format!(
            "{shown}: no directory above it exists"
        )));
    };
    let can = can_write(there).map_err(|error| Failure::Usage(format!("{shown}: {error}")));
    can.map(|()| format!("{shown} can be written to"))
}

/// Whether the store can be opened. One that is not there yet is not made for this.
fn store(config: &Config) -> Check {
    const CHECK: &str = "store";
    let found = match crate::stores::address(config).and_then(|found| {
        crate::stores::key(config)?;
        Ok(found)
    }) {
        Ok(found) => found,
        Err(failure) => return Check::of(CHECK, Err(failure)),
    };
    let shown = crate::stores::shown(&found.text);
    if crate::stores::file_of(&found.text).is_some_and(|file| !file.exists()) {
        let detail = format!("{shown} is not there yet; the first run makes it");
        return Check::new(CHECK, Verdict::Note, detail);
    }
    let opened = super::block_on(async {
        let kept = Kept::open(config).await?;
        let one = ThreadQuery {
            limit: Some(1),
            ..ThreadQuery::default()
        };
        kept.threads.threads(&one).await?;
        kept.warn_of_short_disk();
        Ok(format!("{shown} can be read, by {}", found.source))
    });
    Check::of(CHECK, opened)
}

fn can_write(dir: &Path) -> std::io::Result<()> {
    let probe = dir.join(format!(".paraph-doctor-{}", std::process::id()));
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&probe)?;
    std::fs::remove_file(&probe)
}
