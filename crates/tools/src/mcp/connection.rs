//! One connection to a server: how it is made, what is asked over it, how it ends.
//!
//! Called by `session.rs`, which makes a new one when this one is gone. The SDK speaks the protocol; this module
//! bounds what it does in time, size and number, and turns its errors into ours, without addresses or secrets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use paraph_gateway::Progress;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
    ClientRequest, ErrorCode, Implementation, JsonObject, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerNotification, ServerResult,
    SubscriptionFilter, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
    PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use secrecy::ExposeSecret;
use serde_json::json;

use super::process::Process;
use super::settings::{McpProtocol, McpServer};
use crate::error::Error;
use crate::outbound::Outbound;
use crate::said::short;
use crate::setting::Known;

/// The largest message that is read, in bytes. A larger one is dropped, and its call runs out of time.
const MAX_MESSAGE: usize = 64 << 20;

/// How many tools a server may have, and in how many pages it may list them.
const MAX_TOOLS: usize = 512;
const MAX_PAGES: usize = 64;

/// How long a notice may take to leave.
const NOTICE: Duration = Duration::from_secs(5);

/// A live connection.
pub(super) struct Connection {
    service: Option<RunningService<RoleClient, Listening>>,
    process: Option<Process>,
    listening: Listening,
    server: String,
    known: Known,
}

/// What a server tells without being asked.
#[derive(Clone)]
pub(super) struct Listening {
    /// Whether the tools may have changed since they were listed.
    changed: Arc<AtomicBool>,
    /// Calls under way, by their tokens.
    calls: Arc<Mutex<HashMap<ProgressToken, Progress>>>,
}

impl ClientHandler for Listening {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::SeqCst);
    }

    async fn on_progress(
        &self,
        said: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let call = {
            let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(&said.progress_token).cloned()
        };
        // Progress of a call that is over, or was never made, is nobody's.
        if let Some(call) = call {
            call.report(json!({
                "progress": said.progress, "total": said.total, "message": said.message.as_deref().map(short),
            }));
        }
    }

    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("paraph", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

impl Connection {
    /// Starts or reaches the server and settles on a protocol.
    pub(super) async fn open(
        outbound: &Outbound,
        settings: &McpServer,
        known: &Known,
    ) -> Result<Connection, Error> {
        let limit = settings.start_limit();
        let listening = Listening {
            changed: Arc::default(),
            calls: Arc::default(),
        };
        let mut connection = Connection {
            service: None,
            process: None,
            listening,
            server: settings.name.clone(),
            known: known.clone(),
        };
        let began = tokio::time::timeout(limit, connection.begin(outbound, settings)).await;
        match began {
            Ok(Ok(())) => Ok(connection),
            Ok(Err(error)) => {
                connection.close().await;
                Err(error)
            }
            Err(_) => {
                let error = connection.timeout(limit);
                connection.close().await;
                Err(error)
            }
        }
    }

    async fn begin(&mut self, outbound: &Outbound, settings: &McpServer) -> Result<(), Error> {
        let lifecycle = lifecycle_of(settings.protocol);
        let first = self.shake_hands(outbound, settings, lifecycle).await;
        let Err(error) = first else {
            return Ok(());
        };
        if settings.protocol != McpProtocol::Auto {
            return Err(error);
        }
        // Some older servers go away at a question they do not know, instead of saying so.
        if let Some(process) = self.process.take() {
            process.end().await;
        }
        let older = lifecycle_of(McpProtocol::V2025);
        self.shake_hands(outbound, settings, older)
            .await
            .map_err(|_| error)
    }

    async fn shake_hands(
        &mut self,
        outbound: &Outbound,
        settings: &McpServer,
        lifecycle: ClientLifecycleMode,
    ) -> Result<(), Error> {
        let handler = self.listening.clone();
        let service = match &settings.url {
            Some(url) => {
                let transport = self.over_http(outbound, settings, url)?;
                handler.serve_with_lifecycle(transport, lifecycle).await
            }
            None => {
                let started = Process::start(settings, &self.known);
                let (process, stdout, stdin) = started.map_err(|why| self.problem(&why))?;
                self.process = Some(process);
                let transport = AsyncRwTransport::<RoleClient, _, _>::new(stdout, stdin)
                    .with_max_line_length(MAX_MESSAGE);
                handler.serve_with_lifecycle(transport, lifecycle).await
            }
        };
        let service = service.map_err(|error| self.not_begun(&error))?;
        self.subscribe(service.peer());
        self.service = Some(service);
        Ok(())
    }

    /// Over HTTP through the guard's client for configured servers: it follows no redirect.
    fn over_http(
        &self,
        outbound: &Outbound,
        settings: &McpServer,
        url: &str,
    ) -> Result<StreamableHttpClientTransport<reqwest::Client>, Error> {
        let base = settings.base(url)?;
        let mut headers = HashMap::new();
        for (name, setting) in &settings.headers {
            let unfit = || {
                self.problem(&format!(
                    "the header `{name}` has a value that no header can carry"
                ))
            };
            let name = HeaderName::try_from(name.as_str()).map_err(|_| unfit())?;
            let value = HeaderValue::from_str(self.known.value(setting).expose_secret());
            let mut value = value.map_err(|_| unfit())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let mut config = StreamableHttpClientTransportConfig::with_uri(base.whole().to_owned());
        config.custom_headers = headers;
        config.max_json_response_size = MAX_MESSAGE;
        config.max_sse_event_size = MAX_MESSAGE;
        let mut retry = ExponentialBackoff::default();
        retry.max_times = Some(5);
        retry.max_delay = Some(Duration::from_secs(10));
        config.retry_config = Arc::new(retry);
        Ok(StreamableHttpClientTransport::with_client(
            outbound.streaming(),
            config,
        ))
    }

    /// Without a session a server tells of changes only to who asks to be told.
    fn subscribe(&self, peer: &Peer<RoleClient>) {
        let Some(info) = peer.peer_info() else {
            return;
        };
        let tells = info
            .capabilities
            .tools
            .as_ref()
            .and_then(|tools| tools.list_changed);
        if info.protocol_version.has_initialize() || tells != Some(true) {
            return;
        }
        let (peer, changed) = (peer.clone(), Arc::clone(&self.listening.changed));
        tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut subscription) = peer.listen(filter).await else {
                return;
            };
            // What changed before the server began to tell was told to nobody.
            changed.store(true, Ordering::SeqCst);
            while let Ok(Some(notification)) = subscription.next().await {
                if matches!(
                    notification,
                    ServerNotification::ToolListChangedNotification(_)
                ) {
                    changed.store(true, Ordering::SeqCst);
                }
            }
            // From here on nobody tells: what is listed next must not be taken for granted.
            changed.store(true, Ordering::SeqCst);
        });
    }

    /// The protocol that both sides settled on.
    pub(super) fn protocol(&self) -> Option<String> {
        let info = self.service.as_ref()?.peer().peer_info()?;
        Some(info.protocol_version.as_str().to_owned())
    }

    pub(super) fn is_open(&self) -> bool {
        let service = self.service.as_ref();
        service.is_some_and(|service| !service.is_closed() && !service.peer().is_transport_closed())
    }

    /// Whether the tools may have changed; asking takes the sign down.
    pub(super) fn take_changed(&self) -> bool {
        self.listening.changed.swap(false, Ordering::SeqCst)
    }

    /// Puts the sign up again, for whoever could not look.
    pub(super) fn set_changed(&self) {
        self.listening.changed.store(true, Ordering::SeqCst);
    }

    /// All tools, page by page.
    pub(super) async fn list(&self, limit: Duration) -> Result<Vec<Tool>, Error> {
        let whole = tokio::time::timeout(limit, self.list_pages()).await;
        whole.unwrap_or_else(|_| Err(self.timeout(limit)))
    }

    async fn list_pages(&self) -> Result<Vec<Tool>, Error> {
        let peer = self.peer()?;
        let mut tools: Vec<Tool> = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_tools(Some(params)).await;
            let page = page.map_err(|error| self.failed(&error))?;
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                return Err(self.problem(&format!("it has more than {MAX_TOOLS} tools")));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(self.problem(&format!(
            "it lists its tools in more than {MAX_PAGES} pages"
        )))
    }

    /// One call. Dropping it, or running out of time, tells the server that its answer is not waited for.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: &Progress,
        limit: Duration,
    ) -> Result<CallToolResult, Error> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.peer()?;
        let sent = async {
            let options = PeerRequestOptions::no_options();
            let handle = peer.send_cancellable_request(request, options).await;
            let mut flight = Flight::new(handle?, &self.listening, progress);
            flight.landed().await
        };
        let answered = tokio::time::timeout(limit, sent).await;
        match answered {
            Err(_) => Err(self.timeout(limit)),
            Ok(Err(error)) => Err(self.failed(&error)),
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
            Ok(Ok(ServerResult::EmptyResult(_))) => Ok(CallToolResult::success(Vec::new())),
            Ok(Ok(ServerResult::InputRequiredResult(_))) => Err(self.problem(
                "it asks a person for something before it goes on, and there is nobody to ask",
            )),
            Ok(Ok(_)) => Err(self.problem("it answered something else than a result")),
        }
    }

    /// Ends the connection, and the process if there is one.
    pub(super) async fn close(mut self) {
        if let Some(mut service) = self.service.take() {
            // A service that does not end in time is dropped, which ends it in the background.
            let _ = service.close_with_timeout(NOTICE).await;
        }
        if let Some(process) = self.process.take() {
            process.end().await;
        }
    }

    fn peer(&self) -> Result<&Peer<RoleClient>, Error> {
        let service = self.service.as_ref();
        let peer = service.map(RunningService::peer);
        peer.ok_or_else(|| self.problem("it is not connected"))
    }

    pub(super) fn problem(&self, why: &str) -> Error {
        Error::Server {
            server: self.server.clone(),
            problem: self.known.hide(why),
        }
    }

    fn timeout(&self, after: Duration) -> Error {
        Error::Timeout {
            host: format!("the MCP server `{}`", self.server),
            after,
        }
    }

    fn failed(&self, error: &ServiceError) -> Error {
        match error {
            ServiceError::McpError(error) if is_not_taken(error.code) => Error::NotTaken {
                server: self.server.clone(),
                problem: self.known.hide(&short(&error.message)),
            },
            ServiceError::McpError(error) => self.problem(&short(&error.message)),
            ServiceError::TransportClosed => self.gone("it ended"),
            ServiceError::TransportSend(error) => {
                self.gone(&format!("it is not reached ({})", innermost(&*error.error)))
            }
            other => self.problem(&short(&other.to_string())),
        }
    }

    fn not_begun(&self, error: &ClientInitializeError) -> Error {
        match error {
            ClientInitializeError::JsonRpcError(error) => self.problem(&short(&error.message)),
            ClientInitializeError::ConnectionClosed(_) => self.gone("it ended before it was ready"),
            ClientInitializeError::TransportError { error, .. } => {
                self.gone(&format!("it is not reached ({})", innermost(&*error.error)))
            }
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                self.not_begun(fallback)
            }
            other => self.problem(&short(&other.to_string())),
        }
    }

    /// With the last words of its standard error, where there are some.
    fn gone(&self, what: &str) -> Error {
        let said = self.process.as_ref().map(Process::said).unwrap_or_default();
        match said.as_str() {
            "" => self.problem(what),
            said => self.problem(&format!("{what}; the last it said: {said}")),
        }
    }
}

impl Drop for Connection {
    /// Whoever drops a connection instead of closing it cannot wait; the runtime can.
    fn drop(&mut self) {
        let (service, process) = (self.service.take(), self.process.take());
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && (service.is_some() || process.is_some())
        {
            runtime.spawn(async move {
                if let Some(mut service) = service {
                    let _ = service.close_with_timeout(NOTICE).await;
                }
                if let Some(process) = process {
                    process.end().await;
                }
            });
        }
    }
}

/// A call that was sent and not answered yet.
struct Flight<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    listening: &'a Listening,
    token: ProgressToken,
}

impl<'a> Flight<'a> {
    fn new(
        handle: RequestHandle<RoleClient>,
        listening: &'a Listening,
        progress: &Progress,
    ) -> Self {
        let token = handle.progress_token.clone();
        let mut calls = listening
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        calls.insert(token.clone(), progress.clone());
        drop(calls);
        Flight {
            handle: Some(handle),
            listening,
            token,
        }
    }

    async fn landed(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.handle else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await;
        // Answered: nothing is left to cancel.
        self.handle = None;
        answer.map_err(|_| ServiceError::TransportClosed)?
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut calls = self
            .listening
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.token);
        drop(calls);
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let reason = Some("the answer is not waited for any more".to_owned());
                let _ = tokio::time::timeout(NOTICE, handle.cancel(reason)).await;
            });
        }
    }
}

/// Whether an error of the protocol says that a request was not carried out at all: it could not be read, is of a method
/// or of a form that the server does not know. An error inside of the server says nothing of the kind.
fn is_not_taken(code: ErrorCode) -> bool {
    [
        ErrorCode::PARSE_ERROR,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::INVALID_PARAMS,
    ]
    .contains(&code)
}

fn lifecycle_of(protocol: McpProtocol) -> ClientLifecycleMode {
    match protocol {
        McpProtocol::V2025 => ClientLifecycleMode::Initialize,
        McpProtocol::V2026 => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        McpProtocol::Auto => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    }
}

/// The innermost error in one short line: the outer ones repeat addresses.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    short(&cause.to_string())
}
