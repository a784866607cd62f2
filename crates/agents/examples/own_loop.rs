//! The agent's loop by hand: a model, a tool from a function, and the two nodes between which it goes.

use paraph_agents::{MessagesState, TOOLS, tool_node, tools_condition};
use paraph_gateway::{Gateway, MemoryStore, Policy, tool};
use paraph_graph::{Ctx, END, Graph, Result, State, Update, with};
use paraph_models::{ChatModel, ChatRequest, Message, ScriptedModel};

/// Looks up the temperature outside, in degrees Celsius.
#[tool(timeout = "5s")]
fn temperature(
    /// The city, in English.
    city: String,
) -> f64 {
    15.5 + city.len() as f64
}

async fn think(
    model: &ScriptedModel,
    chat: &MessagesState,
    _: &Ctx,
) -> Result<Update<MessagesState>> {
    let said = chat.messages.iter().cloned();
    let reply = model.complete(&ChatRequest::new(said)).await?;
    Ok(MessagesState::update().messages([reply.message]))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let policy = Policy::new().allow(["temperature"]);
    let gateway = Gateway::builder(MemoryStore::shared()).tool(temperature {});
    let gateway = gateway.policy(policy).build()?;
    // A script stands in for a model here. A real one is given `gateway.catalogue()` as its tools.
    let script = r#"{"tool_calls":[{"name":"temperature","arguments":{"city":"Boston"}}]}
        {"content":"It is 21.5 degrees in Boston."}"#;
    let model = ScriptedModel::parse(script, "boston.jsonl")?;
    let graph = Graph::<MessagesState>::new("loop").node("think", with(model, think));
    let graph = graph.each(TOOLS, tool_node(gateway)).start("think");
    let graph = graph.edge(TOOLS, "think");
    let graph = graph.branch("think", tools_condition, [TOOLS.name(), END]);
    let graph = graph.build()?;
    let asked = MessagesState::update().messages([Message::human("How warm is it in Boston?")]);
    let chat = graph.invoke(asked).await?;
    for message in chat.messages.iter() {
        println!("{}: {}", message.kind(), message.text());
    }
    Ok(())
}
