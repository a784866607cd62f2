//! A writer that wants to pass what was not read: ids and addresses in every disguise, at every place.

use super::{filled, id, library};
use crate::research::citation::shadow::Shadow;
use crate::research::citation::{check, find, quote};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

/// Addresses and ids that nobody has fetched.
const FABRICATED: [&str; 10] = [
    "src-deadbeef",
    "src-12345678",
    "https://made.up/paper",
    "http://example.com/a?b=c",
    "www.made-up.org/x",
    "10.5555/made.up",
    "arXiv:1706.03762",
    "doi.org/10.5555/made.up",
    "ftp://made.up/file",
    "local:made-up.md",
];

/// Ways to write something so that code could miss what a reader sees.
const DISGUISES: [fn(&str) -> String; 19] = [
    |s| s.to_owned(),
    |s| s.to_uppercase(),
    |s| s.chars().map(|c| format!("{c}\u{200b}")).collect(),
    |s| s.chars().map(|c| format!("{c}\u{ad}")).collect(),
    |s| s.chars().map(|c| format!("\u{2060}{c}")).collect(),
    |s| format!("\u{202e}{s}\u{202c}"),
    |s| s.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
    |s| {
        s.chars()
            .map(|c| format!("&#x{:x};", u32::from(c)))
            .collect()
    },
    |s| {
        s.replace(':', "&colon;")
            .replace('/', "&sol;")
            .replace('-', "&hyphen;")
            .replace('.', "&period;")
    },
    |s| s.bytes().map(|b| format!("%{b:02X}")).collect(),
    |s| s.bytes().map(|b| format!("%25{b:02x}")).collect(),
    |s| {
        s.chars()
            .map(|c| format!("&amp;#{};", u32::from(c)))
            .collect()
    },
    |s| s.chars().map(wide).collect(),
    |s| s.split_at(2).0.to_owned() + "**" + s.split_at(2).1,
    |s| s.split_at(1).0.to_owned() + "`" + s.split_at(1).1,
    |s| s.split_at(s.len() / 2).0.to_owned() + "<b></b>" + s.split_at(s.len() / 2).1,
    |s| s.split_at(2).0.to_owned() + "<!-- x -->" + s.split_at(2).1,
    |s| {
        s.replace('-', "\\-")
            .replace('.', "\\.")
            .replace(':', "\\:")
    },
    |s| s.chars().map(|c| if c == 'a' { 'а' } else { c }).collect(),
];

fn wide(c: char) -> char {
    match c {
        '!'..='~' => char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c),
        c => c,
    }
}

/// Places at which a text may cite or link.
const PLACES: [&str; 22] = [
    "It is so here [@].",
    "It is so here 【@】.",
    "It is so here (@).",
    "It is so here @ and there.",
    "[It is so](@) here.",
    "![It is so](@) here.",
    "<@> says so here.",
    "<a href=\"@\">It is</a> so here.",
    "<img src='@'> is so here.",
    "It is [so][x] here.\n\n[x]: @ \"title\"",
    "It is so[^1] here.\n\n[^1]: @",
    "It is so here [{0}, @].",
    "[{0}]: @",
    "`@` is so here.",
    "```\n@\n```",
    "> It is so here and there. @",
    "# Head @\n\nIt is so.",
    "| a | b |\n|---|---|\n| @ | it is so |",
    "## References\n\n1. @",
    "It is \"so here and there @\" [{0}].",
    "[[It is](@)](@) so here.",
    "It is so here {0}@.",
];

/// What may not be in a checked text, seen with other eyes than those of the rules.
fn survivor(body: &str) -> Option<&'static str> {
    let seen: String = body
        .chars()
        .filter(|c| !c.is_control() && !"*`~\u{200b}".contains(*c))
        .collect();
    let seen = seen.to_lowercase();
    let parts = [
        "src-",
        "deadbeef",
        "12345678",
        "://",
        "made.up",
        "made-up",
        "example.com",
        "10.5555",
        "1706.03762",
        "%64",
        "&#",
        "ｓｒｃ",
        "ｈｔｔｐ",
    ];
    parts.into_iter().find(|part| seen.contains(part))
}

#[test]
fn none_of_the_fabricated_citations_passes() {
    let library = library();
    let (mut tried, mut passed) = (0, Vec::new());
    for fabricated in FABRICATED {
        for (n, disguise) in DISGUISES.iter().enumerate() {
            for place in PLACES {
                let written = disguise(fabricated);
                // In code a renderer shows tags letter by letter: they hide nothing there.
                if place.contains('`') && written.contains('<') {
                    continue;
                }
                let text = filled(place).replace('@', &written);
                let checked = check(&text, &library);
                tried += 1;
                let unknown = checked
                    .references
                    .iter()
                    .any(|reference| library.by_id(&reference.id).is_none());
                if unknown || survivor(&checked.body).is_some() {
                    passed.push(format!(
                        "{n} {text:?} -> {:?} ({:?})",
                        checked.body,
                        survivor(&checked.body)
                    ));
                }
            }
        }
    }
    assert_eq!(tried, 4_140);
    assert!(
        passed.is_empty(),
        "{} of {tried} passed:\n{}",
        passed.len(),
        passed.join("\n")
    );
}

#[test]
fn numbers_that_a_writer_makes_up_do_not_pass() {
    let forms = [
        "[7]",
        "[7, 8]",
        "[7-9]",
        "[^7]",
        "[^note]",
        "【7】",
        "［7］",
        "[７]",
        "&#91;7&#93;",
        "[7\u{200b}]",
        "<sup>7</sup>",
        "[Ref. 7]",
        "[7†source]",
        "[7](https://made.up)",
        "[7]:",
    ];
    for form in forms {
        for place in [
            "It is so here @.",
            "It is so @ here [{0}].",
            "> It is so here and there @",
            "- it is so here @",
        ] {
            let body = check(&filled(place).replace('@', form), &library()).body;
            let left = body.replace("[1]", "");
            assert!(
                !left.contains(|c: char| c.is_numeric()) && !left.contains("note]"),
                "{form}: {body}"
            );
        }
    }
}

#[test]
fn fabricated_quotations_do_not_pass_in_any_marks() {
    let marks = [
        ("\"", "\""),
        ("“", "”"),
        ("„", "“"),
        ("«", "»"),
        ("»", "«"),
        ("‹", "›"),
        ("‘", "’"),
        ("'", "'"),
        ("「", "」"),
        ("&quot;", "&quot;"),
        ("&ldquo;", "&rdquo;"),
        ("<q>", "</q>"),
        ("&#34;", "&#x22;"),
        ("> ", ""),
        ("*\"", "\"*"),
        ("**“", "”**"),
    ];
    for (open, close) in marks {
        for words in [
            "helps when the first stage is dear",
            "helps [...] when the ... is dear",
            "Helps when",
            "reranking never helps at all",
        ] {
            for source in [0, 1, 2] {
                let text = format!("{open}{words} and so on{close} [{}].", id(source));
                let checked = check(&text, &library());
                assert!(
                    checked.body.contains(super::NOT_FOUND),
                    "{text}: {}",
                    checked.body
                );
                assert_eq!(checked.figures.quotes_refused, 1, "{text}");
            }
        }
    }
}

#[test]
fn hostile_texts_of_one_piece_do_not_blow_up() {
    let started = std::time::Instant::now();
    let pieces = [
        "[",
        "\n",
        "PMC12345678 ",
        "a made-up.pdf ",
        "](",
        "[a](",
        "![",
        "<a ",
        "<!--",
        "&#",
        "&",
        "%25",
        "`",
        "``` ` ``",
        "\"a b c d e\" ",
        "“",
        "> \"\n",
        "(",
        "(A, 2020",
        "src-",
        "[src-",
        "[src-a, ",
        "http:",
        "//a.",
        "a.com/",
        "10.1/",
        "arxiv ",
        "* ",
        "|-\n",
        "\\",
        "...",
        "et al. (2020) ",
        "[1]",
        "🦀\u{200d}",
    ];
    for piece in pieces {
        let text = piece.repeat(40_000 / piece.len());
        let checked = check(&text, &library());
        assert!(checked.refused.len() <= 1_000);
    }
    let taken = started.elapsed();
    assert!(taken.as_secs() < 60, "{taken:?}");
}

/// Pieces of which hostile texts are put together.
fn piece() -> impl Strategy<Value = String> {
    let fixed: Vec<String> = FABRICATED
        .iter()
        .chain(&PLACES)
        .map(|s| filled(s))
        .collect();
    let marks = [
        "[",
        "\n",
        "]",
        "(",
        ")",
        "](",
        "![",
        "<",
        ">",
        "`",
        "```\n",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "# ",
        "\"",
        "“",
        "”",
        "&",
        "#",
        ";",
        "%",
        "\\",
        "*",
        "src",
        "-",
        "http",
        ":",
        "//",
        ".",
        " ",
        "{0}",
        "[{0}]",
        "References\n",
        "|",
        "[1]: ",
        "\u{200b}",
        "…",
        "&#x",
        "73",
        "25",
        "org/",
    ];
    prop_oneof![
        4 => proptest::sample::select(fixed),
        8 => proptest::sample::select(marks.map(filled).to_vec()),
        2 => (proptest::sample::select(FABRICATED.to_vec()), 0..DISGUISES.len()).prop_map(|(s, n)| DISGUISES[n](s)),
        1 => any::<String>(),
    ]
}

/// What a renderer makes of a checked text may have no link, no picture, no address and no id.
fn rendered(body: &str) -> Result<(), String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS;
    let (mut shown, mut links) = (String::new(), 0);
    for event in Parser::new_ext(body, options) {
        match event {
            Event::Start(Tag::Link { .. } | Tag::Image { .. }) => links += 1,
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                shown.push_str(&text)
            }
            Event::End(_) | Event::SoftBreak | Event::HardBreak => {
                shown.push(if links > 0 { '!' } else { '\u{1}' })
            }
            _ => {}
        }
    }
    let shown = shown.to_lowercase();
    let id = shown.match_indices("src-").any(|(at, _)| {
        let digits = shown[at + 4..].chars().take_while(char::is_ascii_hexdigit);
        digits.count() >= 8
    });
    if links > 0 || shown.contains("://") || id {
        return Err(format!("{links} links, id: {id}, text: {shown:?}"));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_no_id_and_no_address_stays(pieces in proptest::collection::vec(piece(), 0..24)) {
        let library = library();
        let checked = check(&pieces.concat(), &library);
        for found in find::find(&Shadow::new(&checked.body)) {
            let harmless = matches!(found.kind, find::Kind::Number | find::Kind::Domain(_));
            prop_assert!(harmless, "{:?} in {:?}", found, checked.body);
        }
        let rendered = rendered(&checked.body);
        prop_assert!(rendered.is_ok(), "{:?} in {:?}", rendered, checked.body);
        let figures = checked.figures;
        prop_assert_eq!(figures.claims, figures.cited + figures.uncited);
        prop_assert!(figures.quotes >= figures.quotes_refused);
        for (n, reference) in checked.references.iter().enumerate() {
            prop_assert_eq!(reference.n, n + 1);
            prop_assert!(library.by_id(&reference.id).is_some());
        }
    }

    #[test]
    fn what_stands_in_a_source_can_be_quoted(start in 0_usize..30, length in 4_usize..12) {
        let text = &library()[0].versions[0].text;
        let words: Vec<&str> = text.split_whitespace().collect();
        let said: Vec<&str> = words.into_iter().skip(start).take(length).collect();
        let said = said.join(" ");
        prop_assume!(quote::is_long(&said));
        let checked = check(&format!("«{said}» [{}]", id(0)), &library());
        prop_assert_eq!(checked.figures.quotes_refused, 0, "{}", checked.body);
    }
}
