//! What is kept of GitHub's answers, by their addresses, with the tag under which GitHub says whether they still hold.
//!
//! In memory and bounded: what is asked for again costs no part of the hourly limit as long as nothing changed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use reqwest::Url;

use super::backend::Answered;

/// How many bytes of bodies are kept.
const MAX_BYTES: usize = 32 << 20;

/// How many answers are kept.
const MAX_ENTRIES: usize = 1_024;

/// The answers of one client.
#[derive(Default)]
pub(super) struct Cache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    answers: HashMap<String, Answered>,
    bytes: usize,
}

impl Cache {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tag of what is kept.
    pub(super) fn etag(&self, url: &Url) -> Option<String> {
        let kept = self.kept();
        kept.answers.get(url.as_str())?.heads.etag.clone()
    }

    /// What is kept.
    pub(super) fn get(&self, url: &Url) -> Option<Answered> {
        self.kept().answers.get(url.as_str()).cloned()
    }

    /// Keeps an answer, if it has a tag. When there are too many, all the others are forgotten: they are asked for
    /// again, and that is all.
    pub(super) fn keep(&self, url: &Url, answered: &Answered) {
        if answered.status != 200 || answered.heads.etag.is_none() {
            return;
        }
        let size = answered.body.len();
        if size > MAX_BYTES / 4 {
            return;
        }
        let mut kept = self.kept();
        if kept.answers.len() >= MAX_ENTRIES || kept.bytes + size > MAX_BYTES {
            *kept = Kept::default();
        }
        let old = kept.answers.insert(url.to_string(), answered.clone());
        let old = old.map_or(0, |old| old.body.len());
        kept.bytes = (kept.bytes + size).saturating_sub(old);
    }
}
