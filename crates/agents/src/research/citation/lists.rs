//! Lists of references that a writer made itself are cut out: the list is made by code.
//!
//! Sections with such a title, lines that define a number or a footnote, and definitions of links. Called by `check`.
//! Lines that are cut leave empty lines, so that places stay what they were.

use std::collections::HashMap;

use super::{Ledger, RefusedKind, code};

/// Words for what a list of references holds, in small letters.
const NOUNS: [&str; 33] = [
    "references",
    "reference",
    "sources",
    "source",
    "bibliography",
    "works",
    "citations",
    "footnotes",
    "endnotes",
    "reading",
    "literature",
    "links",
    "quellen",
    "quellenverzeichnis",
    "literatur",
    "literaturverzeichnis",
    "références",
    "bibliographie",
    "fuentes",
    "referencias",
    "bibliografía",
    "bibliografia",
    "referências",
    "fonti",
    "riferimenti",
    "bronnen",
    "källor",
    "źródła",
    "источники",
    "литература",
    "文献",
    "参考文献",
    "参考资料",
];
/// Words that may stand beside these in such a title. Others, as in "sources of error", make it one of something else.
const BESIDES: [&str; 34] = [
    "list",
    "of",
    "used",
    "cited",
    "consulted",
    "quoted",
    "key",
    "main",
    "primary",
    "secondary",
    "selected",
    "additional",
    "all",
    "full",
    "complete",
    "further",
    "and",
    "the",
    "for",
    "this",
    "report",
    "web",
    "online",
    "external",
    "our",
    "my",
    "notes",
    "other",
    "suggested",
    "recommended",
    "related",
    "useful",
    "und",
    "et",
];
/// Titles of sections that may be about these things.
const ABOUT: [&str; 7] = [
    "citations",
    "literature",
    "links",
    "literatur",
    "литература",
    "footnotes",
    "notes",
];
/// A section that the report has behind its text.
const MADE_BY_CODE: &str = "what was checked";
/// The most words of such a title.
const MAX_TITLE_WORDS: usize = 6;
/// What the cells in the head of a table of references say.
const CELLS: [&str; 17] = [
    "",
    "no",
    "nr",
    "n",
    "id",
    "key",
    "title",
    "url",
    "link",
    "address",
    "author",
    "authors",
    "year",
    "date",
    "type",
    "publisher",
    "accessed",
];
/// The longest line of a list's title that is no heading.
const MAX_TITLE: usize = 60;

const WHY: &str = "the list of references is made by code";

/// The text without such lists, and what the definitions of links say, by their labels in small letters.
pub(super) fn cut(text: &str, ledger: &mut Ledger) -> (String, HashMap<String, String>) {
    let mut cutter = Cutter::default();
    let lines: Vec<&str> = text.split('\n').collect();
    let kept = lines.iter().enumerate().map(|(n, line)| {
        let next = lines.get(n + 1).copied().unwrap_or_default();
        let following = lines
            .iter()
            .skip(n + 1)
            .take(3)
            .find(|line| !line.trim().is_empty());
        let goes = cutter.goes(line, next, following.copied().unwrap_or_default());
        if let Some(what) = goes {
            let whole = cutter.cutting || cutter.table;
            if cutter.told != Some(cutter.section) || !whole {
                ledger.refuse(RefusedKind::List, what, n + 1, WHY);
                cutter.told = whole.then_some(cutter.section);
            }
            return "";
        }
        line
    });
    let kept: Vec<&str> = kept.collect();
    (kept.join("\n"), cutter.labels)
}

#[derive(Default)]
struct Cutter {
    fence: Option<(char, usize)>,
    cutting: bool,
    /// The level of the heading under which is cut; a line that is no heading counts as the lowest.
    level: usize,
    section: usize,
    told: Option<usize>,
    labels: HashMap<String, String>,
    /// Whether the lines are those of a table of references.
    table: bool,
}

impl Cutter {
    /// What of a line is to be told if it goes.
    fn goes<'a>(&mut self, line: &'a str, next: &str, following: &str) -> Option<&'a str> {
        if let Some(mark) = self.fence {
            if code::closes(line, mark) {
                self.fence = None;
            }
            return self.cutting.then_some(line);
        }
        if is_table(line, next) {
            (self.table, self.section) = (true, self.section + 1);
        }
        self.table &= line.contains('|');
        if self.table {
            return Some(line);
        }
        if let Some((level, title)) = heading(line, next) {
            let begins = following.trim().is_empty() || is_entry(following);
            let list = title == MADE_BY_CODE
                || ((is_title(&title) || title == "notes") && (begins || !may_be_prose(&title)));
            if list {
                (self.cutting, self.level, self.section) = (true, level, self.section + 1);
            } else if self.cutting && (level <= self.level || super::claim::is_missing(&title)) {
                self.cutting = false;
            }
            return self.cutting.then_some(line);
        }
        if !self.cutting && is_title_line(line) && is_entry(following) {
            (self.cutting, self.level, self.section) = (true, 7, self.section + 1);
        }
        if self.cutting {
            return Some(line);
        }
        if code::fence(line).is_some() {
            self.fence = code::fence(line);
            return None;
        }
        self.definition(line)
    }

    /// `[1]: …`, `[^note]: …`, `[label]: address`, and a line that begins with a number in brackets.
    fn definition<'a>(&mut self, line: &'a str) -> Option<&'a str> {
        let bare = line.trim_start_matches(|c: char| c.is_whitespace() || "-*+>".contains(c));
        let (label, rest) = bare.strip_prefix('[')?.split_once(']')?;
        let numeric = {
            let digits = label.trim().trim_start_matches('^');
            !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit())
        };
        let defines = rest.trim_start().starts_with(':');
        let label_of_id = label.trim().to_ascii_lowercase().starts_with("src-");
        let target = rest.trim_start().trim_start_matches(':').trim();
        if defines && !numeric && !label.starts_with('^') && !label_of_id {
            let first = target.split_whitespace().next().unwrap_or_default();
            let is_address = first.contains(['/', '.', ':', '%', '&']) || first.starts_with("src");
            return is_address.then(|| {
                let target = first.trim_matches(['<', '>']).to_owned();
                self.labels.insert(label.to_lowercase(), target);
                line
            });
        }
        let entry = defines && (numeric || label.starts_with('^') || label_of_id);
        // "[1] Author, Title, 2020": no sentence begins with a number of its own.
        let listed = numeric && rest.starts_with(' ');
        (entry || listed).then_some(line)
    }
}

/// The level and the title of a heading: with number signs, underlined, or a line in bold.
pub(super) fn heading(line: &str, next: &str) -> Option<(usize, String)> {
    let line = line.trim();
    let level = line.bytes().take_while(|b| *b == b'#').count();
    if (1..=6).contains(&level) {
        let rest = line.get(level..).unwrap_or_default();
        return rest.starts_with([' ', '\t']).then(|| (level, title(rest)));
    }
    let under = next.trim();
    let all = |c: char| under.len() >= 3 && under.chars().all(|each| each == c);
    let is_text = !line.is_empty()
        && !line.starts_with(['-', '*', '+', '>', '|'])
        && line.chars().count() < 200;
    if is_text && (all('=') || all('-')) {
        return Some((if all('=') { 1 } else { 2 }, title(line)));
    }
    let bold = ["**", "__"].iter().find_map(|mark| {
        line.strip_prefix(mark)?
            .trim_end_matches(':')
            .strip_suffix(mark)
    });
    let bold = bold.filter(|inside| {
        !inside.contains("**") && !inside.contains("__") && !inside.ends_with(['.', '?', '!'])
    });
    bold.map(|inside| (7, title(inside)))
}

/// A title in small letters, without numbers, marks and emphasis around it.
fn title(text: &str) -> String {
    let around = |c: char| {
        c.is_whitespace()
            || "#*_:.0123456789)(-–—=`~[]".contains(c)
            || !(c.is_alphanumeric() || c.is_ascii())
    };
    text.trim_matches(around).to_lowercase()
}

fn is_title(title: &str) -> bool {
    let words: Vec<&str> = title
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let named = words.iter().any(|word| NOUNS.contains(word));
    // "Works" and "reading" are other things by themselves.
    let alone = matches!(words.as_slice(), ["works" | "reading"]);
    let fits = |word: &&str| NOUNS.contains(word) || BESIDES.contains(word);
    named && !alone && words.len() <= MAX_TITLE_WORDS && words.iter().all(fits)
}

/// Whether such a section may say something about its subject: it is a list if it begins like one.
fn may_be_prose(title: &str) -> bool {
    ABOUT.contains(&title)
}

/// Whether two lines are the head of a table that lists references.
fn is_table(line: &str, next: &str) -> bool {
    let rule = next.trim();
    if !(line.contains('|') && rule.contains('-') && rule.chars().all(|c| "-|: \t".contains(c))) {
        return false;
    }
    let cells: Vec<String> = line
        .trim()
        .trim_matches('|')
        .split('|')
        .map(title)
        .collect();
    let noun = |cell: &String| NOUNS.contains(&cell.as_str());
    let numbered = cells
        .first()
        .is_some_and(|cell| CELLS.contains(&cell.as_str()));
    cells.len() > 1
        && numbered
        && cells.iter().any(noun)
        && cells
            .iter()
            .all(|cell| noun(cell) || CELLS.contains(&cell.as_str()))
}

fn is_title_line(line: &str) -> bool {
    let line = line.trim();
    let marked = line.ends_with(':') || !line.contains(' ') || line.starts_with(['*', '_']);
    line.len() <= MAX_TITLE && marked && !line.ends_with('.') && is_title(&title(line))
}

/// Whether a line looks like one of a list of references.
fn is_entry(line: &str) -> bool {
    let line = line.trim();
    let listed = line.starts_with(['-', '*', '+', '[', '<', '•'])
        || line.starts_with(|c: char| c.is_ascii_digit());
    listed || line.contains("://") || line.contains("www.")
}
