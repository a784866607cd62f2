//! Fitting floors: what foreign queries reach, what the corpus's own issues reach, and from where on the one is rare.
//!
//! The command line calls it and keeps what comes out. No floor is guessed: if no value keeps its target, there is none,
//! and the reason stands in its place.

mod fit;
mod pools;

use serde::Serialize;

use crate::corpus::Identity;
use crate::document::IssueRef;
use crate::error::Error;
use crate::floor::{CALIBRATION_MINIMUM, Floor};
use crate::hit::Query;
use crate::retriever::{Retriever, search_in};
pub use pools::{Pools, duplicate_of};

/// What a calibration goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Targets {
    /// At most this share of foreign queries may find something above the topical floor, with its upper bound.
    pub foreign: f64,
    /// At least this share of what passes the duplicate floor is one, with its lower bound.
    pub precision: f64,
    /// How many hits of a query are looked at: one above the floor lets the query pass.
    pub k: usize,
}

impl Default for Targets {
    fn default() -> Self {
        Targets {
            foreign: 0.01,
            precision: 0.90,
            k: crate::hit::DEFAULT_K,
        }
    }
}

/// A query whose answers are known, as far as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The query; an issue of the corpus leaves itself out.
    pub query: Query,
    /// Issues that are the same as it. There may be more that nobody knows of.
    pub same: Vec<IssueRef>,
    /// Queries of one cluster are never on both sides of a split.
    pub cluster: u64,
}

/// What was measured, and what was fitted on it.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// A topical and a duplicate floor for each way of searching.
    pub floors: Vec<Floor>,
    /// How relevant the best hit of each query was.
    pub distributions: Vec<Distribution>,
    /// What whoever reads the figures has to know.
    pub notes: Vec<String>,
}

/// The best hits of one pool of queries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Which pool.
    pub pool: Pool,
    /// Whether it was searched by words alone.
    pub lexical: bool,
    /// The relevance of each query's best hit, or of the known pair, in ascending order.
    pub values: Vec<f64>,
}

/// Where queries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// Pairs that are known to be the same.
    Known,
    /// Issues of the corpus itself.
    Own,
    /// Queries about something else.
    Foreign,
}

impl Pool {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Pool::Known => "known duplicates",
            Pool::Own => "own issues, best hit",
            Pool::Foreign => "foreign queries, best hit",
        }
    }
}

/// What a query found.
#[derive(Clone, Debug)]
struct Seen {
    cluster: u64,
    /// The relevance of the best of its hits.
    best: f64,
    /// The first hit: how relevant, how far ahead, whether words agree, and whether it is one that is known.
    first: Option<First>,
    /// The relevance of the issue that is known to be the same, if it was found.
    known: Option<f64>,
    has_known: bool,
}

#[derive(Clone, Copy, Debug)]
struct First {
    relevance: f64,
    margin: f64,
    agrees: bool,
    right: bool,
}

/// Measures the pools on a corpus and fits its floors; with an embedder, those for searches by meaning too. `told` hears
/// how many of the queries are done.
///
/// # Errors
/// [`Error::Calibration`] if the corpus is smaller than [`CALIBRATION_MINIMUM`]; what searching answers.
pub async fn calibrate(
    retriever: &Retriever,
    pools: &Pools,
    targets: Targets,
    (now, told): (&str, &(dyn Fn(usize, usize) + Sync)),
) -> Result<Calibration, Error> {
    let snapshot = retriever.snapshot().await?;
    let documents = snapshot.index.len() as u64;
    if documents < CALIBRATION_MINIMUM {
        return Err(Error::Calibration {
            problem: format!(
                "the corpus has {documents} issues, and at least {CALIBRATION_MINIMUM} are needed"
            ),
        });
    }
    let identity = snapshot.identity.clone().unwrap_or_else(Identity::lexical);
    let mut measured = Measured::default();
    let all = pools.own.len() + pools.foreign.len();
    let queries = pools.own.iter().map(|query| (query, true));
    let queries = queries.chain(pools.foreign.iter().map(|query| (query, false)));
    for (done, (labelled, own)) in queries.enumerate() {
        measured.ask(retriever, (labelled, own), targets.k).await?;
        told(done + 1, all);
    }
    let stamp = fit::Stamp {
        identity,
        corpus_hash: snapshot.index.hash(),
        fitted_at: now.to_owned(),
    };
    Ok(measured.calibration(&stamp, targets, pools.notes.clone()))
}

/// What was found, by meaning and by words alone.
#[derive(Default)]
struct Measured {
    dense: Scale,
    lexical: Scale,
}

#[derive(Default)]
struct Scale {
    own: Vec<Seen>,
    foreign: Vec<Seen>,
}

impl Measured {
    async fn ask(
        &mut self,
        retriever: &Retriever,
        (labelled, own): (&Labelled, bool),
        k: usize,
    ) -> Result<(), Error> {
        // Deep enough to meet what is known, should it be there.
        let query = Query {
            k: if own { 50 } else { k },
            ..labelled.query.clone()
        };
        query.check()?;
        let snapshot = retriever.snapshot().await?;
        let vector = match retriever.embedder() {
            Some(_) => {
                retriever.check_model(snapshot.identity.as_ref())?;
                retriever.embed(&query).await?
            }
            None => None,
        };
        let mut scales = vec![(&mut self.lexical, None)];
        if vector.is_some() {
            scales.push((&mut self.dense, vector));
        }
        for (scale, vector) in scales {
            let hits = search_in(snapshot.clone(), query.clone(), vector).await?;
            let seen = seen(labelled, &hits, k);
            match own {
                true => scale.own.push(seen),
                false => scale.foreign.push(seen),
            }
        }
        Ok(())
    }

    fn calibration(&self, stamp: &fit::Stamp, targets: Targets, notes: Vec<String>) -> Calibration {
        let mut calibration = Calibration {
            floors: Vec::new(),
            distributions: Vec::new(),
            notes,
        };
        for (scale, lexical) in [(&self.dense, false), (&self.lexical, true)] {
            if scale.own.is_empty() && scale.foreign.is_empty() {
                continue;
            }
            calibration
                .floors
                .push(fit::topical(scale, lexical, stamp, targets));
            calibration
                .floors
                .push(fit::duplicate(scale, lexical, stamp, targets));
            let known = scale.own.iter().filter_map(|seen| seen.known);
            let own = scale.own.iter().map(|seen| seen.best);
            let foreign = scale.foreign.iter().map(|seen| seen.best);
            let pools: [(Pool, Vec<f64>); 3] = [
                (Pool::Known, known.collect()),
                (Pool::Own, own.collect()),
                (Pool::Foreign, foreign.collect()),
            ];
            for (pool, mut values) in pools {
                values.sort_by(f64::total_cmp);
                calibration.distributions.push(Distribution {
                    pool,
                    lexical,
                    values,
                });
            }
        }
        calibration
    }
}

fn seen(labelled: &Labelled, hits: &[crate::hit::Hit], k: usize) -> Seen {
    let known = |hit: &&crate::hit::Hit| labelled.same.contains(&hit.issue());
    Seen {
        cluster: labelled.cluster,
        // A query that finds nothing is as far from everything as can be.
        best: hits
            .iter()
            .take(k)
            .map(|hit| hit.relevance())
            .fold(0.0, f64::max),
        first: hits.first().map(|hit| First {
            relevance: hit.relevance(),
            margin: hit.margin,
            agrees: hit.agrees,
            right: known(&hit),
        }),
        known: hits.iter().find(known).map(|hit| hit.relevance()),
        has_known: !labelled.same.is_empty(),
    }
}

#[cfg(test)]
mod tests;
