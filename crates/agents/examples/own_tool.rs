//! A tool of your own behind the gateway, and an agent that uses it.

use paraph_agents::{Terms, react};
use paraph_gateway::{Gateway, MemoryStore, Policy, ToolError};
use paraph_models::ScriptedModel;
use std::sync::Arc;

/// Its schema is what the model sees, and what arguments are checked against.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
}

async fn track(order: Order) -> Result<String, ToolError> {
    Ok(format!("order {} is out for delivery", order.number))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gateway = Gateway::builder(MemoryStore::shared())
        .read("track_order", "Tells where an order is", track)
        .policy(Policy::new().allow(["track_order"]))
        .build()?;
    // A script stands in for a model here; `init_chat_model` makes a real one.
    let script = r#"{"tool_calls":[{"name":"track_order","arguments":{"number":7}}]}
        {"content":"Order 7 is out for delivery."}"#;
    let model = ScriptedModel::parse(script, "orders.jsonl")?;
    let agent = react("orders", "You answer questions about orders.", gateway)?;
    let terms = Terms::new(Arc::new(model), "case-1");
    let result = agent
        .start("Where is order 7?", &terms)
        .await?
        .result()
        .await;
    println!("{}", result.answer().unwrap_or("no answer"));
    Ok(())
}
