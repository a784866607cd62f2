//! Where settings come from, which source wins, and that secrets are never shown.

use crate::sandbox::{Ended, FINAL, PROFILE, Sandbox};

const SECRET: &str = "sk-test-0123456789abcdefghijklmnopqrstuvwxyz";

/// The value and source of a setting.
fn shown(ended: &Ended, key: &str) -> (Option<String>, Option<String>) {
    let rows = ended.json();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == key)
        .unwrap()
        .clone();
    let text = |field: &str| row[field].as_str().map(str::to_owned);
    (text("value"), text("source"))
}

#[test]
fn flags_win_over_the_environment_over_env_files_over_toml_files_over_defaults() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "config/paraph/paraph.toml",
        "loop = \"soft\"\nmax_steps = 5\nlog = \"info\"\n",
    );
    sandbox.file(
        "paraph.toml",
        "# mine\nmax_steps = 4\nmodel = \"rehearsal\"\n",
    );
    sandbox.file(".env", "PARAPH_MODEL=scripted:one.jsonl\nOTHER=1\n");
    let show = |env: &[(&str, &str)]| sandbox.run_with(&["config", "show", "--json"], env, "");
    let pair = |value: &str, source: &str| (Some(value.to_owned()), Some(source.to_owned()));
    let ended = show(&[]);
    assert_eq!(
        shown(&ended, "model"),
        pair("scripted:one.jsonl", ".env (PARAPH_MODEL)")
    );
    assert_eq!(shown(&ended, "max_steps"), pair("4", "paraph.toml:2"));
    let (value, source) = shown(&ended, "loop");
    assert_eq!(value.as_deref(), Some("soft"));
    assert!(source.unwrap().ends_with("paraph.toml:1"));
    let default = format!(
        "sqlite://{}",
        sandbox.path("data/paraph/paraph.db").display()
    );
    assert_eq!(shown(&ended, "store"), pair(&default, "default"));
    assert_eq!(shown(&ended, "max_cost"), (None, None));
    let ended = show(&[("PARAPH_MODEL", "openai:x"), ("PARAPH_LOOP", "")]);
    assert_eq!(
        shown(&ended, "model"),
        pair("openai:x", "environment variable PARAPH_MODEL")
    );
    // An empty variable is not set.
    assert_eq!(shown(&ended, "loop").0.as_deref(), Some("soft"));
    let args = ["config", "show", "--json", "--log", "error"];
    assert_eq!(shown(&sandbox.run(&args), "log"), pair("error", "--log"));
}

#[test]
fn the_real_environment_wins_over_the_env_file_in_a_run() {
    let sandbox = Sandbox::new();
    sandbox.file(".env", "PARAPH_MAX_STEPS=1\n");
    let spec = sandbox.script(&[PROFILE, FINAL]);
    let args = ["run", "support", "--json", "--model", &spec];
    assert_eq!(sandbox.run(&args).reason(), "max_steps");
    let ended = sandbox.run_with(&args, &[("PARAPH_MAX_STEPS", "2")], "");
    assert_eq!(ended.reason(), "success");
    sandbox.file("other.env", "PARAPH_MAX_STEPS=2\n");
    let args = [
        "run",
        "support",
        "--json",
        "--model",
        &spec,
        "--env-file",
        "other.env",
    ];
    assert_eq!(sandbox.run(&args).reason(), "success");
}

#[test]
fn a_wrong_value_is_named_with_its_source() {
    let sandbox = Sandbox::new();
    let run = |env: &[(&str, &str)]| {
        sandbox.run_with(&["run", "support", "--model", "rehearsal"], env, "")
    };
    let table = [
        (
            "PARAPH_MAX_STEPS",
            "x",
            "PARAPH_MAX_STEPS: `x` is no whole number",
        ),
        ("PARAPH_LOOP", "x", "PARAPH_LOOP: `x` is no loop rule"),
        ("PARAPH_LOG", "x", "PARAPH_LOG: `x` is no level"),
        (
            "PARAPH_STORE",
            "mysql://me:hunter2@h/d",
            "PARAPH_STORE: `mysql:` is no kind of store",
        ),
        (
            "PARAPH_LEASE_SECONDS",
            "0",
            "PARAPH_LEASE_SECONDS: `0` is no number of seconds from 1 to 3600",
        ),
        (
            "PARAPH_LOW_DISK_MIB",
            "1GB",
            "PARAPH_LOW_DISK_MIB: `1GB` is no number of mebibytes",
        ),
        (
            "PARAPH_ENCRYPTION_KEY",
            "hunter2",
            "PARAPH_ENCRYPTION_KEY: an encryption key has 64 hexadecimal digits",
        ),
    ];
    for (name, value, expected) in table {
        let ended = run(&[(name, value)]);
        assert_eq!(ended.code, 2);
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert!(!ended.err.contains("hunter2"), "{}", ended.err);
    }
    sandbox.file(".env", "A=1\nPARAPH_MAX_TOKENS=-3\n");
    assert!(
        run(&[])
            .err
            .contains(".env (PARAPH_MAX_TOKENS): `max_tokens`: `-3` is no whole number")
    );
}

#[test]
fn mistakes_in_the_configuration_file_are_named_with_their_line() {
    let table = [
        (
            "\nmax_step = 3\n",
            "paraph.toml:2: unknown key `max_step`; did you mean `max_steps`?",
        ),
        (
            "[provider.openai]\n",
            "unknown key `provider`; did you mean `providers`?",
        ),
        (
            "retention = 5\n",
            "paraph.toml:1: `retention` is a table: [retention] with keep_last, older_than",
        ),
        (
            "\nproviders = \"openai\"\n",
            "paraph.toml:2: `providers` is a table: [providers] with ",
        ),
        (
            "prices = 1\n",
            "paraph.toml:1: `prices` is a table: [prices.\"PROVIDER:MODEL\"] with input_per_million and output_per_million",
        ),
        (
            "[providers.openai]\nbase_ur = \"x\"\n",
            "paraph.toml:2: unknown key `providers.openai.base_ur`; did you mean `providers.openai.base_url`?",
        ),
        (
            "[providers.openai]\napi_key = \"sk-1\"\n",
            "paraph.toml:2: `providers.openai.api_key`: a secret does not belong into this file",
        ),
        (
            "max_steps = true\n",
            "paraph.toml:1: `max_steps` is a text or a number",
        ),
        ("max_steps = \n", "paraph.toml:1: "),
        (
            "max_steps = \"some\"\n",
            "paraph.toml:1: `max_steps`: `some` is no whole number",
        ),
        (
            "[prices.\"openai:gpt\"]\ninput_per_million = 1\n",
            "paraph.toml:1: the price of `openai:gpt` needs input_per_million and output_per_million",
        ),
        (
            "[prices.x]\ninput_per_millon = 1\n",
            "paraph.toml:2: unknown key `input_per_millon` of a price; did you mean `input_per_million`?",
        ),
        (
            "[prices.x]\ninput_per_million = -1\noutput_per_million = 1\n",
            "is no sum of US dollars",
        ),
        ("prices = 3\n", "paraph.toml:1: "),
    ];
    let sandbox = Sandbox::new();
    for (text, expected) in table {
        sandbox.file("paraph.toml", text);
        let ended = sandbox.run(&["run", "support", "--model", "rehearsal"]);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{text}");
        assert!(ended.err.contains(expected), "{text}: {}", ended.err);
        assert!(!ended.err.contains("sk-1"));
    }
}

#[test]
fn a_wrong_line_of_an_env_file_is_named_but_not_shown() {
    let sandbox = Sandbox::new();
    sandbox.file(".env", &format!("A=1\n{SECRET} is my key\n"));
    let ended = sandbox.run(&["run", "support", "--model", "rehearsal"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains(".env:2: this line is not NAME=value"),
        "{}",
        ended.err
    );
    assert!(!ended.err.contains(SECRET));
}

#[test]
fn the_default_model_is_the_first_configured_providers() {
    let sandbox = Sandbox::new();
    let run = |env: &[(&str, &str)]| {
        let more = [("OPENAI_TIMEOUT_SECONDS", "0.2"), ("PARAPH_MAX_STEPS", "0")];
        let env: Vec<_> = env.iter().copied().chain(more).collect();
        sandbox.run_with(&["run", "support"], &env, "").err
    };
    let key = ("OPENAI_API_KEY", SECRET);
    let table: [(&[(&str, &str)], &str); 6] = [
        (
            &[],
            "model: rehearsal (no provider is configured: set OPENAI_API_KEY, or use --model)",
        ),
        (
            &[key],
            "model: openai:gpt-4.1-mini, since openai is configured",
        ),
        (
            &[key, ("OPENAI_MODEL", "gpt-5")],
            "model: openai:gpt-5, since",
        ),
        (
            &[("OPENAI_BASE_URL", "http://127.0.0.1:9")],
            "model: openai:gpt-4.1-mini, since",
        ),
        (
            &[("GROQ_API_KEY", SECRET)],
            "model: rehearsal (groq is configured, but no model of it is named",
        ),
        (&[("PARAPH_MODEL", "rehearsal"), key], "model rehearsal"),
    ];
    for (env, expected) in table {
        let err = run(env);
        assert!(err.contains(expected), "{env:?}: {err}");
    }
}

#[test]
fn secrets_are_read_from_files_and_never_shown() {
    let sandbox = Sandbox::new();
    sandbox.file("key.txt", &format!("{SECRET}\n"));
    let show = |env: &[(&str, &str)]| sandbox.run_with(&["config", "show", "--json"], env, "");
    let ended = show(&[("OPENAI_API_KEY_FILE", "key.txt")]);
    let (value, source) = shown(&ended, "providers.openai.api_key");
    assert_eq!(value.as_deref(), Some("********"));
    assert_eq!(source.as_deref(), Some("OPENAI_API_KEY_FILE (key.txt)"));
    sandbox.file(".env", "OPENAI_API_KEY=from-the-file\n");
    let ended = show(&[("OPENAI_API_KEY_FILE", "key.txt")]);
    assert_eq!(
        shown(&ended, "providers.openai.api_key").1.as_deref(),
        Some("OPENAI_API_KEY_FILE (key.txt)")
    );
    let ended = show(&[("OPENAI_API_KEY_FILE", "none.txt")]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("OPENAI_API_KEY_FILE: none.txt"),
        "{}",
        ended.err
    );

    let env = [
        ("OPENAI_API_KEY", SECRET),
        ("OPENAI_BASE_URL", "http://ann:hunter2@127.0.0.1:9"),
        ("OPENAI_TIMEOUT_SECONDS", "2"),
        ("HTTPS_PROXY", "http://bob:hunter2@127.0.0.1:9"),
        ("NO_PROXY", "127.0.0.1"),
    ];
    let commands: [&[&str]; 5] = [
        &["config", "show"],
        &["config", "show", "--json"],
        &["doctor"],
        &["run", "support", "--log", "debug", "--verbose"],
        &[
            "run",
            "support",
            "--log",
            "debug,json",
            "--events",
            "--trace",
            "t.jsonl",
        ],
    ];
    for args in commands {
        let ended = sandbox.run_with(args, &env, "");
        for text in [&ended.out, &ended.err] {
            assert!(
                !text.contains(SECRET) && !text.contains("hunter2"),
                "{args:?}: {text}"
            );
        }
    }
    let trace = std::fs::read_to_string(sandbox.path("t.jsonl")).unwrap_or_default();
    assert!(!trace.contains(SECRET) && !trace.contains("hunter2"));
}

#[test]
fn secrets_in_a_question_or_in_arguments_are_redacted_where_they_are_shown() {
    let sandbox = Sandbox::new();
    let spec = sandbox.script(&[&format!(
        r#"{{"kind":"tool","name":"search_policy","args":{{"query":"Bearer {SECRET}"}}}}"#
    )]);
    let question = format!("My key is Bearer {SECRET}");
    let args = [
        "run",
        "support",
        &question,
        "--model",
        &spec,
        "--verbose",
        "--trace",
        "t.jsonl",
        "--max-steps",
        "1",
    ];
    let ended = sandbox.run(&args);
    assert!(!ended.err.contains(SECRET), "{}", ended.err);
    let trace = std::fs::read_to_string(sandbox.path("t.jsonl")).unwrap();
    let before_the_result = trace.lines().filter(|line| !line.contains("run_ended"));
    for line in before_the_result {
        assert!(!line.contains(SECRET), "{line}");
    }
}

#[test]
fn a_cost_limit_needs_a_price() {
    let sandbox = Sandbox::new();
    let env = [("OPENAI_API_KEY", SECRET)];
    let args = [
        "run",
        "support",
        "--model",
        "openai:gpt-4.1-mini",
        "--max-cost",
        "0.1",
    ];
    let ended = sandbox.run_with(&args, &env, "");
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .err
            .contains("[prices.\"openai:gpt-4.1-mini\"]\n  input_per_million"),
        "{}",
        ended.err
    );
    // The rehearsal model costs nothing, and that is known.
    let ended = sandbox.run(&["run", "support", "--model", "rehearsal", "--max-cost", "0"]);
    assert_eq!(ended.code, 0);
}
