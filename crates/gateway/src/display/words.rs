//! Words that are not what they look like: letters of several scripts in one, or all of another script and alike.

use super::Warning;
use super::class::{is_hidden, is_mark};
use unicode_script::{Script, UnicodeScript as _};

/// How many words are named.
const MAX_WORDS: usize = 8;
/// How many characters of a word are looked at and named.
const MAX_WORD: usize = 64;
/// How many scripts are named.
const MAX_SCRIPTS: usize = 4;

/// The word that is being read, and the warnings so far.
#[derive(Debug, Default)]
pub(super) struct Words {
    word: String,
    length: usize,
    scripts: Vec<Script>,
    warnings: Vec<Warning>,
}

impl Words {
    /// Takes the next character. What cannot be seen does not part a word.
    pub(super) fn see(&mut self, character: char) {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' => self.add(character, true),
            '\0'..='\u{7f}' => self.end(),
            _ if is_hidden(character) => {}
            _ if is_mark(character) => {
                if self.length > 0 {
                    self.add(character, false);
                }
            }
            _ if character.is_alphanumeric() => self.add(character, true),
            _ => self.end(),
        }
    }

    fn add(&mut self, character: char, own: bool) {
        self.length += 1;
        if self.length <= MAX_WORD {
            self.word.push(character);
        }
        let script = group(character.script());
        if own
            && !matches!(script, Script::Common | Script::Inherited | Script::Unknown)
            && self.scripts.len() < MAX_SCRIPTS
            && !self.scripts.contains(&script)
        {
            self.scripts.push(script);
        }
    }

    fn end(&mut self) {
        let warning = match self.scripts.as_slice() {
            [] => None,
            [only] => self.alike(*only),
            // Neither looks like the other, and Japanese and Chinese mix them in everyday words.
            [Script::Latin, Script::Han] | [Script::Han, Script::Latin] => None,
            several => Some(Warning::MixedScripts {
                word: self.shown(),
                scripts: several.iter().map(|script| script.full_name()).collect(),
            }),
        };
        if let Some(warning) = warning
            && self.warnings.len() < MAX_WORDS
            && !self.warnings.contains(&warning)
        {
            self.warnings.push(warning);
        }
        self.word.clear();
        self.length = 0;
        self.scripts.clear();
    }

    /// A whole word of another script whose letters all look like Latin ones. One letter is no word.
    fn alike(&self, script: Script) -> Option<Warning> {
        if !matches!(script, Script::Cyrillic | Script::Greek)
            || !(2..=MAX_WORD).contains(&self.length)
        {
            return None;
        }
        let like: Option<String> = self.word.chars().map(latin).collect();
        like.map(|like| Warning::LooksLatin {
            word: self.shown(),
            like,
        })
    }

    /// The word, as a text is shown.
    fn shown(&self) -> String {
        let mut shown = String::new();
        for unit in super::unit::units(&self.word, super::unit::Layout::Field) {
            unit.write(&mut shown);
        }
        if self.length > MAX_WORD {
            shown.push('…');
        }
        shown
    }

    pub(super) fn warnings(mut self) -> Vec<Warning> {
        self.end();
        self.warnings
    }
}

/// Scripts that are used together in the words of one language count as one.
fn group(script: Script) -> Script {
    match script {
        Script::Hiragana | Script::Katakana | Script::Bopomofo | Script::Hangul => Script::Han,
        other => other,
    }
}

/// The Latin letter or digit that a letter of Cyrillic or Greek looks like in most fonts.
fn latin(character: char) -> Option<char> {
    const CYRILLIC: &[(char, char)] = &[
        ('а', 'a'),
        ('с', 'c'),
        ('ԁ', 'd'),
        ('е', 'e'),
        ('һ', 'h'),
        ('і', 'i'),
        ('ј', 'j'),
        ('ӏ', 'l'),
        ('о', 'o'),
        ('р', 'p'),
        ('ԛ', 'q'),
        ('ѕ', 's'),
        ('ѵ', 'v'),
        ('ԝ', 'w'),
        ('х', 'x'),
        ('у', 'y'),
        ('А', 'A'),
        ('В', 'B'),
        ('С', 'C'),
        ('Е', 'E'),
        ('Н', 'H'),
        ('І', 'I'),
        ('Ј', 'J'),
        ('К', 'K'),
        ('М', 'M'),
        ('О', 'O'),
        ('Р', 'P'),
        ('Ѕ', 'S'),
        ('Т', 'T'),
        ('Х', 'X'),
        ('У', 'Y'),
        ('Ԝ', 'W'),
        ('Ӏ', 'I'),
    ];
    const GREEK: &[(char, char)] = &[
        ('α', 'a'),
        ('ι', 'i'),
        ('ν', 'v'),
        ('ο', 'o'),
        ('ρ', 'p'),
        ('υ', 'u'),
        ('ϲ', 'c'),
        ('ϳ', 'j'),
        ('Α', 'A'),
        ('Β', 'B'),
        ('Ε', 'E'),
        ('Ζ', 'Z'),
        ('Η', 'H'),
        ('Ι', 'I'),
        ('Κ', 'K'),
        ('Μ', 'M'),
        ('Ν', 'N'),
        ('Ο', 'O'),
        ('Ρ', 'P'),
        ('Τ', 'T'),
        ('Υ', 'Y'),
        ('Χ', 'X'),
    ];
    if character.is_ascii_digit() {
        return Some(character);
    }
    let pairs = CYRILLIC.iter().chain(GREEK);
    let found = pairs.into_iter().find(|(from, _)| *from == character);
    found.map(|(_, to)| *to)
}
