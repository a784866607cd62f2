//! The one sanitiser: every text that a person reads before deciding goes through it, and so does every text that
//! came from outside and is printed.
//!
//! The command line calls it for each field and body it shows. It changes what is shown and nothing else: what is
//! signed, stored and executed stays byte for byte as it is, and is not normalised (no NFC) for showing either. It
//! does not take secrets out; that is the redactor's work.

mod class;
mod unit;
mod words;

#[cfg(test)]
mod tests;

pub use class::is_hidden;

use class::{is_bidi, is_right_to_left, tag_letter};
use unit::{Layout, Unit, units};
use words::Words;

/// The fewest characters a text can be cut to: the notice has to fit.
const MIN_LENGTH: usize = 80;
/// How much of a text hidden in tag characters a warning repeats.
const MAX_TAGS: usize = 120;

/// A text as a person may see it: every character in it is visible, and none moves or hides another.
///
/// - Characters that are invisible, reorder or are unknown are written as `\u{202E}`; line breaks in a field as `\n`.
/// - Marks piled on one letter are written out from the fifth on.
/// - Spaces at the ends of a field are written out, and long runs of blanks are counted: ` [57 blanks] `.
/// - What is too long loses its middle, and says how long it was.
///
/// Showing what was shown changes nothing more.
///
/// ```
/// use paraph_gateway::Shown;
/// let shown = Shown::field("pay\u{202e}gnp.exe\nAccount: \u{440}aypal", 200);
/// assert_eq!(shown.text, r"pay\u{202E}gnp.exe\nAccount: рaypal");
/// let warnings: Vec<_> = shown.warnings.iter().map(|warning| warning.to_string()).collect();
/// assert_eq!(warnings, [
///     "2 characters that cannot be seen are written out",
///     "1 character would change the order of the text",
///     "`рaypal` mixes letters of Cyrillic and Latin",
/// ]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What to print.
    pub text: String,
    /// What the person should know about it, in a fixed order; empty if there is nothing odd.
    pub warnings: Vec<Warning>,
    /// How many characters the text has in truth.
    pub characters: usize,
    /// How many bytes it has in truth.
    pub bytes: usize,
}

/// Something about a text that its reader could miss.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// So many characters are invisible or unknown. They are written out.
    Hidden(usize),
    /// So many of them would have changed the order of the text on the screen.
    Reorders(usize),
    /// Letters hidden in tag characters, which only machines read. Cut if there are many.
    HiddenText(String),
    /// Letters that are written from right to left: the order on the screen is not that of the bytes.
    RightToLeft,
    /// So many marks are piled on others. They are written out.
    Piled(usize),
    /// Blanks at the ends, or long runs of them.
    Blanks,
    /// A word has letters of several scripts, as look-alikes do.
    MixedScripts {
        /// The word, as it is shown.
        word: String,
        /// The names of the scripts.
        scripts: Vec<&'static str>,
    },
    /// A word of another script looks like one of Latin letters.
    LooksLatin {
        /// The word, as it is shown.
        word: String,
        /// The Latin letters that it looks like.
        like: String,
    },
    /// The middle is left out.
    Cut {
        /// How many characters are left out.
        left_out: usize,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let characters = |n: usize| match n {
            1 => "1 character".to_owned(),
            n => format!("{n} characters"),
        };
        match self {
            Warning::Hidden(1) => f.write_str("1 character that cannot be seen is written out"),
            Warning::Hidden(n) => write!(f, "{n} characters that cannot be seen are written out"),
            Warning::Reorders(n) => {
                write!(f, "{} would change the order of the text", characters(*n))
            }
            Warning::HiddenText(text) => write!(f, "it hides the text `{text}` from people"),
            Warning::RightToLeft => {
                f.write_str("it has letters that are read from right to left: their order on the screen may deceive")
            }
            Warning::Piled(n) => write!(f, "marks are piled up; {n} of them are written out"),
            Warning::Blanks => f.write_str("it has blanks at its ends or long runs of them"),
            Warning::MixedScripts { word, scripts } => {
                write!(f, "`{word}` mixes letters of {}", scripts.join(" and "))
            }
            Warning::LooksLatin { word, like } => {
                write!(f, "`{word}` looks like `{like}` and is not")
            }
            Warning::Cut { left_out } => {
                write!(f, "{} in the middle are left out", characters(*left_out))
            }
        }
    }
}

/// Only the text.
impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Shown {
    /// A text for one line, cut to so many characters (at least 80).
    pub fn field(text: &str, characters: usize) -> Shown {
        show(text, Layout::Field, characters)
    }

    /// A text of several lines, which keeps its line breaks and tabs, cut to so many characters (at least 80).
    pub fn block(text: &str, characters: usize) -> Shown {
        show(text, Layout::Block, characters)
    }
}

fn show(text: &str, layout: Layout, max: usize) -> Shown {
    let max = max.max(MIN_LENGTH);
    let mut found = Found::default();
    let mut words = Words::default();
    let mut length: usize = 0;
    for unit in units(text, layout) {
        found.see(&unit);
        length = length.saturating_add(unit.length());
    }
    for character in text.chars() {
        found.characters += 1;
        found.letter(character);
        words.see(character);
    }
    let mut warnings = found.warnings();
    warnings.extend(words.warnings());
    let shown = match length <= max {
        true => whole(text, layout, length),
        false => {
            let notice = format!("…[{} characters, {} bytes]…", found.characters, text.len());
            let (shown, left_out) = cut(text, layout, (length, max), &notice);
            warnings.push(Warning::Cut { left_out });
            shown
        }
    };
    Shown {
        text: shown,
        warnings,
        characters: found.characters,
        bytes: text.len(),
    }
}

fn whole(text: &str, layout: Layout, length: usize) -> String {
    let mut out = String::with_capacity(length);
    for unit in units(text, layout) {
        unit.write(&mut out);
    }
    out
}

/// Head, notice and tail, and how many characters are left out between them.
fn cut(text: &str, layout: Layout, (length, max): (usize, usize), notice: &str) -> (String, usize) {
    let room = max.saturating_sub(notice.chars().count());
    let (head, tail) = (room.div_ceil(2), room / 2);
    let mut out = String::with_capacity(max);
    let (mut at, mut left_out, mut said) = (0usize, 0usize, false);
    for unit in units(text, layout) {
        let begin = at;
        at = at.saturating_add(unit.length());
        let in_tail = begin >= length.saturating_sub(tail);
        // A mark right behind the notice would sit on it.
        let floating = !said && unit.is_mark();
        if !said && at <= head {
            unit.write(&mut out);
        } else if in_tail && !floating {
            if !said {
                out.push_str(notice);
                said = true;
            }
            unit.write(&mut out);
        } else {
            left_out = left_out.saturating_add(unit.characters());
        }
    }
    if !said {
        out.push_str(notice);
    }
    (out, left_out)
}

/// What is odd about the characters of a text.
#[derive(Debug, Default)]
struct Found {
    characters: usize,
    hidden: usize,
    reorders: usize,
    piled: usize,
    blanks: bool,
    right_to_left: bool,
    tags: String,
}

impl Found {
    fn see(&mut self, unit: &Unit) {
        match unit {
            Unit::Raw(_) => {}
            Unit::Run { .. } | Unit::Escape(' ') => self.blanks = true,
            Unit::Escape(character) if is_hidden(*character) => self.hidden += 1,
            Unit::Escape(_) => self.piled += 1,
        }
    }

    fn letter(&mut self, character: char) {
        self.reorders += usize::from(is_bidi(character));
        self.right_to_left |= is_right_to_left(character);
        if let Some(letter) = tag_letter(character)
            && self.tags.len() < MAX_TAGS
        {
            self.tags.push(letter);
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let counted = |n: usize, warning: fn(usize) -> Warning| (n > 0).then(|| warning(n));
        [
            counted(self.hidden, Warning::Hidden),
            counted(self.reorders, Warning::Reorders),
            (!self.tags.is_empty()).then(|| Warning::HiddenText(self.tags.clone())),
            self.right_to_left.then_some(Warning::RightToLeft),
            counted(self.piled, Warning::Piled),
            self.blanks.then_some(Warning::Blanks),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
