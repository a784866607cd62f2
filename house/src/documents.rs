//! Rules on any text file (unfinished work, places of one machine), and on README and ARCHITECTURE.
//!
//! Called by `tests/house.rs`. The words that are looked for are put together from halves, so that this file keeps
//! the rules itself.

use crate::Finding;
use crate::tree::TextFile;

/// The most lines that ARCHITECTURE.md may have.
pub const MAX_ARCHITECTURE: usize = 250;
/// What a row of README's status table may say.
pub const STATUSES: [&str; 3] = ["works", "partial", "not yet"];

/// Whether the file was written by a program and is not ours to word.
fn is_generated(file: &TextFile) -> bool {
    file.path.ends_with("Cargo.lock")
}

/// All findings in one text file of any kind.
pub fn check(file: &TextFile) -> Vec<Finding> {
    if is_generated(file) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let advice = unfinished(line)
            .or_else(|| machine_path(line))
            .or_else(|| registry(line));
        found.extend(advice.map(|advice| Finding::new(&file.path, index + 1, advice)));
    }
    if file.path.starts_with("rust-toolchain") {
        let advice = "pins a toolchain that others may not have: `rust-version` in Cargo.toml says what is needed";
        found.push(Finding::new(&file.path, 1, advice));
    }
    found
}

fn unfinished(line: &str) -> Option<String> {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
    ];
    let mark = marks.iter().find(|mark| has_word(line, mark))?;
    Some(format!(
        "`{mark}`: finish it, or say in an issue what is missing"
    ))
}

fn machine_path(line: &str) -> Option<String> {
    let roots = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/tm", "p/"),
    ];
    let root = roots.iter().find(|root| begins_path(line, root))?;
    Some(format!(
        "`{root}…` is a place on one machine: use a relative path, `CARGO_MANIFEST_DIR` or a temporary folder"
    ))
}

fn registry(line: &str) -> Option<String> {
    let hosts = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("pythonhosted", ".org"),
        concat!("npmjs", ".org"),
        concat!("npmjs", ".com"),
        concat!("deb.debian", ".org"),
        concat!("proxy.golang", ".org"),
    ];
    let host = hosts.iter().find(|host| line.contains(**host))?;
    Some(format!(
        "`{host}` names a registry's host: name the package, its client knows where to look"
    ))
}

/// Whether `wanted` stands in the line with no letter, digit or underscore right before or after it.
fn has_word(line: &str, wanted: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(wanted).any(|(at, _)| {
        let after = &line[at + wanted.len()..];
        let closed = wanted.ends_with('(') || !joins(after.chars().next());
        closed && !joins(line[..at].chars().next_back())
    })
}

/// Whether an absolute path begins with `root` somewhere in the line, and not only a longer path or address holds it.
fn begins_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~/*}".contains(c))
    })
}

/// That ARCHITECTURE.md is short enough to be read, and names the folder of every package.
pub fn check_architecture(file: &TextFile, folders: &[&str]) -> Vec<Finding> {
    let count = file.text.lines().count();
    let mut found = Vec::new();
    if count > MAX_ARCHITECTURE {
        let advice = format!(
            "has {count} lines, {MAX_ARCHITECTURE} is the end: details belong to the modules' heads"
        );
        found.push(Finding::new(&file.path, MAX_ARCHITECTURE + 1, advice));
    }
    for folder in folders {
        if !has_word(&file.text, folder) {
            let advice = format!(
                "does not mention `{folder}`: say what the package does and which dependency it stops"
            );
            found.push(Finding::new(&file.path, 1, advice));
        }
    }
    found
}

/// That README has a heading with "status" and below it a table whose rows say one of [`STATUSES`].
pub fn check_readme(file: &TextFile) -> Vec<Finding> {
    let lines: Vec<&str> = file.text.lines().collect();
    let heading = lines
        .iter()
        .position(|line| line.starts_with('#') && line.to_lowercase().contains("status"));
    let Some(heading) = heading else {
        return vec![Finding::new(
            &file.path,
            1,
            "has no heading with \"Status\": keep the status table",
        )];
    };
    let rows: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .skip(heading + 1)
        .take_while(|(_, line)| !line.starts_with('#'))
        .filter(|(_, line)| line.starts_with('|'))
        .map(|(index, line)| (index, *line))
        .collect();
    if rows.len() < 3 {
        return vec![Finding::new(
            &file.path,
            heading + 1,
            "the status section has no table with rows",
        )];
    }
    // The first two rows are the table's head and its rule.
    rows.iter()
        .skip(2)
        .filter(|(_, row)| {
            !STATUSES
                .iter()
                .any(|status| row.to_lowercase().contains(status))
        })
        .map(|(index, _)| {
            let advice = format!(
                "a row of the status table says none of: {}",
                STATUSES.join(", ")
            );
            Finding::new(&file.path, index + 1, advice)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&TextFile::new("docs/a.md", text)).len()
    }

    #[test]
    fn unfinished_work_is_found_in_any_text() {
        for mark in [
            concat!("// TO", "DO: x"),
            concat!("FIX", "ME"),
            concat!("to", "do!()"),
            concat!("unimple", "mented!(\"x\")"),
        ] {
            assert_eq!(found(mark), 1, "{mark}");
        }
        assert_eq!(found(concat!("MASTO", "DON and my_to", "do!list")), 0);
    }

    #[test]
    fn places_of_one_machine_are_found() {
        for path in [
            concat!("cd /wo", "rk/main"),
            concat!("\"/tm", "p/x\""),
            concat!("(/ro", "ot/.cargo)"),
        ] {
            assert_eq!(found(path), 1, "{path}");
        }
        assert_eq!(found(concat!("target/tm", "p/x and {host}/wo", "rk/x")), 0);
    }

    #[test]
    fn registry_hosts_are_found_but_not_in_the_lock_file() {
        let text = concat!("index = \"https://pypi", ".org/simple\"");
        assert_eq!(found(text), 1);
        assert_eq!(check(&TextFile::new("Cargo.lock", text)), []);
    }

    #[test]
    fn a_toolchain_file_is_found() {
        assert_eq!(check(&TextFile::new("rust-toolchain.toml", "")).len(), 1);
    }

    #[test]
    fn an_architecture_that_is_long_or_forgets_a_package_is_found() {
        let check = |text: &str| {
            check_architecture(&TextFile::new("ARCHITECTURE.md", text), &["graph", "cli"]).len()
        };
        assert_eq!(check("`graph` runs, `cli` wires"), 0);
        assert_eq!(check("`graphs`"), 2);
        assert_eq!(check(&"graph cli\n".repeat(MAX_ARCHITECTURE + 1)), 1);
    }

    #[test]
    fn a_readme_without_a_true_status_table_is_found() {
        let check = |text: &str| check_readme(&TextFile::new("README.md", text)).len();
        let table = "# Paraph\n## Status\n| what | status |\n|---|---|\n| engine | works |\n";
        assert_eq!(check(table), 0);
        assert_eq!(check("# Paraph\n"), 1);
        assert_eq!(check("## Status\nfine\n"), 1);
        assert_eq!(check(&format!("{table}| server | soon |\n")), 1);
    }
}
