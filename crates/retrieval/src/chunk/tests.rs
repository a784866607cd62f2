//! Where texts are cut.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use proptest::prelude::*;

use super::*;

fn cut(text: &str) -> Vec<&str> {
    ranges(text)
        .into_iter()
        .map(|range| text.get(range).unwrap())
        .collect()
}

#[test]
fn a_short_text_is_one_chunk_and_a_blank_one_none() {
    assert_eq!(cut("One.\n\nTwo."), ["One.\n\nTwo."]);
    assert_eq!(
        cut("# A\n\nsmall\n\n# B\n\nsections"),
        ["# A\n\nsmall\n\n# B\n\nsections"]
    );
    assert_eq!(cut(" \n\n"), Vec::<&str>::new());
}

#[test]
fn a_section_begins_a_chunk_with_its_heading() {
    let (one, two) = ("word ".repeat(100), "text ".repeat(90));
    let text = format!("## One\n\n{}\n\n## Two\n\n{}", one.trim(), two.trim());
    assert_eq!(
        cut(&text),
        [
            format!("## One\n\n{}", one.trim()),
            format!("## Two\n\n{}", two.trim())
        ]
    );
    // One that is short stays with what came before, and its heading never ends a chunk.
    let text = format!("short\n\n## Two\n\n{}", "text ".repeat(158).trim());
    assert_eq!(
        cut(&text),
        [
            "short".to_owned(),
            format!("## Two\n\n{}", "text ".repeat(158).trim())
        ]
    );
}

#[test]
fn a_fence_stays_whole_where_it_fits() {
    let prose = "word ".repeat(120);
    let code = format!("```\n{}```", "let x = 1;\n".repeat(30));
    let text = format!("{}\n\n{code}\n\nend", prose.trim());
    assert_eq!(
        cut(&text),
        [prose.trim().to_owned(), format!("{code}\n\nend")]
    );
}

#[test]
fn a_long_trace_is_cut_between_its_frames() {
    let frames: Vec<String> = (0..60)
        .map(|n| format!("    at com.example.Boat{n}.float(Boat.java:{n})"))
        .collect();
    let text = format!(
        "```\njava.lang.NullPointerException: hull\n{}\n```",
        frames.join("\n")
    );
    let chunks = cut(&text);
    assert!(chunks.len() >= 4);
    for chunk in &chunks {
        assert!(
            chunk
                .lines()
                .all(|line| text.lines().any(|whole| whole == line)),
            "{chunk}"
        );
    }
    for frame in &frames {
        assert!(
            chunks.iter().any(|chunk| chunk.contains(frame.as_str())),
            "{frame}"
        );
    }
}

#[test]
fn what_is_cut_apart_overlaps_by_whole_words() {
    let words: Vec<String> = (0..400).map(|n| format!("word{n}")).collect();
    let text = words.join(" ");
    let chunks = cut(&text);
    for pair in chunks.windows(2) {
        let (end, start) = (pair[0], pair[1]);
        let shared = (1..=OVERLAP).rev().find(|n| {
            end.get(end.len().saturating_sub(*n)..)
                .is_some_and(|tail| start.starts_with(tail))
        });
        assert!(
            shared.is_some_and(|shared| shared > OVERLAP / 2),
            "{end} / {start}"
        );
        assert!(
            words
                .iter()
                .any(|word| Some(word.as_str()) == start.split(' ').next())
        );
    }
}

#[test]
fn ids_name_the_issue_and_the_place() {
    let document = Document {
        repo: "Acme/Boats.js".into(),
        number: 12,
        body: "word ".repeat(300),
        ..Document::default()
    };
    let ids: Vec<String> = chunks(&document)
        .into_iter()
        .map(|chunk| chunk.id)
        .collect();
    assert_eq!(
        ids,
        ["Acme-Boats.js-issue-12#0", "Acme-Boats.js-issue-12#1"]
    );
}

proptest! {
    #[test]
    fn nothing_but_white_space_is_left_out_and_no_chunk_is_too_long(
        parts in prop::collection::vec(
            prop_oneof!["[a-zäß日]{1,40}", "[ \n]{1,3}", Just("\n\n".to_owned()), Just("\n```\n".to_owned()),
                Just("\n# ".to_owned()), Just(". ".to_owned()), "[a-z]{700,900}"],
            0..120,
        )
    ) {
        let text = parts.concat();
        let ranges = ranges(&text);
        let mut covered = 0;
        for range in &ranges {
            let chunk = text.get(range.clone()).unwrap();
            prop_assert!(chunk.chars().count() <= CHUNK_CHARS + OVERLAP);
            prop_assert!(!chunk.trim().is_empty());
            prop_assert!(range.end > covered);
            if range.start > covered {
                prop_assert!(text.get(covered..range.start).unwrap().trim().is_empty());
            }
            covered = range.end;
        }
        if ranges.len() < MAX_CHUNKS {
            prop_assert!(text.get(covered..).unwrap().trim().is_empty());
        }
    }
}
