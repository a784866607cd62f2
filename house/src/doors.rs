//! Rules against doors that only tests or those who know them can use: what the program reads from its environment is
//! in the one list that `paraph config show` prints, no flag is hidden, and a build for debugging does nothing else.
//!
//! Called by `tests/house.rs` for the Rust files of the packages that are shipped.

use crate::Finding;
use crate::rust::{Line, lines, words};
use crate::tree::TextFile;

/// The list of settings.
pub const SETTINGS: &str = "crates/cli/src/config/setting.rs";

/// Hidden flags that open nothing, by the file and the line behind `hide = true`.
const HARMLESS: [(&str, &str); 1] = [
    // `runs events` writes JSON in any case.
    ("crates/cli/src/args/stored.rs", "pub(crate) json: bool,"),
];

/// Whether the file is part of what is shipped.
pub fn is_shipped(file: &TextFile) -> bool {
    file.is_rust() && file.path.starts_with("crates/") && file.path.contains("/src/")
}

/// All findings in one file.
pub fn check(file: &TextFile) -> Vec<Finding> {
    let lines = lines(file);
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.test) {
        let next = lines.get(index + 1).map(|next| next.text.trim());
        let advice = variable(file, line)
            .or_else(|| hidden(file, line, next))
            .or_else(|| debugging(line));
        found.extend(advice.map(|advice| Finding::new(&file.path, line.number, advice)));
    }
    found
}

fn variable(file: &TextFile, line: &Line) -> Option<String> {
    let is_comment = line.text.trim_start().starts_with("//");
    let is_read = !is_comment && line.text.contains(concat!("\"PARA", "PH_"));
    (is_read && file.path != SETTINGS).then(|| {
        format!(
            "a variable of the environment that `config show` does not list: put it into {SETTINGS}"
        )
    })
}

fn hidden(file: &TextFile, line: &Line, next: Option<&str>) -> Option<String> {
    let is_harmless = HARMLESS
        .iter()
        .any(|(path, flag)| file.path == *path && next == Some(*flag));
    let is_hidden = words(&line.code).any(|word| word == "hide") && line.code.contains("true");
    (is_hidden && !is_harmless).then(|| {
        "a hidden flag is a door that only those who know it use: show it, or drop it".to_owned()
    })
}

fn debugging(line: &Line) -> Option<String> {
    words(&line.code)
        .any(|word| word == "debug_assertions")
        .then(|| {
            "a build for debugging may not do anything else than the one that is shipped".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        let found = check(&TextFile::new(path, text));
        found.iter().map(|found| found.line).collect()
    }

    #[test]
    fn variables_hidden_flags_and_builds_for_debugging_are_found() {
        let variable = concat!("let a = 1;\nread(\"PARA", "PH_SKIP_POLICY\");\n");
        assert_eq!(found("crates/cli/src/a.rs", variable), [2]);
        assert_eq!(found(SETTINGS, variable), Vec::<usize>::new());
        let flag = "#[arg(long, hide = true)]\npub(crate) approve_all: bool,\n";
        assert_eq!(found("crates/cli/src/args/stored.rs", flag), [1]);
        let build = "if cfg!(debug_assertions) { skip() }\n";
        assert_eq!(found("crates/gateway/src/a.rs", build), [1]);
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{variable}{flag}{build}}}\n");
        assert_eq!(found("crates/cli/src/a.rs", &in_tests), Vec::<usize>::new());
    }

    #[test]
    fn what_is_shipped_are_the_sources_of_the_packages() {
        let shipped = |path: &str| is_shipped(&TextFile::new(path, ""));
        assert!(shipped("crates/cli/src/main.rs"));
        assert!(!shipped("crates/cli/tests/cli/main.rs") && !shipped("crash/src/main.rs"));
    }
}
