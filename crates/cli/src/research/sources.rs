//! What researchers search and read: the web, a folder, an MCP server of an agent's file, or the built-in documents.
//!
//! `research.rs` keeps with a run what was said of it, and opens it here whenever the run is begun or goes on.

use crate::agent_file::{checked, folder, is_file};
use crate::config::Config;
use crate::failure::Failure;
use crate::mcp::Servers;
use crate::output::note;
use crate::suggest::hint;
use crate::terminal::printable;
use paraph_agents::{AgentFile, sample_documents};
use paraph_gateway::DynTool;
use paraph_tools::{LocalSources, local_sources, think};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How many remarks on a folder are shown.
const REMARKS: usize = 10;

/// What separates a file from the name of a server in it.
const MARK: char = '#';

/// What is searched in place of the web, as it is stored with the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StartedSources {
    /// A folder of documents, from the root.
    #[serde(rename = "sources", skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
    /// An MCP server.
    #[serde(rename = "server", skip_serializing_if = "Option::is_none")]
    server: Option<StartedServer>,
}

/// An MCP server of an agent's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StartedServer {
    /// The file, from the root.
    file: PathBuf,
    name: String,
    /// Stands for its settings, but for what was reviewed of its tools.
    digest: String,
}

/// Tools, what runs beside them, and what is to be said of them.
pub(super) type Found = (Vec<DynTool>, Servers, Vec<String>);

impl StartedSources {
    /// What `--sources` says: a folder, or an agent's file and, if it has several servers, which one.
    pub(super) fn said(said: &Path) -> Result<StartedSources, Failure> {
        let shown = said.display();
        if let Some((file, name)) = server_of(said) {
            let server = StartedServer::of(&file, name.as_deref());
            let server = server.map_err(|failure| match failure {
                Failure::Usage(why) => Failure::Usage(format!("--sources: {why}")),
                other => other,
            })?;
            return Ok(StartedSources {
                server: Some(server),
                ..StartedSources::default()
            });
        }
        let folder = std::fs::canonicalize(said)
            .map_err(|error| Failure::Usage(format!("--sources: {shown}: {error}")))?;
        Ok(StartedSources {
            folder: Some(folder),
            ..StartedSources::default()
        })
    }

    /// Says where documents come from.
    pub(super) fn tell(&self, rehearsed: bool) {
        match (&self.folder, &self.server) {
            (Some(folder), _) => note(&printable(&format!(
                "sources: the folder {}",
                folder.display()
            ))),
            (None, Some(server)) => note(&printable(&format!(
                "sources: the MCP server `{}` of {}",
                server.name,
                server.file.display()
            ))),
            (None, None) if rehearsed => note(
                "rehearsal: the documents are a built-in set about retrieval-augmented generation, not the web; \
                 --sources DIR searches a folder of yours",
            ),
            (None, None) => {}
        }
    }

    /// The tools.
    pub(super) async fn open(
        &self,
        config: &Config,
        (rehearsed, resumed): (bool, bool),
    ) -> Result<Found, Failure> {
        if let Some(server) = &self.server {
            let (servers, mut tools) = server.open(config).await?;
            tools.push(think());
            return Ok((tools, servers, Vec::new()));
        }
        let nothing = Servers::default;
        let local = match (&self.folder, rehearsed) {
            (Some(folder), _) => local_sources(folder)
                .map_err(|error| Failure::Usage(format!("--sources: {error}")))?,
            (None, true) => return Ok((built_in(), nothing(), Vec::new())),
            (None, false) => {
                // A run that goes on may have nothing more to search for.
                if !resumed && crate::tools::lacks_search(config)? {
                    return Err(Failure::usage(
                        "searches need TAVILY_API_KEY (in the environment, or in .env); --sources DIR searches a folder of \
                         documents instead",
                    ));
                }
                let tools = crate::tools::of_research(config)?;
                return Ok((tools, nothing(), Vec::new()));
            }
        };
        let mut tools = local.tools();
        tools.push(think());
        let mut notes = local.notes().to_vec();
        let more = notes.len().saturating_sub(REMARKS);
        notes.truncate(REMARKS);
        if more > 0 {
            notes.push(format!("and {more} more remarks on the folder"));
        }
        Ok((tools, nothing(), notes))
    }
}

/// The tools over the built-in documents.
pub(crate) fn built_in() -> Vec<DynTool> {
    let mut tools = LocalSources::from_documents(sample_documents()).tools();
    tools.push(think());
    tools
}

/// A file and the server's name in it, if that is what is said. A folder is one whatever it is called.
fn server_of(said: &Path) -> Option<(PathBuf, Option<String>)> {
    if said.is_dir() {
        return None;
    }
    let text = said.to_str()?;
    if is_file(text) {
        return Some((said.to_owned(), None));
    }
    let (file, name) = text.rsplit_once(MARK)?;
    is_file(file).then(|| (PathBuf::from(file), Some(name.to_owned())))
}

impl StartedServer {
    fn of(path: &Path, name: Option<&str>) -> Result<StartedServer, Failure> {
        let checked = checked(path)?;
        let file = &checked.file;
        let name = match name {
            Some(name) => name,
            None => only(path, file)?,
        };
        let digest = file.server_digest(name).ok_or_else(|| {
            let close = hint(name, file.mcp.keys().map(String::as_str));
            Failure::Usage(format!(
                "{} has no MCP server `{name}`{close}",
                path.display()
            ))
        })?;
        let file = std::fs::canonicalize(path)
            .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        Ok(StartedServer {
            file,
            name: name.to_owned(),
            digest,
        })
    }

    /// Connects to it, if it still is what it was when the run began.
    async fn open(&self, config: &Config) -> Result<(Servers, Vec<DynTool>), Failure> {
        let shown = self.file.display();
        if !self.file.exists() {
            return Err(Failure::Usage(format!(
                "the MCP server that the run searches stood in {shown}, which is no longer there: put the file back to go \
                 on with the run"
            )));
        }
        let checked = checked(&self.file)?;
        if checked.file.server_digest(&self.name).as_ref() != Some(&self.digest) {
            return Err(Failure::Usage(format!(
                "the MCP server `{}` of {shown} has other settings than when the run began: put them back to go on with \
                 the run, or ask again",
                self.name
            )));
        }
        let settings = checked
            .file
            .mcp
            .get(&self.name)
            .cloned()
            .unwrap_or_default();
        let place = folder(&self.file);
        Servers::to_search(config, (&self.name, &settings), &place).await
    }
}

/// The only server of a file, or the only one that says how it is searched.
fn only<'f>(path: &Path, file: &'f AgentFile) -> Result<&'f str, Failure> {
    let shown = path.display();
    let all: Vec<&str> = file.mcp.keys().map(String::as_str).collect();
    let searched = file.mcp.iter();
    let searched = searched.filter(|(_, settings)| settings.get("sources").is_some());
    let searched: Vec<&str> = searched.map(|(name, _)| name.as_str()).collect();
    match (&*all, &*searched) {
        ([only], _) | (_, [only]) => Ok(only),
        ([], _) => Err(Failure::Usage(format!(
            "{shown} has no MCP server; [mcp.NAME] describes one"
        ))),
        _ => Err(Failure::Usage(format!(
            "{shown} has the MCP servers {}: say which one is searched, as {shown}{MARK}{}",
            all.join(", "),
            all.first().unwrap_or(&"NAME")
        ))),
    }
}
