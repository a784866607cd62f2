//! One broken house rule. Every rule returns these; `tests/house.rs` prints them. It decides nothing.

use std::fmt;

/// A broken rule, with where it is broken and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the workspace's root, with forward slashes.
    pub file: String,
    /// The line, counted from 1; 1 where the whole file is meant.
    pub line: usize,
    /// What is wrong, then what to do.
    pub advice: String,
}

impl Finding {
    /// A finding at one place.
    pub fn new(file: &str, line: usize, advice: impl Into<String>) -> Self {
        Finding {
            file: file.to_owned(),
            line,
            advice: advice.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.advice)
    }
}
