//! The blocks of a Markdown text, by lines: what is a heading, a paragraph, an item, a row, a quotation, code.
//!
//! Called by `claim`. The blocks one after another are the text, byte for byte. In doubt a line is a paragraph, about
//! which most is asked.

use super::code;
use super::lists::heading;

/// A line in bold with as many words says something.
const MAX_BOLD_HEADING: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A heading, and the line under it if there is one.
    Heading,
    /// A paragraph or an item of a list.
    Text,
    /// A row of a table.
    Row,
    /// The head of a table, and the line below it.
    Head,
    /// Lines of a block quotation.
    Quote,
    /// Fenced code.
    Code,
    /// Empty lines and rules.
    Blank,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// The first line's number, from 1 on.
    pub(super) line: usize,
    /// How many bytes before the words are markup: indentation, and the mark of an item.
    pub(super) prefix: usize,
    pub(super) text: String,
    /// The heading in small letters.
    pub(super) title: String,
}

/// The blocks of a text, in order.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut all: Vec<Block> = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut take_next = false;
    for (n, line) in lines.iter().enumerate() {
        let next = lines.get(n + 1).copied().unwrap_or_default();
        let last = all.last().map(|block| block.kind);
        if take_next || fence.is_some() {
            if fence.is_some_and(|mark| code::closes(line, mark)) {
                fence = None;
            }
            take_next = false;
            append(&mut all, line);
            continue;
        }
        let (kind, title) = kind_of(line, next, last);
        if kind == Kind::Code {
            fence = code::fence(line);
        }
        take_next = kind == Kind::Head || (kind == Kind::Heading && is_underlined(line, next));
        let joins = match kind {
            Kind::Text => last == Some(Kind::Text) && item(line) == 0,
            Kind::Quote => last == Some(Kind::Quote),
            Kind::Blank => last == Some(Kind::Blank),
            _ => false,
        };
        if joins {
            append(&mut all, line);
        } else {
            let prefix = if kind == Kind::Text {
                indent(line) + item(line)
            } else {
                0
            };
            all.push(Block {
                kind,
                line: n + 1,
                prefix,
                text: (*line).to_owned(),
                title,
            });
        }
    }
    all
}

fn append(all: &mut [Block], line: &str) {
    if let Some(block) = all.last_mut() {
        block.text.push_str(line);
    }
}

fn kind_of(line: &str, next: &str, last: Option<Kind>) -> (Kind, String) {
    let bare = line.trim();
    let plain = |kind| (kind, String::new());
    let quoted = bare.get(item(line)..).unwrap_or_default().starts_with('>');
    if quoted {
        return plain(Kind::Quote);
    }
    if bare.is_empty() || is_rule(bare) {
        return plain(Kind::Blank);
    }
    if code::fence(line).is_some() {
        return plain(Kind::Code);
    }
    let in_paragraph = last == Some(Kind::Text);
    let says = |(level, title): &(usize, String)| {
        *level == 7 && title.split_whitespace().count() >= MAX_BOLD_HEADING
    };
    let titled = heading(line, next).filter(|_| !in_paragraph || bare.starts_with('#'));
    if let Some((_, title)) = titled.filter(|titled| !says(titled)) {
        return (Kind::Heading, title);
    }
    if bare.contains('|') && is_table_rule(next) {
        return plain(Kind::Head);
    }
    if bare.contains('|') && matches!(last, Some(Kind::Head | Kind::Row)) {
        return plain(Kind::Row);
    }
    // A line without its own mark goes on with the quotation, as renderers show it.
    if last == Some(Kind::Quote) && item(line) == 0 {
        return plain(Kind::Quote);
    }
    plain(Kind::Text)
}

fn is_underlined(line: &str, next: &str) -> bool {
    !line.trim().starts_with('#')
        && !next.trim().is_empty()
        && next.trim().chars().all(|c| "=-".contains(c))
}

fn is_rule(bare: &str) -> bool {
    let mark = bare.chars().next().filter(|c| "-*_=".contains(*c));
    mark.is_some_and(|mark| {
        bare.chars().filter(|c| *c == mark).count() >= 3
            && bare.chars().all(|c| c == mark || c == ' ')
    })
}

fn is_table_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('-') && line.contains('|') && line.chars().all(|c| "-|: \t".contains(c))
}

pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// How long the mark of a list's item is at the beginning of a line's words, with the blank behind it.
pub(super) fn item(line: &str) -> usize {
    let bare = line.trim_start();
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match bare.as_bytes().get(digits) {
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        _ => return 0,
    };
    let rest = bare.get(mark..).unwrap_or_default();
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    if blanks == 0 { 0 } else { mark + blanks }
}
