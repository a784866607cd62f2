#![allow(clippy::unwrap_used, reason = "a test may panic")]
//! What passes the gate, and what does not. The library has three sources; hostile texts are generated.

mod hostile;
mod styles;

use super::*;
use crate::research::source::{Source, SourceKind};

const AT: &str = "2026-01-31T10:00:00Z";

const RERANKING: &str = "Reranking helps when the first stage is cheap.\nA cross\u{ad}encoder reads query and passage \
    together — it is slow, but it is “more exact” than two separate encoders. In 2023 Moreau measured 12 % fewer errors.";
const CHUNKING: &str = "Chunks of 256 to 512 tokens did best. Larger chunks dilute the match; smaller ones lose context.";

pub(super) fn library() -> Library {
    let source =
        |url: &str, title: &str, text: &str| Source::new(url, title, (SourceKind::Page, text), AT);
    Library(vec![
        source("https://example.org/reranking", "On reranking", RERANKING),
        source("local:chunking.md", "On chunking", CHUNKING),
        source(
            "https://arxiv.org/abs/2005.11401v4",
            "Paper",
            "Nothing much.",
        ),
        source(
            "https://doi.org/10.1234/abc.5",
            "Article",
            "Nothing much either.",
        ),
    ])
}

pub(super) fn id(place: usize) -> String {
    library()[place].id.clone()
}

/// `{0}` to `{3}` are the ids of the library's sources.
pub(super) fn filled(text: &str) -> String {
    let all = (0..4).fold(text.to_owned(), |text, n| {
        text.replace(&format!("{{{n}}}"), &id(n))
    });
    all.replace("{x}", "src-00000000")
}

fn checked(text: &str) -> Checked {
    check(&filled(text), &library())
}

fn bodies(table: &[(&str, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(text, body)| (*text, *body, checked(text).body))
        .filter(|(_, expected, body)| expected != body)
        .map(|(text, expected, body)| {
            format!("text:     {text:?}\nexpected: {expected:?}\nbody:     {body:?}\n")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ids_become_numbers_in_the_order_of_first_use() {
    let result = checked(
        "It is so [{1}]. And this too [{0}, {1}]. And again that [{1}][{0}].\n\nIt is so ({0}).",
    );
    assert_eq!(
        result.body,
        "It is so [1]. And this too [2][1]. And again that [1][2].\n\nIt is so [2]."
    );
    let references: Vec<_> = result
        .references
        .iter()
        .map(|r| (r.n, r.url.as_str(), r.title.as_str()))
        .collect();
    assert_eq!(
        references,
        [
            (1, "local:chunking.md", "On chunking"),
            (2, "https://example.org/reranking", "On reranking")
        ]
    );
    assert_eq!(result.references[0].sha256, library()[1].versions[0].sha256);
    assert_eq!(
        (
            result.references[0].fetched_at.as_str(),
            result.references[0].id.clone()
        ),
        (AT, id(1))
    );
    let figures = CitationFigures {
        claims: 4,
        cited: 4,
        ..CitationFigures::default()
    };
    assert_eq!((result.figures, result.refused), (figures, vec![]));
}

#[test]
fn what_was_not_fetched_goes_and_is_told() {
    let result = checked(
        "One is so [{x}].\nTwo is so [1].\nThree is said on https://made.up/a.\n\n## References\n\n1. https://made.up/a\n",
    );
    assert_eq!(
        result.body,
        "One is so. [uncited]\nTwo is so. [uncited]\nThree is said on. [uncited]"
    );
    let told: Vec<_> = result
        .refused
        .iter()
        .map(|r| (r.kind, r.what.as_str(), r.place, r.why.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (
                RefusedKind::List,
                "## References",
                5,
                "the list of references is made by code"
            ),
            (
                RefusedKind::Id,
                "src-00000000",
                1,
                "no source with this id was fetched in this run"
            ),
            (
                RefusedKind::Number,
                "[1]",
                2,
                "numbers of references are given by code"
            ),
            (
                RefusedKind::Address,
                "https://made.up/a",
                3,
                "it was not fetched in this run"
            ),
        ]
    );
    assert_eq!(result.figures.fabricated_refused, 4);
}

#[test]
fn an_address_that_was_fetched_is_a_citation_of_it() {
    bodies(&[
        ("So says https://example.org/reranking.", "So says [1]."),
        (
            "So [says it](https://example.org/reranking \"t\") loudly.",
            "So says it [1] loudly.",
        ),
        (
            "So says <http://EXAMPLE.org/reranking#part>.",
            "So says [1].",
        ),
        (
            "So says <a href='https://example.org/reranking'>the</a> page.",
            "So says [1] the page.",
        ),
        ("So says local:chunking.md, too.", "So says [1], too."),
        ("So says arXiv:2005.11401 in full.", "So says [1] in full."),
        ("So says doi:10.1234/ABC.5 in full.", "So says [1] in full."),
        (
            "So it [was][Label].\n\n[label]: https://example.org/reranking",
            "So it was [1].",
        ),
        (
            "So it was [{0}](https://example.org/reranking).",
            "So it was [1].",
        ),
        ("So it was [{0}](with care).", "So it was [1]."),
    ]);
}

#[test]
fn addresses_that_were_not_fetched_leave_no_trace() {
    bodies(&[
        (
            "So [says it](https://made.up/x) loudly [{0}].",
            "So says it loudly [1].",
        ),
        ("It is (see https://made.up/x) so [{0}].", "It is so [1]."),
        (
            "An ![image](https://made.up/x.png) is here [{0}].",
            "An image is here [1].",
        ),
        (
            "It is www.made.up/x or made-up.org/path here [{0}].",
            "It is or here [1].",
        ),
        (
            "It is doi:10.9999/x and arXiv:1706.03762v5 here [{0}].",
            "It is and here [1].",
        ),
        (
            "It is hxxps://made.up or javascript:alert(1) here [{0}].",
            "It is or here [1].",
        ),
        (
            "<a href=\"//made.up/x\">This is</a> here [{0}].",
            "This is here [1].",
        ),
        (
            "It is so[^1] here [{0}].\n\n[^1]: https://made.up/x",
            "It is so here [1].",
        ),
        ("It is so【3†source】 here [{0}].", "It is so here [1]."),
        (
            "It is so<sup>3</sup> here.² It is well [{0}].",
            "It is so here. [uncited] It is well [1].",
        ),
        (
            "`curl https://made.up/x` is a command [{0}].",
            "`curl` is a command [1].",
        ),
        ("example.com says so here [{0}].", "says so here [1]."),
    ]);
}

#[test]
fn what_is_no_citation_stays_as_it_is() {
    bodies(&[
        (
            "`x = [1, 2]` is a list of numbers [{0}].",
            "`x = [1, 2]` is a list of numbers [1].",
        ),
        (
            "A `list[1]` and Node.js/Express, and/or src-tauri [{0}].",
            "A `list[1]` and Node.js/Express, and/or src-tauri [1].",
        ),
        (
            "Amazon.com and example.org and me@example.org are names [{0}].",
            "Amazon.com and example.org and me@example.org are names [1].",
        ),
        (
            "At 10:30 a ratio of 3:1, i.e. 10.5 % (or 1/2) [{0}].",
            "At 10:30 a ratio of 3:1, i.e. 10.5 % (or 1/2) [1].",
        ),
        (
            "a < b & c > d, AT&amp;T, 5 km² [{0}].",
            "a < b & c > d, AT&amp;T, 5 km² [1].",
        ),
        (
            "- one thing here [{0}]\n- another thing here [{1}]",
            "- one thing here [1]\n- another thing here [2]",
        ),
        (
            "See the [chunk] of data: it is [sic] here [{0}].",
            "See the [chunk] of data: it is [sic] here [1].",
        ),
    ]);
}

#[test]
fn lists_of_the_writers_own_are_cut_out() {
    let with = |list: &str| format!("It is so here [{{0}}].\n\n{list}");
    for list in [
        "# References\n- a\n- b\n",
        "References\n==========\n1. a",
        "**Sources:**\n\n* https://example.org/reranking",
        "Sources:\n- [{0}] On reranking",
        "## Works Cited\n\n### Books\n\nSome text.",
        "[1] Lewis, Retrieval, 2020\n[2] Moreau",
        "[{0}]: https://made.up",
        "[^a]: A note.",
    ] {
        let result = checked(&with(list));
        assert_eq!(result.body, "It is so here [1].", "{list}");
        assert!(result.figures.fabricated_refused > 0, "{list}");
    }
    let result =
        checked("It is so [{0}].\n\n## Sources\n\n- a\n\n## What is missing\n\nMuch of it.");
    assert_eq!(
        result.body,
        "It is so [1].\n\n\n\n\n\n## What is missing\n\nMuch of it."
    );
}

#[test]
fn a_quotation_has_to_stand_in_a_source_cited_with_it() {
    let bad = " [quotation not found in the source]";
    let table = [
        // Blanks, dashes, soft hyphens, quotation marks and the first letter may differ.
        (
            "It says \"a crossencoder  reads query and passage together - it is slow\" [{0}].",
            true,
        ),
        (
            "It says “It is 'more exact' than two separate encoders.” [{0}]",
            true,
        ),
        (
            "«Reranking helps when [...] encoder reads query … two separate encoders», it says [{0}].",
            false,
        ),
        (
            "«Reranking helps when ... reads query and passage … two separate encoders», it says [{0}].",
            true,
        ),
        (
            "It says \"helps when the first stage is expensive\" [{0}].",
            false,
        ),
        ("It says \"helps when the first stage\" [{1}].", false),
        ("It says \"helps when the first stage\".", false),
        ("It says \"elps when the first stage\" [{0}].", false),
        ("It says \"Helps When The First\" [{0}].", false),
        (
            "It says \"helps ... first ... stage ... cheap\" [{0}].",
            false,
        ),
        ("It says ‘helps when the first stage is cheap’ [{0}].", true),
        ("It says 'helps when the first stage is dear' [{0}].", false),
        (
            "It says &quot;helps when the last stage is cheap&quot; [{0}].",
            false,
        ),
        (
            "It says <q>helps when the last stage is cheap</q> [{0}].",
            false,
        ),
        ("It says „helps when the last stage is cheap“ [{0}].", false),
        ("It says \"helps when the last stage is cheap [{0}].", false),
        (
            "It says \"Larger chunks dilute the match; smaller ones lose context. [{1}].",
            true,
        ),
        ("It says \"the last stage\" [{0}].", true),
    ];
    for (text, passes) in table {
        let result = checked(text);
        assert_eq!(
            !result.body.contains(bad),
            passes,
            "{text}\n{}",
            result.body
        );
        assert_eq!(
            result.figures.quotes_refused,
            usize::from(!passes),
            "{text}"
        );
    }
    let result = checked("It says “helps when the last stage is cheap” [{0}].");
    assert_eq!(
        result.body,
        format!("It says helps when the last stage is cheap{bad} [1].")
    );
    assert_eq!(
        result.refused[0].why,
        "it stands in no source that is cited with it"
    );
    let elsewhere = checked("It says “helps when the first stage is cheap” [{1}].")
        .refused
        .remove(0);
    assert_eq!(
        elsewhere.why,
        "it stands in a source that is not cited with it: On reranking (https://example.org/reranking)"
    );
}

#[test]
fn a_block_quotation_is_looked_up_as_well() {
    bodies(&[
        (
            "> Chunks of 256 to 512 tokens\n> did best.\n> — On chunking [{1}]",
            "> Chunks of 256 to 512 tokens\n> did best.\n> — On chunking [1]",
        ),
        (
            "As the page has it [{1}]:\n\n> Chunks of 256 to 512 tokens did best.",
            "As the page has it [1]:\n\n> Chunks of 256 to 512 tokens did best.",
        ),
        (
            "> Chunks of 256 to 512 tokens did best.\n\n— [{1}]",
            "> Chunks of 256 to 512 tokens did best.\n\n— [1]",
        ),
        (
            "> Chunks of 999 tokens did best. [{1}]\nLazily, it goes on here.",
            "Chunks of 999 tokens did best. [1]\nLazily, it goes on here. [quotation not found in the source]",
        ),
        (
            "- > Chunks of 999 tokens did best. [{1}]",
            "- Chunks of 999 tokens did best. [1] [quotation not found in the source]",
        ),
    ]);
}

#[test]
fn claims_without_a_citation_are_marked() {
    bodies(&[
        (
            "It is so here. It is well here [{0}]. [{1}]",
            "It is so here. [uncited] It is well here [1]. [2]",
        ),
        (
            "It is so here.[{0}] It is well.",
            "It is so here.[1] It is well. [uncited]",
        ),
        (
            "It is so here. [{0}] shows that well.",
            "It is so here. [uncited] [1] shows that well.",
        ),
        (
            "It is so, e.g. by 3.5 points vs. Dr. A. Moreau et al. And Fig. 3 [{0}].",
            "It is so, e.g. by 3.5 points vs. Dr. A. Moreau et al. And Fig. 3 [1].",
        ),
        (
            "# A head is no claim\n\nIs this a claim?\n\nYes.",
            "# A head is no claim\n\nIs this a claim?\n\nYes.",
        ),
        (
            "There are three ways:\n\n- it is so here\n- **bold.** It is so here too [{0}].",
            "There are three ways:\n\n- it is so here [uncited]\n- **bold.** It is so here too [1].",
        ),
        (
            "| a head is | no claim |\n|---|---|\n| it is so | here |\n| it is so | here [{0}] |",
            "| a head is | no claim |\n|---|---|\n| it is so | here [uncited] |\n| it is so | here [1] |",
        ),
        (
            "```\nThis is code and no claim.\n```\n\n## What is missing\n\nWe found nothing here.\n\n## More\n\nWe found it here.",
            "```\nThis is code and no claim.\n```\n\n## What is missing\n\nWe found nothing here.\n\n## More\n\nWe found it here. [uncited]",
        ),
        (
            "It is so here [uncited]. It is [citation not found in the sources] well here [{0}].",
            "It is so here. [uncited] It is well here [1].",
        ),
        (
            "这是一个没有引用的句子。这是一个有引用的句子[{0}]。",
            "这是一个没有引用的句子。 [uncited]这是一个有引用的句子[1]。",
        ),
    ]);
}

#[test]
fn authors_and_years_have_to_stand_in_what_is_cited() {
    bodies(&[
        (
            "It is so (Moreau, 2023) here [{0}].",
            "It is so (Moreau, 2023) here [1].",
        ),
        (
            "It is so (Lewis et al., 2020) here [{0}].",
            "It is so here [1].",
        ),
        (
            "It is so (Moreau, 2021; see Lewis & Perez 2020b, p. 3) here [{0}].",
            "It is so here [1].",
        ),
        (
            "It is so (Moreau, 2023; Lewis et al., 2020) here [{0}].",
            "It is so (Moreau, 2023) here [1].",
        ),
        ("It is so [Lewis 2020] here [{0}].", "It is so here [1]."),
        (
            "Lewis et al. (2020) say so here [{0}].",
            "Lewis et al. (2020) [citation not found in the sources] say so here [1].",
        ),
        (
            "It is so (March 2020), (in 2020), (at 3 in 2020) here [{0}].",
            "It is so (March 2020), (in 2020), (at 3 in 2020) here [1].",
        ),
    ]);
}

#[test]
fn only_so_much_is_checked_and_the_rest_is_left_out() {
    let result = check(&"é".repeat(600_000), &library());
    assert_eq!(result.body.len(), MAX_TEXT);
    assert_eq!(result.refused[0].kind, RefusedKind::Length);
    assert_eq!(
        result.refused[0].why,
        "only the first 1048576 bytes are checked; the rest is left out"
    );
    assert_eq!(result.figures.fabricated_refused, 0);
}

#[test]
fn a_checked_text_says_the_same_when_it_is_checked_again() {
    let text = "It is so here. It is \"well and good and fine\" there (Lewis et al. (2020)).";
    let once = checked(text);
    let twice = check(&once.body, &library());
    assert_eq!(once.body, twice.body);
}

#[test]
fn what_looks_like_code_to_hide_something_is_read_like_the_rest() {
    bodies(&[
        // Taking the id out takes a backtick with it: what stood between the two is code no longer.
        (
            "s`rc-deadbeef [It](x) is so here [{0}]. s`rc-deadbeef",
            "It is so here [1].",
        ),
        // A span that a renderer would begin a line earlier.
        (
            "It is ``` here\n```[so](x) there.``` [{0}]",
            "It is ``` here\n``` so there.``` [1]",
        ),
        // In an item a fence ends with the item.
        (
            "- ```\n[It](x) is so here [{0}].",
            "- ```\nIt is so here [1].",
        ),
        // An escaped backslash escapes nothing.
        ("It is \\\\[so](x) here [{0}].", "It is \\\\ so here [1]."),
        ("It is [so](x[) here [{0}].", "It is so here [1]."),
        // What is no address defines no link either.
        (
            "[so]: @\n\nIt is [so] here [{0}].",
            "[so]\\: @\n\nIt is [so] here [1].",
        ),
        (
            "It is so here [{0}], src-deadbeefIt.",
            "It is so here [1],.",
        ),
    ]);
}
