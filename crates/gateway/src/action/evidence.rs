//! On what a proposal rests: the results that its run had read in the steps before, under one hash.
//!
//! Made by the session when it proposes an action, and again by the desk for whoever asks whether the records still are
//! those. Pure.

use crate::call::sha256;
use crate::record::{CallRecord, Outcome};
use serde::{Deserialize, Serialize};

/// What stands before what is hashed, so that no other text has the same hash.
const DOMAIN: &str = "paraph/evidence/v1";

/// The results that a run had read when it proposed an action: those of all its calls in earlier steps. It is part of the
/// action's bytes, so that it can be shown later what somebody's approval rested on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// How many results.
    pub calls: u64,
    /// SHA-256 over all of them, in the order in which they were asked for: 64 hexadecimal digits.
    pub hash: String,
}

impl Evidence {
    /// What a run's records say of the steps before this one; nothing if it had read nothing.
    pub fn before(step: u64, records: &[CallRecord]) -> Option<Evidence> {
        Evidence::of(step, records.iter())
    }

    /// The same of records in any order.
    pub(crate) fn of<'r>(
        step: u64,
        records: impl Iterator<Item = &'r CallRecord>,
    ) -> Option<Evidence> {
        let mut earlier: Vec<_> = records.filter(|record| record.step < step).collect();
        earlier.sort_by_key(|record| record.seq);
        if earlier.is_empty() {
            return None;
        }
        let mut text = DOMAIN.to_owned();
        for record in &earlier {
            let outcome = match &record.outcome {
                Some(Outcome::Observed(seen)) => match &seen.failure {
                    Some(failure) => format!("{failure} {}", seen.content),
                    None => seen.content.clone(),
                },
                Some(Outcome::Stopped(stop)) => stop.to_string(),
                None => String::new(),
            };
            let full = record.full_output.as_deref().unwrap_or_default();
            for part in [
                &*record.key,
                &*record.tool,
                &*record.arguments,
                &*outcome,
                full,
            ] {
                // Lengths keep two parts from being read as other two.
                text.push_str(&format!("{}:{part}", part.len()));
            }
        }
        Some(Evidence {
            calls: earlier.len() as u64,
            hash: sha256(&text),
        })
    }
}
