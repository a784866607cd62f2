//! How issues are ranked: by the meaning of their closest chunk, by all their words and by those of their title.
//!
//! Called by the index for each query. Each of the three is a share of what is possible, so they can be added up; on
//! issues with known duplicates that finds more than fusing their ranks does. What they are stays with each issue, for
//! floors are on one of them and not on what adding makes of them.

use std::collections::{BTreeMap, HashSet};

use super::{Asked, Entry, Index, TITLE_TIMES};
use crate::bm25::Bm25;
use crate::document::{IssueRef, IssueState};
use crate::words::{wanted, words};

/// How much all words of an issue count beside its meaning.
const WORDS: f64 = 1.0;

/// How much the words of its title count beside these.
const TITLE: f64 = 0.3;

/// How quickly further occurrences of a word in a query count less.
const QUERY_K: f64 = 8.0;

/// What speaks for each document, by its number.
pub(super) struct Signals {
    allowed: Vec<bool>,
    /// BM25 of title and text.
    bm25: Vec<f64>,
    /// What the query itself would score.
    own: f64,
    /// BM25 of the title, as a share of what the query's would score.
    title: Vec<f64>,
    /// The cosine of the closest chunk; none for documents without vectors, and nothing at all if the query has none.
    cosine: Option<Vec<Option<f64>>>,
}

/// A document with its place in the order of words and of meaning.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) document: u32,
    pub(super) fused: f64,
    pub(super) cosine: Option<f64>,
    pub(super) bm25: f64,
    pub(super) lexical: f64,
    pub(super) lexical_rank: Option<usize>,
    pub(super) dense_rank: Option<usize>,
}

impl Ranked {
    pub(super) fn relevance(&self) -> f64 {
        self.cosine.unwrap_or(self.lexical)
    }
}

impl Signals {
    pub(super) fn of(index: &Index, asked: &Asked<'_>) -> Signals {
        let (text, title) = (asked.query.read(), asked.query.title());
        let mut counts: BTreeMap<String, u32> =
            wanted(text).into_iter().map(|word| (word, 0)).collect();
        let again = (1..TITLE_TIMES).flat_map(|_| words(title));
        let mut length = 0;
        for word in words(text).into_iter().chain(again) {
            length += 1;
            if let Some(count) = counts.get_mut(&word) {
                *count += 1;
            }
        }
        let once: BTreeMap<String, u32> = wanted(title).into_iter().map(|word| (word, 1)).collect();
        let (bm25, own) = scored(&index.whole, &counts, length);
        let of_title = u32::try_from(words(title).len()).unwrap_or(u32::MAX);
        let (mut title, own_title) = scored(&index.titles, &once, of_title);
        title
            .iter_mut()
            .for_each(|score| *score = share(*score, own_title));
        Signals {
            allowed: allowed(index, asked),
            bm25,
            own,
            title,
            cosine: asked
                .vector
                .as_ref()
                .map(|query| closest(index, &index.vectors.cosines(query))),
        }
    }

    /// The best documents, the best one first; equally good ones in the order of their ids.
    pub(super) fn ranked(&self, most: usize) -> Vec<Ranked> {
        let places = self
            .allowed
            .iter()
            .enumerate()
            .filter(|(_, allowed)| **allowed);
        let mut best: Vec<(usize, f64)> = places
            .filter_map(|(place, _)| Some((place, self.fused(place)?)))
            .collect();
        let order = |(a, of_a): &(usize, f64), (b, of_b): &(usize, f64)| {
            of_b.total_cmp(of_a).then(a.cmp(b))
        };
        if best.len() > most {
            best.select_nth_unstable_by(most, order);
            best.truncate(most);
        }
        best.sort_unstable_by(order);
        best.into_iter()
            .map(|(place, fused)| self.at(place, fused))
            .collect()
    }

    /// What a document is ordered by; nothing if it has neither a word of the query nor a vector.
    fn fused(&self, place: usize) -> Option<f64> {
        let cosine = self.cosine_at(place);
        let words = self.bm25_at(place);
        if cosine.is_none() && words <= 0.0 {
            return None;
        }
        let title = self.title.get(place).copied().unwrap_or_default();
        Some(cosine.unwrap_or_default() + WORDS * share(words, self.own) + TITLE * title)
    }

    fn at(&self, place: usize, fused: f64) -> Ranked {
        let (bm25, cosine) = (self.bm25_at(place), self.cosine_at(place));
        Ranked {
            document: u32::try_from(place).unwrap_or(u32::MAX),
            fused,
            cosine,
            bm25,
            lexical: share(bm25, self.own),
            lexical_rank: (bm25 > 0.0)
                .then(|| self.rank(place, bm25, |other| Some(self.bm25_at(other)))),
            dense_rank: cosine
                .map(|cosine| self.rank(place, cosine, |other| self.cosine_at(other))),
        }
    }

    /// The rank of a document by a score, from 1: behind those that score more, and behind equal ones that come before.
    fn rank(&self, place: usize, score: f64, of: impl Fn(usize) -> Option<f64>) -> usize {
        let others = self
            .allowed
            .iter()
            .enumerate()
            .filter(|(_, allowed)| **allowed);
        let before = others.filter(|(other, _)| {
            of(*other).is_some_and(|others| others > score || (others == score && *other < place))
        });
        before.count() + 1
    }

    fn bm25_at(&self, place: usize) -> f64 {
        self.bm25.get(place).copied().unwrap_or_default()
    }

    fn cosine_at(&self, place: usize) -> Option<f64> {
        self.cosine.as_ref()?.get(place).copied().flatten()
    }
}

/// What texts score for words that stand so many times in a query, and what the query itself would.
fn scored(index: &Bm25, counts: &BTreeMap<String, u32>, length: u32) -> (Vec<f64>, f64) {
    let weight = |times: u32| {
        let times = f64::from(times.max(1));
        times * (QUERY_K + 1.0) / (times + QUERY_K)
    };
    let weighted = counts
        .iter()
        .map(|(word, times)| (word.as_str(), weight(*times)));
    let own = counts
        .iter()
        .map(|(word, times)| (word.as_str(), weight(*times), (*times).max(1)));
    (index.scores(weighted), index.own_score(own, length))
}

/// A score as a share of what is possible. Other texts can score a little more than the query itself.
fn share(score: f64, own: f64) -> f64 {
    if own > 0.0 {
        (score / own).min(1.0)
    } else {
        0.0
    }
}

/// Which documents may be found.
fn allowed(index: &Index, asked: &Asked<'_>) -> Vec<bool> {
    let query = asked.query;
    let lower = |repos: &Vec<String>| repos.iter().map(|repo| repo.to_lowercase()).collect();
    let repos: Option<HashSet<String>> = query.repos.as_ref().map(lower);
    let excluded: HashSet<IssueRef> = query
        .exclude
        .iter()
        .map(|issue| IssueRef::new(&issue.repo, issue.number))
        .collect();
    let numbers: HashSet<u64> = query.exclude.iter().map(|issue| issue.number).collect();
    let title = query
        .title()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let may = |entry: &Entry| {
        let (id, document) = (&entry.id, &entry.document);
        let same = numbers.contains(&id.number) && document.title == title;
        let here = repos.as_ref().is_none_or(|repos| repos.contains(&id.repo));
        let open = !query.open_only || document.state == IssueState::Open;
        here && open && !same && !excluded.contains(id)
    };
    index.entries.iter().map(may).collect()
}

/// The cosine of each document's closest chunk.
fn closest(index: &Index, cosines: &[f32]) -> Vec<Option<f64>> {
    let mut closest = vec![None; index.len()];
    for (owner, cosine) in index.owners.iter().zip(cosines) {
        if let Some(best) = closest.get_mut(*owner as usize) {
            let cosine = f64::from(*cosine);
            *best = Some(best.map_or(cosine, |known: f64| known.max(cosine)));
        }
    }
    closest
}
