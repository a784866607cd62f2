//! What a terminal can show: colours, a spinner, and text that cannot disturb it.

use crate::config::Environment;
use std::io::IsTerminal as _;

/// How standard error is written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Somebody watches: lines may be rewritten.
    pub(crate) live: bool,
    /// Colours are welcome.
    pub(crate) colour: bool,
}

/// The few colours there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ink {
    Dim,
    Green,
    Red,
    Yellow,
}

impl Screen {
    /// Standard error as it is. `NO_COLOR` (set to anything) and `TERM=dumb` mean plain text.
    pub(crate) fn of_stderr(environment: &Environment) -> Screen {
        let terminal = std::io::stderr().is_terminal();
        let dumb = environment.real("TERM") == Some("dumb");
        Screen {
            live: terminal && !dumb,
            colour: terminal && !dumb && environment.real("NO_COLOR").is_none_or(str::is_empty),
        }
    }

    /// The text in a colour, or as it is.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Dim => "2",
            Ink::Green => "32",
            Ink::Red => "31",
            Ink::Yellow => "33",
        };
        match self.colour && !text.is_empty() {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// Text from a model, a tool or a file, safe to show: without control characters, escape sequences and
/// marks that reorder or hide what is around them. Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' => character,
            _ if character.is_control() || is_invisible(character) => '\u{fffd}',
            _ => character,
        })
        .collect()
}

/// The same on one line, cut to so many characters.
pub(crate) fn printable_line(text: &str, most: usize) -> String {
    let mut line: String = printable(text)
        .chars()
        .map(|character| {
            if character.is_whitespace() {
                ' '
            } else {
                character
            }
        })
        .take(most)
        .collect();
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

/// JSON text in which such characters are escaped: the same value, safe to show. Outside of strings JSON
/// has none of them.
pub(crate) fn printable_json(json: String) -> String {
    let disturbs = |c: char| (c.is_control() && c != '\n') || is_invisible(c);
    if !json.contains(disturbs) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        match disturbs(character) {
            true => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => out.push(character),
        }
    }
    out
}

/// Marks that reorder or hide the text around them, and characters that show nothing at all: a text can
/// say something else to its reader than to a model.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_disturb_a_terminal_is_replaced() {
        let table = [
            ("plain é 日本\n\ttext", "plain é 日本\n\ttext"),
            ("\u{1b}[2Jgone", "\u{fffd}[2Jgone"),
            ("a\rb\u{7}", "a\u{fffd}b\u{fffd}"),
            ("\u{202e}txt.exe", "\u{fffd}txt.exe"),
            ("\u{9b}2J\u{e0041}\u{ad}", "\u{fffd}2J\u{fffd}\u{fffd}"),
        ];
        for (text, expected) in table {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_line("a\nb\tc", 9), "a b c");
        assert_eq!(printable_line("abcdef", 3), "abc…");
    }

    #[test]
    fn json_that_is_shown_keeps_its_value() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}[2J\n\u{202e}\u{7f}\u{e0041}é 日"]});
        let shown = printable_json(serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
        assert!(
            shown.contains(r#"\u001b[2J\n\u202e\u007f\udb40\udc41é 日"#),
            "{shown}"
        );
        assert_eq!(printable(&shown), shown);
    }

    #[test]
    fn colours_are_only_used_where_they_are_welcome() {
        let colourful = Screen {
            live: true,
            colour: true,
        };
        assert_eq!(colourful.paint(Ink::Red, "no"), "\u{1b}[31mno\u{1b}[0m");
        assert_eq!(Screen::default().paint(Ink::Red, "no"), "no");
    }
}
