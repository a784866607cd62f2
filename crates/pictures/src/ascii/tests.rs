#![allow(clippy::unwrap_used, reason = "a failed test may panic")]
//! Drawings in characters, as they should look; and that every one fits and is complete.

use super::{
    ascii,
    tracks::{Segment, assign},
};
use crate::drawings::{any_drawing, drawing, nested};
use proptest::prelude::*;

#[test]
fn a_loop_and_two_ways_out() {
    let drawing = drawing("S -> agent; agent ?> tools E; tools -> agent");
    assert_eq!(
        ascii(&drawing, false, 80).unwrap(),
        include_str!("goldens/react.txt")
    );
}

#[test]
fn a_fan_out_and_a_join() {
    let drawing = drawing("S -> a b c; a => join; b => join; c => join; join -> E");
    assert_eq!(
        ascii(&drawing, false, 80).unwrap(),
        include_str!("goldens/fan.txt")
    );
}

#[test]
fn labels_stand_on_the_lines_and_beside_loops() {
    let text = "S -> ask; ask ?>calls_tools tools; ask ?>answers E; tools ?>has_results ask; tools ?>again tools";
    assert_eq!(
        ascii(&drawing(text), false, 80).unwrap(),
        include_str!("goldens/labels.txt")
    );
    let listed = ascii(&drawing(text), false, 12).unwrap();
    assert!(
        listed.contains("  ..> tools  (conditional: calls tools)\n"),
        "{listed}"
    );
}

#[test]
fn errors_marks_and_an_edge_to_itself() {
    let drawing =
        drawing("S -> fetch*; fetch -> store_; fetch !> recover; store ?> store E; recover -> E");
    assert_eq!(
        ascii(&drawing, false, 80).unwrap(),
        include_str!("goldens/marks.txt")
    );
}

#[test]
fn subgraphs_closed_and_opened() {
    let inner = drawing("S -> search; search -> merge; merge ?> search E");
    let outer = nested(
        drawing("S -> plan; plan ?> gather; gather -> plan; plan ?> E"),
        "gather",
        inner,
    );
    assert_eq!(
        ascii(&outer, false, 80).unwrap(),
        include_str!("goldens/closed.txt")
    );
    assert_eq!(
        ascii(&outer, true, 80).unwrap(),
        include_str!("goldens/opened.txt")
    );
}

#[test]
fn what_is_too_wide_is_a_list() {
    let inner = drawing("S -> x; x -> E");
    let outer = nested(
        drawing("S -> first; first ?> second third; second !> third; third -> E"),
        "third",
        inner,
    );
    assert_eq!(
        ascii(&outer, true, 12).unwrap(),
        include_str!("goldens/list.txt")
    );
}

#[test]
fn two_lines_that_change_places_get_columns_of_their_own() {
    let segment = |above, below, reach| Segment {
        above,
        below,
        reach,
        row: 0,
    };
    let mut both = [segment(5, 9, None), segment(9, 5, Some((3, 7)))];
    assert_eq!(assign(&mut both), Some(2));
    assert_eq!(both.map(|s| (s.below, s.row)), [(9, 1), (6, 0)]);
    let mut stuck = [segment(5, 9, None), segment(9, 5, None)];
    assert_eq!(assign(&mut stuck), None);
}

#[test]
fn lines_share_a_row_only_where_they_are_apart() {
    let segment = |above, below| Segment {
        above,
        below,
        reach: None,
        row: 0,
    };
    let mut all = [
        segment(1, 4),
        segment(6, 9),
        segment(11, 3),
        segment(20, 20),
    ];
    assert_eq!(assign(&mut all), Some(2));
    assert_eq!(all.map(|s| s.row), [0, 0, 1, 0]);
}

proptest! {
    #[test]
    fn a_drawing_fits_and_names_every_node(drawing in any_drawing()) {
        let text = ascii(&drawing, false, 80).unwrap();
        let is_list = !text.contains('+');
        for node in &drawing.nodes {
            let name = node.name.trim_matches('_');
            prop_assert!(text.contains(name) || is_list && name == "end" || node.name.len() > 14, "{}\n{}", name, text);
        }
        if !is_list {
            prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
            let labels = drawing.edges.iter().filter_map(|edge| edge.label.as_deref());
            for label in labels.map(str::trim).filter(|label| label.len() <= 14 && !label.is_empty()) {
                prop_assert!(text.contains(label), "{label:?} in\n{text}");
            }
            let arrows = |arrow| text.matches(arrow).count();
            let edges: std::collections::BTreeSet<_> = drawing.edges.iter().map(|e| format!("{e:?}")).collect();
            prop_assert!(
                arrows('v') + arrows('^') + arrows('<') >= edges.len(),
                "{} edges in
{}",
                edges.len(),
                text
            );
        }
    }
}
