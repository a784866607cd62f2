//! Texts with NUL, and numbers of all widths.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use super::*;
use proptest::prelude::*;

#[test]
fn a_text_is_changed_only_where_it_has_a_nul_or_the_mark() {
    for (text, kept) in [
        ("", ""),
        ("a\\0b\"'\t\n", "a\\0b\"'\t\n"),
        ("日本\u{10ffff}", "日本\u{10ffff}"),
        ("a\0b", "a\u{1}0b"),
        ("\u{1}0", "\u{1}10"),
        ("\0\0", "\u{1}0\u{1}0"),
    ] {
        assert_eq!(escaped(text), kept);
        assert_eq!(plain(kept).as_deref(), Some(text));
    }
    for stray in ["\u{1}", "\u{1}2", "a\u{1}b"] {
        assert_eq!(plain(stray), None, "{stray:?}");
    }
}

/// Texts in which what is escaped is frequent.
fn odd_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just('\0'),
            Just('\u{1}'),
            Just('\u{2}'),
            Just('0'),
            any::<char>()
        ],
        0..8,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #[test]
    fn escaping_keeps_texts_and_their_order(a in odd_text(), b in odd_text()) {
        prop_assert!(!escaped(&a).contains('\0'));
        let back = plain(&escaped(&a));
        prop_assert_eq!(back.as_deref(), Some(a.as_str()));
        prop_assert_eq!(escaped(&a).cmp(&escaped(&b)), a.cmp(&b));
    }
}

#[test]
fn a_sum_is_read_as_a_whole_number_or_not_at_all() {
    let numeric = |words: &[i16]| {
        words
            .iter()
            .flat_map(|w| w.to_be_bytes())
            .collect::<Vec<u8>>()
    };
    for (words, n) in [
        (&[0, 0, 0, 0][..], Some(0)),
        (&[1, 0, 0, 0, 7], Some(7)),
        (&[1, 1, 0, 0, 3], Some(30_000)),
        (&[2, 1, 0x4000, 0, 1, 2345], Some(-12_345)),
        (&[5, 4, 0, 0, 922, 3372, 368, 5477, 5807], Some(i64::MAX)),
        (&[5, 4, 0, 0, 922, 3372, 368, 5477, 5808], None),
        (&[2, 0, 0, 2, 1, 5000], None),
        (&[0, 0, -0x4000, 0], None),
        (&[3, 2, 0, 0, 1], None),
        (&[1], None),
    ] {
        assert_eq!(whole_number(&numeric(words)), n, "{words:?}");
    }
}

#[test]
fn a_value_of_another_type_than_the_server_expects_is_refused() {
    let mut out = BytesMut::new();
    let (int, text) = (Cell::Int(1 << 40), Cell::Text("x".into()));
    assert!(Bound(&int).to_sql(&Type::INT8, &mut out).is_ok());
    assert!(Bound(&int).to_sql(&Type::INT4, &mut out).is_err());
    assert!(Bound(&int).to_sql(&Type::TEXT, &mut out).is_err());
    assert!(Bound(&text).to_sql(&Type::BYTEA, &mut out).is_err());
    assert!(matches!(
        Bound(&Cell::Null).to_sql(&Type::TEXT, &mut out),
        Ok(IsNull::Yes)
    ));
    assert_eq!(out.len(), 8);
}
