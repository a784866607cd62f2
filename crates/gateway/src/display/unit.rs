//! A text as a row of units, each shown whole or left out whole: a character, an escape, or a run of blanks.

use super::class::{is_hidden, is_mark};
use std::str::Chars;

/// Marks that may sit on one character.
const MAX_MARKS: usize = 4;
/// Spaces in a row within a field.
const MAX_SPACES: usize = 2;
/// The width of blanks in a row within a block; a tab counts as eight.
const MAX_WIDTH: usize = 80;
/// Line breaks in a row within a block, with nothing but blanks between them.
const MAX_BREAKS: usize = 5;

/// Where a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// In one line.
    Field,
    /// In several, with its line breaks and tabs.
    Block,
}

/// A piece of what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A character as it is.
    Raw(char),
    /// A character written out.
    Escape(char),
    /// Blanks, counted.
    Run {
        blanks: usize,
        breaks: usize,
        /// Whether something stands before it, and after it.
        between: (bool, bool),
    },
}

impl Unit {
    /// How many characters it is shown with.
    pub(super) fn length(self) -> usize {
        match self {
            Unit::Raw(_) => 1,
            Unit::Escape('\n' | '\r' | '\t') => 2,
            // `\u{}` and at least one digit.
            Unit::Escape(character) => 4 + (u32::from(character).max(1).ilog2() / 4 + 1) as usize,
            Unit::Run { .. } => {
                let mut text = String::new();
                self.write(&mut text);
                text.len()
            }
        }
    }

    /// How many characters of the text it stands for.
    pub(super) fn characters(self) -> usize {
        match self {
            Unit::Raw(_) | Unit::Escape(_) => 1,
            Unit::Run { blanks, breaks, .. } => blanks.saturating_add(breaks),
        }
    }

    pub(super) fn is_mark(self) -> bool {
        matches!(self, Unit::Raw(character) if is_mark(character))
    }

    pub(super) fn write(self, out: &mut String) {
        match self {
            Unit::Raw(character) => out.push(character),
            Unit::Escape('\n') => out.push_str("\\n"),
            Unit::Escape('\r') => out.push_str("\\r"),
            Unit::Escape('\t') => out.push_str("\\t"),
            Unit::Escape(character) => {
                out.push_str(&format!("\\u{{{:X}}}", u32::from(character)));
            }
            Unit::Run {
                blanks,
                breaks,
                between: (before, after),
            } => {
                let (edge, said) = match (blanks, breaks) {
                    (_, 0) => (" ", format!("[{blanks} blanks]")),
                    (0, _) => ("\n", format!("[{breaks} line breaks]")),
                    _ => ("\n", format!("[{breaks} line breaks and {blanks} blanks]")),
                };
                if before {
                    out.push_str(edge);
                }
                out.push_str(&said);
                if after {
                    out.push_str(edge);
                }
            }
        }
    }
}

/// The units of a text, from its beginning.
pub(super) fn units(text: &str, layout: Layout) -> Units<'_> {
    Units {
        rest: text.chars(),
        layout,
        begun: false,
        plain: 0,
        marks: None,
    }
}

pub(super) struct Units<'t> {
    rest: Chars<'t>,
    layout: Layout,
    /// Whether anything came before.
    begun: bool,
    /// How many of the next characters are blanks that were looked at and are shown as they are.
    plain: usize,
    /// How many marks sit on the last character; nothing if there is none that they could sit on.
    marks: Option<usize>,
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let unit = self.blanks().or_else(|| {
            let character = self.rest.next()?;
            Some(self.judge(character))
        })?;
        self.begun = true;
        Some(unit)
    }
}

impl<'t> Units<'t> {
    /// One character that is no blank of a long run.
    fn judge(&mut self, character: char) -> Unit {
        let kept = self.layout == Layout::Block && matches!(character, '\n' | '\t');
        if is_hidden(character) && !kept {
            self.marks = None;
            return Unit::Escape(character);
        }
        if !is_mark(character) {
            self.marks = (character != '\n').then_some(0);
            return Unit::Raw(character);
        }
        match &mut self.marks {
            Some(marks) if *marks < MAX_MARKS => {
                *marks += 1;
                Unit::Raw(character)
            }
            // Without a base, or too many: it and all that follow it directly are written out.
            marks => {
                *marks = None;
                Unit::Escape(character)
            }
        }
    }

    /// The blanks that come next, if they are not to be shown as they are.
    fn blanks(&mut self) -> Option<Unit> {
        if self.plain > 0 {
            self.plain -= 1;
            return None;
        }
        let run = self.look();
        let at_end = run.after.as_str().is_empty();
        match self.layout {
            _ if run.length() == 0 => None,
            Layout::Block if !run.is_long() => {
                self.plain = run.length() - 1;
                None
            }
            Layout::Field if run.blanks <= MAX_SPACES && self.begun && !at_end => {
                self.plain = run.length() - 1;
                None
            }
            Layout::Field if run.blanks <= MAX_SPACES => {
                self.rest.next();
                self.marks = None;
                Some(Unit::Escape(' '))
            }
            _ => {
                let unit = Unit::Run {
                    blanks: run.blanks,
                    breaks: run.breaks,
                    between: (self.begun, !at_end),
                };
                self.rest = run.after;
                self.marks = None;
                Some(unit)
            }
        }
    }

    /// The blanks from here on: spaces, and in a block tabs and line breaks too.
    fn look(&self) -> Run<'t> {
        let mut run = Run {
            blanks: 0,
            breaks: 0,
            width: 0,
            widest: 0,
            after: self.rest.clone(),
        };
        let block = self.layout == Layout::Block;
        loop {
            let mut ahead = run.after.clone();
            match ahead.next() {
                Some(' ') => run.width += 1,
                Some('\t') if block => run.width += 8,
                Some('\n') if block => {
                    run.breaks += 1;
                    run.width = 0;
                    run.after = ahead;
                    continue;
                }
                _ => return run,
            }
            run.blanks += 1;
            run.widest = run.widest.max(run.width);
            run.after = ahead;
        }
    }
}

struct Run<'t> {
    blanks: usize,
    breaks: usize,
    /// Of the blanks since the last line break, and the greatest of these.
    width: usize,
    widest: usize,
    after: Chars<'t>,
}

impl Run<'_> {
    fn length(&self) -> usize {
        self.blanks + self.breaks
    }

    fn is_long(&self) -> bool {
        self.breaks > MAX_BREAKS || self.widest > MAX_WIDTH
    }
}
