//! `args_hash` against Python, whose hashes the article's traces hold.
//!
//! The table beside this file was written by `args_hash/vectors.py`. A larger one, from the same
//! script, is read from the file that `PARAPH_ARGS_HASH_VECTORS` names.

#![expect(
    clippy::unwrap_used,
    reason = "a vector that cannot be read ends the test"
)]

use paraph_gateway::{Bounds, Json, ToolCall, args_hash};
use proptest::prelude::*;

#[derive(serde::Deserialize)]
struct Vector {
    r#in: String,
    stable: String,
    hash: String,
}

fn check(table: &str) -> usize {
    let mut checked = 0;
    for line in table.lines() {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let json = Json::read(&vector.r#in, Bounds::default()).unwrap();
        assert_eq!(
            args_hash(json.view()),
            vector.hash,
            "{} should be {}",
            vector.r#in,
            vector.stable
        );
        // Compact text reads back as the same value, and so hashes alike.
        let again = Json::read(&json.to_string(), Bounds::default()).unwrap();
        assert_eq!(again, json);
        checked += 1;
    }
    checked
}

#[test]
fn hashes_are_those_of_python() {
    assert!(check(include_str!("args_hash/vectors.jsonl")) > 200);
}

#[test]
fn hashes_of_a_table_from_outside_are_those_of_python() {
    if let Ok(file) = std::env::var("PARAPH_ARGS_HASH_VECTORS") {
        let checked = check(&std::fs::read_to_string(file).unwrap());
        println!("{checked} vectors checked");
    }
}

#[test]
fn the_articles_own_hashes() {
    let table = [
        ("{}", "44136fa355b3"),
        (r#"{"user_id":42}"#, "feaa769a39ae"),
        (r#"{"user_id":"42"}"#, "0064d317fc3e"),
        (r#"{"query":"refund policy"}"#, "cfb7b9e24993"),
        (
            r#"{"b":1,"a":{"z":null,"y":[true,false,null]}}"#,
            "ef82d67be5ae",
        ),
        (r#"{"b":1,"B":2,"a":3,"":4,"10":5,"9":6}"#, "f97cc4175a5a"),
        (
            r#"{"é":"Crème brûlée — déjà vu","z":"日本語"}"#,
            "45938dcf3953",
        ),
        (r#"{"s":"😀 𝒳","😀":1,"\uffff":2}"#, "76bdae63bf43"),
        (r#"{"query":"  refund   policy "}"#, "903e06331046"),
    ];
    for (arguments, hash) in table {
        assert_eq!(
            ToolCall::new("any", arguments).unwrap().args_hash(),
            hash,
            "{arguments}"
        );
    }
    for nothing in ["", " ", "null"] {
        assert_eq!(
            ToolCall::new("any", nothing).unwrap().args_hash(),
            "44136fa355b3"
        );
    }
}

proptest! {
    #[test]
    fn order_of_keys_and_space_do_not_change_the_hash(
        entries in prop::collection::btree_map(".{0,6}", any::<i64>(), 0..6)
    ) {
        let text = |entries: Vec<(&String, &i64)>, comma: &str| {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{value}", serde_json::to_string(key).unwrap()))
                .collect();
            format!("{{{}}}", entries.join(comma))
        };
        let one = text(entries.iter().collect(), ",");
        let other = text(entries.iter().rev().collect(), " ,\n ");
        prop_assert_eq!(
            ToolCall::new("any", &one).unwrap().args_hash().to_owned(),
            ToolCall::new("any", &other).unwrap().args_hash().to_owned()
        );
    }
}
