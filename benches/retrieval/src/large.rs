//! How long a query takes in a corpus of 100,000 chunks, the embedding of the query left out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use paraph_models::{Embedder, Embeddings, ModelError};
use paraph_retrieval::{
    Batch, Corpus, Document, Identity, Kept, MemoryCorpus, Query, Retriever, Vectors, chunks,
};

use super::Failure;

const CHUNKS: usize = 100_000;
const DIMS: usize = 384;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn share(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word; some are as frequent as in a language, by Zipf's law over 50,000.
    fn word(&mut self) -> String {
        format!("w{}", (50_000_f64.powf(self.share())) as u64)
    }

    fn text(&mut self, words: usize) -> String {
        let words: Vec<String> = (0..words).map(|_| self.word()).collect();
        words.join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMS).map(|_| (self.share() - 0.5) as f32).collect()
    }
}

/// Answers at once, so that only the search is measured.
struct Instantly(Vec<f32>);

impl Embedder for Instantly {
    fn name(&self) -> &str {
        "bench:instantly"
    }

    fn dimension(&self) -> Option<usize> {
        Some(DIMS)
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        let vectors = vec![self.0.clone(); texts.len()];
        Box::pin(std::future::ready(Ok(Embeddings {
            vectors,
            tokens: None,
        })))
    }
}

pub(crate) async fn measure() -> Result<(), Failure> {
    let mut dice = Dice(88_172_645_463_325_252);
    let corpus: Arc<dyn Corpus> = Arc::new(MemoryCorpus::default());
    let (mut many, mut number) = (0, 0);
    while many < CHUNKS {
        let mut put = Vec::new();
        for _ in 0..500 {
            number += 1;
            let document = Document {
                repo: "bench/large".to_owned(),
                number,
                title: dice.text(8),
                body: dice.text(380),
                url: "https://example.org/".to_owned(),
                updated_at: "2026-01-01T00:00:00Z".to_owned(),
                ..Document::default()
            };
            let vectors: Vec<Vec<f32>> = chunks(&document).iter().map(|_| dice.vector()).collect();
            many += vectors.len();
            put.push(Kept {
                document,
                vectors: Vectors::of(&vectors)?,
            });
        }
        let identity = Identity::embedded("bench:instantly", DIMS);
        corpus
            .apply(Batch {
                identity,
                put,
                remove: vec![],
                cursor: None,
            })
            .await?;
    }
    let retriever = Retriever::new(corpus, Some(Arc::new(Instantly(dice.vector()))));
    let began = Instant::now();
    retriever.search(&Query::new("w1")).await?;
    println!(
        "\n{many} chunks of {number} issues, read into memory in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    for words in [4, 60, 250] {
        let mut took: Vec<Duration> = Vec::new();
        for _ in 0..100 {
            let query = Query::new(dice.text(words));
            let began = Instant::now();
            retriever.search(&query).await?;
            took.push(began.elapsed());
        }
        took.sort();
        let at = |place: usize| took.get(place).map_or(0.0, |took| took.as_secs_f64() * 1e3);
        println!(
            "  queries of {words} words: median {:.1} ms, 95th of 100 {:.1} ms",
            at(50),
            at(94)
        );
    }
    Ok(())
}
