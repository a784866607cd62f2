//! What a user may use in one day, over all runs: limits that the store counts, since no single run knows them.
//!
//! The session asks the store (`session/daily.rs`). Days are days in UTC, by the store's clock.

use super::UNLIMITED;
use serde::{Deserialize, Serialize};

/// What a user may use on one day, in UTC, in all runs of a tenant together.
///
/// ```
/// use paraph_gateway::{DayLimits, Limits};
/// let day = DayLimits { tool_calls: 200, micro_dollars: 5_000_000, ..DayLimits::default() };
/// let limits = Limits { per_user_day: day, ..Limits::default() };
/// # let _ = limits;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DayLimits {
    /// Tool calls, also those that were denied.
    pub tool_calls: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
}

impl Default for DayLimits {
    /// No limit of any kind.
    fn default() -> DayLimits {
        DayLimits {
            tool_calls: UNLIMITED,
            tokens: UNLIMITED,
            micro_dollars: UNLIMITED,
        }
    }
}

impl DayLimits {
    /// What both allow.
    #[must_use]
    pub(super) fn stricter(self, other: DayLimits) -> DayLimits {
        DayLimits {
            tool_calls: self.tool_calls.min(other.tool_calls),
            tokens: self.tokens.min(other.tokens),
            micro_dollars: self.micro_dollars.min(other.micro_dollars),
        }
    }

    /// Whether model calls are limited.
    pub(crate) fn limits_models(self) -> bool {
        self.tokens != UNLIMITED || self.micro_dollars != UNLIMITED
    }
}

/// Which figure of a user's day is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayFigure {
    /// Tool calls.
    ToolCalls,
    /// Tokens.
    Tokens,
    /// Money.
    Money,
}

impl DayFigure {
    /// Its name in counters.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DayFigure::ToolCalls => "tool_calls",
            DayFigure::Tokens => "tokens",
            DayFigure::Money => "micro_dollars",
        }
    }

    /// The figure of this name.
    pub(crate) fn named(name: &str) -> Option<DayFigure> {
        let all = [DayFigure::ToolCalls, DayFigure::Tokens, DayFigure::Money];
        all.into_iter().find(|figure| figure.name() == name)
    }
}

/// The stop reason of a run that meets it: the same as if its own were used up.
impl std::fmt::Display for DayFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DayFigure::ToolCalls => "max_tool_calls",
            DayFigure::Tokens => "max_tokens",
            DayFigure::Money => "max_cost",
        })
    }
}
