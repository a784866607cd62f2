//! MCP servers: their tools as tools of the gateway.
//!
//! [`McpClient::connect`] starts or reaches a server and lists its tools; [`McpClient::tools`] gives them. What a
//! server says of its tools is a stranger's prompt: it is pinned by hash, a tool that nobody reviewed is not shown in
//! the server's words and cannot be called, and one that changes is disabled until somebody reviews it. What its
//! tools do to the world is said by configuration; what is not said may write, and waits for approvals.
//!
//! The protocols are 2025-11-25 and 2026-07-28, by the official SDK. The parts: `settings`, `names`, `pin`,
//! `output` and `found` are pure, `process` and `connection` reach the server, `session` stands over its connections, and
//! `sources` makes a server the place that is searched.

mod connection;
mod found;
mod names;
mod output;
mod pin;
mod process;
mod session;
mod settings;
mod sources;
mod strays;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use paraph_gateway::{DynTool, Json, Progress, ToolError};
use rmcp::model::Tool;
use serde_json::{Value, json};

use crate::error::Error;
use crate::http::Template;
use crate::outbound::Outbound;
use crate::said::cut;
use crate::setting::{Known, Secrets};
pub use pin::{McpPin, McpPins, McpReview};
use session::Session;
pub use settings::{McpProtocol, McpServer};
pub use sources::McpSources;

/// The gateway's own deadline comes this much later, so that the model reads what was slow: a call may first have to
/// connect anew and list.
const GRACE: Duration = Duration::from_secs(2);

/// How many characters of a description a model is shown.
const MAX_ABOUT: usize = 8_000;

/// What [`McpClient::connect`] needs beside the configuration.
#[derive(Clone, Default)]
pub struct McpOptions<'a> {
    /// Secrets by name; none if left out.
    pub secrets: Option<Secrets<'a>>,
    /// What was reviewed before, of any server.
    pub pins: McpPins,
}

/// A connected server. Dropped, its connection and its process end once no tool of it is left either.
pub struct McpClient {
    session: Arc<Session>,
    tools: Vec<Listed>,
}

/// A tool as it was listed first.
struct Listed {
    name: String,
    tool: Tool,
    review: McpReview,
}

/// A tool of a server, and how it stands to what was reviewed.
#[derive(Clone, Debug, PartialEq)]
pub struct McpTool {
    /// Its name, as agents know it.
    pub name: String,
    /// What the server says it does, as far as a model is shown it. Read it before it is trusted.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// How it stands.
    pub review: McpReview,
    /// Its pin as it was when it was listed: what to keep once it was reviewed.
    pub pin: McpPin,
}

impl McpClient {
    /// Starts or reaches a server, settles on a protocol and lists its tools.
    ///
    /// # Errors
    /// [`Error::Config`] with every mistake of the configuration; else what kept the server from being used.
    pub async fn connect(
        outbound: &Outbound,
        settings: &McpServer,
        options: McpOptions<'_>,
    ) -> Result<McpClient, Error> {
        let mut mistakes = settings.mistakes();
        let nothing = |_: &str| None;
        let secrets = options.secrets.unwrap_or(&nothing);
        let (known, missing) = Known::look_up(settings.settings(), secrets);
        mistakes.extend(missing);
        if !mistakes.is_empty() {
            let what = format!("the MCP server `{}`", crate::said::short(&settings.name));
            return Err(Error::config(what, mistakes.join("; ")));
        }
        let mut session = Session::new(outbound, settings, known);
        let tools = session.first().await?;
        let own: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        let named = names::canonical(&settings.name, &own);
        let named = named.map_err(|problem| Error::Server {
            server: settings.name.clone(),
            problem,
        })?;
        let reviewed = tools.iter().zip(&named).filter_map(|(tool, name)| {
            let pin = options.pins.get(name)?;
            Some((tool.name.to_string(), pin.clone()))
        });
        let reviewed: BTreeMap<String, McpPin> = reviewed.collect();
        let reviews = session.settle(reviewed, &tools);
        let listed = tools.into_iter().zip(named).map(|(tool, name)| Listed {
            review: reviews
                .get(tool.name.as_ref())
                .cloned()
                .unwrap_or(McpReview::Gone),
            name,
            tool,
        });
        Ok(McpClient {
            tools: listed.collect(),
            session: Arc::new(session),
        })
    }

    /// Its tools, for a gateway. A tool that was not reviewed, or changed since, is among them so that an agent's
    /// allowlist stays true, but not in the server's words, and calls of it are refused with the reason.
    pub fn tools(&self) -> Vec<DynTool> {
        self.tools.iter().map(|listed| self.tool(listed)).collect()
    }

    fn tool(&self, listed: &Listed) -> DynTool {
        let (about, schema) = match listed.review.refusal() {
            None => (
                cut(description(&listed.tool), MAX_ABOUT),
                Value::Object(listed.tool.input_schema.as_ref().clone()),
            ),
            Some(why) => (format!("Not to be used: {why}."), json!({"type": "object"})),
        };
        let (session, own, name) = (
            Arc::clone(&self.session),
            listed.tool.name.to_string(),
            listed.name.clone(),
        );
        let run = move |args: Json, progress: Progress| {
            let (session, own, name) = (Arc::clone(&session), own.clone(), name.clone());
            async move {
                let arguments = match args.to_value() {
                    Ok(Value::Object(arguments)) => arguments,
                    Ok(_) => return Err(ToolError::bad_args("arguments are an object")),
                    Err(error) => return Err(ToolError::bad_args(error.to_string())),
                };
                let ready = session.ready(&own, &name).await;
                let connection =
                    ready.map_err(|error| ToolError::nothing_happened(error.to_string()))?;
                session.call(&connection, &own, arguments, &progress).await
            }
        };
        let (asked, own, shown) = (
            Arc::clone(&self.session),
            listed.tool.name.to_string(),
            listed.name.clone(),
        );
        let ready = move || {
            let (session, own, shown) = (Arc::clone(&asked), own.clone(), shown.clone());
            async move { session.refused(&own, &shown).await }
        };
        let settings = &self.session.settings;
        let tool = DynTool::with_progress(listed.name.clone(), about, schema, run);
        let mut tool = tool.asked_when_ready(ready);
        if let Some(Ok(subject)) = settings.subject(&listed.tool.name) {
            tool = tool.with_subject(move |args| subject_of(&subject, args));
        }
        tool.level = settings.level(&listed.tool.name);
        tool.timeout = self.patience();
        tool.output_cap = settings.max_output.unwrap_or(tool.output_cap);
        tool
    }

    /// How long a call may take in all: the server may have to be started and asked for its tools before it.
    fn patience(&self) -> Duration {
        let settings = &self.session.settings;
        settings.start_limit() * 2 + settings.call_limit() + GRACE
    }

    /// All its tools as they were listed first, for whoever reviews them.
    pub fn listed(&self) -> Vec<McpTool> {
        let listed = self.tools.iter().map(|listed| McpTool {
            name: listed.name.clone(),
            description: cut(description(&listed.tool), MAX_ABOUT),
            schema: Value::Object(listed.tool.input_schema.as_ref().clone()),
            review: listed.review.clone(),
            pin: pin::pin(&listed.tool),
        });
        listed.collect()
    }

    /// How its tools stand by now, by the names that agents know.
    pub async fn reviews(&self) -> BTreeMap<String, McpReview> {
        let reviews = self.session.reviews().await;
        let named = self.tools.iter().map(|listed| {
            let review = reviews.get(listed.tool.name.as_ref());
            (
                listed.name.clone(),
                review.cloned().unwrap_or(McpReview::Gone),
            )
        });
        named.collect()
    }

    /// The protocol that is spoken, such as `2025-11-25`; nothing while there is no connection.
    pub async fn protocol(&self) -> Option<String> {
        self.session.protocol().await
    }

    /// Ends the connection, and waits for a process to end: a few seconds at most. A tool that is called later
    /// connects anew.
    pub async fn close(&self) {
        self.session.close().await;
    }
}

impl std::fmt::Debug for McpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpClient")
            .field("server", &self.session.settings.name)
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

/// What a call with these arguments is about. One that was left out would make calls about different things the same.
fn subject_of(subject: &Template, args: &Json) -> Result<String, ToolError> {
    let view = args.view();
    if let Some(missing) = subject.arguments().find(|name| view.get(name).is_none()) {
        return Err(ToolError::bad_args(format!(
            "`{missing}` is missing, which says what the call is about"
        )));
    }
    let filled = subject.fill(args);
    filled.map_err(|error| ToolError::bad_args(error.to_string()))
}

fn description(tool: &Tool) -> String {
    let description = tool.description.as_deref();
    let title = tool.title.as_deref();
    description
        .or(title)
        .unwrap_or("The server does not say what it does.")
        .to_owned()
}
