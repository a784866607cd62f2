//! Bringing issues into a corpus: a page at a time from an [`IssueSource`], so that it can be ended at any moment and
//! goes on where it was.
//!
//! The command line calls it. What has not changed is not embedded again. It reads no tracker itself, and has no clock.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use paraph_models::Embedder;

use crate::corpus::{Batch, Corpus, Cursor, Identity};
use crate::document::{Document, IssueRef, IssueState, check_repo};
use crate::embedding::{identity_of, with_vectors};
use crate::error::Error;

/// How many documents become one change of the corpus.
const GROUP: usize = 16;

/// The most pages of one repository.
const MAX_PAGES: usize = 100_000;

/// What is asked of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// `owner/name`.
    pub repo: String,
    /// Whether closed issues are wanted too, with how they ended. Where `since` is given, they are handed over in any
    /// case, so that it can be seen that an issue was closed.
    pub closed: bool,
    /// Only what changed at this time or later.
    pub since: Option<String>,
    /// Which page, in the source's own words; the first one if there are none.
    pub page: Option<String>,
}

/// A page of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Issues; what changed first comes first.
    pub documents: Vec<Document>,
    /// Numbers of issues that are no more.
    pub gone: Vec<u64>,
    /// The next page; none if this is the last.
    pub next: Option<String>,
}

/// Where issues come from. It waits by itself where a tracker wants it to, and tries again what may go better.
pub trait IssueSource: Send + Sync {
    /// One page.
    ///
    /// # Errors
    /// [`Error::Source`] if the tracker cannot be read.
    fn page<'a>(&'a self, request: &'a PageRequest) -> BoxFuture<'a, Result<Page, Error>>;
}

/// What is to be brought in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ingest {
    /// `owner/name`.
    pub repo: String,
    /// Closed issues too.
    pub closed: bool,
    /// Only what changed since, the first time; later, what changed since the last time.
    pub since: Option<String>,
    /// At most so many issues now; the next time goes on behind them.
    pub limit: Option<usize>,
    /// From the beginning, whatever was read before. What is not met again is removed.
    pub anew: bool,
}

/// How it goes, told again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Pages that were read.
    pub pages: usize,
    /// Issues that were met.
    pub issues: usize,
    /// Of these, how many were new or had changed.
    pub changed: usize,
    /// How many were removed.
    pub removed: usize,
    /// Chunks that were embedded, or made if nothing is embedded.
    pub chunks: usize,
    /// Issues that no corpus takes.
    pub refused: usize,
    /// Whether everything was read, and not only up to a limit.
    pub complete: bool,
}

/// What ingesting needs.
pub struct Ingestion<'a> {
    /// Where issues go.
    pub corpus: &'a dyn Corpus,
    /// What embeds them; without one they are found by words only.
    pub embedder: Option<&'a dyn Embedder>,
    /// Where issues come from.
    pub source: &'a dyn IssueSource,
    /// The time now, RFC 3339.
    pub now: &'a (dyn Fn() -> String + Sync),
    /// Is told how it goes.
    pub progress: &'a (dyn Fn(&Progress) + Sync),
}

impl Ingestion<'_> {
    /// Brings a repository in, or goes on with it.
    ///
    /// # Errors
    /// [`Error::Identity`] if the corpus was made with another model, before anything is read; what the source, the
    /// embedder or the corpus answers. What was brought in until then stays.
    pub async fn run(&self, ingest: &Ingest) -> Result<Progress, Error> {
        check_repo(&ingest.repo)?;
        let identity = identity_of(self.embedder).await?;
        let state = self.corpus.state().await?;
        if let Some(kept) = state.identity.filter(|kept| *kept != identity) {
            return Err(Error::Identity {
                kept: kept.to_string(),
                asked: identity.to_string(),
            });
        }
        let mut reading = Reading::begin(self, ingest, identity).await?;
        for _ in 0..MAX_PAGES {
            if reading.page().await? {
                return Ok(reading.progress);
            }
        }
        Err(Error::Limit {
            what: format!("pages of {}", ingest.repo),
            found: MAX_PAGES + 1,
            limit: MAX_PAGES,
        })
    }
}

/// A repository that is being read.
struct Reading<'a> {
    to: &'a Ingestion<'a>,
    ingest: &'a Ingest,
    identity: Identity,
    known: BTreeMap<u64, [u8; 32]>,
    cursor: Cursor,
    /// Numbers that were met, if everything is read from its beginning.
    met: Option<BTreeSet<u64>>,
    progress: Progress,
}

impl<'a> Reading<'a> {
    async fn begin(
        to: &'a Ingestion<'a>,
        ingest: &'a Ingest,
        identity: Identity,
    ) -> Result<Reading<'a>, Error> {
        let known = to.corpus.known(&ingest.repo).await?;
        let known = known
            .into_iter()
            .map(|known| (known.number, known.hash))
            .collect();
        let repo = ingest.repo.to_lowercase();
        let scope = if ingest.closed { "all" } else { "open" };
        let before = to
            .corpus
            .cursors()
            .await?
            .into_iter()
            .find(|cursor| cursor.repo == repo);
        let before = before.filter(|cursor| !ingest.anew && cursor.scope == scope);
        let fresh = before.is_none();
        let cursor = before.unwrap_or_else(|| Cursor {
            repo,
            scope: scope.to_owned(),
            since: ingest.since.clone(),
            newest: None,
            page: None,
            finished_at: None,
        });
        let whole = fresh && ingest.since.is_none();
        Ok(Reading {
            to,
            ingest,
            identity,
            known,
            cursor,
            met: whole.then(BTreeSet::new),
            progress: Progress::default(),
        })
    }

    /// Reads a page; says whether it was the last one.
    async fn page(&mut self) -> Result<bool, Error> {
        let request = PageRequest {
            repo: self.ingest.repo.clone(),
            closed: self.ingest.closed,
            since: self.cursor.since.clone(),
            page: self.cursor.page.clone(),
        };
        let page = self.to.source.page(&request).await?;
        self.progress.pages += 1;
        let mut remove: BTreeSet<u64> = page
            .gone
            .iter()
            .copied()
            .filter(|n| self.known.contains_key(n))
            .collect();
        let mut changed = Vec::new();
        for document in page.documents {
            self.take(document, &mut changed, &mut remove);
        }
        let last = page.next.is_none();
        if last && let Some(met) = &self.met {
            remove.extend(self.known.keys().filter(|number| !met.contains(number)));
        }
        self.cursor.page = page.next;
        if last {
            self.finish();
        }
        self.progress.removed += remove.len();
        self.put(changed, &remove).await?;
        let enough = self
            .ingest
            .limit
            .is_some_and(|limit| self.progress.issues >= limit);
        self.progress.complete = last;
        Ok(last || enough)
    }

    /// What the next time begins with: all that was seen, or where this time began if nothing was.
    fn finish(&mut self) {
        let newest = self.cursor.newest.take();
        self.cursor.since = newest.or(self.cursor.since.take());
        self.cursor.finished_at = Some((self.to.now)());
    }

    fn take(
        &mut self,
        document: Document,
        changed: &mut Vec<Document>,
        remove: &mut BTreeSet<u64>,
    ) {
        self.progress.issues += 1;
        let of_another = document.id().repo != self.cursor.repo;
        let Some(document) = document.tidied().ok().filter(|_| !of_another) else {
            self.progress.refused += 1;
            return;
        };
        if self
            .cursor
            .newest
            .as_ref()
            .is_none_or(|newest| *newest < document.updated_at)
        {
            self.cursor.newest = Some(document.updated_at.clone());
        }
        let number = document.number;
        if document.state == IssueState::Closed && !self.ingest.closed {
            if self.known.contains_key(&number) {
                remove.insert(number);
            }
            return;
        }
        if let Some(met) = &mut self.met {
            met.insert(number);
        }
        let hash = document.content_hash();
        remove.remove(&number);
        if self.known.insert(number, hash) != Some(hash) {
            changed.push(document);
        }
    }

    /// Writes what changed, and with the last of it how far this has come.
    async fn put(&mut self, changed: Vec<Document>, remove: &BTreeSet<u64>) -> Result<(), Error> {
        let gone = |number: &u64| IssueRef::new(&self.ingest.repo, *number);
        let mut removed: Vec<IssueRef> = remove.iter().map(gone).collect();
        for number in remove {
            self.known.remove(number);
        }
        // A page may be larger than what a corpus takes at once.
        while removed.len() > GROUP {
            let some = removed.split_off(removed.len() - GROUP);
            self.apply(Vec::new(), some, None).await?;
        }
        let mut groups = changed.chunks(GROUP).peekable();
        if groups.peek().is_none() {
            return self
                .apply(Vec::new(), removed, Some(self.cursor.clone()))
                .await;
        }
        while let Some(group) = groups.next() {
            let cursor = groups.peek().is_none().then(|| self.cursor.clone());
            self.apply(group.to_vec(), std::mem::take(&mut removed), cursor)
                .await?;
        }
        Ok(())
    }

    async fn apply(
        &mut self,
        group: Vec<Document>,
        remove: Vec<IssueRef>,
        cursor: Option<Cursor>,
    ) -> Result<(), Error> {
        let count = group.len();
        let (progress, told) = (&mut self.progress, self.to.progress);
        let put = with_vectors(group, self.to.embedder, |more| {
            progress.chunks += more;
            told(progress);
        });
        let put = put.await?;
        let identity = self.identity.clone();
        self.to
            .corpus
            .apply(Batch {
                identity,
                put,
                remove,
                cursor,
            })
            .await?;
        self.progress.changed += count;
        told(&self.progress);
        Ok(())
    }
}

/// Embeds what has no vectors, after the corpus was given another identity. Can be ended at any moment and begun again.
///
/// # Errors
/// What the embedder or the corpus answers.
pub async fn embed_again(
    corpus: &dyn Corpus,
    embedder: Option<&dyn Embedder>,
    progress: &(dyn Fn(&Progress) + Sync),
) -> Result<Progress, Error> {
    let identity = identity_of(embedder).await?;
    let state = corpus.state().await?;
    if state.identity.is_some_and(|kept| kept != identity) {
        corpus.rebase(identity.clone()).await?;
    }
    let mut done = Progress::default();
    let mut after = None;
    loop {
        let page = corpus.page(after.as_ref(), GROUP).await?;
        let Some(last) = page.last() else {
            done.complete = true;
            return Ok(done);
        };
        after = Some(last.document.id());
        done.pages += 1;
        done.issues += page.len();
        let bare = page
            .into_iter()
            .filter(|kept| kept.vectors.is_empty() && embedder.is_some());
        let bare: Vec<Document> = bare.map(|kept| kept.document).collect();
        let count = bare.len();
        let put = with_vectors(bare, embedder, |more| {
            done.chunks += more;
            progress(&done);
        });
        let put = put.await?;
        if count > 0 {
            let identity = identity.clone();
            corpus
                .apply(Batch {
                    identity,
                    put,
                    remove: Vec::new(),
                    cursor: None,
                })
                .await?;
        }
        done.changed += count;
        progress(&done);
    }
}

#[cfg(test)]
mod tests;
