//! How long names and keys may be: the same on every store, so that what one of them keeps all others do.
//!
//! Called by stores before they write, and by whoever would else do work that could not be saved. A database
//! has keys in an index, whose entries are bounded; these bounds fit the narrowest, whatever characters there are.

use crate::Error;

/// The most bytes that the key of a note takes, be it a step's name, and the key or the whole namespace of a
/// document in memory. A character up to U+0003 takes two; each label of a namespace takes one more.
pub const LONGEST_KEY: usize = 1024;

/// How many bytes a text takes as a key.
fn bytes(text: &str) -> usize {
    // They are written with two characters where a database cannot have them as they are.
    text.len() + text.chars().filter(|c| *c <= '\u{3}').count()
}

fn fits(what: &'static str, bytes: usize) -> Result<(), Error> {
    let most = LONGEST_KEY;
    match bytes <= most {
        true => Ok(()),
        false => Err(Error::LongKey { what, bytes, most }),
    }
}

/// Whether a store takes a note of this key.
///
/// # Errors
/// [`Error::LongKey`].
pub fn note_key_fits(key: &str) -> Result<(), Error> {
    fits("a step's name or a note's key", bytes(key))
}

/// Whether a memory takes a document of this name.
///
/// # Errors
/// [`Error::LongKey`].
pub fn memory_key_fits(namespace: &[String], key: &str) -> Result<(), Error> {
    let labels = namespace.iter().map(|label| bytes(label) + 1);
    fits("a namespace of memory", labels.sum())?;
    fits("a key of memory", bytes(key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test is a panic")]
    use super::*;

    #[test]
    fn a_text_takes_its_bytes_and_one_more_for_each_of_the_lowest_characters() {
        for (text, takes) in [("", 0), ("a", 1), ("é", 2), ("\0\u{3}", 4), ("\u{4}日", 4)] {
            assert_eq!(bytes(text), takes, "{text:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_named_with_its_bound() {
        let long = "x".repeat(LONGEST_KEY);
        note_key_fits(&long).unwrap();
        memory_key_fits(&["x".repeat(LONGEST_KEY - 1)], &long).unwrap();
        let longer = long.clone() + "\0";
        let said = [
            note_key_fits(&longer),
            memory_key_fits(&[], &longer),
            memory_key_fits(&[long], ""),
        ]
        .map(|refused| refused.unwrap_err().to_string());
        let expected = [
            "a step's name or a note's key takes at most 1024 bytes, not 1026",
            "a key of memory takes at most 1024 bytes, not 1026",
            "a namespace of memory takes at most 1024 bytes, not 1025",
        ];
        assert_eq!(said, expected);
    }
}
