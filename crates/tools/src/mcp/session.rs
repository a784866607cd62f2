//! A server over all its connections: what was reviewed of it, and the next connection when one is gone.
//!
//! Every call comes through here. Before it is sent, the tool is what was reviewed: after a new connection, and after
//! the server said that its tools changed, they are listed and compared again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use paraph_gateway::{Progress, ToolError};
use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use super::output;
use super::pin::{McpPin, McpReview, pin, review};
use super::settings::McpServer;
use crate::error::Error;
use crate::outbound::Outbound;
use crate::setting::Known;

/// How often in a row a connection may fail before the server is left alone for a while.
const MAX_FAILURES: u32 = 3;

/// How long it is left alone.
const REST: Duration = Duration::from_secs(30);

/// After so many calls in a row without an answer the connection is given up, and a process with it.
const MAX_SILENT: u32 = 3;

/// One server.
pub(super) struct Session {
    pub(super) settings: McpServer,
    outbound: Outbound,
    known: Known,
    /// What was reviewed, or trusted at first sight, by the server's own names.
    reviewed: BTreeMap<String, McpPin>,
    now: Mutex<Now>,
}

/// How it stands.
#[derive(Default)]
struct Now {
    connection: Option<Arc<Connection>>,
    reviews: BTreeMap<String, McpReview>,
    failures: u32,
    rests_until: Option<Instant>,
    silent: u32,
}

impl Session {
    pub(super) fn new(outbound: &Outbound, settings: &McpServer, known: Known) -> Session {
        Session {
            settings: settings.clone(),
            outbound: outbound.clone(),
            known,
            reviewed: BTreeMap::new(),
            now: Mutex::default(),
        }
    }

    /// The first connection: all tools that are taken, as the server lists them.
    pub(super) async fn first(&mut self) -> Result<Vec<Tool>, Error> {
        let connection = self.open().await?;
        let tools = connection.list(self.settings.start_limit()).await?;
        let now = self.now.get_mut();
        now.connection = Some(Arc::new(connection));
        match &self.settings.only {
            None => Ok(tools),
            Some(only) => {
                if let Some(missing) = only
                    .iter()
                    .find(|name| tools.iter().all(|tool| tool.name != **name))
                {
                    let has: Vec<&str> = tools
                        .iter()
                        .map(|tool| tool.name.as_ref())
                        .take(20)
                        .collect();
                    return Err(self.problem(&format!(
                        "it has no tool `{missing}`; it has {}",
                        has.join(", ")
                    )));
                }
                Ok(tools
                    .into_iter()
                    .filter(|tool| only.iter().any(|name| tool.name == **name))
                    .collect())
            }
        }
    }

    /// Settles what of these tools was reviewed. Gives how each stands.
    pub(super) fn settle(
        &mut self,
        reviewed: BTreeMap<String, McpPin>,
        tools: &[Tool],
    ) -> BTreeMap<String, McpReview> {
        self.reviewed = reviewed;
        let mut reviews = BTreeMap::new();
        for tool in tools {
            let name = tool.name.to_string();
            if self.settings.trust_first_sight {
                self.reviewed
                    .entry(name.clone())
                    .or_insert_with(|| pin(tool));
            }
            let review = review(self.reviewed.get(&name), tool);
            reviews.insert(name, review);
        }
        self.now.get_mut().reviews = reviews.clone();
        reviews
    }

    /// Calls a tool by the server's own name, over a connection that is [ready](Session::ready) for it. That nothing
    /// happened is said where the protocol says so, or the configuration of what the tool reports itself.
    pub(super) async fn call(
        &self,
        connection: &Arc<Connection>,
        tool: &str,
        arguments: JsonObject,
        progress: &Progress,
    ) -> Result<Value, ToolError> {
        let limit = self.settings.call_limit();
        let called = connection.call(tool, arguments, progress, limit).await;
        self.after(connection, &called).await;
        let result = called.map_err(|error| match &error {
            Error::NotTaken { .. } => ToolError::nothing_happened(error.to_string()),
            _ => ToolError::new(error.to_string()),
        })?;
        match output::read(result) {
            Ok(value) => {
                let hidden = self.known.hide_in(value);
                hidden.map_err(|error| ToolError::new(error.to_string()))
            }
            Err(said) => {
                let said = self.problem(&self.known.hide(&said)).to_string();
                Err(match self.settings.refuses_by_errors(tool) {
                    true => ToolError::nothing_happened(said),
                    false => ToolError::new(said),
                })
            }
        }
    }

    /// A live connection over which this tool may be called; `shown` is the name by which agents know it. Until there is
    /// one nothing of a call is sent.
    pub(super) async fn ready(&self, tool: &str, shown: &str) -> Result<Arc<Connection>, Error> {
        let mut now = self.now.lock().await;
        let open = now
            .connection
            .as_ref()
            .filter(|connection| connection.is_open());
        let connection = match open.cloned() {
            Some(connection) => connection,
            None => self.reconnect(&mut now).await?,
        };
        if connection.take_changed() {
            match connection.list(self.settings.start_limit()).await {
                Ok(tools) => now.reviews = self.review(&tools),
                Err(error) => {
                    connection.set_changed();
                    return Err(error);
                }
            }
        }
        match now.reviews.get(tool).unwrap_or(&McpReview::Gone).refusal() {
            None => Ok(connection),
            Some(why) => Err(Error::Disabled {
                tool: shown.to_owned(),
                why,
            }),
        }
    }

    /// Whether a call of this tool would be refused as things stand, so that nobody is asked about it in vain. That the
    /// server cannot be reached just now is no reason: it may be back by the time somebody has decided.
    pub(super) async fn refused(&self, tool: &str, shown: &str) -> Result<(), ToolError> {
        match self.ready(tool, shown).await {
            Err(error @ Error::Disabled { .. }) => Err(ToolError::new(error.to_string())),
            _ => Ok(()),
        }
    }

    /// A new connection in place of one that is gone; not again and again at a server that does not come up.
    async fn reconnect(&self, now: &mut Now) -> Result<Arc<Connection>, Error> {
        now.connection = None;
        now.silent = 0;
        if let Some(until) = now.rests_until {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Err(self.problem(&format!(
                    "it failed {MAX_FAILURES} times in a row and is left alone for {} more seconds",
                    left.as_secs() + 1
                )));
            }
            now.rests_until = None;
        }
        let opened = self.open_and_review().await;
        match opened {
            Ok((connection, reviews)) => {
                let connection = Arc::new(connection);
                now.connection = Some(Arc::clone(&connection));
                now.reviews = reviews;
                Ok(connection)
            }
            Err(error) => {
                self.count_failure(now);
                Err(error)
            }
        }
    }

    fn count_failure(&self, now: &mut Now) {
        now.failures += 1;
        if now.failures >= MAX_FAILURES {
            now.failures = 0;
            now.rests_until = Some(Instant::now() + REST);
        }
    }

    async fn open_and_review(&self) -> Result<(Connection, BTreeMap<String, McpReview>), Error> {
        let connection = self.open().await?;
        let tools = connection.list(self.settings.start_limit()).await;
        match tools {
            Ok(tools) => Ok((connection, self.review(&tools))),
            Err(error) => {
                connection.close().await;
                Err(error)
            }
        }
    }

    /// How each tool that was reviewed stands now. One that was listed twice is not the one that was reviewed.
    fn review(&self, tools: &[Tool]) -> BTreeMap<String, McpReview> {
        let mut reviews: BTreeMap<String, McpReview> = BTreeMap::new();
        for tool in tools {
            let name = tool.name.to_string();
            let review = review(self.reviewed.get(&name), tool);
            let worse = reviews
                .get(&name)
                .is_some_and(|other| *other != McpReview::Fine);
            if !worse {
                reviews.insert(name, review);
            }
        }
        reviews
    }

    /// Counts calls without an answer, and connections that break.
    async fn after<T>(&self, connection: &Arc<Connection>, called: &Result<T, Error>) {
        let mut now = self.now.lock().await;
        let ours = now
            .connection
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, connection));
        if !ours {
            return;
        }
        match called {
            Err(Error::Timeout { .. }) => {
                now.silent += 1;
                if now.silent >= MAX_SILENT {
                    now.connection = None;
                    now.silent = 0;
                }
            }
            Err(_) if !connection.is_open() => self.count_failure(&mut now),
            _ => {
                now.silent = 0;
                now.failures = 0;
            }
        }
    }

    async fn open(&self) -> Result<Connection, Error> {
        Connection::open(&self.outbound, &self.settings, &self.known).await
    }

    /// The protocol of the current connection.
    pub(super) async fn protocol(&self) -> Option<String> {
        let now = self.now.lock().await;
        now.connection.as_ref()?.protocol()
    }

    /// How each tool stands now, by the server's own names.
    pub(super) async fn reviews(&self) -> BTreeMap<String, McpReview> {
        self.now.lock().await.reviews.clone()
    }

    /// Ends the connection; a later call makes a new one.
    pub(super) async fn close(&self) {
        let connection = self.now.lock().await.connection.take();
        if let Some(connection) = connection.and_then(Arc::into_inner) {
            connection.close().await;
        }
    }

    fn problem(&self, why: &str) -> Error {
        Error::Server {
            server: self.settings.name.clone(),
            problem: why.to_owned(),
        }
    }
}
