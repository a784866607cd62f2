//! Embeddings over a real socket: what is sent, what is retried, what hides the key.

use std::sync::Arc;
use std::time::Duration;

use paraph_models::{Embedder, ProviderSettings, RetryPolicy, Settings, init_embedder};

use crate::stand_in::{Play, StandIn};

fn embedder(address: &str) -> Arc<dyn Embedder> {
    let own = ProviderSettings {
        api_key: Some("sk-canary".into()),
        base_url: Some(address.to_owned()),
        ..ProviderSettings::default()
    };
    let settings = Settings {
        providers: [("openai".to_owned(), own)].into(),
        retry: RetryPolicy {
            first_wait: Duration::ZERO,
            ..RetryPolicy::default()
        },
        ..Settings::default()
    };
    init_embedder(&"openai:m".parse().unwrap(), &settings).unwrap()
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("text {n}")).collect()
}

/// An answer whose vectors tell which text of the call they are for, in reverse order.
fn answer(from: usize, count: usize) -> Play {
    let data: Vec<_> = (0..count)
        .rev()
        .map(|n| serde_json::json!({ "index": n, "embedding": [from + n, 1] }))
        .collect();
    let usage = serde_json::json!({ "prompt_tokens": count, "total_tokens": count });
    Play::json(&serde_json::json!({ "data": data, "usage": usage }).to_string())
}

#[tokio::test]
async fn many_texts_go_in_batches_and_come_in_order() {
    let busy = Play::status(503, "retry-after: 0\r\n", "{}");
    let server = StandIn::start(vec![answer(0, 128), busy, answer(128, 72)]).await;
    let embedder = embedder(&server.address);
    assert_eq!(embedder.dimension(), None);
    let embedded = embedder.embed(&texts(200)).await.unwrap();
    let expected: Vec<Vec<f32>> = (0..200_u16).map(|n| vec![f32::from(n), 1.0]).collect();
    assert_eq!((embedded.vectors, embedded.tokens), (expected, Some(200)));
    assert_eq!(embedder.dimension(), Some(2));
    let requests = server.requests();
    let sizes: Vec<usize> = requests
        .iter()
        .map(|request| request.body["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [128, 72, 72]);
    assert!(requests[0].head.starts_with("POST /v1/embeddings "));
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sk-canary")
    );
    assert_eq!(requests[0].body["model"], "m");
    assert_eq!(requests[0].body["encoding_format"], "float");
    assert_eq!(requests[1].body["input"][0], "text 128");
}

#[tokio::test]
async fn no_text_is_no_call() {
    let server = StandIn::start(vec![]).await;
    let embedded = embedder(&server.address).embed(&[]).await.unwrap();
    assert!(embedded.vectors.is_empty());
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_refusal_has_its_reason_and_not_the_key() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-canary."}}"#;
    let server = StandIn::start(vec![Play::status(401, "", body)]).await;
    let error = embedder(&server.address)
        .embed(&texts(1))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "llm_error:auth");
    assert!(!format!("{error:?}").contains("sk-canary"), "{error:?}");
}

#[tokio::test]
async fn vectors_of_two_lengths_are_refused_also_over_calls() {
    let other = Play::json(r#"{"data":[{"index":0,"embedding":[1,2,3]}]}"#);
    let server = StandIn::start(vec![answer(0, 1), other]).await;
    let embedder = embedder(&server.address);
    embedder.embed(&texts(1)).await.unwrap();
    let error = embedder.embed(&texts(1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model's answer cannot be read: a vector of 3 numbers among vectors of 2"
    );
}
