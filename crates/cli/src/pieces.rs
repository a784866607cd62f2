//! A state put together from what is stored of it, without its types: for showing and for exporting.
//!
//! Texts stay texts, so that every digit of a number is kept. What cannot be read is an error that names
//! the channel.

use paraph_graph::{Loaded, PatchKind, Piece};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// JSON text as it is stored.
pub(crate) type Raw = Box<RawValue>;

#[derive(Deserialize)]
struct Edit {
    set: Vec<(usize, Raw)>,
    append: Vec<Raw>,
}

/// The whole state of a checkpoint, by channel.
pub(crate) fn state(loaded: &Loaded) -> Result<BTreeMap<String, Raw>, String> {
    let whole = loaded.channels.iter().map(|(channel, pieces)| {
        let value = value(pieces).map_err(|why| format!("channel `{channel}`: {why}"))?;
        Ok((channel.clone(), value))
    });
    whole.collect()
}

/// The value of a channel from its pieces, oldest first.
pub(crate) fn value(pieces: &[Piece]) -> Result<Raw, String> {
    // A value of one piece is that piece; only of lists there are more.
    if let [
        Piece {
            kind: PatchKind::Whole,
            json,
        },
    ] = pieces
    {
        return raw(json);
    }
    let mut items: Vec<Raw> = Vec::new();
    for piece in pieces {
        match piece.kind {
            PatchKind::Whole => items = read(&piece.json)?,
            PatchKind::Append => items.append(&mut read(&piece.json)?),
            PatchKind::Edit => {
                let Edit { set, mut append } = read(&piece.json)?;
                for (index, item) in set {
                    let length = items.len();
                    let slot = items.get_mut(index);
                    *slot.ok_or_else(|| format!("item {index} of {length} is edited"))? = item;
                }
                items.append(&mut append);
            }
        }
    }
    serde_json::value::to_raw_value(&items).map_err(|error| error.to_string())
}

/// A text that is to be JSON.
pub(crate) fn raw(json: &[u8]) -> Result<Raw, String> {
    read(json)
}

fn read<'t, T: Deserialize<'t>>(json: &'t [u8]) -> Result<T, String> {
    serde_json::from_slice(json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;

    fn piece(kind: PatchKind, json: &str) -> Piece {
        Piece {
            kind,
            json: json.as_bytes().to_vec().into(),
        }
    }

    #[test]
    fn a_value_is_put_together_digit_by_digit() {
        use PatchKind::{Append, Edit, Whole};
        let edit = r#"{"set":[[1,"b"]],"append":[4.0]}"#;
        let table: [(&[(PatchKind, &str)], &str); 4] = [
            (
                &[(Whole, "12345678901234567890.0")],
                "12345678901234567890.0",
            ),
            (&[(Append, "[1]"), (Append, "[2,1e400]")], "[1,2,1e400]"),
            (
                &[(Whole, r#"[1,"a"]"#), (Append, "[3]"), (Edit, edit)],
                r#"[1,"b",3,4.0]"#,
            ),
            (&[], "[]"),
        ];
        for (pieces, expected) in table {
            let pieces: Vec<_> = pieces
                .iter()
                .map(|(kind, json)| piece(*kind, json))
                .collect();
            assert_eq!(value(&pieces).unwrap().get(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        use PatchKind::{Append, Edit, Whole};
        let table: [(&[(PatchKind, &str)], &str); 4] = [
            (&[(Whole, "{")], "EOF"),
            (&[(Whole, "{}"), (Append, "[1]")], "invalid type: map"),
            (&[(Append, "7")], "invalid type: integer"),
            (
                &[(Edit, r#"{"set":[[0,1]],"append":[]}"#)],
                "item 0 of 0 is edited",
            ),
        ];
        for (pieces, expected) in table {
            let pieces: Vec<_> = pieces
                .iter()
                .map(|(kind, json)| piece(*kind, json))
                .collect();
            let why = value(&pieces).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
