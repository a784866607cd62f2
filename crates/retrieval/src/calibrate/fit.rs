//! The floors that keep their targets, and why there is none where none does.

use super::{First, Scale, Seen, Targets};
use crate::corpus::Identity;
use crate::floor::{Floor, FloorKind};
use crate::interval::{lower_bound, upper_bound};

/// How far ahead of the next hit a duplicate may have to be.
const MARGINS: [f64; 4] = [0.0, 0.02, 0.05, 0.1];

/// Floors are kept with four digits, rounded up.
const DIGITS: f64 = 10_000.0;

/// What a floor is kept with.
pub(super) struct Stamp {
    pub(super) identity: Identity,
    pub(super) corpus_hash: String,
    pub(super) fitted_at: String,
}

impl Stamp {
    fn floor(&self, kind: FloorKind, lexical: bool, target: f64) -> Floor {
        Floor {
            kind,
            lexical,
            value: None,
            why: None,
            margin: 0.0,
            target,
            bound: if kind == FloorKind::Topical { 1.0 } else { 0.0 },
            n: 0,
            passed: 0,
            coverage: 0.0,
            identity: self.identity.clone(),
            corpus_hash: self.corpus_hash.clone(),
            fitted_at: self.fitted_at.clone(),
        }
    }
}

/// The lowest floor above which so few foreign queries lie that the upper bound of their share keeps the target.
///
/// It is made of the foreign queries' own order: with 95 % confidence no more than the target of all queries like them
/// lies above the one that is so many places from the top. So no half of them has to be set aside for testing it.
pub(super) fn topical(scale: &Scale, lexical: bool, stamp: &Stamp, targets: Targets) -> Floor {
    let mut floor = stamp.floor(FloorKind::Topical, lexical, targets.foreign);
    let mut best: Vec<f64> = scale.foreign.iter().map(|seen| seen.best).collect();
    best.sort_by(|a, b| b.total_cmp(a));
    floor.n = best.len() as u64;
    let Some(may_pass) = (0..floor.n)
        .take_while(|passed| upper_bound(*passed, floor.n) <= targets.foreign)
        .last()
    else {
        floor.bound = upper_bound(0, floor.n);
        floor.why = Some(format!(
            "{} foreign queries are too few to bound the share that passes by {}: at least {} are needed",
            floor.n,
            targets.foreign,
            least(targets.foreign)
        ));
        return floor;
    };
    let barrier = usize::try_from(may_pass)
        .ok()
        .and_then(|place| best.get(place))
        .copied()
        .unwrap_or(1.0);
    let value = above(barrier);
    floor.passed = best.iter().filter(|best| **best >= value).count() as u64;
    floor.bound = upper_bound(floor.passed, floor.n);
    // What is known to belong together; where nothing is, whatever has its home here.
    let known: Vec<f64> = scale
        .own
        .iter()
        .filter(|seen| seen.has_known)
        .map(|seen| seen.known.unwrap_or(0.0))
        .collect();
    let own: Vec<f64> = match known.is_empty() {
        true => scale.own.iter().map(|seen| seen.best).collect(),
        false => known,
    };
    floor.coverage = share(
        own.iter().filter(|known| **known >= value).count(),
        own.len(),
    );
    floor.value = Some(value);
    floor
}

/// How many queries have to be asked so that none of them passing keeps a target.
fn least(target: f64) -> u64 {
    (0.05_f64.ln() / (1.0 - target).ln()).ceil() as u64
}

/// The next value with four digits above another.
fn above(value: f64) -> f64 {
    ((value * DIGITS).floor() + 1.0) / DIGITS
}

fn share(some: usize, all: usize) -> f64 {
    some as f64 / (all as f64).max(1.0)
}

/// The lowest floor, with a margin, above which first hits are right so often that the lower bound of their share keeps
/// the target: sought on one half of the clusters and tried on the other.
pub(super) fn duplicate(scale: &Scale, lexical: bool, stamp: &Stamp, targets: Targets) -> Floor {
    let mut floor = stamp.floor(FloorKind::Duplicate, lexical, targets.precision);
    let half = |odd: u64| -> Vec<&Seen> {
        scale
            .own
            .iter()
            .filter(|seen| seen.cluster % 2 == odd)
            .collect()
    };
    let (fitted, tried) = (half(0), half(1));
    let firsts =
        |half: &[&Seen]| -> Vec<First> { half.iter().filter_map(|seen| seen.first).collect() };
    let known = scale.own.iter().filter(|seen| seen.has_known).count();
    floor.n = tried.len() as u64;
    if known == 0 {
        floor.why = Some("no issue of the corpus is known to be a duplicate of another".to_owned());
        return floor;
    }
    let mut best = (0.0, 0.0, 0);
    let mut candidates: Vec<f64> = firsts(&fitted)
        .iter()
        .map(|first| first.relevance)
        .collect();
    candidates.sort_by(f64::total_cmp);
    candidates.dedup();
    for value in candidates
        .iter()
        .map(|value| (value * DIGITS).floor() / DIGITS)
    {
        for margin in MARGINS {
            let (right, passed) = passing(&firsts(&fitted), value, margin);
            let bound = lower_bound(right, passed);
            if bound > best.0 {
                best = (bound, value, passed);
            }
            if bound < targets.precision {
                continue;
            }
            let (right, passed) = passing(&firsts(&tried), value, margin);
            floor.passed = passed;
            floor.bound = lower_bound(right, passed);
            if passed == 0 || (right as f64) < targets.precision * passed as f64 {
                floor.why = Some(format!(
                    "above {value} the target was kept where it was sought and not where it was tried ({right} of {passed} \
                     right)"
                ));
                return floor;
            }
            floor.value = Some(value);
            floor.margin = margin;
            floor.coverage = share(
                usize::try_from(right).unwrap_or_default(),
                tried.iter().filter(|seen| seen.has_known).count(),
            );
            return floor;
        }
    }
    floor.bound = best.0;
    floor.why = Some(format!(
        "no value keeps a precision of {} with its lower bound: the best bound is {:.2}, above {:.2} ({} of {} pass); not \
         all duplicates are known, so the true precision may be higher",
        targets.precision,
        best.0,
        best.1,
        best.2,
        fitted.len()
    ));
    floor
}

/// How many first hits pass, and how many of those are right.
fn passing(firsts: &[First], value: f64, margin: f64) -> (u64, u64) {
    let pass = |first: &&First| first.relevance >= value && first.margin >= margin && first.agrees;
    let passed: Vec<&First> = firsts.iter().filter(pass).collect();
    let right = passed.iter().filter(|first| first.right).count();
    (right as u64, passed.len() as u64)
}
