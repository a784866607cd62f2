//! An agent file on disk: read within bounds, checked against what this program has to offer.
//!
//! `check`, `run` and every other command that takes an agent's file come here. Nothing is connected to.

use crate::config::read_text;
use crate::failure::Failure;
use crate::terminal::printable;
use paraph_agents::{
    Checked, DeclaredPolicy, HttpFacts, Mistake, Supply, read_agent_file, read_policies,
};
use paraph_tools::HttpTool;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What came of reading a file.
pub(crate) type Read = Result<Checked, Vec<Mistake>>;

/// Whether an agent that is named like this is a file.
pub(crate) fn is_file(agent: &str) -> bool {
    agent.ends_with(".toml")
}

/// Reads a file and finds all its mistakes.
pub(crate) fn read(path: &Path) -> Result<Read, Failure> {
    by(path, read_agent_file)
}

/// The policies in a file, those of the agents that it calls too. Examples of rules that fail are not its mistakes.
pub(crate) fn policies(path: &Path) -> Result<Vec<DeclaredPolicy>, Failure> {
    by(path, read_policies)?.map_err(|mistakes| faulty(path, &mistakes))
}

/// What a reader makes of a file, with all that this program has to offer.
fn by<T>(path: &Path, reader: fn(&str, &Supply<'_>) -> T) -> Result<T, Failure> {
    let text =
        read_text(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let folder = folder(path);
    let beside = |name: &str| read_text(&folder.join(name)).map_err(|error| error.to_string());
    let supply = Supply {
        builtin: &crate::tools::builtin(),
        arguments: &paraph_tools::arguments,
        http: Some(&judge_http),
        mcp: Some(&crate::mcp::mistakes),
        read: &beside,
    };
    Ok(reader(&text, &supply))
}

/// The same for a command that needs a file without mistakes.
pub(crate) fn checked(path: &Path) -> Result<Checked, Failure> {
    read(path)?.map_err(|mistakes| faulty(path, &mistakes))
}

fn faulty(path: &Path, mistakes: &[Mistake]) -> Failure {
    let mut text = match mistakes.len() {
        1 => format!("{} has a mistake:", path.display()),
        many => format!("{} has {many} mistakes:", path.display()),
    };
    for mistake in mistakes {
        text.push_str(&format!("\n  {}", line(path, mistake)));
    }
    Failure::Usage(text)
}

/// A mistake as one line that editors and people find the place by.
pub(crate) fn line(path: &Path, mistake: &Mistake) -> String {
    printable(&format!("{}:{mistake}", path.display())).replace('\n', " ")
}

/// The folder at which paths in the file begin.
pub(crate) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn judge_http(settings: &Value) -> HttpFacts {
    match serde_json::from_value::<HttpTool>(settings.clone()) {
        Ok(tool) => HttpFacts {
            level: tool.level(),
            schema: tool.schema(),
            mistakes: tool.mistakes(),
        },
        Err(error) => HttpFacts {
            level: paraph_gateway::Level::Read,
            schema: Value::Null,
            mistakes: vec![error.to_string()],
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;
    use paraph_tools::McpServer;
    use schemars::schema_for;
    use std::collections::BTreeSet;

    /// The keys that a schema has properties for.
    fn keys(schema: &Value) -> BTreeSet<String> {
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    }

    #[test]
    fn the_keys_of_a_file_are_those_that_its_tools_are_made_of() {
        let file = paraph_agents::agent_schema();
        let http = &file["properties"]["tools"]["properties"]["http"]["items"];
        assert_eq!(keys(http), keys(schema_for!(HttpTool).as_value()));
        let mut server = keys(schema_for!(McpServer).as_value());
        // A file names a server by its table, and keeps what was reviewed there.
        server.remove("name");
        server.insert(crate::mcp::PINS.to_owned());
        let in_file = &file["properties"]["mcp"]["additionalProperties"];
        assert_eq!(keys(in_file), server);
        let pin = &in_file["properties"]["pins"]["additionalProperties"];
        assert_eq!(
            keys(pin),
            keys(schema_for!(paraph_tools::McpPin).as_value())
        );
    }
}
