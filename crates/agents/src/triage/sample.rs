//! The corpus of a rehearsal: a handful of issues, searched by words, with a floor that is fitted when it is made. It
//! needs neither a store nor weights, and nothing in it is a constant that was measured elsewhere.
//!
//! A real corpus is the crate `paraph-retrieval`'s business; this one is too small for its calibration.

use futures::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};

use super::doors::{Retrieved, Snippet, SnippetQuery, Snippets};
use crate::sample_documents;

/// An issue of a rehearsal's corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleIssue {
    /// `owner/repo`.
    pub repo: String,
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its text, with what maintainers wrote when it was closed.
    pub text: String,
    /// Its address.
    pub url: String,
}

/// The corpus of a rehearsal.
#[derive(Clone, Debug)]
pub struct SampleSnippets {
    issues: Vec<Indexed>,
    /// In how many issues each word stands.
    common: BTreeMap<String, usize>,
    floor: f64,
    /// On how many queries about something else the floor was fitted.
    foreign: usize,
}

/// An issue with its words.
#[derive(Clone, Debug)]
struct Indexed {
    issue: SampleIssue,
    title: BTreeSet<String>,
    text: BTreeSet<String>,
}

/// What a word of the text counts beside one of the title.
const IN_TEXT: f64 = 0.6;

/// How many telling words a query about something else has: as few as a short issue.
const FOREIGN_WORDS: usize = 4;

impl SampleSnippets {
    /// Of these issues. Its floor is what none of the sentences of texts about something else reaches.
    pub fn new(issues: Vec<SampleIssue>) -> SampleSnippets {
        let indexed = |issue: SampleIssue| Indexed {
            title: words(&issue.title),
            text: words(&issue.text),
            issue,
        };
        let issues: Vec<_> = issues.into_iter().map(indexed).collect();
        let mut common = BTreeMap::new();
        for word in issues.iter().flat_map(|one| one.title.union(&one.text)) {
            *common.entry(word.clone()).or_insert(0) += 1;
        }
        let mut made = SampleSnippets {
            issues,
            common,
            floor: 0.0,
            foreign: 0,
        };
        for query in foreign_queries() {
            let best = made.ranked(&query).first().map_or(0.0, |(score, _)| *score);
            made.floor = made.floor.max(best);
            made.foreign += 1;
        }
        made
    }

    /// The floor, and on how many queries about something else it was fitted: none of them passes it.
    pub fn floor(&self) -> (f64, usize) {
        (self.floor, self.foreign)
    }

    /// How rare a word is here: a word of no issue is the rarest.
    fn weight(&self, word: &str) -> f64 {
        let all = self.issues.len() as f64;
        let having = self.common.get(word).copied().unwrap_or(0) as f64;
        (1.0 + all / (1.0 + having)).ln()
    }

    /// The issues with their scores, the best first: the share of the query's weight whose words stand in the
    /// issue, those of its title counting more.
    fn ranked(&self, query: &str) -> Vec<(f64, &SampleIssue)> {
        let query = words(query);
        let whole: f64 = query.iter().map(|word| self.weight(word)).sum();
        let counts = |one: &Indexed, word: &String| match (
            one.title.contains(word),
            one.text.contains(word),
        ) {
            (true, _) => self.weight(word),
            (false, true) => self.weight(word) * IN_TEXT,
            (false, false) => 0.0,
        };
        let score = |one: &Indexed| -> f64 {
            let shared: f64 = query.iter().map(|word| counts(one, word)).sum();
            if whole > 0.0 { shared / whole } else { 0.0 }
        };
        let mut all: Vec<(f64, &SampleIssue)> = self
            .issues
            .iter()
            .map(|one| (score(one), &one.issue))
            .collect();
        all.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.number.cmp(&other.number)));
        all
    }
}

impl Snippets for SampleSnippets {
    fn search<'a>(&'a self, query: &'a SnippetQuery) -> BoxFuture<'a, Result<Retrieved, String>> {
        let count = usize::try_from(query.count).unwrap_or(usize::MAX);
        let target = &query.target;
        let others = self.ranked(&query.text).into_iter();
        let others = others
            .filter(|(score, issue)| *score > 0.0 && !target.is_itself(&issue.repo, issue.number));
        let snippet = |(score, issue): (f64, &SampleIssue)| Snippet {
            id: format!("{}-issue-{}#0", issue.repo.replace('/', "-"), issue.number),
            repo: issue.repo.clone(),
            number: issue.number,
            title: issue.title.clone(),
            url: issue.url.clone(),
            text: issue.text.clone(),
            score,
            above_floor: score > self.floor,
        };
        let found = Retrieved {
            snippets: others.take(count).map(snippet).collect(),
            no_floor: self
                .issues
                .is_empty()
                .then(|| "the corpus is empty".to_owned()),
        };
        Box::pin(std::future::ready(Ok(found)))
    }
}

/// Queries about something else: a few words at a time out of the documents of the research rehearsal.
fn foreign_queries() -> Vec<String> {
    let mut all = Vec::new();
    for (_, text) in sample_documents() {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let telling: Vec<&str> = words.into_iter().filter(|word| tells(word)).collect();
        let queries = telling
            .chunks(FOREIGN_WORDS)
            .filter(|words| words.len() == FOREIGN_WORDS);
        all.extend(queries.map(|words| words.join(" ")));
    }
    all
}

/// Words that say nothing of what a text is about, and those of templates.
const EMPTY: [&str; 40] = [
    "that",
    "this",
    "with",
    "from",
    "have",
    "what",
    "when",
    "then",
    "than",
    "there",
    "their",
    "they",
    "them",
    "were",
    "been",
    "will",
    "would",
    "could",
    "should",
    "about",
    "which",
    "while",
    "where",
    "into",
    "only",
    "also",
    "some",
    "does",
    "happened",
    "version",
    "read",
    "manual",
    "response",
    "description",
    "expected",
    "actual",
    "steps",
    "reproduce",
    "environment",
    "information",
];

/// The words of a text, by their beginnings, so that `crash`, `crashes` and `crashed` are one.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let all = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
    all.filter(|word| tells(word))
        .map(|word| word.chars().take(5).collect())
        .collect()
}

/// Whether a word in small letters says what a text is about.
fn tells(word: &str) -> bool {
    word.chars().count() >= 4 && !EMPTY.contains(&word)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]

    use super::super::settings::TriageTarget;
    use super::*;

    fn corpus() -> SampleSnippets {
        let issue = |number, title: &str, text: &str| SampleIssue {
            repo: "harbor/ferry".into(),
            number,
            title: title.into(),
            text: text.into(),
            url: format!("https://h/{number}"),
        };
        SampleSnippets::new(vec![
            issue(
                1,
                "Crash: crashes at launch",
                "It crashes. The log showed an empty station file.",
            ),
            issue(
                2,
                "Panic on start when the station file is empty",
                "The reader took the first station.",
            ),
            issue(
                3,
                "Wrong unit in the export",
                "The header says metres and the values are feet.",
            ),
        ])
    }

    async fn found(text: &str, number: u64) -> Retrieved {
        let query = SnippetQuery {
            text: text.into(),
            count: 2,
            target: TriageTarget {
                host: "h".into(),
                owner: "Harbor".into(),
                repo: "Ferry".into(),
                number,
            },
        };
        corpus().search(&query).await.unwrap()
    }

    #[tokio::test]
    async fn issues_about_the_same_are_above_the_floor_and_others_are_not() {
        let hits = found("Crash on launch\n\nIt crashes.", 9).await;
        assert_eq!(hits.snippets[0].number, 1);
        assert!(hits.snippets[0].above_floor, "{hits:?}");
        let hits = found("The colour of the flag is dull, please paint the header", 9).await;
        assert!(hits.snippets.iter().all(|hit| !hit.above_floor), "{hits:?}");
        let hits = found("Crash on launch\n\nIt crashes.", 1).await;
        assert!(hits.snippets.iter().all(|hit| hit.number != 1), "{hits:?}");
    }

    #[test]
    fn no_text_about_something_else_passes_the_floor() {
        let corpus = corpus();
        let (floor, queries) = corpus.floor();
        assert!(
            queries >= 150 && floor > 0.0 && floor < 1.0,
            "{floor} {queries}"
        );
        for query in foreign_queries() {
            assert!(corpus.ranked(&query)[0].0 <= floor);
        }
    }
}
