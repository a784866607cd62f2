//! `paraph triage …`: which way issues would go, and several runs one after the other.

use super::run;
use crate::args::{Args, Command, TriageBatchArgs, TriageCommand, TriageExplainArgs};
use crate::config::{Config, read_text};
use crate::failure::{FINISHED, Failure, WAITING};
use crate::output::{note, print, print_json, table};
use crate::terminal::{printable, printable_line};
use crate::triage::{is_of_rehearsal, place, settings, target};
use clap::Parser as _;
use paraph_agents::{
    CiState, Classification, IssueEvidence, TriageTarget, classify, issue_evidence,
};
use serde::Serialize;
use std::io::Read as _;
use std::path::Path;

/// The longest texts, in characters.
const LINE: usize = 400;
const WHY: usize = 120;

/// The most that is read of a list, in bytes.
const MAX_LIST: u64 = 1 << 20;

pub(super) fn run(command: &TriageCommand) -> Result<u8, Failure> {
    match command {
        TriageCommand::Explain(args) => explain(args),
        TriageCommand::Batch(args) => batch(args),
    }
}

/// What is said of one issue.
#[derive(Serialize)]
struct Explained {
    issue_url: String,
    classification: Classification,
    evidence: IssueEvidence,
}

async fn explained(
    config: &Config,
    (issue, rehearsed): (&TriageTarget, bool),
) -> Result<Explained, Failure> {
    let settings = settings(config, rehearsed)?;
    let read = place(config, rehearsed)?.bundle(issue).await;
    let evidence = issue_evidence(issue, read.as_ref().map_err(String::as_str));
    Ok(Explained {
        issue_url: issue.url(),
        classification: classify(&evidence, &settings),
        evidence,
    })
}

fn explain(args: &TriageExplainArgs) -> Result<u8, Failure> {
    let config = Config::load(&args.sources, Vec::new())?;
    super::start_log(&config)?;
    let (issue, rehearsed) = target(&config, args.issue.as_deref())?;
    let found = super::runtime()?.block_on(explained(&config, (&issue, rehearsed)))?;
    match args.json {
        true => print_json(&found)?,
        false => print(&in_words(&found))?,
    }
    Ok(FINISHED)
}

fn in_words(found: &Explained) -> String {
    let (evidence, class) = (&found.evidence, &found.classification);
    let ci = match evidence.ci.state {
        CiState::None => "no signal: no open pull request with checks is linked",
        CiState::Passing => "passing",
        CiState::Pending => "not over yet, which is not failing",
        CiState::Failing => "failing",
    };
    let mut facts = vec![
        ("issue", found.issue_url.clone()),
        ("title", evidence.title.clone()),
        ("by", evidence.author.clone()),
        ("state", evidence.state.clone()),
        ("comments", evidence.comments.len().to_string()),
        ("checks", ci.to_owned()),
        (
            "own text",
            format!(
                "{} characters without the template's lines",
                class.characters
            ),
        ),
        ("owners", evidence.owners.join(", ")),
    ];
    facts.extend(
        evidence
            .incomplete
            .iter()
            .map(|missing| ("missing", format!("{}: {}", missing.what, missing.why))),
    );
    facts.extend(evidence.hidden.iter().map(|hidden| {
        (
            "hidden",
            format!("{}, {}: {}", hidden.place, hidden.kind, hidden.text),
        )
    }));
    facts.push(("goes to", class.class.name().to_owned()));
    facts.push(("by rule", class.rule.clone()));
    facts.push(("because", class.why.clone()));
    let lines: Vec<_> = facts
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![name.to_owned(), printable_line(&value, LINE)])
        .collect();
    table(&lines)
}

fn batch(args: &TriageBatchArgs) -> Result<u8, Failure> {
    let flags = vec![
        ("store", "--store", args.store.store.as_deref()),
        ("model", "--model", args.model.as_deref()),
    ];
    let config = Config::load(&args.store.sources, flags)?;
    super::start_log(&config)?;
    let found = super::runtime()?.block_on(async {
        let issues = match of_repository(args) {
            true => listed(&config, args).await?,
            false => issues(&config, args)?,
        };
        let mut found = Vec::new();
        for (issue, rehearsed) in &issues {
            let one = explained(&config, (issue, *rehearsed)).await?;
            let wanted = |label: &String| {
                one.evidence
                    .labels
                    .iter()
                    .any(|own| own.eq_ignore_ascii_case(label))
            };
            if args.label.as_ref().is_none_or(wanted) {
                found.push(one);
            }
        }
        Ok::<_, Failure>(found)
    })?;
    if !args.dry_run {
        return runs(args, &found);
    }
    if args.json {
        print_json(&found)?;
        return Ok(FINISHED);
    }
    let head = ["ISSUE", "GOES TO", "BY RULE", "BECAUSE"]
        .map(str::to_owned)
        .to_vec();
    let mut lines = vec![head];
    lines.extend(found.iter().map(|one| {
        let class = &one.classification;
        vec![
            printable_line(&one.issue_url, LINE),
            class.class.name().to_owned(),
            class.rule.clone(),
            printable_line(&class.why, WHY),
        ]
    }));
    print(&table(&lines))?;
    Ok(FINISHED)
}

/// A run for each, as `paraph run triage` makes it.
fn runs(args: &TriageBatchArgs, found: &[Explained]) -> Result<u8, Failure> {
    let mut code = FINISHED;
    for (n, one) in found.iter().enumerate() {
        note(&printable(&format!(
            "{}/{} {}",
            n + 1,
            found.len(),
            one.issue_url
        )));
        let mut words = vec!["paraph", "run", "triage", &one.issue_url, "--quiet"];
        for (flag, value) in [("--model", &args.model), ("--store", &args.store.store)] {
            if let Some(value) = value {
                words.extend([flag, value]);
            }
        }
        let file = args
            .store
            .sources
            .env_file
            .as_ref()
            .map(|file| file.display().to_string());
        if let Some(file) = &file {
            words.extend(["--env-file", file]);
        }
        let parsed = Args::try_parse_from(words).map_err(Failure::usage)?;
        let Command::Run(args) = parsed.command else {
            continue;
        };
        let ended = run::run(&args)?;
        code = match (code, ended) {
            (FINISHED, ended) => ended,
            (WAITING, ended) if ended != FINISHED => ended,
            (code, _) => code,
        };
    }
    Ok(code)
}

/// Whether a repository is meant and no file.
fn of_repository(args: &TriageBatchArgs) -> bool {
    let name = args.from.as_str();
    let plain = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(fits)
    };
    let named = name
        .split_once('/')
        .is_some_and(|(owner, repo)| plain(owner) && plain(repo));
    named && !Path::new(name).exists()
}

/// The open issues of a repository.
async fn listed(
    config: &Config,
    args: &TriageBatchArgs,
) -> Result<Vec<(TriageTarget, bool)>, Failure> {
    let rehearsed = is_of_rehearsal(&args.from);
    let place = place(config, rehearsed)?;
    let wanted = (args.label.as_deref(), args.limit);
    let issues = place.open_issues(&args.from, wanted).await?;
    Ok(issues.into_iter().map(|issue| (issue, rehearsed)).collect())
}

/// The issues of the list, each once.
fn issues(config: &Config, args: &TriageBatchArgs) -> Result<Vec<(TriageTarget, bool)>, Failure> {
    let text = match args.from.as_str() {
        "-" => {
            let mut text = String::new();
            let mut input = std::io::stdin().lock().take(MAX_LIST);
            input
                .read_to_string(&mut text)
                .map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
            text
        }
        path => read_text(Path::new(path))
            .map_err(|error| Failure::Usage(format!("{path}: {error}")))?,
    };
    let mut all: Vec<(TriageTarget, bool)> = Vec::new();
    let lines = text.lines().map(str::trim).enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let found = target(config, Some(line)).map_err(|failure| match failure {
            Failure::Usage(why) => Failure::Usage(format!("{}, line {}: {why}", args.from, at + 1)),
            failure => failure,
        })?;
        if !all.contains(&found) {
            all.push(found);
        }
    }
    if all.len() > args.limit {
        note(&format!(
            "only the first {} of {} issues are looked at (--limit)",
            args.limit,
            all.len()
        ));
        all.truncate(args.limit);
    }
    Ok(all)
}
