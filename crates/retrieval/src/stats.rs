//! How much there is in a corpus, by repository.
//!
//! Called by listings. Everything is read once, a page at a time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chunk::ranges;
use crate::corpus::{Corpus, Identity, Kept, MAX_BATCH};
use crate::document::IssueState;
use crate::error::Error;

/// What is there of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RepoStats {
    /// `owner/name`, as the tracker writes it.
    pub repo: String,
    /// How many issues.
    pub issues: u64,
    /// Of these, how many are closed.
    pub closed: u64,
    /// How many say how they ended.
    pub resolved: u64,
    /// How many chunks.
    pub chunks: u64,
    /// How many issues have no vectors, though others have.
    pub unembedded: u64,
    /// The oldest change of an issue.
    pub oldest: Option<String>,
    /// The newest change of an issue.
    pub newest: Option<String>,
    /// When everything was last read; none while it is still being read for the first time.
    pub read_at: Option<String>,
    /// Whether it was ended in the middle and goes on with the next ingest.
    pub unfinished: bool,
}

/// What is there in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CorpusStats {
    /// What the corpus was made with; none while it is empty.
    pub identity: Option<Identity>,
    /// By name.
    pub repos: Vec<RepoStats>,
}

impl CorpusStats {
    /// Reads a corpus.
    ///
    /// # Errors
    /// What the corpus answers.
    pub async fn of(corpus: &dyn Corpus) -> Result<Self, Error> {
        let identity = corpus.state().await?.identity;
        let embeds = identity
            .as_ref()
            .is_some_and(|identity| identity.model.is_some());
        let mut repos: BTreeMap<String, RepoStats> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = corpus.page(after.as_ref(), MAX_BATCH).await?;
            let Some(last) = page.last() else {
                break;
            };
            after = Some(last.document.id());
            for kept in page {
                let stats = repos.entry(kept.document.id().repo).or_default();
                stats.add(&kept, embeds);
            }
        }
        for cursor in corpus.cursors().await? {
            let stats = repos.entry(cursor.repo.clone()).or_default();
            if stats.repo.is_empty() {
                stats.repo = cursor.repo;
            }
            stats.read_at = cursor.finished_at;
            stats.unfinished = cursor.page.is_some();
        }
        Ok(CorpusStats {
            identity,
            repos: repos.into_values().collect(),
        })
    }

    /// How many issues there are.
    pub fn issues(&self) -> u64 {
        self.repos.iter().map(|repo| repo.issues).sum()
    }
}

impl RepoStats {
    fn add(&mut self, kept: &Kept, embeds: bool) {
        let document = &kept.document;
        self.repo.clone_from(&document.repo);
        self.issues += 1;
        self.closed += u64::from(document.state == IssueState::Closed);
        self.resolved += u64::from(document.resolution.is_some());
        self.chunks += ranges(&document.text()).len() as u64;
        self.unembedded += u64::from(embeds && kept.vectors.is_empty());
        let at = Some(document.updated_at.clone());
        if self.oldest.is_none() || at < self.oldest {
            self.oldest.clone_from(&at);
        }
        if at > self.newest {
            self.newest = at;
        }
    }
}
