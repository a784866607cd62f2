//! A page as start tags, end tags and text, with a bound on what one tag may have.
//!
//! Called by `html`. The tokenizer calls itself for each quoted attribute of a tag, so that a few kilobytes of them
//! would end the process: its input ends where a tag has more than any page needs.

use std::cell::Cell;
use std::rc::Rc;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Readable as _, Reader, Span, StringReader, Tokenizer};

/// The most attributes of a tag. A thousand would overflow a thread's stack of two megabytes.
const MAX_ATTRIBUTES: usize = 256;

/// What a page is made of.
pub(super) enum Piece {
    Open(Tag),
    /// The name of an end tag.
    Close(String),
    Text(String),
}

/// A start tag.
pub(super) struct Tag {
    pub(super) name: String,
    /// Whether its attributes say that nobody sees what is in it.
    pub(super) hidden: bool,
}

/// The pieces of a page, in order; what comes before a tag with too many attributes, if there is one.
pub(super) fn pieces(html: &str) -> impl Iterator<Item = Piece> + '_ {
    let attributes = Rc::new(Cell::new(0));
    let mut tag = Building {
        attributes: Rc::clone(&attributes),
        ..Building::default()
    };
    let mut emitter =
        CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| tag.event(event));
    // Inside scripts and styles no tag begins; the tokenizer must be told.
    emitter.naively_switch_states(true);
    let reader = Bounded {
        inner: html.to_reader(),
        attributes,
    };
    Tokenizer::new_with_emitter(reader, emitter).map_while(Result::ok)
}

#[derive(Debug, thiserror::Error)]
#[error("a tag has more than {MAX_ATTRIBUTES} attributes")]
struct TooMany;

struct Bounded<'a> {
    inner: StringReader<'a>,
    attributes: Rc<Cell<usize>>,
}

impl Bounded<'_> {
    fn check(&self) -> Result<(), TooMany> {
        (self.attributes.get() <= MAX_ATTRIBUTES)
            .then_some(())
            .ok_or(TooMany)
    }
}

impl Reader for Bounded<'_> {
    type Error = TooMany;

    fn read_byte(&mut self) -> Result<Option<u8>, TooMany> {
        self.check()?;
        let Ok(byte) = self.inner.read_byte();
        Ok(byte)
    }

    fn try_read_string(&mut self, s: &[u8], case_sensitive: bool) -> Result<bool, TooMany> {
        self.check()?;
        let Ok(read) = self.inner.try_read_string(s, case_sensitive);
        Ok(read)
    }

    fn read_until<'b>(
        &'b mut self,
        needle: &[u8],
        char_buf: &'b mut [u8; 4],
    ) -> Result<Option<&'b [u8]>, TooMany> {
        self.check()?;
        let Ok(read) = self.inner.read_until(needle, char_buf);
        Ok(read)
    }
}

/// A start tag while it is read.
#[derive(Default)]
struct Building {
    name: String,
    hidden: bool,
    attribute: Vec<u8>,
    attributes: Rc<Cell<usize>>,
}

impl Building {
    fn event(&mut self, event: CallbackEvent<'_>) -> Option<Piece> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match event {
            CallbackEvent::OpenStartTag { name } => {
                (self.name, self.hidden) = (text(name), false);
                self.attributes.set(0);
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes.set(self.attributes.get() + 1);
                self.hidden |= name == b"hidden";
                self.attribute = name.to_vec();
            }
            CallbackEvent::AttributeValue { value } => {
                self.hidden |= hides(&self.attribute, &text(value));
            }
            CallbackEvent::CloseStartTag { .. } => {
                self.attributes.set(0);
                let (name, hidden) = (std::mem::take(&mut self.name), self.hidden);
                return Some(Piece::Open(Tag { name, hidden }));
            }
            CallbackEvent::EndTag { name } => {
                self.attributes.set(0);
                return Some(Piece::Close(text(name)));
            }
            CallbackEvent::String { value } => return Some(Piece::Text(text(value))),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }
}

/// Whether an attribute says of an element that it is not seen.
fn hides(name: &[u8], value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    match name {
        b"aria-hidden" => value == "true",
        b"style" => {
            let style: String = value.split_whitespace().collect();
            [
                "display:none",
                "visibility:hidden",
                "font-size:0;",
                "opacity:0;",
            ]
            .iter()
            .any(|hides| format!("{style};").contains(hides))
        }
        _ => false,
    }
}
