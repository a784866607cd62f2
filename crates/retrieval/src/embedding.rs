//! Documents with the vectors of their chunks.
//!
//! `ingest` calls it for what is new, and for what has lost its vectors.

use paraph_models::Embedder;

use crate::chunk::{chunks, embedded};
use crate::corpus::{Identity, Kept};
use crate::document::Document;
use crate::error::Error;
use crate::vectors::Vectors;

/// How many texts are embedded at once: enough for a server's batch, and few enough that whoever looks on sees it go on.
const TEXTS: usize = 64;

/// What a corpus is made with, if this embeds for it. A model whose vectors' length is not known is asked once.
///
/// # Errors
/// What the embedder answers.
pub async fn identity_of(embedder: Option<&dyn Embedder>) -> Result<Identity, Error> {
    let Some(embedder) = embedder else {
        return Ok(Identity::lexical());
    };
    let dims = match embedder.dimension() {
        Some(dims) => dims,
        None => {
            let answer = embedder.embed(&["an issue".to_owned()]).await?;
            answer.vectors.first().map_or(0, Vec::len)
        }
    };
    Ok(Identity::embedded(embedder.name(), dims))
}

/// Documents with their vectors, in order; `seen` is told how many more chunks are done. Without an embedder they have
/// none.
pub(crate) async fn with_vectors(
    documents: Vec<Document>,
    embedder: Option<&dyn Embedder>,
    mut seen: impl FnMut(usize),
) -> Result<Vec<Kept>, Error> {
    let counts: Vec<usize> = documents
        .iter()
        .map(|document| chunks(document).len())
        .collect();
    let Some(embedder) = embedder else {
        seen(counts.iter().sum());
        let bare = |document| Kept {
            document,
            vectors: Vectors::default(),
        };
        return Ok(documents.into_iter().map(bare).collect());
    };
    let texts: Vec<String> = documents
        .iter()
        .flat_map(chunks)
        .map(|chunk| embedded(&chunk.title, &chunk.text))
        .collect();
    let mut vectors = embed_all(&texts, embedder, &mut seen).await?.into_iter();
    let kept = documents.into_iter().zip(counts).map(|(document, count)| {
        let own: Vec<Vec<f32>> = vectors.by_ref().take(count).collect();
        let vectors = Vectors::of(&own)?;
        Ok(Kept { document, vectors })
    });
    kept.collect()
}

/// Texts of about the same length go together, for a batch takes as long as its longest one.
async fn embed_all(
    texts: &[String],
    embedder: &dyn Embedder,
    seen: &mut impl FnMut(usize),
) -> Result<Vec<Vec<f32>>, Error> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|place| texts.get(*place).map_or(0, String::len));
    let mut vectors = vec![Vec::new(); texts.len()];
    for places in order.chunks(TEXTS) {
        let some: Vec<String> = places
            .iter()
            .filter_map(|place| texts.get(*place).cloned())
            .collect();
        let answer = embedder.embed(&some).await?;
        if answer.vectors.len() != some.len() {
            return Err(Error::Vectors {
                problem: format!("{} vectors for {} texts", answer.vectors.len(), some.len()),
            });
        }
        for (place, vector) in places.iter().zip(answer.vectors) {
            if let Some(slot) = vectors.get_mut(*place) {
                *slot = vector;
            }
        }
        seen(some.len());
    }
    Ok(vectors)
}
