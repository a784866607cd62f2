//! The `.env` file and secrets, without a process around them.

use super::*;
use std::collections::BTreeMap;

fn environment(real: &[(&str, &str)], file: &str) -> Environment {
    let real: BTreeMap<_, _> = real
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Environment::of(real, PathBuf::from(".env"), Some(file)).unwrap()
}

fn text(found: Option<Found>) -> Option<String> {
    found.map(|found| found.text)
}

#[test]
fn env_files_are_read_as_shells_read_them() {
    let file = "\u{feff}export A=1\nB = \"two words\"\n# comment\nC='$A'\nD=x # note\nA=2\nE=\n";
    let environment = environment(&[("B", "real"), ("D", " ")], file);
    let table = [
        ("A", Some("1")),
        ("B", Some("real")),
        ("C", Some("$A")),
        ("D", Some("x")),
        ("E", None),
        ("F", None),
    ];
    for (name, expected) in table {
        assert_eq!(text(environment.get(name)).as_deref(), expected, "{name}");
    }
}

#[test]
fn dollars_become_millionths() {
    let table = [
        ("0.40", Some(400_000)),
        ("1", Some(1_000_000)),
        ("0", Some(0)),
        ("1e-6", Some(1)),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("1,5", None),
        ("", None),
    ];
    for (dollars, expected) in table {
        assert_eq!(micro_dollars(dollars).ok(), expected, "{dollars}");
    }
}

#[test]
fn every_setting_has_its_own_key_and_variable() {
    let all = settings();
    let keys: std::collections::BTreeSet<_> = all.iter().map(|setting| &setting.key).collect();
    let variables: Vec<_> = all.iter().flat_map(|setting| &setting.variables).collect();
    let unique: std::collections::BTreeSet<_> = variables.iter().collect();
    assert_eq!((keys.len(), unique.len()), (all.len(), variables.len()));
}
