//! The misbehaving MCP server beside this file, and how a test calls a tool of a server.
//!
//! Used by the tests of MCP. A machine without Python 3 skips them and says so, or fails them where
//! `PARAPH_REQUIRE_SERVICES=1`.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part of it"
)]

use futures::future::BoxFuture;
use paraph_gateway::{
    DynTool, Gateway, Injections, Level, Limits, Listener, MemoryStore, Policy, ProgressReport,
    Reply, Scope, Session, ToolCall,
};
use paraph_tools::{McpClient, McpOptions, McpServer, Outbound, OutboundSettings};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A program by its name in `PATH`, or nothing and a word on it.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file());
    match found {
        Some(found) => Some(found),
        None => {
            missing(&format!("no `{name}` in PATH"));
            None
        }
    }
}

/// Says that a test is skipped, or fails it where services are required.
pub fn missing(why: &str) {
    assert!(
        std::env::var_os("PARAPH_REQUIRE_SERVICES").is_none_or(|v| v != "1"),
        "required here: {why}"
    );
    eprintln!("SKIPPED, nothing was shown: {why}");
}

/// A rude server: how it is, and the file it may use. Its tools read, and are trusted at first sight.
pub fn server(manner: &str, file: &Path) -> Option<McpServer> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rude/rude_server.py");
    Some(McpServer {
        name: "rude".to_owned(),
        command: Some(program("python3")?.to_str().unwrap().to_owned()),
        args: vec![
            script.to_str().unwrap().to_owned(),
            manner.to_owned(),
            file.to_str().unwrap().to_owned(),
        ],
        levels: [("*".to_owned(), Level::Read)].into(),
        trust_first_sight: true,
        ..McpServer::default()
    })
}

pub fn outbound() -> Outbound {
    Outbound::new(&OutboundSettings::default()).unwrap()
}

pub async fn connect(server: &McpServer) -> McpClient {
    McpClient::connect(&outbound(), server, McpOptions::default())
        .await
        .unwrap()
}

pub async fn refused(server: &McpServer) -> String {
    let connected = McpClient::connect(&outbound(), server, McpOptions::default()).await;
    connected.unwrap_err().to_string()
}

/// A gateway of these tools with one run, in which a model calls them.
pub struct Run {
    _gateway: Gateway,
    session: Session,
    calls: std::sync::atomic::AtomicUsize,
}

impl Run {
    pub async fn of(tools: Vec<DynTool>) -> Run {
        let (asked, allowed): (Vec<&DynTool>, Vec<&DynTool>) =
            tools.iter().partition(|tool| tool.level.is_effect());
        let mut policy = Policy::new().allow(allowed.iter().map(|tool| tool.name.clone()));
        for tool in asked {
            policy = policy.ask(tool.name.clone(), paraph_gateway::Ask::default());
        }
        let mut builder = Gateway::builder(MemoryStore::shared()).policy(policy);
        for tool in tools {
            builder = builder.dynamic(tool);
        }
        let gateway = builder.build().unwrap();
        let limits = Limits {
            tool_calls: 10_000,
            seconds: 600,
            ..Limits::default()
        };
        let mut scope = Scope::new("tester", "one");
        scope.loops = paraph_gateway::LoopRule::Off;
        let session = gateway.session(scope, limits).await.unwrap();
        Run {
            _gateway: gateway,
            session,
            calls: Default::default(),
        }
    }

    /// What the model reads.
    pub async fn call(&self, tool: &str, args: Value) -> Value {
        self.call_told(tool, args, &Told::default()).await
    }

    /// The same, with somebody who is told of progress.
    pub async fn call_told(&self, tool: &str, args: Value, told: &Told) -> Value {
        let n = self.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let call = ToolCall::native(tool, &args.to_string());
        let with = Injections::new().listener(told);
        let replied = self.session.call_with(&n.to_string(), &call, &with).await;
        match replied.unwrap() {
            Reply::Observed(seen) => serde_json::from_str(&seen.content).unwrap(),
            Reply::Waiting(waiting) => serde_json::json!({ "waits": waiting.tool }),
            other => panic!("{tool} was not answered: {other:?}"),
        }
    }
}

/// Notes what it is told of progress, as JSON.
#[derive(Default)]
pub struct Told(Mutex<Vec<(String, Value)>>);

impl Told {
    /// Each report with the name of its tool.
    pub fn reports(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }
}

impl Listener for Told {
    fn progress(&self, report: ProgressReport) -> BoxFuture<'_, ()> {
        let json = serde_json::from_str(&report.json).unwrap();
        self.0.lock().unwrap().push((report.tool, json));
        Box::pin(std::future::ready(()))
    }
}

/// The message of a failure that a model reads.
pub fn message(read: &Value) -> &str {
    read["message"]
        .as_str()
        .unwrap_or_else(|| panic!("no failure: {read}"))
}

/// Whether a process is there, zombies not counted.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Waits until none of these processes is there; says whether that came to be within ten seconds.
pub async fn all_gone(pids: &[u32]) -> bool {
    for _ in 0..1_000 {
        if !pids.iter().any(|pid| is_running(*pid)) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}
