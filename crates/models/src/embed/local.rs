//! [`LocalEmbedder`]: a sentence model from files on disk, computed here. It opens no connection.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use futures::future::BoxFuture;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

use super::{Embedder, Embeddings, check};
use crate::error::{Error, ModelError};

/// Largest file of weights, in bytes. It is read whole: mapping a file that somebody changes would be unsound.
const MAX_WEIGHTS: u64 = 1024 * 1024 * 1024;

/// Largest other file, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Texts that are computed at once.
const BATCH: usize = 16;

/// Tokens of a text that are read, as the model's own authors do; what comes later is cut off.
const MAX_TOKENS: usize = 256;

/// A BERT sentence model such as all-MiniLM-L6-v2: the mean of its tokens' vectors, of length 1.
///
/// The folder has `config.json`, `tokenizer.json` and `model.safetensors`, as the model's authors publish them. Texts
/// are cut after 256 tokens.
pub struct LocalEmbedder {
    name: String,
    dimension: usize,
    /// Shared with the thread that computes.
    model: Arc<Model>,
}

struct Model {
    bert: BertModel,
    tokenizer: Tokenizer,
}

impl LocalEmbedder {
    /// Reads the model's files. This takes a while, as they are large.
    ///
    /// # Errors
    /// [`Error::EmbedderFile`] with the file that is missing or cannot be used.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let dir = dir.as_ref();
        let path = |name: &str| dir.join(name);
        let config = read(&path("config.json"), MAX_FILE)?;
        let config: Config =
            serde_json::from_slice(&config).map_err(|error| wrong(&path("config.json"), &error))?;
        let tokenizer = read(&path("tokenizer.json"), MAX_FILE)?;
        let refuse = |error: tokenizers::Error| wrong(&path("tokenizer.json"), &error);
        let mut tokenizer = Tokenizer::from_bytes(tokenizer).map_err(refuse)?;
        let longest = TruncationParams {
            max_length: MAX_TOKENS.min(config.max_position_embeddings),
            ..TruncationParams::default()
        };
        tokenizer.with_truncation(Some(longest)).map_err(refuse)?;
        tokenizer.with_padding(Some(PaddingParams {
            pad_id: u32::try_from(config.pad_token_id).unwrap_or_default(),
            ..PaddingParams::default()
        }));
        let weights = read(&path("model.safetensors"), MAX_WEIGHTS)?;
        let refuse = |error: candle_core::Error| wrong(&path("model.safetensors"), &error);
        let weights = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu)
            .map_err(refuse)?;
        let bert = BertModel::load(weights, &config).map_err(refuse)?;
        let name = dir.file_name().unwrap_or(dir.as_os_str());
        Ok(Self {
            name: format!("local:{}", name.display()),
            dimension: config.hidden_size,
            model: Arc::new(Model { bert, tokenizer }),
        })
    }
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| wrong(path, &error))?;
    let mut limited = file.take(limit + 1);
    limited
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(path, &error))?;
    if bytes.len() as u64 > limit {
        return Err(wrong(path, &format!("larger than {limit} bytes")));
    }
    Ok(bytes)
}

fn wrong(path: &Path, problem: &dyn std::fmt::Display) -> Error {
    Error::EmbedderFile {
        path: PathBuf::from(path),
        problem: problem.to_string(),
    }
}

impl Model {
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let encoded = self.tokenizer.encode_batch(batch.to_vec(), true);
            let encoded = encoded.map_err(|error| error.to_string())?;
            let ids: Vec<&[u32]> = encoded.iter().map(|text| text.get_ids()).collect();
            let mask: Vec<&[u32]> = encoded
                .iter()
                .map(|text| text.get_attention_mask())
                .collect();
            vectors.extend(
                self.compute(&ids, &mask)
                    .map_err(|error| error.to_string())?,
            );
        }
        Ok(vectors)
    }

    /// The mean over each text's own tokens, scaled to length 1.
    fn compute(&self, ids: &[&[u32]], mask: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let rows = ids.len();
        let columns = ids.first().map_or(0, |row| row.len());
        let ids = Tensor::from_vec(ids.concat(), (rows, columns), &Device::Cpu)?;
        let mask = Tensor::from_vec(mask.concat(), (rows, columns), &Device::Cpu)?;
        let tokens = self.bert.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sum = tokens.broadcast_mul(&mask)?.sum(1)?;
        let mean = sum.broadcast_div(&mask.sum(1)?)?;
        let length = mean.sqr()?.sum_keepdim(1)?.sqrt()?;
        mean.broadcast_div(&length)?.to_vec2()
    }
}

impl Embedder for LocalEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> Option<usize> {
        Some(self.dimension)
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        Box::pin(async move {
            check(texts)?;
            let (model, texts) = (Arc::clone(&self.model), texts.to_vec());
            // It computes for long; whoever else runs here must not wait for it.
            let computed = tokio::task::spawn_blocking(move || model.embed(&texts)).await;
            let vectors = computed.map_err(|error| error.to_string()).flatten();
            let vectors = vectors.map_err(|message| ModelError::Decode { message })?;
            Ok(Embeddings {
                vectors,
                tokens: None,
            })
        })
    }
}
