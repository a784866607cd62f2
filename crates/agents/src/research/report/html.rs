//! A report as a page. Called by `Report::to_html`.
//!
//! What the writer wrote is Markdown of which only structure is taken: its HTML is shown as text, its links and
//! pictures are not made. Numbers lead to the list of sources, and that list is all that leads outside.

use pulldown_cmark::{
    CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html::push_html,
};
use std::fmt::Write;

use super::markdown::{figures, linkable, missing_title, read_at};
use super::{CHECKED, Report};
use crate::research::citation::{NO_SUCH_WORK, NOT_FOUND, Reference, UNCITED};

const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#fff;--text:#1c1c1e;--quiet:#5c5c63;--line:#d8d8dd;--link:#0b57a4;--note:#8a4b00;\
--notice:#fff4e0}\
@media(prefers-color-scheme:dark){:root{--ground:#17171a;--text:#e8e8ea;--quiet:#a2a2aa;--line:#3a3a40;--link:#8ab8f0;\
--note:#f0b35e;--notice:#33280f}}\
body{margin:0 auto;padding:2rem 1.2rem 4rem;max-width:44rem;background:var(--ground);color:var(--text);\
font:1rem/1.6 system-ui,sans-serif;overflow-wrap:break-word}\
h1,h2,h3{line-height:1.25}h2{margin-top:2.2rem}a{color:var(--link)}\
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{border:1px solid var(--line);padding:.3rem .6rem;\
text-align:left}\
blockquote{margin-left:0;padding-left:1rem;border-left:3px solid var(--line)}\
pre{overflow-x:auto;padding:.8rem;border:1px solid var(--line)}\
.partial{padding:.8rem 1rem;background:var(--notice);border-left:4px solid var(--note)}\
.note{color:var(--note);font-size:.9em}.quiet{color:var(--quiet);font-size:.9em}li:target{background:var(--notice)}";

/// Text in it is nobody's code, and no server is asked for anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

pub(super) fn page(report: &Report) -> String {
    let title = escaped(&report.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    if let Some(why) = &report.partial {
        let _ = writeln!(
            out,
            "<p class=\"partial\"><strong>This report is partial.</strong> {}</p>",
            escaped(why)
        );
    }
    if report.question.trim() != report.title {
        let _ = writeln!(
            out,
            "<p class=\"quiet\">Question: {}</p>",
            escaped(report.question.trim())
        );
    }
    let _ = writeln!(out, "<main>\n{}</main>", body(report));
    if !report.missing.is_empty() {
        let _ = write!(out, "<h2>{}</h2>\n<ul>\n", missing_title(report));
        for text in &report.missing {
            let _ = writeln!(out, "<li>{}</li>", escaped(text));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("<h2>Sources</h2>\n");
    match report.references.is_empty() {
        true => out.push_str("<p>None is cited.</p>\n"),
        false => sources(&report.references, &mut out),
    }
    let _ = write!(
        out,
        "<h2>What was checked</h2>\n<p>{CHECKED}</p>\n<ul class=\"quiet\">\n"
    );
    for line in figures(&report.figures) {
        let _ = writeln!(out, "<li>{}</li>", escaped(&line.replace('`', "")));
    }
    let _ = write!(
        out,
        "</ul>\n<p class=\"quiet\">{}</p>\n</body>\n</html>\n",
        escaped(&report.origin())
    );
    out
}

fn sources(references: &[Reference], out: &mut String) {
    out.push_str("<ol>\n");
    for reference in references {
        let Reference { n, url, title, .. } = reference;
        let title = if title.is_empty() {
            "(no title)".to_owned()
        } else {
            escaped(title)
        };
        let url = match linkable(url) {
            true => format!(
                "<a href=\"{0}\" rel=\"noopener noreferrer\">{0}</a>",
                escaped(url)
            ),
            false => format!("<code>{}</code>", escaped(url)),
        };
        let read = escaped(&read_at(reference));
        let _ = writeln!(
            out,
            "<li id=\"source-{n}\">{title}<br>{url}<br><span class=\"quiet\">{read}</span></li>"
        );
    }
    out.push_str("</ol>\n");
}

/// The writer's text: structure by the parser, everything else as text.
fn body(report: &Report) -> String {
    let events = Parser::new_ext(
        &report.body,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    );
    let plain = events.filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock) => None,
        Event::End(TagEnd::Link | TagEnd::Image | TagEnd::HtmlBlock) => None,
        event => Some(event),
    });
    let mut in_code = false;
    let count = report.references.len();
    let linked = TextMergeStream::new(plain).map(|event| match event {
        Event::Start(Tag::CodeBlock(kind)) => {
            in_code = true;
            Event::Start(Tag::CodeBlock(kind))
        }
        Event::End(TagEnd::CodeBlock) => {
            in_code = false;
            Event::End(TagEnd::CodeBlock)
        }
        Event::Text(text) if !in_code => Event::InlineHtml(CowStr::from(linked(&text, count))),
        event => event,
    });
    let mut out = String::new();
    push_html(&mut out, linked);
    out
}

/// A text as HTML, with its numbers as links and our notes set apart.
fn linked(text: &str, count: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        out.push_str(&escaped(rest.get(..at).unwrap_or_default()));
        rest = rest.get(at..).unwrap_or_default();
        let note = [UNCITED, NOT_FOUND, NO_SUCH_WORK]
            .into_iter()
            .find(|note| rest.starts_with(note));
        let number = rest
            .get(1..)
            .and_then(|rest| rest.split_once(']'))
            .map(|(inside, _)| inside);
        let number =
            number.filter(|digits| digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit()));
        let cited = number
            .and_then(|digits| digits.parse::<usize>().ok())
            .filter(|n| (1..=count).contains(n));
        let length = match (note, cited) {
            (Some(note), _) => {
                let _ = write!(out, "<span class=\"note\">{note}</span>");
                note.len()
            }
            (None, Some(n)) => {
                let _ = write!(out, "<a href=\"#source-{n}\">[{n}]</a>");
                number.map_or(1, |digits| digits.len() + 2)
            }
            (None, None) => {
                out.push('[');
                1
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out + &escaped(rest)
}

/// A text that means nothing to HTML, in an element or an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
