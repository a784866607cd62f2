//! Canaries (T18): secrets in a tool's errors, arguments, results and panics, and where they must not turn up.
//!
//! A result is for the model and a record is the store's: these keep their texts. Whatever is told, logged, traced
//! or printed for debugging does not.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends the test"
)]

use paraph_gateway::*;
use serde_json::json;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span;

/// Tokens of the shapes that services give out. None is real.
const CANARIES: [&str; 4] = [
    "sk-canary0123456789abcdefghij",
    "ghp_canary0123456789abcdefghij",
    "AKIACANARY0123456789",
    "eyJjYW5hcnkiOjF9.eyJjYW5hcnkiOjF9.c2lnbmF0dXJl",
];

/// Everything that was traced, with all its fields.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<String>>);

impl Visit for &Traces {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut all = self.0.lock().unwrap();
        let _ = write!(all, " {field}={value:?}");
    }
}

impl tracing::Subscriber for Traces {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut &*self);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut &*self);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Args {
    token: String,
    #[serde(default)]
    count: u8,
}

fn gateway(store: Arc<dyn Store>) -> Gateway {
    Gateway::builder(store)
        .read("fails", "Fails", async |args: Args| {
            Err::<(), _>(ToolError::new(format!(
                "401 for {} (tried {})",
                args.token, args.count
            )))
        })
        .read("dislikes", "Does not like it", async |args: Args| {
            Err::<(), _>(ToolError::bad_args(format!("`{}` is no token", args.token)))
        })
        .read("answers", "Answers", async |args: Args| {
            Ok(json!({ "access_token": args.token, "said": args.token }))
        })
        .dynamic(DynTool::new(
            "panics",
            "Panics",
            json!({}),
            |args: Json| async move {
                std::panic::panic_any(args.to_string());
                #[expect(unreachable_code, reason = "it panics before it can answer")]
                Ok::<_, ToolError>("")
            },
        ))
        .policy(Policy::new().allow(["fails", "dislikes", "answers", "panics"]))
        .build()
        .unwrap()
}

fn assert_silent(what: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{what}: {text}");
    }
}

/// Each call of each tool, with each canary as a value, once more where the schema refuses it, and unreadable.
fn calls() -> Vec<ToolCall> {
    let mut calls = Vec::new();
    for (tool, canary) in ["fails", "dislikes", "answers", "panics", "denied"]
        .into_iter()
        .flat_map(|tool| CANARIES.map(|canary| (tool, canary)))
    {
        calls.push(ToolCall::native(
            tool,
            &json!({ "token": canary }).to_string(),
        ));
        calls.push(ToolCall::native(
            tool,
            &json!({ "token": "t", "count": canary }).to_string(),
        ));
        calls.push(ToolCall::native(
            tool,
            &json!({ "token": [canary] }).to_string(),
        ));
        calls.push(ToolCall::native(tool, &format!(r#"{{"token": "{canary}""#)));
    }
    calls
}

#[tokio::test]
async fn no_secret_of_a_call_is_told_traced_or_printed() {
    let traces = Traces::default();
    let _guard = tracing::subscriber::set_default(traces.clone());
    let gateway = gateway(MemoryStore::shared());
    let limits = Limits {
        tool_calls: 1000,
        ..Limits::default()
    };
    let scope = Scope::new("agent", "thread");
    let session = gateway.session(scope, limits).await.unwrap();
    let mut failures = 0;
    let mut answered = 0;
    for (n, call) in calls().iter().enumerate() {
        assert_silent("a call's Debug", &format!("{call:?}"));
        let reply = session.call(&n.to_string(), call).await;
        assert_silent("a reply's Debug", &format!("{reply:?}"));
        let Ok(Reply::Observed(seen)) = reply else {
            panic!("no observation of {}", call.name())
        };
        match &seen.failure {
            Some(failure) => {
                failures += 1;
                assert_silent("a failure's reason", &failure.to_string());
                assert_silent("a failure's words", &failure.tell());
                assert_silent("a saved failure", &serde_json::to_string(failure).unwrap());
                assert_silent("what the model reads of a failure", &seen.content);
            }
            None => answered += 1,
        }
        assert_silent("a trace row", &gateway.redactor().brief(call, 400));
    }
    let calls = session.records();
    assert_silent("the records' Debug", &format!("{calls:#?}"));
    // The records themselves have the arguments: what ran has to be known.
    assert!(
        calls
            .iter()
            .any(|record| record.arguments.contains(CANARIES[0]))
    );
    assert_eq!(
        (answered, failures),
        (CANARIES.len(), calls.len() - CANARIES.len())
    );
    let traced = traces.0.lock().unwrap();
    assert!(
        traced.contains("args_hash") && traced.contains("a tool panicked"),
        "{traced}"
    );
    assert_silent("the traces", &traced);
}
