//! Variables in prompts: `{{name}}` stands for a text that the file or a flag gives.
//!
//! What is filled in is not looked at again, so that a variable may hold braces.

use std::collections::BTreeMap;

/// One piece of a prompt.
enum Piece<'t> {
    Text(&'t str),
    /// The name of a variable.
    Variable(&'t str),
}

/// The names of the variables in a prompt, in order, with repeats.
pub(super) fn placeholders(text: &str) -> Vec<&str> {
    let pieces = pieces(text).into_iter();
    let names = pieces.filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    });
    names.collect()
}

/// The prompt with its variables filled in. One that is not known stays as it is written.
pub(super) fn fill(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Variable(name) => match variables.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("{{{{{name}}}}}")),
            },
        }
    }
    out
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest.get(from..).and_then(|tail| tail.find("{{")) {
        let at = from + at;
        let tail = rest.get(at + 2..).unwrap_or_default();
        let name = tail.split_once("}}").map(|(name, _)| name);
        match name.filter(|name| is_name(name.trim())) {
            Some(name) => {
                pieces.push(Piece::Text(rest.get(..at).unwrap_or_default()));
                pieces.push(Piece::Variable(name.trim()));
                rest = tail.get(name.len() + 2..).unwrap_or_default();
                from = 0;
            }
            // Braces of something else, such as an example of JSON.
            None => from = at + 1,
        }
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn is_name(text: &str) -> bool {
    super::keys::Form::Variable.fits(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_other_braces() {
        let table: [(&str, &[&str]); 7] = [
            ("Serve {{shop}} in {{ town }}.", &["shop", "town"]),
            (r#"Answer {"a": {"b": 1}} only."#, &[]),
            ("{{{x}}}", &["x"]),
            ("{{a b}} {{1}} {{}} {{x", &[]),
            ("{{a}}{{a}}", &["a", "a"]),
            ("{{{{y}}}}", &["y"]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(placeholders(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let variables = [("a", "{{b}}"), ("b", "é")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let table = [
            ("{{a}} and {{ b }}", "{{b}} and é"),
            ("{{{b}}}", "{é}"),
            ("{{c}}", "{{c}}"),
            ("{{", "{{"),
        ];
        for (text, expected) in table {
            assert_eq!(fill(text, &variables.clone().into()), expected);
        }
    }
}
