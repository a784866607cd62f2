//! What checkpoints name, and what their pieces make: tables and properties.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use super::*;
use proptest::prelude::*;

type Map = BTreeMap<String, Newest>;

fn own(changed: &[usize], n: u64) -> Map {
    let newest = |channel: &usize| (format!("c{channel}"), Newest(n, 1, 0));
    changed.iter().map(newest).collect()
}

proptest! {
    #[test]
    fn a_checkpoint_and_its_base_name_all_channels_and_no_more_than_is_worth_it(
        steps in prop::collection::vec((prop::collection::vec(0..40_usize, 0..5), any::<prop::sample::Index>()), 1..80),
    ) {
        // Each step follows some earlier one: a tree.
        let mut line: Vec<(Named, Option<usize>, Map)> = Vec::new();
        for (i, (changed, parent)) in steps.iter().enumerate() {
            let own = own(changed, i as u64);
            let parent = (i > 0).then(|| parent.index(i));
            let (named, needs_base) = after(
                parent.map(|p| (&line[p].0, line[p].1.map(|b| &line[b].0))),
                own.clone(),
            );
            let mut expected = parent.map(|p| line[p].2.clone()).unwrap_or_default();
            expected.extend(own.clone());
            let base = parent.map(|p| line[p].1.unwrap_or(p)).filter(|_| needs_base);
            prop_assert_eq!(named.all(base.map(|b| &line[b].0)), expected.clone());
            prop_assert_eq!(&named.own, &own);
            // The base is one by itself.
            prop_assert!(base.is_none_or(|b| line[b].1.is_none()));
            prop_assert!(base.is_none() || (named.own.len() + named.older.len()) * 2 <= expected.len());
            prop_assert_eq!(Named::read(&named.text()).unwrap(), named.clone());
            line.push((named, base, expected));
        }
    }
}

#[test]
fn a_value_is_put_together_from_its_pieces_item_by_item_as_they_were_written() {
    use PatchKind::{Append, Edit, Whole};
    type Pieces<'a> = &'a [(PatchKind, &'a str)];
    let table: [(Pieces<'_>, Result<&str, &str>); 7] = [
        (&[], Ok("[]")),
        (
            &[(Append, "[1]"), (Append, "[2.50, {\"a\": 1e3}]")],
            Ok("[1,2.50,{\"a\": 1e3}]"),
        ),
        (
            &[
                (Whole, "[1,2]"),
                (Edit, r#"{"set":[[0,"x"],[1,null]],"append":[3]}"#),
                (Append, "[]"),
            ],
            Ok("[\"x\",null,3]"),
        ),
        (&[(Append, "[1]"), (Whole, "[7]")], Ok("[7]")),
        (
            &[(Append, "[1]"), (Edit, r#"{"set":[[1,0]],"append":[]}"#)],
            Err("an edit of item 1, which is not there"),
        ),
        (&[(Whole, "3")], Err("a piece of a list is none")),
        (&[(Append, "[1")], Err("a piece of a list is none")),
    ];
    for (pieces, expected) in table {
        let pieces = pieces.iter().map(|(kind, json)| (*kind, json.as_bytes()));
        match (whole(pieces), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected.as_bytes()),
            (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{why}"),
            (value, expected) => panic!("{value:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn a_chain_is_worn_when_its_edits_are_longer_than_the_rest_and_four_thousand_bytes() {
    let whole = Newest::then(None, 1, PatchKind::Whole, 1000);
    assert_eq!(whole, Newest(1, 1000, 0));
    let longer = Newest::then(Some(whole), 2, PatchKind::Append, 500);
    assert_eq!(longer, Newest(2, 1500, 0));
    let edited = Newest::then(Some(longer), 3, PatchKind::Edit, 5532);
    assert_eq!((edited, edited.is_worn()), (Newest(3, 1500, 5596), false));
    let again = Newest::then(Some(edited), 4, PatchKind::Edit, 0);
    assert_eq!((again, again.is_worn()), (Newest(4, 1500, 5660), true));
    assert_eq!(
        Newest::then(Some(again), 5, PatchKind::Whole, 9),
        Newest(5, 9, 0)
    );
}

#[test]
fn kinds_are_read_as_they_were_written() {
    for kind in [PatchKind::Whole, PatchKind::Append, PatchKind::Edit] {
        assert_eq!(kind_of(kind_text(kind)), Some(kind));
    }
    assert_eq!(kind_of("Whole"), None);
}
