//! Documents go in and come out, and no damaged one does.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use super::*;
use proptest::prelude::*;

fn sealed() -> Codec {
    Codec::new(Some("7".repeat(64).parse().unwrap()))
}

fn place() -> Place {
    Place::new("piece").text("thread").text("").int(7)
}

fn owned(doc: Doc<'_>) -> (Cell<'static>, Cell<'static>) {
    let [text, packed] = doc.owned().cells();
    (text, packed)
}

fn flip(bytes: &mut [u8], at: usize) {
    bytes[at] ^= 1;
}

#[test]
fn short_documents_are_text_and_long_or_sealed_ones_are_packed() {
    let (short, long) = ("x".repeat(LONGEST_PLAIN), "x".repeat(LONGEST_PLAIN + 1));
    let table: [(&str, Codec, &[u8], Option<u8>); 6] = [
        ("short", Codec::default(), short.as_bytes(), None),
        ("long", Codec::default(), long.as_bytes(), Some(ZSTD)),
        ("a NUL", Codec::default(), b"\"\0\"", Some(RAW)),
        ("no UTF-8", Codec::default(), b"\xff", Some(RAW)),
        ("short, sealed", sealed(), short.as_bytes(), Some(SEALED)),
        ("long, sealed", sealed(), long.as_bytes(), Some(SEALED_ZSTD)),
    ];
    for (what, codec, json, packing) in table {
        let (doc, sum) = codec.put_one(&place(), json);
        let first = doc.packed.as_ref().map(|packed| packed[0]);
        assert_eq!(first, packing, "{what}");
        assert_eq!(doc.text.is_some(), packing.is_none(), "{what}");
        let (text, packed) = owned(doc);
        let back = codec.take_one(&place(), text, packed, sum);
        assert_eq!(back.as_deref(), Ok(json), "{what}");
    }
}

#[test]
fn a_row_of_several_documents_keeps_which_is_which() {
    let codec = Codec::default();
    let docs = [("a", Some(&b"1"[..])), ("b", None), ("c", Some(&b"1"[..]))];
    let ([a, b, c], sum) = codec.put(&place(), &[b"run"], docs);
    let [a, b, c] = [a, b, c].map(owned);
    let take = |fixed: &[u8], docs: [(Cell<'static>, Cell<'static>); 3]| {
        let [a, b, c] = docs;
        let named = [("a", a.0, a.1), ("b", b.0, b.1), ("c", c.0, c.1)];
        codec.take(&place(), &[fixed], named, sum)
    };
    let all = Ok([Some(b"1".to_vec()), None, Some(b"1".to_vec())]);
    assert_eq!(take(b"run", [a.clone(), b.clone(), c.clone()]), all);
    let no = Err("the row does not fit its sum".to_owned());
    assert_eq!(take(b"ran", [a.clone(), b.clone(), c.clone()]), no);
    assert_eq!(take(b"run", [b, a, c]), no);
}

#[test]
fn a_document_of_another_row_is_refused() {
    let other = [
        Place::new("note").text("thread").text("").int(7),
        Place::new("piece").text("threa").text("d").int(7),
        Place::new("piece").text("thread").text("").int(8),
    ];
    for codec in [Codec::default(), sealed()] {
        let (doc, sum) = codec.put_one(&place(), b"1");
        let (text, packed) = owned(doc);
        for place in &other {
            let taken = codec.take_one(place, text.clone(), packed.clone(), sum);
            assert_eq!(taken, Err("`value` does not fit its sum".to_owned()));
        }
    }
    // Whoever can count a new sum still cannot move a sealed document.
    let codec = sealed();
    let (text, packed) = owned(codec.pack(&place(), "value", b"1"));
    for (place, column) in [(&other[2], "value"), (&place(), "other")] {
        let taken = codec.one(place, column, text.clone(), packed.clone());
        let why = format!("`{column}` is not what was encrypted for this row");
        assert_eq!(taken, Err(why));
    }
}

#[test]
fn what_no_writer_wrote_is_refused_in_words() {
    let text = |text: &'static str| Cell::Text(Cow::Borrowed(text));
    let bytes = |bytes: &[u8]| Cell::Bytes(Cow::Owned(bytes.to_vec()));
    let long = [&[ZSTD][..], &u64::MAX.to_le_bytes(), b"frame"].concat();
    let short = [&[ZSTD][..], &7_u64.to_le_bytes(), b""].concat();
    let frame = zstd::bulk::compress(&[b'x'; 99], LEVEL).unwrap();
    let bomb = [&[ZSTD][..], &98_u64.to_le_bytes(), &frame].concat();
    let table = [
        (Cell::Int(1), Cell::Null, "`value` is no text"),
        (bytes(b"1"), Cell::Null, "`value` is no text"),
        (Cell::Null, text("1"), "`value_packed` has no bytes"),
        (text("1"), bytes(b"\x001"), "`value` is there twice"),
        (Cell::Null, bytes(b""), "`value` is cut short"),
        (Cell::Null, bytes(&[ZSTD, 1, 2]), "`value` is cut short"),
        (
            Cell::Null,
            bytes(&[9]),
            "`value` is packed in an unknown way (9)",
        ),
        (
            Cell::Null,
            bytes(&long),
            "`value` says it has 18446744073709551615 bytes",
        ),
        (
            Cell::Null,
            bytes(&bomb),
            "`value` is not as long as it says",
        ),
        (
            Cell::Null,
            bytes(&[SEALED, 1]),
            "`value` is encrypted, and there is no key",
        ),
    ];
    for (text, packed, why) in table {
        let taken = Codec::default().one(&place(), "value", text, packed);
        assert_eq!(taken, Err(why.to_owned()));
    }
    let cut = Codec::default().one(&place(), "value", Cell::Null, bytes(&short));
    assert!(cut.is_err(), "{cut:?}");
    let plain = "`value` is not encrypted, though all is";
    for (text, packed) in [(text("1"), Cell::Null), (Cell::Null, bytes(b"\x001"))] {
        let taken = sealed().one(&place(), "value", text, packed);
        assert_eq!(taken, Err(plain.to_owned()));
    }
    let none = Codec::default().one(&place(), "value", Cell::Null, Cell::Null);
    assert_eq!(none, Ok(None));
}

proptest! {
    #[test]
    fn any_bytes_come_back_and_one_flipped_bit_is_found(
        short in proptest::collection::vec(any::<u8>(), 0..200),
        long in any::<bool>(),
        with_key in any::<bool>(),
        at in any::<prop::sample::Index>(),
    ) {
        let codec = if with_key { sealed() } else { Codec::default() };
        let json = if long { short.repeat(200) } else { short };
        let (doc, sum) = codec.put_one(&place(), &json);
        let (text, packed) = owned(doc);
        let back = codec.take_one(&place(), text.clone(), packed.clone(), sum);
        prop_assert_eq!(back, Ok(json));
        let (text, packed) = match (text, packed) {
            (Cell::Null, Cell::Bytes(bytes)) => {
                let mut bytes = bytes.into_owned();
                let at = at.index(bytes.len());
                flip(&mut bytes, at);
                (Cell::Null, Cell::Bytes(bytes.into()))
            }
            (Cell::Text(text), packed) => {
                let longer = format!("{text} ");
                (Cell::Text(longer.into()), packed)
            }
            other => other,
        };
        prop_assert!(codec.take_one(&place(), text, packed, sum).is_err());
    }
}

proptest! {
    #[test]
    fn fuzz_any_cells_are_read_as_a_document_or_refused_in_words(
        text in proptest::option::of(any::<String>()),
        head in prop::sample::select(vec![RAW, ZSTD, SEALED, SEALED_ZSTD, 4, 9, 255]),
        rest in proptest::collection::vec(any::<u8>(), 0..120),
        length in any::<u64>(),
        packed in 0..4_u8,
        with_key in any::<bool>(),
        sum in any::<i64>(),
    ) {
        let codec = if with_key { sealed() } else { Codec::default() };
        let text = text.map_or(Cell::Null, |text| Cell::Text(text.into()));
        // Bytes of any kind, with a length before them, or a frame of zeros that says how long it is.
        let bytes = match packed {
            0 => Cell::Null,
            1 => Cell::Bytes([&[head][..], &rest].concat().into()),
            2 => Cell::Bytes([&[head][..], &length.to_le_bytes(), &rest].concat().into()),
            _ => {
                let long = usize::from(u16::try_from(length % 60_000).unwrap_or(0));
                let frame = zstd::bulk::compress(&vec![0; long], LEVEL).unwrap();
                let said = (long as u64).to_le_bytes();
                Cell::Bytes([&[head][..], &said, &frame].concat().into())
            }
        };
        let read = codec.one(&place(), "value", text.clone(), bytes.clone());
        if let Err(why) = &read {
            prop_assert!(why.starts_with("`value"), "{}", why);
        }
        // With a sum, as rows are read, nothing passes that nobody wrote.
        prop_assert!(codec.take_one(&place(), text, bytes, sum).is_err());
    }
}
