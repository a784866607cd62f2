//! The corpus: brought in from files, searched, calibrated and written out again, without network and without a model.

use crate::sandbox::Sandbox;
use serde_json::{Value, json};

const PARTS: [&str; 10] = [
    "hull", "mast", "sail", "oar", "rope", "keel", "deck", "helm", "bow", "stern",
];

fn part(n: usize) -> &'static str {
    PARTS.get(n % 10).copied().unwrap()
}

fn boat(n: usize) -> Value {
    json!({
        "repo": "Acme/Boats",
        "number": n,
        "title": format!("The {} breaks case{n}", part(n)),
        "body": format!("After the {} was mended, the {} broke <!-- hidden --> again in storm{n}.", part(n / 10), part(n)),
        "url": format!("https://example.org/boats/{n}"),
        "state": if n.is_multiple_of(2) { "closed" } else { "open" },
        "updated_at": "2026-01-31T12:00:00Z",
    })
}

fn lines(issues: impl Iterator<Item = Value>) -> String {
    issues.map(|issue| format!("{issue}\n")).collect()
}

/// A corpus of 120 issues, and 300 queries about something else.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("boats.jsonl", &lines((1..=120).map(boat)));
    let foreign: String = (0..300)
        .map(|n| format!("my cheese{n} went mouldy in the cellar\n"))
        .collect();
    sandbox.file("foreign.txt", &foreign);
    let ended = sandbox.run(&["corpus", "ingest", "--from", "boats.jsonl"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (
            0,
            "acme/boats: 120 issues seen, 120 new or changed, 0 removed, 120 chunks\n"
        ),
        "{}",
        ended.err
    );
    sandbox
}

#[test]
fn what_was_brought_in_is_found_and_nothing_is_brought_in_twice() {
    let sandbox = filled();
    let again = sandbox
        .run(&["corpus", "ingest", "--from", "boats.jsonl", "--json"])
        .json();
    assert_eq!(
        (&again[0]["changed"], &again[0]["complete"]),
        (&json!(0), &json!(true))
    );
    let hits = sandbox
        .run(&["corpus", "search", "the hull broke in storm20", "--json"])
        .json();
    let first = &hits[0];
    assert_eq!(first["chunk"]["id"], "Acme-Boats-issue-20#0");
    assert_eq!(
        first["chunk"]["text"],
        "After the sail was mended, the hull broke  again in storm20."
    );
    assert_eq!(
        (&first["chunk"]["closed"], &first["cosine"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(first["citable"], Value::Null);
    assert_eq!(
        first["gate"],
        "no floor: no topical floor was fitted for searches by words (`paraph corpus calibrate` does it)"
    );
    assert_eq!(hits.as_array().unwrap().len(), 3);
    let open = sandbox
        .run(&[
            "corpus",
            "search",
            "storm20 hull",
            "--open",
            "--k",
            "50",
            "--json",
        ])
        .json();
    assert!(
        open.as_array()
            .unwrap()
            .iter()
            .all(|hit| hit["chunk"]["closed"] == false)
    );
    let people = sandbox.run(&["corpus", "search", "storm20"]);
    assert!(
        people
            .out
            .starts_with("1. Acme/Boats#20 (closed)  The hull breaks case20\n   relevance "),
        "{}",
        people.out
    );
    let nothing = sandbox.run(&["corpus", "search", "zanzibar"]);
    assert_eq!(
        (nothing.code, nothing.out.as_str(), nothing.err.as_str()),
        (0, "", "nothing of the corpus shares a word with it\n")
    );
}

#[test]
fn a_floor_is_fitted_drawn_and_kept_until_the_corpus_changes() {
    let sandbox = filled();
    let fitted = sandbox.run(&[
        "corpus",
        "calibrate",
        "--out-of-corpus",
        "foreign.txt",
        "-o",
        "floors.svg",
    ]);
    assert_eq!(fitted.code, 0, "{}", fitted.err);
    assert!(
        fitted.out.starts_with("topical floor by words: 0."),
        "{}",
        fitted.out
    );
    assert!(
        fitted
            .out
            .contains("0 of 300 foreign queries pass (95 % bound 0.99 %)"),
        "{}",
        fitted.out
    );
    assert!(
        fitted.out.contains(
            "duplicate floor by words: none, no issue of the corpus is known to be a duplicate"
        ),
        "{}",
        fitted.out
    );
    let drawn = std::fs::read_to_string(sandbox.path("floors.svg")).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains("n = 300"));
    let hits = sandbox
        .run(&["corpus", "search", "the hull broke in storm20", "--json"])
        .json();
    assert_eq!(hits[0]["citable"], true);
    let stats = sandbox.run(&["corpus", "stats"]);
    assert!(
        stats
            .out
            .contains("Acme/Boats  120     60      120     2026-01-31"),
        "{}",
        stats.out
    );
    assert!(
        stats
            .out
            .contains("made with no embedding model, text form 1"),
        "{}",
        stats.out
    );
    assert!(
        stats.out.contains("topical floor by words: 0."),
        "{}",
        stats.out
    );
    sandbox.file("more.jsonl", &lines(std::iter::once(boat(121))));
    let more = sandbox.run(&["corpus", "ingest", "--from", "more.jsonl"]);
    assert_eq!(
        (more.code, more.out.contains("1 new or changed")),
        (0, true),
        "{}{}",
        more.out,
        more.err
    );
    assert!(
        more.err
            .contains("`paraph corpus calibrate` fits them again"),
        "{}",
        more.err
    );
    let hits = sandbox
        .run(&["corpus", "search", "the hull broke in storm20", "--json"])
        .json();
    assert_eq!(hits[0]["citable"], Value::Null);
    assert!(
        hits[0]["gate"]
            .as_str()
            .unwrap()
            .starts_with("the topical floor was fitted for corpus ")
    );
}

#[test]
fn an_exported_corpus_is_the_same_corpus_in_another_store() {
    let sandbox = filled();
    let out = sandbox.run(&["corpus", "export", "-o", "copy.jsonl"]);
    assert_eq!(
        (out.code, out.err.as_str()),
        (0, "120 issues were written to copy.jsonl\n")
    );
    let ended = sandbox.run(&[
        "corpus",
        "ingest",
        "--from",
        "copy.jsonl",
        "--store",
        "sqlite://other.db",
    ]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let (one, other) = (
        sandbox.run(&["corpus", "export"]).out,
        sandbox
            .run(&["corpus", "export", "--store", "sqlite://other.db"])
            .out,
    );
    assert_eq!(one.lines().count(), 120);
    assert_eq!(one, other);
    assert!(!one.contains("hidden"));
}

#[test]
fn mistakes_are_told_with_what_to_do() {
    let sandbox = Sandbox::new();
    let told = |args: &[&str]| {
        let ended = sandbox.run(args);
        (ended.code, ended.err)
    };
    let (code, err) = told(&["corpus", "search", "x"]);
    assert!(
        code == 2 && err.contains("`paraph corpus ingest owner/name` brings issues in"),
        "{err}"
    );
    sandbox.file("bad.jsonl", &format!("{}\n{{\"repo\": \"a\"}}\n", boat(1)));
    let (code, err) = told(&["corpus", "ingest", "--from", "bad.jsonl"]);
    assert!(
        code == 2 && err.starts_with("error: bad.jsonl: line 2: missing field `number`"),
        "{err}"
    );
    let (code, err) = told(&["corpus", "ingest", "--from", "missing.jsonl"]);
    assert!(
        code == 2 && err.starts_with("error: missing.jsonl: "),
        "{err}"
    );
    let (code, err) = told(&[
        "corpus",
        "ingest",
        "boats",
        "--from",
        "bad.jsonl",
        "--since",
        "soon",
    ]);
    assert_eq!(
        (code, err.as_str()),
        (
            2,
            "error: --since: `soon` is no day like 2026-01-31, and no time like 2026-01-31T12:00:00Z\n"
        )
    );
    sandbox.file("one.jsonl", &lines(std::iter::once(boat(1))));
    let (code, err) = told(&["corpus", "ingest", "boats", "--from", "one.jsonl"]);
    assert_eq!(
        (code, err.as_str()),
        (2, "error: `boats` is no repository: write owner/name\n")
    );
    assert_eq!(told(&["corpus", "ingest", "--from", "one.jsonl"]).0, 0);
    let (code, err) = told(&["corpus", "calibrate"]);
    assert_eq!(
        (code, err.as_str()),
        (
            2,
            "error: this cannot be calibrated: the corpus has 1 issues, and at least 100 are needed\n"
        )
    );
    let (code, err) = told(&["corpus", "calibrate", "-o", "plot.png"]);
    assert_eq!(
        (code, err.as_str()),
        (
            2,
            "error: --output: plot.png is no SVG: name a file that ends in .svg\n"
        )
    );
    sandbox.file("paraph.toml", "[corpus]\nembedder = \"openai:small\"\n");
    let (code, err) = told(&["corpus", "search", "hull"]);
    assert!(
        code == 2
            && err.contains(
                "paraph.toml:2: `corpus.embedder`: openai needs an API key: set OPENAI_API_KEY"
            ),
        "{err}"
    );
    sandbox.file("paraph.toml", "[corpus]\nembedder = \"ollama:small\"\n");
    let (code, err) = told(&["corpus", "search", "hull"]);
    assert!(
        code == 2 && err.contains("the corpus was made with no embedding model, text form 1"),
        "{err}"
    );
}
