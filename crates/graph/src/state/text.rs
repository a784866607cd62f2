//! JSON text that can be read back: nothing is saved that would make a thread unreadable.
//!
//! Used for channels and for notes. Two things can be written as JSON and not be read again: what is
//! nested deeper than the reader goes, and numbers that JSON does not have (`NaN`, infinities), which
//! are written as `null`.

mod floats;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::ser::{Formatter, Serializer};
use std::io::{Error, Write};

/// How deep a saved text may be nested; the reader goes to 127.
const DEEPEST: u32 = 120;

/// `value` as JSON, if it reads back as a `Back`.
pub(crate) fn write<T: Serialize + ?Sized, Back: DeserializeOwned>(
    value: &T,
) -> Result<Vec<u8>, serde_json::Error> {
    let (json, nulls) = shallow(value)?;
    // Most nulls are what they look like; reading all of it back for them would cost more than
    // writing it did.
    if nulls && floats::has_odd(value) {
        serde_json::from_slice::<Back>(&json)?;
    }
    Ok(json)
}

/// `value` as JSON of a bounded depth, and whether there are nulls in it.
pub(crate) fn shallow<T: Serialize + ?Sized>(
    value: &T,
) -> Result<(Vec<u8>, bool), serde_json::Error> {
    let mut json = Vec::with_capacity(128);
    let mut nulls = false;
    let careful = Careful {
        depth: 0,
        nulls: &mut nulls,
    };
    value.serialize(&mut Serializer::with_formatter(&mut json, careful))?;
    Ok((json, nulls))
}

/// Compact, as `serde_json` writes by itself, but counting.
struct Careful<'a> {
    depth: u32,
    nulls: &'a mut bool,
}

impl Careful<'_> {
    fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Error::other(format!("nested deeper than {DEEPEST} levels")));
        }
        Ok(())
    }
}

impl Formatter for Careful<'_> {
    fn write_null<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<(), Error> {
        *self.nulls = true;
        writer.write_all(b"null")
    }

    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<(), Error> {
        self.deeper()?;
        writer.write_all(b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<(), Error> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<(), Error> {
        self.deeper()?;
        writer.write_all(b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> Result<(), Error> {
        self.depth -= 1;
        writer.write_all(b"}")
    }
}
