//! A text in which nothing is hidden: characters that nobody sees, entities, HTML tags and comments.
//!
//! The first rule. Line breaks stay, so that places in the result are places in what was given. Code keeps its tags
//! and entities, which a renderer shows as they are.

use paraph_gateway::is_hidden;

use super::{NO_SUCH_WORK, UNCITED, code};

/// The longest tag, in bytes.
const MAX_TAG: usize = 4_000;
/// The longest entity, in bytes.
const MAX_ENTITY: usize = 32;

/// What the entities that a text about anything may use mean. Angle brackets and the ampersand stay entities, since
/// they would make tags.
const ENTITIES: [(&str, char); 50] = [
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bdquo", '„'),
    ("sbquo", '‚'),
    ("lsaquo", '‹'),
    ("rsaquo", '›'),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("lpar", '('),
    ("rpar", ')'),
    ("colon", ':'),
    ("sol", '/'),
    ("period", '.'),
    ("percnt", '%'),
    ("num", '#'),
    ("hyphen", '‐'),
    ("dash", '‐'),
    ("lowbar", '_'),
    ("commat", '@'),
    ("bsol", '\\'),
    ("excl", '!'),
    ("quest", '?'),
    ("semi", ';'),
    ("equals", '='),
    ("grave", '`'),
    ("ast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("Tab", ' '),
    ("NewLine", ' '),
    ("shy", ' '),
    ("zwnj", ' '),
    ("zwj", ' '),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("minus", '−'),
    ("Hat", '^'),
];

/// The text without what is hidden.
pub(super) fn plain(text: &str) -> String {
    let mut out = untagged(&visible(text));
    // These marks are made anew. A note about a quotation stays: its marks are gone, so that it is not looked up again.
    for mark in [UNCITED, NO_SUCH_WORK] {
        out = out.replace(&format!(" {mark}"), "").replace(mark, "");
    }
    // Entities may have brought some in.
    visible(&out)
}

/// The text without tags, comments and entities outside of code.
pub(super) fn untagged(seen: &str) -> String {
    let mut out = String::with_capacity(seen.len());
    let mut at = 0;
    for range in code::ranges(seen) {
        markup(seen.get(at..range.start).unwrap_or_default(), &mut out);
        out.push_str(seen.get(range.clone()).unwrap_or_default());
        at = range.end;
    }
    markup(seen.get(at..).unwrap_or_default(), &mut out);
    out
}

/// Line breaks are one kind, blanks are one kind, and what nobody sees is gone.
fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let one = |c: char| match c {
        '\n' | '\r' => Some('\n'),
        '\t' => Some('\t'),
        c if c.is_whitespace() => Some(' '),
        c if is_hidden(c) => None,
        c => Some(c),
    };
    text.chars().filter_map(one).collect()
}

fn markup(text: &str, out: &mut String) {
    let mut rest = text;
    // Once no comment ends in the rest, none will.
    let mut comments_end = true;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let length = if rest.starts_with('&') {
            entity(rest).map(|(c, length)| {
                out.push(c);
                length
            })
        } else if rest.starts_with("<!--") {
            let end = if comments_end { rest.find("-->") } else { None };
            comments_end = end.is_some();
            end.map(|end| {
                keep_lines(rest.get(..end).unwrap_or_default(), out);
                end + 3
            })
        } else {
            tag(rest, out)
        };
        let first = rest.get(..1).unwrap_or_default();
        if length.is_none() {
            out.push_str(first);
            // What never ends is no tag; nobody else shall take it for one.
            let opens = |c: char| c.is_ascii_alphabetic() || "/!?".contains(c);
            let opens = rest.get(1..).is_some_and(|rest| rest.starts_with(opens));
            out.push_str(if first == "<" && opens { " " } else { "" });
        }
        rest = rest.get(length.unwrap_or(1)..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// What an entity at the beginning of a text stands for, and its length.
fn entity(text: &str) -> Option<(char, usize)> {
    let head = text.get(..text.floor_char_boundary(MAX_ENTITY))?;
    let end = head.find(';')?;
    let c = entity_char(head.get(1..end)?)?;
    (!"<>&".contains(c)).then_some((if c == '\n' { ' ' } else { c }, end + 1))
}

/// What stands between `&` and `;`, as a character.
pub(super) fn entity_char(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = match hex {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32);
    }
    let angle = [
        ("lt", '<'),
        ("gt", '>'),
        ("amp", '&'),
        ("LT", '<'),
        ("GT", '>'),
        ("AMP", '&'),
    ];
    let all = ENTITIES.iter().chain(&angle);
    all.into_iter()
        .find(|(known, _)| *known == name)
        .map(|(_, c)| *c)
}

/// Takes a tag at the beginning of a text away, and says how long it is. Addresses in it are left as text, so that
/// they are judged; a superscript number becomes one in brackets.
fn tag(text: &str, out: &mut String) -> Option<usize> {
    let second = text.chars().nth(1)?;
    if !(second.is_ascii_alphabetic() || "/!?".contains(second)) {
        return None;
    }
    let head = text.get(..text.floor_char_boundary(MAX_TAG))?;
    let end = head.get(1..)?.find(['>', '<'])? + 1;
    if !head.get(end..)?.starts_with('>') {
        return None;
    }
    let inside = head.get(1..end)?;
    let after = text.get(end + 1..).unwrap_or_default();
    let name: String = inside
        .chars()
        .take_while(|c| *c == '/' || c.is_ascii_alphanumeric())
        .collect();
    match name.to_ascii_lowercase().as_str() {
        "q" | "/q" => out.push('"'),
        "br" | "br/" | "p" | "/p" | "td" | "/td" | "li" | "/li" | "div" | "/div" => out.push(' '),
        "sup" if after.starts_with(|c: char| c.is_ascii_digit()) => {
            let digits = after.chars().take_while(char::is_ascii_digit).count();
            let closed = after
                .get(digits..)
                .unwrap_or_default()
                .strip_prefix("</sup>");
            if closed.is_some() {
                out.push('[');
                out.push_str(after.get(..digits).unwrap_or_default());
                out.push(']');
                return Some(end + 1 + digits + "</sup>".len());
            }
        }
        _ => {}
    }
    let telling = |word: &&str| {
        ["://", "www.", "src-", "10.", ":"]
            .iter()
            .any(|part| word.contains(part))
    };
    let words = inside.split(|c: char| c.is_whitespace() || "\"'=".contains(c));
    for word in words.filter(telling) {
        out.push_str(if out.ends_with(char::is_whitespace) || out.is_empty() {
            ""
        } else {
            " "
        });
        out.push_str(word);
        out.push_str(if after.starts_with(char::is_alphanumeric) {
            " "
        } else {
            ""
        });
    }
    keep_lines(inside, out);
    Some(end + 1)
}

fn keep_lines(text: &str, out: &mut String) {
    out.extend(text.chars().filter(|c| *c == '\n'));
}
