//! Makes a text safe to post: it reads the same, and nothing in it acts. Pure.
//!
//! Text of models and of strangers is taken as words and never as Markdown. What would call somebody, refer to an issue,
//! close one, lead to an address or command a robot is put into code, where a forge leaves it alone and a reader still
//! sees it. Everything else that Markdown would read as a mark is escaped.

use paraph_gateway::is_hidden;

/// A text that does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inert {
    /// The text, in Markdown.
    pub(super) text: String,
    /// The words that were put into code because they would have acted.
    pub(super) silenced: Vec<String>,
}

/// A text of several lines.
pub(super) fn inert(text: &str) -> Inert {
    let mut made = Inert::default();
    let mut blank = false;
    for line in text.lines() {
        let line = inert_line(line, &mut made.silenced);
        match line.is_empty() {
            true => blank = !made.text.is_empty(),
            false => {
                if !made.text.is_empty() {
                    made.text.push_str(if blank { "\n\n" } else { "\n" });
                }
                made.text.push_str(&line);
                blank = false;
            }
        }
    }
    made
}

/// A text as one line.
pub(super) fn inert_words(text: &str, silenced: &mut Vec<String>) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    inert_line(&line, silenced)
}

fn inert_line(line: &str, silenced: &mut Vec<String>) -> String {
    let visible = |c: char| {
        if c == '\t' {
            Some(' ')
        } else {
            (!is_hidden(c)).then_some(c)
        }
    };
    let line: String = line.chars().filter_map(visible).collect();
    let mut words: Vec<String> = Vec::new();
    for (is_code, part) in parts(&line) {
        if is_code {
            words.extend(code(part));
            continue;
        }
        for word in part.split_whitespace() {
            if acts(word) {
                silenced.push(word.to_owned());
                words.extend(code(word));
            } else {
                words.push(escaped(word, words.is_empty()));
            }
        }
    }
    words.join(" ")
}

/// The parts of a line that stand between two single backticks, and those that do not.
fn parts(line: &str) -> Vec<(bool, &str)> {
    let mut all = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((inside, behind)) = after.split_once('`') else {
            break;
        };
        all.push((false, before));
        all.push((true, inside));
        rest = behind;
    }
    all.push((false, rest));
    all
}

/// A word in code; a backtick in it becomes another quote.
fn code(word: &str) -> Option<String> {
    let inside = word.trim().replace('`', "'");
    (!inside.is_empty()).then(|| format!("`{inside}`"))
}

/// Whether a word would do something where it is posted.
fn acts(word: &str) -> bool {
    let lower = word.to_lowercase();
    lower.contains('@')
        || lower.contains("://")
        || lower.contains("www.")
        || is_command(word)
        || has_number_behind(word, '#')
        || is_ticket(word)
}

/// `/close`, also behind marks that stand around words.
fn is_command(word: &str) -> bool {
    let bare = word.trim_start_matches(|c: char| c != '/' && !c.is_alphanumeric());
    let mut letters = bare.chars();
    letters.next() == Some('/') && letters.next().is_some_and(char::is_alphabetic)
}

fn has_number_behind(word: &str, mark: char) -> bool {
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == mark && letters.peek().is_some_and(char::is_ascii_digit) {
            return true;
        }
    }
    false
}

/// `GH-12`, `PROJ-7`: names that forges and trackers make links of.
fn is_ticket(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    bare.split(|c: char| !c.is_alphanumeric() && c != '-')
        .any(|part| {
            let Some((letters, digits)) = part.split_once('-') else {
                return false;
            };
            let named = letters.len() >= 2
                && (letters.chars().all(|c| c.is_ascii_uppercase())
                    || letters.eq_ignore_ascii_case("gh"));
            named && digits.starts_with(|c: char| c.is_ascii_digit())
        })
}

/// A word whose marks are letters to Markdown. At the beginning of a line more characters are marks.
fn escaped(word: &str, first: bool) -> String {
    let mut text = String::with_capacity(word.len() + 4);
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    for (at, letter) in word.char_indices() {
        let mark = matches!(
            letter,
            '\\' | '`'
                | '*'
                | '_'
                | '['
                | ']'
                | '<'
                | '>'
                | '&'
                | '~'
                | '|'
                | '$'
                | '#'
                | '!'
                | '{'
                | '}'
        );
        let opens = first
            && match letter {
                '-' | '+' | '=' | ':' => at == 0,
                '.' | ')' => digits > 0 && at == digits,
                _ => false,
            };
        if mark || opens {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests;
