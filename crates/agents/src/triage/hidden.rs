//! Takes out of a text what a reader of the page would not see, and keeps a list of it for the person who decides.
//!
//! Comments, tags and declarations of HTML, texts in place of pictures, titles of links, definitions of links, and
//! characters that show nothing: a model would read all of it, the person who looks at the issue none. What stands in
//! code is shown as it is written, and stays. Pure, and never fails.

use paraph_gateway::is_hidden;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The longest hidden text that is kept, in characters.
const LONGEST: usize = 500;

/// So many hidden texts of one place are listed; of more it is said how many there were.
const MOST: usize = 50;

/// Something that a reader of the page would not see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// Where it was: `title`, `text`, `comment 3`.
    pub place: String,
    /// What it was: `HTML comment`, `text of a picture`, `characters that show nothing`, …
    pub kind: String,
    /// The text, cut; characters that show nothing are written out.
    pub text: String,
}

/// A text as a reader sees it, and what was taken out of it. The list grows by what is found.
pub(super) fn visible(place: &str, text: &str, hidden: &mut Vec<Hidden>) -> String {
    let mut found = Finds {
        place,
        all: Vec::new(),
    };
    let plain = without_characters(text, &mut found);
    let seen = without_markup(&plain, &mut found);
    found.hand_over(hidden);
    seen
}

/// The same for a single line that is no Markdown: a title, a name, a label.
pub(super) fn visible_line(place: &str, text: &str, hidden: &mut Vec<Hidden>) -> String {
    let mut found = Finds {
        place,
        all: Vec::new(),
    };
    let plain = without_characters(text, &mut found);
    found.hand_over(hidden);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

struct Finds<'p> {
    place: &'p str,
    all: Vec<Hidden>,
}

impl Finds<'_> {
    fn add(&mut self, kind: &str, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.all.push(Hidden {
                place: self.place.to_owned(),
                kind: kind.to_owned(),
                text: text.chars().take(LONGEST).collect(),
            });
        }
    }

    fn hand_over(mut self, hidden: &mut Vec<Hidden>) {
        let more = self.all.len().saturating_sub(MOST);
        self.all.truncate(MOST);
        hidden.append(&mut self.all);
        if more > 0 {
            hidden.push(Hidden {
                place: self.place.to_owned(),
                kind: "more".to_owned(),
                text: format!("{more} more hidden texts were taken out"),
            });
        }
    }
}

/// Characters that show nothing go; line breaks and tabs stay, and blanks of another kind become plain ones.
fn without_characters(text: &str, found: &mut Finds<'_>) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut gone = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\t' => plain.push(character),
            '\r' => {}
            // Spaces of other widths are seen as spaces.
            '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}' => plain.push(' '),
            '\u{2028}' | '\u{2029}' | '\u{85}' => plain.push('\n'),
            hidden if is_hidden(hidden) => gone.push(hidden),
            seen => plain.push(seen),
        }
    }
    if !gone.is_empty() {
        found.add("characters that show nothing", &written_out(&gone));
    }
    plain
}

/// Tag characters as the letters that machines read in them, others by their numbers.
fn written_out(gone: &str) -> String {
    let mut text = String::new();
    for character in gone.chars().take(LONGEST) {
        let letter = u32::from(character).checked_sub(0xe_0000);
        let letter = letter.and_then(char::from_u32);
        match letter.filter(|letter| (' '..='~').contains(letter)) {
            Some(letter) => text.push(letter),
            None => text.push_str(&format!("\\u{{{:X}}}", u32::from(character))),
        }
    }
    text
}

/// What stands in a text instead of a part of it.
struct Cut {
    range: Range<usize>,
    instead: String,
}

fn without_markup(text: &str, found: &mut Finds<'_>) -> String {
    let mut cuts = Vec::new();
    let parser = Parser::new_ext(text, options());
    let definitions: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| definition.span.clone())
        .collect();
    for span in definitions {
        found.add(
            "definition of a link",
            text.get(span.clone()).unwrap_or_default(),
        );
        cuts.push(Cut {
            range: span,
            instead: String::new(),
        });
    }
    let mut block: Option<Range<usize>> = None;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::HtmlBlock) => block = Some(range),
            Event::End(TagEnd::HtmlBlock) => {
                if let Some(range) = block.take() {
                    cuts.push(html(text, range, found));
                }
            }
            Event::InlineHtml(_) => cuts.push(html(text, range, found)),
            Event::Start(Tag::Image { .. }) => {
                found.add(
                    "text of a picture",
                    text.get(range.clone()).unwrap_or_default(),
                );
                cuts.push(Cut {
                    range,
                    instead: "[picture]".to_owned(),
                });
            }
            Event::Start(Tag::Link {
                link_type: LinkType::Inline,
                title,
                ..
            }) if !title.is_empty() => {
                found.add("title of a link", &title);
                cuts.extend(title_of(text, range));
            }
            _ => {}
        }
    }
    apply(text, cuts)
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
}

/// The title in `[text](address "title")`: from the blank before its quote to the closing bracket.
fn title_of(text: &str, range: Range<usize>) -> Option<Cut> {
    let link = text.get(range.clone())?;
    let target = link.rfind("](")? + 2;
    let rest = link.get(target..)?;
    let quote = rest.find([' ', '\t', '\n'])?;
    let end = range.end.checked_sub(1)?;
    Some(Cut {
        range: range.start + target + quote..end,
        instead: String::new(),
    })
}

/// A stretch of HTML: its text stays, its comments, declarations and tags go.
fn html(text: &str, range: Range<usize>, found: &mut Finds<'_>) -> Cut {
    let mut rest = text.get(range.clone()).unwrap_or_default();
    let mut instead = String::new();
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        instead.push_str(before);
        let (kind, length) = markup(from);
        let (gone, after) = from.split_at(length);
        match kind {
            Markup::None => instead.push('<'),
            Markup::Tag if has_hidden_words(gone) => found.add("attributes of an HTML tag", gone),
            Markup::Tag => {}
            Markup::Comment => found.add("HTML comment", gone),
            Markup::Declaration => found.add("HTML declaration", gone),
        }
        rest = after;
    }
    instead.push_str(rest);
    Cut { range, instead }
}

enum Markup {
    None,
    Tag,
    Comment,
    Declaration,
}

/// What begins here, and how many bytes it has. What is never closed goes to the end.
fn markup(from: &str) -> (Markup, usize) {
    let until = |mark: &str, skip: usize| {
        let tail = from.get(skip..).unwrap_or_default();
        tail.find(mark)
            .map_or(from.len(), |at| skip + at + mark.len())
    };
    if from.starts_with("<!-->") || from.starts_with("<!--->") {
        return (Markup::Comment, until(">", 0));
    }
    if from.starts_with("<!--") {
        return (Markup::Comment, until("-->", 4));
    }
    if from.starts_with("<![CDATA[") {
        return (Markup::Declaration, until("]]>", 9));
    }
    if from.starts_with("<?") {
        return (Markup::Declaration, until("?>", 2));
    }
    if from.starts_with("<!") {
        return (Markup::Declaration, until(">", 2));
    }
    let second = from.chars().nth(1);
    match second {
        Some(letter) if letter.is_ascii_alphabetic() || letter == '/' => {
            (Markup::Tag, end_of_tag(from))
        }
        _ => (Markup::None, 1),
    }
}

/// The end of a tag; a `>` inside of quotes does not end it.
fn end_of_tag(from: &str) -> usize {
    let mut quote = None;
    for (at, character) in from.char_indices() {
        match (quote, character) {
            (None, '>') => return at + 1,
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    from.len()
}

/// Whether a tag carries words that are not shown, rather than an address or a form.
fn has_hidden_words(tag: &str) -> bool {
    tag.contains('=')
}

/// The text with its cuts, the first of two that overlap.
fn apply(text: &str, mut cuts: Vec<Cut>) -> String {
    cuts.sort_by_key(|cut| (cut.range.start, std::cmp::Reverse(cut.range.end)));
    let (mut seen, mut at) = (String::with_capacity(text.len()), 0);
    for cut in cuts {
        if cut.range.start < at {
            continue;
        }
        seen.push_str(text.get(at..cut.range.start).unwrap_or_default());
        seen.push_str(&cut.instead);
        at = cut.range.end;
    }
    seen.push_str(text.get(at..).unwrap_or_default());
    seen
}

#[cfg(test)]
mod tests;
