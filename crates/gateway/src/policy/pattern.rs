//! Patterns for names and texts, and the name that somebody may have meant.

/// Whether a pattern, in which `*` stands for any text, fits the whole name. Linear in the name for
/// each `*`, whatever the two are.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The known name that is closest to a mistyped one, if any is close.
pub(crate) fn closest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    known
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= 1 + length / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
