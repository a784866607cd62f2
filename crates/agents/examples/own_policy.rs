//! A policy of your own: what an agent may call, and what it is told when it may not.

use paraph_gateway::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Path {
    path: String,
}

async fn read(file: Path) -> Result<String, ToolError> {
    Ok(format!("the content of {}", file.path))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gateway = Gateway::builder(MemoryStore::shared())
        .read("read_file", "Reads a file", read)
        .read("read_secret", "Reads a secret", read)
        // Deny beats allow, and what no rule names is denied.
        .policy(Policy::new().allow(["read_*"]).deny(["*_secret"]))
        .build()?;
    let limits = Limits {
        tool_calls: 3,
        ..Limits::default()
    };
    let scope = Scope::new("reader", "case-1");
    let session = gateway.session(scope, limits).await?;
    for tool in ["read_file", "read_secret", "rm", "read_file"] {
        let call = ToolCall::new(tool, r#"{"path":"notes.txt"}"#)?;
        let key = format!("step-{}", session.records().len() + 1);
        match session.call(&key, &call).await {
            Ok(Reply::Observed(seen)) => println!("{tool}: {}", seen.text()),
            Ok(other) => println!("{tool}: {other:?}"),
            Err(stop) => println!("{tool}: the run ends with {stop}"),
        }
    }
    Ok(())
}
