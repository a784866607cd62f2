//! `paraph-bench mcp-server`: an MCP server over standard input and output with one tool that says a word back.
//!
//! Started by the shape `mcp_N`, so that nothing has to be installed for it. It answers one line after the other and
//! does next to nothing in between: what is measured is who calls it.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use crate::Fault;

/// The argument that makes a server of `paraph-bench`.
pub const MCP_SERVER: &str = "mcp-server";
/// The protocol that it speaks.
pub(crate) const PROTOCOL: &str = "2025-11-25";
/// Its tool.
pub(crate) const TOOL: &str = "echo";

/// Serves until standard input ends.
///
/// # Errors
/// When a line is no JSON, or standard output is gone.
pub fn serve_mcp() -> Result<(), Fault> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        if let Some(answer) = answer(&asked) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// The answer to a request; nothing to a notification.
fn answer(asked: &Value) -> Option<Value> {
    let id = asked.get("id")?;
    let result = match asked["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": PROTOCOL, "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{
            "name": TOOL, "description": "Says a word back.",
            "inputSchema": {
                "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"],
            },
        }]}),
        "tools/call" => json!({
            "content": [{"type": "text", "text": asked["params"]["arguments"]["word"]}], "isError": false,
        }),
        method => {
            let why = format!("there is no `{method}`");
            return Some(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": why}}),
            );
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_answered_and_notifications_are_not() {
        let call = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"word": "yes"}},
        });
        let said = json!({
            "jsonrpc": "2.0", "id": 7,
            "result": {"content": [{"type": "text", "text": "yes"}], "isError": false},
        });
        assert_eq!(answer(&call), Some(said));
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(answer(&told), None);
    }
}
