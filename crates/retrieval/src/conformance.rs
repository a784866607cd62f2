//! What every corpus must do: a suite that each implementation runs.
//!
//! Called by the tests of corpora: memory's in this crate, those of databases in theirs. A rule clears the corpus it is
//! handed, so it must be one of its own. The rules look through [`Corpus`] only.
//!
//! ```
//! # #[tokio::main] async fn main() {
//! use paraph_retrieval::{MemoryCorpus, conformance};
//! for rule in conformance::RULES {
//!     assert_eq!(rule.check(&MemoryCorpus::default()).await, Ok(()));
//! }
//! # }
//! ```

use futures::future::BoxFuture;

use crate::chunk::chunks;
use crate::corpus::{Batch, Corpus, CorpusState, Cursor, Identity, Kept, Known, MAX_BATCH};
use crate::document::{Document, IssueRef, IssueState};
use crate::error::Error;
use crate::floor::{Floor, FloorKind};
use crate::vectors::Vectors;

/// What a rule finds.
type Checked = Result<(), String>;

/// One thing that every corpus must do.
pub struct Rule {
    /// The rule, as a sentence.
    pub name: &'static str,
    run: for<'c> fn(&'c dyn Corpus) -> BoxFuture<'c, Checked>,
}

/// A rule that a corpus breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {why}")]
pub struct Broken {
    /// The rule.
    pub rule: &'static str,
    /// What was seen instead.
    pub why: String,
}

impl Rule {
    /// Tries the rule on a corpus, which it clears.
    ///
    /// # Errors
    /// What was seen instead.
    pub async fn check(&self, corpus: &dyn Corpus) -> Result<(), Broken> {
        let done = match corpus.clear(None).await {
            Ok(()) => (self.run)(corpus).await,
            Err(error) => Err(error.to_string()),
        };
        done.map_err(|why| Broken {
            rule: self.name,
            why,
        })
    }
}

macro_rules! rules {
    ($($name:literal => $rule:ident),* $(,)?) => {
        /// All rules.
        pub const RULES: &[Rule] = &[$(Rule { name: $name, run: |corpus| Box::pin($rule(corpus)) }),*];
    };
}

rules! {
    "what is put is there word for word, with its vectors" => put_and_read,
    "a newer version takes the place of the older one" => replace,
    "names of repositories are compared in lower case" => names,
    "pages go through everything once, in the order of ids" => pages,
    "a batch is made whole or not at all" => whole,
    "a corpus keeps to what it was made with" => identity,
    "every change is a revision, and reading and floors are none" => revisions,
    "cursors are kept with the batch that they belong to" => cursors,
    "one repository can be cleared, and everything" => clear,
    "a new identity takes the vectors and leaves the rest" => rebase,
    "floors are kept as they are and replaced together" => floors,
    "odd texts are kept as they are" => odd_texts,
}

fn document(repo: &str, number: u64, body: &str) -> Document {
    Document {
        repo: repo.to_owned(),
        number,
        title: format!("Issue {number}"),
        body: body.to_owned(),
        resolution: number.is_multiple_of(2).then(|| "Fixed in 2.0.".to_owned()),
        url: format!("https://example.org/{repo}/issues/{number}"),
        state: if number.is_multiple_of(2) {
            IssueState::Closed
        } else {
            IssueState::Open
        },
        updated_at: format!("2026-01-{:02}T00:00:00Z", 1 + number % 28),
        labels: vec!["bug".to_owned(), "größe".to_owned()],
    }
}

fn kept(repo: &str, number: u64, body: &str) -> Kept {
    let document = document(repo, number, body);
    let made: Vec<Vec<f32>> = (0..chunks(&document).len())
        .map(|place| vec![1.0, number as f32 / 100.0, place as f32])
        .collect();
    Kept {
        document,
        vectors: Vectors::of(&made).unwrap_or_default(),
    }
}

fn batch(put: Vec<Kept>) -> Batch {
    Batch {
        identity: Identity::embedded("test:three", 3),
        put,
        remove: Vec::new(),
        cursor: None,
    }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Checked {
    match found == expected {
        true => Ok(()),
        false => Err(format!("found {found:?} and not {expected:?}")),
    }
}

fn said(error: Error) -> String {
    error.to_string()
}

async fn all(corpus: &dyn Corpus, limit: usize) -> Result<Vec<Kept>, String> {
    let mut all: Vec<Kept> = Vec::new();
    loop {
        let after = all.last().map(|kept| kept.document.id());
        let page = corpus.page(after.as_ref(), limit).await.map_err(said)?;
        if page.is_empty() {
            return Ok(all);
        }
        if page.len() > limit {
            return Err(format!(
                "a page of {} where {limit} were wanted",
                page.len()
            ));
        }
        all.extend(page);
    }
}

async fn put_and_read(corpus: &dyn Corpus) -> Checked {
    let long = "word ".repeat(600);
    let put = vec![
        kept("acme/boats", 1, "It sinks."),
        kept("acme/boats", 2, &long),
    ];
    corpus.apply(batch(put.clone())).await.map_err(said)?;
    same(&all(corpus, 10).await?, &put)?;
    for kept in put {
        let found = corpus.get(&kept.document.id()).await.map_err(said)?;
        same(&found, &Some(kept))?;
    }
    same(
        &corpus
            .get(&IssueRef::new("acme/boats", 3))
            .await
            .map_err(said)?,
        &None,
    )
}

async fn replace(corpus: &dyn Corpus) -> Checked {
    let long = "word ".repeat(600);
    corpus
        .apply(batch(vec![kept("a/b", 1, &long), kept("a/b", 2, "two")]))
        .await
        .map_err(said)?;
    let newer = kept("a/b", 1, "short now");
    corpus
        .apply(Batch {
            remove: vec![IssueRef::new("a/b", 2), IssueRef::new("a/b", 9)],
            ..batch(vec![newer.clone()])
        })
        .await
        .map_err(said)?;
    same(&all(corpus, 10).await?, &vec![newer])
}

async fn names(corpus: &dyn Corpus) -> Checked {
    let shouted = kept("Acme/Boats", 7, "It sinks.");
    corpus
        .apply(batch(vec![kept("acme/boats", 7, "older"), shouted.clone()]))
        .await
        .map_err(said)?;
    same(&all(corpus, 10).await?, &vec![shouted.clone()])?;
    let hash = shouted.document.content_hash();
    for name in ["acme/boats", "ACME/boats"] {
        let known = corpus.known(name).await.map_err(said)?;
        same(&known, &vec![Known { number: 7, hash }])?;
    }
    same(&corpus.known("acme/boat").await.map_err(said)?, &vec![])
}

async fn pages(corpus: &dyn Corpus) -> Checked {
    let ids = [
        ("b/a", 1),
        ("a/b", 10),
        ("a/b", 9),
        ("a/b-c", 1),
        ("a/b", 100),
    ];
    let put = ids
        .map(|(repo, number)| kept(repo, number, "text"))
        .to_vec();
    corpus.apply(batch(put)).await.map_err(said)?;
    for limit in [1, 2, 100] {
        let found: Vec<String> = all(corpus, limit)
            .await?
            .into_iter()
            .map(|kept| kept.document.id().to_string())
            .collect();
        let expected = ["a/b#9", "a/b#10", "a/b#100", "a/b-c#1", "b/a#1"]
            .map(str::to_owned)
            .to_vec();
        same(&found, &expected)?;
    }
    Ok(())
}

async fn whole(corpus: &dyn Corpus) -> Checked {
    corpus
        .apply(batch(vec![kept("a/b", 1, "one")]))
        .await
        .map_err(said)?;
    let strange = Vectors::of(&[vec![1.0, 2.0]]).map_err(said)?;
    let bad = Kept {
        document: document("a/b", 3, "three"),
        vectors: strange,
    };
    let refused = corpus
        .apply(Batch {
            remove: vec![IssueRef::new("a/b", 1)],
            ..batch(vec![kept("a/b", 2, "two"), bad])
        })
        .await;
    let told = "the embedding model answered with vectors of 2 numbers where 3 are kept".to_owned();
    same(&refused.map_err(said), &Err(told))?;
    same(&all(corpus, 10).await?, &vec![kept("a/b", 1, "one")])?;
    let many = (1..=MAX_BATCH as u64 + 1)
        .map(|number| kept("a/b", number, "x"))
        .collect();
    let refused = corpus.apply(batch(many)).await.map_err(said);
    same(
        &refused,
        &Err("documents in one batch: 1001, and the limit is 1000".to_owned()),
    )
}

async fn identity(corpus: &dyn Corpus) -> Checked {
    same(&corpus.state().await.map_err(said)?.identity, &None)?;
    corpus
        .apply(batch(vec![kept("a/b", 1, "one")]))
        .await
        .map_err(said)?;
    let other = Batch {
        identity: Identity::lexical(),
        ..batch(vec![])
    };
    let refused = corpus.apply(other).await.map_err(said);
    let told = Error::Identity {
        kept: "test:three (3 numbers), text form 1".to_owned(),
        asked: "no embedding model, text form 1".to_owned(),
    };
    same(&refused, &Err(told.to_string()))?;
    let state = corpus.state().await.map_err(said)?;
    same(&state.identity, &Some(Identity::embedded("test:three", 3)))?;
    same(&state.documents, &1)
}

async fn revisions(corpus: &dyn Corpus) -> Checked {
    let mut last = corpus.state().await.map_err(said)?.revision;
    let mut grown = async |changed: bool| -> Checked {
        let now = corpus.state().await.map_err(said)?.revision;
        let grew = now > last;
        last = now;
        same(&grew, &changed)
    };
    corpus
        .apply(batch(vec![kept("a/b", 1, "one")]))
        .await
        .map_err(said)?;
    grown(true).await?;
    corpus.keep_floors(vec![floor("one")]).await.map_err(said)?;
    all(corpus, 10).await?;
    grown(false).await?;
    corpus
        .apply(Batch {
            remove: vec![IssueRef::new("a/b", 1)],
            ..batch(vec![])
        })
        .await
        .map_err(said)?;
    grown(true).await?;
    corpus.rebase(Identity::lexical()).await.map_err(said)?;
    grown(true).await?;
    corpus.clear(Some("a/b")).await.map_err(said)?;
    grown(true).await?;
    corpus.clear(None).await.map_err(said)?;
    grown(true).await
}

fn cursor(repo: &str, page: Option<&str>) -> Cursor {
    Cursor {
        repo: repo.to_owned(),
        scope: "all".to_owned(),
        since: Some("2026-01-01T00:00:00Z".to_owned()),
        newest: None,
        page: page.map(str::to_owned),
        finished_at: None,
    }
}

async fn cursors(corpus: &dyn Corpus) -> Checked {
    for page in [Some("2"), Some("3"), None] {
        corpus
            .apply(Batch {
                cursor: Some(cursor("b/b", page)),
                ..batch(vec![])
            })
            .await
            .map_err(said)?;
    }
    corpus
        .apply(Batch {
            cursor: Some(cursor("a/a", Some("x"))),
            ..batch(vec![])
        })
        .await
        .map_err(said)?;
    let found = corpus.cursors().await.map_err(said)?;
    same(&found, &vec![cursor("a/a", Some("x")), cursor("b/b", None)])
}

async fn clear(corpus: &dyn Corpus) -> Checked {
    corpus
        .apply(Batch {
            cursor: Some(cursor("a/b", None)),
            ..batch(vec![kept("A/B", 1, "one"), kept("a/c", 1, "one")])
        })
        .await
        .map_err(said)?;
    corpus.clear(Some("A/b")).await.map_err(said)?;
    same(&all(corpus, 10).await?, &vec![kept("a/c", 1, "one")])?;
    same(&corpus.cursors().await.map_err(said)?, &vec![])?;
    corpus.keep_floors(vec![floor("one")]).await.map_err(said)?;
    corpus.clear(None).await.map_err(said)?;
    let CorpusState {
        identity,
        documents,
        ..
    } = corpus.state().await.map_err(said)?;
    same(&(identity, documents), &(None, 0))?;
    same(&corpus.floors().await.map_err(said)?, &vec![])
}

async fn rebase(corpus: &dyn Corpus) -> Checked {
    corpus
        .apply(Batch {
            cursor: Some(cursor("a/b", None)),
            ..batch(vec![kept("a/b", 1, "one")])
        })
        .await
        .map_err(said)?;
    corpus
        .rebase(Identity::embedded("test:two", 2))
        .await
        .map_err(said)?;
    let bare = Kept {
        vectors: Vectors::default(),
        ..kept("a/b", 1, "one")
    };
    same(&all(corpus, 10).await?, &vec![bare])?;
    same(&corpus.cursors().await.map_err(said)?.len(), &1)?;
    let vectors = Vectors::of(&[vec![1.0, 0.0]]).map_err(said)?;
    let again = Kept {
        vectors,
        ..kept("a/b", 1, "one")
    };
    corpus
        .apply(Batch {
            identity: Identity::embedded("test:two", 2),
            ..batch(vec![again.clone()])
        })
        .await
        .map_err(said)?;
    same(&all(corpus, 10).await?, &vec![again])
}

fn floor(hash: &str) -> Floor {
    Floor {
        kind: FloorKind::Topical,
        lexical: false,
        value: Some(0.512_345_678_901),
        why: None,
        margin: 0.0,
        target: 0.01,
        bound: 0.009_8,
        n: 299,
        passed: 0,
        coverage: 0.9,
        identity: Identity::embedded("test:three", 3),
        corpus_hash: hash.to_owned(),
        fitted_at: "2026-01-01T00:00:00Z".to_owned(),
    }
}

async fn floors(corpus: &dyn Corpus) -> Checked {
    same(&corpus.floors().await.map_err(said)?, &vec![])?;
    let none = Floor {
        value: None,
        why: Some("no value keeps it".to_owned()),
        ..floor("one")
    };
    let first = vec![floor("one"), none];
    corpus.keep_floors(first.clone()).await.map_err(said)?;
    same(&corpus.floors().await.map_err(said)?, &first)?;
    corpus.keep_floors(vec![floor("two")]).await.map_err(said)?;
    same(&corpus.floors().await.map_err(said)?, &vec![floor("two")])
}

async fn odd_texts(corpus: &dyn Corpus) -> Checked {
    for body in [
        "",
        "'; DROP TABLE x; --",
        "nul \u{0} inside",
        "日本 \u{1f6a2}",
        "\\x00 $1 %s",
    ] {
        let odd = kept("a/b", 1, body);
        corpus.apply(batch(vec![odd.clone()])).await.map_err(said)?;
        same(
            &corpus.get(&odd.document.id()).await.map_err(said)?,
            &Some(odd),
        )?;
    }
    Ok(())
}
