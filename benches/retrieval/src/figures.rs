//! Ranks of known duplicates as shares, with their intervals.

use paraph_retrieval::{interval, upper_bound};

/// The ranks of the first known duplicates, from 1; none where it was not among those looked at.
#[derive(Clone, Default)]
pub(crate) struct Ranks(Vec<Option<usize>>);

impl Ranks {
    pub(crate) fn push(&mut self, rank: Option<usize>) {
        self.0.push(rank);
    }

    fn within(&self, most: usize) -> u64 {
        self.0
            .iter()
            .flatten()
            .filter(|rank| **rank <= most)
            .count() as u64
    }

    fn line(&self) -> String {
        let all = self.0.len() as u64;
        let share = |most: usize| {
            let (low, high) = interval(self.within(most), all);
            format!(
                "{:.3} [{low:.2}, {high:.2}]",
                self.within(most) as f64 / (all as f64).max(1.0)
            )
        };
        let reciprocal: f64 = self.0.iter().flatten().map(|rank| 1.0 / *rank as f64).sum();
        let shares: Vec<String> = [1, 3, 5, 10, 20].map(share).to_vec();
        format!(
            "{}  MRR {:.3}",
            shares.join("  "),
            reciprocal / (all as f64).max(1.0)
        )
    }
}

/// The ranks of both halves of the clusters.
#[derive(Default)]
pub(crate) struct Halves {
    even: Ranks,
    odd: Ranks,
}

impl Halves {
    pub(crate) fn of(&mut self, odd: bool) -> &mut Ranks {
        if odd { &mut self.odd } else { &mut self.even }
    }
}

/// R@1, R@3, R@5, R@10, R@20 and MRR, for the half on which constants were chosen, the other, and all.
pub(crate) fn print_ranks(method: &str, halves: &Halves) {
    let all = Ranks(halves.even.0.iter().chain(&halves.odd.0).copied().collect());
    for (half, ranks) in [
        ("chosen on", &halves.even),
        ("held out", &halves.odd),
        ("all", &all),
    ] {
        println!(
            "  {method:8} {half:10} n={:<4} {}",
            ranks.0.len(),
            ranks.line()
        );
    }
}

/// How many foreign queries passed the topical floor that was fitted on others.
pub(crate) fn print_pass(how: &str, passed: u64, asked: u64) {
    println!(
        "  by {how}: {passed} of {asked} foreign queries that were held out pass the topical floor ({:.2} %, upper bound {:.2} %)",
        100.0 * passed as f64 / (asked as f64).max(1.0),
        100.0 * upper_bound(passed, asked)
    );
}
