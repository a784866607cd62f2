//! Specifications, and what is refused before anything is sent.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;
use crate::init::Settings;

#[test]
fn a_specification_is_read_and_shown_again() {
    let table = [
        (
            "openai:text-embedding-3-small",
            EmbedderSpec::Provider {
                provider: "openai".into(),
                model: "text-embedding-3-small".into(),
            },
        ),
        (
            "ollama:nomic-embed-text:v1.5",
            EmbedderSpec::Provider {
                provider: "ollama".into(),
                model: "nomic-embed-text:v1.5".into(),
            },
        ),
        ("local:a/b:c", EmbedderSpec::Local("a/b:c".into())),
    ];
    for (text, spec) in table {
        assert_eq!(text.parse::<EmbedderSpec>().unwrap(), spec);
        assert_eq!(spec.to_string(), text);
    }
}

#[test]
fn a_wrong_specification_says_what_to_write() {
    let table = [
        ("", "model ``: write provider:model or local:DIR"),
        (
            "openai",
            "model `openai`: write provider:model or local:DIR",
        ),
        (
            "local:",
            "model `local:`: write provider:model or local:DIR",
        ),
        (
            "anthropic:m",
            "model `anthropic:m`: embeddings of anthropic are not known here; take a provider that speaks OpenAI's \
             protocol, or local:DIR",
        ),
    ];
    for (text, told) in table {
        assert_eq!(text.parse::<EmbedderSpec>().unwrap_err().to_string(), told);
    }
    let unknown = "opnai:m".parse::<EmbedderSpec>().unwrap_err().to_string();
    assert!(
        unknown.starts_with("unknown model provider `opnai`"),
        "{unknown}"
    );
}

#[test]
fn what_is_missing_is_named() {
    let refusal = |spec: &str| {
        let made = init_embedder(&spec.parse().unwrap(), &Settings::default());
        made.map(|made| made.name().to_owned())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal("openai:m"),
        "openai needs an API key: set OPENAI_API_KEY"
    );
    #[cfg(not(feature = "local-embeddings"))]
    assert_eq!(
        refusal("local:dir"),
        "model `local:dir`: this build has no local models: build it with the feature `local-embeddings`"
    );
    #[cfg(feature = "local-embeddings")]
    assert!(refusal("local:no-such-dir").starts_with("embedding model no-such-dir"));
    let ollama = init_embedder(&"ollama:m".parse().unwrap(), &Settings::default()).unwrap();
    assert_eq!((ollama.name(), ollama.dimension()), ("ollama:m", None));
}

#[test]
fn what_no_model_takes_is_refused_at_once() {
    let refused = |texts: Vec<String>| check(&texts).map_err(|error| error.to_string());
    assert_eq!(refused(vec![]), Ok(()));
    let texts = vec!["a".to_owned(), " \n".to_owned()];
    assert_eq!(
        refused(texts),
        Err("the model refused the request: text 2 of 2 is empty".to_owned())
    );
    assert_eq!(
        refused(vec!["a".repeat(MAX_TEXT_BYTES + 1)]),
        Err("the model refused the request: text 1 of 1 is larger than 1048576 bytes".to_owned())
    );
    assert_eq!(
        refused(vec!["a".to_owned(); MAX_TEXTS + 1]),
        Err("the model refused the request: 100001 texts at once, more than 100000".to_owned())
    );
}

#[test]
fn closeness_does_not_depend_on_length() {
    let table: [(&[f32], &[f32], f32); 5] = [
        (&[3.0, 4.0], &[6.0, 8.0], 1.0),
        (&[1.0, 0.0], &[-2.0, 0.0], -1.0),
        (&[1.0, 1.0], &[1.0, 0.0], std::f32::consts::FRAC_1_SQRT_2),
        (&[], &[], 0.0),
        (&[1.0], &[1.0, 2.0], 0.0),
    ];
    for (one, other, close) in table {
        assert!(
            (cosine(one, other) - close).abs() < 1e-6,
            "{one:?} {other:?}"
        );
    }
    assert!((cosine(&[f32::MAX, f32::MAX], &[f32::MAX, f32::MAX]) - 1.0).abs() < 1e-6);
}
