//! Okapi BM25: how well texts fit a query by the words they share, in memory.
//!
//! Built once for texts in words, then asked. The index of a corpus uses it, and so do others who rank texts. Nothing
//! here takes a text apart; see `words`.

use std::collections::HashMap;

/// How quickly further occurrences of a word count less.
const K1: f64 = 1.2;
/// How much a text's length counts.
const B: f64 = 0.75;

/// Texts by their words. A text is known by its number, which is how many were added before it.
#[derive(Clone, Debug, Default)]
pub struct Bm25 {
    postings: HashMap<String, Vec<Posting>>,
    lengths: Vec<u32>,
    /// Words of all texts.
    total: u64,
}

/// That a word stands so many times in a text.
#[derive(Clone, Copy, Debug)]
struct Posting {
    text: u32,
    times: u32,
}

impl Bm25 {
    /// Adds a text and gives its number.
    pub fn add(&mut self, words: impl IntoIterator<Item = String>) -> u32 {
        let text = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let mut length = 0;
        let mut counts: HashMap<String, u32> = HashMap::new();
        for word in words {
            length += 1;
            *counts.entry(word).or_default() += 1;
        }
        for (word, times) in counts {
            let posting = Posting { text, times };
            self.postings.entry(word).or_default().push(posting);
        }
        self.lengths.push(length);
        self.total += u64::from(length);
        text
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// What each text scores for words with weights, by its number: 0 where it has none of them. A word's weight is how
    /// often it counts; it should come once.
    pub fn scores<'w>(&self, query: impl IntoIterator<Item = (&'w str, f64)>) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let mean = self.mean();
        for (word, weight) in query {
            let Some(postings) = self.postings.get(word) else {
                continue;
            };
            let rarity = weight * self.rarity(postings.len());
            for posting in postings {
                let place = posting.text as usize;
                let length = self.lengths.get(place).copied().unwrap_or_default();
                if let Some(score) = scores.get_mut(place) {
                    *score += rarity * damped(posting.times, length, mean);
                }
            }
        }
        scores
    }

    /// What the query itself would score if it stood among the texts, which is about the most that any text can. Words
    /// that no text has count too, so that a query about something else stays far from it.
    ///
    /// The words come with their weights and with how often they stand in the query, which has `length` words in all.
    pub fn own_score<'w>(
        &self,
        query: impl IntoIterator<Item = (&'w str, f64, u32)>,
        length: u32,
    ) -> f64 {
        let mean = self.mean();
        let scores = query.into_iter().map(|(word, weight, times)| {
            let with = self.postings.get(word).map_or(0, Vec::len);
            weight * self.rarity(with) * damped(times, length, mean)
        });
        scores.sum()
    }

    fn mean(&self) -> f64 {
        (self.total as f64 / (self.lengths.len() as f64).max(1.0)).max(1.0)
    }

    /// How much it says that a text has a word which so many have.
    fn rarity(&self, with: usize) -> f64 {
        let (all, with) = (self.lengths.len() as f64, with as f64);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

fn damped(times: u32, length: u32, mean: f64) -> f64 {
    let times = f64::from(times);
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * f64::from(length) / mean))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]
    use super::*;

    fn index(texts: &[&str]) -> Bm25 {
        let mut index = Bm25::default();
        for text in texts {
            index.add(text.split(' ').map(str::to_owned));
        }
        index
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        let index = index(&["sail", "sail boat boat", "oar oar"]);
        let scores = index.scores([("boat", 1.0), ("sail", 2.0), ("none", 1.0)]);
        let rarity = |with: f64| (1.0 + (3.0 - with + 0.5) / (with + 0.5)).ln();
        let part =
            |times: f64, length: f64| times * 2.2 / (times + 1.2 * (0.25 + 0.75 * length / 2.0));
        let expected = [
            2.0 * rarity(2.0) * part(1.0, 1.0),
            rarity(1.0) * part(2.0, 3.0) + 2.0 * rarity(2.0) * part(1.0, 3.0),
            0.0,
        ];
        for (score, expected) in scores.iter().zip(expected) {
            assert!((score - expected).abs() < 1e-12, "{score} {expected}");
        }
    }

    #[test]
    fn a_text_scores_what_it_would_score_itself() {
        let index = index(&["sail boat boat", "oar oar", "mast"]);
        let own = index.own_score([("sail", 1.0, 1), ("boat", 1.0, 2)], 3);
        let score = index.scores([("sail", 1.0), ("boat", 1.0)]);
        assert!((own - score.first().unwrap()).abs() < 1e-12);
        // An unknown word is the rarest of all.
        let strange = index.own_score([("sail", 1.0, 1), ("boat", 1.0, 2), ("zzz", 1.0, 1)], 4);
        assert!(strange > own);
    }

    #[test]
    fn an_empty_index_answers_nothing() {
        let index = Bm25::default();
        assert!(index.is_empty());
        assert_eq!((index.len(), index.scores([("a", 1.0)])), (0, vec![]));
    }
}
