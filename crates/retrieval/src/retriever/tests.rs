//! What is found, in which order, and what is not.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use paraph_models::{Embeddings, ModelError};

use super::*;
use crate::chunk::chunks;
use crate::corpus::{Batch, Kept};
use crate::document::{Document, IssueRef, IssueState};
use crate::memory::MemoryCorpus;

/// Counts subjects: a small model whose vectors can be read.
struct Subjects(AtomicUsize);

const SUBJECTS: [&[&str]; 3] = [
    &["boat", "ship", "vessel", "hull"],
    &["tea", "brew", "cup"],
    &["train", "rail", "locomotive"],
];

impl Embedder for Subjects {
    fn name(&self) -> &str {
        "test:subjects"
    }

    fn dimension(&self) -> Option<usize> {
        Some(SUBJECTS.len())
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Embeddings, ModelError>> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        let vector = |text: &String| {
            let text = text.to_lowercase();
            let count = |words: &&[&str]| {
                words
                    .iter()
                    .map(|word| text.matches(word).count())
                    .sum::<usize>()
            };
            SUBJECTS
                .iter()
                .map(|words| count(words) as f32 + 0.01)
                .collect()
        };
        let vectors = texts.iter().map(vector).collect();
        Box::pin(std::future::ready(Ok(Embeddings {
            vectors,
            tokens: None,
        })))
    }
}

fn document(repo: &str, number: u64, title: &str, body: &str) -> Document {
    Document {
        repo: repo.into(),
        number,
        title: title.into(),
        body: body.into(),
        url: format!("https://example.org/{repo}/issues/{number}"),
        updated_at: "2026-01-31T12:00:00Z".into(),
        ..Document::default()
    }
}

fn documents() -> Vec<Document> {
    vec![
        document(
            "Acme/Boats",
            1,
            "Hull takes in water",
            "The vessel sinks with a LeakError in its hull.",
        ),
        document(
            "Acme/Boats",
            2,
            "Cup is cold",
            "The brew in the cup is cold after an hour.",
        ),
        Document {
            state: IssueState::Closed,
            resolution: Some("Fixed by the new locomotive.".into()),
            ..document(
                "acme/rails",
                1,
                "Train is late",
                "It stands on the rail for hours.",
            )
        },
        document(
            "acme/rails",
            3,
            "Water in the engine",
            "Raised LeakError when it rains.",
        ),
    ]
}

async fn corpus(embedder: Option<&dyn Embedder>, documents: Vec<Document>) -> Arc<MemoryCorpus> {
    let mut put = Vec::new();
    for document in documents {
        let texts: Vec<String> = chunks(&document)
            .iter()
            .map(|chunk| format!("{}\n{}", chunk.title, chunk.text))
            .collect();
        let vectors = match embedder {
            Some(embedder) => Vectors::of(&embedder.embed(&texts).await.unwrap().vectors).unwrap(),
            None => Vectors::default(),
        };
        put.push(Kept { document, vectors });
    }
    let identity = match embedder {
        Some(embedder) => Identity::embedded(embedder.name(), embedder.dimension().unwrap()),
        None => Identity::lexical(),
    };
    let corpus = Arc::new(MemoryCorpus::default());
    let batch = Batch {
        identity,
        put,
        remove: vec![],
        cursor: None,
    };
    corpus.apply(batch).await.unwrap();
    corpus
}

async fn both() -> (Retriever, Arc<Subjects>) {
    let embedder = Arc::new(Subjects(AtomicUsize::new(0)));
    let corpus = corpus(Some(&*embedder), documents()).await;
    (Retriever::new(corpus, Some(embedder.clone())), embedder)
}

fn ids(hits: &[Hit]) -> Vec<&str> {
    hits.iter().map(|hit| hit.chunk.id.as_str()).collect()
}

#[tokio::test]
async fn words_and_meaning_both_find_and_each_hit_tells_what_speaks_for_it() {
    let (retriever, _) = both().await;
    let hits = retriever
        .search(&Query::new("Ship goes under\n\nLeakError again"))
        .await
        .unwrap();
    assert_eq!(
        ids(&hits),
        [
            "Acme-Boats-issue-1#0",
            "acme-rails-issue-3#0",
            "Acme-Boats-issue-2#0"
        ]
    );
    let first = hits.first().unwrap();
    assert_eq!((first.lexical_rank, first.dense_rank), (Some(2), Some(1)));
    assert_eq!(
        (first.agrees, first.shared.as_slice()),
        (true, &["leakerror".to_owned()][..])
    );
    assert!(first.cosine.unwrap() > 0.9 && first.lexical > 0.0 && first.lexical < 1.0);
    let last = hits.last().unwrap();
    assert_eq!(
        (last.lexical_rank, last.agrees, last.bm25),
        (None, false, 0.0)
    );
}

#[tokio::test]
async fn an_issue_finds_itself_best_and_never_when_it_is_left_out() {
    let (retriever, _) = both().await;
    let own = documents().remove(0);
    let whole = Query {
        exclude: vec![],
        ..Query::of(&own)
    };
    let found = retriever.search(&whole).await.unwrap();
    let first = found.first().unwrap();
    assert_eq!(first.issue(), own.id());
    assert!(
        first.lexical > 0.99 && first.cosine.unwrap() > 0.99,
        "{first:?}"
    );
    for exclude in ["acme/boats", "ACME/BOATS", "renamed/elsewhere"] {
        let exclude = vec![IssueRef {
            repo: exclude.to_owned(),
            number: 1,
        }];
        let query = Query {
            exclude,
            k: 100,
            ..Query::of(&own)
        };
        let hits = retriever.search(&query).await.unwrap();
        assert!(hits.iter().all(|hit| hit.issue() != own.id()), "{hits:?}");
        // Another issue of the same number stays.
        assert!(
            hits.iter()
                .any(|hit| hit.chunk.id == "acme-rails-issue-1#0")
        );
    }
}

#[tokio::test]
async fn repositories_and_states_can_be_asked_for() {
    let (retriever, _) = both().await;
    let search = async |change: fn(&mut Query)| {
        let mut query = Query {
            k: 10,
            ..Query::new("water in the train")
        };
        change(&mut query);
        let hits = retriever.search(&query).await.unwrap();
        let mut found: Vec<String> = hits.iter().map(|hit| hit.issue().to_string()).collect();
        found.sort();
        found
    };
    assert_eq!(
        search(|_| {}).await,
        [
            "acme/boats#1",
            "acme/boats#2",
            "acme/rails#1",
            "acme/rails#3"
        ]
    );
    let rails = search(|query| query.repos = Some(vec!["ACME/Rails".into()])).await;
    assert_eq!(rails, ["acme/rails#1", "acme/rails#3"]);
    assert_eq!(
        search(|query| query.repos = Some(vec![])).await,
        Vec::<String>::new()
    );
    let open = search(|query| query.open_only = true).await;
    assert_eq!(open, ["acme/boats#1", "acme/boats#2", "acme/rails#3"]);
}

#[tokio::test]
async fn without_an_embedder_words_alone_rank() {
    let retriever = Retriever::new(corpus(None, documents()).await, None);
    let hits = retriever.search(&Query::new("cold brew")).await.unwrap();
    assert_eq!(ids(&hits), ["Acme-Boats-issue-2#0"]);
    let hit = hits.first().unwrap();
    assert_eq!(
        (hit.cosine, hit.dense_rank, hit.relevance()),
        (None, None, hit.lexical)
    );
    assert_eq!(
        ids(&retriever
            .search(&Query::new("nothing like it"))
            .await
            .unwrap()),
        Vec::<&str>::new()
    );
    // A corpus with vectors can be searched by its words, too.
    let (with, _) = both().await;
    let bare = Retriever::new(with.corpus().clone(), None);
    assert_eq!(
        ids(&bare.search(&Query::new("cold brew")).await.unwrap()),
        ["Acme-Boats-issue-2#0"]
    );
}

#[tokio::test]
async fn several_chunks_of_an_issue_are_found_if_they_are_wanted() {
    let body = format!(
        "{}\n\n## Cause\n\nThe hull. {}",
        "Nothing here. ".repeat(50),
        "Boat. ".repeat(20)
    );
    let embedder = Arc::new(Subjects(AtomicUsize::new(0)));
    let corpus = corpus(
        Some(&*embedder),
        vec![document("a/b", 1, "It sinks", &body)],
    )
    .await;
    let retriever = Retriever::new(corpus, Some(embedder));
    let one = retriever.search(&Query::new("boat")).await.unwrap();
    assert_eq!(ids(&one), ["a-b-issue-1#1"]);
    let query = Query {
        chunks_per_issue: 5,
        ..Query::new("boat")
    };
    let all = retriever.search(&query).await.unwrap();
    assert_eq!(ids(&all), ["a-b-issue-1#1", "a-b-issue-1#0"]);
    let query = Query { k: 1, ..query };
    assert_eq!(
        ids(&retriever.search(&query).await.unwrap()),
        ["a-b-issue-1#1"]
    );
}

#[tokio::test]
async fn equal_issues_come_in_the_order_of_their_ids() {
    let same = |number| document("a/b", number, "It sinks", "At once.");
    let retriever = Retriever::new(corpus(None, [9, 10, 2, 1].map(same).to_vec()).await, None);
    let hits = retriever
        .search(&Query::new("it sinks at once"))
        .await
        .unwrap();
    assert_eq!(
        ids(&hits),
        ["a-b-issue-1#0", "a-b-issue-2#0", "a-b-issue-9#0"]
    );
    let margins: Vec<f64> = hits.iter().map(|hit| hit.margin).collect();
    assert_eq!(margins, [0.0, 0.0, 0.0]);
}

#[tokio::test]
async fn another_model_is_refused_and_both_are_named() {
    let corpus = corpus(None, documents()).await;
    let other = Retriever::new(corpus, Some(Arc::new(Subjects(AtomicUsize::new(0)))));
    let told = other
        .search(&Query::new("water"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        told.starts_with(
            "the corpus was made with no embedding model, text form 1, and this asks with test:subjects (3 numbers), text \
             form 1: their vectors cannot be compared"
        ),
        "{told}"
    );
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_before_anything_is_embedded() {
    let (retriever, embedder) = both().await;
    let before = embedder.0.load(Ordering::Relaxed);
    for (query, told) in [
        (
            Query::new(" \n"),
            "this cannot be searched for: the text is empty",
        ),
        (
            Query {
                k: 0,
                ..Query::new("x")
            },
            "this cannot be searched for: between 1 and 100 hits can be asked for",
        ),
        (
            Query {
                k: 101,
                ..Query::new("x")
            },
            "this cannot be searched for: between 1 and 100 hits can be asked for",
        ),
    ] {
        assert_eq!(
            retriever.search(&query).await.unwrap_err().to_string(),
            told
        );
    }
    assert_eq!(embedder.0.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn a_change_of_the_corpus_is_seen_and_changes_its_hash() {
    let (retriever, embedder) = both().await;
    let before = retriever.floors().await.unwrap();
    assert_eq!((before.documents, before.corpus_hash.len()), (4, 64));
    let fresh = document("a/b", 1, "Tea kettle", "Its cup.");
    let vectors = embedder
        .embed(&["tea cup".to_owned()])
        .await
        .unwrap()
        .vectors;
    let put = vec![Kept {
        document: fresh,
        vectors: Vectors::of(&vectors).unwrap(),
    }];
    let identity = Identity::embedded("test:subjects", 3);
    retriever
        .corpus()
        .apply(Batch {
            identity,
            put,
            remove: vec![],
            cursor: None,
        })
        .await
        .unwrap();
    let hits = retriever.search(&Query::new("kettle")).await.unwrap();
    assert_eq!(hits.first().unwrap().chunk.id, "a-b-issue-1#0");
    let after = retriever.floors().await.unwrap();
    assert_eq!(after.documents, 5);
    assert_ne!(after.corpus_hash, before.corpus_hash);
}
