//! "Did you mean": the known name that is closest to a mistyped one. Pure.

/// The closest of the known names, if any is close.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let near = known.into_iter().filter_map(|name| {
        let distance = strsim::damerau_levenshtein(word, name);
        let begins = length >= 3 && name.starts_with(word);
        (distance <= 1 + length / 4 || begins).then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}
