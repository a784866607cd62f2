//! "Did you mean": the known word that is closest to a mistyped one.

/// The closest of the known words, if any is close.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + length / 4 || (length >= 4 && candidate.starts_with(word))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The same as the end of a sentence: `; did you mean …?`, or nothing.
pub(crate) fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match closest(word, known) {
        Some(close) => format!("; did you mean `{close}`?"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_words_are_suggested() {
        let known = ["max_steps", "max_seconds", "success"];
        let table = [
            ("max_step", Some("max_steps")),
            ("maxsteps", Some("max_steps")),
            ("sucess", Some("success")),
            ("max_", Some("max_steps")),
            ("banana", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(closest(word, known), expected, "{word}");
        }
    }
}
