//! A report: a checked text with its sources, what is missing, and what it took; as Markdown, as a page, as JSON.
//!
//! The research agent makes one of the writer's text with [`Report::of`], whatever the run's end was. Plain data: it
//! is kept in the run's state and printed by the command line. Nothing here fetches, and a page has no script.

mod html;
mod markdown;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::citation::{Checked, CitationFigures, Reference, Refused, without_citations};

/// The most characters of a title.
const MAX_TITLE: usize = 200;

/// What code has looked at and what not; stands in every report.
const CHECKED: &str = "Code has checked that every numbered source was read in this run and that every quotation of four \
    words or more stands in a source cited with it; it has not checked that a source means what it is cited for, and a \
    true quotation may still be misread.";

/// What a research run brings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// What was asked.
    pub question: String,
    /// The text's own title, or else the question.
    pub title: String,
    /// Why the report is not whole, if it is not.
    pub partial: Option<String>,
    /// The text, Markdown, with numbers for citations; without its title.
    pub body: String,
    /// The cited sources by their numbers.
    pub references: Vec<Reference>,
    /// What was not found out, one thing each.
    pub missing: Vec<String>,
    /// What did not pass the check of citations.
    pub refused: Vec<Refused>,
    /// What was counted.
    pub figures: ReportFigures,
    /// When the report was made, as RFC 3339 in UTC.
    pub generated_at: String,
    /// Who wrote it: a model's name, or that rules did; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub made_by: String,
    /// The id of its run; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
}

/// What a run and the check of its text counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReportFigures {
    /// Claims, quotations and refusals; [`Report::of`] takes them from the check.
    #[serde(flatten)]
    pub citations: CitationFigures,
    /// Searches that were made.
    pub searches: u64,
    /// Searches after which the researcher did not reflect.
    pub searches_without_reflection: u64,
    /// Sources that were read, cited or not.
    pub sources: u64,
    /// Rounds of the supervisor.
    pub rounds: u64,
    /// Researchers that were sent.
    pub researchers: u64,
    /// Those of them that failed.
    pub failed_researchers: u64,
    /// Tokens that the models used.
    pub tokens: u64,
    /// What they cost, in millionths of a US dollar; nothing if no price is known.
    pub micro_dollars: Option<u64>,
}

/// What a run knows of its report besides the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportFrame {
    /// What was asked.
    pub question: String,
    /// Why the report is not whole, if it is not.
    pub partial: Option<String>,
    /// What was not found out, one thing each.
    pub missing: Vec<String>,
    /// What the run counted; what the check of the text counted is put in.
    pub figures: ReportFigures,
    /// When the report is made, as RFC 3339 in UTC.
    pub generated_at: String,
    /// Who wrote it.
    pub made_by: String,
    /// The id of its run.
    pub run: String,
}

impl Report {
    /// A report of a checked text. Citations and addresses in `partial` and `missing` go: those are not checked.
    pub fn of(checked: Checked, frame: ReportFrame) -> Report {
        let (title, body) = titled(&checked.body, &frame.question);
        let missing = frame.missing.iter().map(|text| without_citations(text));
        Report {
            title,
            partial: frame.partial.map(|why| without_citations(&why)),
            body,
            references: checked.references,
            missing: missing.filter(|text| !text.is_empty()).collect(),
            refused: checked.refused,
            figures: ReportFigures {
                citations: checked.figures,
                ..frame.figures
            },
            question: frame.question,
            generated_at: frame.generated_at,
            made_by: frame.made_by,
            run: frame.run,
        }
    }

    /// When it was made, by whom and in which run, as a sentence.
    fn origin(&self) -> String {
        let by = match &*self.made_by {
            "" => String::new(),
            by => format!(" by {by}"),
        };
        let run = match &*self.run {
            "" => String::new(),
            run => format!(", in run {run}"),
        };
        format!("Made at {}{by}{run}.", self.generated_at)
    }

    /// The report as Markdown, with its sources and its figures at the end.
    pub fn to_markdown(&self) -> String {
        markdown::whole(self)
    }

    /// The report as a page that needs nothing but itself: no script, no picture, no font, light and dark.
    pub fn to_html(&self) -> String {
        html::page(self)
    }

    /// The report as JSON, indented.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists: there is nothing in it that JSON cannot say.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// The first heading of a text, if it begins with one of the first level, and the rest.
fn titled(body: &str, question: &str) -> (String, String) {
    let first = body.trim_start();
    let (line, rest) = first.split_once('\n').unwrap_or((first, ""));
    let (title, body) = match line.strip_prefix("# ") {
        Some(title) => (title.trim(), rest.trim_matches('\n')),
        None => (question.trim(), body),
    };
    let title = title.trim_matches(['#', '*', ' ']);
    (
        paraph_gateway::Shown::field(title, MAX_TITLE).text,
        body.to_owned(),
    )
}
