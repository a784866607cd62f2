//! Bodies as they arrive: unpacked piece by piece, and given up as soon as they are larger than what is read.
//!
//! Called by `outbound.rs` with the pieces of one answer. What counts is the unpacked size, so that a small file
//! that unpacks to gigabytes costs no more than the limit.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// What [`ACCEPTED`] promises to understand.
pub(crate) const ACCEPTED: &str = "gzip, deflate";

/// Why a body cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    TooLarge,
    Damaged(String),
}

/// A body on its way.
pub(crate) enum Unpacking {
    Plain(Capped),
    Gzip(MultiGzDecoder<Capped>),
    /// Undecided until the first byte: `deflate` means zlib, but some servers send it bare.
    Deflate(Capped),
    Zlib(ZlibDecoder<Capped>),
    Bare(DeflateDecoder<Capped>),
}

impl Unpacking {
    /// `encoding` is the header's value; an encoding that was not asked for is damage.
    pub(crate) fn new(encoding: &str, limit: usize) -> Result<Unpacking, Unreadable> {
        let body = Capped {
            bytes: Vec::new(),
            limit,
            full: false,
        };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Unpacking::Plain(body)),
            "gzip" | "x-gzip" => Ok(Unpacking::Gzip(MultiGzDecoder::new(body))),
            "deflate" => Ok(Unpacking::Deflate(body)),
            _ => Err(Unreadable::Damaged(
                "it is packed in a way that was not asked for".to_owned(),
            )),
        }
    }

    /// The next piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Unreadable> {
        if let (Unpacking::Deflate(body), Some(first)) = (&mut *self, piece.first()) {
            let body = std::mem::take(body);
            *self = match first & 0x0f {
                8 => Unpacking::Zlib(ZlibDecoder::new(body)),
                _ => Unpacking::Bare(DeflateDecoder::new(body)),
            };
        }
        let written = match self {
            Unpacking::Plain(body) | Unpacking::Deflate(body) => body.write_all(piece),
            Unpacking::Gzip(decoder) => decoder.write_all(piece),
            Unpacking::Zlib(decoder) => decoder.write_all(piece),
            Unpacking::Bare(decoder) => decoder.write_all(piece),
        };
        written.map_err(|error| self.because(&error))
    }

    /// The whole body.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, Unreadable> {
        let ended = match &mut self {
            Unpacking::Plain(_) | Unpacking::Deflate(_) => Ok(()),
            Unpacking::Gzip(decoder) => decoder.try_finish(),
            Unpacking::Zlib(decoder) => decoder.try_finish(),
            Unpacking::Bare(decoder) => decoder.try_finish(),
        };
        if let Err(error) = ended {
            return Err(self.because(&error));
        }
        Ok(std::mem::take(&mut self.body_mut().bytes))
    }

    fn because(&mut self, error: &io::Error) -> Unreadable {
        match self.body_mut().full {
            true => Unreadable::TooLarge,
            false => Unreadable::Damaged(format!("it cannot be unpacked: {error}")),
        }
    }

    fn body_mut(&mut self) -> &mut Capped {
        match self {
            Unpacking::Plain(body) | Unpacking::Deflate(body) => body,
            Unpacking::Gzip(decoder) => decoder.get_mut(),
            Unpacking::Zlib(decoder) => decoder.get_mut(),
            Unpacking::Bare(decoder) => decoder.get_mut(),
        }
    }
}

/// Bytes up to a limit; beyond it writing fails.
#[derive(Default)]
pub(crate) struct Capped {
    bytes: Vec<u8>,
    limit: usize,
    full: bool,
}

impl Write for Capped {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.full || piece.len() > self.limit.saturating_sub(self.bytes.len()) {
            self.full = true;
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(encoding: &str, packed: &[u8], limit: usize) -> Result<Vec<u8>, Unreadable> {
        let mut unpacking = Unpacking::new(encoding, limit)?;
        for piece in packed.chunks(7) {
            unpacking.push(piece)?;
        }
        unpacking.finish()
    }

    #[test]
    fn every_encoding_gives_the_bytes_that_were_packed() {
        let text = "what was packed, and packed again ".repeat(20).into_bytes();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&text).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(&text).unwrap();
        let two = [gzip(&text[..100]), gzip(&text[100..])].concat();
        for (encoding, packed) in [
            ("", text.clone()),
            (" Identity", text.clone()),
            ("gzip", gzip(&text)),
            ("X-GZIP", two),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", bare.finish().unwrap()),
        ] {
            assert_eq!(
                unpack(encoding, &packed, text.len()),
                Ok(text.clone()),
                "{encoding}"
            );
        }
        assert_eq!(unpack("deflate", b"", 10), Ok(Vec::new()));
    }

    #[test]
    fn one_byte_more_than_the_limit_is_too_large_packed_or_not() {
        let bomb = gzip(&vec![0; 50_000_000]);
        assert!(bomb.len() < 60_000);
        assert_eq!(unpack("gzip", &bomb, 1_000_000), Err(Unreadable::TooLarge));
        assert_eq!(unpack("", b"12345", 4), Err(Unreadable::TooLarge));
        assert_eq!(unpack("", b"1234", 4), Ok(b"1234".to_vec()));
    }

    #[test]
    fn what_is_cut_off_garbled_or_packed_otherwise_is_damage() {
        let whole = gzip(b"hello, whoever reads this");
        let cut = unpack("gzip", &whole[..whole.len() - 9], 100);
        assert!(matches!(cut, Err(Unreadable::Damaged(_))), "{cut:?}");
        let garbled = unpack("gzip", b"this is no gzip at all", 100);
        assert!(
            matches!(garbled, Err(Unreadable::Damaged(_))),
            "{garbled:?}"
        );
        assert_eq!(
            unpack("br", b"", 100),
            Err(Unreadable::Damaged(
                "it is packed in a way that was not asked for".to_owned()
            ))
        );
    }
}
