//! Numbers of entries as a short text, `2-5,9`: how an entry names those whose details were erased.

use std::collections::BTreeSet;
use std::fmt;

/// The longest text, in bytes: what an event keeps whole.
const MAX_TEXT: usize = 900;

/// Stretches of numbers, in order, which do not touch one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// Numbers in rising order, in as many parts as it takes for each to have a short text.
    pub(crate) fn parts(numbers: &[u64]) -> Vec<Spans> {
        let mut parts = Vec::new();
        let mut part = Spans::default();
        for number in numbers {
            match part.0.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
                _ => {
                    if part.to_string().len() > MAX_TEXT - 42 {
                        parts.push(std::mem::take(&mut part));
                    }
                    part.0.push((*number, *number));
                }
            }
        }
        parts.push(part);
        parts.retain(|part| !part.0.is_empty());
        parts
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        let sizes = self.0.iter().map(|(first, last)| last - first + 1);
        sizes.fold(0, u64::saturating_add)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Reads a text; nothing if it is none. However much it names, reading it costs no more than its length.
    pub(crate) fn read(text: &str) -> Option<Spans> {
        let span = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some((first, last))
        };
        text.split(',').map(span).collect::<Option<_>>().map(Spans)
    }

    /// Takes out of a set what is named here.
    pub(crate) fn remove_from(&self, set: &mut BTreeSet<u64>) {
        for (first, last) in &self.0 {
            let within: Vec<u64> = set.range(*first..=*last).copied().collect();
            for number in within {
                set.remove(&number);
            }
        }
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (first, last)) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str(",")?;
            }
            match first == last {
                true => write!(f, "{first}")?,
                false => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_short_text_that_reads_back() {
        let table: [(&[u64], &str); 4] = [
            (&[], ""),
            (&[7], "7"),
            (&[1, 2, 3, 5, 8, 9], "1-3,5,8-9"),
            (
                &[u64::MAX - 1, u64::MAX],
                "18446744073709551614-18446744073709551615",
            ),
        ];
        for (numbers, text) in table {
            let parts = Spans::parts(numbers);
            let written: Vec<_> = parts.iter().map(ToString::to_string).collect();
            assert_eq!(written.join("|"), text);
            let all: Vec<u64> = parts.iter().flat_map(Spans::all).collect();
            assert_eq!(all, numbers);
            for part in parts {
                assert_eq!(Spans::read(&part.to_string()), Some(part));
            }
        }
        for odd in ["", "x", "5-2", "1,,2", "1-", "-1", "1 -2"] {
            assert_eq!(Spans::read(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_does_not_fit_into_one_text_is_in_several() {
        let numbers: Vec<u64> = (0..1_000).map(|n| u64::MAX - 3 * (1_000 - n)).collect();
        let parts = Spans::parts(&numbers);
        assert!(parts.iter().all(|part| part.to_string().len() <= MAX_TEXT));
        let all: Vec<u64> = parts.iter().flat_map(Spans::all).collect();
        assert_eq!(all, numbers);
        let count: u64 = parts.iter().map(Spans::count).sum();
        assert_eq!(count, 1_000);
        let mut set: BTreeSet<u64> = numbers.iter().copied().chain([3]).collect();
        for part in &parts {
            part.remove_from(&mut set);
        }
        assert_eq!(set, BTreeSet::from([3]));
    }
}
