//! The corpus of the settings, ready to be searched: what embeds for it, and what its errors mean here.
//!
//! Commands and tools ask here, so that all of them search in the same way. Nothing here shows a key.

use crate::choice::model_settings;
use crate::config::Config;
use crate::failure::Failure;
use crate::stores::{Kept, address, key};
use paraph_models::{Embedder, EmbedderSpec, init_embedder};
use paraph_retrieval::{Error, Retriever};
use paraph_store::Options;
use paraph_tools::OpenCorpus;
use std::sync::Arc;

/// The setting that names the embedding model.
pub(crate) const EMBEDDER: &str = "corpus.embedder";

/// The setting that names repositories.
pub(crate) const REPOS: &str = "corpus.repos";

/// What embeds chunks and queries; nothing if they are searched by their words only.
pub(crate) fn embedder(config: &Config) -> Result<Option<Arc<dyn Embedder>>, Failure> {
    let Some(found) = config
        .get(EMBEDDER)?
        .filter(|found| found.text.trim() != "none")
    else {
        return Ok(None);
    };
    let spec: EmbedderSpec = found
        .text
        .parse()
        .map_err(|error| found.wrong(EMBEDDER, error))?;
    let made = init_embedder(&spec, &model_settings(config)?);
    made.map(Some).map_err(|error| found.wrong(EMBEDDER, error))
}

/// Searches the corpus of an opened store.
pub(crate) fn retriever(config: &Config, kept: &Kept) -> Result<Retriever, Failure> {
    Ok(Retriever::new(
        kept.opened.corpus.clone(),
        embedder(config)?,
    ))
}

/// Opens the corpus of the settings when a tool first asks for it: most runs never do.
pub(crate) fn opener(config: &Config) -> Result<OpenCorpus, Failure> {
    let url = address(config)?.text;
    let options = Options {
        key: key(config)?,
        ..Options::default()
    };
    let embedder = embedder(config)?;
    Ok(Arc::new(move || {
        let (url, options, embedder) = (url.clone(), options.clone(), embedder.clone());
        Box::pin(async move {
            let opened = paraph_store::open(&url, options).await;
            let opened = opened.map_err(|error| error.to_string())?;
            Ok(Retriever::new(opened.corpus, embedder))
        })
    }))
}

/// The repositories that the settings name.
pub(crate) fn repos(config: &Config) -> Result<Vec<String>, Failure> {
    let Some(found) = config.get(REPOS)? else {
        return Ok(Vec::new());
    };
    let names = found
        .text
        .split([',', ' ', '\n'])
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names
        .map(|name| match paraph_retrieval::check_repo(name) {
            Ok(()) => Ok(name.to_owned()),
            Err(error) => Err(found.wrong(REPOS, error)),
        })
        .collect()
}

impl From<Error> for Failure {
    /// What is kept or fetched elsewhere failed there; the rest somebody can put right.
    fn from(error: Error) -> Failure {
        match error {
            Error::Store(_)
            | Error::Source(_)
            | Error::Embedding(_)
            | Error::Vectors { .. }
            | Error::Damaged { .. } => Failure::Broken(error.to_string()),
            error => Failure::Usage(error.to_string()),
        }
    }
}
