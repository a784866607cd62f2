//! Long-term memory, across threads: small documents in namespaces, with search and expiry.
//!
//! A trait for stores to implement, and one implementation in this process. The engine only hands it
//! to nodes (`ctx.memory()`).

use crate::{Error, clock::Clock, clock::SystemClock, key::memory_key_fits, session::lock};
use futures::future::BoxFuture;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// A namespace: labels from the general to the particular, such as `["user", "42"]`.
pub type Namespace = Vec<String>;

/// One document.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Where it is.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// A JSON object, usually.
    pub value: Value,
    /// When it was first written, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When it was last written.
    pub updated_ms: u64,
    /// How well it fits the query, from 0 to 1; only in results of a search with text.
    pub score: Option<f64>,
}

/// What to look for.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Words to look for; results are then ordered by how many of them they contain, unless the
    /// memory ranks by meaning.
    pub text: Option<String>,
    /// Fields that the value must have, by equality.
    pub filter: BTreeMap<String, Value>,
    /// At most so many results.
    pub limit: usize,
    /// So many results are left out first.
    pub offset: usize,
}

impl Default for Query {
    fn default() -> Self {
        Query {
            text: None,
            filter: BTreeMap::new(),
            limit: 10,
            offset: 0,
        }
    }
}

impl From<&str> for Query {
    fn from(text: &str) -> Self {
        Query {
            text: Some(text.to_owned()),
            ..Query::default()
        }
    }
}

/// Long-term memory.
///
/// ```
/// use paraph_graph::*;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
/// let memory = MemoryOf::default();
/// let user = vec!["user".to_owned(), "42".to_owned()];
/// memory.put(&user, "diet", serde_json::json!({"likes": "vegetarian food"}), None).await?;
/// let found = memory.search(&user, &"vegetarian".into()).await?;
/// assert_eq!((found.len(), found[0].key.as_str()), (1, "diet"));
/// # Ok(()) }
/// ```
pub trait Memory: Send + Sync + 'static {
    /// Writes a document, over an older one of the same name. With `ttl` it is gone after that time.
    ///
    /// # Errors
    /// [`Error::LongKey`]; [`Error::Store`].
    fn put<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
        value: Value,
        ttl: Option<Duration>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Reads a document; `None` if there is none (any more).
    ///
    /// # Errors
    /// [`Error::Store`].
    fn get<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Item>, Error>>;

    /// Removes a document; says whether there was one.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn delete<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
    ) -> BoxFuture<'a, Result<bool, Error>>;

    /// Documents in a namespace and those below it: best first, or newest first without text.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn search<'a>(
        &'a self,
        namespace: &'a [String],
        query: &'a Query,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>>;

    /// The namespaces that begin with `prefix`, in order.
    ///
    /// # Errors
    /// [`Error::Store`].
    fn namespaces<'a>(
        &'a self,
        prefix: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Namespace>, Error>>;
}

/// Memory in this process. Ranks by the share of the query's words that a document contains.
pub struct MemoryOf {
    items: Mutex<BTreeMap<(Namespace, String), Kept>>,
    clock: Arc<dyn Clock>,
}

struct Kept {
    item: Item,
    expires_ms: Option<u64>,
}

impl Default for MemoryOf {
    fn default() -> Self {
        Self::with_clock(Arc::new(SystemClock))
    }
}

impl MemoryOf {
    /// One whose documents expire by another clock.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        MemoryOf {
            items: Mutex::default(),
            clock,
        }
    }

    fn alive<T>(&self, read: impl FnOnce(&mut BTreeMap<(Namespace, String), Kept>) -> T) -> T {
        let now = self.clock.now_ms();
        let mut items = lock(&self.items);
        items.retain(|_, kept| kept.expires_ms.is_none_or(|at| at > now));
        read(&mut items)
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, Error>> {
    Box::pin(std::future::ready(Ok(value)))
}

/// The share of `words` that the document contains.
fn score(item: &Item, words: &[String]) -> f64 {
    let text = format!("{} {}", item.key, item.value).to_lowercase();
    let found = words.iter().filter(|w| text.contains(w.as_str())).count();
    found as f64 / words.len() as f64
}

impl Memory for MemoryOf {
    fn put<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
        value: Value,
        ttl: Option<Duration>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        if let Err(refused) = memory_key_fits(namespace, key) {
            return Box::pin(std::future::ready(Err(refused)));
        }
        let now = self.clock.now_ms();
        let expires_ms =
            ttl.map(|ttl| now.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
        self.alive(|items| {
            let place = (namespace.to_vec(), key.to_owned());
            let created_ms = items.get(&place).map_or(now, |kept| kept.item.created_ms);
            let item = Item {
                namespace: place.0.clone(),
                key: place.1.clone(),
                value,
                created_ms,
                updated_ms: now,
                score: None,
            };
            items.insert(place, Kept { item, expires_ms });
        });
        ready(())
    }

    fn get<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Item>, Error>> {
        let place = (namespace.to_vec(), key.to_owned());
        ready(self.alive(|items| items.get(&place).map(|kept| kept.item.clone())))
    }

    fn delete<'a>(
        &'a self,
        namespace: &'a [String],
        key: &'a str,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        let place = (namespace.to_vec(), key.to_owned());
        ready(self.alive(|items| items.remove(&place).is_some()))
    }

    fn search<'a>(
        &'a self,
        namespace: &'a [String],
        query: &'a Query,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        let text = query.text.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let fits = |item: &Item| {
            item.namespace.starts_with(namespace)
                && query
                    .filter
                    .iter()
                    .all(|(k, v)| item.value.get(k) == Some(v))
        };
        let mut found: Vec<Item> = self.alive(|items| {
            let all = items.values().map(|kept| &kept.item);
            all.filter(|item| fits(item)).cloned().collect()
        });
        if words.is_empty() {
            found.sort_by_key(|item| std::cmp::Reverse(item.updated_ms));
        } else {
            for item in &mut found {
                item.score = Some(score(item, &words));
            }
            found.retain(|item| item.score > Some(0.0));
            found.sort_by(|a, b| {
                b.score
                    .partial_cmp(&a.score)
                    .unwrap_or(std::cmp::Ordering::Equal)
            });
        }
        ready(
            found
                .into_iter()
                .skip(query.offset)
                .take(query.limit)
                .collect(),
        )
    }

    fn namespaces<'a>(
        &'a self,
        prefix: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Namespace>, Error>> {
        let mut all: Vec<_> = self.alive(|items| items.keys().map(|(n, _)| n.clone()).collect());
        all.dedup();
        all.retain(|n| n.starts_with(prefix));
        ready(all)
    }
}
