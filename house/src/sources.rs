//! Rules on one Rust file: its head, its size, its names, its exceptions from lints, and what it may read.
//!
//! Called by `tests/house.rs` for every Rust file of the checkout. What clippy already checks (function length,
//! number of arguments, `unwrap`) is not repeated here; `manifests` checks that those lints are on.

use crate::Finding;
use crate::rust::{Line, lines, words};
use crate::tree::TextFile;

/// The most lines that a file may have, test code apart.
pub const MAX_FILE: usize = 600;
/// The most lines that test code may have inside a file of other code.
pub const MAX_INLINE_TESTS: usize = 150;
/// The most lines of code that an example may have; blank lines and comments are free.
pub const MAX_EXAMPLE: usize = 40;

/// Endings of type names that say nothing about what the type does.
const EMPTY_ENDINGS: [&str; 5] = ["Manager", "Helper", "Helpers", "Util", "Utils"];
/// Module names that collect whatever finds no home.
const EMPTY_MODULES: [&str; 8] = [
    "common", "core", "helper", "helpers", "prelude", "types", "util", "utils",
];

/// All findings in one Rust file.
pub fn check(file: &TextFile) -> Vec<Finding> {
    let lines = lines(file);
    let mut found = Vec::new();
    found.extend(head(file));
    found.extend(size(file, &lines));
    found.extend(example(file, &lines));
    found.extend(module_name(file));
    found.extend(names(file, &lines));
    found.extend(exceptions(file, &lines));
    found.extend(environment(file, &lines));
    found
}

/// Every module opens with `//!`; attributes of the whole file may stand before it.
fn head(file: &TextFile) -> Option<Finding> {
    let first = file
        .text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("#!["));
    if first.is_some_and(|line| line.starts_with("//!")) {
        return None;
    }
    let advice =
        "has no `//!` at its head: say what the module is, who calls it, and what it must not do";
    Some(Finding::new(&file.path, 1, advice))
}

fn size(file: &TextFile, lines: &[Line]) -> Vec<Finding> {
    if file.is_test() {
        return Vec::new();
    }
    let tests = lines.iter().filter(|line| line.test).count();
    let rest = lines.len() - tests;
    let mut found = Vec::new();
    if rest > MAX_FILE {
        let advice = format!(
            "has {rest} lines besides its tests, {MAX_FILE} is the end: split it by what it does"
        );
        found.push(Finding::new(&file.path, MAX_FILE + 1, advice));
    }
    if tests > MAX_INLINE_TESTS {
        let first = lines
            .iter()
            .find(|line| line.test)
            .map_or(1, |line| line.number);
        let advice = format!(
            "has {tests} lines of inline tests, {MAX_INLINE_TESTS} is the end: move them to `{}/tests.rs` or `tests/`",
            file.stem()
        );
        found.push(Finding::new(&file.path, first, advice));
    }
    found
}

fn example(file: &TextFile, lines: &[Line]) -> Option<Finding> {
    let code = lines.iter().filter(|line| !line.code.trim().is_empty());
    let count = code.count();
    if !file.is_example() || count <= MAX_EXAMPLE {
        return None;
    }
    let advice = format!(
        "is an example with {count} lines of code, {MAX_EXAMPLE} is the end: show one thing"
    );
    Some(Finding::new(&file.path, 1, advice))
}

fn module_name(file: &TextFile) -> Option<Finding> {
    let folder = file.path.rsplit('/').nth(1).unwrap_or_default();
    let name = if file.stem() == "mod" {
        folder
    } else {
        file.stem()
    };
    EMPTY_MODULES
        .contains(&name)
        .then(|| Finding::new(&file.path, 1, empty_module(name)))
}

fn empty_module(name: &str) -> String {
    format!(
        "a module called `{name}` says nothing: name it by what it holds, or move each thing where it belongs"
    )
}

fn names(file: &TextFile, lines: &[Line]) -> Vec<Finding> {
    let mut found = Vec::new();
    for line in lines {
        let mut words = words(&line.code).peekable();
        while let Some(word) = words.next() {
            let Some(&name) = words.peek() else { break };
            let advice = match word {
                "struct" | "enum" | "trait" | "type" | "union" => EMPTY_ENDINGS
                    .iter()
                    .find(|ending| name.ends_with(**ending))
                    .map(|ending| format!("`{name}` ends in `{ending}`: name it by what it does")),
                "mod" if EMPTY_MODULES.contains(&name) => Some(empty_module(name)),
                _ => None,
            };
            found.extend(advice.map(|advice| Finding::new(&file.path, line.number, advice)));
        }
    }
    found
}

/// The libraries are told everything by their callers: only the binary reads the environment.
fn environment(file: &TextFile, lines: &[Line]) -> Vec<Finding> {
    let library = file.path.starts_with("crates/") && !file.path.starts_with("crates/cli/");
    let reads = |line: &&Line| library && !line.test && line.code.contains("env::");
    let advice =
        "reads the environment: take it as an argument, `cli/src/config/environment.rs` reads it";
    lines
        .iter()
        .filter(reads)
        .map(|line| Finding::new(&file.path, line.number, advice))
        .collect()
}

/// Exceptions from lints say why, and end when they are no longer needed: `expect` with a reason.
///
/// `allow` stays possible, with a reason, where the same code is compiled in several settings of which only some
/// trip the lint: in what the derive generates, and in modules that several test binaries share.
fn exceptions(file: &TextFile, lines: &[Line]) -> Vec<Finding> {
    let generated = ["crates/graph-derive/", "crates/gateway-derive/"]
        .iter()
        .any(|folder| file.path.starts_with(folder));
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        for kind in ["allow", "expect"] {
            let Some(attribute) = attribute(lines, index, kind) else {
                continue;
            };
            if !words(&attribute).any(|word| word == "reason") {
                let advice =
                    format!("`{kind}` without a reason: write `#[expect(lint, reason = \"why\")]`");
                found.push(Finding::new(&file.path, line.number, advice));
            } else if kind == "allow" && !generated && !line.test {
                let advice =
                    "`allow` stays when its cause is gone: write `expect`, which then warns";
                found.push(Finding::new(&file.path, line.number, advice));
            }
        }
    }
    found
}

/// The text of the attribute `kind` that begins in line `index`, up to its closing bracket.
fn attribute(lines: &[Line], index: usize, kind: &str) -> Option<String> {
    let code = &lines[index].code;
    let start = [format!("#[{kind}("), format!("#![{kind}(")]
        .iter()
        .find_map(|opening| code.find(opening.as_str()))?;
    let mut text = String::new();
    for (offset, line) in lines[index..].iter().enumerate() {
        let part = if offset == 0 {
            &line.code[start..]
        } else {
            &line.code
        };
        if let Some(end) = part.find(")]") {
            text.push_str(&part[..end]);
            return Some(text);
        }
        text.push_str(part);
        text.push(' ');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings' lines and the first words of their advice, for a file that is fine but for `body`.
    fn found(path: &str, body: &str) -> Vec<(usize, String)> {
        check(&TextFile::new(path, &format!("//! Head.\n{body}")))
            .into_iter()
            .map(|finding| (finding.line, finding.advice))
            .collect()
    }

    fn assert_one(path: &str, body: &str, line: usize, needle: &str) {
        let found = found(path, body);
        assert_eq!(found.len(), 1, "{body}: {found:?}");
        assert!(
            found[0].0 == line && found[0].1.contains(needle),
            "{found:?}"
        );
    }

    #[test]
    fn a_file_that_keeps_the_rules_has_no_findings() {
        let body = "#[expect(clippy::x, reason = \"so\")]\nstruct Managerial;\n// struct PathHelper\nmod run;\n";
        assert_eq!(found("crates/graph/src/lib.rs", body), []);
    }

    #[test]
    fn a_missing_head_is_found_and_attributes_may_stand_before_it() {
        let head = |text: &str| check(&TextFile::new("src/a.rs", text)).len();
        assert_eq!(head("#![forbid(unsafe_code)]\n\n//! Head.\n"), 0);
        assert_eq!(head("// Head.\nfn a() {}\n"), 1);
        assert_eq!(head(""), 1);
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        let long = "fn a() {}\n".repeat(MAX_FILE);
        assert_one("src/a.rs", &long, MAX_FILE + 1, "split it");
        assert_eq!(found("src/a/tests.rs", &long), []);
        let tests = "#[cfg(test)]\nmod tests {\n".to_owned()
            + &"fn a() {}\n".repeat(MAX_INLINE_TESTS)
            + "}\n";
        assert_one("src/a.rs", &tests, 2, "a/tests.rs");
    }

    #[test]
    fn a_long_example_is_found() {
        let code = "fn a() {}\n// why\n\n".repeat(MAX_EXAMPLE);
        assert_eq!(found("examples/a.rs", &code), []);
        assert_one(
            "examples/a.rs",
            &format!("{code}fn b() {{}}\n"),
            1,
            "show one thing",
        );
    }

    #[test]
    fn empty_names_are_found() {
        assert_one("src/a.rs", "pub struct ToolManager;\n", 2, "ToolManager");
        assert_one(
            "src/a.rs",
            "\npub(crate) trait PathUtil {}\n",
            3,
            "PathUtil",
        );
        assert_one("src/a.rs", "mod utils;\n", 2, "`utils`");
        assert_one("src/prelude.rs", "", 1, "`prelude`");
        assert_one("tests/common/mod.rs", "", 1, "`common`");
    }

    #[test]
    fn a_library_that_reads_the_environment_is_found() {
        let body = "fn a() { std::env::var(\"HOME\"); }\n";
        assert_one("crates/models/src/a.rs", body, 2, "environment");
        assert_eq!(found("crates/cli/src/a.rs", body), []);
        assert_eq!(found("crates/models/tests/a.rs", body), []);
    }

    #[test]
    fn exceptions_without_a_reason_are_found() {
        assert_one(
            "src/a.rs",
            "#[allow(dead_code)]\nfn a() {}\n",
            2,
            "without a reason",
        );
        assert_one(
            "src/a.rs",
            "#![expect(\n    dead_code\n)]\n",
            2,
            "without a reason",
        );
        assert_one(
            "src/a.rs",
            "#[allow(dead_code, reason = \"so\")]\nfn a() {}\n",
            2,
            "write `expect`",
        );
        assert_eq!(
            found(
                "crates/graph-derive/src/lib.rs",
                "#[allow(x, reason = \"so\")]\n"
            ),
            []
        );
    }
}
