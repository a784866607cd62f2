//! An embedder that keeps what it has computed in a file, so that a second measurement does not wait for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use paraph_models::{Embedder, Embeddings, LocalEmbedder, ModelError};

use super::Failure;

type Key = u64;

/// The model and what it has said.
pub(crate) struct Cached {
    model: LocalEmbedder,
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    vectors: HashMap<Key, Vec<f32>>,
    /// Texts that were computed now, and how long that took.
    computed: usize,
    took: Duration,
}

impl Cached {
    pub(crate) fn open(model: LocalEmbedder, path: &Path) -> Result<Cached, Failure> {
        let dims = model.dimension().unwrap_or_default();
        let bytes = std::fs::read(path).unwrap_or_default();
        let mut known = Known::default();
        for one in bytes.chunks_exact(8 + 4 * dims) {
            let (key, numbers) = one.split_at(8);
            let numbers = numbers
                .chunks_exact(4)
                .filter_map(|four| Some(f32::from_le_bytes(four.try_into().ok()?)));
            known
                .vectors
                .insert(u64::from_le_bytes(key.try_into()?), numbers.collect());
        }
        Ok(Cached {
            model,
            path: path.to_owned(),
            known: Mutex::new(known),
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn save(&self) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        for (key, vector) in &self.known().vectors {
            bytes.extend(key.to_le_bytes());
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        Ok(std::fs::write(&self.path, bytes)?)
    }

    /// How quickly texts were embedded now, if any were.
    pub(crate) fn speed(&self) -> String {
        let known = self.known();
        match known.computed {
            0 => "all vectors were in the cache".to_owned(),
            n => format!(
                "{n} texts, {:.1} a second",
                n as f64 / known.took.as_secs_f64()
            ),
        }
    }
}

fn key(text: &str) -> Key {
    // FNV-1a: the same in every build.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Embedder for Cached {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dimension(&self) -> Option<usize> {
        self.model.dimension()
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        Box::pin(async move {
            let missing: Vec<String> = {
                let known = self.known();
                texts
                    .iter()
                    .filter(|text| !known.vectors.contains_key(&key(text)))
                    .cloned()
                    .collect()
            };
            if !missing.is_empty() {
                let began = Instant::now();
                let made = self.model.embed(&missing).await?;
                let mut known = self.known();
                known.took += began.elapsed();
                known.computed += missing.len();
                known
                    .vectors
                    .extend(missing.iter().map(|text| key(text)).zip(made.vectors));
            }
            let known = self.known();
            let vectors = texts
                .iter()
                .filter_map(|text| known.vectors.get(&key(text)).cloned())
                .collect();
            Ok(Embeddings {
                vectors,
                tokens: None,
            })
        })
    }
}
