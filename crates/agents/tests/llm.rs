//! The message agent on a real language model that has no tool calls of its own: every call it makes is one the
//! gateway takes, and the run ends with a reason. What the model decides is of no interest.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "../../models/tests/llm_server/mod.rs"]
mod llm_server;

use llm_server::LlmServer;
use paraph_agents::{Terms, react};
use paraph_gateway::{Gateway, Limits, MemoryStore, Policy};
use paraph_models::ToolMode;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct City {
    /// The city's name.
    #[schemars(length(max = 30))]
    city: String,
}

#[tokio::test]
async fn a_model_without_tool_calls_drives_the_loop() {
    let Some(server) = LlmServer::start() else {
        return;
    };
    let gateway = Gateway::builder(MemoryStore::shared())
        .read(
            "get_weather",
            "Tells the weather of a city.",
            async |city: City| Ok(format!("{}: 18 °C, sunny", city.city)),
        )
        .policy(Policy::new().allow(["get_weather"]))
        .build()
        .unwrap();
    let agent = react("weather", "You tell people the weather.", gateway).unwrap();
    let terms = Terms {
        limits: Limits {
            steps: 3,
            seconds: 120,
            ..Limits::default()
        },
        ..Terms::new(server.model(ToolMode::Schema), "paris")
    };
    let run = agent
        .start("What is the weather in Paris?", &terms)
        .await
        .unwrap();
    let result = run.result().await;
    // It answered, or went on calling until it was stopped; nothing it wrote was no step.
    let reason = result.stop().to_string();
    assert!(
        ["success", "max_steps", "loop_detected"].contains(&reason.as_str()),
        "{reason}"
    );
    assert_eq!(
        reason == "success",
        result.answer().is_some_and(|answer| !answer.is_empty())
    );
    for row in result.trace() {
        assert_eq!(row.tool, "get_weather");
        // The gateway found nothing wrong with a call but that it came again.
        let stopped = row.stop_reason.as_deref();
        assert!(row.ok || stopped == Some("loop_detected"), "{row:?}");
    }
}
