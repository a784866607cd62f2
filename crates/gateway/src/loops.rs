//! Whether a model asks for what it has already asked for. Pure: signatures in, a verdict out.
//!
//! The session's book notes each call here before it runs.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// How loops are detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopRule {
    /// The same tool with the same arguments is a loop.
    #[default]
    Exact,
    /// As exact, but arguments that differ only in the spaces inside strings are the same.
    Soft,
    /// Repeats are allowed; a series of one to four calls that comes twice in a row is a loop.
    Cycle,
    /// Nothing is a loop.
    Off,
}

impl fmt::Display for LoopRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LoopRule::Exact => "exact",
            LoopRule::Soft => "soft",
            LoopRule::Cycle => "cycle",
            LoopRule::Off => "off",
        })
    }
}

impl FromStr for LoopRule {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<LoopRule, crate::Error> {
        [
            LoopRule::Exact,
            LoopRule::Soft,
            LoopRule::Cycle,
            LoopRule::Off,
        ]
        .into_iter()
        .find(|rule| rule.to_string() == text)
        .ok_or_else(|| crate::Error::UnknownLoopRule(text.to_owned()))
    }
}

const LONGEST_CYCLE: usize = 4;

/// The calls so far, as far as loops are concerned.
#[derive(Debug)]
pub(crate) struct Watch {
    rule: LoopRule,
    /// Whose key had a signature first: that call may come again, as itself.
    first: HashMap<String, String>,
    /// The last calls, oldest first.
    recent: Vec<String>,
}

impl Watch {
    pub(crate) fn new(rule: LoopRule) -> Watch {
        Watch {
            rule,
            first: HashMap::new(),
            recent: Vec::new(),
        }
    }

    pub(crate) fn rule(&self) -> LoopRule {
        self.rule
    }

    /// Notes a call and says whether it closes a loop. A call that does is not noted.
    pub(crate) fn note(&mut self, key: &str, signature: String) -> bool {
        match self.rule {
            LoopRule::Off => false,
            LoopRule::Exact | LoopRule::Soft => {
                self.first
                    .entry(signature)
                    .or_insert_with(|| key.to_owned())
                    != key
            }
            LoopRule::Cycle => self.closes_cycle(signature),
        }
    }

    fn closes_cycle(&mut self, signature: String) -> bool {
        self.recent.push(signature);
        let calls = &self.recent;
        let repeats = |period: usize| {
            let newest_first = calls.iter().rev();
            calls.len() >= 2 * period
                && newest_first
                    .clone()
                    .take(period)
                    .eq(newest_first.skip(period).take(period))
        };
        let closes = (1..=LONGEST_CYCLE).any(repeats);
        if closes {
            self.recent.pop();
        } else if self.recent.len() > 2 * LONGEST_CYCLE {
            self.recent.remove(0);
        }
        closes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the calls, named by letters and each with a key of its own, close a loop.
    fn closes(rule: LoopRule, calls: &str) -> String {
        let mut watch = Watch::new(rule);
        let mut verdicts = String::new();
        for (i, call) in calls.chars().enumerate() {
            let closes = watch.note(&format!("key-{i}"), call.to_string());
            verdicts.push(if closes { '!' } else { '.' });
        }
        verdicts
    }

    #[test]
    fn exact_closes_at_any_repeat() {
        assert_eq!(closes(LoopRule::Exact, "abcabd"), "...!!.");
    }

    #[test]
    fn the_key_that_was_first_is_no_loop() {
        let mut watch = Watch::new(LoopRule::Exact);
        let verdicts = ["k1", "k1", "k2", "k1"].map(|key| watch.note(key, "get:same".to_owned()));
        assert_eq!(verdicts, [false, false, true, false]);
    }

    #[test]
    fn cycle_closes_when_a_series_of_up_to_four_comes_twice_in_a_row() {
        let table = [
            ("aa", ".!"),
            ("abab", "...!"),
            ("abcabc", ".....!"),
            ("abcdabcd", ".......!"),
            ("abcdeabcde", ".........."),
            ("abacab", "......"),
            ("xabab", "....!"),
            // What was refused is not part of the series.
            ("aaab", ".!!."),
        ];
        for (calls, expected) in table {
            assert_eq!(closes(LoopRule::Cycle, calls), expected, "{calls}");
        }
    }

    #[test]
    fn off_never_closes() {
        assert_eq!(closes(LoopRule::Off, "aaaa"), "....");
    }

    #[test]
    fn rules_read_back_as_themselves() {
        for rule in ["exact", "soft", "cycle", "off"] {
            assert_eq!(rule.parse::<LoopRule>().unwrap().to_string(), rule);
        }
        assert_eq!(
            "fuzzy".parse::<LoopRule>().unwrap_err().to_string(),
            "`fuzzy` is no loop rule; there are exact, soft, cycle and off"
        );
    }
}
