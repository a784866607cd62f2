//! How often something was tried and how often it failed, and how often it may fail at most.
//!
//! Every figure of a proof is printed from here, so that all of them mean the same: with 95 % certainty the true rate
//! is below the bound (Clopper and Pearson, one-sided; without a failure about 3 divided by the trials).

use std::fmt;

/// How many failures are told in full.
const TOLD: usize = 20;

/// A state can be long, and what is wrong is seen at its beginning or not at all.
const LONGEST: usize = 1_500;

/// What came of many trials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What was tried.
    pub title: String,
    /// How often.
    pub trials: u64,
    /// How often it failed.
    pub failures: u64,
    /// The first failures: which trial, and what was found.
    pub told: Vec<(String, Vec<String>)>,
    /// What was counted beside, such as `kills`.
    pub counted: Vec<(&'static str, u64)>,
    /// Anything else that is worth a line.
    pub notes: Vec<String>,
}

impl Tally {
    /// Nothing tried yet.
    pub fn of(title: impl Into<String>) -> Tally {
        Tally {
            title: title.into(),
            ..Tally::default()
        }
    }

    /// One trial more, with what was wrong about it.
    pub fn take(&mut self, name: impl Into<String>, wrong: Vec<String>) {
        self.trials += 1;
        if wrong.is_empty() {
            return;
        }
        self.failures += 1;
        if self.told.len() < TOLD {
            self.told.push((name.into(), wrong));
        }
    }

    /// Adds to what is counted beside.
    pub fn count(&mut self, what: &'static str, by: u64) {
        match self.counted.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += by,
            None => self.counted.push((what, by)),
        }
    }

    /// What was counted beside under this name.
    pub fn counted(&self, what: &str) -> u64 {
        let found = self.counted.iter().find(|(name, _)| *name == what);
        found.map_or(0, |(_, count)| *count)
    }

    /// With 95 % certainty it fails no more often than this, as a share of the trials.
    pub fn bound(&self) -> f64 {
        upper_bound(self.trials, self.failures)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = percent(self.bound());
        write!(
            f,
            "{}: {} trials, {} failures, 95 % bound {bound}",
            self.title, self.trials, self.failures
        )?;
        for (what, count) in &self.counted {
            write!(f, ", {count} {what}")?;
        }
        for note in &self.notes {
            write!(f, "\n  {note}")?;
        }
        for (name, wrong) in &self.told {
            write!(f, "\n  FAILED {name}")?;
            for line in wrong {
                write!(f, "\n    {}", shortened(line))?;
            }
        }
        Ok(())
    }
}

/// The rate below which, with 95 % certainty, something lies that failed so often in so many trials: where the
/// chance to see no more failures than these is 5 %.
pub(crate) fn upper_bound(trials: u64, failures: u64) -> f64 {
    const CHANCE: f64 = 0.05;
    if failures >= trials {
        return 1.0;
    }
    let (mut low, mut high) = (failures as f64 / trials as f64, 1.0);
    // Each step halves the interval: after 60 it is smaller than what a float can tell apart.
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match at_most(trials, failures, middle) > CHANCE {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The chance of no more than so many failures, if each trial fails at this rate.
fn at_most(trials: u64, failures: u64, rate: f64) -> f64 {
    // Each term from the one before it, in logarithms: the first alone may be too small for a float.
    let mut term = trials as f64 * (-rate).ln_1p();
    let mut sum = term.exp();
    for k in 0..failures {
        let odds = (trials - k) as f64 / (k + 1) as f64 * rate / (1.0 - rate);
        term += odds.ln();
        sum += term.exp();
    }
    sum
}

/// With as many digits as it has something to say.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent >= 1.0 => format!("{percent:.1} %"),
        _ if percent >= 0.01 => format!("{percent:.3} %"),
        _ => format!("{percent:.1e} %"),
    }
}

pub(crate) fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{} …", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_clopper_and_pearson() {
        // The 0.95 quantile of a beta distribution with failures + 1 and trials - failures, computed elsewhere.
        let table = [
            (1, 0, 0.95),
            (10, 0, 0.258_865_5),
            (100, 0, 0.029_513_0),
            (10_000, 0, 0.000_299_528),
            (100, 1, 0.046_559_8),
            (20, 20, 1.0),
            (0, 0, 1.0),
        ];
        for (trials, failures, bound) in table {
            let found = upper_bound(trials, failures);
            assert!(
                (found - bound).abs() < 1e-6,
                "{failures} of {trials}: {found}"
            );
        }
        let many = upper_bound(1_000_000, 500);
        assert!((0.000_5..0.000_55).contains(&many), "{many}");
    }

    #[test]
    fn a_tally_says_what_was_tried_and_what_failed() {
        let mut tally = Tally::of("doors");
        for _ in 0..300 {
            tally.take("fine", Vec::new());
        }
        tally.count("kills", 7);
        tally.count("kills", 2);
        assert_eq!(
            tally.to_string(),
            "doors: 300 trials, 0 failures, 95 % bound 0.994 %, 9 kills"
        );
        assert_eq!((tally.counted("kills"), tally.counted("doors")), (9, 0));
        tally.take("the last", vec!["it stands open".to_owned()]);
        tally.notes.push("seen from outside".to_owned());
        assert_eq!(
            tally.to_string(),
            "doors: 301 trials, 1 failures, 95 % bound 1.6 %, 9 kills\n  seen from outside\n  FAILED the last\n    it stands open"
        );
    }
}
