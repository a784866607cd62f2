//! Research runs: how they are done by what is said, where their tools come from, and where their report goes.
//!
//! What is said is stored with the run, so that whoever takes it up does the same.

mod sources;

use crate::application::{Opened, RESEARCH, Said, TRIAGE};
use crate::args::RunArgs;
use crate::choice::chosen;
use crate::config::{Config, micro_dollars};
use crate::failure::Failure;
use crate::output::note;
use crate::started::moved;
use crate::terminal::{Screen, printable};
use paraph_agents::{
    AgentInfo, Direction, OpenQuestion, Report, ResearchSettings, Role, Stores, Voice, research,
};
use paraph_models::ModelSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use sources::StartedSources;
pub(crate) use sources::built_in;

/// After how many rounds a person at a terminal is asked, unless it is said otherwise.
const AT_A_TERMINAL: u64 = 3;

/// How research is done, as it is stored with the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StartedResearch {
    #[serde(flatten)]
    sources: StartedSources,
    breadth: u64,
    depth: u64,
    clarify: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_every: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_micro_dollars: Option<u64>,
    /// Models of single parts, as people write them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    roles: BTreeMap<String, String>,
    /// Where relative paths of these models begin.
    directory: PathBuf,
}

/// What is said of research; nothing for another agent, which has no such options.
pub(crate) fn said(
    args: &RunArgs,
    agent: &AgentInfo,
    screen: &Screen,
) -> Result<Option<StartedResearch>, Failure> {
    let said = &args.research;
    if agent.name != RESEARCH {
        let given = [
            ("--sources", said.sources.is_some()),
            ("--breadth", said.breadth.is_some()),
            ("--depth", said.depth.is_some()),
            ("--checkpoint-every", said.checkpoint_every.is_some()),
            ("--checkpoint-cost", said.checkpoint_cost.is_some()),
            ("--clarify", said.clarify),
            ("--role", !said.roles.is_empty() && agent.name != TRIAGE),
            ("--output", args.printing.output.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} is an option of {RESEARCH}, not of `{}`",
                agent.name
            ))),
            None => Ok(None),
        };
    }
    let default = ResearchSettings::default();
    let people = screen.live
        && std::io::stdin().is_terminal()
        && !(args.printing.json || args.printing.events || args.printing.quiet);
    let sources = said.sources.as_deref().map(StartedSources::said);
    let mut roles = BTreeMap::new();
    for (part, spec) in &said.roles {
        let part: Role = part
            .parse()
            .map_err(|error| Failure::Usage(format!("--role: {error}")))?;
        let _: ModelSpec = spec
            .parse()
            .map_err(|error| Failure::Usage(format!("--role {}: {error}", part.name())))?;
        if roles.insert(part.name().to_owned(), spec.clone()).is_some() {
            return Err(Failure::Usage(format!(
                "--role: `{}` is given twice",
                part.name()
            )));
        }
    }
    let cost = said.checkpoint_cost.as_deref().map(|text| {
        micro_dollars(text).map_err(|why| Failure::Usage(format!("--checkpoint-cost: {why}")))
    });
    let started = StartedResearch {
        sources: sources.transpose()?.unwrap_or_default(),
        breadth: said.breadth.unwrap_or(default.breadth),
        depth: said.depth.unwrap_or(default.depth),
        clarify: said.clarify || people,
        checkpoint_every: said.checkpoint_every.or(people.then_some(AT_A_TERMINAL)),
        checkpoint_micro_dollars: cost.transpose()?,
        roles,
        directory: std::env::current_dir().unwrap_or_default(),
    };
    started.over(default).check().map_err(Failure::Usage)?;
    Ok(Some(started))
}

impl StartedResearch {
    /// Whether people may be asked how to go on.
    pub(crate) fn asks(&self) -> bool {
        self.clarify || self.checkpoint_every.is_some() || self.checkpoint_micro_dollars.is_some()
    }

    /// These settings with what was said instead.
    fn over(&self, settings: ResearchSettings) -> ResearchSettings {
        ResearchSettings {
            breadth: self.breadth,
            depth: self.depth,
            clarify: self.clarify,
            checkpoint_every: self.checkpoint_every,
            checkpoint_cost: self.checkpoint_micro_dollars,
            ..settings
        }
    }
}

/// Says what is not as it would be in earnest, and where documents come from.
pub(crate) fn tell(research: &StartedResearch, rehearsed: bool) {
    research.sources.tell(rehearsed);
}

/// The research agent on a store, with its tools.
pub(crate) async fn open(
    config: &Config,
    (stores, info): (Stores, &AgentInfo),
    said: Said<'_>,
) -> Result<Opened, Failure> {
    let fallback = StartedResearch {
        breadth: ResearchSettings::default().breadth,
        depth: ResearchSettings::default().depth,
        ..StartedResearch::default()
    };
    let started = said.research.unwrap_or(&fallback);
    let basis = match said.rehearsed {
        true => ResearchSettings::rehearsal(),
        false => ResearchSettings::default(),
    };
    let mut settings = started.over(basis);
    for (part, spec) in &started.roles {
        let part: Role = part.parse().map_err(Failure::Usage)?;
        let spec: ModelSpec = spec.parse().map_err(Failure::usage)?;
        let voice = match spec {
            ModelSpec::Rehearsal => ResearchSettings::rehearsal().voices.remove(&part),
            spec => {
                let choice = chosen(config, info, moved(spec, &started.directory), said.resumed)
                    .map_err(|failure| of_role(part, failure))?;
                if choice.price.is_none() && started.checkpoint_micro_dollars.is_some() {
                    return Err(of_role(part, unpriced()));
                }
                Some(Voice {
                    model: choice.model,
                    price: choice.price,
                })
            }
        };
        settings.voices.extend(voice.map(|voice| (part, voice)));
    }
    let (tools, servers, warnings) = started
        .sources
        .open(config, (said.rehearsed, said.resumed))
        .await?;
    let rules = (said.allow, said.deny);
    match research(&stores, tools, settings, rules) {
        Ok(agent) => Ok(Opened {
            warnings: [warnings, agent.warnings().to_vec()].concat(),
            servers,
            agent,
        }),
        Err(error) => {
            servers.close().await;
            Err(Failure::usage(error))
        }
    }
}

/// A failure with the part whose model is at fault.
fn of_role(part: Role, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(why) => Failure::Usage(format!("--role {}: {why}", part.name())),
        other => other,
    }
}

/// Why nobody can be asked at a cost.
pub(crate) fn unpriced() -> Failure {
    Failure::usage(
        "--checkpoint-cost: what this model costs is not known; put its price into paraph.toml, under [prices.\"MODEL\"]",
    )
}

/// The settings of a run that is measured.
pub(crate) fn measured(
    rehearsed: bool,
    (breadth, depth): (Option<u64>, Option<u64>),
) -> Result<ResearchSettings, Failure> {
    let basis = match rehearsed {
        true => ResearchSettings::rehearsal(),
        false => ResearchSettings::default(),
    };
    let settings = ResearchSettings {
        breadth: breadth.unwrap_or(basis.breadth),
        depth: depth.unwrap_or(basis.depth),
        ..basis
    };
    settings.check().map_err(Failure::Usage)?;
    Ok(settings)
}

/// The form of a report's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Markdown,
    Html,
    Json,
}

/// A file for a report.
#[derive(Clone, Debug)]
pub(crate) struct ReportFile {
    path: PathBuf,
    form: Form,
}

impl ReportFile {
    /// By its ending. Its folder has to be there: a run is not begun for a report that cannot be written.
    pub(crate) fn of(path: &Path) -> Result<ReportFile, Failure> {
        let shown = path.display();
        let ending = path
            .extension()
            .and_then(|ending| ending.to_str())
            .unwrap_or_default();
        let form = match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Form::Markdown,
            "html" | "htm" => Form::Html,
            "json" => Form::Json,
            _ => {
                return Err(Failure::Usage(format!(
                    "--output: {shown}: a report ends in .md, .html or .json"
                )));
            }
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(Failure::Usage(format!(
                "--output: there is no folder {}",
                folder.display()
            )));
        }
        // It is written beside its place and takes it when it is whole: a pipe or a device would be no more.
        if path.exists() && !path.is_file() {
            let what = match path.is_dir() {
                true => "a folder",
                false => "no ordinary file, and a report would take its place",
            };
            return Err(Failure::Usage(format!("--output: {shown} is {what}")));
        }
        let file = ReportFile {
            path: path.to_owned(),
            form,
        };
        file.try_out()
            .map_err(|error| Failure::Usage(format!("--output: {shown}: {error}")))?;
        Ok(file)
    }

    /// Whether it could be written now.
    fn try_out(&self) -> std::io::Result<()> {
        match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let beside = self.beside();
        std::fs::File::create_new(&beside)?;
        std::fs::remove_file(&beside)
    }

    /// Where it is written before it takes its place.
    fn beside(&self) -> PathBuf {
        self.path
            .with_file_name(format!(".paraph-{}.part", std::process::id()))
    }

    /// As it stands on a command line.
    pub(crate) fn flag(&self) -> String {
        format!(
            " -o {}",
            crate::stores::quoted(&self.path.to_string_lossy())
        )
    }

    /// Writes the report, whole or not at all.
    pub(crate) fn write(&self, report: &Report) -> Result<(), Failure> {
        let text = match self.form {
            Form::Markdown => report.to_markdown(),
            Form::Html => report.to_html(),
            Form::Json => report.to_json(),
        };
        let shown = self.path.display();
        let failed = |error: std::io::Error| {
            Failure::Broken(format!(
                "--output: {shown}: {error}; the report is stored with the run, and `paraph runs resume RUN -o FILE` writes \
                 it elsewhere"
            ))
        };
        let beside = self.beside();
        std::fs::write(&beside, text).map_err(failed)?;
        std::fs::rename(&beside, &self.path).map_err(|error| {
            let _ = std::fs::remove_file(&beside);
            failed(error)
        })?;
        note(&printable(&format!("report written to {shown}")));
        Ok(())
    }
}

/// An answer as it is given on the command line: JSON if it is an object or a quoted text, else the text itself.
pub(crate) fn answer(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::String(_))) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// Refuses what says nothing of how a run is to go on: it would be asked again, or be taken for a wish to pay for more.
pub(crate) fn check_direction(answer: &Value) -> Result<(), Failure> {
    let says = answer.as_str().is_none_or(|text| !text.trim().is_empty());
    let known = serde_json::from_value::<Direction>(answer.clone()).is_ok();
    match says && known {
        true => Ok(()),
        false => Err(Failure::usage(
            "--answer: say `continue`, `stop`, or a new instruction in words; as JSON, {\"decision\": \"continue\"}, \
             {\"decision\": \"stop\"} or {\"decision\": \"redirect\", \"instruction\": \"…\"}",
        )),
    }
}

/// A question of a run, for people.
pub(crate) fn in_words(asked: &OpenQuestion) -> String {
    let question = &asked.question;
    if let Some(text) = question.as_str() {
        return text.to_owned();
    }
    let text = |key: &str| question[key].as_str().unwrap_or_default().to_owned();
    let list = |key: &str, title: &str| {
        let items = question[key].as_array().into_iter().flatten();
        let items: Vec<_> = items
            .filter_map(Value::as_str)
            .map(|item| item.split_whitespace().collect::<Vec<_>>().join(" "))
            .map(|item| format!("\n  - {}", item.trim_start_matches("- ")))
            .collect();
        match items.is_empty() {
            true => String::new(),
            false => format!("\n{title}:{}", items.concat()),
        }
    };
    format!(
        "After {} of {} rounds, {} sources were read.{}{}{}\n{}",
        question["round"],
        question["rounds"],
        question["sources"],
        list("topics", "Looked into"),
        list("found", "Found"),
        list("open", "Open points"),
        text("question"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_s_form_is_its_file_s_ending() {
        let form = |name: &str| ReportFile::of(Path::new(name)).map(|file| file.form);
        assert_eq!(form("a.md").ok(), Some(Form::Markdown));
        assert_eq!(form("a.HTML").ok(), Some(Form::Html));
        assert_eq!(form("a.json").ok(), Some(Form::Json));
        let wrong = |name: &str| match ReportFile::of(Path::new(name)) {
            Err(Failure::Usage(why)) => why,
            _ => panic!("{name}"),
        };
        assert_eq!(
            wrong("a.pdf"),
            "--output: a.pdf: a report ends in .md, .html or .json"
        );
        assert_eq!(
            wrong("nowhere/a.md"),
            "--output: there is no folder nowhere"
        );
    }

    #[test]
    fn an_answer_is_a_text_unless_it_is_json_for_one_or_an_object() {
        assert_eq!(answer("stop"), json!("stop"));
        assert_eq!(answer("\"stop\""), json!("stop"));
        assert_eq!(
            answer(r#"{"decision": "stop"}"#),
            json!({"decision": "stop"})
        );
        assert_eq!(answer("5"), json!("5"));
        assert_eq!(answer("{no"), json!("{no"));
    }

    #[test]
    fn an_answer_that_gives_no_direction_is_refused_with_those_that_do() {
        for fine in [json!("stop"), json!("costs"), json!({"decision": "stop"})] {
            assert!(check_direction(&fine).is_ok(), "{fine}");
        }
        for wrong in [json!(" "), json!({"decision": "jump"}), json!({})] {
            let Err(Failure::Usage(why)) = check_direction(&wrong) else {
                panic!("{wrong}");
            };
            assert!(
                why.starts_with("--answer: say `continue`, `stop`, or"),
                "{why}"
            );
        }
    }
}
