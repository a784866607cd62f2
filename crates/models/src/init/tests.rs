//! Specifications and settings.

use super::*;
use crate::providers::providers;

fn provider(provider: &str, model: Option<&str>) -> ModelSpec {
    ModelSpec::Provider {
        provider: provider.into(),
        model: model.map(Into::into),
    }
}

#[test]
fn every_form_of_a_specification_is_read_and_shown_again() {
    let table = [
        (
            "openai:gpt-4.1-mini",
            provider("openai", Some("gpt-4.1-mini")),
        ),
        (
            "ollama:llama3.2:1b",
            provider("ollama", Some("llama3.2:1b")),
        ),
        ("openrouter:a/b", provider("openrouter", Some("a/b"))),
        ("groq", provider("groq", None)),
        ("anthropic:c", provider("anthropic", Some("c"))),
        ("google:g", provider("google", Some("g"))),
        (
            "http://127.0.0.1:8081/v1#qwen:2",
            ModelSpec::Server {
                base_url: "http://127.0.0.1:8081/v1".into(),
                model: "qwen:2".into(),
            },
        ),
        ("rehearsal", ModelSpec::Rehearsal),
        (
            "scripted:a:b.jsonl",
            ModelSpec::Scripted("a:b.jsonl".into()),
        ),
        ("replay:dir", ModelSpec::Replay("dir".into())),
        (
            "record:dir,openai:m",
            ModelSpec::Record {
                dir: "dir".into(),
                spec: Box::new(provider("openai", Some("m"))),
            },
        ),
    ];
    for (text, spec) in table {
        assert_eq!(text.parse::<ModelSpec>().unwrap(), spec);
        assert_eq!(spec.to_string(), text);
    }
}

#[test]
fn a_wrong_specification_is_refused_with_what_there_is() {
    let table = [
        ("", "write provider:model"),
        (":m", "write provider:model"),
        ("openai:", "no model stands behind the colon"),
        ("scripted", "write scripted:FILE"),
        ("scripted:", "write scripted:FILE"),
        ("replay:", "write replay:DIR"),
        ("record:dir", "write record:DIR,SPEC"),
        ("record:dir,nope:m", "unknown model provider `nope`"),
        ("rehearsal:x", "rehearsal stands alone"),
        (
            "opnai:m",
            "unknown model provider `opnai` (there are: openai, anthropic, google, openrouter, groq, mistral, ollama, \
             compatible, http://…#MODEL, rehearsal, scripted:FILE); did you mean `openai`?",
        ),
        ("gpt-4o", "did you mean `openai:gpt-4o`?"),
        (
            "claude-sonnet-5",
            "did you mean `anthropic:claude-sonnet-5`?",
        ),
        ("google_genai:gemini-3", "did you mean `google`?"),
        ("rehersal", "did you mean `rehearsal`?"),
        (
            "http://127.0.0.1:8081/v1",
            "write the model behind the address",
        ),
        (
            "http://127.0.0.1:8081/v1#",
            "write the model behind the address",
        ),
        (
            "http://me:hunter2@host/v1#m",
            "it must not contain credentials",
        ),
        ("https://#m", "base URL: "),
    ];
    for (text, problem) in table {
        let error = text.parse::<ModelSpec>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

fn refusal(spec: &ModelSpec, settings: &Settings) -> String {
    let made = init_chat_model(spec, settings).map(|model| model.name().to_owned());
    made.unwrap_err().to_string()
}

fn with_openai(own: ProviderSettings) -> Settings {
    Settings {
        providers: [("openai".to_owned(), own)].into(),
        ..Settings::default()
    }
}

fn with_key(key: &str) -> Settings {
    with_openai(ProviderSettings {
        api_key: Some(key.into()),
        ..ProviderSettings::default()
    })
}

#[test]
fn a_model_needs_the_key_of_its_provider_unless_the_server_is_another() {
    let spec = provider("openai", Some("m"));
    assert_eq!(
        refusal(&spec, &Settings::default()),
        "openai needs an API key: set OPENAI_API_KEY"
    );
    let local = with_openai(ProviderSettings {
        api_key: None,
        base_url: Some("http://127.0.0.1:1".into()),
        limiter: None,
    });
    assert!(init_chat_model(&spec, &local).is_ok());
    assert!(init_chat_model(&spec, &with_key("k")).is_ok());
    assert!(init_chat_model(&provider("ollama", Some("m")), &Settings::default()).is_ok());
}

#[test]
fn every_provider_makes_a_model_and_says_what_is_missing() {
    let table = [
        (
            "anthropic",
            "anthropic needs an API key: set ANTHROPIC_API_KEY",
        ),
        ("google", "google needs an API key: set GEMINI_API_KEY"),
        ("mistral", "mistral needs an API key: set MISTRAL_API_KEY"),
        (
            "compatible",
            "compatible needs the address of a server: set COMPATIBLE_BASE_URL, or write http://host:port/v1#MODEL",
        ),
    ];
    for (name, missing) in table {
        assert_eq!(
            refusal(&provider(name, Some("m")), &Settings::default()),
            missing
        );
    }
    for known in providers() {
        let own = ProviderSettings {
            api_key: Some("k".into()),
            base_url: Some("http://127.0.0.1:1".into()),
            limiter: None,
        };
        let settings = Settings {
            providers: [(known.name.to_owned(), own)].into(),
            ..Settings::default()
        };
        let model = init_chat_model(&provider(known.name, Some("m")), &settings).unwrap();
        assert_eq!(model.name(), format!("{}:m", known.name));
    }
    let spec: ModelSpec = "http://127.0.0.1:1/v1#m".parse().unwrap();
    let model = init_chat_model(&spec, &Settings::default()).unwrap();
    assert_eq!(model.name(), "http://127.0.0.1:1/v1#m");
}

#[test]
fn stand_ins_are_made_like_the_wanted_model_and_named() {
    let specs = ["ollama:b", "http://127.0.0.1:1#c"].map(|spec| spec.parse().unwrap());
    let wanted = provider("openai", Some("a"));
    let model = init_with_fallbacks(&wanted, &specs, &with_key("k")).unwrap();
    assert_eq!(
        model.name(),
        "openai:a, else ollama:b, http://127.0.0.1:1#c"
    );
    let alone = init_with_fallbacks(&wanted, &[], &with_key("k")).unwrap();
    assert_eq!(alone.name(), "openai:a");
    let keyless = init_with_fallbacks(&wanted, &[provider("groq", Some("d"))], &with_key("k"));
    let error = keyless.map(|model| model.name().to_owned()).unwrap_err();
    assert_eq!(error.to_string(), "groq needs an API key: set GROQ_API_KEY");
}

#[test]
fn a_provider_alone_takes_the_callers_default_model() {
    let spec = provider("openai", None);
    assert!(refusal(&spec, &with_key("k")).contains("there is no default"));
    let settings = Settings {
        default_model: Some("gpt-4o-mini".into()),
        ..with_key("k")
    };
    let model = init_chat_model(&spec, &settings).unwrap();
    assert_eq!(model.name(), "openai:gpt-4o-mini");
}

#[test]
fn a_rehearsal_is_the_agents_to_bring_also_where_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    assert!(refusal(&ModelSpec::Rehearsal, &settings).contains("belongs to an agent"));
    let record = ModelSpec::Record {
        dir: dir.path().into(),
        spec: Box::new(ModelSpec::Rehearsal),
    };
    assert!(refusal(&record, &settings).contains("belongs to an agent"));
}

#[test]
fn wrong_settings_are_refused_without_showing_secrets() {
    let spec = provider("openai", Some("m"));
    let https = Some("http://me:hunter2@".to_owned());
    let proxied = Settings {
        proxies: Proxies {
            https,
            ..Proxies::default()
        },
        ..with_key("k")
    };
    assert_eq!(
        refusal(&spec, &proxied),
        "HTTPS_PROXY: not the address of a proxy"
    );
    let certified = Settings {
        ca_certificates: Some("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n".into()),
        ..with_key("k")
    };
    assert!(refusal(&spec, &certified).starts_with("CA certificates: "));
    let uncertified = Settings {
        ca_certificates: Some("nothing of the kind".into()),
        ..with_key("k")
    };
    assert_eq!(
        refusal(&spec, &uncertified),
        "CA certificates: there is none in the file"
    );
    let socks = Settings {
        proxies: Proxies {
            http: Some("socks5://me:hunter2@127.0.0.1:9".to_owned()),
            ..Proxies::default()
        },
        ..with_key("k")
    };
    assert_eq!(
        refusal(&spec, &socks),
        "HTTP_PROXY: only http and https proxies can be used"
    );
    let shown = format!("{:?} {proxied:?}", with_key("sk-secret"));
    assert!(
        !shown.contains("sk-secret") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_script_goes_on_where_its_run_stood() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, "{\"content\":\"one\"}\n{\"content\":\"two\"}\n").unwrap();
    let settings = Settings {
        attempts_made: 1,
        ..Settings::default()
    };
    let model = init_chat_model(&ModelSpec::Scripted(path), &settings).unwrap();
    let request = crate::chat::ChatRequest::new([]);
    let reply = model.complete(&request).await.unwrap();
    assert_eq!(reply.message.text(), "two");
}

#[test]
fn an_address_in_a_spec_holds_no_secret_and_an_error_repeats_none() {
    let table = [
        (
            "http://me:hunter2@127.0.0.1:1/v1#m",
            "model `http://…@127.0.0.1:1/v1#m`: base URL: it must not contain credentials",
        ),
        (
            "http://127.0.0.1:1/v1?api_key=hunter2#m",
            "model `http://127.0.0.1:1/v1?…#m`: a spec is shown and stored, so it must not have a query, which may be secret; give the address in the settings of `compatible`",
        ),
        (
            "https://me:hunter2@h/v1?a=hunter2",
            "model `https://…@h/v1?…`: write the model behind the address: http://…#MODEL",
        ),
        (
            "record:d,http://me:hunter2@h/v1#m",
            "model `http://…@h/v1#m`: base URL: it must not contain credentials",
        ),
        (
            "record:,http://me:hunter2@h/v1#m",
            "model `record:,http://…@h/v1#m`: write record:DIR,SPEC",
        ),
    ];
    for (spec, expected) in table {
        let error = spec.parse::<ModelSpec>().unwrap_err();
        assert_eq!(error.to_string(), expected, "{spec}");
    }
}
