//! A namespace as one text: in the order of the namespaces, and such that those below one are a range.
//!
//! Called by `memory.rs` only. Pure. A mark stands before the first label and after each, and the lowest
//! four characters are written with another one, which keeps their order: so no label has the mark, and
//! the text neither a NUL, which Postgres could not keep, nor what is written there in place of one.

/// Ends a label, and begins them all.
const END: char = '\u{2}';

/// Stands before what is left of the characters 0 to 3.
const LOW: char = '\u{3}';

pub(super) fn join(namespace: &[String]) -> String {
    let mut text = String::from(END);
    for label in namespace {
        for c in label.chars() {
            match c {
                '\0' => text.extend([LOW, '\u{4}']),
                '\u{1}' => text.extend([LOW, '\u{5}']),
                END => text.extend([LOW, '\u{6}']),
                LOW => text.extend([LOW, '\u{7}']),
                c => text.push(c),
            }
        }
        text.push(END);
    }
    text
}

/// What was joined. A text that no namespace has is read as far as it goes.
pub(super) fn split(text: &str) -> Vec<String> {
    let (mut all, mut label) = (Vec::new(), String::new());
    let mut chars = text.strip_prefix(END).unwrap_or(text).chars();
    while let Some(c) = chars.next() {
        match c {
            END => all.push(std::mem::take(&mut label)),
            LOW => match chars.next() {
                Some('\u{4}') => label.push('\0'),
                Some('\u{5}') => label.push('\u{1}'),
                Some('\u{6}') => label.push(END),
                Some('\u{7}') => label.push(LOW),
                other => label.extend(other),
            },
            c => label.push(c),
        }
    }
    if !label.is_empty() {
        all.push(label);
    }
    all
}

/// The texts of a namespace and of all below it: from the first on, and before the second.
pub(super) fn range(namespace: &[String]) -> (String, String) {
    let from = join(namespace);
    // The mark at the end becomes the next character: all that goes on from it is before that.
    let to = from.strip_suffix(END).unwrap_or(&from);
    let to = format!("{to}{LOW}");
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn namespace() -> impl Strategy<Value = Vec<String>> {
        let label = prop_oneof![
            "[\\x00-\\x08ab\\\\]{0,3}",
            any::<String>(),
            "\u{10ffff}{0,9}"
        ];
        proptest::collection::vec(label, 0..4)
    }

    proptest! {
        #[test]
        fn a_namespace_comes_back(namespace in namespace()) {
            let text = join(&namespace);
            prop_assert!(!text.contains(['\0', '\u{1}']), "a mark in a label");
            prop_assert_eq!(split(&text), namespace);
        }

        #[test]
        fn texts_have_the_order_of_namespaces(one in namespace(), other in namespace()) {
            prop_assert_eq!(join(&one).cmp(&join(&other)), one.cmp(&other));
        }

        #[test]
        fn what_is_below_a_namespace_is_its_range(prefix in namespace(), other in namespace()) {
            let (from, to) = range(&prefix);
            for name in [other.clone(), [prefix.clone(), other].concat()] {
                let text = join(&name);
                let inside = text >= from && text < to;
                prop_assert_eq!(inside, name.starts_with(&prefix), "{:?}", name);
            }
        }
    }
}
