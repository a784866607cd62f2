//! The queries that floors are fitted on: the corpus's own issues with the duplicates that people named, and foreign ones.

use std::collections::BTreeMap;

use super::Labelled;
use crate::chunk::embedded;
use crate::corpus::MAX_BATCH;
use crate::document::{Document, IssueRef};
use crate::error::Error;
use crate::hit::Query;
use crate::retriever::Retriever;

/// The queries of a calibration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// Issues of the corpus, with what is known to be the same.
    pub own: Vec<Labelled>,
    /// Queries about something that the corpus has nothing about.
    pub foreign: Vec<Labelled>,
    /// Where they came from, for whoever reads the figures.
    pub notes: Vec<String>,
}

impl Pools {
    /// Pools of at most `most` queries each. Pairs of duplicates are those that are given, and those that closing
    /// comments and labels of the corpus name. Foreign queries are those that are given; without any, and if the corpus
    /// has several repositories, issues of each are asked of all others.
    ///
    /// # Errors
    /// What the corpus answers.
    pub async fn of(
        retriever: &Retriever,
        pairs: &[(IssueRef, IssueRef)],
        foreign: &[String],
        most: usize,
    ) -> Result<Pools, Error> {
        let documents = all(retriever).await?;
        let named = documents
            .iter()
            .filter_map(|document| Some((document.id(), duplicate_of(document)?)));
        let mut clusters = Clusters::default();
        let (mut given, mut found) = (0, 0);
        for (one, other) in pairs {
            given += usize::from(clusters.join(one, other));
        }
        for (one, other) in named {
            found += usize::from(clusters.join(&one, &other));
        }
        let mut pools = Pools {
            own: clusters.queries(&documents, most),
            ..Pools::default()
        };
        pools.notes.push(format!(
            "{} of {} issues were asked; {given} pairs of duplicates were given, {found} more are named in closing \
             comments or labels, and not all duplicates are known",
            pools.own.len(),
            documents.len()
        ));
        pools.foreign = foreign
            .iter()
            .map(|text| foreign_query(Query::new(text.as_str())))
            .take(most)
            .collect();
        if pools.foreign.is_empty() {
            pools.foreign = held_out(&documents, most);
            let note = match pools.foreign.is_empty() {
                true => "no foreign queries were given, and one repository alone has none",
                false => {
                    "no foreign queries were given: issues of each repository were asked of the others, which is stricter \
                     where repositories are about the same"
                }
            };
            pools.notes.push(note.to_owned());
        }
        Ok(pools)
    }
}

fn foreign_query(query: Query) -> Labelled {
    Labelled {
        query,
        same: Vec::new(),
        cluster: 0,
    }
}

async fn all(retriever: &Retriever) -> Result<Vec<Document>, Error> {
    let mut documents: Vec<Document> = Vec::new();
    loop {
        let after = documents.last().map(Document::id);
        let page = retriever.corpus().page(after.as_ref(), MAX_BATCH).await?;
        if page.is_empty() {
            return Ok(documents);
        }
        documents.extend(page.into_iter().map(|kept| kept.document));
    }
}

/// Every so manieth, so that at most `most` are left.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.into_iter().step_by(step).collect()
}

/// Issues of each repository, asked of all others.
fn held_out(documents: &[Document], most: usize) -> Vec<Labelled> {
    let mut repos: BTreeMap<String, Vec<&Document>> = BTreeMap::new();
    for document in documents {
        repos.entry(document.id().repo).or_default().push(document);
    }
    if repos.len() < 2 {
        return Vec::new();
    }
    let each = most.div_ceil(repos.len());
    let mut queries = Vec::new();
    for (repo, own) in &repos {
        let others: Vec<String> = repos
            .keys()
            .filter(|other| *other != repo)
            .cloned()
            .collect();
        for document in spread(own.clone(), each) {
            let query = Query {
                repos: Some(others.clone()),
                ..Query::new(embedded(&document.title, &document.text()))
            };
            queries.push(foreign_query(query));
        }
    }
    queries
}

/// Issues that are the same, directly or over others.
#[derive(Default)]
struct Clusters {
    of: BTreeMap<IssueRef, u64>,
}

impl Clusters {
    /// Puts two issues together; says whether they were apart.
    fn join(&mut self, one: &IssueRef, other: &IssueRef) -> bool {
        if one == other {
            return false;
        }
        let next = self.of.len() as u64;
        let kept = *self.of.entry(one.clone()).or_insert(next);
        let gone = *self.of.entry(other.clone()).or_insert(next + 1);
        for cluster in self.of.values_mut() {
            if *cluster == gone {
                *cluster = kept;
            }
        }
        kept != gone
    }

    /// Every so manieth issue as a query; those of one cluster get one number, and all others one of their own.
    fn queries(&self, documents: &[Document], most: usize) -> Vec<Labelled> {
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        let mut members: BTreeMap<u64, Vec<&IssueRef>> = BTreeMap::new();
        for (issue, cluster) in &self.of {
            members.entry(*cluster).or_default().push(issue);
        }
        let mut next = 0;
        let mut fresh = || {
            next += 1;
            next
        };
        let documents = spread(documents.iter().collect(), most);
        let labelled = documents.into_iter().map(|document: &Document| {
            let id = document.id();
            let cluster = self.of.get(&id);
            let same = cluster.and_then(|cluster| members.get(cluster));
            let same = same.into_iter().flatten().filter(|other| ***other != id);
            Labelled {
                query: Query::of(document),
                same: same.map(|other| (*other).clone()).collect(),
                cluster: match cluster {
                    Some(cluster) => *numbers.entry(*cluster).or_insert_with(&mut fresh),
                    None => fresh(),
                },
            }
        });
        labelled.collect()
    }
}

/// Which issue of the same repository this one was closed as a duplicate of, if its closing comment says so.
///
/// ```
/// use paraph_retrieval::{Document, IssueRef, duplicate_of};
/// let document = Document {
///     repo: "acme/boats".into(),
///     number: 9,
///     resolution: Some("Thanks! Closing as a duplicate of #7.".into()),
///     ..Document::default()
/// };
/// assert_eq!(duplicate_of(&document), Some(IssueRef::new("acme/boats", 7)));
/// ```
pub fn duplicate_of(document: &Document) -> Option<IssueRef> {
    let text = document.resolution.as_deref()?.to_lowercase();
    let labelled = document
        .labels
        .iter()
        .any(|label| label.to_lowercase().contains("duplicate"));
    let said = [
        "duplicate of",
        "duplicates",
        "dup of",
        "dupe of",
        "duplicate",
    ];
    let behind = said
        .iter()
        .find_map(|words| Some(text.split_once(words)?.1));
    let behind = behind.or(labelled.then_some(text.as_str()))?;
    // What is meant follows at once; an issue that is mentioned further on may be anything.
    let behind = match labelled {
        true => behind,
        false => crate::hit::head(behind, 120),
    };
    let repo = document.repo.to_lowercase();
    let number = named_in(behind, &repo)?;
    (number != document.number).then(|| IssueRef::new(&document.repo, number))
}

/// The first issue of this repository that a text in lower case names: `#7`, `owner/name#7`, or an address.
fn named_in(text: &str, repo: &str) -> Option<u64> {
    let address = format!("{repo}/issues/");
    let from_address = text
        .find(&address)
        .and_then(|at| Some((at, number_at(text, at + address.len())?)));
    let from_mark = text.match_indices('#').find_map(|(at, _)| {
        let before = text.get(..at)?;
        let of_another = before.ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
            && !before.ends_with(repo);
        let number = number_at(text, at + 1)?;
        (!of_another).then_some((at, number))
    });
    let first = [from_address, from_mark].into_iter().flatten().min()?;
    Some(first.1)
}

fn number_at(text: &str, at: usize) -> Option<u64> {
    let rest = text.get(at..)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..end)?.parse().ok().filter(|number| *number > 0)
}
