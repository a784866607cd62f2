//! A mistake in an agent file: where it is, what is wrong, and what to write instead.
//!
//! Made by the reader and the checks, shown by `paraph check`. Its words never repeat a value that could be secret.

use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// One mistake in an agent file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The key, with dots between tables; empty for the file as a whole.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to write instead, or to do; empty where `what` says it.
    pub instead: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)?;
        match self.instead.as_str() {
            "" => Ok(()),
            instead => write!(f, "; {instead}"),
        }
    }
}

/// The mistakes in a text that were found so far.
pub(super) struct Mistakes<'t> {
    text: &'t str,
    pub(super) found: Vec<Mistake>,
}

impl<'t> Mistakes<'t> {
    pub(super) fn of(text: &'t str) -> Mistakes<'t> {
        Mistakes {
            text,
            found: Vec::new(),
        }
    }

    /// Notes a mistake at a place of the text.
    pub(super) fn add(
        &mut self,
        at: Range<usize>,
        key: &str,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) {
        let (line, column) = place(self.text, at.start);
        self.found.push(Mistake {
            line,
            column,
            key: key.to_owned(),
            what: what.into(),
            instead: instead.into(),
        });
    }
}

/// Line and character of a place in a text, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

/// The known word that is closest to a mistyped one, if any is close.
pub(super) fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let length = word.chars().count();
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + length / 4 || (length >= 4 && candidate.starts_with(word))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The same as advice: what was probably meant, else what there is.
pub(super) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    const MOST: usize = 24;
    let known: Vec<&str> = known.into_iter().collect();
    match closest(word, known.iter().copied()) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => {
            let shown: Vec<_> = known.iter().take(MOST).copied().collect();
            let more = if known.len() > MOST { ", …" } else { "" };
            format!("there are {}{more}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_not_bytes() {
        let text = "a = 1\nné = \"ü\" # x\r\nb = 2";
        let table = [
            ("a", (1, 1)),
            ("n", (2, 1)),
            ("=", (1, 3)),
            ("#", (2, 10)),
            ("b", (3, 1)),
        ];
        for (word, expected) in table {
            assert_eq!(place(text, text.find(word).unwrap()), expected, "{word}");
        }
        assert_eq!(place(text, 1_000), (3, 6));
        assert_eq!(place("", 0), (1, 1));
    }

    #[test]
    fn advice_is_the_closest_word_or_all_of_them() {
        let known = ["allow", "deny", "approve"];
        let table = [
            ("alow", "did you mean `allow`?"),
            ("appr", "did you mean `approve`?"),
            ("zebra", "there are allow, deny, approve"),
        ];
        for (word, expected) in table {
            assert_eq!(did_you_mean(word, known), expected);
        }
        assert_eq!(did_you_mean("x", []), "there is none");
    }
}
