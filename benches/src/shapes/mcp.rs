//! `mcp_N`: N calls of a tool of an MCP server over standard input and output, one after the other, through the
//! gateway as an agent makes them: judged, checked, counted and recorded.
//!
//! The floor writes the same requests to the same server by hand and reads the answers as JSON.

use std::process::Stdio;
use std::time::Instant;

use futures::future::BoxFuture;
use paraph_gateway::{
    Gateway, Level, Limits, LoopRule, MemoryStore, Policy, Reply, Scope, Session, ToolCall,
};
use paraph_tools::{McpClient, McpOptions, McpProtocol, McpServer, Outbound, OutboundSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;

use crate::child::beside;
use crate::mcp_server::{MCP_SERVER, PROTOCOL, TOOL};
use crate::{Fault, Run, Setting, Shape};

/// The tool as agents know it.
const NAME: &str = "bench__echo";

struct Calls(usize);

pub(super) fn shape(calls: usize) -> Box<dyn Shape> {
    Box::new(Calls(calls))
}

impl Calls {
    async fn run_engine(&self) -> Result<Run, Fault> {
        let outbound = Outbound::new(&OutboundSettings::default())?;
        let server = server()?;
        // What looks up secrets may stay on one thread, and so does this.
        let client = tokio::task::block_in_place(|| {
            let connecting = McpClient::connect(&outbound, &server, McpOptions::default());
            Handle::current().block_on(connecting)
        })?;
        let mut gateway =
            Gateway::builder(MemoryStore::shared()).policy(Policy::new().allow([NAME]));
        for tool in client.tools() {
            gateway = gateway.dynamic(tool);
        }
        let gateway = gateway.build()?;
        let scope = Scope {
            loops: LoopRule::Off,
            ..Scope::new("bench", "mcp")
        };
        let session = gateway.session(scope, Limits::unlimited()).await?;
        // The first call compiles the tool's schema; both sides have had one before the clock runs.
        call(&session, "first").await?;
        let start = Instant::now();
        for at in 0..self.0 {
            call(&session, &format!("word {at}")).await?;
        }
        let run = Run::of(start.elapsed());
        client.close().await;
        Ok(run)
    }

    async fn run_floor(&self) -> Result<Run, Fault> {
        let mut server = ByHand::start().await?;
        server.call("first").await?;
        let start = Instant::now();
        for at in 0..self.0 {
            server.call(&format!("word {at}")).await?;
        }
        let run = Run::of(start.elapsed());
        server.end().await?;
        Ok(run)
    }
}

/// This program as a server.
fn server() -> Result<McpServer, Fault> {
    let program = beside("paraph-bench")?;
    Ok(McpServer {
        name: "bench".to_owned(),
        command: Some(program.display().to_string()),
        args: vec![MCP_SERVER.to_owned()],
        protocol: McpProtocol::V2025,
        levels: [("*".to_owned(), Level::Read)].into(),
        trust_first_sight: true,
        ..McpServer::default()
    })
}

/// One call by a model, under a key of its own.
async fn call(session: &Session, word: &str) -> Result<(), Fault> {
    let arguments = json!({"word": word}).to_string();
    let reply = session
        .call(word, &ToolCall::native(NAME, &arguments))
        .await?;
    let Reply::Observed(seen) = reply else {
        return Err("a call was not answered".into());
    };
    expect(serde_json::from_str(&seen.content)?, word)
}

fn expect(said: Value, word: &str) -> Result<(), Fault> {
    if said == word {
        return Ok(());
    }
    Err(format!("the tool said {said} and not {word}").into())
}

/// The same server, spoken to without a client.
struct ByHand {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl ByHand {
    async fn start() -> Result<ByHand, Fault> {
        let mut child = Command::new(beside("paraph-bench")?)
            .arg(MCP_SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".into());
        };
        let mut server = ByHand {
            child,
            input,
            output: BufReader::new(output).lines(),
            id: 0,
        };
        let own = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": own});
        server.ask("initialize", params).await?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        server.say(&ready).await?;
        Ok(server)
    }

    async fn call(&mut self, word: &str) -> Result<(), Fault> {
        let params = json!({"name": TOOL, "arguments": {"word": word}});
        let result = self.ask("tools/call", params).await?;
        expect(result["content"][0]["text"].clone(), word)
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Fault> {
        self.id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        self.say(&request).await?;
        let line = self.output.next_line().await?.ok_or("the server ended")?;
        let mut answer: Value = serde_json::from_str(&line)?;
        if answer["id"] != self.id {
            return Err(format!("this answers something else: {answer}").into());
        }
        Ok(answer["result"].take())
    }

    async fn say(&mut self, message: &Value) -> Result<(), Fault> {
        self.input
            .write_all(format!("{message}\n").as_bytes())
            .await?;
        Ok(())
    }

    /// The server ends when its input does.
    async fn end(mut self) -> Result<(), Fault> {
        drop(self.input);
        self.child.wait().await?;
        Ok(())
    }
}

impl Shape for Calls {
    fn name(&self) -> String {
        format!("mcp_{}", self.0)
    }

    fn node_runs(&self) -> usize {
        self.0
    }

    fn settings(&self) -> Vec<Setting> {
        let [none, ..] = Setting::QUICK;
        vec![none]
    }

    fn engine(&self, _: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_engine())
    }

    fn floor(&self, _: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_floor())
    }
}
