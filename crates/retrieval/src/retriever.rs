//! [`Retriever`]: answers queries over a corpus, which it reads into memory and reads again when it has changed.
//!
//! Agents, tools and commands call it. It writes nothing.

use std::sync::Arc;

use paraph_models::Embedder;
use tokio::sync::Mutex;

use crate::chunk::TEXT_FORM;
use crate::corpus::{Corpus, Identity, MAX_BATCH};
use crate::error::Error;
use crate::floor::Floors;
use crate::hit::{Hit, Query, head};
use crate::index::{Asked, Index};
use crate::vectors::Vectors;

/// How much of a query is embedded, in characters.
pub(crate) const EMBEDDED_CHARS: usize = 2_000;

/// How often reading begins anew because the corpus changes meanwhile.
const READS: usize = 5;

/// Finds what of a corpus is like a query. Clones share what was read.
#[derive(Clone)]
pub struct Retriever {
    corpus: Arc<dyn Corpus>,
    embedder: Option<Arc<dyn Embedder>>,
    read: Arc<Mutex<Option<Arc<Snapshot>>>>,
}

/// The corpus as of one revision.
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) identity: Option<Identity>,
    pub(crate) index: Index,
}

impl Retriever {
    /// Over a corpus, with the embedder that it was made with. Without one, everything is searched by words.
    pub fn new(corpus: Arc<dyn Corpus>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Retriever {
            corpus,
            embedder,
            read: Arc::default(),
        }
    }

    /// The corpus that is searched.
    pub fn corpus(&self) -> &Arc<dyn Corpus> {
        &self.corpus
    }

    /// What embeds the queries.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.as_ref()
    }

    /// The best hits, the best one first; fewer than were asked for if no more share a word or have a vector.
    ///
    /// # Errors
    /// [`Error::Query`] for what cannot be asked, [`Error::Identity`] if the corpus was made with another model; what the
    /// embedder or the corpus answers.
    pub async fn search(&self, query: &Query) -> Result<Vec<Hit>, Error> {
        query.check()?;
        let snapshot = self.snapshot().await?;
        self.check_model(snapshot.identity.as_ref())?;
        let vector = match snapshot.index.len() > snapshot.index.unembedded() {
            true => self.embed(query).await?,
            false => None,
        };
        search_in(snapshot, query.clone(), vector).await
    }

    /// The floors, and what they have to fit.
    ///
    /// # Errors
    /// What the corpus answers.
    pub async fn floors(&self) -> Result<Floors, Error> {
        let snapshot = self.snapshot().await?;
        Ok(Floors {
            floors: self.corpus.floors().await?,
            identity: snapshot.identity.clone(),
            corpus_hash: snapshot.index.hash(),
            documents: snapshot.index.len() as u64,
        })
    }

    /// The vector of a query, if there is an embedder.
    pub(crate) async fn embed(&self, query: &Query) -> Result<Option<Vectors>, Error> {
        let Some(embedder) = &self.embedder else {
            return Ok(None);
        };
        let text = head(query.read(), EMBEDDED_CHARS).to_owned();
        let answer = embedder.embed(&[text]).await?;
        Vectors::of(&answer.vectors).map(Some)
    }

    /// That the corpus's vectors can be compared with those of the embedder.
    pub(crate) fn check_model(&self, identity: Option<&Identity>) -> Result<(), Error> {
        let (Some(kept), Some(embedder)) = (identity, &self.embedder) else {
            return Ok(());
        };
        let asked = Identity {
            model: Some(embedder.name().to_owned()),
            dims: embedder.dimension().unwrap_or(kept.dims),
            text_form: TEXT_FORM,
        };
        match asked == *kept {
            true => Ok(()),
            false => Err(Error::Identity {
                kept: kept.to_string(),
                asked: asked.to_string(),
            }),
        }
    }

    /// The corpus as it is now; read again only if it has changed.
    pub(crate) async fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        let mut read = self.read.lock().await;
        let state = self.corpus.state().await?;
        if let Some(known) = read
            .as_ref()
            .filter(|known| known.revision == state.revision)
        {
            return Ok(Arc::clone(known));
        }
        for _ in 0..READS {
            let before = self.corpus.state().await?;
            let index = self.index().await?;
            if self.corpus.state().await?.revision == before.revision {
                let snapshot = Arc::new(Snapshot {
                    revision: before.revision,
                    identity: before.identity,
                    index,
                });
                *read = Some(Arc::clone(&snapshot));
                return Ok(snapshot);
            }
        }
        Err(Error::Query {
            problem: "the corpus is being changed all the time; try again when it has been read in"
                .to_owned(),
        })
    }

    async fn index(&self) -> Result<Index, Error> {
        let mut index = Index::default();
        let mut after = None;
        loop {
            let page = self.corpus.page(after.as_ref(), MAX_BATCH).await?;
            let Some(last) = page.last() else {
                return Ok(index);
            };
            after = Some(last.document.id());
            // Taking texts apart computes for long; whoever else runs here must not wait for it.
            let added = tokio::task::spawn_blocking(move || {
                let mut index = index;
                page.into_iter().try_for_each(|kept| index.add(kept))?;
                Ok::<_, Error>(index)
            });
            index = added.await.map_err(Error::store)??;
        }
    }
}

/// Searches a snapshot, beside everything else that runs.
pub(crate) async fn search_in(
    snapshot: Arc<Snapshot>,
    query: Query,
    vector: Option<Vectors>,
) -> Result<Vec<Hit>, Error> {
    let searched = tokio::task::spawn_blocking(move || {
        snapshot.index.search(&Asked {
            query: &query,
            vector,
        })
    });
    searched.await.map_err(Error::store)
}

#[cfg(test)]
mod tests;
