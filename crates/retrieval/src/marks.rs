//! Identifiers, errors and paths in a text: the words by which developers recognise a problem.
//!
//! Called for documents and queries alike. Two issues that share a rare one have words in common, whatever else they
//! say.

/// The most bytes of a mark.
const MAX_MARK: usize = 120;

/// The fewest letters and digits of one.
const MIN_MARK: usize = 4;

/// What in a text is no word of a language: `NullPointerException`, `fs.s3a.endpoint`, `E0308`, `max_len`, in lower case
/// and in order. Of a dotted path its last part is one too, if it is one by itself.
pub(crate) fn marks(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for run in text.split(|c: char| !is_part(c)) {
        let run = run.trim_matches(|c: char| !c.is_alphanumeric());
        if run.len() > MAX_MARK {
            continue;
        }
        if is_mark(run) {
            all.push(run.to_lowercase());
        }
        let last = run.rsplit('.').next().unwrap_or(run);
        if last.len() < run.len() && is_mark(last) {
            all.push(last.to_lowercase());
        }
    }
    all
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '$')
}

fn is_mark(run: &str) -> bool {
    let letters = run.chars().filter(|c| c.is_alphabetic()).count();
    let digits = run.chars().filter(char::is_ascii_digit).count();
    if letters + digits < MIN_MARK || letters == 0 {
        return false;
    }
    let pairs = || run.chars().zip(run.chars().skip(1));
    let humped = pairs().any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let snake = run.contains('_');
    let coded = run.contains(|c: char| c.is_uppercase()) && digits > 0;
    // Two parts may be a missing space behind a sentence; three are a path.
    let dotted = run.split('.').filter(|part| part.len() > 1).count() >= 3;
    humped || snake || coded || dotted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_told_from_words() {
        for (text, expected) in [
            (
                "It failed with a NullPointerException.",
                vec!["nullpointerexception"],
            ),
            ("set fs.s3a.endpoint to 1.2.3.4", vec!["fs.s3a.endpoint"]),
            (
                "at org.acme.Boat.sinkNow(Boat.java:12)",
                vec!["org.acme.boat.sinknow", "sinknow"],
            ),
            ("error[E0308]: MAX_LEN", vec!["e0308", "max_len"]),
            ("The end.Then more, e.g. that", vec![]),
            ("v2 of X1 in 2024", vec![]),
            ("HADOOP-12345 and _emphasis_ here", vec![]),
        ] {
            assert_eq!(marks(text), expected, "{text}");
        }
    }
}
