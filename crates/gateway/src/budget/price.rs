//! What a model costs, as the configuration says. There is no built-in price: prices change.

use super::Spend;
use serde::{Deserialize, Serialize};

/// The price of a model.
///
/// ```
/// use paraph_gateway::{Price, Spend};
/// // 0.40 and 1.60 US dollars per million tokens.
/// let price = Price { input: 400_000, output: 1_600_000, source: "our contract, 2026-11-01".into() };
/// let spend = price.spend(1_000, 500);
/// assert_eq!(spend, Spend { tokens: 1_500, micro_dollars: Some(1_200) });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Millionths of a US dollar for a million tokens sent.
    pub input: u64,
    /// Millionths of a US dollar for a million tokens received.
    pub output: u64,
    /// Where the figures are from, and of which day.
    pub source: String,
}

impl Price {
    /// The cost of one model call, rounded up to a millionth of a US dollar.
    pub fn spend(&self, input_tokens: u64, output_tokens: u64) -> Spend {
        let cost = u128::from(self.input) * u128::from(input_tokens)
            + u128::from(self.output) * u128::from(output_tokens);
        Spend {
            tokens: input_tokens.saturating_add(output_tokens),
            micro_dollars: Some(u64::try_from(cost.div_ceil(1_000_000)).unwrap_or(u64::MAX)),
        }
    }

    /// The same without a price: the tokens count, and that the cost is not known.
    pub fn unknown(input_tokens: u64, output_tokens: u64) -> Spend {
        Spend {
            tokens: input_tokens.saturating_add(output_tokens),
            micro_dollars: None,
        }
    }
}
