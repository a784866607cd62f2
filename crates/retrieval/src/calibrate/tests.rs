//! That floors keep their targets, that there is none where none does, and that pools are what they say.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use std::sync::Arc;

use super::*;
use crate::corpus::{Batch, Corpus, Kept};
use crate::document::Document;
use crate::floor::FloorKind;
use crate::memory::MemoryCorpus;
use crate::vectors::Vectors;

fn seen(best: f64, cluster: u64, right: Option<bool>) -> Seen {
    Seen {
        cluster,
        best,
        first: Some(First {
            relevance: best,
            margin: 0.03,
            agrees: true,
            right: right == Some(true),
        }),
        known: right.map(|_| best),
        has_known: right.is_some(),
    }
}

fn stamp() -> fit::Stamp {
    fit::Stamp {
        identity: Identity::lexical(),
        corpus_hash: "hash".into(),
        fitted_at: "2026-01-01T00:00:00Z".into(),
    }
}

fn foreign(n: usize) -> Vec<Seen> {
    (0..n)
        .map(|place| seen(0.5 * place as f64 / n as f64, 0, None))
        .collect()
}

#[test]
fn the_topical_floor_is_the_lowest_that_keeps_its_bound() {
    let own = vec![
        seen(0.9, 1, Some(true)),
        seen(0.2, 2, Some(false)),
        seen(0.1, 3, None),
    ];
    let fitted = |n: usize| {
        let scale = Scale {
            own: own.clone(),
            foreign: foreign(n),
        };
        fit::topical(&scale, false, &stamp(), Targets::default())
    };
    // Of 299 none may pass, of 1,000 four may.
    let floor = fitted(299);
    assert_eq!((floor.value, floor.passed, floor.n), (Some(0.4984), 0, 299));
    assert!(floor.bound <= 0.01 && floor.coverage == 0.5);
    let floor = fitted(1_000);
    assert_eq!((floor.value, floor.passed), (Some(0.4976), 4));
    assert!(floor.bound <= 0.01 && crate::interval::upper_bound(5, 1_000) > 0.01);
}

#[test]
fn too_few_foreign_queries_give_no_topical_floor() {
    let scale = Scale {
        own: vec![],
        foreign: foreign(298),
    };
    let floor = fit::topical(&scale, true, &stamp(), Targets::default());
    assert_eq!(floor.value, None);
    assert_eq!(
        floor.why.unwrap(),
        "298 foreign queries are too few to bound the share that passes by 0.01: at least 299 are needed"
    );
}

#[test]
fn a_duplicate_floor_has_to_hold_where_it_was_not_sought() {
    let scale = |wrong_half: Option<u64>| {
        let own = (0..400).map(|n| {
            let close = n % 4 < 2;
            let right = close && wrong_half != Some(n % 2);
            seen(if close { 0.8 } else { 0.3 }, n, Some(right))
        });
        Scale {
            own: own.collect(),
            foreign: vec![],
        }
    };
    let fitted = |scale: Scale| fit::duplicate(&scale, false, &stamp(), Targets::default());
    let floor = fitted(scale(None));
    assert_eq!(
        (floor.value, floor.margin, floor.passed, floor.n),
        (Some(0.8), 0.0, 100, 200)
    );
    assert!(floor.bound > 0.9 && floor.coverage == 0.5);
    let floor = fitted(scale(Some(1)));
    assert_eq!(floor.value, None);
    assert_eq!(
        floor.why.unwrap(),
        "above 0.8 the target was kept where it was sought and not where it was tried (0 of 100 right)"
    );
    let floor = fitted(scale(Some(0)));
    assert!(floor.why.unwrap().starts_with(
        "no value keeps a precision of 0.9 with its lower bound: the best bound is 0.00"
    ));
    let nothing = Scale {
        own: vec![seen(0.9, 1, None)],
        foreign: vec![],
    };
    assert_eq!(
        fitted(nothing).why.unwrap(),
        "no issue of the corpus is known to be a duplicate of another"
    );
}

fn document(
    repo: &str,
    number: u64,
    body: &str,
    resolution: Option<&str>,
    labels: &[&str],
) -> Document {
    Document {
        repo: repo.into(),
        number,
        title: format!("Case {number} of {body}"),
        body: body.into(),
        resolution: resolution.map(str::to_owned),
        url: format!("https://example.org/{number}"),
        updated_at: "2026-01-31T12:00:00Z".into(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        ..Document::default()
    }
}

#[test]
fn duplicates_are_read_from_closing_comments() {
    for (resolution, labels, expected) in [
        (Some("Duplicate of #12"), &[][..], Some(12)),
        (Some("This duplicates #12, see there."), &[], Some(12)),
        (Some("Dup of a/b#12"), &[], Some(12)),
        (
            Some("duplicate of https://example.org/A/b/issues/12"),
            &[],
            Some(12),
        ),
        (Some("duplicate of other/repo#12"), &[], None),
        (Some("Not planned. See #12."), &[], None),
        (Some("See #12."), &["Duplicate"], Some(12)),
        (Some("Duplicate of #7"), &[], None),
        (Some("No duplicate is known to me"), &[], None),
        (None, &["duplicate"], None),
    ] {
        let document = document("A/b", 7, "x", resolution, labels);
        let expected = expected.map(|number| IssueRef::new("a/b", number));
        assert_eq!(duplicate_of(&document), expected, "{resolution:?}");
    }
}

async fn retriever(documents: Vec<Document>) -> Retriever {
    let corpus = MemoryCorpus::default();
    let put = documents.into_iter().map(|document| Kept {
        document,
        vectors: Vectors::default(),
    });
    let batch = Batch {
        identity: Identity::lexical(),
        put: put.collect(),
        remove: vec![],
        cursor: None,
    };
    corpus.apply(batch).await.unwrap();
    Retriever::new(Arc::new(corpus), None)
}

#[tokio::test]
async fn pools_hold_out_repositories_and_keep_clusters_together() {
    let mut documents: Vec<Document> = (1..=4)
        .map(|n| document("a/a", n, "boats", None, &[]))
        .collect();
    documents.push(document("b/b", 1, "tea", None, &[]));
    documents.push(document("b/b", 2, "tea", Some("duplicate of #1"), &[]));
    let retriever = retriever(documents).await;
    let pairs = [
        (IssueRef::new("A/a", 1), IssueRef::new("a/a", 2)),
        (IssueRef::new("a/a", 2), IssueRef::new("a/a", 3)),
    ];
    let pools = Pools::of(&retriever, &pairs, &[], 100).await.unwrap();
    let own: Vec<(Vec<String>, u64)> = pools
        .own
        .iter()
        .map(|own| {
            (
                own.same.iter().map(IssueRef::to_string).collect(),
                own.cluster,
            )
        })
        .collect();
    let expected = [
        (vec!["a/a#2", "a/a#3"], 1),
        (vec!["a/a#1", "a/a#3"], 1),
        (vec!["a/a#1", "a/a#2"], 1),
        (vec![], 2),
        (vec!["b/b#2"], 3),
        (vec!["b/b#1"], 3),
    ];
    let expected: Vec<_> = expected
        .map(|(same, cluster)| {
            (
                same.into_iter().map(str::to_owned).collect::<Vec<_>>(),
                cluster,
            )
        })
        .to_vec();
    assert_eq!(own, expected);
    let asked: Vec<_> = pools
        .foreign
        .iter()
        .map(|foreign| foreign.query.repos.clone().unwrap())
        .collect();
    assert_eq!(
        asked,
        [
            vec!["b/b"],
            vec!["b/b"],
            vec!["b/b"],
            vec!["b/b"],
            vec!["a/a"],
            vec!["a/a"]
        ]
    );
    let given = Pools::of(&retriever, &[], &["cheese".to_owned()], 100)
        .await
        .unwrap();
    assert_eq!(
        given.foreign,
        [Labelled {
            query: Query::new("cheese"),
            same: vec![],
            cluster: 0
        }]
    );
}

/// The text of an issue about boats, for each number another one.
fn about_boats(n: u64) -> String {
    let words = [
        "hull", "mast", "sail", "oar", "rope", "keel", "deck", "helm", "bow", "stern",
    ];
    let pick = |m: u64| {
        words
            .get(usize::try_from((n / m) % 10).unwrap())
            .copied()
            .unwrap()
    };
    format!(
        "The {} broke the {} and then the {} case{n}",
        pick(1),
        pick(10),
        pick(100)
    )
}

/// So many issues about boats.
fn boats(most: u64) -> Vec<Document> {
    let all = (1..=most).map(|n| document("a/a", n, &about_boats(n), None, &[]));
    all.collect()
}

#[tokio::test]
async fn a_small_corpus_is_not_calibrated() {
    let few = retriever(boats(99)).await;
    let refused = calibrate(
        &few,
        &Pools::default(),
        Targets::default(),
        ("now", &|_, _| {}),
    )
    .await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "this cannot be calibrated: the corpus has 99 issues, and at least 100 are needed"
    );
}

#[tokio::test]
async fn a_corpus_is_calibrated_and_its_gate_keeps_foreign_queries_out() {
    let mut documents = boats(200);
    documents.push(document(
        "a/a",
        201,
        &about_boats(5),
        Some("duplicate of #5"),
        &[],
    ));
    let retriever = retriever(documents).await;
    let foreign: Vec<String> = (0..299)
        .map(|n| format!("the cheese number {n} is mouldy again"))
        .collect();
    let pools = Pools::of(&retriever, &[], &foreign, 1_000).await.unwrap();
    let calibration = calibrate(
        &retriever,
        &pools,
        Targets::default(),
        ("2026-01-01T00:00:00Z", &|_, _| {}),
    )
    .await
    .unwrap();
    let topical = calibration.floors.first().unwrap();
    assert_eq!(
        (topical.kind, topical.lexical, topical.n, topical.passed),
        (FloorKind::Topical, true, 299, 0)
    );
    assert!(
        topical.value.is_some_and(|value| value < 0.5) && topical.coverage > 0.9,
        "{topical:?}"
    );
    assert_eq!(calibration.floors.get(1).unwrap().value, None);
    let lengths: Vec<_> = calibration
        .distributions
        .iter()
        .map(|one| (one.pool, one.values.len()))
        .collect();
    assert_eq!(
        lengths,
        [(Pool::Known, 2), (Pool::Own, 201), (Pool::Foreign, 299)]
    );
    retriever
        .corpus()
        .keep_floors(calibration.floors.clone())
        .await
        .unwrap();
    let floors = retriever.floors().await.unwrap();
    let passes = async |text: &str| {
        let hits = retriever.search(&Query::new(text)).await.unwrap();
        hits.iter()
            .any(|hit| floors.gate(FloorKind::Topical, hit).unwrap().passes())
    };
    assert!(passes(&about_boats(77)).await);
    assert!(!passes("the cheese of another day is mouldy").await);
    let svg = crate::plot::plot(&calibration);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for said in [
        "known duplicates",
        "n = 299",
        "topical floor 0.",
        "no duplicate floor",
    ] {
        assert!(svg.contains(said), "{said}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}
