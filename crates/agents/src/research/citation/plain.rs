//! A text in which nothing is hidden: characters that nobody sees, entities, HTML tags and comments.
//!
//! The first rule. Line breaks stay, so that places in the result are places in what was given. Code keeps its tags
//! and entities, which a renderer shows as they are.

use std::borrow::Cow;
use std::sync::LazyLock;

use paraph_gateway::is_hidden;
use pulldown_cmark::{Event, Parser};
use regex::Regex;

use super::{NO_SUCH_WORK, UNCITED, code};

/// The longest tag, in bytes.
const MAX_TAG: usize = 4_000;
/// The longest entity, in bytes.
const MAX_ENTITY: usize = 32;

/// The elements of HTML. Renderers hide tags of others, too, so what only looks like one is escaped.
const ELEMENTS: &str = " a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big \
    blink blockquote body br button canvas caption center cite code col colgroup data datalist dd del details dfn \
    dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head \
    header hgroup hr html i iframe img input ins kbd label legend li link main map mark marquee math menu meta meter \
    nav nobr noframes noscript object ol optgroup option output p param picture pre progress q rp rt ruby s samp \
    script search section select slot small source span strike strong style sub summary sup svg table tbody td \
    template textarea tfoot th thead time title tr track tt u ul var video wbr ";

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
        markup(
            &curly(seen.get(at..range.start).unwrap_or_default()),
            &mut out,
        );
        out.push_str(seen.get(range.clone()).unwrap_or_default());
        at = range.end;
    }
    markup(&curly(seen.get(at..).unwrap_or_default()), &mut out);
    out
}

/// The text with the quotation marks of LaTeX as those that readers see.
fn curly(text: &str) -> Cow<'_, str> {
    static MARKS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("``([^`\n]{1,2000}?)''").ok());
    match MARKS.as_ref() {
        Some(marks) => marks.replace_all(text, "“$1”"),
        None => Cow::Borrowed(text),
    }
}

/// Line breaks are one kind, blanks are one kind, and what nobody sees is gone.
fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let one = |c: char| match c {
        '\n' | '\r' => Some('\n'),
        '\t' => Some('\t'),
        c if c.is_whitespace() || c == '\u{2800}' => Some(' '),
        c if is_hidden(c) => None,
        '＂' => Some('"'),
        '０'..='９' | 'Ａ'..='Ｚ' | 'ａ'..='ｚ' => char::from_u32(u32::from(c) - 0xfee0),
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
        if length.is_none() {
            escape(rest, out);
        }
        rest = rest.get(length.unwrap_or(1)..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// Puts down a `<` or `&` that begins nothing known, so that nobody else takes it for the beginning of something.
fn escape(rest: &str, out: &mut String) {
    let first = rest.get(..1).unwrap_or_default();
    let behind = rest.get(1..).unwrap_or_default();
    let opens = |c: char| c.is_ascii_alphabetic() || "/!?".contains(c);
    if first == "&" {
        let name = behind
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        let unknown = behind
            .get(name.len()..)
            .is_some_and(|rest| rest.starts_with(';'))
            && !name.is_empty()
            && entity_char(name).is_none();
        out.push_str(if unknown { "&amp;" } else { first });
        return;
    }
    let slashes = out.len() - out.trim_end_matches('\\').len();
    if behind.starts_with(opens) && slashes.is_multiple_of(2) {
        out.push('\\');
    }
    out.push_str(first);
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
    if name.len() > MAX_ENTITY || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    // The library that shows reports knows them all.
    let written = format!("&{name};");
    let mut shown = String::new();
    for event in Parser::new(&written) {
        if let Event::Text(text) = event {
            shown.push_str(&text);
        }
    }
    let mut chars = shown.chars();
    let first = chars.next();
    first.filter(|_| chars.next().is_none() && shown != written)
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
    let name = name.to_ascii_lowercase();
    let rest = inside.get(name.len()..).unwrap_or_default().trim();
    // "a<b and c>d" has words, and tags have attributes.
    let is_tag = is_element(&name) && (rest.is_empty() || rest == "/" || rest.contains('='));
    if !(is_tag || leads(inside) || inside.starts_with(['!', '?'])) {
        return None;
    }
    match name.as_str() {
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

fn is_element(name: &str) -> bool {
    let name = name.trim_matches('/');
    !name.is_empty() && ELEMENTS.split(' ').any(|element| element == name)
}

/// Whether what stands between angle brackets is an address.
fn leads(inside: &str) -> bool {
    let scheme = inside.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.len() > 1
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    (is_scheme || inside.starts_with("src-")) && !inside.contains(char::is_whitespace)
}

fn keep_lines(text: &str, out: &mut String) {
    out.extend(text.chars().filter(|c| *c == '\n'));
}
