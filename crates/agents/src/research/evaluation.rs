//! The evaluation of the research agent: questions about the sample documents, and what a report of each is worth.
//!
//! The command line runs the agent on [`research_questions`], gives each report to [`score_report`] and adds the
//! scores up with [`ScoreTotal::of`]. Everything here is counted by code from the report's text, so the same report
//! always has the same score. What a model thinks of a report is a [`Judgement`], which is kept apart.
//! Pure: no model, no tool and no clock.
//!
//! # Layout
//! - `questions`: the questions with their gold facts.
//! - `prose`: sentences of a report with their citations, and texts made comparable.
//! - `judgement`: how a model is asked for its opinion of a report, and how that is read.

mod judgement;
mod prose;
mod questions;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use judgement::{Judgement, JudgementKind};
use prose::{Gist, Sentence, comparable, holds, sentences};
pub use questions::research_questions;

/// What an address of a sample document begins with.
const SCHEME: &str = "local:";

/// What makes a question hard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// One document holds the answer.
    Single,
    /// The answer has to be put together from several documents.
    Several,
    /// Documents contradict each other, and the answer has to say so.
    Contradiction,
    /// No document holds the answer, and the report has to say so.
    Unanswerable,
}

/// Something that a good report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GoldFact {
    /// What it is, in a few words.
    pub name: String,
    /// Of these one has to stand in the report. Case, marks of Markdown and the way of writing `%` do not matter.
    pub phrases: Vec<String>,
    /// The document that holds it; none where the right report says that nothing was found.
    pub path: Option<String>,
}

/// A question of the evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResearchQuestion {
    /// A short name, unique among the questions.
    pub id: String,
    /// What makes it hard.
    pub kind: QuestionKind,
    /// What is asked.
    pub question: String,
    /// What a good report says.
    pub facts: Vec<GoldFact>,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// How long it ran, in seconds.
    pub seconds: f64,
    /// Tokens that its models used.
    pub tokens: u64,
    /// What they cost, in millionths of a US dollar; nothing if no price is known.
    pub micro_dollars: Option<u64>,
}

/// What a report is worth, as counted by code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportScore {
    /// The question's id.
    pub id: String,
    /// Gold facts of the question.
    pub facts: usize,
    /// Those of them that stand in the report.
    pub covered: usize,
    /// The names of the others.
    pub missed: Vec<String>,
    /// Citations in the text: a sentence that cites two sources has two.
    pub citations: usize,
    /// Those whose source holds what their sentence says, as far as words and numbers tell.
    pub precise: usize,
    /// Documents that hold gold facts.
    pub gold_documents: usize,
    /// Those of them that the text cites.
    pub recalled: usize,
    /// References to what is no document, and numbers in the text without a reference.
    pub fabricated: usize,
    /// Sentences that the check of citations has marked as `[uncited]`.
    pub uncited: usize,
    /// What the run took.
    #[serde(flatten)]
    pub run: RunFigures,
}

/// What a report cites and what could be cited.
#[derive(Clone, Copy, Debug)]
pub struct Cited<'a> {
    /// The report's references: number and address.
    pub references: &'a [(u64, String)],
    /// All documents: path and text. The address of one is `local:` and its path.
    pub documents: &'a [(&'a str, &'a str)],
}

/// Scores a report in Markdown as `Report::to_markdown` gives it. What stands from the heading "Sources" or "References"
/// on is not looked at.
///
/// A fact is covered if one of its phrases stands in the text, not as a part of a longer word or number. A citation is
/// precise if its document has at least half of the words that carry the sentence's meaning (four letters or more, no
/// function words, compared by their first six letters), and if every number of the sentence stands in a document that
/// the sentence cites. This finds citations of a wrong document and wrong figures; it does not find a sentence that
/// turns its source around in the source's own words.
///
/// ```
/// use paraph_agents::{Cited, RunFigures, research_questions, sample_documents, score_report};
///
/// let all = research_questions();
/// let question = all.iter().find(|question| question.id == "overlap").unwrap();
/// let report = "# Overlap\n\nAn overlap of 40 words raised the share of questions with the right page from 87 to 89 \
///     percent [1].\n\n## Sources\n\n- [1] Cutting documents into passages";
/// let references = [(1, "local:chunking.md".to_owned())];
/// let cited = Cited { references: &references, documents: sample_documents() };
/// let score = score_report(question, report, cited, RunFigures::default());
/// assert_eq!((score.facts, score.covered, score.citations, score.precise, score.fabricated), (2, 1, 1, 1, 0));
/// ```
pub fn score_report(
    question: &ResearchQuestion,
    report: &str,
    cited: Cited<'_>,
    run: RunFigures,
) -> ReportScore {
    let text = prose::without_sources(report);
    let said = comparable(text);
    let is_covered = |fact: &&GoldFact| fact.phrases.iter().any(|phrase| holds(&said, phrase));
    let (covered, missed): (Vec<_>, Vec<_>) = question.facts.iter().partition(is_covered);
    let sentences = sentences(text);
    let mut shelf = Shelf::new(cited);
    let precise = sentences.iter().map(|sentence| shelf.precise(sentence));
    let precise = precise.sum();
    let numbers: BTreeSet<u64> = sentences.iter().flat_map(|s| s.cites.clone()).collect();
    let read: BTreeSet<&str> = numbers.iter().filter_map(|n| shelf.path(*n)).collect();
    let gold: BTreeSet<&str> = question
        .facts
        .iter()
        .filter_map(|f| f.path.as_deref())
        .collect();
    ReportScore {
        id: question.id.clone(),
        facts: question.facts.len(),
        covered: covered.len(),
        missed: missed.into_iter().map(|fact| fact.name.clone()).collect(),
        citations: sentences.iter().map(|sentence| sentence.cites.len()).sum(),
        precise,
        gold_documents: gold.len(),
        recalled: gold.intersection(&read).count(),
        fabricated: shelf.fabricated(&numbers),
        uncited: sentences.iter().filter(|sentence| sentence.uncited).count(),
        run,
    }
}

/// The documents, and which number stands for which of them.
struct Shelf<'a> {
    cited: Cited<'a>,
    by_number: BTreeMap<u64, &'a str>,
    gists: BTreeMap<&'a str, Gist>,
}

impl<'a> Shelf<'a> {
    fn new(cited: Cited<'a>) -> Shelf<'a> {
        let path_of = |url: &str| {
            let path = url.strip_prefix(SCHEME)?;
            let known = cited.documents.iter().find(|(own, _)| *own == path);
            known.map(|(own, _)| *own)
        };
        let numbered = cited.references.iter();
        let by_number = numbered
            .filter_map(|(n, url)| Some((*n, path_of(url)?)))
            .collect();
        Shelf {
            cited,
            by_number,
            gists: BTreeMap::new(),
        }
    }

    fn path(&self, n: u64) -> Option<&'a str> {
        self.by_number.get(&n).copied()
    }

    fn gist(&mut self, path: &'a str) -> &Gist {
        let documents = self.cited.documents;
        self.gists.entry(path).or_insert_with(|| {
            let known = documents.iter().find(|(own, _)| *own == path);
            Gist::of_document(known.map_or("", |(_, text)| text))
        })
    }

    /// How many of a sentence's citations are precise.
    fn precise(&mut self, sentence: &Sentence) -> usize {
        let own = Gist::of_sentence(&sentence.text);
        let paths: Vec<&str> = sentence
            .cites
            .iter()
            .filter_map(|n| self.path(*n))
            .collect();
        let mut numbers = BTreeSet::new();
        for path in &paths {
            numbers.extend(self.gist(path).numbers.iter().cloned());
        }
        if own.is_empty() || !own.numbers.is_subset(&numbers) {
            return 0;
        }
        let carries = |path: &&&'a str| {
            let shared = self.gist(path).words.intersection(&own.words).count();
            2 * shared >= own.words.len()
        };
        paths.iter().filter(carries).count()
    }

    fn fabricated(&self, numbers: &BTreeSet<u64>) -> usize {
        let listed: BTreeSet<u64> = self.cited.references.iter().map(|(n, _)| *n).collect();
        let all: BTreeSet<u64> = listed.union(numbers).copied().collect();
        all.into_iter().filter(|n| self.path(*n).is_none()).count()
    }
}

/// The scores of several reports together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreTotal {
    /// How many reports.
    pub reports: usize,
    /// Gold facts.
    pub facts: usize,
    /// Those that stand in the reports.
    pub covered: usize,
    /// Citations.
    pub citations: usize,
    /// Those that are precise.
    pub precise: usize,
    /// Documents that hold gold facts, counted for each question.
    pub gold_documents: usize,
    /// Those that were cited.
    pub recalled: usize,
    /// Citations of what is no document.
    pub fabricated: usize,
    /// Sentences without a citation that should have one.
    pub uncited: usize,
    /// `covered` of `facts`; nothing if there is none.
    pub coverage: Option<f64>,
    /// `precise` of `citations`; nothing if there is none.
    pub precision: Option<f64>,
    /// `recalled` of `gold_documents`; nothing if there is none.
    pub recall: Option<f64>,
    /// What all runs took. The cost is unknown if that of one run is.
    #[serde(flatten)]
    pub run: RunFigures,
}

impl ScoreTotal {
    /// Adds scores up.
    pub fn of(scores: &[ReportScore]) -> ScoreTotal {
        let sum = |figure: fn(&ReportScore) -> usize| scores.iter().map(figure).sum::<usize>();
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        let (facts, covered) = (sum(|score| score.facts), sum(|score| score.covered));
        let (citations, precise) = (sum(|score| score.citations), sum(|score| score.precise));
        let gold_documents = sum(|score| score.gold_documents);
        let recalled = sum(|score| score.recalled);
        ScoreTotal {
            reports: scores.len(),
            facts,
            covered,
            citations,
            precise,
            gold_documents,
            recalled,
            fabricated: sum(|score| score.fabricated),
            uncited: sum(|score| score.uncited),
            coverage: share(covered, facts),
            precision: share(precise, citations),
            recall: share(recalled, gold_documents),
            run: RunFigures {
                seconds: scores.iter().map(|score| score.run.seconds).sum(),
                tokens: scores.iter().map(|score| score.run.tokens).sum(),
                micro_dollars: scores.iter().map(|score| score.run.micro_dollars).sum(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
