//! The audit: what happened, one entry after the other, each sealed by the hash of the one before it.
//!
//! The gateway makes a [`Draft`] of an [`Event`] and puts it into the [`Change`](crate::Change) that it is about; the
//! store gives it its place with [`AuditEntry::link`] inside the same transaction. People check a chain with a
//! [`Verifier`], keep an [`Anchor`] of it elsewhere, and hand out a [`Pack`] about one action. Nothing here reads a
//! clock or a store.
//!
//! What a chain shows and what it does not: a changed, missing, added or moved entry is found. Entries cut off at
//! the end, and a chain that its owner wrote anew from some entry on, are found only up to the last anchor that
//! somebody else keeps. That an entry was never written is not shown by any chain.

mod anchor;
mod entry;
mod event;
mod pack;
mod signed;
mod spans;
mod verify;

#[cfg(test)]
mod tests;

pub use anchor::{Anchor, BadAnchor};
pub use entry::{AuditEntry, BadLine, Head};
pub use event::{Draft, Event, EventKind, Field, Salt};
pub use pack::{Pack, PackError, PackReport, PackStep};
pub(crate) use spans::Spans;
pub(crate) use verify::follows;
pub use verify::{Broken, BrokenLink, Verified, Verifier};

/// JSON text with every character that is not plain ASCII escaped: on one line in every editor, terminal and
/// library, also in those that end lines at U+0085 or U+2028.
fn ascii(json: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing into a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// The 64 digits of a hash, as everything here writes them.
fn is_hash(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
