//! A Rust file as the rules want to see it: comments and literals blanked out, test modules marked.
//!
//! Called by `sources` and `pure`. A small scanner, not a parser: it knows comments, strings, characters and braces,
//! and nothing of Rust's grammar beyond that.

use crate::tree::TextFile;

/// One line of a Rust file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    /// The line as it stands.
    pub text: String,
    /// The line with comments and the insides of strings and characters replaced by blanks.
    pub code: String,
    /// Whether the line belongs to test code: a test file, or an inline module under `#[cfg(test)]`.
    pub test: bool,
}

/// The lines of a file; `file` must be Rust.
pub fn lines(file: &TextFile) -> Vec<Line> {
    let blanked = blank(&file.text);
    let code: Vec<&str> = blanked.lines().collect();
    let tests = test_lines(&code, file.is_test());
    file.text
        .lines()
        .zip(code)
        .zip(tests)
        .enumerate()
        .map(|(index, ((text, code), test))| Line {
            number: index + 1,
            text: text.to_owned(),
            code: code.to_owned(),
            test,
        })
        .collect()
}

/// The words of a line of code: runs of letters, digits and underscores.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
}

/// The same text, line for line, with comments and the insides of literals as blanks.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        match end {
            Some(end) => {
                for &c in &chars[at..end] {
                    out.push(if c == '\n' { '\n' } else { ' ' });
                }
                at = end;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// Where the comment or literal that begins at `at` ends; `None` when none begins there.
fn token_end(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    let end = match rest {
        ['/', '/', ..] => position(rest, |c| c == '\n'),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => string(rest, 1),
        ['r', tail @ ..] if !joins(chars, at) => raw_string(tail).map(|n| n + 1)?,
        ['b' | 'c', 'r', tail @ ..] if !joins(chars, at) => raw_string(tail).map(|n| n + 2)?,
        ['\'', ..] => character(rest)?,
        _ => return None,
    };
    Some(at + end)
}

/// Whether the character at `at` continues a word, so that an `r` there begins no raw string.
fn joins(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn position(rest: &[char], wanted: impl Fn(char) -> bool) -> usize {
    rest.iter().position(|&c| wanted(c)).unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

/// The end of a string whose inside begins at `from`.
fn string(rest: &[char], from: usize) -> usize {
    let mut at = from;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `#…"…"#…` at the start of `tail`; `None` when no raw string begins there.
fn raw_string(tail: &[char]) -> Option<usize> {
    let hashes = position(tail, |c| c != '#');
    if tail.get(hashes) != Some(&'"') {
        return None;
    }
    let mut at = hashes + 1;
    while at < tail.len() {
        let closing = tail[at] == '"'
            && tail[at + 1..].len() >= hashes
            && tail[at + 1..at + 1 + hashes].iter().all(|&c| c == '#');
        if closing {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(tail.len())
}

/// The length of a character literal; `None` for a lifetime.
fn character(rest: &[char]) -> Option<usize> {
    match rest {
        ['\'', '\\', escaped @ ..] => {
            // The first character after the backslash never ends the literal.
            let inside = escaped.get(1..).unwrap_or_default();
            Some(rest.len().min(4 + position(inside, |c| c == '\'')))
        }
        ['\'', _, '\'', ..] => Some(3),
        _ => None,
    }
}

/// For each line whether it is test code: the lines of items that stand under `#[cfg(test)]`.
fn test_lines(code: &[&str], whole_file: bool) -> Vec<bool> {
    let mut marks = vec![whole_file; code.len()];
    let mut at = 0;
    while at < code.len() {
        if code[at].trim_start().starts_with("#[cfg(test)]") {
            let end = item_end(code, at);
            marks[at..end].fill(true);
            at = end;
        } else {
            at += 1;
        }
    }
    marks
}

/// The line after the item that begins at line `from`: after its closing brace, or its semicolon if that comes first.
fn item_end(code: &[&str], from: usize) -> usize {
    let mut depth = 0usize;
    for (offset, line) in code[from..].iter().enumerate() {
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return from + offset + 1;
                    }
                }
                ';' if depth == 0 => return from + offset + 1,
                _ => {}
            }
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_blanks_and_lines_stay() {
        let text = "let a = \"x // y\"; // z\n/* b /* c */ d */ let e = r#\"f\"g\"#;\nlet h = '\"'; 'i: loop { '\\'' }\n";
        let expected = "let a =         ;     \n                  let e =         ;\nlet h =    ; 'i: loop {      }\n";
        assert_eq!(blank(text), expected);
    }

    #[test]
    fn a_word_that_ends_in_r_begins_no_raw_string() {
        assert_eq!(blank("for\"x\" br\"y\" r#type"), "for          r#type");
    }

    #[test]
    fn only_the_item_under_cfg_test_counts_as_test() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}\n";
        let marks: Vec<bool> = lines(&TextFile::new("src/x.rs", text))
            .iter()
            .map(|line| line.test)
            .collect();
        assert_eq!(
            marks,
            [false, true, true, true, true, false, true, true, false]
        );
    }

    #[test]
    fn a_test_file_is_test_code_from_its_first_line() {
        let lines = lines(&TextFile::new("crates/x/tests/y.rs", "fn a() {}\n"));
        assert!(lines.iter().all(|line| line.test));
    }
}
