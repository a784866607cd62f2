//! How a corpus grows: nothing twice, nothing lost, and on from where it was ended.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use paraph_models::{Embeddings, ModelError};

use super::*;
use crate::list::IssueList;
use crate::memory::MemoryCorpus;

/// Every text becomes the same vector; it can be made to fail after so many texts.
#[derive(Default)]
struct Counting {
    texts: AtomicUsize,
    fails_at: Option<usize>,
    other: bool,
}

impl Embedder for Counting {
    fn name(&self) -> &str {
        if self.other {
            "test:other"
        } else {
            "test:counting"
        }
    }

    fn dimension(&self) -> Option<usize> {
        None
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        let before = self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let fails = self.fails_at.is_some_and(|at| before + texts.len() > at);
        Box::pin(std::future::ready(match fails {
            true => Err(ModelError::Decode {
                message: "gone".into(),
            }),
            false => Ok(Embeddings {
                vectors: vec![vec![1.0, 2.0]; texts.len()],
                tokens: None,
            }),
        }))
    }
}

/// A source that remembers what it was asked.
struct Asked {
    list: Mutex<IssueList>,
    requests: Mutex<Vec<(Option<String>, Option<String>)>>,
}

impl Asked {
    fn of(documents: Vec<Document>) -> Self {
        Asked {
            list: Mutex::new(IssueList::new(documents)),
            requests: Mutex::default(),
        }
    }

    fn becomes(&self, documents: Vec<Document>) {
        *self.list.lock().unwrap() = IssueList::new(documents);
    }

    fn requests(&self) -> Vec<(Option<String>, Option<String>)> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

impl IssueSource for Asked {
    fn page<'a>(&'a self, request: &'a PageRequest) -> BoxFuture<'a, Result<Page, Error>> {
        let asked = (request.since.clone(), request.page.clone());
        self.requests.lock().unwrap().push(asked);
        let list = self.list.lock().unwrap().clone();
        Box::pin(async move { list.page(request).await })
    }
}

fn issue(number: u64, day: u64) -> Document {
    Document {
        repo: "Acme/Boats".into(),
        number,
        title: format!("Issue {number}"),
        body: "It sinks.".into(),
        url: format!("https://example.org/{number}"),
        updated_at: format!("2026-01-{day:02}T00:00:00Z"),
        ..Document::default()
    }
}

fn closed(number: u64, day: u64) -> Document {
    Document {
        state: IssueState::Closed,
        ..issue(number, day)
    }
}

fn all() -> Ingest {
    Ingest {
        repo: "acme/Boats".into(),
        closed: true,
        since: None,
        limit: None,
        anew: false,
    }
}

async fn run(
    corpus: &MemoryCorpus,
    embedder: &Counting,
    source: &Asked,
    ingest: &Ingest,
) -> Result<Progress, Error> {
    let ingestion = Ingestion {
        corpus,
        embedder: Some(embedder),
        source,
        now: &|| "2026-02-01T00:00:00Z".to_owned(),
        progress: &|_| {},
    };
    ingestion.run(ingest).await
}

async fn numbers(corpus: &MemoryCorpus) -> Vec<u64> {
    let known = corpus.known("acme/boats").await.unwrap();
    known.into_iter().map(|known| known.number).collect()
}

#[tokio::test]
async fn everything_is_brought_in_once_and_then_only_what_changed() {
    let (corpus, embedder) = (MemoryCorpus::default(), Counting::default());
    let many: Vec<Document> = (1..=250)
        .map(|number| issue(number, 1 + number % 20))
        .collect();
    let source = Asked::of(many.clone());
    let done = run(&corpus, &embedder, &source, &all()).await.unwrap();
    let expected = Progress {
        pages: 3,
        issues: 250,
        changed: 250,
        chunks: 250,
        complete: true,
        ..Progress::default()
    };
    assert_eq!(done, expected);
    // One more text asked how long the vectors are.
    assert_eq!(embedder.texts.load(Ordering::Relaxed), 251);
    source.requests();
    let mut changed = many;
    changed.push(issue(251, 21));
    changed.first_mut().unwrap().body = "It floats.".into();
    changed.first_mut().unwrap().updated_at = "2026-01-22T00:00:00Z".into();
    source.becomes(changed);
    let done = run(&corpus, &embedder, &source, &all()).await.unwrap();
    // Those of the last day are met again, and not embedded.
    assert_eq!((done.changed, done.chunks, done.issues), (2, 2, 14));
    assert_eq!(
        source.requests(),
        [(Some("2026-01-20T00:00:00Z".to_owned()), None)]
    );
    let cursor = corpus.cursors().await.unwrap().remove(0);
    assert_eq!(cursor.since.as_deref(), Some("2026-01-22T00:00:00Z"));
    assert_eq!(cursor.finished_at.as_deref(), Some("2026-02-01T00:00:00Z"));
    let state = corpus.state().await.unwrap();
    assert_eq!(state.identity, Some(Identity::embedded("test:counting", 2)));
    assert_eq!(state.documents, 251);
}

#[tokio::test]
async fn what_was_ended_goes_on_at_its_page_and_embeds_nothing_twice() {
    let corpus = MemoryCorpus::default();
    let source = Asked::of((1..=250).map(|number| issue(number, 1)).collect());
    let failing = Counting {
        fails_at: Some(130),
        ..Counting::default()
    };
    let error = run(&corpus, &failing, &source, &all()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the texts could not be embedded: the model's answer cannot be read: gone"
    );
    // The page and a group of the next one are there.
    assert_eq!(numbers(&corpus).await.len(), 116);
    source.requests();
    let embedder = Counting::default();
    let done = run(&corpus, &embedder, &source, &all()).await.unwrap();
    assert_eq!((done.changed, done.complete), (250 - 116, true));
    assert_eq!(embedder.texts.load(Ordering::Relaxed), 1 + 250 - 116);
    assert_eq!(
        source.requests(),
        [(None, Some("1".to_owned())), (None, Some("2".to_owned()))]
    );
    assert_eq!(numbers(&corpus).await, (1..=250).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_limit_ends_behind_a_page_and_the_next_time_goes_on() {
    let (corpus, embedder) = (MemoryCorpus::default(), Counting::default());
    let source = Asked::of((1..=250).map(|number| issue(number, 1)).collect());
    let some = Ingest {
        limit: Some(50),
        ..all()
    };
    let done = run(&corpus, &embedder, &source, &some).await.unwrap();
    assert_eq!((done.issues, done.complete), (100, false));
    let done = run(&corpus, &embedder, &source, &all()).await.unwrap();
    assert_eq!((done.issues, done.complete), (150, true));
    assert_eq!(numbers(&corpus).await.len(), 250);
}

#[tokio::test]
async fn what_is_no_more_is_removed_when_everything_is_read_anew() {
    let (corpus, embedder) = (MemoryCorpus::default(), Counting::default());
    let source = Asked::of(vec![issue(1, 1), issue(2, 1), issue(3, 2)]);
    run(&corpus, &embedder, &source, &all()).await.unwrap();
    source.becomes(vec![issue(1, 1), issue(3, 2)]);
    let done = run(&corpus, &embedder, &source, &all()).await.unwrap();
    assert_eq!((done.removed, numbers(&corpus).await), (0, vec![1, 2, 3]));
    let done = run(
        &corpus,
        &embedder,
        &source,
        &Ingest {
            anew: true,
            ..all()
        },
    )
    .await
    .unwrap();
    assert_eq!(
        (done.removed, done.changed, numbers(&corpus).await),
        (1, 0, vec![1, 3])
    );
}

#[tokio::test]
async fn where_only_open_issues_are_kept_one_that_was_closed_goes() {
    let (corpus, embedder) = (MemoryCorpus::default(), Counting::default());
    let source = Asked::of(vec![issue(1, 1), closed(2, 1), issue(3, 2)]);
    let open = Ingest {
        closed: false,
        ..all()
    };
    run(&corpus, &embedder, &source, &open).await.unwrap();
    assert_eq!(numbers(&corpus).await, [1, 3]);
    source.becomes(vec![closed(1, 5), closed(2, 1), issue(3, 2)]);
    let done = run(&corpus, &embedder, &source, &open).await.unwrap();
    assert_eq!((done.removed, numbers(&corpus).await), (1, vec![3]));
}

#[tokio::test]
async fn issues_that_no_corpus_takes_are_counted_and_the_others_kept() {
    let (corpus, embedder) = (MemoryCorpus::default(), Counting::default());
    let untitled = Document {
        title: " ".into(),
        ..issue(1, 1)
    };
    let source = Asked::of(vec![untitled, issue(2, 1)]);
    let done = run(&corpus, &embedder, &source, &all()).await.unwrap();
    assert_eq!((done.refused, numbers(&corpus).await), (1, vec![2]));
}

#[tokio::test]
async fn another_model_is_refused_before_anything_is_read_and_can_embed_everything_again() {
    let (corpus, embedder) = (MemoryCorpus::default(), Counting::default());
    let source = Asked::of((1..=40).map(|number| issue(number, 1)).collect());
    run(&corpus, &embedder, &source, &all()).await.unwrap();
    source.requests();
    let other = Counting {
        other: true,
        ..Counting::default()
    };
    let told = run(&corpus, &other, &source, &all())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        told.starts_with(
            "the corpus was made with test:counting (2 numbers), text form 1, and this asks with test:other (2 numbers), \
             text form 1"
        ),
        "{told}"
    );
    assert_eq!(source.requests(), []);
    let failing = Counting {
        other: true,
        fails_at: Some(20),
        ..Counting::default()
    };
    assert!(embed_again(&corpus, Some(&failing), &|_| {}).await.is_err());
    let done = embed_again(&corpus, Some(&other), &|_| {}).await.unwrap();
    // One group had been embedded before it failed.
    assert_eq!((done.issues, done.changed, done.complete), (40, 24, true));
    let kept = corpus.page(None, 100).await.unwrap();
    assert!(kept.iter().all(|kept| kept.vectors.len() == 1));
    let without = embed_again(&corpus, None, &|_| {}).await.unwrap();
    assert_eq!(without.changed, 0);
    assert_eq!(
        corpus.state().await.unwrap().identity,
        Some(Identity::lexical())
    );
}

#[test]
fn a_line_that_is_no_issue_is_named() {
    let good = serde_json::to_string(&issue(1, 1)).unwrap();
    let told = |text: &str| IssueList::parse(text).unwrap_err().to_string();
    assert_eq!(
        IssueList::parse(&format!("\n{good}\n\n{good}\n"))
            .unwrap()
            .documents()
            .count(),
        1
    );
    assert!(told(&format!("{good}\nnonsense")).starts_with("line 2: expected ident"));
    assert!(told(&good.replace("title", "titel")).starts_with("line 1: unknown field `titel`"));
    assert_eq!(
        told(&good.replace("Acme/Boats", "Boats")),
        "line 1: `Boats` is no repository: write owner/name"
    );
}
