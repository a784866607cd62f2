//! Functions as tools: what the model sees of them, what reaches them, and what does not.

#![allow(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends the test"
)]

use futures::future::BoxFuture;
use paraph_gateway::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A place on the map.
#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Place {
    /// Degrees north.
    north: f64,
}

#[derive(serde::Serialize)]
struct Weather {
    city: String,
    days: u8,
    units: String,
    near: Option<f64>,
}

/// Looks the weather up.
///
/// Not for the past.
#[tool(timeout = "5s", output_cap = 300)]
async fn forecast(
    /// The city's name, without the country.
    city: String,
    /// How many days ahead.
    #[default(1)]
    #[schemars(range(min = 1, max = 7))]
    days: u8,
    #[default("celsius")] units: String,
    near: Option<Place>,
) -> Weather {
    Weather {
        city,
        days,
        units,
        near: near.map(|place| place.north),
    }
}

/// Adds two numbers.
#[tool(name = "sum")]
fn add(a: i64, b: i64) -> Result<i64, std::num::TryFromIntError> {
    Ok(i32::try_from(a + b)?.into())
}

/// Says which type is the model's.
#[tool(about = "Says it back", level = "read")]
async fn echo(r#type: String) -> String {
    r#type
}

struct Customer(u32);

#[derive(Debug)]
struct Client {
    calls: AtomicUsize,
}

/// Whose balance it is.
#[tool]
async fn balance(
    #[inject] customer: &Customer,
    /// In which currency.
    currency: String,
    #[inject] client: &Client,
    #[inject] discount: Option<&f64>,
    #[inject] context: &ToolContext<'_>,
) -> Result<String, ToolError> {
    client.calls.fetch_add(1, Ordering::SeqCst);
    let (key, customer) = (context.key(), customer.0);
    Ok(format!("{customer} has 3 {currency} ({key}, {discount:?})"))
}

fn gateway() -> Gateway {
    builder().build().unwrap()
}

fn builder() -> Builder {
    Gateway::builder(MemoryStore::shared())
        .tool(forecast {})
        .tool(add {})
        .tool(echo {})
        .tool(balance {})
        .policy(Policy::new().allow(["*"]))
}

async fn session(gateway: &Gateway) -> Session {
    let scope = Scope::new("agent", "thread");
    gateway.session(scope, Limits::unlimited()).await.unwrap()
}

fn text(reply: Result<Reply, Stop>) -> String {
    match reply {
        Ok(Reply::Observed(seen)) => seen.text(),
        other => panic!("no observation: {other:?}"),
    }
}

#[test]
fn the_model_sees_docs_types_defaults_and_bounds() {
    let gateway = gateway();
    let [forecast, sum, echo, balance] = gateway.catalogue() else {
        panic!("four tools")
    };
    assert_eq!(
        (forecast.name.as_str(), forecast.about.as_str()),
        ("forecast", "Looks the weather up.\n\nNot for the past.")
    );
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "forecast",
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city's name, without the country."},
            "days": {
                "type": "integer", "format": "uint8", "minimum": 1, "maximum": 7, "default": 1,
                "description": "How many days ahead.",
            },
            "units": {"type": "string", "default": "celsius"},
            "near": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
        },
        "required": ["city"],
        "additionalProperties": false,
        "$defs": {
            "Place": {
                "type": "object",
                "description": "A place on the map.",
                "properties": {"north": {"type": "number", "format": "double", "description": "Degrees north."}},
                "required": ["north"],
            },
        },
    });
    assert_eq!(forecast.schema, schema);
    assert_eq!((sum.name.as_str(), sum.level), ("sum", Level::Read));
    assert_eq!(
        (echo.name.as_str(), echo.about.as_str()),
        ("echo", "Says it back")
    );
    assert_eq!(echo.schema["required"], json!(["type"]));
    // Nothing that is injected is in there.
    let properties = balance.schema["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["currency"]);
}

#[test]
fn a_tool_has_the_limits_that_its_attribute_says() {
    assert_eq!(forecast {}.timeout(), Duration::from_secs(5));
    assert_eq!(forecast {}.output_cap(), 300);
    assert_eq!(add {}.timeout(), DEFAULT_TIMEOUT);
    assert_eq!(add {}.output_cap(), DEFAULT_OUTPUT_CAP);
}

#[tokio::test]
async fn arguments_reach_the_function_and_its_result_the_model() {
    let gateway = gateway();
    let session = session(&gateway).await;
    let table = [
        (
            "forecast",
            r#"{"city":"Oslo"}"#,
            r#"{"city":"Oslo","days":1,"units":"celsius","near":null}"#,
        ),
        (
            "forecast",
            r#"{"city":"Rome","days":7.0,"units":"kelvin","near":{"north":41.9}}"#,
            r#"{"city":"Rome","days":7,"units":"kelvin","near":41.9}"#,
        ),
        ("sum", r#"{"a":2,"b":3}"#, "5"),
        ("echo", r#"{"type":"x"}"#, "x"),
        (
            "sum",
            r#"{"a":2147483647,"b":1}"#,
            r#"{"error":"tool_error:sum","message":"`sum` failed: out of range integral type conversion attempted"}"#,
        ),
    ];
    for (n, (name, arguments, expected)) in table.into_iter().enumerate() {
        let call = ToolCall::native(name, arguments);
        assert_eq!(text(session.call(&n.to_string(), &call).await), expected);
    }
    // The function itself stays a function.
    assert_eq!(add(2, 3).unwrap(), 5);
    assert_eq!(echo("y".to_owned()).await, "y");
}

#[tokio::test]
async fn what_is_injected_comes_from_the_program_and_the_call_before_the_gateway() {
    let client = Client {
        calls: AtomicUsize::new(0),
    };
    let gateway = builder()
        .inject(client)
        .inject(Customer(1))
        .build()
        .unwrap();
    let session = session(&gateway).await;
    let call =
        |currency: &str| ToolCall::native("balance", &json!({ "currency": currency }).to_string());
    let seven = Customer(7);
    let with = Injections::new().with(&seven).with(&0.5_f64);
    assert_eq!(
        text(session.call_with("k1", &call("EUR"), &with).await),
        "7 has 3 EUR (k1, Some(0.5))"
    );
    assert_eq!(
        text(session.call("k2", &call("USD")).await),
        "1 has 3 USD (k2, None)"
    );
}

#[tokio::test]
async fn the_model_cannot_forge_what_is_injected() {
    let gateway = builder()
        .inject(Client {
            calls: AtomicUsize::new(0),
        })
        .build()
        .unwrap();
    let session = session(&gateway).await;
    let seven = Customer(7);
    let with = Injections::new().with(&seven);
    for (n, forged) in ["customer", "client", "context", "discount", "__parameter_0"]
        .into_iter()
        .enumerate()
    {
        let arguments = json!({"currency": "EUR", forged: 900}).to_string();
        let call = ToolCall::native("balance", &arguments);
        let reply = session.call_with(&n.to_string(), &call, &with).await;
        let seen: Value = serde_json::from_str(&text(reply)).unwrap();
        assert_eq!(seen["error"], "tool_bad_args:balance");
        let message = seen["message"].as_str().unwrap();
        assert_eq!(
            message,
            format!(
                "The arguments do not fit `balance`: there is no argument `{forged}`; there are `currency`"
            )
        );
    }
    // None of them ran.
    assert!(session.records().iter().all(|record| !record.ok()));
}

#[tokio::test]
async fn what_nobody_injected_is_a_mistake_of_the_program_and_no_observation() {
    let gateway = gateway();
    let session = session(&gateway).await;
    let call = ToolCall::native("balance", r#"{"currency":"EUR"}"#);
    let stop = session.call("k", &call).await.unwrap_err();
    let Stop::Internal(why) = &stop else {
        panic!("{stop:?}")
    };
    assert_eq!(
        why,
        "`balance` cannot run: it wants a `function::Customer`, which nobody injected"
    );
    // The call is open: once the program gives it, it runs under its key, counted once.
    let (seven, client) = (
        Customer(7),
        Client {
            calls: AtomicUsize::new(0),
        },
    );
    let with = Injections::new().with(&seven).with(&client);
    assert_eq!(
        text(session.call_with("k", &call, &with).await),
        "7 has 3 EUR (k, None)"
    );
    assert_eq!(session.budget().used().tool_calls, 1);
}

/// Reads a table.
#[tool]
async fn read_table(rows: usize) -> Result<ToolOutput, ToolError> {
    let all: Vec<usize> = (0..rows).collect();
    ToolOutput::text(&format!("{rows} rows"))
        .artifact(&all)?
        .command(ToolCommand::update(&json!({ "rows": rows }))?.goto("report"))
}

#[tokio::test]
async fn an_artifact_and_a_command_travel_beside_the_text_and_are_recorded_with_it() {
    let store = MemoryStore::shared();
    let build = || {
        Gateway::builder(store.clone())
            .tool(read_table {})
            .policy(Policy::new().allow(["read_table"]))
            .build()
            .unwrap()
    };
    let call = ToolCall::native("read_table", r#"{"rows":2}"#);
    let first = session(&build()).await.call("k", &call).await.unwrap();
    let Reply::Observed(seen) = &first else {
        panic!("{first:?}")
    };
    assert_eq!(seen.content, "\"2 rows\"");
    assert_eq!(seen.artifact.as_deref(), Some("[0,1]"));
    let command = ToolCommand {
        update: Some(r#"{"rows":2}"#.to_owned()),
        goto: vec!["report".to_owned()],
    };
    assert_eq!(seen.command, Some(command));
    // Another process, the same records: it is given all of it again, and nothing runs.
    let again = session(&build()).await;
    assert_eq!(again.call("k", &call).await.unwrap(), first);
    let written = serde_json::to_string(&again.records()[0]).unwrap();
    let read: CallRecord = serde_json::from_str(&written).unwrap();
    assert_eq!(read, again.records()[0]);
}

#[test]
fn what_goes_beside_the_text_is_bounded() {
    let large = "x".repeat(5 << 20);
    let error = ToolOutput::text("").artifact(&large).unwrap_err();
    assert_eq!(
        error.text,
        "the artifact cannot be kept: the text is too large at byte 0"
    );
    let mut deep = json!(1);
    for _ in 0..80 {
        deep = json!([deep]);
    }
    let commanded = |update: Value| {
        let command = ToolCommand::update(&update).unwrap();
        ToolOutput::text("").command(command).unwrap_err().text
    };
    assert!(commanded(json!({ "deep": deep })).starts_with("the update cannot be kept: "));
    assert_eq!(
        commanded(json!([1])),
        "the update cannot be kept: it is no object"
    );
    let many = (0..101).fold(ToolCommand::default(), |all, n| all.goto(n.to_string()));
    let error = ToolOutput::text("").command(many).unwrap_err();
    assert_eq!(
        error.text,
        "a command has up to 100 targets, each with a name"
    );
}

/// Notes what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<ProgressReport>>);

impl Listener for Told {
    fn progress(&self, report: ProgressReport) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(report);
        Box::pin(std::future::ready(()))
    }
}

/// Counts and says so.
#[tool]
async fn count(to: u32, #[inject] context: &ToolContext<'_>) -> u32 {
    for n in 1..=to {
        context.report(json!({"done": n, "password": "hunter2"}));
        tokio::task::yield_now().await;
    }
    to
}

/// Counts on another thread.
#[tool(blocking)]
fn count_blocking(to: u32, #[inject] progress: Progress, #[inject] factor: Arc<u32>) -> u32 {
    for n in 1..=to {
        progress.report(n);
    }
    to * *factor
}

/// Breaks off on another thread.
#[tool(blocking)]
fn panics() {
    panic!("a secret")
}

fn counting() -> Gateway {
    Gateway::builder(MemoryStore::shared())
        .tool(count {})
        .tool(count_blocking {})
        .tool(panics {})
        .inject(3_u32)
        .policy(Policy::new().allow(["*"]))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_tool_says_how_far_it_is_without_secrets() {
    let gateway = counting();
    let session = session(&gateway).await;
    let told = Told::default();
    let with = Injections::new().listener(&told);
    let call = ToolCall::native("count", r#"{"to":3}"#);
    assert_eq!(text(session.call_with("k", &call, &with).await), "3");
    let report = |n: u32| ProgressReport {
        tool: "count".to_owned(),
        json: format!(r#"{{"done":{n},"password":"[redacted]"}}"#),
        left_out: 0,
    };
    assert_eq!(*told.0.lock().unwrap(), [1, 2, 3].map(report));
    // A recorded call says nothing again.
    session.call_with("k", &call, &with).await.unwrap();
    assert_eq!(told.0.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_blocking_function_runs_on_another_thread_and_reports_from_there() {
    let gateway = counting();
    let session = session(&gateway).await;
    let told = Told::default();
    let with = Injections::new().listener(&told);
    let call = ToolCall::native("count_blocking", r#"{"to":2}"#);
    assert_eq!(text(session.call_with("k", &call, &with).await), "6");
    let said: Vec<_> = told
        .0
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.json.clone())
        .collect();
    assert_eq!(said, ["1", "2"]);
    let call = ToolCall::native("panics", "{}");
    assert_eq!(
        text(session.call("p", &call).await),
        r#"{"error":"tool_error:panics","message":"`panics` failed: it broke off with an internal error"}"#
    );
}

#[tokio::test]
async fn a_tool_that_is_known_at_run_time_only_reports_too() {
    let tool = DynTool::with_progress("look", "Looks", json!({}), async |args, progress| {
        progress.report("half");
        Ok::<Json, ToolError>(args)
    });
    let gateway = Gateway::builder(MemoryStore::shared())
        .dynamic(tool)
        .policy(Policy::new().allow(["look"]))
        .build()
        .unwrap();
    let told = Told::default();
    let with = Injections::new().listener(&told);
    let call = ToolCall::native("look", r#"{"n":123456789012345678901234567890}"#);
    let reply = session(&gateway).await.call_with("k", &call, &with).await;
    assert_eq!(text(reply), r#"{"n":123456789012345678901234567890}"#);
    assert_eq!(told.0.lock().unwrap()[0].json, "\"half\"");
}

/// A listener that takes its time.
struct Slow;

impl Listener for Slow {
    fn progress(&self, _: ProgressReport) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_secs(60)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_takes_none_of_the_tool_s_time() {
    let gateway = counting();
    let session = session(&gateway).await;
    let with = Injections::new().listener(&Slow);
    let call = ToolCall::native("count", r#"{"to":3}"#);
    assert_eq!(text(session.call_with("k", &call, &with).await), "3");
    assert_eq!(session.records()[0].ms, 0);
}

/// Waits for a person.
#[tool]
async fn ask(#[inject] answer: Option<&bool>) -> Result<bool, ToolError> {
    answer.copied().ok_or_else(ToolError::unfinished)
}

#[tokio::test]
async fn a_tool_that_waits_leaves_its_call_open_and_runs_again_under_its_key() {
    for dialect in [Dialect::Native, Dialect::Strict] {
        let gateway = Gateway::builder(MemoryStore::shared())
            .tool(ask {})
            .policy(Policy::new().allow(["ask"]))
            .build()
            .unwrap();
        let scope = || Scope {
            dialect,
            ..Scope::new("agent", "thread")
        };
        let open = async || gateway.session(scope(), Limits::default()).await.unwrap();
        let call = ToolCall::native("ask", "{}");
        let session = open().await;
        for _ in 0..2 {
            assert_eq!(session.call("k", &call).await, Ok(Reply::Unfinished));
        }
        assert_eq!(session.records()[0].outcome, None);
        let again = open().await;
        let with = Injections::new().with(&true);
        assert_eq!(text(again.call_with("k", &call, &with).await), "true");
        // Once answered it has ended, whatever is injected now.
        let with = Injections::new().with(&false);
        assert_eq!(text(again.call_with("k", &call, &with).await), "true");
        assert_eq!(again.budget().used().tool_calls, 1);
    }
}
