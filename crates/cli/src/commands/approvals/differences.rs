//! What a person changed in an action's arguments: argument by argument, and of longer texts only the lines that are not
//! the same. Called by `show`, and where somebody decides at a terminal.

use super::{desk, refused};
use crate::failure::Failure;
use crate::stores::Kept;
use paraph_gateway::{ActionRow, ApprovalError, Json, Shape, Shown, View};
use serde::Serialize;
use std::collections::BTreeSet;

/// The longest line that is shown, in characters, and how many of one argument.
const LINE: usize = 2_000;
const LINES: usize = 200;

/// An argument that is not what it was.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    /// Its name.
    name: String,
    /// What it was, as lines; nothing if there was none.
    before: Option<Vec<String>>,
    /// What it is now; nothing if there is none.
    after: Option<Vec<String>>,
}

/// What is not as it was in the action that this one stands in the place of; nothing if it stands in the place of none, or
/// that one is gone.
pub(super) async fn differences(kept: &Kept, row: &ActionRow) -> Result<Vec<Difference>, Failure> {
    let Some((from, _)) = &row.action.said.edited else {
        return Ok(Vec::new());
    };
    match desk(kept).show(*from).await {
        Ok(before) => Ok(between(&before.action.said.args, &row.action.said.args)),
        Err(ApprovalError::NoAction(_)) => Ok(Vec::new()),
        Err(error) => Err(refused(kept, error)),
    }
}

/// The arguments by which two lists of them differ, by name.
fn between(before: &Json, after: &Json) -> Vec<Difference> {
    let (before, after) = (before.view(), after.view());
    let mut all = BTreeSet::new();
    for args in [before, after] {
        if let Shape::Object(entries) = args.shape() {
            all.extend(entries.map(|(name, _)| name.to_owned()));
        }
    }
    let differing = all.into_iter().filter_map(|name| {
        let [old, new] = [before, after].map(|args| args.get(&name).map(lines));
        if old == new {
            return None;
        }
        let (before, after) = match (old, new) {
            (Some(old), Some(new)) => {
                let (old, new) = unlike(old, new);
                (Some(old), Some(new))
            }
            gone_or_new => gone_or_new,
        };
        Some(Difference {
            name,
            before,
            after,
        })
    });
    differing.collect()
}

fn lines(value: View<'_>) -> Vec<String> {
    match value.as_str() {
        Some(text) => text.split('\n').map(str::to_owned).collect(),
        None => vec![value.to_string()],
    }
}

/// The lines between those with which both begin and end alike.
fn unlike(mut old: Vec<String>, mut new: Vec<String>) -> (Vec<String>, Vec<String>) {
    let alike = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    old.drain(..alike);
    new.drain(..alike);
    while old.last().is_some_and(|line| new.last() == Some(line)) {
        old.pop();
        new.pop();
    }
    (old, new)
}

/// For people; what is odd about what is shown goes to `odd`.
pub(super) fn in_words(differences: &[Difference], odd: &mut Vec<String>) -> String {
    let mut shown = |text: &str| {
        let shown = Shown::field(text, LINE);
        odd.extend(shown.warnings.iter().map(ToString::to_string));
        shown.text
    };
    let mut text = String::new();
    if !differences.is_empty() {
        text.push_str("\nwhat was changed\n");
    }
    for difference in differences {
        text.push_str(&format!("  {}\n", shown(&difference.name)));
        for (sign, lines) in [('-', &difference.before), ('+', &difference.after)] {
            let lines = lines.as_deref().unwrap_or_default();
            for line in lines.iter().take(LINES) {
                text.push_str(&format!("    {sign} {}\n", shown(line)));
            }
            let more = lines.len().saturating_sub(LINES);
            if more > 0 {
                text.push_str(&format!("    {sign} (and {more} more lines)\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;
    use paraph_gateway::Bounds;

    #[test]
    fn arguments_that_differ_are_named_with_the_lines_that_do() {
        let table = [
            (r#"{"a":1}"#, r#"{"a":1}"#, ""),
            (
                r#"{"cents":100,"order":7}"#,
                r#"{"order":7,"cents":90}"#,
                "\nwhat was changed\n  cents\n    - 100\n    + 90\n",
            ),
            (
                r#"{"a":1,"b":2}"#,
                r#"{"b":2,"c":[3]}"#,
                "\nwhat was changed\n  a\n    - 1\n  c\n    + [3]\n",
            ),
            (
                r#"{"text":"one\ntwo\nthree\nfour"}"#,
                r#"{"text":"one\n2\n3\nthree\nfour"}"#,
                "\nwhat was changed\n  text\n    - two\n    + 2\n    + 3\n",
            ),
            // A text and a number that reads the same are two things; what cannot be seen is written out.
            (
                r#"{"a":"same","b":"x"}"#,
                r#"{"a":"same","b":"x\u202e"}"#,
                "\nwhat was changed\n  b\n    - x\n    + x\\u{202E}\n",
            ),
        ];
        for (before, after, expected) in table {
            let read = |text: &str| Json::read(text, Bounds::default()).unwrap();
            let found = between(&read(before), &read(after));
            assert_eq!(in_words(&found, &mut Vec::new()), expected, "{after}");
        }
    }
}
