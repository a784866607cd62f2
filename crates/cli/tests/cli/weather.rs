//! The weather agent: rehearsed, against stand-ins for its services, on the graph and by hand.

use crate::sandbox::{Ended, Sandbox};
use crate::stand_in::{StandIn, open_meteo, tavily};
use serde_json::json;

const QUESTION: &str = "The first hotel in Boston, if it is lower than 30 degrees there?";

/// A script that finds the hotel, asks for the weather where it stands, and answers.
fn script(sandbox: &Sandbox) -> String {
    let call = |id: &str, name: &str, arguments: serde_json::Value| {
        json!({"tool_calls": [{"id": id, "name": name, "arguments": arguments}]}).to_string()
    };
    sandbox.lines(&[
        &call("a", "web_search", json!({"query": "hotel in Boston"})),
        &call(
            "b",
            "get_weather",
            json!({"place": "Boston, Massachusetts"}),
        ),
        &json!({"content": "The Quay House, and it is cool there."}).to_string(),
    ])
}

struct Services {
    search: StandIn,
    weather: StandIn,
}

impl Services {
    fn start(search: StandIn) -> Services {
        let weather = open_meteo::start([open_meteo::BOSTON]);
        Services { search, weather }
    }

    fn run(&self, sandbox: &Sandbox, args: &[&str]) -> Ended {
        let (search, weather) = (self.search.url(), self.weather.url());
        let env = [
            ("TAVILY_API_KEY", "tvly-stand-in"),
            ("TAVILY_BASE_URL", &*search),
            ("OPEN_METEO_BASE_URL", &*weather),
            ("OPEN_METEO_GEOCODING_URL", &*weather),
        ];
        sandbox.run_with(args, &env, "")
    }
}

fn hotels() -> StandIn {
    let hit = tavily::hit(
        "The Quay House",
        "https://quay.example/",
        "A hotel on the water in Boston.",
    );
    tavily::start(vec![hit])
}

#[test]
fn both_ways_ask_the_same_services_and_give_the_same_result() {
    let sandbox = Sandbox::new();
    let services = Services::start(hotels());
    let model = script(&sandbox);
    let args = [
        "run", "weather", QUESTION, "--model", &model, "--json", "--quiet",
    ];
    let graph = services.run(&sandbox, &args);
    let mut by_hand_args = args.to_vec();
    by_hand_args.push("--vanilla");
    let by_hand = services.run(&sandbox, &by_hand_args);
    assert_eq!(
        (graph.code, by_hand.code),
        (0, 0),
        "{} {}",
        graph.err,
        by_hand.err
    );
    let (graph, by_hand) = (graph.json(), by_hand.json());
    assert_eq!(graph["answer"], "The Quay House, and it is cool there.");
    assert_eq!(graph["trace"], by_hand["trace"]);
    assert_eq!(
        graph["messages"].as_array().unwrap().len(),
        by_hand["messages"].as_array().unwrap().len()
    );
    let read = |result: &serde_json::Value, at: usize| {
        let text = result["messages"][at]["content"].as_str().unwrap();
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    };
    for result in [&graph, &by_hand] {
        assert_eq!(read(result, 2)["results"][0]["title"], "The Quay House");
        let weather = read(result, 4);
        assert_eq!(weather["temperature"], open_meteo::BOSTON.celsius);
        assert_eq!(weather["unit"], "°C");
    }
    assert_eq!(services.search.seen().len(), 2);
}

#[test]
fn a_search_that_is_refused_is_read_by_the_model_and_never_an_empty_list() {
    let sandbox = Sandbox::new();
    let services = Services::start(tavily::refusing(429, "too many searches"));
    let model = script(&sandbox);
    for way in [&[][..], &["--vanilla"]] {
        let mut args = vec![
            "run", "weather", QUESTION, "--model", &model, "--json", "--quiet",
        ];
        args.extend(way);
        let result = services.run(&sandbox, &args).json();
        assert_eq!(result["trace"][0]["stop_reason"], "tool_error:web_search");
        let seen = result["messages"][2]["content"].as_str().unwrap();
        assert!(seen.contains("429") && !seen.contains("results"), "{seen}");
        assert!(!seen.contains("tvly-stand-in"), "{seen}");
    }
}

#[test]
fn the_rehearsal_needs_nothing_and_says_where_its_facts_come_from() {
    let sandbox = Sandbox::new();
    let table = [
        (
            "a hotel in Boston below 30 degrees",
            "which is lower than 30",
        ),
        (
            "a hotel in Dubai below 30 degrees",
            "which is not lower than 30",
        ),
        (
            "a hotel in Longyearbyen",
            "I found no hotel in Longyearbyen",
        ),
    ];
    for (task, words) in table {
        for way in [&[][..], &["--vanilla"]] {
            let mut args = vec!["run", "weather", task, "--model", "rehearsal"];
            args.extend(way);
            let ended = sandbox.run(&args);
            assert_eq!(ended.code, 0, "{}", ended.err);
            assert!(ended.out.contains(words), "{}", ended.out);
            assert!(
                ended.err.contains("come from a built-in sample"),
                "{}",
                ended.err
            );
        }
    }
}

#[test]
fn a_conversation_goes_on_and_a_loop_by_hand_has_none() {
    let sandbox = Sandbox::new();
    let on = |task: &str| {
        sandbox.run(&[
            "run",
            "weather",
            task,
            "--model",
            "rehearsal",
            "--thread",
            "trip",
            "--json",
        ])
    };
    on("a hotel in Oslo");
    let second = on("Is it warmer than 10 degrees in Basel?").json();
    assert_eq!(second["messages"].as_array().unwrap().len(), 10);
    let refused = sandbox.run(&["run", "weather", "x", "--vanilla", "--thread", "trip"]);
    assert_eq!(refused.code, 2);
    let other = sandbox.run(&["run", "support", "--vanilla"]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("an option of weather"), "{}", other.err);
}

#[test]
fn what_is_denied_and_what_a_budget_ends_is_the_same_both_ways() {
    let sandbox = Sandbox::new();
    for way in [&[][..], &["--vanilla"]] {
        let run = |more: &[&str]| {
            let mut args = vec![
                "run",
                "weather",
                "a hotel in Oslo",
                "--model",
                "rehearsal",
                "--json",
            ];
            args.extend(way);
            args.extend(more);
            sandbox.run(&args)
        };
        let denied = run(&["--deny", "web_search"]);
        assert_eq!(denied.code, 0);
        assert_eq!(
            denied.json()["trace"][0]["stop_reason"],
            "tool_denied:web_search"
        );
        let short = run(&["--max-steps", "1"]);
        assert_eq!(
            (short.code, short.json()["stop_reason"].clone()),
            (3, json!("max_steps"))
        );
        let calls = run(&["--max-tool-calls", "1"]);
        assert_eq!(calls.json()["stop_reason"], "max_tool_calls");
    }
}
