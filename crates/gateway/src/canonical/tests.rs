//! Vectors and properties of the canonical text.

use super::*;
use proptest::prelude::*;

fn of(text: &str, numbers: Numbers) -> Result<String, CanonicalError> {
    canonical(&Json::read(text, Bounds::default()).unwrap(), numbers)
}

fn error(text: &str, numbers: Numbers) -> String {
    of(text, numbers).unwrap_err().to_string()
}

#[test]
fn values_have_one_spelling() {
    let table = [
        (" null ", "null"),
        ("[ true , false ]", "[true,false]"),
        ("{}", "{}"),
        ("[[],{},\"\"]", "[[],{},\"\"]"),
        // Integers keep every digit; minus zero is zero.
        ("[0,-0,-1,1]", "[0,0,-1,1]"),
        (
            "[9007199254740993,-99999999999999999999999999]",
            "[9007199254740993,-99999999999999999999999999]",
        ),
        // As few escapes as possible, in small letters.
        (
            r#""\u000f\u0000\u001F\b\t\n\f\r\"\\\/\u007f""#,
            "\"\\u000f\\u0000\\u001f\\b\\t\\n\\f\\r\\\"\\\\/\u{7f}\"",
        ),
        (
            r#""\u20ac\ud83d\ude02\u2028\u202e""#,
            "\"€😂\u{2028}\u{202e}\"",
        ),
        // Nothing is normalised: one character and two that look the same stay two texts.
        (r#"["\u00e9","e\u0301"]"#, "[\"\u{e9}\",\"e\u{301}\"]"),
        // Keys by UTF-16 units: the surrogates of the face (d83d) come before U+FB33.
        (
            r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude02":5,"\u0080":6,"\u00f6":7,"":8}"#,
            "{\"\":8,\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"€\":1,\"😂\":5,\"\u{fb33}\":3}",
        ),
        (
            r#"{"b":{"d":1,"c":2},"B":0,"a":[{"z":1,"y":2}],"aa":3}"#,
            r#"{"B":0,"a":[{"y":2,"z":1}],"aa":3,"b":{"c":2,"d":1}}"#,
        ),
    ];
    for (text, canonical) in table {
        assert_eq!(
            of(text, Numbers::IntegersOnly).unwrap(),
            canonical,
            "{text}"
        );
        assert_eq!(of(text, Numbers::Any).unwrap(), canonical, "{text}");
    }
}

/// Bits of doubles and what ECMAScript prints for them, from the rules of `Number::toString`.
#[test]
fn other_numbers_are_written_as_ecmascript_does() {
    let table: &[(u64, &str)] = &[
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    ];
    for &(bits, text) in table {
        let number = f64::from_bits(bits);
        assert_eq!(ecmascript_float(number), text, "{bits:x}");
    }
    let written = of(
        "[1.0,1e2,-0.0,1E400e0]".replace("E400e0", "e20").as_str(),
        Numbers::Any,
    );
    assert_eq!(written.unwrap(), "[1,100,0,100000000000000000000]");
}

#[test]
fn what_cannot_be_canonical_is_named_with_its_place() {
    use Numbers::{Any, IntegersOnly};
    let table = [
        ("1.0", IntegersOnly, "a number that is no integer at ``"),
        (
            r#"{"a":[0,{"b/c~d":1e2}]}"#,
            IntegersOnly,
            "a number that is no integer at `/a/1/b~1c~0d`",
        ),
        (
            "[[],[1,-1e999]]",
            Any,
            "a number too large for a double at `/1/1`",
        ),
        (
            r#"[{"x":1,"x":1}]"#,
            Any,
            "the key `x` comes twice in one object at ``",
        ),
    ];
    for (text, numbers, said) in table {
        assert_eq!(error(text, numbers), said, "{text}");
    }
    let long = format!(r#"{{"{}":1.5}}"#, "k".repeat(1000));
    assert_eq!(
        of(&long, IntegersOnly).unwrap_err().pointer.chars().count(),
        MAX_POINTER + 1
    );
}

#[test]
fn the_text_is_bounded_and_depth_needs_no_stack() {
    let big = serde_json::to_string(&vec!["x".repeat(1 << 20); 5]).unwrap();
    let bounds = Bounds {
        bytes: usize::MAX,
        ..Bounds::default()
    };
    let json = Json::read(&big, bounds).unwrap();
    assert_eq!(
        canonical(&json, Numbers::Any).unwrap_err().to_string(),
        "the canonical text is too long at `/3`"
    );
    let deep = Bounds {
        depth: Bounds::MAX_DEPTH,
        ..Bounds::default()
    };
    let text = "[".repeat(Bounds::MAX_DEPTH) + &"]".repeat(Bounds::MAX_DEPTH);
    let json = Json::read(&text, deep).unwrap();
    assert_eq!(canonical(&json, Numbers::Any).unwrap(), text);
}

#[test]
fn a_rust_value_that_is_no_json_is_an_error() {
    let keys = std::collections::BTreeMap::from([(vec![1], 1)]);
    let error = canonical_of(&keys, Numbers::Any).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no readable JSON (key must be a string) at ``"
    );
    assert_eq!(canonical_of("é\n", Numbers::Any).unwrap(), r#""é\n""#);
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let plain = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(|float| serde_json::json!(float)),
        any::<String>().prop_map(Into::into),
    ];
    plain.prop_recursive(5, 40, 6, |inner| {
        let entries = proptest::collection::vec((any::<String>(), inner.clone()), 0..6);
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Into::into),
            entries.prop_map(|entries| entries
                .into_iter()
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

/// The same value with other spaces, escapes of all characters, and entries in another order.
fn spelled_otherwise(value: &serde_json::Value) -> String {
    let quote = |text: &str| {
        let units: String = text
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04X}"))
            .collect();
        format!("\"{units}\"")
    };
    match value {
        serde_json::Value::String(text) => quote(text),
        serde_json::Value::Array(items) => {
            let items: Vec<_> = items.iter().map(spelled_otherwise).collect();
            format!("[ {} ]", items.join(" ,\n"))
        }
        serde_json::Value::Object(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .rev()
                .map(|(key, value)| format!("{}\t: {}", quote(key), spelled_otherwise(value)))
                .collect();
            format!("{{ {} }}", entries.join(" ,\r\n"))
        }
        plain => plain.to_string(),
    }
}

/// So many cases, or as many as `PROPTEST_CASES` says if that is more.
fn at_least(cases: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig {
        cases: asked.cases.max(cases),
        ..asked
    }
}

proptest! {
    #![proptest_config(at_least(400))]

    #[test]
    fn canonical_text_is_a_fixed_point_and_one_line(value in value()) {
        let once = of(&value.to_string(), Numbers::Any).unwrap();
        prop_assert_eq!(of(&once, Numbers::Any).unwrap(), once.clone());
        prop_assert!(once.chars().all(|character| character >= ' '));
    }

    #[test]
    fn all_spellings_of_a_value_have_one_canonical_text(value in value()) {
        let plain = of(&value.to_string(), Numbers::Any).unwrap();
        prop_assert_eq!(of(&spelled_otherwise(&value), Numbers::Any).unwrap(), plain.clone());
        // And it is the same value: an independent reader finds what was written.
        let back: serde_json::Value = serde_json::from_str(&plain).unwrap();
        let floats = |value: &serde_json::Value| of(&value.to_string(), Numbers::Any).unwrap();
        prop_assert_eq!(floats(&back), plain);
    }

    #[test]
    fn a_float_reads_back_as_itself(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let text = ecmascript_float(number);
        prop_assert_eq!(text.parse::<f64>().unwrap(), number);
        prop_assert_eq!(of(&format!("[{text}]"), Numbers::Any).unwrap(), format!("[{text}]"));
    }

    #[test]
    fn integers_keep_their_digits(digits in "-?[1-9][0-9]{0,60}") {
        prop_assert_eq!(of(&digits, Numbers::IntegersOnly).unwrap(), digits.clone());
    }
}
