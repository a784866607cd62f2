//! With what a run was started: stored with the run, so that whoever takes it up needs its id alone. No
//! secret is among it; keys come from where they came from before.

use crate::choice::spoken_by;
use crate::failure::Failure;
use crate::research::StartedResearch;
use crate::triage::StartedTriage;
use paraph_agents::{Case, caller_of};
use paraph_gateway::{Dialect, Limits, LoopRule};
use paraph_graph::{CheckpointId, RunRow};
use paraph_models::ModelSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The form of these arguments. A program refuses those of a newer one.
const VERSION: u32 = 1;

/// With what a run was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Started {
    version: u32,
    pub(crate) agent: String,
    pub(crate) dialect: Dialect,
    /// As people write it.
    model: String,
    /// Where relative paths of the model begin.
    directory: PathBuf,
    pub(crate) user: u64,
    /// For whom it acts: the local user who started it, whoever goes on with it.
    #[serde(default = "unnamed")]
    pub(crate) requester: String,
    /// Nothing in a replay of what was due.
    pub(crate) task: Option<String>,
    /// The checkpoint that a replay began at.
    #[serde(default)]
    pub(crate) from: Option<CheckpointId>,
    pub(crate) limits: Limits,
    #[serde(rename = "loop")]
    pub(crate) loops: LoopRule,
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    #[serde(default)]
    pub(crate) deny: Vec<String>,
    /// The file that the agent stands in, if it is none of the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<StartedFile>,
    /// How research is done, if it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) research: Option<StartedResearch>,
    /// Which issue triage is about, if it is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) triage: Option<StartedTriage>,
}

/// The file of an agent as it was when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartedFile {
    /// Where it is, from the root.
    pub(crate) path: PathBuf,
    /// Stands for all of it that matters to a run that goes on.
    pub(crate) digest: String,
    /// What `--var` said.
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    /// Whether its agents speak by the models that it names; else all of them by the run's.
    #[serde(default)]
    pub(crate) own_models: bool,
}

/// Whom runs acted for whose arguments do not say.
fn unnamed() -> String {
    "local".to_owned()
}

/// What is chosen for a run besides its model.
pub(crate) struct Chosen<'a> {
    pub(crate) agent: &'a str,
    pub(crate) dialect: Dialect,
    pub(crate) user: u64,
    pub(crate) requester: &'a str,
    pub(crate) task: Option<&'a str>,
    pub(crate) from: Option<CheckpointId>,
    pub(crate) limits: &'a Limits,
    pub(crate) loops: LoopRule,
    pub(crate) allow: &'a [String],
    pub(crate) deny: &'a [String],
    pub(crate) file: Option<StartedFile>,
    pub(crate) research: Option<StartedResearch>,
    pub(crate) triage: Option<StartedTriage>,
}

impl Started {
    /// The arguments of a run that begins now, with a model that is named in full.
    pub(crate) fn now(chosen: Chosen<'_>, model: &ModelSpec) -> Started {
        Started {
            version: VERSION,
            agent: chosen.agent.to_owned(),
            dialect: chosen.dialect,
            model: model.to_string(),
            directory: std::env::current_dir().unwrap_or_default(),
            user: chosen.user,
            requester: chosen.requester.to_owned(),
            task: chosen.task.map(str::to_owned),
            from: chosen.from,
            limits: chosen.limits.clone(),
            loops: chosen.loops,
            allow: chosen.allow.to_vec(),
            deny: chosen.deny.to_vec(),
            file: chosen.file,
            research: chosen.research,
            triage: chosen.triage,
        }
    }

    /// As the store keeps it.
    pub(crate) fn to_value(&self) -> Result<Value, Failure> {
        Ok(serde_json::to_value(self)?)
    }

    /// The arguments of a stored run.
    pub(crate) fn of(row: &RunRow) -> Result<Started, Failure> {
        let id = row.id;
        if let Some(caller) = caller_of(row) {
            return Err(Failure::Usage(format!(
                "run {id} is that of an agent which another called, and goes on with its caller: paraph runs resume {caller}"
            )));
        }
        if row.arguments.is_null() {
            return Err(Failure::Usage(format!(
                "run {id} was not started by `paraph run`, so it cannot be gone on with from here"
            )));
        }
        let version = row.arguments.get("version").and_then(Value::as_u64);
        if version.is_some_and(|version| version > u64::from(VERSION)) {
            return Err(Failure::Usage(format!(
                "run {id} was started by a newer version of paraph: use that one to go on with it"
            )));
        }
        serde_json::from_value(row.arguments.clone()).map_err(|error| {
            Failure::Broken(format!("the arguments of run {id} cannot be read: {error}"))
        })
    }

    /// What was asked; nothing in a replay of what was due.
    pub(crate) fn case(&self) -> Option<Case> {
        Some(Case {
            user: self.user,
            question: self.task.clone()?,
        })
    }

    /// The agent, as a command names it.
    pub(crate) fn named(&self) -> String {
        match &self.file {
            Some(file) => crate::stores::quoted(&file.path.display().to_string()),
            None => self.agent.clone(),
        }
    }

    /// Whether its model is the rehearsal.
    pub(crate) fn is_rehearsed(&self) -> bool {
        let spec = self.model.parse::<ModelSpec>();
        spec.is_ok_and(|spec| *spoken_by(&spec) == ModelSpec::Rehearsal)
    }

    /// The model, with paths that lead from here to where they led then.
    pub(crate) fn model(&self) -> Result<ModelSpec, Failure> {
        let spec: ModelSpec = self.model.parse().map_err(Failure::usage)?;
        let here = std::env::current_dir().unwrap_or_default();
        Ok(match here == self.directory {
            true => spec,
            false => moved(spec, &self.directory),
        })
    }
}

/// The same model for whoever stands elsewhere.
pub(crate) fn moved(spec: ModelSpec, directory: &Path) -> ModelSpec {
    match spec {
        ModelSpec::Scripted(file) => ModelSpec::Scripted(directory.join(file)),
        ModelSpec::Replay(dir) => ModelSpec::Replay(directory.join(dir)),
        ModelSpec::Record { dir, spec } => ModelSpec::Record {
            dir: directory.join(dir),
            spec: Box::new(moved(*spec, directory)),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;

    #[test]
    fn paths_of_a_model_are_found_again_from_elsewhere() {
        let table = [
            ("scripted:a.jsonl", "scripted:/d/a.jsonl"),
            ("scripted:/x/a.jsonl", "scripted:/x/a.jsonl"),
            ("record:r,scripted:a", "record:/d/r,scripted:/d/a"),
            ("replay:r", "replay:/d/r"),
            ("openai:gpt-4.1-mini", "openai:gpt-4.1-mini"),
        ];
        for (spec, expected) in table {
            let spec = spec.parse().unwrap();
            assert_eq!(moved(spec, Path::new("/d")).to_string(), expected);
        }
    }
}
