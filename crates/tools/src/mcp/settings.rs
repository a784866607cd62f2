//! What an MCP server's configuration can say, and every mistake it can contain.
//!
//! Plain data for whoever reads configuration files; `mcp.rs` connects by it. Keys that are not known are refused
//! when it is read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use paraph_gateway::Level;
use reqwest::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::McpSources;
use crate::http::Template;
use crate::outbound::Base;
use crate::setting::{LevelName, Setting};

/// The longest wait that can be configured, in seconds.
const MAX_SECONDS: f64 = 3_600.0;

/// An MCP server: a program that is started here, or an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// Its name: letters, digits and `-`. Its tools are called `name__tool`.
    pub name: String,
    /// The program to start, which speaks MCP over its standard input and output. Either this or `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment: texts, or secrets as `{ env = "NAME" }`. It gets nothing else, not even `PATH`.
    #[serde(default)]
    pub env: BTreeMap<String, Setting>,
    /// The folder it runs in; the current one if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
    /// The address of a server that speaks streamable HTTP. Either this or `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the address may be plain `http` beyond this machine. Whoever is on the way can read and change it.
    #[serde(default)]
    pub plain_http: bool,
    /// Headers of every request: texts, or secrets as `{ env = "NAME", prefix = "Bearer " }`.
    #[serde(default)]
    pub headers: BTreeMap<String, Setting>,
    /// Which protocol is spoken. Found out if left out.
    #[serde(default)]
    pub protocol: McpProtocol,
    /// Which of its tools are taken, by the server's own names. All if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// What its tools do to the world, by the server's own names, `*` for all others. `write` if nothing is said, and
    /// then they wait for approvals by people: a server's word on itself is no proof.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, LevelName>")]
    pub levels: BTreeMap<String, Level>,
    /// What a call of one of its tools that changes something is about, by the server's own names, with arguments in braces:
    /// `repository {owner}/{repo}`. Then a refusal closes all calls about the same on its thread.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subjects: BTreeMap<String, String>,
    /// Which of its tools changed nothing when they report an error, by the server's own names, `*` for all. Of others that
    /// change something nobody knows then, and a person has to find out: that a tool failed does not say how far it came,
    /// and neither do the hints that a server gives of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors_are_refusals: Vec<String>,
    /// Whether a tool that nobody has reviewed yet may be used as it is when it is seen first. A later change disables
    /// it all the same.
    #[serde(default)]
    pub trust_first_sight: bool,
    /// How long starting or connecting may take, in seconds. 30 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_seconds: Option<f64>,
    /// How long a call may take, in seconds. 60 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// How many bytes of a result the model reads. The gateway's default if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// How it is searched and read, where it takes the place of the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<McpSources>,
}

/// The protocols that can be spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum McpProtocol {
    /// The newest that both sides speak.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// With a handshake and, over HTTP, sessions.
    #[serde(rename = "2025-11-25")]
    V2025,
    /// Without either.
    #[serde(rename = "2026-07-28")]
    V2026,
}

impl McpServer {
    /// Every mistake in it, in words for the person who wrote it. Whether its secrets are set and its program exists
    /// shows when it is connected to.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let named = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if self.name.is_empty() || self.name.len() > 32 || !self.name.chars().all(named) {
            mistakes.push("`name` is 1 to 32 letters, digits or `-`".to_owned());
        }
        match (&self.command, &self.url) {
            (Some(_), Some(_)) | (None, None) => {
                mistakes.push("write either `command` or `url`".to_owned());
            }
            (Some(command), None) => {
                if command.trim().is_empty() {
                    mistakes.push("`command` is empty".to_owned());
                }
                if !self.headers.is_empty() || self.plain_http {
                    mistakes.push("`headers` and `plain_http` belong to a `url`".to_owned());
                }
            }
            (None, Some(url)) => {
                mistakes.extend(self.base(url).err().map(|error| format!("`url`: {error}")));
                if !self.args.is_empty() || !self.env.is_empty() || self.dir.is_some() {
                    mistakes.push("`args`, `env` and `dir` belong to a `command`".to_owned());
                }
            }
        }
        mistakes.extend(self.env.keys().filter_map(|name| {
            let odd = name.is_empty() || name.contains(['=', '\0']);
            odd.then(|| format!("`env`: {name:?} is no name of a variable"))
        }));
        mistakes.extend(
            self.headers
                .iter()
                .filter_map(|(name, setting)| header(name, setting)),
        );
        mistakes.extend(self.subjects.iter().filter_map(|(tool, text)| {
            let wrong = match Template::read(text) {
                Err(problem) => problem,
                Ok(template) if template.arguments().next().is_none() => {
                    "without an argument in braces all calls are about the same".to_owned()
                }
                Ok(_) => return None,
            };
            Some(format!("`subjects`, `{tool}`: {wrong}"))
        }));
        mistakes.extend(self.sources.iter().flat_map(McpSources::mistakes));
        for (key, seconds) in [
            ("start_seconds", self.start_seconds),
            ("timeout_seconds", self.timeout_seconds),
        ] {
            if seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds <= MAX_SECONDS)) {
                mistakes.push(format!("`{key}` is more than 0 and at most 3600"));
            }
        }
        mistakes
    }

    /// The address as the guard takes it.
    pub(super) fn base(&self, url: &str) -> Result<Base, crate::error::Error> {
        match self.plain_http {
            true => Base::plain_http(url),
            false => Base::new(url),
        }
    }

    pub(super) fn start_limit(&self) -> Duration {
        seconds(self.start_seconds, 30)
    }

    pub(super) fn call_limit(&self) -> Duration {
        seconds(self.timeout_seconds, 60)
    }

    /// What one of its tools does to the world.
    pub(super) fn level(&self, tool: &str) -> Level {
        let said = self.levels.get(tool).or_else(|| self.levels.get("*"));
        said.copied().unwrap_or(Level::Write)
    }

    /// What calls of one of its tools are about, if that is said.
    pub(super) fn subject(&self, tool: &str) -> Option<Result<Template, String>> {
        self.subjects.get(tool).map(|text| Template::read(text))
    }

    /// Whether one of its tools changed nothing when it reports an error.
    pub(super) fn refuses_by_errors(&self, tool: &str) -> bool {
        let mut said = self.errors_are_refusals.iter();
        said.any(|name| name == tool || name == "*")
    }

    /// Its settings that may be secret.
    pub(super) fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.env.values().chain(self.headers.values())
    }
}

fn seconds(set: Option<f64>, usual: u64) -> Duration {
    let set = set.map(|seconds| Duration::try_from_secs_f64(seconds.min(MAX_SECONDS)));
    set.and_then(Result::ok)
        .unwrap_or(Duration::from_secs(usual))
}

/// Headers that the protocol or the connection sets.
const NOT_OURS: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

fn header(name: &str, setting: &Setting) -> Option<String> {
    if HeaderName::try_from(name).is_err() {
        return Some(format!("`headers`: {name:?} is no name of a header"));
    }
    if NOT_OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return Some(format!("`headers`: `{name}` belongs to the protocol"));
    }
    match setting {
        Setting::Text(text) if HeaderValue::from_str(text).is_err() => Some(format!(
            "`headers`, `{name}`: it has characters that no header can carry"
        )),
        _ => None,
    }
}
