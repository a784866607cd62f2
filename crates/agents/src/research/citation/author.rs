//! Citations by author and year, such as "(Lewis et al., 2020)": they have to stand in what is cited.
//!
//! In parentheses or brackets such a citation goes if no cited source has both the name and the year; in a sentence,
//! as in "Lewis et al. (2020) show", a note is put behind it. Called by `check`, when ids are marks already.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

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

/// Names with what follows them in a sentence: "Lewis et al.", "Lewis and Perez (2020)", "Lewis (2020)", "Lewis's 2020
/// paper". The first group is a name, the second a year, if there is one.
const NARRATIVES: [&str; 3] = [
    r"(\p{Lu}[\p{L}\p{M}’'-]+),?\s+et\s+al\b\.?(?:[’']s)?(?:,?\s*[(（\[]?\s*((?:1[5-9]|20)\d\d)[a-z]?[)）\]]?)?",
    r"(\p{Lu}[\p{L}\p{M}’'-]+)(?:\s+(?:and|&|und|et|y)\s+\p{Lu}[\p{L}\p{M}’'-]+)?(?:[’']s)?\s*[(（]((?:1[5-9]|20)\d\d)[a-z]?[)）]",
    r"(\p{Lu}[\p{L}\p{M}-]+)[’']s?\s+((?:1[5-9]|20)\d\d)\s+(?:paper|study|article|report|survey|work|book)",
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    NARRATIVES
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
});

/// The text without citations of authors whom no cited source names.
pub(super) fn check(text: &str, library: &Library, ledger: &mut Ledger) -> String {
    let code = code::ranges(text);
    let cited = Cited::new(text, library);
    let mut found = in_brackets(text, &cited);
    found.extend(in_sentences(text, &cited));
    found.sort_by_key(|found| found.edit.range.start);
    let lines = Lines::new(text);
    let (mut edits, mut until) = (Vec::new(), 0);
    for Refusable { at, refused, edit } in found {
        if code::contains(&code, at.start) || at.start < until {
            continue;
        }
        for what in refused {
            ledger.refuse(RefusedKind::AuthorYear, &what, lines.at(at.start), WHY);
        }
        until = at.end;
        edits.push(edit);
    }
    apply(text, edits)
}

/// What names a work that no cited source names.
struct Refusable {
    at: Range<usize>,
    refused: Vec<String>,
    edit: Edit,
}

fn in_brackets(text: &str, cited: &Cited<'_>) -> Vec<Refusable> {
    let mut found = Vec::new();
    for (at, open) in text.char_indices().filter(|(_, c)| "([（［".contains(*c)) {
        let from = at + open.len_utf8();
        let rest = text.get(from..).unwrap_or_default();
        let head = rest
            .get(..rest.floor_char_boundary(MAX_INSIDE))
            .unwrap_or_default();
        let Some(length) = head.find([')', ']', '(', '[', '）', '］', '（', '［']) else {
            continue;
        };
        let close = match open {
            '(' => ')',
            '[' => ']',
            '（' => '）',
            _ => '］',
        };
        let inside = head.get(..length).unwrap_or_default();
        if !head.get(length..).unwrap_or_default().starts_with(close) {
            continue;
        }
        let at = at..from + length + close.len_utf8();
        found.extend(list(inside, cited).map(|(kept, refused)| Refusable {
            at: at.clone(),
            refused,
            edit: Edit {
                range: at,
                by: if kept.is_empty() {
                    String::new()
                } else {
                    format!("{open}{kept}{close}")
                },
            },
        }));
    }
    found
}

fn in_sentences(text: &str, cited: &Cited<'_>) -> Vec<Refusable> {
    let mut found = Vec::new();
    for regex in COMPILED.iter() {
        for captures in regex.captures_iter(text) {
            let (Some(whole), Some(name)) = (captures.get(0), captures.get(1)) else {
                continue;
            };
            let year = captures.get(2).map(|year| year.as_str());
            if NO_NAMES.contains(&name.as_str()) || cited.have(name.as_str(), year.as_slice()) {
                continue;
            }
            // A full stop behind it may end the sentence.
            let end = whole.start() + whole.as_str().trim_end_matches([',', ' ']).len();
            found.push(Refusable {
                at: whole.range(),
                refused: vec![whole.as_str().to_owned()],
                edit: Edit {
                    range: end..end,
                    by: format!(" {NO_SUCH_WORK}"),
                },
            });
        }
    }
    found
}

/// What of a list of citations by author and year stays, and what goes; nothing if all of it stays.
fn list(inside: &str, cited: &Cited<'_>) -> Option<(String, Vec<String>)> {
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for part in inside.split(';') {
        match author_year(part) {
            Some((name, years)) if !cited.have(name, &years) => {
                refused.push(part.trim().to_owned());
            }
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
        let asked = ["20", "19", "18", "17", "16", "15", "al.", "press", "n.d."];
        // Without any of these nothing will be asked.
        let asks = asked.iter().any(|part| text.contains(part)) || text.contains(" al");
        let sources = places.into_iter().filter(|_| asks);
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

    /// Whether one of them has the name and all of the years.
    fn have(&self, name: &str, years: &[&str]) -> bool {
        let parts = || {
            name.split(|c: char| !c.is_alphanumeric())
                .filter(|part| part.chars().count() > 1)
        };
        self.0.iter().any(|words| {
            years
                .iter()
                .all(|year| words.contains(year.trim_end_matches(|c: char| c.is_ascii_lowercase())))
                && parts().all(|part| words.contains(part))
        })
    }
}

/// Words that introduce a citation.
const LEADS: [&str; 7] = [
    "see also ",
    "see ",
    "e.g., ",
    "e.g. ",
    "cf. ",
    "i.e., ",
    "as in ",
];
/// What stands for the year of what has none.
const UNDATED: [&str; 6] = [
    "n.d",
    "in press",
    "forthcoming",
    "to appear",
    "submitted",
    "in prep",
];
/// Words between authors.
const BETWEEN: [&str; 6] = ["al.", "al", "and", "&", "und", "et"];

/// The first author's name and the years of "Lewis et al., 2020" and its kin.
fn author_year(part: &str) -> Option<(&str, Vec<&str>)> {
    let part = part.trim();
    let part = LEADS
        .iter()
        .find_map(|word| part.strip_prefix(word))
        .unwrap_or(part);
    // "p. 12" behind the year belongs to it.
    let part = part.split(", p").next().unwrap_or(part).trim();
    let dated = UNDATED
        .iter()
        .find_map(|word| part.trim_end_matches('.').strip_suffix(word));
    let (part, undated) = (dated.unwrap_or(part), dated.is_some());
    let words = part.split([' ', ',']).filter(|word| !word.is_empty());
    let (years, words): (Vec<&str>, Vec<&str>) = words.partition(|word| year(word).is_some());
    // The "b" of "2020a,b".
    let is_letter =
        |word: &&str| word.len() == 1 && word.starts_with(|c: char| c.is_ascii_lowercase());
    let words: Vec<&str> = words
        .into_iter()
        .filter(|word| years.is_empty() || !is_letter(word))
        .collect();
    let plain = words
        .iter()
        .all(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let first = words
        .iter()
        .find(|word| word.starts_with(char::is_uppercase))?;
    let first = first.trim_matches(|c: char| !c.is_alphanumeric());
    let between = words.iter().any(|word| BETWEEN.contains(word));
    let many = words.iter().any(|word| ["al.", "al"].contains(word));
    let several = words.len() == 1 || between || part.contains(", ") || undated;
    let small = |word: &&&str| word.starts_with(char::is_lowercase) && !BETWEEN.contains(*word);
    let fits = plain && several && words.len() <= 8 && words.iter().filter(small).count() <= 2;
    let dated = !years.is_empty() || undated || many;
    let named = first.chars().count() >= 2 && !NO_NAMES.contains(&first);
    (fits && named && dated).then_some((first, years))
}

/// A year with the letter that tells works of one year apart.
fn year(text: &str) -> Option<&str> {
    let digits = text
        .strip_suffix(|c: char| c.is_ascii_lowercase())
        .unwrap_or(text);
    let century = ["15", "16", "17", "18", "19", "20"];
    let begins = century.iter().any(|century| digits.starts_with(century));
    (digits.len() == 4 && begins && digits.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, NARRATIVES};

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(COMPILED.len(), NARRATIVES.len());
    }
}
