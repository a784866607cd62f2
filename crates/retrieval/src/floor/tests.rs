//! What passes a floor, and what no floor judges.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use super::*;
use crate::chunk::Chunk;

fn hit(cosine: Option<f64>, lexical: f64) -> Hit {
    Hit {
        chunk: Chunk {
            id: "a-b-issue-1#0".into(),
            repo: "a/b".into(),
            number: 1,
            title: "It sinks".into(),
            url: "https://example.org/1".into(),
            text: "At once.".into(),
            closed: false,
        },
        fused: 0.1,
        cosine,
        bm25: 3.0,
        lexical,
        lexical_rank: Some(9),
        dense_rank: None,
        shared: vec![],
        agrees: false,
        margin: 0.125,
    }
}

fn floor(kind: FloorKind, lexical: bool, value: Option<f64>) -> Floor {
    Floor {
        kind,
        lexical,
        value,
        why: value.is_none().then(|| "no value keeps it".to_owned()),
        margin: 0.1,
        target: 0.01,
        bound: 0.01,
        n: 299,
        passed: 0,
        coverage: 0.9,
        identity: Identity::lexical(),
        corpus_hash: "0123456789abcdef".into(),
        fitted_at: "2026-01-01T00:00:00Z".into(),
    }
}

fn floors(floors: Vec<Floor>) -> Floors {
    Floors {
        floors,
        identity: Some(Identity::lexical()),
        corpus_hash: "0123456789abcdef".into(),
        documents: CALIBRATION_MINIMUM,
    }
}

#[test]
fn a_hit_is_judged_on_the_scale_that_it_has() {
    let floors = floors(vec![
        floor(FloorKind::Topical, false, Some(0.5)),
        floor(FloorKind::Topical, true, Some(0.25)),
    ]);
    let gate = |hit: Hit| floors.gate(FloorKind::Topical, &hit).unwrap();
    assert_eq!(gate(hit(Some(0.5), 0.0)), Gate::Above { by: 0.0 });
    assert_eq!(gate(hit(Some(0.25), 0.9)), Gate::Below { by: 0.25 });
    assert_eq!(gate(hit(None, 0.75)), Gate::Above { by: 0.5 });
    assert_eq!(gate(hit(None, 0.125)), Gate::Below { by: 0.125 });
    assert!(!gate(hit(Some(f64::NAN), 0.0)).passes());
}

#[test]
fn a_duplicate_needs_more_than_closeness() {
    let floors = floors(vec![floor(FloorKind::Duplicate, false, Some(0.75))]);
    let gate = |change: fn(&mut Hit)| {
        let mut hit = hit(Some(0.875), 0.0);
        change(&mut hit);
        floors.gate(FloorKind::Duplicate, &hit).unwrap()
    };
    let what = "agreement in words: it is not among the first three by its words, and shares no identifier or error";
    assert_eq!(gate(|_| {}), Gate::Lacking { what });
    assert_eq!(gate(|hit| hit.agrees = true), Gate::Above { by: 0.125 });
    let close = gate(|hit| {
        hit.agrees = true;
        hit.margin = 0.05;
    });
    let what = "a margin: the next hit is nearly as close";
    assert_eq!(close, Gate::Lacking { what });
}

#[test]
fn where_there_is_no_floor_nothing_passes_and_the_reason_is_told() {
    let told = |floors: &Floors| match floors.gate(FloorKind::Topical, &hit(Some(1.0), 1.0)) {
        Ok(Gate::NoFloor { why }) => why,
        other => format!("{other:?}"),
    };
    assert_eq!(
        told(&floors(vec![floor(FloorKind::Topical, true, Some(0.1))])),
        "no topical floor was fitted for searches by meaning (`paraph corpus calibrate` does it)"
    );
    assert_eq!(
        told(&floors(vec![floor(FloorKind::Topical, false, None)])),
        "no value keeps it"
    );
    let mut small = floors(vec![floor(FloorKind::Topical, false, Some(0.1))]);
    small.documents = 99;
    assert_eq!(
        told(&small),
        "the corpus has 99 issues, and no floor can be fitted on fewer than 100"
    );
}

#[test]
fn a_floor_of_something_else_is_refused_and_both_are_named() {
    let mut floors = floors(vec![floor(FloorKind::Topical, false, Some(0.5))]);
    floors.corpus_hash = "fedcba9876543210".into();
    let told = |floors: &Floors| {
        floors
            .gate(FloorKind::Topical, &hit(Some(1.0), 1.0))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(&floors),
        "the topical floor was fitted for corpus 0123456789ab, and this is corpus fedcba987654: calibrate again \
         (`paraph corpus calibrate`)"
    );
    floors.identity = Some(Identity::embedded("openai:small", 1536));
    assert_eq!(
        told(&floors),
        "the topical floor was fitted for no embedding model, text form 1, and this is openai:small (1536 numbers), text \
         form 1: calibrate again (`paraph corpus calibrate`)"
    );
}
