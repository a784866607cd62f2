//! HTML to readable text: what a person would see of the page's main part, one block a line.
//!
//! One pass over the tokens, no tree: pages are broken in every way, and a tree of a hostile one can be as deep as
//! the page is long. What is hidden, and what frames the page (menus, forms, footers), is left out. A page that
//! marks its main part is cut to that, if it is more than a few words.

use bounded::{Piece, Tag, pieces};

mod bounded;

/// Elements whose inside nobody reads, or that frame what one reads.
const LEFT_OUT: [&str; 19] = [
    "aside", "audio", "button", "canvas", "dialog", "footer", "form", "iframe", "nav", "noscript",
    "object", "picture", "script", "select", "style", "svg", "template", "textarea", "video",
];

/// Elements that may end without an end tag: at the next of their kind, or with what they are in.
const OPEN_ENDED: [&str; 11] = [
    "dd", "dt", "li", "option", "p", "rp", "rt", "tbody", "td", "th", "tr",
];

/// Elements that have no inside.
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// Elements that run on within a line.
const INLINE: [&str; 37] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em",
    "font", "i", "img", "input", "ins", "kbd", "label", "link", "mark", "meta", "q", "rp", "rt",
    "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "wbr",
];

/// From so many characters on the part that a page marks as its main one stands for the page.
const MAIN_ENOUGH: usize = 200;

/// Longest title that is kept, in characters.
const MAX_TITLE: usize = 300;

/// Title and text of a page.
pub(super) fn readable(html: &str) -> (Option<String>, String) {
    let mut reading = Reading::default();
    for piece in pieces(html) {
        match piece {
            Piece::Open(tag) => reading.open(&tag),
            Piece::Close(name) => reading.close(&name),
            Piece::Text(text) => reading.text(&text),
        }
    }
    let title = crate::said::cut(reading.title.finish(), MAX_TITLE);
    let (main, whole) = (reading.main.finish(), reading.whole.finish());
    let text = match main.chars().nth(MAIN_ENOUGH) {
        Some(_) => main,
        None => whole,
    };
    ((!title.is_empty()).then_some(title), text)
}

/// Text that is no HTML, without what cannot be seen.
pub(super) fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| is_visible(*c) && *c != '\r')
        .collect();
    text.trim().to_owned()
}

/// How far one has got.
#[derive(Default)]
struct Reading {
    title: Text,
    whole: Text,
    main: Text,
    /// How many elements are open that say they are the main part.
    in_main: usize,
    in_title: bool,
    in_pre: usize,
    skipping: Option<Skipping>,
}

/// An element whose inside is left out, and how many of its name are open in it.
struct Skipping {
    name: String,
    depth: usize,
    /// How many other elements are open in it, as far as it may end without an end tag.
    inside: usize,
}

impl Reading {
    fn open(&mut self, tag: &Tag) {
        let name = tag.name.as_str();
        if self.stays_skipped(name) {
            return;
        }
        let void = VOID.contains(&name);
        if !void && (LEFT_OUT.contains(&name) || tag.hidden) {
            self.skipping = Some(Skipping {
                name: name.to_owned(),
                depth: 0,
                inside: 0,
            });
            self.line();
            return;
        }
        match name {
            "title" => self.in_title = self.title.is_empty(),
            "main" | "article" => self.in_main += 1,
            "pre" => self.in_pre += 1,
            _ => {}
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "table" | "ul" | "ol" | "dl"
            | "pre" | "blockquote" | "article" | "section" | "main" | "figure" => self.paragraph(),
            name if !INLINE.contains(&name) && !["td", "th", "title"].contains(&name) => {
                self.line()
            }
            _ => {}
        }
        match name {
            "h1" => self.mark("# "),
            "h2" => self.mark("## "),
            "h3" | "h4" | "h5" | "h6" => self.mark("### "),
            "li" => self.mark("- "),
            "td" | "th" => self.cell(),
            _ => {}
        }
    }

    /// Whether a start tag is still inside of what is left out.
    fn stays_skipped(&mut self, name: &str) -> bool {
        let Some(skipping) = &mut self.skipping else {
            return false;
        };
        if OPEN_ENDED.contains(&skipping.name.as_str()) {
            let block = !INLINE.contains(&name) && !VOID.contains(&name);
            let ends = match skipping.name.as_str() {
                "p" => block,
                own => own == name && skipping.inside == 0,
            };
            if ends {
                self.skipping = None;
                return false;
            }
            skipping.inside += usize::from(!VOID.contains(&name));
        } else if skipping.name == name {
            skipping.depth += 1;
        }
        true
    }

    fn close(&mut self, name: &str) {
        if let Some(skipping) = &mut self.skipping {
            let own = skipping.name == name;
            if OPEN_ENDED.contains(&skipping.name.as_str()) {
                let outer = skipping.inside == 0;
                skipping.inside = skipping.inside.saturating_sub(1);
                if !outer {
                    return;
                }
                self.skipping = None;
                if own {
                    return;
                }
            } else {
                match (own, skipping.depth) {
                    (true, 0) => self.skipping = None,
                    (true, _) => skipping.depth -= 1,
                    (false, _) => {}
                }
                return;
            }
        }
        match name {
            "title" => self.in_title = false,
            "pre" => self.in_pre = self.in_pre.saturating_sub(1),
            _ => {}
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "table" | "ul" | "ol" | "dl"
            | "pre" | "blockquote" | "article" | "section" | "main" | "figure" => self.paragraph(),
            name if !INLINE.contains(&name) && !["td", "th", "title"].contains(&name) => {
                self.line()
            }
            _ => {}
        }
        if ["main", "article"].contains(&name) {
            self.in_main = self.in_main.saturating_sub(1);
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipping.is_some() {
            return;
        }
        if self.in_title {
            self.title.push(text, false);
            return;
        }
        let pre = self.in_pre > 0;
        self.whole.push(text, pre);
        if self.in_main > 0 {
            self.main.push(text, pre);
        }
    }

    fn line(&mut self) {
        self.whole.gap = self.whole.gap.max(Gap::Line);
        self.main.gap = self.main.gap.max(Gap::Line);
    }

    fn paragraph(&mut self) {
        self.whole.gap = Gap::Paragraph;
        self.main.gap = Gap::Paragraph;
    }

    fn mark(&mut self, mark: &'static str) {
        self.whole.mark = mark;
        self.main.mark = mark;
    }

    /// Cells of a row stand apart.
    fn cell(&mut self) {
        for text in [&mut self.whole, &mut self.main] {
            if text.gap < Gap::Line {
                text.gap = Gap::Cell;
            }
        }
    }
}

/// What parts two words.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    Nothing,
    Space,
    Cell,
    Line,
    Paragraph,
}

/// Text as it grows. What parts two words is written when the second one comes.
#[derive(Default)]
struct Text {
    text: String,
    gap: Gap,
    mark: &'static str,
}

impl Text {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn push(&mut self, text: &str, pre: bool) {
        for c in text.chars() {
            match c {
                '\n' if pre => {
                    self.gap = Gap::Nothing;
                    self.text.push('\n');
                }
                ' ' | '\t' if pre && self.gap == Gap::Nothing => self.text.push(c),
                c if c.is_whitespace() => self.gap = self.gap.max(Gap::Space),
                c if is_visible(c) => self.visible(c),
                _ => {}
            }
        }
    }

    fn visible(&mut self, c: char) {
        if !self.text.is_empty() {
            self.text.push_str(match self.gap {
                Gap::Nothing => "",
                Gap::Space => " ",
                Gap::Cell => " | ",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
        self.gap = Gap::Nothing;
        self.text.push_str(std::mem::take(&mut self.mark));
        self.text.push(c);
    }

    fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}

/// Whether a character shows: no controls, none of the marks that hide text or turn it around. The joiners stay:
/// some scripts cannot be written without them.
fn is_visible(c: char) -> bool {
    let hides = matches!(c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !hides && (!c.is_control() || c == '\n' || c == '\t')
}

#[cfg(test)]
mod tests;
