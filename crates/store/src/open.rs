//! Opening a store by its address, as configurations name it.

use crate::{error::Error, options::Options, sqlite::Sqlite, verify::Verify};
use paraph_graph::{Memory, MemoryOf, MemoryStore, Threads};
use paraph_retrieval::{Corpus, MemoryCorpus};
use std::sync::Arc;

/// An opened store, in all its roles. They share one database.
#[derive(Clone)]
pub struct Opened {
    /// Checkpoints, threads, runs and their log. (An `Arc` of it is a [`paraph_graph::Store`] too.)
    pub threads: Arc<dyn Threads>,
    /// Long-term memory.
    pub memory: Arc<dyn Memory>,
    /// The gateway's records and counters.
    pub gateway: Arc<dyn paraph_gateway::Store>,
    /// Issues that agents may cite.
    pub corpus: Arc<dyn Corpus>,
    /// What looks for damage; nothing where none can be.
    pub verify: Option<Arc<dyn Verify>>,
}

/// Opens `sqlite://PATH`, `postgres://…` (also `postgresql://…`), or `memory:`, which is gone with the
/// process.
///
/// # Errors
/// [`Error::Url`] for another address; otherwise why that store cannot be opened.
pub async fn open(url: &str, options: Options) -> Result<Opened, Error> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    match (scheme, rest.strip_prefix("//").unwrap_or(rest)) {
        ("sqlite", path) => Ok(all(Sqlite::open(path, options).await?)),
        #[cfg(feature = "postgres")]
        ("postgres" | "postgresql", _) => {
            Ok(all(crate::postgres::Postgres::connect(url, options).await?))
        }
        #[cfg(not(feature = "postgres"))]
        ("postgres" | "postgresql", _) => {
            Err(wrong("postgres://…", "it was built without Postgres"))
        }
        ("memory", "") => match options.key {
            None => Ok(Opened {
                threads: MemoryStore::with_events(),
                memory: Arc::new(MemoryOf::default()),
                gateway: paraph_gateway::MemoryStore::shared(),
                corpus: Arc::new(MemoryCorpus::default()),
                verify: None,
            }),
            Some(_) => Err(wrong(url, "what is only in memory is not encrypted")),
        },
        ("memory", _) => Err(wrong(url, "a store in memory has no name")),
        // Whatever it is, it may have a password in it.
        _ => Err(wrong(&format!("{scheme}:…"), "its kind is not known")),
    }
}

fn wrong(url: &str, why: &str) -> Error {
    Error::Url {
        url: url.to_owned(),
        why: why.to_owned(),
    }
}

/// One store in its roles.
fn all<S: Threads + Memory + paraph_gateway::Store + Corpus + Verify>(store: S) -> Opened {
    let store = Arc::new(store);
    Opened {
        threads: store.clone(),
        memory: store.clone(),
        gateway: store.clone(),
        corpus: store.clone(),
        verify: Some(store),
    }
}
