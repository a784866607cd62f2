//! Tables and properties of the reader and the writers.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<Json, JsonError> {
    Json::read(text, Bounds::default())
}

fn fault(text: &str) -> (usize, JsonFault) {
    let error = read(text).unwrap_err();
    (error.at, error.fault)
}

#[test]
fn text_reads_back_with_its_digits_order_and_characters() {
    let table = [
        ("null", "null"),
        (" [ ] ", "[]"),
        ("{ }", "{}"),
        (
            "[1,\t-0 ,\n1e2,1.50,-0.0,1E+999]",
            "[1,-0,1e2,1.50,-0.0,1E+999]",
        ),
        (
            r#"{"b":1,"a":{"z":null,"y":[true,false]}}"#,
            r#"{"b":1,"a":{"z":null,"y":[true,false]}}"#,
        ),
        (r#""\u00e9\ud83d\ude00\/\u007f""#, "\"é😀/\u{7f}\""),
        (r#""\u0000\"\\""#, r#""\u0000\"\\""#),
    ];
    for (text, written) in table {
        assert_eq!(read(text).unwrap().to_string(), written, "{text}");
    }
}

#[test]
fn an_error_says_what_and_where() {
    use JsonFault::Expected;
    let table = [
        ("", 0, Expected("a value")),
        ("  ", 2, Expected("a value")),
        ("nul", 0, Expected("a value")),
        ("[1,]", 3, Expected("a value")),
        ("[1 2]", 3, Expected("`,` or `]`")),
        ("[1", 2, Expected("`,` or `]`")),
        (r#"{"a":1"#, 6, Expected("`,` or `}`")),
        ("{1:2}", 1, Expected("a key")),
        (r#"{"a" 1}"#, 5, Expected("`:`")),
        (r#"{"a":1,}"#, 7, Expected("a key")),
        ("[] []", 3, Expected("the end of the text")),
        ("01", 2, Expected("a number without leading zeros")),
        ("-", 1, Expected("a number without leading zeros")),
        ("+1", 0, Expected("a value")),
        ("1.", 2, Expected("a digit after the point")),
        ("1e+", 3, Expected("a digit in the exponent")),
        (r#""abc"#, 4, Expected("the end of the string")),
        (r#""\x""#, 2, Expected("an escape that JSON has")),
        (r#""\u12g4""#, 3, Expected("four hexadecimal digits")),
        ("\"\\u1\u{e9}4\"", 3, Expected("four hexadecimal digits")),
        ("\"a\nb\"", 2, JsonFault::Control),
        (r#""\ud800""#, 7, JsonFault::Surrogate),
        (r#""\udc00""#, 7, JsonFault::Surrogate),
        (r#""\ud800\u0041""#, 13, JsonFault::Surrogate),
        ("NaN", 0, JsonFault::NotFinite),
        ("[-Infinity]", 2, JsonFault::NotFinite),
        ("\u{feff}{}", 0, Expected("a value")),
    ];
    for (text, at, what) in table {
        assert_eq!(fault(text), (at, what), "{text}");
    }
    assert_eq!(
        read("[1,]").unwrap_err().to_string(),
        "expected a value at byte 3"
    );
}

#[test]
fn size_depth_and_digits_are_bounded() {
    let bounds = Bounds {
        bytes: 12,
        depth: 3,
        digits: 4,
    };
    let fault = |text: &str| Json::read(text, bounds).unwrap_err().fault;
    assert!(Json::read("[[[]]]", bounds).is_ok());
    assert_eq!(fault("[[[[]]]]"), JsonFault::TooDeep);
    assert_eq!(fault(r#"{"":[[{}]]}"#), JsonFault::TooDeep);
    assert_eq!(fault("1234567890123"), JsonFault::TooLarge);
    assert_eq!(fault("-12345"), JsonFault::TooManyDigits);
    assert!(Json::read("-1234", bounds).is_ok());
    assert!(Json::read("12345.5", bounds).is_ok());
    // No caller can ask for more depth than the stack of any later reader bears.
    let any = Bounds {
        bytes: usize::MAX,
        depth: usize::MAX,
        digits: usize::MAX,
    };
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Json::read(&nested(Bounds::MAX_DEPTH), any).is_ok());
    assert_eq!(
        Json::read(&nested(Bounds::MAX_DEPTH + 1), any)
            .unwrap_err()
            .fault,
        JsonFault::TooDeep
    );
    assert_eq!(
        Json::read(&"[".repeat(5_000_000), any).unwrap_err().fault,
        JsonFault::TooDeep
    );
}

#[test]
fn the_deepest_value_there_is_needs_little_stack() {
    let work = || {
        let any = Bounds {
            bytes: usize::MAX,
            depth: Bounds::MAX_DEPTH,
            digits: usize::MAX,
        };
        let half = Bounds::MAX_DEPTH / 2;
        let text = format!("{}1{}", r#"[{"k":"#.repeat(half), "}]".repeat(half));
        let json = Json::read(&text, any).unwrap();
        assert_eq!(json.clone(), json);
        assert_eq!(json.to_string(), text);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(json.to_value().unwrap().to_string(), text);
        assert_eq!(crate::args_hash(json.view()).len(), 12);
        let redactor = crate::Redactor::new(&crate::Redaction::default());
        assert_eq!(redactor.json(json.view()), text);
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn of_a_repeated_key_the_last_value_counts_in_the_place_of_the_first() {
    let json = read(r#"{"a":1,"b":{"x":[1],"x":2},"a":{"y":3}}"#).unwrap();
    assert_eq!(json.to_string(), r#"{"a":{"y":3},"b":{"x":2}}"#);
    assert_eq!(json.repeated_key(), Some("x"));
    assert_eq!(read(r#"{"a":1,"A":1}"#).unwrap().repeated_key(), None);
    assert_eq!(read(r#"{"a":1,"a":1}"#).unwrap().to_string(), r#"{"a":1}"#);
}

#[test]
fn many_repeated_keys_are_read_in_reasonable_work() {
    let text = format!("{{{}}}", vec![r#""k":[[1]]"#; 50_000].join(","));
    assert_eq!(read(&text).unwrap().to_string(), r#"{"k":[[1]]}"#);
}

#[test]
fn a_view_finds_what_is_inside() {
    let json = read(r#"{"a":[1,{"b":"x"},[]],"c":true,"d":null}"#).unwrap();
    let view = json.view();
    let Some(Shape::Array(items)) = view.get("a").map(View::shape) else {
        panic!("an array")
    };
    let items: Vec<_> = items.map(|item| item.to_string()).collect();
    assert_eq!(items, ["1", r#"{"b":"x"}"#, "[]"]);
    assert_eq!(view.get("c").map(View::shape), Some(Shape::Bool(true)));
    assert_eq!(view.get("nothing"), None);
    assert_eq!(view.get("a").unwrap().get("a"), None);
    assert_eq!(
        view.get("a").unwrap().to_json(),
        read(r#"[1,{"b":"x"},[]]"#).unwrap()
    );
}

#[test]
fn serde_prints_it_nested_with_its_digits() {
    let json = read(r#"{"id":2512292042121000001234,"x":[1e2,{}]}"#).unwrap();
    #[derive(serde::Serialize)]
    struct Row {
        step: u32,
        args: Json,
    }
    assert_eq!(
        serde_json::to_string_pretty(&Row {
            step: 1,
            args: json
        })
        .unwrap(),
        "{\n  \"step\": 1,\n  \"args\": {\n    \"id\": 2512292042121000001234,\n    \"x\": [\n      1e2,\n      {}\n    ]\n  }\n}"
    );
}

#[test]
fn serde_values_lose_only_what_they_cannot_hold() {
    let value = read(r#"{"i":9007199254740993,"f":0.1,"big":123456789012345678901}"#)
        .unwrap()
        .to_value()
        .unwrap();
    assert_eq!(value["i"], 9_007_199_254_740_993_u64);
    assert_eq!(value["f"], 0.1);
    assert_eq!(value["big"], 123_456_789_012_345_680_000.0);
    assert!(read("1e999").unwrap().to_value().is_err());
}

#[test]
fn python_spaces_collapse() {
    let table = [
        ("", ""),
        ("a", "a"),
        ("a b", "a b"),
        (" a b", "a b"),
        ("a b ", "a b"),
        ("a  b", "a b"),
        ("a\u{1c}b\u{3000}c", "a b c"),
        ("a\u{a0}b", "a b"),
        ("\t\n", ""),
        ("a\u{200b}b", "a\u{200b}b"),
    ];
    for (text, collapsed) in table {
        assert_eq!(collapse_spaces(text), collapsed, "{text:?}");
    }
}

/// Any JSON text that Python's canonical form can hold.
fn any_json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i128>().prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(|n| format!("{n:?}")),
        Just("-0".to_owned()),
        Just("1E2".to_owned()),
    ];
    let string = any::<String>().prop_map(|text| quote(&text, Style::Exact));
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        number,
        string.clone()
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let array = prop::collection::vec(inner.clone(), 0..5);
        let object = prop::collection::vec((string.clone(), inner), 0..5);
        prop_oneof![
            array.prop_map(|items| format!("[{}]", items.join(" , "))),
            object.prop_map(|entries| {
                let entries: Vec<_> = entries.iter().map(|(k, v)| format!("{k} : {v}")).collect();
                format!("{{{}}}", entries.join(","))
            }),
        ]
    })
}

fn canonical(json: &Json) -> String {
    stable(json.view(), |text| text.into())
}

proptest! {
    #[test]
    fn written_text_reads_back_as_the_same_value(text in any_json()) {
        let json = read(&text).unwrap();
        prop_assert_eq!(&read(&json.to_string()).unwrap(), &json);
        prop_assert_eq!(serde_json::to_string(&json).unwrap(), json.to_string());
    }

    #[test]
    fn canonical_text_is_a_fixed_point(text in any_json()) {
        let once = canonical(&read(&text).unwrap());
        prop_assert_eq!(canonical(&read(&once).unwrap()), once);
    }

    #[test]
    fn what_serde_reads_is_what_we_read(text in any_json()) {
        let ours = read(&text).unwrap().to_value().unwrap();
        prop_assert_eq!(ours, serde_json::from_str::<serde_json::Value>(&text).unwrap());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>(), cut in any::<prop::sample::Index>()) {
        let _ = read(&text);
        let json = format!(r#"{{"k":[{}],"\u00e9":-1.5e-3}}"#, quote(&text, Style::Python));
        let cut = cut.index(json.len());
        if json.is_char_boundary(cut) {
            prop_assert!(read(&json[..cut]).is_err());
        }
    }
}
