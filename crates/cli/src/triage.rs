//! Triage runs: which issue they are about, where its evidence and the corpus come from, and where posts go.
//!
//! The only place where the client of GitHub meets the agent's doors. What is said is stored with the run, so that whoever
//! takes it up does the same; the token is looked up anew each time, and stands nowhere.

mod corpus;
mod forge;

use crate::application::{Opened, Said, TRIAGE};
use crate::args::RunArgs;
use crate::choice::chosen;
use crate::config::Config;
use crate::failure::Failure;
use crate::mcp::Servers;
use crate::output::note;
use crate::started::moved;
use crate::terminal::printable;
use paraph_agents::{
    Agent, AgentInfo, Retrieved, SnippetQuery, Snippets, Stores, TriageParts, TriageRole,
    TriageSettings, TriageTarget, Voice, triage,
};
use paraph_models::ModelSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use forge::{is_of_rehearsal, place, target};

/// How triage is done, as it is stored with the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StartedTriage {
    /// The issue.
    pub(crate) target: TriageTarget,
    /// Whether it is one of the rehearsal's, and posts go into a file.
    pub(crate) rehearsed: bool,
    /// Models of single parts, as people write them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    roles: BTreeMap<String, String>,
    /// Where relative paths of these models begin.
    directory: PathBuf,
}

/// What is said of triage; nothing for another agent.
pub(crate) fn said(
    args: &RunArgs,
    agent: &AgentInfo,
    config: &Config,
) -> Result<Option<StartedTriage>, Failure> {
    if agent.name != TRIAGE {
        return Ok(None);
    }
    let (target, rehearsed) = forge::target(config, args.task.as_deref())?;
    settings(config, rehearsed)?;
    Ok(Some(StartedTriage {
        target,
        rehearsed,
        roles: roles(&args.research.roles)?,
        directory: std::env::current_dir().unwrap_or_default(),
    }))
}

fn roles(said: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut roles = BTreeMap::new();
    for (part, spec) in said {
        let part: TriageRole = part
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
    Ok(roles)
}

/// How it is done by the configuration.
pub(crate) fn settings(config: &Config, rehearsed: bool) -> Result<TriageSettings, Failure> {
    let mut settings = TriageSettings::default();
    let number = |key: &str, otherwise: u64| match config.get(key)? {
        None => Ok(otherwise),
        Some(found) => found
            .text
            .parse()
            .map_err(|_| found.wrong(key, format!("`{}` is no whole number", found.text))),
    };
    settings.sparse_below = number("triage.sparse_below", settings.sparse_below)?;
    settings.snippets = number("triage.snippets", settings.snippets)?;
    let day = number("triage.per_user_day", settings.per_user_day.unwrap_or(0))?;
    settings.per_user_day = Some(day).filter(|_| !rehearsed);
    // An empty text means no label.
    let label = |key: &str, otherwise: Option<String>| match config.get(key)? {
        None => Ok::<_, Failure>(otherwise),
        Some(found) => Ok(Some(found.text).filter(|text| !text.is_empty())),
    };
    settings.needs_triage_label = label("triage.needs_triage_label", settings.needs_triage_label)?;
    settings.severity_prefix = label("triage.severity_prefix", settings.severity_prefix)?;
    settings
        .check()
        .map_err(|why| Failure::Usage(format!("[triage] in paraph.toml: {why}")))?;
    Ok(settings)
}

/// Says where the issue is and where posts go.
pub(crate) fn tell(started: &StartedTriage, config: &Config) -> Result<(), Failure> {
    if started.rehearsed {
        let place = forge::place(config, true)?;
        note(&printable(&format!(
            "rehearsal: {} is of a stand-in for GitHub on this machine; posts go to {}",
            started.target.url(),
            place.posts()
        )));
    }
    Ok(())
}

/// The triage agent on a store, for the issue of its run.
pub(crate) async fn open(
    config: &Config,
    (stores, info): (Stores, &AgentInfo),
    said: Said<'_>,
) -> Result<Opened, Failure> {
    let started = said
        .triage
        .ok_or_else(|| Failure::Broken("a triage run has no issue".to_owned()))?;
    let place = forge::place(config, started.rehearsed)?;
    let mut settings = settings(config, started.rehearsed)?;
    if said.rehearsed {
        settings.voices = TriageSettings::rehearsal().voices;
    }
    for (part, spec) in &started.roles {
        let part: TriageRole = part.parse().map_err(Failure::Usage)?;
        let spec: ModelSpec = spec.parse().map_err(Failure::usage)?;
        let voice = match spec {
            ModelSpec::Rehearsal => TriageSettings::rehearsal().voices.remove(&part),
            spec => {
                let choice = chosen(config, info, moved(spec, &started.directory), said.resumed)?;
                Some(Voice {
                    model: choice.model,
                    price: choice.price,
                })
            }
        };
        settings.voices.extend(voice.map(|voice| (part, voice)));
    }
    let parts = TriageParts {
        target: Some(started.target.clone()),
        snippets: corpus::snippets(config, said.kept, (&place, &started.target)).await?,
        post: Some(place.post()),
        forge: Arc::new(place),
        settings,
    };
    let agent = triage(&stores, parts, (said.allow, said.deny)).map_err(Failure::usage)?;
    Ok(Opened {
        warnings: agent.warnings().to_vec(),
        servers: Servers::default(),
        agent,
    })
}

/// The agent without an issue: to be drawn, and to read what its runs left.
pub(crate) fn reader(stores: &Stores) -> Result<Agent, Failure> {
    let parts = TriageParts {
        target: None,
        forge: Arc::new(forge::Nowhere),
        snippets: Arc::new(NoCorpus("no corpus is open".to_owned())),
        post: None,
        settings: TriageSettings::default(),
    };
    triage(stores, parts, (&[], &[])).map_err(Failure::usage)
}

/// A corpus that is not there, and why.
pub(crate) struct NoCorpus(pub(crate) String);

impl Snippets for NoCorpus {
    fn search<'a>(
        &'a self,
        _: &'a SnippetQuery,
    ) -> futures::future::BoxFuture<'a, Result<Retrieved, String>> {
        Box::pin(std::future::ready(Ok(Retrieved {
            no_floor: Some(self.0.clone()),
            ..Retrieved::default()
        })))
    }
}
