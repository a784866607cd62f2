//! Ways to cite that are not ours, and quotations in all marks: none passes, and what is meant otherwise stays.

use super::{bodies, checked};
use crate::research::citation::{NO_SUCH_WORK, NOT_FOUND};

/// What of a sentence with one of these is left.
fn nothing_of(fabricated: &[&str]) {
    let texts: Vec<(String, String)> = fabricated
        .iter()
        .map(|part| {
            (
                format!("It wins {part} here [{{0}}]."),
                "It wins here [1].".to_owned(),
            )
        })
        .collect();
    let table: Vec<(&str, &str)> = texts
        .iter()
        .map(|(text, body)| (text.as_str(), body.as_str()))
        .collect();
    bodies(&table);
}

#[test]
fn numbers_and_keys_of_other_ways_to_cite_go() {
    nothing_of(&[
        "[12345]",
        "[⑦]",
        "[٧]",
        "[七]",
        "[vii]",
        "[S1]",
        "[R7]",
        "[p. 7]",
        "(ref. 7)",
        "(see refs 3, 4)",
        "reference 7",
        "【4†source】",
        "【turn0search0】",
        "citeturn0search1",
        "[cite: 3]",
        ":cite[3]",
        "[LPP+20]",
        "[Lewis20]",
        "[@lewis2020, p. 3]",
        "@lewis2020",
        "\\cite{lewis2020}",
        "\\citep[see][p. 3]{a,b}",
        "{{cite|lewis}}",
        "[[Lewis2020]]",
        "hxxps[:]//made[.]up/paper",
        "made[.]up/x",
        "https:\\\\made.up\\x",
        "docs.rs/made-up",
        "notion.so/made-up",
        "forms.gle/made",
        "192.0.2.7/paper",
    ]);
    bodies(&[
        (
            "It wins¹ here² and there³ [{0}].",
            "It wins here and there [1].",
        ),
        (
            "It wins^7^ and so^[7] and loss$^{7}$ here [{0}].",
            "It wins and so and loss here [1].",
        ),
        ("It wins⑦ here [{0}].", "It wins here [1]."),
    ]);
}

#[test]
fn works_that_no_source_has_are_noted() {
    let noted = [
        "PMID: 12345678",
        "PMC1234567",
        "ISBN 978-3-16-148410-0",
        "ISSN 1234-5678",
        "RFC 9999",
        "US Patent 1,234,567",
        "1706.03762v5",
        "abs/1706.03762",
        "results-2024.pdf",
        "notes/made-up.md",
        "Smith et al.",
        "Smith (2021)",
        "Smith’s 2021 paper",
        "Smith and Doe (2021)",
        "Lewis et al. 2020",
        "Lewis et al., 2020",
    ];
    for part in noted {
        let result = checked(&format!("It wins by {part} says a page [{{0}}]."));
        assert_eq!(
            result.body,
            format!("It wins by {part} {NO_SUCH_WORK} says a page [1]."),
            "{part}"
        );
        assert_eq!(result.figures.fabricated_refused, 1, "{part}");
    }
    nothing_of(&[
        "(Lewis et al., ２０２０)",
        "（Lewis et al., 2020）",
        "(Darwin, 1859)",
        "(Lewis et al., 2020a,b)",
        "(Lewis et al. 2020, 2021)",
        "(2020, Lewis)",
        "(Smith et al.)",
        "(Smith, in press)",
        "(Smith, n.d.)",
    ]);
}

#[test]
fn what_only_looks_like_another_way_to_cite_stays() {
    bodies(&[
        (
            "It is O(n²), cm², 10⁶ and χ² here [{0}].",
            "It is O(n²), cm², 10⁶ and χ² here [1].",
        ),
        (
            "See chunking.md in Node.js/Express or main.rs/lib.rs [{1}].",
            "See chunking.md in Node.js/Express or main.rs/lib.rs [1].",
        ),
        (
            "In 2023 Moreau (2023) and Moreau et al. say so [{0}].",
            "In 2023 Moreau (2023) and Moreau et al. say so [1].",
        ),
        (
            "The net 10.0.0.0/8 has version 1.2.3.4/5 here [{0}].",
            "The net 10.0.0.0/8 has version 1.2.3.4/5 here [1].",
        ),
        (
            "The source 3 is `array[vii]` and [draft] here [{0}].",
            "The source 3 is `array[vii]` and [draft] here [1].",
        ),
        (
            "It is 2005.11401 units, x^2 and 2^10 here [{0}].",
            "It is 2005.11401 units, x^2 and 2^10 here [1].",
        ),
        (
            "The dogs’ bowl and the ’90s were good here [{0}].",
            "The dogs’ bowl and the ’90s were good here [1].",
        ),
    ]);
}

#[test]
fn angle_brackets_that_are_no_tags_keep_their_words() {
    bodies(&[
        (
            "If latency <five ms and recall >0.9 it is [{0}].",
            "If latency \\<five ms and recall >0.9 it is [1].",
        ),
        (
            "Use Vec<String> or a<b and c>d here [{0}].",
            "Use Vec\\<String> or a\\<b and c>d here [1].",
        ),
        (
            "Use `Vec<String>` or <b>bold</b> here [{0}].",
            "Use `Vec<String>` or bold here [1].",
        ),
        (
            "It says <<so and so>> &nosuch; here [{0}].",
            "It says <\\<so and so>> &amp;nosuch; here [1].",
        ),
    ]);
}

#[test]
fn quotations_are_looked_up_in_all_marks_and_places() {
    let said = "chunks of 999 tokens did best in every test";
    let marks = [
        ("“", "”"),
        ("„", "“"),
        ("‟", "”"),
        ("”", "”"),
        ("’", "’"),
        ("‘", "’"),
        ("'", "'"),
        ("\"", "\""),
        ("\" ", " \""),
        ("＂", "＂"),
        ("❝", "❞"),
        ("``", "''"),
        ("″", "″"),
        ("〝", "〞"),
        ("《", "》"),
        ("«", "»"),
        ("»", "«"),
        ("「", "」"),
        ("&ldquo;", "&rdquo;"),
        ("&OpenCurlyDoubleQuote;", "&CloseCurlyDoubleQuote;"),
        ("&rdquor;", "&rdquor;"),
        ("<q>", "</q>"),
        ("`\"", "\"`"),
    ];
    for (open, close) in marks {
        let result = checked(&format!("It says {open}{said}{close} here [{{0}}]."));
        assert!(result.body.contains(NOT_FOUND), "{open} {}", result.body);
        assert_eq!(result.figures.quotes_refused, 1, "{open}");
    }
    for place in [
        "**“@” [{0}]**",
        "## “@” [{0}]",
        "| “@” [{0}] | b |\n|---|---|\n| a | b [{0}] |",
        "`“@” [{0}]`",
    ] {
        let result = checked(&place.replace('@', said));
        assert!(result.body.contains(NOT_FOUND), "{place}: {}", result.body);
        assert_eq!(
            (result.figures.quotes, result.figures.quotes_refused),
            (1, 1),
            "{place}"
        );
    }
    let torn = checked("“Chunks of 999\n\ntokens did best\n\nin every test” [{0}].");
    assert!(
        torn.body.starts_with("Chunks of 999 [quotation not found"),
        "{}",
        torn.body
    );
    let true_heading = checked("## “helps when the first stage is cheap” [{0}]");
    assert_eq!(
        true_heading.body,
        "## “helps when the first stage is cheap” [1]"
    );
}

#[test]
fn a_report_in_a_fence_is_read_as_one() {
    bodies(&[
        (
            "```markdown\nIt is so here and there.\n```",
            "It is so here and there. [uncited]",
        ),
        (
            "~~~\nIt is [x](https://made.up) here.\n~~~\n",
            "It is x here. [uncited]",
        ),
        ("```rust\nlet a = 1;\n```", "```rust\nlet a = 1;\n```"),
    ]);
}

#[test]
fn sections_about_literature_and_intervals_stay() {
    bodies(&[
        (
            "## Literature\n\nIt says much here [{0}].",
            "## Literature\n\nIt says much here [1].",
        ),
        (
            "It is in [0, 1] and [0] here [{0}].",
            "It is in [0, 1] and [0] here [1].",
        ),
        (
            "It is so here [{0}].\n\n## What was checked\n\nAll of it.\n\n## More\n\nYes.",
            "It is so here [1].\n\n\n\n\n\n## More\n\nYes.",
        ),
    ]);
}

#[test]
fn a_long_line_in_bold_is_a_claim() {
    bodies(&[
        (
            "**Chunks of 999 tokens are best of all**",
            "**Chunks of 999 tokens are best of all** [uncited]",
        ),
        ("**What is known of chunks**", "**What is known of chunks**"),
    ]);
}

#[test]
fn lists_of_references_go_whatever_their_title_is() {
    for list in [
        "## Key references\n\n- Lewis.",
        "### Sources consulted\n\n1. Lewis.",
        "**Primary sources:**\n- Lewis 2020",
        "References & further reading:\n- Doe, J. A book.",
        "| # | Source |\n|---|---|\n| 1 | Lewis et al. |",
        "| Title | URL | Source |\n|---|---|---|\n| a | b | c |",
        "## Bibliographie\n\n- Lewis.",
        "## Fonti\n\n- Lewis.",
        "## 文献\n\n- Lewis.",
        "## Notes\n\n1. Lewis, P. (2020), p. 4.",
    ] {
        let result = checked(&format!("It is so here [{{0}}].\n\n{list}"));
        assert_eq!(result.body, "It is so here [1].", "{list}");
        assert_eq!(result.figures.fabricated_refused, 1, "{list}");
    }
    for kept in [
        "## Sources of error\n\nNone.",
        "## Notes\n\nNone.",
        "## Data sources\n\nNone.",
        "| Model | Source |\n|---|---|\n| a | b [{0}] |",
    ] {
        let result = checked(kept);
        assert_eq!(result.figures.fabricated_refused, 0, "{kept}");
    }
}
