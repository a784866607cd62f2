//! Results of nodes, kept in memory for use again: bounded, with an age.

use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// How many results one graph keeps; the oldest go first.
const ENTRIES: usize = 1024;

/// A node, and a hash of what it read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    node: usize,
    read: [u8; 32],
}

impl Key {
    pub(crate) fn of(node: usize, state: &[u8], payload: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((state.len() as u64).to_be_bytes());
        hash.update(state);
        hash.update(payload);
        Key {
            node,
            read: hash.finalize().into(),
        }
    }
}

/// Results as the nodes returned them: what cannot be written as JSON, or is never saved, is kept too.
pub(crate) struct Cache<R> {
    entries: HashMap<Key, (Instant, R)>,
    order: VecDeque<Key>,
}

impl<R> Default for Cache<R> {
    fn default() -> Self {
        Cache {
            entries: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<R: Clone> Cache<R> {
    /// A result that is not older than `ttl`.
    pub(crate) fn get(&self, key: &Key, ttl: Duration) -> Option<R> {
        let (at, result) = self.entries.get(key)?;
        (at.elapsed() < ttl).then(|| result.clone())
    }

    pub(crate) fn put(&mut self, key: Key, result: R) {
        if self.entries.insert(key, (Instant::now(), result)).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > ENTRIES {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    /// Forgets the results of these nodes, or of all.
    pub(crate) fn clear(&mut self, nodes: Option<&Vec<usize>>) {
        let gone = |key: &Key| nodes.is_none_or(|nodes| nodes.contains(&key.node));
        self.entries.retain(|key, _| !gone(key));
        self.order.retain(|key| !gone(key));
    }
}
