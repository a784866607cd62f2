//! Links of Markdown become what they say and what they lead to, so that one rule judges all addresses.
//!
//! `[text](target)`, images, and `[text][label]` with a definition elsewhere. Called by `check` before ids and
//! addresses are looked for. A report links to nothing but its references.

use std::collections::HashMap;
use std::ops::Range;

use super::code;
use super::edit::{Edit, apply};

/// The longest target, in bytes.
const MAX_TARGET: usize = 2_000;

/// The text without links. `labels` are the definitions that were cut out, in small letters.
pub(super) fn unfold(text: &str, labels: &HashMap<String, String>) -> String {
    let code = code::ranges(text);
    let (mut open, mut edits): (Vec<usize>, Vec<Edit>) = (Vec::new(), Vec::new());
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        let was_escaped = escaped;
        escaped = byte == b'\\' && !was_escaped;
        if was_escaped || !matches!(byte, b'[' | b']') || code::contains(&code, at) {
            continue;
        }
        if byte == b'[' {
            open.push(at);
            continue;
        }
        let Some(start) = open.pop() else { continue };
        let said = text.get(start + 1..at).unwrap_or_default();
        let Some((end, target)) = leads(text, at + 1, said, labels) else {
            continue;
        };
        let image = start > 0 && text.as_bytes().get(start - 1) == Some(&b'!');
        let target = if is_telling(&target) {
            target
        } else {
            String::new()
        };
        let gap = if target.is_empty() { "" } else { " " };
        if is_number(said) {
            edits.push(Edit {
                range: at + 1..end,
                by: format!(" {target}"),
            });
        } else {
            edits.push(Edit {
                range: start - usize::from(image)..start + 1,
                by: String::new(),
            });
            edits.push(Edit {
                range: at..end,
                by: format!("{gap}{target}"),
            });
        }
    }
    edits.sort_by_key(|edit| edit.range.start);
    apply(text, edits)
}

/// Where what follows a text in brackets ends, and what it leads to.
fn leads(
    text: &str,
    at: usize,
    said: &str,
    labels: &HashMap<String, String>,
) -> Option<(usize, String)> {
    let rest = text.get(at..)?;
    if let Some(inside) = rest.strip_prefix('(') {
        let range = target(inside)?;
        let target = inside.get(range.clone())?.trim();
        // A title may stand behind it; nobody needs that.
        let target = match target.strip_prefix('<') {
            Some(target) => target.split('>').next(),
            None => target.split_whitespace().next(),
        };
        return Some((
            at + 1 + range.end + 1,
            target.unwrap_or_default().to_owned(),
        ));
    }
    if let Some(inside) = rest.strip_prefix('[') {
        let end = inside
            .get(..inside.floor_char_boundary(MAX_TARGET))?
            .find([']', '\n'])?;
        let label = inside.get(..end)?;
        let label = if label.is_empty() { said } else { label };
        let label = (label.len() <= MAX_TARGET).then(|| label.to_lowercase())?;
        let target = labels.get(&label)?;
        return Some((at + 1 + end + 1, target.clone()));
    }
    // No definition has a longer label, and brackets may stand in brackets without end.
    let label = (said.len() <= MAX_TARGET).then(|| said.to_lowercase())?;
    let target = labels.get(&label).filter(|_| !is_number(said))?;
    Some((at, target.clone()))
}

/// What stands in the parentheses of a link.
fn target(inside: &str) -> Option<Range<usize>> {
    let head = inside.get(..inside.floor_char_boundary(MAX_TARGET))?;
    let mut depth = 0_usize;
    for (at, c) in head.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Some(0..at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn is_number(said: &str) -> bool {
    let said = said.trim().trim_start_matches('^');
    !said.is_empty()
        && said.len() <= MAX_TARGET
        && said
            .chars()
            .all(|c| c.is_ascii_digit() || " ,-".contains(c))
}

/// Whether a target could be an address. Places in the same text and files beside it lead nowhere in a report.
fn is_telling(target: &str) -> bool {
    ["//", "www.", "src", "10.", ":", "%", "&"]
        .iter()
        .any(|part| target.contains(part))
        || target
            .split(['/', ' '])
            .next()
            .is_some_and(|host| host.contains('.') && target.contains('/'))
}
