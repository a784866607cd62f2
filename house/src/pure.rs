//! Rules on the step machine of the engine, which is pure: no waiting, no clock, no chance, no input or output.
//!
//! Called by `tests/house.rs`. Time and ids are arguments of the machine, so that it can be stored at any superstep
//! and taken up again in another process with the same result.

use crate::Finding;
use crate::rust::{lines, words};
use crate::tree::TextFile;

/// The machine's file; a folder of the same name beside it holds its parts.
pub const MACHINE: &str = "crates/graph/src/run.rs";

/// Words of code that bring the outside in, with what to do instead.
const FORBIDDEN: [(&str, &str); 22] = [
    ("async", "the driver waits, the machine decides"),
    ("await", "the driver waits, the machine decides"),
    ("tokio", "the driver waits, the machine decides"),
    ("futures", "the driver waits, the machine decides"),
    ("spawn", "the driver runs tasks, the machine names them"),
    ("Mutex", "the driver owns the machine alone"),
    ("Instant", "take the time as an argument"),
    ("SystemTime", "take the time as an argument"),
    ("elapsed", "take the time as an argument"),
    ("rand", "take what was drawn as an argument"),
    ("random", "take what was drawn as an argument"),
    ("now_v7", "take the id as an argument"),
    ("new_v4", "take the id as an argument"),
    ("fs", "the store reads and writes"),
    ("net", "the store reads and writes"),
    ("env", "the binary reads the environment"),
    ("stdin", "the driver tells what happened"),
    ("stdout", "the driver tells what happened"),
    ("println", "the driver tells what happened"),
    ("eprintln", "the driver tells what happened"),
    ("tracing", "the driver tells what happened"),
    (
        "HashMap",
        "its order differs from run to run: use `BTreeMap`",
    ),
];

/// Whether the file is part of the step machine.
pub fn is_machine(file: &TextFile) -> bool {
    let parts = MACHINE.strip_suffix(".rs").unwrap_or(MACHINE);
    file.path == MACHINE || file.path.starts_with(&format!("{parts}/"))
}

/// All findings in one file of the step machine; its tests may do what they like.
pub fn check(file: &TextFile) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in lines(file).iter().filter(|line| !line.test) {
        for word in words(&line.code) {
            if let Some((_, instead)) = FORBIDDEN.iter().find(|(forbidden, _)| *forbidden == word) {
                let advice = format!("`{word}` in the pure step machine: {instead}");
                found.push(Finding::new(&file.path, line.number, advice));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_forbidden_word_is_found_in_code_and_only_there() {
        for (word, _) in FORBIDDEN {
            let text = format!(
                "//! No {word}.\nlet a = x::{word}(\"{word}\");\n#[cfg(test)]\nmod tests {{ {word} }}\n"
            );
            let found = check(&TextFile::new(MACHINE, &text));
            assert_eq!(
                found.iter().map(|f| f.line).collect::<Vec<_>>(),
                [2],
                "{word}"
            );
        }
    }

    #[test]
    fn the_machine_is_its_file_and_the_folder_beside_it() {
        let is = |path: &str| is_machine(&TextFile::new(path, ""));
        assert!(is("crates/graph/src/run.rs") && is("crates/graph/src/run/joins.rs"));
        assert!(!is("crates/graph/src/runs.rs") && !is("crates/cli/src/run.rs"));
    }
}
