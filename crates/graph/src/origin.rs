//! Under which name the tasks of a thread were born: what their identities, their questions and their keys
//! are made of. That is the thread's own name, but for one that was moved here under another.
//!
//! Called by whoever moves a thread (an import), and by stores that copy one: a copy is another thread, and
//! begins anew. Within a run the name is part of the session, read back with each machine.

use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// The field of a saved machine.
const FIELD: &str = "origin";

/// A saved machine as that of a thread that was called `origin` where it was written; without one, as that
/// of a thread of its own. One that was moved before keeps the name it had first.
///
/// # Errors
/// If that is no machine.
pub fn with_origin(machine: &[u8], origin: Option<&str>) -> Result<Vec<u8>, serde_json::Error> {
    let mut fields: BTreeMap<&str, &RawValue> = serde_json::from_slice(machine)?;
    let named = origin.map(to_raw_value).transpose()?;
    match &named {
        Some(named) => {
            fields.entry(FIELD).or_insert(named);
        }
        None if fields.remove(FIELD).is_none() => return Ok(machine.to_vec()),
        None => {}
    }
    serde_json::to_vec(&fields)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

    use super::*;

    #[test]
    fn the_first_name_stays_until_a_copy_has_none() {
        let read = |machine: &[u8], origin| {
            String::from_utf8(with_origin(machine, origin).unwrap()).unwrap()
        };
        let machine = br#"{"superstep": 1, "big": 12345678901234567890.50}"#;
        assert_eq!(read(machine, None).as_bytes(), machine);
        let moved = read(machine, Some("a \"b\""));
        let expected = r#"{"big":12345678901234567890.50,"origin":"a \"b\"","superstep":1}"#;
        assert_eq!(moved, expected);
        assert_eq!(read(moved.as_bytes(), Some("c")), moved);
        let copied = r#"{"big":12345678901234567890.50,"superstep":1}"#;
        assert_eq!(read(moved.as_bytes(), None), copied);
        assert!(with_origin(b"7", None).is_err());
    }
}
