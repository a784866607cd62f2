//! Providers, stand-ins and limits as the configuration names them. Addresses here are of ports where nobody listens.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::sandbox::Sandbox;

/// An address where nobody listens.
fn nowhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn every_providers_key_and_address_is_a_setting_and_its_key_is_masked() {
    let sandbox = Sandbox::new();
    let table = [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GEMINI_API_KEY"),
        ("google", "GOOGLE_API_KEY"),
        ("compatible", "COMPATIBLE_API_KEY"),
    ];
    for (provider, variable) in table {
        let env = [(variable, "hunter2")];
        let ended = sandbox.run_with(&["config", "show"], &env, "");
        let line = ended
            .out
            .lines()
            .find(|line| line.starts_with(&format!("providers.{provider}.api_key ")));
        let line = line.unwrap();
        assert!(line.contains("****") && line.contains(variable), "{line}");
        assert!(!ended.out.contains("hunter2"));
        let ended = sandbox.run_with(&["doctor"], &env, "");
        let said = format!("{provider}: set by environment variable {variable}");
        assert!(ended.out.contains(&said), "{}", ended.out);
    }
}

#[test]
fn a_provider_is_asked_at_the_address_that_is_configured() {
    let sandbox = Sandbox::new();
    for (provider, variable) in [
        ("anthropic", "ANTHROPIC_BASE_URL"),
        ("google", "GOOGLE_BASE_URL"),
        ("compatible", "COMPATIBLE_BASE_URL"),
    ] {
        let address = nowhere();
        let model = format!("{provider}:m");
        let args = ["run", "support", "--json", "--model", &model];
        let ended = sandbox.run_with(&args, &[(variable, &address)], "");
        assert_eq!(
            (ended.code, ended.reason().as_str()),
            (4, "llm_timeout"),
            "{}",
            ended.err
        );
    }
    let model = format!("{}/v1#m", nowhere());
    let ended = sandbox.run(&["run", "support", "--json", "--model", &model]);
    assert_eq!(ended.reason(), "llm_timeout");
    let ended = sandbox.run(&["run", "support", "--model", "compatible:m"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("set COMPATIBLE_BASE_URL"),
        "{}",
        ended.err
    );
}

#[test]
fn stand_ins_are_asked_in_their_order_and_all_are_named_where_none_answers() {
    let sandbox = Sandbox::new();
    let (first, second) = (nowhere(), nowhere());
    sandbox.file(
        "paraph.toml",
        &format!("fallback = \"ollama:b, {second}#c\"\n"),
    );
    let env = [
        ("OPENAI_BASE_URL", first.as_str()),
        ("OLLAMA_BASE_URL", first.as_str()),
    ];
    let args = ["run", "support", "--model", "openai:a"];
    let ended = sandbox.run_with(&args, &env, "");
    assert_eq!(ended.code, 4);
    for name in ["openai:a: ", "ollama:b: ", &format!("{second}#c: ")] {
        assert!(ended.err.contains(name), "{name}: {}", ended.err);
    }
    // A script stands for itself.
    let spec = sandbox.script(&[crate::sandbox::FINAL]);
    assert_eq!(sandbox.run(&["run", "support", "--model", &spec]).code, 0);
}

#[test]
fn a_cost_limit_needs_the_price_of_every_model_that_may_answer() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "paraph.toml",
        "fallback = \"ollama:b\"\n[prices.\"openai:a\"]\ninput_per_million = 1\noutput_per_million = 2\n",
    );
    let env = [("OPENAI_API_KEY", "k")];
    let args = ["run", "support", "--model", "openai:a", "--max-cost", "1"];
    let ended = sandbox.run_with(&args, &env, "");
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("[prices.\"ollama:b\"]"), "{}", ended.err);
}

#[test]
fn limits_that_are_none_are_named_with_their_place() {
    let table = [
        (
            "[providers.openai]\nmax_in_flight = 0\n",
            "paraph.toml:2: `providers.openai.max_in_flight`: `0` is no whole number above zero",
        ),
        (
            "[providers.google]\ntokens_per_minute = \"many\"\n",
            "paraph.toml:2: `providers.google.tokens_per_minute`: `many` is no whole number above zero",
        ),
        (
            "model_idle_seconds = 0\n",
            "paraph.toml:1: `model_idle_seconds`: `0` is no number of seconds",
        ),
        (
            "fallback = \"ollama:b,opnai:c\"\n",
            "paraph.toml:1: `fallback`: unknown model provider `opnai`",
        ),
        (
            "tool_mode = \"json\"\n",
            "paraph.toml:1: `tool_mode`: unknown tool mode `json` (there are: native, schema)",
        ),
        (
            "fallback = \"rehearsal\"\n",
            "paraph.toml:1: `fallback`: the rehearsal model belongs to an agent",
        ),
        (
            "fallback = \"ollama:b, scripted:nosuch\"\n",
            "paraph.toml:1: `fallback`: ",
        ),
    ];
    let sandbox = Sandbox::new();
    for (text, expected) in table {
        sandbox.file("paraph.toml", text);
        let env = [("OPENAI_API_KEY", "k")];
        let ended = sandbox.run_with(&["run", "support", "--model", "openai:a"], &env, "");
        assert_eq!(ended.code, 2, "{text}");
        assert!(ended.err.contains(expected), "{text}: {}", ended.err);
    }
}

/// A server that gives this answer to whoever asks; it is gone with the process.
fn always(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut connection = connection;
            // The head and the body of such a short request come at once, and what they say does not matter.
            let _ = connection.read(&mut [0; 1 << 16]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let length = answer.len();
            let _ = write!(
                connection,
                "{head}\r\ncontent-length: {length}\r\n\r\n{answer}"
            );
        }
    });
    address
}

#[test]
fn the_trace_says_who_stood_in_and_that_an_answer_was_cut_off() {
    let sandbox = Sandbox::new();
    sandbox.file("clerk.toml", "name = \"clerk\"\nprompt = \"Be brief.\"\n");
    let cut =
        r#"{"model":"m","choices":[{"message":{"content":"Once up"},"finish_reason":"length"}]}"#;
    let env = [
        ("OPENAI_API_KEY", "k"),
        ("OPENAI_BASE_URL", &nowhere()),
        ("COMPATIBLE_BASE_URL", &always(cut)),
        ("PARAPH_FALLBACK", "compatible:m"),
    ];
    let args = ["run", "clerk.toml", "hi", "--model", "openai:m"];
    let ended = sandbox.run_with(&args, &env, "");
    assert_eq!(
        (ended.code, ended.out.trim()),
        (0, "Once up"),
        "{}",
        ended.err
    );
    let line = ended.err.lines().find(|line| line.contains("think  final"));
    let line = line.unwrap_or_else(|| panic!("{}", ended.err));
    assert!(
        line.contains("  by compatible:m  ") && line.contains("  cut off at its longest length"),
        "{line}"
    );
}

#[test]
fn a_files_cost_limit_without_a_price_is_named_as_the_files() {
    let sandbox = Sandbox::new();
    let file = "name = \"clerk\"\nprompt = \"Be brief.\"\n[budget]\nmax_cost = 0.2\n";
    sandbox.file("clerk.toml", file);
    let said = "the agent's `max_cost`: a cost limit needs the price of the model `openai:m`";
    let env = [("OPENAI_API_KEY", "k"), ("PARAPH_MODEL", "openai:m")];
    let ended = sandbox.run_with(&["run", "clerk.toml", "hi"], &env, "");
    assert!(ended.code == 2 && ended.err.contains(said), "{}", ended.err);
    let ended = sandbox.run_with(&["doctor", "clerk.toml"], &env, "");
    assert!(ended.out.contains(said), "{}", ended.out);
}

#[test]
fn no_secret_of_an_address_is_shown() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "paraph.toml",
        "model = \"http://me:hunter2@127.0.0.1:1/v1#m\"\nfallback = \"http://127.0.0.1:1/v1?api_key=hunter2#m\"\n",
    );
    for args in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["doctor"],
        &["run", "support"],
        &["run", "support", "--model", "rehearsal"],
        &["run", "support", "--model", "http://h/v1?api_key=hunter2#m"],
    ] {
        let ended = sandbox.run(args);
        let all = ended.out + &ended.err;
        assert!(
            !all.is_empty() && !all.contains("hunter2"),
            "{args:?}: {all}"
        );
    }
}

#[test]
fn a_wait_for_ones_own_limit_is_said_and_named_when_the_time_ends_there() {
    let sandbox = Sandbox::new();
    // An answer that does not fit is asked for again, which is the second request of the minute.
    sandbox.file(
        "clerk.toml",
        "name = \"clerk\"\nprompt = \"Be brief.\"\n[output]\nschema = { type = \"object\" }\n",
    );
    sandbox.file(
        "paraph.toml",
        "[providers.compatible]\nrequests_per_minute = 1\n",
    );
    let prose =
        r#"{"model":"m","choices":[{"message":{"content":"Prose."},"finish_reason":"stop"}]}"#;
    let env = [("COMPATIBLE_BASE_URL", &*always(prose))];
    let args = [
        "run",
        "clerk.toml",
        "hi",
        "--model",
        "compatible:m",
        "--max-seconds",
        "2",
    ];
    let ended = sandbox.run_with(&args, &env, "");
    assert_eq!(ended.code, 3, "{}", ended.err);
    let limit = "the configured limit requests_per_minute = 1";
    let waits = ended
        .err
        .matches(&format!("waits for {limit}, about 60 s"))
        .count();
    assert_eq!(waits, 1, "{}", ended.err);
    assert!(
        ended.out.starts_with("Stopped: max_seconds\n")
            && ended
                .out
                .contains(&format!("In its own words: it waited for {limit}\n")),
        "{}",
        ended.out
    );
}
