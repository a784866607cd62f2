//! Floors: from what relevance on something may be cited, or called a duplicate.
//!
//! `calibrate` fits them, a corpus keeps them, whoever gates asks [`Floors::gate`]. A floor holds for the model, the
//! form of text and the very documents that it was fitted on; asked about anything else it refuses. No floor is a
//! constant of this program.

use serde::{Deserialize, Serialize};

use crate::corpus::Identity;
use crate::error::Error;
use crate::hit::Hit;

/// With fewer documents a corpus has no floor: its distributions would say little about the next issue.
pub const CALIBRATION_MINIMUM: u64 = 100;

/// What a floor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloorKind {
    /// Above it, a hit is about the same subject and may be cited.
    Topical,
    /// Above it, and with words in common and ahead of the next hit, a hit may be called a duplicate.
    Duplicate,
}

impl std::fmt::Display for FloorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FloorKind::Topical => "topical",
            FloorKind::Duplicate => "duplicate",
        })
    }
}

/// A floor as it was fitted, or why none was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// What it is for.
    pub kind: FloorKind,
    /// Whether it is on [`Hit::lexical`], for searches by words alone; otherwise on [`Hit::cosine`].
    pub lexical: bool,
    /// The floor; none if no value keeps the target.
    pub value: Option<f64>,
    /// Why there is none, in a sentence.
    pub why: Option<String>,
    /// How far a duplicate has to be ahead of the next hit, on the same scale.
    pub margin: f64,
    /// What was to be kept: at most this share of foreign queries passes (topical), or at least this share of what
    /// passes is right (duplicate).
    pub target: f64,
    /// The 95 % bound that was reached, above the share (topical) or below it (duplicate).
    pub bound: f64,
    /// On how many queries it was fitted.
    pub n: u64,
    /// How many of these passed.
    pub passed: u64,
    /// The share of known pairs that lie above it.
    pub coverage: f64,
    /// What the corpus was made with.
    pub identity: Identity,
    /// The documents it was fitted on; see [`Floors::corpus_hash`].
    pub corpus_hash: String,
    /// When. RFC 3339.
    pub fitted_at: String,
}

/// What a gate says of a hit.
#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// It passes.
    Above {
        /// How far it lies above the floor.
        by: f64,
    },
    /// It does not.
    Below {
        /// How far it lies below the floor.
        by: f64,
    },
    /// It lies above the floor for duplicates and lacks something else.
    Lacking {
        /// What it lacks, in words.
        what: &'static str,
    },
    /// Nothing can pass, for there is no floor.
    NoFloor {
        /// Why not.
        why: String,
    },
}

impl Gate {
    /// Whether it passes.
    pub fn passes(&self) -> bool {
        matches!(self, Gate::Above { .. })
    }
}

/// The floors of a corpus, and what the corpus is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Floors {
    /// As they were fitted.
    pub floors: Vec<Floor>,
    /// What the corpus is made with; none if it is empty.
    pub identity: Option<Identity>,
    /// SHA-256 over the ids and contents of all documents, in hex.
    pub corpus_hash: String,
    /// How many documents there are.
    pub documents: u64,
}

impl Floors {
    /// Whether a hit passes the floor of this kind.
    ///
    /// # Errors
    /// [`Error::FloorOfAnother`] if there is a floor, and it was fitted for another model, form of text or corpus.
    pub fn gate(&self, kind: FloorKind, hit: &Hit) -> Result<Gate, Error> {
        let floor = match self.floor(kind, hit.cosine.is_none())? {
            Ok(floor) => floor,
            Err(why) => return Ok(Gate::NoFloor { why }),
        };
        let Some(value) = floor.value else {
            let why = floor.why.clone().unwrap_or_default();
            return Ok(Gate::NoFloor { why });
        };
        let by = hit.relevance() - value;
        // Also what cannot be compared, which no hit of ours is.
        if by.is_nan() || by < 0.0 {
            return Ok(Gate::Below { by: -by });
        }
        if kind == FloorKind::Duplicate {
            if !hit.agrees {
                let what = "agreement in words: it is not among the first three by its words, and shares no identifier \
                            or error";
                return Ok(Gate::Lacking { what });
            }
            if hit.margin < floor.margin {
                let what = "a margin: the next hit is nearly as close";
                return Ok(Gate::Lacking { what });
            }
        }
        Ok(Gate::Above { by })
    }

    /// The floor of a kind, or why there is none.
    ///
    /// # Errors
    /// As [`Floors::gate`].
    pub fn floor(&self, kind: FloorKind, lexical: bool) -> Result<Result<&Floor, String>, Error> {
        let found = self
            .floors
            .iter()
            .find(|floor| floor.kind == kind && floor.lexical == lexical);
        if self.documents < CALIBRATION_MINIMUM {
            return Ok(Err(format!(
                "the corpus has {} issues, and no floor can be fitted on fewer than {CALIBRATION_MINIMUM}",
                self.documents
            )));
        }
        let Some(floor) = found else {
            let scale = if lexical {
                "searches by words"
            } else {
                "searches by meaning"
            };
            return Ok(Err(format!(
                "no {kind} floor was fitted for {scale} (`paraph corpus calibrate` does it)"
            )));
        };
        let another = |fitted: String, found: String| {
            Err(Error::FloorOfAnother {
                kind: kind.to_string(),
                fitted,
                found,
            })
        };
        if self.identity.as_ref() != Some(&floor.identity) {
            let found = self
                .identity
                .as_ref()
                .map_or("an empty corpus".to_owned(), Identity::to_string);
            return another(floor.identity.to_string(), found);
        }
        if self.corpus_hash != floor.corpus_hash {
            let corpus = |hash: &str| format!("corpus {}", hash.get(..12).unwrap_or(hash));
            return another(corpus(&floor.corpus_hash), corpus(&self.corpus_hash));
        }
        Ok(Ok(floor))
    }
}

#[cfg(test)]
mod tests;
