//! Rules on SECURITY.md: its table has each threat once, and every test that it names is there.
//!
//! Called by `tests/house.rs`. Whether a test shows what the table says of it nobody can check by machine; that it
//! exists, and that a threat without one says so, is checked here.

use crate::Finding;
use crate::tree::TextFile;

/// The page.
pub const PAGE: &str = "SECURITY.md";

/// What stands in the last cell of a threat that no test covers, before the reason.
const NOT_COVERED: &str = "not covered";

/// The numbers of the threats, in the order of the table. Those that are missing belong to parts that are not there.
const THREATS: [u32; 30] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 33,
    34, 35, 36, 37,
];

/// All findings on the page.
pub fn check(page: &TextFile, files: &[TextFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut numbers = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let tests = named_tests(line);
        let missing = tests.iter().filter_map(|test| missing(test, files));
        found.extend(missing.map(|advice| Finding::new(&page.path, index + 1, advice)));
        let Some(number) = threat(line) else { continue };
        numbers.push(number);
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let last = cells.last().map(|cell| cell.trim()).unwrap_or_default();
        if cells.len() != 4 {
            let advice = "a row of the table has four cells: number, threat, what stops it, tests";
            found.push(Finding::new(&page.path, index + 1, advice));
        } else if tests.is_empty() && !last.starts_with(NOT_COVERED) {
            let advice = format!(
                "T{number} names no test: name one as `path.rs::name`, or begin with \"{NOT_COVERED}\" and say why"
            );
            found.push(Finding::new(&page.path, index + 1, advice));
        }
    }
    if numbers != THREATS {
        let advice = format!("the table has the threats {numbers:?}; they are {THREATS:?}");
        found.push(Finding::new(&page.path, 1, advice));
    }
    found
}

/// The number of a threat, if the line is its row.
fn threat(line: &str) -> Option<u32> {
    let cell = line.strip_prefix("| T")?.split('|').next()?;
    cell.trim().parse().ok()
}

/// What stands between backticks and looks like a test: `path.rs::name`.
fn named_tests(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.contains(".rs::")).collect()
}

/// What is wrong with the name of a test, if something is.
fn missing(test: &str, files: &[TextFile]) -> Option<String> {
    let (path, name) = test.split_once("::")?;
    let Some(file) = files.iter().find(|file| file.path == path) else {
        return Some(format!("`{path}` is no file of this checkout"));
    };
    let is_there = tests(&file.text).any(|test| test == name);
    (!is_there).then(|| format!("`{path}` has no test called `{name}`"))
}

/// The names of the functions of a file that run as tests by default.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_test, mut open) = (false, false);
    text.lines().map(str::trim).filter_map(move |line| {
        if open || line.starts_with("#[") {
            open = !line.ends_with(']');
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            is_test &= !line.starts_with("#[ignore");
            return None;
        }
        if line.starts_with("//") {
            return None;
        }
        let named = line.split_once("fn ").filter(|(before, _)| {
            before
                .split_whitespace()
                .all(|word| matches!(word, "async" | "pub"))
        });
        // Whatever stands between an attribute and its function ends what the attribute says.
        let counts = std::mem::take(&mut is_test);
        let (_, rest) = named.filter(|_| counts)?;
        rest.split(['(', '<']).next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<TextFile> {
        let text = "#[tokio::test]\n#[expect(\n    unused,\n)]\nasync fn it_holds() {}\n// fn told() {}\nfn help() {}\n#[test]\n#[ignore = \"x\"]\nfn not_run() {}\n";
        vec![TextFile::new("crates/a/tests/b.rs", text)]
    }

    fn page(row: impl Fn(u32) -> String) -> TextFile {
        let rows: Vec<_> = THREATS.iter().map(|number| row(*number)).collect();
        TextFile::new(PAGE, &rows.join("\n"))
    }

    fn row(number: u32, last: &str) -> String {
        format!("| T{number} | threat | wall | {last} |")
    }

    fn advice(page: &TextFile) -> Vec<String> {
        let found = check(page, &files());
        found.into_iter().map(|found| found.advice).collect()
    }

    #[test]
    fn a_page_whose_tests_are_there_is_fine() {
        let fine = page(|number| match number % 2 {
            0 => row(number, "`crates/a/tests/b.rs::it_holds`"),
            _ => row(number, "not covered: nothing is there yet"),
        });
        assert_eq!(advice(&fine), Vec::<String>::new());
    }

    #[test]
    fn a_test_or_a_file_that_is_not_there_is_found() {
        for (named, expected) in [
            (
                "`crates/a/tests/b.rs::it_hold`",
                "`crates/a/tests/b.rs` has no test called `it_hold`",
            ),
            (
                "`crates/a/tests/b.rs::told`",
                "`crates/a/tests/b.rs` has no test called `told`",
            ),
            (
                "`crates/a/tests/b.rs::help`",
                "`crates/a/tests/b.rs` has no test called `help`",
            ),
            (
                "`crates/a/tests/b.rs::not_run`",
                "`crates/a/tests/b.rs` has no test called `not_run`",
            ),
            (
                "`crates/a/tests/c.rs::it_holds`",
                "`crates/a/tests/c.rs` is no file of this checkout",
            ),
        ] {
            let wrong = page(|number| row(number, named));
            assert_eq!(advice(&wrong), vec![expected; THREATS.len()], "{named}");
        }
    }

    #[test]
    fn a_threat_without_a_test_a_missing_one_and_a_broken_row_are_found() {
        let silent = page(|number| row(number, "surely"));
        assert_eq!(advice(&silent).len(), THREATS.len());
        let narrow = page(|number| format!("| T{number} | not covered |"));
        assert_eq!(advice(&narrow).len(), THREATS.len());
        let two = TextFile::new(
            PAGE,
            &[row(1, "not covered: x"), row(1, "not covered: x")].join("\n"),
        );
        assert_eq!(advice(&two).len(), 1);
        assert!(advice(&two)[0].starts_with("the table has the threats [1, 1]; they are [1, 2, 3"));
    }
}
