//! Citations by author and year, such as "(Lewis et al., 2020)": they have to stand in what is cited.
//!
//! In parentheses or brackets such a citation goes if no cited source has both the name and the year; in a sentence,
//! as in "Lewis et al. (2020) show", a note is put behind it. Called by `check`, when ids are marks already.

use std::collections::HashSet;

use super::edit::{Edit, apply};
use super::mark::marked;
use super::{Ledger, Lines, NO_SUCH_WORK, RefusedKind, code};
use crate::research::source::Library;

/// The longest parenthesis that is looked into, in bytes.
const MAX_INSIDE: usize = 300;
/// Words with a capital before a year that name no author.
const NO_NAMES: [&str; 20] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Spring",
    "Summer",
    "Autumn",
    "Fall",
    "Winter",
    "Since",
    "In",
    "Until",
];

const WHY: &str = "no cited source has this name and this year";

/// The text without citations of authors whom no cited source names.
pub(super) fn check(text: &str, library: &Library, ledger: &mut Ledger) -> String {
    let code = code::ranges(text);
    let cited = Cited::new(text, library);
    let lines = Lines::new(text);
    let mut edits = Vec::new();
    for (at, open) in text.char_indices().filter(|(_, c)| "([".contains(*c)) {
        if code::contains(&code, at) {
            continue;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        let head = rest
            .get(..rest.floor_char_boundary(MAX_INSIDE))
            .unwrap_or_default();
        let Some(length) = head.find([')', ']', '(', '[']) else {
            continue;
        };
        let close = if open == '(' { ')' } else { ']' };
        let inside = head.get(..length).unwrap_or_default();
        if !head.get(length..).unwrap_or_default().starts_with(close) {
            continue;
        }
        let end = at + 1 + length + 1;
        if year(inside.trim()).is_some() {
            let name = narrative(text.get(..at).unwrap_or_default());
            if name.is_some_and(|name| !cited.have(&name, inside.trim())) {
                let what = format!(
                    "{} ({inside})",
                    narrative(text.get(..at).unwrap_or_default()).unwrap_or_default()
                );
                ledger.refuse(RefusedKind::AuthorYear, &what, lines.at(at), WHY);
                edits.push(Edit {
                    range: end..end,
                    by: format!(" {NO_SUCH_WORK}"),
                });
            }
            continue;
        }
        edits.extend(list(inside, &cited).map(|(kept, refused)| {
            for what in refused {
                ledger.refuse(RefusedKind::AuthorYear, &what, lines.at(at), WHY);
            }
            let by = if kept.is_empty() {
                String::new()
            } else {
                format!("{open}{kept}{close}")
            };
            Edit { range: at..end, by }
        }));
    }
    apply(text, edits)
}

/// What of a list of citations by author and year stays, and what goes; nothing if all of it stays.
fn list(inside: &str, cited: &Cited<'_>) -> Option<(String, Vec<String>)> {
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for part in inside.split(';') {
        match author_year(part) {
            Some((name, year)) if !cited.have(&name, &year) => refused.push(part.trim().to_owned()),
            _ => kept.push(part.trim()),
        }
    }
    (!refused.is_empty()).then(|| (kept.join("; "), refused))
}

/// The words and numbers of the cited sources, one set for each.
struct Cited<'a>(Vec<HashSet<&'a str>>);

impl<'a> Cited<'a> {
    fn new(text: &str, library: &'a Library) -> Cited<'a> {
        let places: HashSet<usize> = text.chars().filter_map(marked).collect();
        // Without a year in the text nothing will be asked.
        let sources = places
            .into_iter()
            .filter(|_| text.contains("20") || text.contains("19"));
        let sources = sources.filter_map(|place| library.get(place));
        let sets = sources.map(|source| {
            let texts = source.versions.iter().map(|version| version.text.as_str());
            let texts = texts.chain([source.title.as_str()]);
            texts
                .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
                .collect()
        });
        Cited(sets.collect())
    }

    fn have(&self, name: &str, year: &str) -> bool {
        let year = year.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let parts = || {
            name.split(|c: char| !c.is_alphanumeric())
                .filter(|part| !part.is_empty())
        };
        self.0
            .iter()
            .any(|words| words.contains(year) && parts().all(|part| words.contains(part)))
    }
}

/// The first author's name and the year of "Lewis et al., 2020" and its kin.
fn author_year(part: &str) -> Option<(String, String)> {
    let part = part.trim();
    let lead = [
        "see also ",
        "see ",
        "e.g., ",
        "e.g. ",
        "cf. ",
        "i.e., ",
        "as in ",
    ];
    let part = lead
        .iter()
        .find_map(|word| part.strip_prefix(word))
        .unwrap_or(part);
    // "p. 12" behind the year belongs to it.
    let part = part.split(", p").next().unwrap_or(part).trim();
    let (authors, last) = part.rsplit_once([' ', ','])?;
    let year = year(last)?;
    let authors = authors.trim().trim_end_matches(',');
    let words: Vec<&str> = authors
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    let plain = words
        .iter()
        .all(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let first = words
        .iter()
        .find(|word| word.starts_with(char::is_uppercase))?;
    let first = first.trim_matches(|c: char| !c.is_alphanumeric());
    let others = ["al.", "al", "and", "&", "und", "et"];
    let several =
        words.len() == 1 || words.iter().any(|word| others.contains(word)) || part.contains(", ");
    let small = |word: &&&str| word.starts_with(char::is_lowercase) && !others.contains(*word);
    let fits = plain && several && words.len() <= 8 && words.iter().filter(small).count() <= 2;
    let named = first.chars().count() >= 2 && !NO_NAMES.contains(&first);
    (fits && named).then(|| (first.to_owned(), year.to_owned()))
}

fn year(text: &str) -> Option<&str> {
    let digits = text
        .strip_suffix(|c: char| c.is_ascii_lowercase())
        .unwrap_or(text);
    let century = digits.starts_with("19") || digits.starts_with("20");
    (digits.len() == 4 && century && digits.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

/// The name in "Lewis et al." or "Lewis and Perez" at the end of a text.
fn narrative(before: &str) -> Option<String> {
    let tail = before
        .get(before.ceil_char_boundary(before.len().saturating_sub(80))..)?
        .trim_end();
    let words: Vec<&str> = tail.split_whitespace().collect();
    let capital = |word: &&&str| word.starts_with(char::is_uppercase) && !NO_NAMES.contains(*word);
    let name = match words.as_slice() {
        [.., name, "et", "al." | "al"] => Some(name).filter(capital),
        [.., name, "and" | "&", other] => Some(name).filter(capital).filter(|_| capital(&other)),
        _ => None,
    };
    name.map(|name| name.trim_matches(|c: char| !c.is_alphanumeric()).to_owned())
}
