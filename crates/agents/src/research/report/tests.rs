#![allow(clippy::unwrap_used, reason = "a test may panic")]
//! What a report looks like, and that a hostile text makes nothing of it but text.

use super::*;
use crate::research::citation::check;
use crate::research::source::{Library, Source, SourceKind};

const AT: &str = "2026-01-31T10:00:00Z";

fn library() -> Library {
    let source = |url: &str, title: &str| {
        Source::new(url, title, (SourceKind::Page, "It is so, they say."), AT)
    };
    Library(vec![
        source("https://example.org/a?b=1&c=(2)", "On <b>A</b> [x](y)"),
        source("local:b.md", ""),
    ])
}

fn report(text: &str, lacking: (Option<&str>, &[&str])) -> Report {
    let library = library();
    let text = text
        .replace("{0}", &library[0].id)
        .replace("{1}", &library[1].id);
    let figures = ReportFigures {
        searches: 7,
        searches_without_reflection: 1,
        sources: 2,
        rounds: 3,
        researchers: 4,
        failed_researchers: 1,
        tokens: 12_345,
        micro_dollars: Some(1_020_300),
        ..ReportFigures::default()
    };
    let frame = ReportFrame {
        question: "Is it *so*?".to_owned(),
        partial: lacking.0.map(str::to_owned),
        missing: lacking.1.iter().map(|text| (*text).to_owned()).collect(),
        figures,
        generated_at: AT.to_owned(),
        made_by: "openai:gpt_x".to_owned(),
        run: "01a2".to_owned(),
    };
    Report::of(check(&text, &library), frame)
}

#[test]
fn a_report_in_markdown_says_everything() {
    let report = report(
        "# It is\n\nIt is so here [{0}]. Or is it not there? It may be [{1}].",
        (Some("The budget ran out."), &["The cost."]),
    );
    let hash = library()[0].versions[0]
        .sha256
        .get(..12)
        .unwrap()
        .to_owned();
    let expected = format!(
        "# It is\n\n> **This report is partial.** The budget ran out.\n\nQuestion: Is it \\*so\\*?\n\n\
         It is so here [1]. Or is it not there? It may be [2].\n\n## What is missing\n\n- The cost.\n\n## Sources\n\n\
         - \\[1\\] On \\<b\\>A\\</b\\> \\[x\\](y). <https://example.org/a?b=1&c=(2)> Read {AT}, SHA-256 of the text {hash}….\n\
         - \\[2\\] (no title). `local:b.md` Read {AT}, SHA-256 of the text {hash}….\n\n## What was checked\n\n{CHECKED}\n\n\
         - Claims: 2; with a source: 2; without one, marked `[uncited]`: 0.\n\
         - Quotations looked up: 0; not found and unquoted: 0.\n\
         - Citations of what was not read, taken out: 0.\n\
         - Searches: 7; without a reflection after it: 1; sources read: 2.\n\
         - Rounds: 3; researchers: 4; failed: 1; tokens: 12345; cost: $1.020300.\n\nMade at {AT} by openai:gpt\\_x, in run 01a2.\n"
    );
    assert_eq!(report.to_markdown(), expected);
}

#[test]
fn a_report_without_a_title_has_the_question_and_one_without_sources_says_so() {
    let report = report(
        "It is so here.\n\n## What is missing\n\nA lot.",
        (None, &["More."]),
    );
    let text = report.to_markdown();
    assert!(text.starts_with("# Is it \\*so\\*?\n\nIt is so here. [uncited]\n\n## What is missing\n\nA lot.\n\n## What else is missing\n\n- More.\n\n## Sources\n\nNone is cited.\n"), "{text}");
    assert!(!text.contains("partial"), "{text}");
}

#[test]
fn what_is_missing_smuggles_no_citation_in() {
    let report = report(
        "It is so here [{0}].",
        (
            Some("See https://made.up/x [1]."),
            &[
                "Ask [this](https://made.up) [^2] src-12345678.",
                "https://made.up",
            ],
        ),
    );
    assert_eq!(report.partial.as_deref(), Some("See."));
    assert_eq!(report.missing, ["Ask this."]);
}

#[test]
fn a_report_comes_back_from_json() {
    let report = report("It is so here [{0}], see https://made.up.", (None, &[]));
    assert_eq!(
        serde_json::from_str::<Report>(&report.to_json()).unwrap(),
        report
    );
    assert_eq!(report.figures.citations.fabricated_refused, 1);
}

#[test]
fn numbers_on_a_page_lead_to_the_sources_and_those_lead_outside() {
    let page = report("It is so here [{0}][{1}]. It is well here.\n\n| a | b |\n|---|---|\n| it is so | [{0}] |\n\n`x[1]`", (Some("Cut & 3 < 4."), &["A 5 > 4 thing."])).to_html();
    for part in [
        "<p class=\"partial\"><strong>This report is partial.</strong> Cut &amp; 3 &lt; 4.</p>",
        "<p>It is so here <a href=\"#source-1\">[1]</a><a href=\"#source-2\">[2]</a>. It is well here. <span class=\"note\">[uncited]</span></p>",
        "<td><a href=\"#source-1\">[1]</a></td>",
        "<code>x[1]</code>",
        "<li>A 5 &gt; 4 thing.</li>",
        "<li id=\"source-1\">On &lt;b&gt;A&lt;/b&gt; [x](y)<br><a href=\"https://example.org/a?b=1&amp;c=(2)\" rel=\"noopener noreferrer\">",
        "<li id=\"source-2\">(no title)<br><code>local:b.md</code><br>",
        "default-src 'none'",
        "prefers-color-scheme:dark",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
}

#[test]
fn a_page_has_no_link_no_element_and_no_script_of_the_writers() {
    let hostile = Report {
        title: "<script>1</script>".into(),
        question: "</title><script>2</script>".into(),
        partial: Some("<script>3</script>".into()),
        body: "<script>4</script>\n\n<div onclick=x>five</div> [six](javascript:6) ![seven](https://made.up/7.png) \
               <https://made.up/8> [9][a]\n\n[a]: https://made.up/9\n\n```\"><script>\n<b>\n```\n"
            .into(),
        missing: vec!["<img src=x onerror=1>".into()],
        references: vec![Reference {
            n: 1,
            id: "src-1".into(),
            url: "javascript:alert(1)".into(),
            title: "\"><script>".into(),
            fetched_at: "<i>".into(),
            sha256: "<u>".into(),
        }],
        generated_at: "<s>".into(),
        ..Report::default()
    };
    let page = hostile.to_html();
    for part in [
        "<script",
        "<div",
        "<img",
        "<i>",
        "<u>",
        "<s>",
        "<b>",
        "href=\"http",
        "href=\"java",
        "src=\"",
    ] {
        assert!(!page.contains(part), "{part}\n{page}");
    }
    assert!(
        page.contains("six") && page.contains("seven") && page.contains("five"),
        "{page}"
    );
}
