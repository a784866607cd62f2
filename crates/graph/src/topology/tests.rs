//! The parts of the check that are functions by themselves; whole graphs are in `tests/build.rs`.

use super::did_you_mean;

#[test]
fn a_wrong_name_is_answered_with_the_closest_known_one_and_only_if_it_is_close() {
    let known = ["fetch", "classify", "review", "end"];
    let table = [
        ("fecth", Some("fetch")),
        ("fetch_", Some("fetch")),
        ("clasify", Some("classify")),
        ("reviewer", Some("review")),
        ("ned", Some("end")),
        ("reviewed", Some("review")),
        ("publish", None),
        ("", None),
    ];
    for (wrong, right) in table {
        assert_eq!(did_you_mean(wrong, known.into_iter()), right, "{wrong}");
    }
}
