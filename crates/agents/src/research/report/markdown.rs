//! A report as Markdown. Called by `Report::to_markdown`, and for its parts by `html`.

use std::fmt::Write;

use super::{CHECKED, Report, ReportFigures};
use crate::research::citation::{CitationFigures, Reference};

/// How many digits of a text's hash a list shows.
const DIGITS: usize = 12;

pub(super) fn whole(report: &Report) -> String {
    let mut out = format!("# {}\n\n", escaped(&report.title));
    if let Some(why) = &report.partial {
        let _ = write!(out, "> **This report is partial.** {}\n\n", escaped(why));
    }
    if report.question.trim() != report.title {
        let _ = write!(out, "Question: {}\n\n", escaped(report.question.trim()));
    }
    out.push_str(report.body.trim_matches('\n'));
    out.push_str("\n\n");
    if !report.missing.is_empty() {
        let _ = write!(out, "## {}\n\n", missing_title(report));
        for text in &report.missing {
            let _ = writeln!(out, "- {}", escaped(text));
        }
        out.push('\n');
    }
    out.push_str("## Sources\n\n");
    if report.references.is_empty() {
        out.push_str("None is cited.\n");
    }
    for reference in &report.references {
        let _ = writeln!(out, "{}", entry(reference));
    }
    let _ = write!(out, "\n## What was checked\n\n{CHECKED}\n\n");
    for line in figures(&report.figures) {
        let _ = writeln!(out, "- {line}");
    }
    let _ = writeln!(out, "\n{}", escaped(&report.origin()));
    out
}

/// The writer may have a section of its own about it.
pub(super) fn missing_title(report: &Report) -> &'static str {
    let has_one =
        |line: &str| line.starts_with('#') && line.to_lowercase().ends_with("what is missing");
    match report.body.lines().any(has_one) {
        true => "What else is missing",
        false => "What is missing",
    }
}

/// Never a definition of a link: nothing in the text becomes one by it.
fn entry(reference: &Reference) -> String {
    let Reference { n, url, title, .. } = reference;
    let title = if title.is_empty() {
        "(no title)".to_owned()
    } else {
        escaped(title)
    };
    let address = match linkable(url) {
        true => format!("<{url}>"),
        false => format!("`{}`", url.replace('`', "%60")),
    };
    format!("- \\[{n}\\] {title}. {address} {}", read_at(reference))
}

/// When a source was read, and the beginning of its hash.
pub(super) fn read_at(reference: &Reference) -> String {
    let digits = reference.sha256.get(..DIGITS).unwrap_or(&reference.sha256);
    format!(
        "Read {}, SHA-256 of the text {digits}….",
        reference.fetched_at
    )
}

/// Whether an address leads to the web, and can be written between angle brackets and in an attribute.
pub(super) fn linkable(url: &str) -> bool {
    let web = url.starts_with("https://") || url.starts_with("http://");
    web && !url.contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"'`\\".contains(c))
}

/// What was counted, a line each.
pub(super) fn figures(figures: &ReportFigures) -> Vec<String> {
    let CitationFigures {
        claims,
        cited,
        uncited,
        quotes,
        quotes_refused,
        fabricated_refused,
    } = figures.citations;
    let cost = figures
        .micro_dollars
        .map_or("cost unknown".to_owned(), dollars);
    vec![
        format!(
            "Claims: {claims}; with a source: {cited}; without one, marked `[uncited]`: {uncited}."
        ),
        format!("Quotations looked up: {quotes}; not found and unquoted: {quotes_refused}."),
        format!("Citations of what was not read, taken out: {fabricated_refused}."),
        format!(
            "Searches: {}; without a reflection after it: {}; sources read: {}.",
            figures.searches, figures.searches_without_reflection, figures.sources
        ),
        format!(
            "Rounds: {}; researchers: {}; failed: {}; tokens: {}; {cost}.",
            figures.rounds, figures.researchers, figures.failed_researchers, figures.tokens
        ),
    ]
}

fn dollars(micro: u64) -> String {
    format!("cost: ${}.{:06}", micro / 1_000_000, micro % 1_000_000)
}

/// A text that means nothing to Markdown, on one line.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
