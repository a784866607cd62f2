//! From what a model wrote to what it means: JSON in any wrapping, lists, ids. Pure, and never fails: what cannot be
//! read is nothing, and the caller says what then.

use paraph_models::json_in;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Around what a model thinks aloud.
const THOUGHT: (&str, &str) = ("<think>", "</think>");

/// A text without what a model thought aloud before it. A thought that never ends is all that there is, so that nothing is
/// left. What stands further down belongs to the text: it may be about such marks, or quote somebody who writes them.
pub(crate) fn without_thoughts(text: &str) -> &str {
    let (begins, ends) = THOUGHT;
    let mut rest = text.trim();
    if !rest.starts_with(begins) {
        return after_open_thought(rest);
    }
    while let Some(inside) = rest.strip_prefix(begins) {
        rest = match inside.split_once(ends) {
            Some((_, said)) => said.trim(),
            None => "",
        };
    }
    rest
}

/// The same where the thought had begun before the text did: one mark, on a line of its own, and no heading before it.
fn after_open_thought(text: &str) -> &str {
    let (begins, ends) = THOUGHT;
    let Some((thought, said)) = text.split_once(ends) else {
        return text;
    };
    let alone = said.is_empty() || said.starts_with(['\n', '\r']);
    let is_thought = alone && !thought.starts_with('#') && !thought.contains(begins);
    match is_thought && !said.contains(ends) {
        true => said.trim(),
        false => text,
    }
}

/// A value in what a model wrote: alone, fenced, or inside prose.
pub(crate) fn value<T: DeserializeOwned>(text: &str) -> Option<T> {
    let (_, json) = json_in(without_thoughts(text)).ok()?;
    serde_json::from_value(json).ok()
}

/// What the writer of a brief says.
#[derive(Deserialize)]
pub(crate) struct WrittenBrief {
    pub(crate) brief: String,
    #[serde(default)]
    pub(crate) questions: Vec<String>,
    #[serde(default)]
    pub(crate) complexity: String,
}

/// What whoever may ask back says.
#[derive(Deserialize)]
pub(crate) struct AskedBack {
    #[serde(default)]
    pub(crate) question: Option<String>,
}

/// What the red team says.
#[derive(Deserialize, Default)]
pub(crate) struct Attack {
    /// Ids of older critiques that still hold.
    #[serde(default)]
    pub(crate) still_open: Vec<String>,
    #[serde(default)]
    pub(crate) new: Vec<Weakness>,
}

/// A weakness that it found.
#[derive(Deserialize)]
pub(crate) struct Weakness {
    pub(crate) concern: String,
    #[serde(default)]
    pub(crate) severity: Option<u64>,
}

/// What whoever makes facts of notes says.
#[derive(Deserialize)]
pub(crate) struct Extracted {
    pub(crate) facts: Vec<ExtractedFact>,
}

/// A fact, as it was said.
#[derive(Deserialize)]
pub(crate) struct ExtractedFact {
    pub(crate) fact: String,
    #[serde(default)]
    pub(crate) sources: Vec<String>,
}

/// The ids of sources that a text names, in order, each once.
pub(crate) fn ids_in(text: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (at, _) in text.match_indices(PREFIX) {
        let rest = text.get(at + PREFIX.len()..).unwrap_or_default();
        let digits = rest
            .bytes()
            .take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let id = match digits.count() {
            DIGITS => format!("{PREFIX}{}", rest.get(..DIGITS).unwrap_or_default()),
            _ => continue,
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

const PREFIX: &str = "src-";
const DIGITS: usize = 8;

/// What was read, as it is marked: which source, and whether a passage or the page.
pub(crate) fn marks_in(text: &str) -> Vec<String> {
    let begins = |line: &&str| line.starts_with(MARK) && line.contains(" begins: ");
    text.lines().filter(begins).map(str::to_owned).collect()
}

/// How the mark begins behind which a source's text stands.
const MARK: &str = "=====[ text of src-";

/// At most so many characters of a text, with a mark if it goes on.
pub(crate) fn short(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text).trim_end()),
    }
}

/// `1 point is open`, `2 points are open`.
pub(crate) fn counted(count: u64, what: &str, more: &str, is: &str) -> String {
    match count {
        1 => format!("1 {what}{more} is {is}"),
        count => format!("{count} {what}s{more} are {is}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_behind_thoughts_in_fences_and_in_prose() {
        let table = [
            r#"{"question": "Which year?"}"#,
            "<think>{\"question\": null} hm</think>\n{\"question\": \"Which year?\"}",
            "Sure:\n```json\n{\"question\": \"Which year?\"}\n```\nGood luck",
        ];
        for text in table {
            let asked: Option<AskedBack> = value(text);
            assert_eq!(
                asked.and_then(|a| a.question).as_deref(),
                Some("Which year?"),
                "{text}"
            );
        }
        assert!(value::<WrittenBrief>("no JSON").is_none());
        assert!(value::<WrittenBrief>(r#"{"brief": 5}"#).is_none());
    }

    #[test]
    fn only_what_is_thought_before_a_text_is_taken_from_it() {
        let table = [
            ("<think>hm</think> It is so.", "It is so."),
            (
                " <think>hm</think>\n<think>well</think>\nIt is so.",
                "It is so.",
            ),
            ("hm\n</think>\n\nIt is so.", "It is so."),
            ("<think>a secret plan", ""),
            (
                "# Tags\n\nThe tag </think> ends a thought.",
                "# Tags\n\nThe tag </think> ends a thought.",
            ),
            ("# Tags\n\nhm\n</think>\nSo.", "# Tags\n\nhm\n</think>\nSo."),
            (
                "It says </think> and </think>\nso.",
                "It says </think> and </think>\nso.",
            ),
            (
                "<think>hm</think> It says </think> too.",
                "It says </think> too.",
            ),
        ];
        for (text, said) in table {
            assert_eq!(without_thoughts(text), said, "{text}");
        }
    }

    #[test]
    fn ids_are_found_once_and_only_whole() {
        let text = "[src-0011aabb, src-0011aabb] (src-ffffffff) src-12 src-0011aabbc src-0011AABB";
        assert_eq!(ids_in(text), ["src-0011aabb", "src-ffffffff"]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(short("äöü", 2), "äö…");
        assert_eq!(short("äöü", 3), "äöü");
    }
}
