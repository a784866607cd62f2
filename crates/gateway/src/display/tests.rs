//! Tables of what people have to see, and properties over every character there is.

use super::*;
use proptest::prelude::*;
use regex::Regex;
use std::sync::LazyLock;

fn field(text: &str) -> (String, Vec<String>) {
    said(Shown::field(text, 400))
}

fn block(text: &str) -> (String, Vec<String>) {
    said(Shown::block(text, 400))
}

fn said(shown: Shown) -> (String, Vec<String>) {
    let warnings = shown.warnings.iter().map(ToString::to_string).collect();
    (shown.text, warnings)
}

#[test]
fn plain_texts_stay_as_they_are_without_a_warning() {
    let table = [
        "",
        "Refund 4200 cents for order 7",
        "naïve café, Zürich, Łódź, Đà Nẵng, e\u{301}",
        "Привет, мир",
        "καλημέρα",
        "日本語のテキスト、Tシャツ、한국어",
        "हिन्दी ไทย",
        "a  b (two spaces), {\"a\":1} \\u{202E} [3 blanks] — 😀 ½ µm",
    ];
    for text in table {
        assert_eq!(field(text), (text.to_owned(), vec![]), "{text}");
        assert_eq!(block(text), (text.to_owned(), vec![]), "{text}");
    }
    let code = "fn main() {\n\tlet x = 1;\n\n        x\n}\n";
    assert_eq!(block(code), (code.to_owned(), vec![]));
}

/// E09, agent-secret#66: text that runs the other way or has no width changes what an approver sees.
#[test]
fn what_cannot_be_seen_is_written_out() {
    let one = "1 character that cannot be seen is written out";
    let turns = "1 character would change the order of the text";
    let table: &[(&str, &str, &[&str])] = &[
        ("a\nb", r"a\nb", &[one]),
        (
            "a\tb\rc",
            r"a\tb\rc",
            &["2 characters that cannot be seen are written out"],
        ),
        ("\u{1b}[2J", r"\u{1B}[2J", &[one]),
        (
            "\0\u{7f}\u{9b}",
            r"\u{0}\u{7F}\u{9B}",
            &["3 characters that cannot be seen are written out"],
        ),
        ("pay\u{202e}gnp.exe", r"pay\u{202E}gnp.exe", &[one, turns]),
        ("a\u{200b}b", r"a\u{200B}b", &[one]),
        ("a\u{2060}b", r"a\u{2060}b", &[one]),
        ("\u{feff}a", r"\u{FEFF}a", &[one]),
        ("pass\u{ad}word", r"pass\u{AD}word", &[one]),
        ("a\u{a0}b", r"a\u{A0}b", &[one]),
        ("a\u{2028}b", r"a\u{2028}b", &[one]),
        ("\u{3164}", r"\u{3164}", &[one]),
        ("a\u{115f}b", r"a\u{115F}b", &[one]),
        ("a\u{2800}b", r"a\u{2800}b", &[one]),
        ("\u{fff9}a", r"\u{FFF9}a", &[one]),
        ("❤\u{fe0f}", r"❤\u{FE0F}", &[one]),
        ("a\u{e0101}", r"a\u{E0101}", &[one]),
        (
            "\u{e000}\u{10ffff}",
            r"\u{E000}\u{10FFFF}",
            &["2 characters that cannot be seen are written out"],
        ),
        (
            "ok\u{e0069}\u{e0067}\u{e006e}",
            r"ok\u{E0069}\u{E0067}\u{E006E}",
            &[
                "3 characters that cannot be seen are written out",
                "it hides the text `ign` from people",
            ],
        ),
        // E10: a newline cannot fake a field.
        (
            "ok\nAccount: prod\u{2066}",
            r"ok\nAccount: prod\u{2066}",
            &["2 characters that cannot be seen are written out", turns],
        ),
    ];
    for (text, shown, warnings) in table {
        assert_eq!(
            field(text),
            (
                (*shown).to_owned(),
                warnings.iter().map(|w| (*w).to_owned()).collect()
            ),
            "{text:?}"
        );
    }
    assert_eq!(block("a\r\n\tb\u{85}").0, "a\\r\n\tb\\u{85}");
}

/// E12, deno#36195: marks of direction passed where other controls were written out.
#[test]
fn all_twelve_bidi_controls_are_written_out_and_said() {
    let controls = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    assert_eq!(controls.chars().count(), 12);
    for shown in [Shown::field(controls, 400), Shown::block(controls, 400)] {
        assert!(shown.text.is_ascii());
        assert_eq!(shown.warnings, [Warning::Hidden(12), Warning::Reorders(12)]);
    }
}

#[test]
fn marks_are_piled_no_higher_than_four() {
    let piled = |n: usize| format!("a{}b", "\u{301}".repeat(n));
    assert_eq!(field(&piled(4)), (piled(4), vec![]));
    assert_eq!(
        field(&piled(6)),
        (
            format!("a{}\\u{{301}}\\u{{301}}b", "\u{301}".repeat(4)),
            vec!["marks are piled up; 2 of them are written out".to_owned()]
        )
    );
    // A mark without a letter would sit on what stands before the field.
    assert_eq!(field("\u{336}a").0, r"\u{336}a");
    assert_eq!(block("a\n\u{336}b").0, "a\n\\u{336}b");
    assert_eq!(field("a\u{200b}\u{336}").0, r"a\u{200B}\u{336}");
}

#[test]
fn blanks_that_push_text_away_are_counted() {
    let blanks = vec!["it has blanks at its ends or long runs of them".to_owned()];
    let table = [
        (" a", r"\u{20}a"),
        ("a ", r"a\u{20}"),
        ("a  ", r"a\u{20}\u{20}"),
        ("   a", "[3 blanks] a"),
        ("a   b", "a [3 blanks] b"),
        (" ", r"\u{20}"),
        ("     ", "[5 blanks]"),
    ];
    for (text, shown) in table {
        assert_eq!(field(text), (shown.to_owned(), blanks.clone()), "{text:?}");
    }
    let far = format!("a{}b", " ".repeat(81));
    assert_eq!(block(&far), ("a [81 blanks] b".to_owned(), blanks.clone()));
    let low = format!("a{}b", "\n".repeat(60));
    assert_eq!(
        block(&low),
        ("a\n[60 line breaks]\nb".to_owned(), blanks.clone())
    );
    let mixed = format!("a{}b", "\n \t".repeat(60));
    assert_eq!(
        block(&mixed),
        ("a\n[60 line breaks and 120 blanks]\nb".to_owned(), blanks)
    );
}

#[test]
fn words_that_are_not_what_they_look_like_are_named() {
    let table: &[(&str, &[&str])] = &[
        (
            "\u{440}aypal.com",
            &["`рaypal` mixes letters of Cyrillic and Latin"],
        ),
        ("PayΡal", &["`PayΡal` mixes letters of Latin and Greek"]),
        ("раура\u{4cf}", &["`раураӏ` looks like `paypal` and is not"]),
        ("ΑΒΕ 12", &["`ΑΒΕ` looks like `ABE` and is not"]),
        // What cannot be seen does not part a word.
        (
            "\u{440}\u{200b}ay",
            &[
                "1 character that cannot be seen is written out",
                "`рay` mixes letters of Cyrillic and Latin",
            ],
        ),
        ("дом a", &[]),
        ("а", &[]),
        ("Tシャツ 東京Tower", &[]),
        ("user_\u{438}мя", &[]),
        (
            "\u{5d0}\u{5d1} 100",
            &[
                "it has letters that are read from right to left: their order on the screen may deceive",
            ],
        ),
    ];
    for (text, warnings) in table {
        assert_eq!(field(text).1, *warnings, "{text:?}");
    }
    let many: String = (0..100).map(|n| format!("\u{440}a{n} ")).collect();
    assert_eq!(Shown::field(many.trim(), 1000).warnings.len(), 8);
}

#[test]
fn a_long_text_loses_its_middle_and_says_how_long_it_was() {
    let text: String = (0..10_000)
        .map(|n| char::from(b'a' + (n % 26) as u8))
        .collect();
    let shown = Shown::field(&text, 100);
    assert_eq!(shown.text.chars().count(), 100);
    assert!(
        shown.text.contains("…[10000 characters, 10000 bytes]…"),
        "{shown}"
    );
    assert!(shown.text.starts_with(&text[..33]) && shown.text.ends_with(&text[10_000 - 33..]));
    assert_eq!((shown.characters, shown.bytes), (10_000, 10_000));
    assert_eq!(
        shown.warnings,
        [Warning::Cut {
            left_out: 10_000 - 67
        }]
    );
    // A length that leaves no room for the notice is taken as the smallest that does.
    assert_eq!(Shown::field(&text, 0).text.chars().count(), 80);
    // An escape is never cut in two, and marks do not sit on the notice.
    let shown = Shown::field(&"é\u{301}\u{301}\u{202e}".repeat(1000), 80).text;
    assert!(
        !shown.contains("…\u{301}") && !shown.contains("…]\u{301}"),
        "{shown}"
    );
    assert_eq!(shown.matches("\\u{").count(), shown.matches('}').count());
}

type Show = fn(&str, usize) -> Shown;

/// What must not come out of the sanitiser, by the tables of another library than its own.
static NOT_IN_FIELD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[[\p{C}\p{Z}\p{DI}]--[ ]]").unwrap());
static NOT_IN_BLOCK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[[\p{C}\p{Z}\p{DI}]--[ \n\t]]").unwrap());

/// T15: every character that cannot be seen, of all there are.
#[test]
fn every_character_there_is_comes_out_visible() {
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    let mut raw = 0usize;
    for some in all.chunks(64) {
        let (hidden, seen): (Vec<char>, Vec<char>) =
            some.iter().partition(|character| is_hidden(**character));
        // Each that can be seen has a letter of its own to sit on, should it be a mark.
        let text: String = seen
            .iter()
            .flat_map(|character| ['a', *character])
            .chain(hidden.iter().copied())
            .collect();
        assert!(
            !NOT_IN_FIELD.is_match(&Shown::field(&text, 4000).text),
            "{text:?}"
        );
        if !seen.is_empty() {
            let (field, block) = (
                Shown::field(&text, 4000).text,
                Shown::block(&text, 4000).text,
            );
            assert!(!NOT_IN_BLOCK.is_match(&block), "{block:?}");
            assert_eq!(Shown::field(&field, 4000).text, field);
            assert_eq!(Shown::block(&block, 4000).text, block);
        }
        // What counts as hidden is what the other library says, and three symbols that are blank.
        raw += seen.len();
        assert!(
            !NOT_IN_FIELD.is_match(&String::from_iter(&seen)),
            "{seen:?}"
        );
        let blank = |character: &&char| matches!(character, '\u{2800}' | '\u{16fe4}' | '\u{1d159}');
        let known = hidden.len() - hidden.iter().filter(blank).count();
        assert_eq!(
            NOT_IN_FIELD.find_iter(&String::from_iter(&hidden)).count(),
            known,
            "{hidden:?}"
        );
    }
    println!("{} characters, {raw} of them shown as they are", all.len());
    assert!(raw > 140_000);
}

fn odd() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        4 => any::<char>(),
        2 => proptest::char::range('a', 'f'),
        1 => Just(' '),
        1 => Just('\n'),
        1 => Just('\t'),
        1 => Just('\u{301}'),
        1 => Just('\u{202e}'),
        1 => proptest::char::range('\u{400}', '\u{4ff}'),
    ];
    let piece = prop_oneof![
        character.clone().prop_map(String::from),
        (character, 1..100usize).prop_map(|(character, n)| String::from(character).repeat(n)),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
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
    #![proptest_config(at_least(800))]

    #[test]
    fn what_is_shown_is_visible_short_and_shown_again_the_same(text in odd(), max in 0..300usize) {
        for (show, hidden) in [(Shown::field as Show, &*NOT_IN_FIELD), (Shown::block, &*NOT_IN_BLOCK)] {
            let shown = show(&text, max);
            prop_assert!(!hidden.is_match(&shown.text), "{:?}", shown.text);
            prop_assert!(shown.text.chars().count() <= max.max(MIN_LENGTH));
            prop_assert_eq!((shown.characters, shown.bytes), (text.chars().count(), text.len()));
            prop_assert_eq!(&show(&shown.text, max).text, &shown.text);
            // Nothing is changed in silence.
            if shown.warnings.is_empty() {
                prop_assert_eq!(&shown.text, &text);
            }
            for warning in &shown.warnings {
                let said = warning.to_string();
                prop_assert!(!NOT_IN_FIELD.is_match(&said), "{:?}", said);
            }
        }
    }
}
