//! Documents as rows keep them: JSON as it is, or packed, and the sum by which damage is found.
//!
//! Called by everything here that writes or reads a document column. Pure: no SQL, no clock. A document
//! of at most 16 KiB stays readable in its text column; a longer one is compressed, and with a key all of
//! them are sealed. One sum per row covers its documents as they are stored, and which row it is, so that
//! what was changed, cut short or put into another row is an error and never a value.

use crate::{seal::Seal, sql::Cell};
use std::{borrow::Cow, cell::RefCell};
use xxhash_rust::xxh3::Xxh3Default;
use zstd::bulk::{Compressor, Decompressor};

/// The longest document that stays readable, in bytes.
pub(crate) const LONGEST_PLAIN: usize = 16 * 1024;

/// No document may be longer than this, whatever a damaged row says.
const LONGEST: u64 = 1 << 30;

const LEVEL: i32 = 3;

/// First byte of a packed document: it is there as it is. For text that is not UTF-8, or has a NUL.
const RAW: u8 = 0;
/// Its length (8 bytes, little endian), and a zstd frame.
const ZSTD: u8 = 1;
/// A nonce, and the document under the key.
const SEALED: u8 = 2;
/// A nonce, and under the key what [`ZSTD`] has.
const SEALED_ZSTD: u8 = 3;

/// Which row it is: its table, and what names it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place(Vec<u8>);

impl Place {
    pub(crate) fn new(table: &'static str) -> Self {
        Place(Vec::with_capacity(96)).text(table)
    }

    /// The length goes first, so that no two lists of names run into the same bytes.
    #[must_use]
    pub(crate) fn text(mut self, name: &str) -> Self {
        self.0.extend((name.len() as u64).to_le_bytes());
        self.0.extend(name.as_bytes());
        self
    }

    #[must_use]
    pub(crate) fn int(mut self, n: u64) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }

    /// What a sealed document of this column is bound to.
    fn bound(&self, column: &str) -> Vec<u8> {
        self.clone().text(column).0
    }
}

/// A document for its two columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doc<'a> {
    pub(crate) text: Option<Cow<'a, str>>,
    pub(crate) packed: Option<Vec<u8>>,
}

impl<'a> Doc<'a> {
    /// For the columns `x` and `x_packed`.
    pub(crate) fn cells(self) -> [Cell<'a>; 2] {
        [
            self.text.map_or(Cell::Null, Cell::Text),
            self.packed
                .map_or(Cell::Null, |packed| Cell::Bytes(Cow::Owned(packed))),
        ]
    }

    /// For as long as one likes.
    pub(crate) fn owned(self) -> Doc<'static> {
        Doc {
            text: self.text.map(|text| Cow::Owned(text.into_owned())),
            packed: self.packed,
        }
    }
}

/// How documents are kept: with or without a key.
#[derive(Debug, Default)]
pub(crate) struct Codec {
    seal: Option<Seal>,
}

impl Codec {
    pub(crate) fn new(seal: Option<Seal>) -> Self {
        Codec { seal }
    }

    pub(crate) fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }

    /// The documents of one row, by column, and its sum. `fixed` is whatever else of the row the sum is to
    /// cover.
    pub(crate) fn put<'a, const N: usize>(
        &self,
        place: &Place,
        fixed: &[&[u8]],
        docs: [(&'static str, Option<&'a [u8]>); N],
    ) -> ([Doc<'a>; N], i64) {
        let mut sum = Sum::new(place, fixed);
        let docs = docs.map(|(column, json)| {
            let doc = match json {
                None => Doc {
                    text: None,
                    packed: None,
                },
                Some(json) => self.pack(place, column, json),
            };
            sum.add(doc.text.as_deref().map(str::as_bytes));
            sum.add(doc.packed.as_deref());
            doc
        });
        (docs, sum.end())
    }

    /// A row with one document, which is always there.
    pub(crate) fn put_one<'a>(&self, place: &Place, json: &'a [u8]) -> (Doc<'a>, i64) {
        self.put_pressed(place, json, None)
    }

    /// The same, with what [`pressed`] made of it before.
    pub(crate) fn put_pressed<'a>(
        &self,
        place: &Place,
        json: &'a [u8],
        frame: Option<&[u8]>,
    ) -> (Doc<'a>, i64) {
        let doc = self.pack_pressed(place, "value", json, frame);
        let mut sum = Sum::new(place, &[]);
        sum.add(doc.text.as_deref().map(str::as_bytes));
        sum.add(doc.packed.as_deref());
        (doc, sum.end())
    }

    /// The documents of one row, from its columns `x` and `x_packed` each.
    ///
    /// # Errors
    /// What is wrong with the row, in words.
    pub(crate) fn take<const N: usize>(
        &self,
        place: &Place,
        fixed: &[&[u8]],
        docs: [(&'static str, Cell<'static>, Cell<'static>); N],
        sum: i64,
    ) -> Result<[Option<Vec<u8>>; N], String> {
        let mut seen = Sum::new(place, fixed);
        for (column, text, packed) in &docs {
            seen.add(text_of(column, text)?);
            seen.add(bytes_of(column, packed)?);
        }
        if seen.end() != sum {
            return Err(match docs.first() {
                Some((column, ..)) if N == 1 => format!("`{column}` does not fit its sum"),
                _ => "the row does not fit its sum".to_owned(),
            });
        }
        let mut out = [const { None }; N];
        for (slot, (column, text, packed)) in out.iter_mut().zip(docs) {
            *slot = self.one(place, column, text, packed)?;
        }
        Ok(out)
    }

    /// What [`Codec::put_one`] made.
    ///
    /// # Errors
    /// As [`Codec::take`]; also if there is no document.
    pub(crate) fn take_one(
        &self,
        place: &Place,
        text: Cell<'static>,
        packed: Cell<'static>,
        sum: i64,
    ) -> Result<Vec<u8>, String> {
        let [doc] = self.take(place, &[], [("value", text, packed)], sum)?;
        doc.ok_or_else(|| "`value` is missing".to_owned())
    }

    /// A document of a row without a sum.
    pub(crate) fn pack<'a>(&self, place: &Place, column: &'static str, json: &'a [u8]) -> Doc<'a> {
        self.pack_pressed(place, column, json, None)
    }

    fn pack_pressed<'a>(
        &self,
        place: &Place,
        column: &'static str,
        json: &'a [u8],
        frame: Option<&[u8]>,
    ) -> Doc<'a> {
        let long = json.len() > LONGEST_PLAIN;
        let compressed = |json| match frame {
            Some(frame) => Some(Cow::Borrowed(frame)),
            None => compressed(json).map(Cow::Owned),
        };
        let packed = match (&self.seal, long) {
            (None, false) => match std::str::from_utf8(json) {
                Ok(text) if !text.contains('\0') => {
                    return Doc {
                        text: Some(Cow::Borrowed(text)),
                        packed: None,
                    };
                }
                _ => with(RAW, json),
            },
            (None, true) => match compressed(json) {
                Some(body) => with(ZSTD, &body),
                None => with(RAW, json),
            },
            (Some(seal), long) => {
                let bound = place.bound(column);
                match long.then(|| compressed(json)).flatten() {
                    Some(body) => with(SEALED_ZSTD, &seal.close(&body, &bound)),
                    None => with(SEALED, &seal.close(json, &bound)),
                }
            }
        };
        Doc {
            text: None,
            packed: Some(packed),
        }
    }

    /// What [`Codec::pack`] made; nothing if both columns are NULL.
    ///
    /// # Errors
    /// As [`Codec::take`].
    pub(crate) fn one(
        &self,
        place: &Place,
        column: &'static str,
        text: Cell<'static>,
        packed: Cell<'static>,
    ) -> Result<Option<Vec<u8>>, String> {
        bytes_of(column, &packed)?;
        text_of(column, &text)?;
        match (text, packed) {
            (Cell::Null, Cell::Null) => Ok(None),
            (Cell::Text(_), Cell::Null) if self.seal.is_some() => {
                Err(format!("`{column}` is not encrypted, though all is"))
            }
            (Cell::Text(text), Cell::Null) => Ok(Some(text.into_owned().into_bytes())),
            (Cell::Null, Cell::Bytes(packed)) => self.unpack(place, column, &packed).map(Some),
            _ => Err(format!("`{column}` is there twice")),
        }
    }

    fn unpack(
        &self,
        place: &Place,
        column: &'static str,
        packed: &[u8],
    ) -> Result<Vec<u8>, String> {
        let Some((packing, body)) = packed.split_first() else {
            return Err(format!("`{column}` is cut short"));
        };
        let opened = || match &self.seal {
            None => Err(format!("`{column}` is encrypted, and there is no key")),
            Some(seal) => seal
                .open(body, &place.bound(column))
                .ok_or_else(|| format!("`{column}` is not what was encrypted for this row")),
        };
        match *packing {
            SEALED => opened(),
            SEALED_ZSTD => decompressed(column, &opened()?),
            RAW | ZSTD if self.seal.is_some() => {
                Err(format!("`{column}` is not encrypted, though all is"))
            }
            RAW => Ok(body.to_vec()),
            ZSTD => decompressed(column, body),
            other => Err(format!("`{column}` is packed in an unknown way ({other})")),
        }
    }
}

/// The sum of a row, as it is added up.
struct Sum(Xxh3Default);

impl Sum {
    fn new(place: &Place, fixed: &[&[u8]]) -> Self {
        let mut sum = Sum(Xxh3Default::new());
        sum.add(Some(&place.0));
        for part in fixed {
            sum.add(Some(part));
        }
        sum
    }

    fn add(&mut self, part: Option<&[u8]>) {
        match part {
            None => self.0.update(&[0]),
            Some(part) => {
                self.0.update(&[1]);
                self.0.update(&(part.len() as u64).to_le_bytes());
                self.0.update(part);
            }
        }
    }

    fn end(self) -> i64 {
        self.0.digest().cast_signed()
    }
}

fn with(packing: u8, body: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(body.len() + 1);
    packed.push(packing);
    packed.extend(body);
    packed
}

// To make a context costs more than what is usually done with it, so each thread keeps one.
thread_local! {
    static PRESS: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPRESS: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// What a long document becomes, whatever row it is for: to be made where no transaction waits for it. Nothing
/// for one that stays as it is.
pub(crate) fn pressed(json: &[u8]) -> Option<Vec<u8>> {
    (json.len() > LONGEST_PLAIN).then(|| compressed(json))?
}

/// Nothing for what could not be read back: the database says that it is too long.
fn compressed(json: &[u8]) -> Option<Vec<u8>> {
    if json.len() as u64 > LONGEST {
        return None;
    }
    let frame = PRESS.with_borrow_mut(|press| {
        if press.is_none() {
            *press = Compressor::new(LEVEL).ok();
        }
        press.as_mut()?.compress(json).ok()
    })?;
    let mut body = Vec::with_capacity(frame.len() + 8);
    body.extend((json.len() as u64).to_le_bytes());
    body.extend(frame);
    Some(body)
}

fn decompressed(column: &str, body: &[u8]) -> Result<Vec<u8>, String> {
    let short = || format!("`{column}` is cut short");
    let (length, frame) = body.split_first_chunk::<8>().ok_or_else(short)?;
    let length = u64::from_le_bytes(*length);
    if length > LONGEST {
        return Err(format!("`{column}` says it has {length} bytes"));
    }
    // One byte more than there should be, so that a longer one is seen and not cut.
    let most = usize::try_from(length + 1).unwrap_or(usize::MAX);
    let json = UNPRESS.with_borrow_mut(|unpress| {
        let unpress = match unpress {
            Some(unpress) => unpress,
            None => unpress.insert(Decompressor::new()?),
        };
        unpress.decompress(frame, most)
    });
    let json = json.map_err(|e| format!("`{column}` cannot be unpacked: {e}"))?;
    if json.len() as u64 != length {
        return Err(format!("`{column}` is not as long as it says"));
    }
    Ok(json)
}

fn text_of<'a>(column: &str, cell: &'a Cell<'static>) -> Result<Option<&'a [u8]>, String> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Text(text) => Ok(Some(text.as_bytes())),
        _ => Err(format!("`{column}` is no text")),
    }
}

fn bytes_of<'a>(column: &str, cell: &'a Cell<'static>) -> Result<Option<&'a [u8]>, String> {
    match cell {
        Cell::Null => Ok(None),
        Cell::Bytes(bytes) => Ok(Some(bytes)),
        _ => Err(format!("`{column}_packed` has no bytes")),
    }
}

#[cfg(test)]
mod tests;
