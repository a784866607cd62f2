//! The weather agent both ways: the same results, whatever happens.

#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::rehearsal::{Limit, Question, read};
use super::*;
use crate::{AgentEventData, Rehearsal, RunResult};
use paraph_gateway::{LoopRule, Stop};
use paraph_graph::CancelReason;
use paraph_models::ScriptedModel;
use serde_json::{Value, json};
use std::sync::Arc;

fn agent() -> Agent {
    weather(&Stores::in_memory(), sample_tools(), &[], &[]).unwrap()
}

fn rehearsal() -> Terms {
    Terms {
        limits: limits(),
        ..Terms::new(Arc::new(Rehearsal::Weather), "trip")
    }
}

fn scripted(lines: &[Value]) -> Terms {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let model = ScriptedModel::parse(&lines.join("\n"), "script").unwrap();
    Terms {
        limits: limits(),
        ..Terms::new(Arc::new(model), "trip")
    }
}

fn call(id: &str, name: &str, args: Value) -> Value {
    json!({"id": id, "name": name, "arguments": args})
}

/// A result without what differs from run to run: the ids that are made for messages and calls.
fn plain(result: &RunResult) -> Value {
    let mut value = serde_json::to_value(result).unwrap();
    let mut ids = Vec::new();
    for message in value["messages"].as_array_mut().unwrap() {
        message.as_object_mut().unwrap().remove("id");
        for call in message
            .get_mut("tool_calls")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let id = call["id"].as_str().unwrap();
            // The script's own are short.
            if id.starts_with("call-") {
                ids.push(id.to_owned());
            }
        }
    }
    let mut text = value.to_string();
    for (n, id) in ids.iter().enumerate() {
        text = text.replace(id, &format!("call {n}"));
    }
    serde_json::from_str(&text).unwrap()
}

/// Runs a task both ways, with what `terms` makes for each, and shows that nothing differs.
async fn both(task: &str, terms: impl Fn() -> Terms) -> RunResult {
    let agent = agent();
    let graph = agent.start(task, &terms()).await.unwrap().result().await;
    let by_hand = weather_by_hand(&agent, task, &terms()).await.unwrap();
    let by_hand = by_hand.result().await;
    assert_eq!(plain(&graph), plain(&by_hand), "{task}");
    graph
}

#[tokio::test]
async fn the_rehearsal_compares_finds_nothing_and_says_so() {
    let table = [
        (
            "Tell me the first hotel you find in Boston if the temperature is lower than 30 degrees.",
            "The first hotel I found is Copper Lantern Hotel. There it is 21.4 °C in Boston, Massachusetts, United \
             States now, which is lower than 30.",
            2,
        ),
        (
            "A hotel in Dubai, if it is below 30 degrees?",
            "I would not send you to Dhow Harbour Rooms, the first hotel I found: it is 38.2 °C in Dubai, United Arab \
             Emirates now, which is not lower than 30.",
            2,
        ),
        (
            "Is it warmer than 10 degrees in Oslo?",
            "No: it is 7.5 °C in Oslo, Norway now, which is not higher than 10.",
            1,
        ),
        (
            "How many degrees Fahrenheit has a hotel in Lisbon?",
            "The first hotel I found is Casa do Elétrico; it is 80.2 °F in Lisbon, Portugal now.",
            2,
        ),
        (
            "Which hotel in Longyearbyen, if it is below 0 degrees?",
            "I found no hotel in Longyearbyen: the search found nothing; try fewer or other words.",
            1,
        ),
        (
            "What is the weather in Atlantis?",
            "I do not know the temperature in Atlantis: no place is called `Atlantis`; try its English name.",
            1,
        ),
    ];
    for (task, answer, calls) in table {
        let result = both(task, rehearsal).await;
        assert_eq!(result.answer(), Some(answer), "{task}");
        assert_eq!(result.trace().len(), calls, "{task}");
        assert!(answer.matches(". ").count() < 3, "{answer}");
    }
}

#[test]
fn a_question_is_read_as_it_is_meant() {
    let below = |degrees| {
        Some(Limit {
            degrees,
            lower: true,
        })
    };
    let table = [
        (
            "a hotel in New York, if below 12.5 degrees",
            Some("New York"),
            true,
            below(12.5),
        ),
        (
            "IN Paris: lower than -3?",
            Some("Paris"),
            false,
            below(-3.0),
        ),
        (
            "is it in the evening in Rome over 20",
            Some("Rome"),
            false,
            Some(Limit {
                degrees: 20.0,
                lower: false,
            }),
        ),
        ("hello", None, false, None),
        ("", None, false, None),
    ];
    for (text, city, hotel, limit) in table {
        let expected = Question {
            city: city.map(str::to_owned),
            hotel,
            fahrenheit: false,
            limit,
        };
        assert_eq!(read(text), expected, "{text}");
    }
}

/// The second call's argument is what the first call found: asked once, with all its calls made, a model has
/// nothing to put there yet.
#[tokio::test]
async fn a_chain_of_calls_is_answered_by_the_loop_and_not_by_a_single_pass() {
    let search =
        || json!({"tool_calls": [call("a", "web_search", json!({"query": "hotel in Boston"}))]});
    let weather = || json!({"tool_calls": [call("b", "get_weather", json!({"place": "Boston, Massachusetts"}))]});
    let answer = "Copper Lantern Hotel: it is 21.4 °C there.";
    let lines = [search(), weather(), json!({"content": answer})];
    let whole = both("A hotel in Boston below 30 degrees?", || scripted(&lines)).await;
    assert_eq!(whole.answer(), Some(answer));
    let tools: Vec<_> = whole.trace().iter().map(|row| &*row.tool).collect();
    assert_eq!(tools, ["web_search", "get_weather"]);

    let single_pass = || {
        let mut terms = scripted(&lines);
        terms.limits.steps = 1;
        terms
    };
    let cut = both("A hotel in Boston below 30 degrees?", single_pass).await;
    assert_eq!((cut.answer(), cut.stop()), (None, &Stop::MaxSteps));
    assert_eq!(cut.trace().len(), 1);
}

#[tokio::test]
async fn whatever_stops_the_one_stops_the_other_with_the_same_words() {
    let ask = |id: &str, city: &str| call(id, "get_weather", json!({"place": city}));
    let many = json!({"tool_calls": [ask("a", "Oslo"), ask("b", "Basel"), ask("c", "Dubai")]});
    // Failures are read; what is denied, unknown or broken too.
    let table: Vec<(Vec<Value>, Stop, usize)> = vec![
        (
            vec![many.clone(), json!({"content": "Cold, mild, hot."})],
            Stop::Success,
            3,
        ),
        (
            vec![
                json!({"tool_calls": [call("a", "get_wether", json!({"place": "Oslo"})), ask("b", "Oslo"),
                    call("c", "get_weather", json!({"town": 1})), json!({"id": "d", "name": "get_weather", "arguments": "{\"place"})]}),
                json!({"content": "Enough."}),
            ],
            Stop::Success,
            4,
        ),
        (
            vec![
                json!({"tool_calls": [ask("a", "Oslo")]}),
                json!({"tool_calls": [ask("b", "Oslo")]}),
            ],
            Stop::LoopDetected,
            2,
        ),
    ];
    for (lines, stop, calls) in table {
        let result = both("What now?", || scripted(&lines)).await;
        assert_eq!(result.stop(), &stop);
        assert_eq!(result.trace().len(), calls);
    }
    let tight = || {
        let mut terms = scripted(std::slice::from_ref(&many));
        terms.limits.tool_calls = 2;
        terms.loops = LoopRule::Off;
        terms
    };
    let result = both("Three places?", tight).await;
    assert_eq!(result.stop(), &Stop::MaxToolCalls);
    let failing = || scripted(&[json!({"error": {"kind": "http", "status": 401}})]);
    let result = both("Hello?", failing).await;
    assert_eq!(result.stop().to_string(), "llm_error:auth");
}

#[tokio::test]
async fn calls_of_one_turn_are_made_beside_each_other() {
    let meet = Arc::new(tokio::sync::Barrier::new(2));
    let tools = || {
        let meet = meet.clone();
        let schema = json!({"type": "object"});
        vec![DynTool::new(
            "get_weather",
            "Waits for another",
            schema,
            move |_| {
                let meet = meet.clone();
                async move {
                    meet.wait().await;
                    Ok("both are here")
                }
            },
        )]
    };
    let agent = weather(&Stores::in_memory(), tools(), &[], &[]).unwrap();
    let lines = [
        json!({"tool_calls": [call("a", "get_weather", json!({"n": 1})), call("b", "get_weather", json!({"n": 2}))]}),
        json!({"content": "Done."}),
    ];
    let run = weather_by_hand(&agent, "Two?", &scripted(&lines))
        .await
        .unwrap();
    assert_eq!(run.result().await.answer(), Some("Done."));
}

#[tokio::test]
async fn a_loop_by_hand_that_is_stopped_says_so_and_ends() {
    let tools = vec![DynTool::new(
        "get_weather",
        "Never answers",
        json!({"type": "object"}),
        async |_| {
            std::future::pending::<()>().await;
            Ok(())
        },
    )];
    let agent = weather(&Stores::in_memory(), tools, &[], &[]).unwrap();
    let lines = [json!({"tool_calls": [call("a", "get_weather", json!({}))]})];
    let mut run = weather_by_hand(&agent, "And?", &scripted(&lines))
        .await
        .unwrap();
    let control = run.control();
    let mut last = None;
    while let Some(event) = run.next().await {
        if matches!(event.data, AgentEventData::ToolStarted { .. }) {
            control.request_cancel(CancelReason::User);
        }
        last = Some(event.data);
    }
    let Some(AgentEventData::RunEnded {
        result, exit_code, ..
    }) = last
    else {
        panic!("no end was told");
    };
    assert_eq!((result.stop(), exit_code), (&Stop::Cancelled, 130));
    assert_eq!(control.ended().await, paraph_graph::Ending::Cancelled);

    // Dropped, it is over too.
    let run = weather_by_hand(&agent, "And?", &scripted(&lines))
        .await
        .unwrap();
    let control = run.control();
    drop(run);
    assert_eq!(control.ended().await, paraph_graph::Ending::Cancelled);
}
