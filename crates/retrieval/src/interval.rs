//! Bounds on a share of which so many of so many were seen, after Clopper and Pearson: exact, and never too narrow.
//!
//! Floors are fitted with them and reports give them.

/// The confidence of a bound on one side.
pub const CONFIDENCE: f64 = 0.95;

/// With 95 % confidence the share lies below this, if `seen` of `all` were seen. 1 if nothing was looked at.
///
/// ```
/// // With none of 299 seen, it is just below one in a hundred.
/// assert!(paraph_retrieval::upper_bound(0, 299) < 0.01);
/// assert!(paraph_retrieval::upper_bound(0, 298) > 0.01);
/// ```
pub fn upper_bound(seen: u64, all: u64) -> f64 {
    upper(seen, all, 1.0 - CONFIDENCE)
}

/// With 95 % confidence the share lies above this. 0 if nothing was looked at.
pub fn lower_bound(seen: u64, all: u64) -> f64 {
    lower(seen, all, 1.0 - CONFIDENCE)
}

/// The interval in which the share lies with 95 % confidence, both sides together.
pub fn interval(seen: u64, all: u64) -> (f64, f64) {
    let half = (1.0 - CONFIDENCE) / 2.0;
    (lower(seen, all, half), upper(seen, all, half))
}

fn upper(seen: u64, all: u64, alpha: f64) -> f64 {
    if seen >= all {
        return 1.0;
    }
    let binomial = Binomial::of(all);
    // The larger the share, the less likely it is to see so few.
    bisect(|share| binomial.at_most(seen, share) > alpha)
}

fn lower(seen: u64, all: u64, alpha: f64) -> f64 {
    if seen == 0 || all == 0 {
        return 0.0;
    }
    1.0 - upper(all.saturating_sub(seen), all, alpha)
}

/// Where a condition that holds for small shares ceases to hold.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match holds(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Of how many ways there are to see some of `all`, the logarithms.
struct Binomial {
    all: u64,
    ln_ways: Vec<f64>,
}

impl Binomial {
    fn of(all: u64) -> Binomial {
        let mut ln_ways = vec![0.0];
        let mut last = 0.0;
        for some in 1..=all {
            last += ((all - some + 1) as f64).ln() - (some as f64).ln();
            ln_ways.push(last);
        }
        Binomial { all, ln_ways }
    }

    /// How likely it is to see at most so many.
    fn at_most(&self, seen: u64, share: f64) -> f64 {
        if share <= 0.0 || share >= 1.0 {
            return if share <= 0.0 { 1.0 } else { 0.0 };
        }
        let (yes, no) = (share.ln(), (-share).ln_1p());
        let terms = (0..=seen).zip(&self.ln_ways).map(|(some, ways)| {
            let (some, rest) = (some as f64, (self.all - some) as f64);
            (ways + some * yes + rest * no).exp()
        });
        terms.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_tables() {
        // Two-sided 95 % intervals as statistical tables give them.
        for (seen, all, low, high) in [
            (0, 10, 0.0, 0.3085),
            (1, 10, 0.0025, 0.4450),
            (5, 10, 0.1871, 0.8129),
            (10, 10, 0.6915, 1.0),
            (3, 100, 0.0062, 0.0852),
            (50, 100, 0.3983, 0.6017),
            (8, 20, 0.1912, 0.6395),
        ] {
            let found = interval(seen, all);
            assert!(
                (found.0 - low).abs() < 1e-4 && (found.1 - high).abs() < 1e-4,
                "{seen} of {all}: {found:?}"
            );
        }
    }

    #[test]
    fn with_none_seen_the_bound_is_the_root_of_the_confidence() {
        for all in [1, 29, 299, 1_000, 20_000] {
            let exact = 1.0 - 0.05_f64.powf(1.0 / all as f64);
            assert!((upper_bound(0, all) - exact).abs() < 1e-9, "{all}");
            assert!(
                (lower_bound(all, all) - (1.0 - exact)).abs() < 1e-9,
                "{all}"
            );
        }
        assert_eq!((upper_bound(0, 0), lower_bound(0, 0)), (1.0, 0.0));
    }
}
