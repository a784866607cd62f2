//! All documents of a corpus in memory, ready to be searched: what `retriever` reads once and asks often.
//!
//! Pure: no corpus, no embedder, no clock. Issues are ranked, by their words and by their closest chunk; then the chunks
//! of those that are best are chosen.

mod ranking;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::bm25::Bm25;
use crate::chunk::{Chunk, ranges};
use crate::corpus::Kept;
use crate::document::{Document, IssueRef};
use crate::error::Error;
use crate::hit::{Hit, Query};
use crate::marks::marks;
use crate::vectors::Vectors;
use crate::words::words;
use ranking::{Ranked, Signals};

/// The most documents of a corpus that are searched.
pub(crate) const MAX_DOCUMENTS: usize = 1_000_000;

/// The most chunks.
pub(crate) const MAX_CORPUS_CHUNKS: usize = 1_000_000;

/// How many times a title counts among an issue's words.
const TITLE_TIMES: usize = 3;

/// A mark that more documents have is no sign that two of them are about the same.
const RARE: usize = 5;

/// A document in the index.
struct Entry {
    id: IssueRef,
    document: Document,
    text: String,
    chunks: Vec<Range<usize>>,
    /// Where its vectors begin, if it has any.
    vectors: Option<usize>,
}

/// The documents of a corpus.
#[derive(Default)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// Vectors of the chunks of all documents that have some.
    vectors: Vectors,
    /// To which document each vector belongs.
    owners: Vec<u32>,
    chunks: usize,
    /// Title and text together, the title several times.
    whole: Bm25,
    titles: Bm25,
    marks: HashMap<String, Vec<u32>>,
    hash: Sha256,
}

/// A query as the index takes it.
pub(crate) struct Asked<'q> {
    pub(crate) query: &'q Query,
    /// Its vector, if it was embedded.
    pub(crate) vector: Option<Vectors>,
}

impl Index {
    /// Adds a document; they come in the order of their ids.
    ///
    /// # Errors
    /// [`Error::Limit`] if there are too many, [`Error::Damaged`] if its vectors are not those of its chunks.
    pub(crate) fn add(&mut self, kept: Kept) -> Result<(), Error> {
        let Kept { document, vectors } = kept;
        let text = document.text();
        let chunks = ranges(&text);
        self.check(&document, &chunks, &vectors)?;
        let number = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let from = self.vectors.len();
        self.vectors.extend(&vectors);
        self.owners.extend(vec![number; vectors.len()]);
        self.chunks += chunks.len();
        let title = words(&document.title);
        let titles = std::iter::repeat_n(&title, TITLE_TIMES).flatten().cloned();
        self.whole.add(titles.chain(words(&text)));
        self.titles.add(title);
        let own: HashSet<String> = marks(&document.title)
            .into_iter()
            .chain(marks(&text))
            .collect();
        for mark in own {
            self.marks.entry(mark).or_default().push(number);
        }
        let id = document.id();
        self.hash.update((id.repo.len() as u64).to_le_bytes());
        self.hash.update(id.repo.as_bytes());
        self.hash.update(id.number.to_le_bytes());
        self.hash.update(document.content_hash());
        self.entries.push(Entry {
            id,
            document,
            text,
            chunks,
            vectors: (!vectors.is_empty()).then_some(from),
        });
        Ok(())
    }

    fn check(
        &self,
        document: &Document,
        chunks: &[Range<usize>],
        vectors: &Vectors,
    ) -> Result<(), Error> {
        let too_many = |what: &str, found: usize, limit: usize| {
            let what = format!("{what} in one corpus");
            Err(Error::Limit { what, found, limit })
        };
        if self.entries.len() >= MAX_DOCUMENTS {
            return too_many("issues", self.entries.len() + 1, MAX_DOCUMENTS);
        }
        if self.chunks + chunks.len() > MAX_CORPUS_CHUNKS {
            return too_many("chunks", self.chunks + chunks.len(), MAX_CORPUS_CHUNKS);
        }
        if !vectors.is_empty() && vectors.len() != chunks.len() {
            return Err(Error::Damaged {
                place: format!("issue {} of the corpus", document.id()),
                problem: format!(
                    "it has {} chunks and {} vectors",
                    chunks.len(),
                    vectors.len()
                ),
            });
        }
        Ok(())
    }

    /// How many documents there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many documents have no vectors.
    pub(crate) fn unembedded(&self) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.vectors.is_none())
            .count()
    }

    /// SHA-256 over ids and contents, in hex.
    pub(crate) fn hash(&self) -> String {
        let bytes: [u8; 32] = self.hash.clone().finalize().into();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The best hits, the best one first. Equally good ones come in the order of their ids.
    pub(crate) fn search(&self, asked: &Asked<'_>) -> Vec<Hit> {
        let signals = Signals::of(self, asked);
        let ranked = signals.ranked(asked.query.k + 1);
        let mut hits = Vec::new();
        for (place, one) in ranked.iter().enumerate().take(asked.query.k) {
            let next = ranked.get(place + 1).map_or(0.0, Ranked::relevance);
            let most = asked.query.chunks_per_issue.min(asked.query.k - hits.len());
            hits.extend(self.hits(asked, one, (one.relevance() - next, most)));
            if hits.len() >= asked.query.k {
                break;
            }
        }
        hits
    }

    /// The closest chunks of an issue that was found.
    fn hits(&self, asked: &Asked<'_>, ranked: &Ranked, (margin, most): (f64, usize)) -> Vec<Hit> {
        let Some(entry) = self.entries.get(ranked.document as usize) else {
            return Vec::new();
        };
        let shared = self.shared(asked, ranked.document);
        let agrees = ranked.lexical_rank.is_some_and(|rank| rank <= 3) || !shared.is_empty();
        let chosen = self.closest_chunks(asked, entry).into_iter().take(most);
        let hit = |place: usize| {
            let range = entry.chunks.get(place).cloned().unwrap_or_default();
            let text = entry.text.get(range).unwrap_or_default();
            Hit {
                chunk: Chunk::of(&entry.document, place, text),
                fused: ranked.fused,
                cosine: ranked.cosine,
                bm25: ranked.bm25,
                lexical: ranked.lexical,
                lexical_rank: ranked.lexical_rank,
                dense_rank: ranked.dense_rank,
                shared: shared.clone(),
                agrees,
                margin,
            }
        };
        chosen.map(hit).collect()
    }

    /// The places of an issue's chunks, the one that answers the query best first.
    fn closest_chunks(&self, asked: &Asked<'_>, entry: &Entry) -> Vec<usize> {
        let mut places: Vec<(usize, f64)> = match (&asked.vector, entry.vectors) {
            (Some(query), Some(from)) => {
                let cosines = self
                    .vectors
                    .range(from..from + entry.chunks.len())
                    .cosines(query);
                cosines.into_iter().map(f64::from).enumerate().collect()
            }
            _ => {
                // Among so few texts no word is rare, so it is counted which of the query's they have.
                let wanted: HashSet<String> = words(asked.query.read()).into_iter().collect();
                let count = |range: &Range<usize>| {
                    let own = words(entry.text.get(range.clone()).unwrap_or_default());
                    let own: HashSet<String> = own.into_iter().collect();
                    own.intersection(&wanted).count() as f64
                };
                entry.chunks.iter().map(count).enumerate().collect()
            }
        };
        places.sort_by(|(a, of_a), (b, of_b)| of_b.total_cmp(of_a).then(a.cmp(b)));
        places.into_iter().map(|(place, _)| place).collect()
    }

    /// The rare marks that a query and a document have in common, sorted.
    fn shared(&self, asked: &Asked<'_>, document: u32) -> Vec<String> {
        let own: HashSet<String> = marks(asked.query.read()).into_iter().collect();
        let has = |mark: &String| {
            let with = self.marks.get(mark).map_or(&[][..], Vec::as_slice);
            with.len() <= RARE && with.contains(&document)
        };
        let mut shared: Vec<String> = own.into_iter().filter(has).collect();
        shared.sort();
        shared.truncate(10);
        shared
    }
}
