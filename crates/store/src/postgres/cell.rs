//! Values on their way to Postgres and back.
//!
//! Called by `session.rs`. Postgres keeps no NUL in text, while names and keys may have one. So in each text U+0001
//! stands for "escaped": `U+0001 0` is a NUL, `U+0001 1` is U+0001 itself. Neither occurs in JSON, where control
//! characters are written as escapes of its own: documents stay as they are and can be read with SQL. The
//! order of texts stays, too, so that a range of names is the same range in both databases.

use crate::sql::Cell;
use bytes::{BufMut, BytesMut};
use std::{borrow::Cow, error::Error};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

const NUL: char = '\0';
const MARK: char = '\u{1}';

/// A text as Postgres keeps it.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains([NUL, MARK]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            NUL => escaped.push_str("\u{1}0"),
            MARK => escaped.push_str("\u{1}1"),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// The text that was [`escaped`]; nothing if this cannot have been one.
fn plain(text: &str) -> Option<String> {
    if !text.contains(MARK) {
        return Some(text.to_owned());
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            MARK => match chars.next()? {
                '0' => NUL,
                '1' => MARK,
                _ => return None,
            },
            c => c,
        });
    }
    Some(plain)
}

/// A bound value. The server says of which type a parameter is.
pub(super) struct Bound<'a>(pub(super) &'a Cell<'a>);

impl Bound<'_> {
    /// What a statement is prepared with: numbers are always of the widest type, whatever the place where
    /// they stand would suggest; the rest follows from that place.
    pub(super) fn hint(cell: &Cell<'_>) -> Type {
        match cell {
            Cell::Int(_) => Type::INT8,
            _ => Type::UNKNOWN,
        }
    }
}

// The client library logs parameters when it is told to: they are nobody's business.
impl std::fmt::Debug for Bound<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Cell::Null => "null",
            Cell::Int(_) => "a number",
            Cell::Text(_) => "a text",
            Cell::Bytes(_) => "bytes",
        })
    }
}

impl ToSql for Bound<'_> {
    fn to_sql(
        &self,
        to: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self.0, to) {
            (Cell::Null, _) => return Ok(IsNull::Yes),
            (Cell::Int(n), &Type::INT8) => out.put_i64(*n),
            (Cell::Int(n), &Type::INT4) => out.put_i32(i32::try_from(*n)?),
            (Cell::Int(n), &Type::INT2) => out.put_i16(i16::try_from(*n)?),
            (Cell::Text(text), to) if is_text(to) => out.put_slice(escaped(text).as_bytes()),
            (Cell::Bytes(bytes), &Type::BYTEA) => out.put_slice(bytes),
            (_, to) => return Err(format!("{self:?} where the server expects {to}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn is_text(of: &Type) -> bool {
    matches!(
        *of,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN
    )
}

/// A value that was found in a row.
pub(super) struct Found(pub(super) Cell<'static>);

impl<'a> FromSql<'a> for Found {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let cell = match *of {
            Type::INT8 => Cell::Int(i64::from_sql(of, raw)?),
            Type::INT4 => Cell::Int(i32::from_sql(of, raw)?.into()),
            Type::INT2 => Cell::Int(i16::from_sql(of, raw)?.into()),
            Type::BOOL => Cell::Int(bool::from_sql(of, raw)?.into()),
            // What a sum of numbers is.
            Type::NUMERIC => Cell::Int(whole_number(raw).ok_or("no whole number of 64 bits")?),
            // What a lock answers.
            Type::VOID => Cell::Null,
            Type::BYTEA => Cell::Bytes(Cow::Owned(raw.to_vec())),
            _ if is_text(of) => {
                let text = plain(std::str::from_utf8(raw)?).ok_or("a text with a stray U+0001")?;
                Cell::Text(Cow::Owned(text))
            }
            _ => return Err(format!("a value of type {of}").into()),
        };
        Ok(Found(cell))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Found(Cell::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A `numeric` as it is sent: how many digits to the base of 10,000, the power of the first, a sign, a scale, the digits.
fn whole_number(raw: &[u8]) -> Option<i64> {
    let mut words = raw
        .chunks_exact(2)
        .map(|two| <[u8; 2]>::try_from(two).map(i16::from_be_bytes).ok());
    let mut word = || words.next().flatten();
    let (count, power, sign, _scale) = (word()?, word()?, word()?, word()?);
    let mut n: i64 = 0;
    for place in 0..=i32::from(power).max(i32::from(count) - 1) {
        let digit = if place < count.into() { word()? } else { 0 };
        if place <= power.into() {
            n = n.checked_mul(10_000)?.checked_add(digit.into())?;
        } else if digit != 0 {
            return None;
        }
    }
    match sign {
        0 => Some(n),
        0x4000 => n.checked_neg(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
