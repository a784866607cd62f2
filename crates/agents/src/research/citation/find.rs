//! Finds what cites or leads somewhere: ids, numbers in brackets, addresses, DOIs and arXiv ids.
//!
//! Works on a [`Shadow`], so that no spelling escapes; says where in it things are, and does not judge them. Called
//! by `mark` for a text, and by `known` for the addresses of a library. Linear: every look ahead or back is bounded.

use std::ops::Range;

use super::mark;
use super::shadow::{OTHER, Shadow};

/// How far the end of a bracket is looked for.
const MAX_GROUP: usize = 600;
/// How many words besides ids a citation in brackets may have, such as "see … p. 4".
const MAX_GROUP_WORDS: usize = 4;
/// How far back a scheme or a host's name is looked for.
const MAX_BACK: usize = 80;

/// Schemes that lead somewhere without two slashes.
const SCHEMES: [&str; 14] = [
    "http",
    "https",
    "hxxp",
    "hxxps",
    "ftp",
    "file",
    "mailto",
    "javascript",
    "vbscript",
    "local",
    "urn",
    "magnet",
    "tel",
    "hdl",
];
/// Ends of the names of files and other things with a dot: a slash behind them makes no address.
const NO_DOMAINS: [&str; 48] = [
    "js", "ts", "jsx", "tsx", "py", "rs", "go", "java", "cpp", "hpp", "rb", "php", "sh", "json",
    "jsonl", "toml", "yaml", "yml", "xml", "html", "htm", "css", "csv", "tsv", "txt", "md", "pdf",
    "doc", "docx", "xls", "xlsx", "ppt", "pptx", "log", "sql", "ini", "cfg", "conf", "lock", "zip",
    "gz", "tar", "png", "jpg", "svg", "parquet", "ipynb", "bin",
];
/// Hosts that end like a file.
const HOSTS: [&str; 3] = ["docs.rs", "lib.rs", "play.rs"];
/// Ends of host names that are no ending of a product's name in small letters.
const PLAIN_DOMAINS: [&str; 7] = ["com", "org", "net", "edu", "gov", "example", "test"];

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// Ids in one pair of brackets, or one without.
    Ids(Vec<String>),
    /// A number or a footnote in brackets.
    Number,
    /// An address.
    Url,
    /// The name of a host, without a path.
    Domain(String),
    /// A DOI.
    Doi(String),
    /// An arXiv id, without its version.
    Arxiv(String),
}

#[derive(Debug)]
pub(super) struct Found {
    /// Where, in characters of the shadow.
    pub(super) chars: Range<usize>,
    pub(super) kind: Kind,
}

/// Everything, in order, without overlap.
pub(super) fn find(shadow: &Shadow) -> Vec<Found> {
    let mut all = Vec::new();
    let (mut at, mut from) = (0, 0);
    while at < shadow.chars.len() {
        let found = match shadow.at(at) {
            Some('[') => group(shadow, at),
            Some('s') => id(shadow, at).map(|(chars, id)| Found {
                chars,
                kind: Kind::Ids(vec![id]),
            }),
            Some(':') => scheme(shadow, at, from),
            Some('/') => slashes(shadow, at).or_else(|| host_and_path(shadow, at, from)),
            Some('w') => www(shadow, at),
            Some('.') => host(shadow, at, from),
            Some('1'..='9') => doi(shadow, at).or_else(|| numeric_host(shadow, at)),
            Some('a') => arxiv(shadow, at),
            _ => None,
        };
        match found {
            Some(found) => {
                at = found.chars.end.max(at + 1);
                from = at;
                all.push(found);
            }
            None => at += 1,
        }
    }
    all
}

fn group(shadow: &Shadow, at: usize) -> Option<Found> {
    let ahead = shadow.chars.get(at + 1..)?.iter().take(MAX_GROUP);
    let length = ahead
        .clone()
        .take_while(|c| **c != ']' && **c != '[')
        .count();
    (shadow.at(at + 1 + length) == Some(']')).then_some(())?;
    let inner = at + 1..at + 1 + length;
    let chars = at..inner.end + 1;
    let (mut ids, mut rest, mut place) = (Vec::new(), String::new(), inner.start);
    while place < inner.end {
        let (next, id) = match id(shadow, place).or_else(|| word_of_id(shadow, place)) {
            Some((range, id)) => (range.end, Some(id)),
            None => (place + 1, None),
        };
        rest.extend(id.is_none().then(|| shadow.at(place)).flatten());
        ids.extend(id);
        place = next;
    }
    if !ids.is_empty() {
        let words = rest
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        return (words.count() <= MAX_GROUP_WORDS).then_some(Found {
            chars,
            kind: Kind::Ids(ids),
        });
    }
    is_number(&shadow.text(inner)).then_some(Found {
        chars,
        kind: Kind::Number,
    })
}

/// `1`, `1, 2`, `3-5`, `^1`, `^note`, `4†source`: what stands in brackets where a number is cited.
fn is_number(inner: &str) -> bool {
    let inner = inner.trim();
    if let Some(note) = inner.strip_prefix('^') {
        return !note.is_empty() && note.chars().count() <= 60 && !note.contains(' ');
    }
    let inner = inner.split('†').next().unwrap_or_default().trim();
    let inner = ["ref", "refs", "source", "sources", "no", "#"]
        .iter()
        .find_map(|word| inner.strip_prefix(word))
        .unwrap_or(inner);
    let inner = inner.trim_start_matches(['.', ':', ' ']);
    let allowed = |c: char| c.is_ascii_digit() || " ,;-^+".contains(c);
    inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.chars().all(allowed)
        && inner
            .split(|c: char| !c.is_ascii_digit())
            // References begin with 1: "[0, 1]" is an interval.
            .all(|number| number.len() <= 4 && number != "0")
}

/// An id, wherever it stands: `src-` and hexadecimal digits, in any of the ways in which one could be written.
fn id(shadow: &Shadow, at: usize) -> Option<(Range<usize>, String)> {
    shadow.starts(at, "src").then_some(())?;
    let dash = |c: Option<char>| matches!(c, Some('-' | '_' | OTHER));
    let mut start = at + 3;
    while dash(shadow.at(start)) && start < at + 8 {
        start += 1;
    }
    let dashed = start > at + 3;
    let odd = matches!(shadow.at(start), Some(' ' | ':' | '.' | '#' | '/' | '='));
    start += usize::from(odd);
    let word = word(shadow, start);
    let is_hex = word.chars().all(|c| c.is_ascii_hexdigit());
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let length = word.len();
    let exact = length == 8 && is_hex;
    let begun = length > 8 && word.chars().take(8).all(|c| c.is_ascii_hexdigit());
    let close = has_digit && ((is_hex && length >= 4) || length >= 8);
    let nearly = dashed && !odd && (begun || close);
    // A word such as `src-tauri` is none. What clings to a false one goes with it.
    (exact || nearly).then(|| {
        let whole = if exact { 0 } else { end(shadow, start) };
        (at..whole.max(start + length), format!("src-{word}"))
    })
}

/// In brackets anything that begins like an id is meant as one.
fn word_of_id(shadow: &Shadow, at: usize) -> Option<(Range<usize>, String)> {
    let starts_word = at == 0 || !shadow.at(at - 1)?.is_alphanumeric();
    (starts_word && shadow.starts(at, "src-")).then_some(())?;
    let word = word(shadow, at + 4);
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let ends = matches!(shadow.at(at + 4 + word.len()), Some(']' | ',' | ';' | ' '));
    (!word.is_empty() && (has_digit || ends))
        .then(|| (at..at + 4 + word.len(), format!("src-{word}")))
}

fn word(shadow: &Shadow, at: usize) -> String {
    let here = shadow.chars.iter().skip(at);
    here.take_while(|c| c.is_ascii_alphanumeric())
        .take(MAX_BACK)
        .collect()
}

fn address(chars: Range<usize>) -> Option<Found> {
    Some(Found {
        chars,
        kind: Kind::Url,
    })
}

fn scheme(shadow: &Shadow, at: usize, from: usize) -> Option<Found> {
    let letter = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    let start = back(shadow, at, from, letter);
    let name = shadow.text(start..at);
    let next = shadow.at(at + 1)?;
    let leads = !next.is_whitespace()
        && (next.is_alphanumeric() || "/?@_.#\\".contains(next) || next == OTHER);
    let slashes = shadow.starts(at + 1, "//");
    let known = SCHEMES.iter().any(|scheme| name.ends_with(scheme));
    let data = name.ends_with("data") && word(shadow, at + 1).len() >= 3 && {
        let media = word(shadow, at + 1).len();
        shadow.at(at + 1 + media) == Some('/')
    };
    (slashes || (leads && known) || data).then_some(())?;
    address(start..end(shadow, at + 1))
}

/// `//host.example/path`, which takes the scheme of the page that it stands on.
fn slashes(shadow: &Shadow, at: usize) -> Option<Found> {
    let before = at.checked_sub(1).and_then(|at| shadow.at(at));
    let begins = before.is_none_or(|c| c.is_whitespace() || "([<\"'".contains(c));
    (begins && shadow.starts(at, "//")).then_some(())?;
    let end = end(shadow, at);
    let host: String = shadow.text(at + 2..end.max(at + 2));
    let host = host.split('/').next().unwrap_or_default();
    (host.contains('.') && host.starts_with(|c: char| c.is_ascii_alphanumeric())).then_some(())?;
    address(at..end)
}

fn www(shadow: &Shadow, at: usize) -> Option<Found> {
    let before = at.checked_sub(1).and_then(|at| shadow.at(at));
    let begins = before.is_none_or(|c| !c.is_alphanumeric());
    let host = shadow.at(at + 4).is_some_and(char::is_alphanumeric);
    (begins && shadow.starts(at, "www.") && host).then_some(())?;
    address(at..end(shadow, at))
}

fn host_before(shadow: &Shadow, at: usize, from: usize) -> Option<(usize, String)> {
    let start = back(shadow, at, from, |c| {
        c.is_ascii_alphanumeric() || ".-".contains(c)
    });
    let host = shadow.text(start..at);
    let (name, domain) = host.rsplit_once('.')?;
    let mail = start.checked_sub(1).and_then(|at| shadow.at(at)) == Some('@');
    let is_domain = (2..=24).contains(&domain.len())
        && domain.bytes().all(|byte| byte.is_ascii_alphabetic())
        && name.len() > 1
        && !NO_DOMAINS.contains(&domain);
    (!mail
        && (is_domain || HOSTS.contains(&host.as_str()))
        && name.ends_with(|c: char| c.is_ascii_alphanumeric()))
    .then_some((start, host))
}

fn host_and_path(shadow: &Shadow, at: usize, from: usize) -> Option<Found> {
    let path = shadow.at(at + 1)?;
    (path.is_alphanumeric() || "~_?#-%@.".contains(path)).then_some(())?;
    let (start, _) = host_before(shadow, at, from)?;
    address(start..end(shadow, at))
}

/// `192.0.2.7/path`. A number behind the slash makes it a network and no address of a page.
fn numeric_host(shadow: &Shadow, at: usize) -> Option<Found> {
    let before = at.checked_sub(1).and_then(|at| shadow.at(at));
    before
        .is_none_or(|c| !(c.is_alphanumeric() || ".-".contains(c)))
        .then_some(())?;
    let here = shadow.chars.iter().skip(at).take(MAX_BACK);
    let length = here
        .take_while(|c| c.is_ascii_digit() || **c == '.')
        .count();
    let host = shadow.text(at..at + length);
    let parts: Vec<&str> = host.split('.').collect();
    let fits = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    let path = shadow.at(at + length) == Some('/')
        && shadow
            .at(at + length + 1)
            .is_some_and(|c| c.is_alphabetic() || "~_?#%@".contains(c));
    (fits && path).then(|| address(at..end(shadow, at + length)))?
}

/// A host's name alone, at the dot before its ending.
fn host(shadow: &Shadow, at: usize, from: usize) -> Option<Found> {
    let domain = word(shadow, at + 1);
    PLAIN_DOMAINS.contains(&domain.as_str()).then_some(())?;
    let end = at + 1 + domain.len();
    let goes_on = match shadow.at(end) {
        Some('.') => shadow.at(end + 1).is_some_and(char::is_alphanumeric),
        Some('/') => shadow.at(end + 1).is_some_and(char::is_alphanumeric),
        Some(c) => c == '-' || c == '@' || c.is_alphanumeric(),
        None => false,
    };
    (!goes_on).then_some(())?;
    let (start, host) = host_before(shadow, end, from)?;
    Some(Found {
        chars: start..end,
        kind: Kind::Domain(host),
    })
}

/// Where the characters before a place begin that are allowed.
fn back(shadow: &Shadow, at: usize, from: usize, allowed: impl Fn(char) -> bool) -> usize {
    let floor = from.max(at.saturating_sub(MAX_BACK));
    let before = shadow.chars.get(floor..at).unwrap_or_default();
    at - before.iter().rev().take_while(|c| allowed(**c)).count()
}

/// Where an address ends that goes on at a place.
fn end(shadow: &Shadow, at: usize) -> usize {
    let (mut end, mut open) = (at, 0_usize);
    for c in shadow.chars.iter().skip(at) {
        match c {
            '(' => open += 1,
            ')' if open == 0 => break,
            ')' => open -= 1,
            c if c.is_whitespace()
                || "<>\"[]{}|^“”„«»‘’、。，）】」』".contains(*c)
                || *c == mark::SEEN =>
            {
                break;
            }
            c if *c > '\u{2e7f}' => break,
            _ => {}
        }
        end += 1;
    }
    let trailing = |c: char| ".,;:!?'_…—".contains(c);
    while end > at && shadow.at(end - 1).is_some_and(trailing) {
        end -= 1;
    }
    end
}

/// A DOI at a place: `10.`, a registrant, a slash and a name.
pub(super) fn doi(shadow: &Shadow, at: usize) -> Option<Found> {
    shadow.starts(at, "10.").then_some(())?;
    let before = at.checked_sub(1).and_then(|at| shadow.at(at));
    before
        .is_none_or(|c| !(c.is_alphanumeric() || ".,-".contains(c)))
        .then_some(())?;
    let digits = shadow
        .chars
        .iter()
        .skip(at + 3)
        .take_while(|c| c.is_ascii_digit() || **c == '.')
        .take(12)
        .count();
    let slash = at + 3 + digits;
    let registrant = shadow.text(at + 3..slash);
    let registrant = registrant.split('.').next().unwrap_or_default();
    (registrant.len() >= 4 && shadow.at(slash) == Some('/')).then_some(())?;
    let end = end(shadow, slash);
    (end > slash + 1).then(|| {
        let mut start = at;
        let lead = shadow.text(at.saturating_sub(5)..at);
        for word in ["doi: ", "doi:", "doi "] {
            if lead.ends_with(word) && start == at {
                start -= word.len();
            }
        }
        Found {
            chars: start..end,
            kind: Kind::Doi(shadow.text(at..end)),
        }
    })
}

/// An arXiv id at a place, in text or in an address.
pub(super) fn arxiv(shadow: &Shadow, at: usize) -> Option<Found> {
    shadow.starts(at, "arxiv").then_some(())?;
    let mut place = at + 5;
    for word in ["preprint", "id", ".org", "/abs", "/pdf", "/html", "abs"] {
        place += shadow
            .chars
            .iter()
            .skip(place)
            .take_while(|c| " :#-".contains(**c))
            .take(3)
            .count();
        place += if shadow.starts(place, word) {
            word.len()
        } else {
            0
        };
    }
    place += shadow
        .chars
        .iter()
        .skip(place)
        .take_while(|c| " :/.#-".contains(**c))
        .take(3)
        .count();
    let digits = |at: usize, most: usize| {
        shadow
            .chars
            .iter()
            .skip(at)
            .take_while(|c| c.is_ascii_digit())
            .take(most)
            .count()
    };
    let (year, dot) = (digits(place, 5), shadow.at(place + 4));
    let number = digits(place + 5, 6);
    let end = if year == 4 && dot == Some('.') && (4..=5).contains(&number) {
        place + 5 + number
    } else {
        // Before 2007: an archive, a slash and seven digits.
        let archive = shadow
            .chars
            .iter()
            .skip(place)
            .take_while(|c| c.is_ascii_lowercase() || ".-".contains(**c))
            .take(20)
            .count();
        let slash = place + archive;
        (archive > 1 && shadow.at(slash) == Some('/') && digits(slash + 1, 8) == 7)
            .then_some(slash + 8)?
    };
    let id = shadow.text(place..end);
    let version = if shadow.at(end) == Some('v') {
        digits(end + 1, 3)
    } else {
        0
    };
    let end = end + if version > 0 { version + 1 } else { 0 };
    Some(Found {
        chars: at..end,
        kind: Kind::Arxiv(id),
    })
}
