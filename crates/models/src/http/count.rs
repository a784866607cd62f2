//! How many tokens an answer cost, as servers write it. Called by what reads the answers of the providers.
//!
//! An answer is worth more than what is said of its cost: a count that is none is taken as not said, and never throws
//! the answer away.

use std::collections::BTreeMap;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

/// Whole numbers from zero, however they are written: `5` and `5.0`, and nothing else.
fn number(value: &Value) -> Option<u64> {
    /// Above it, a float no longer says which number it is.
    const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    let whole = |float: f64| (0.0..=EXACT).contains(&float) && float.fract() == 0.0;
    let float = || value.as_f64().filter(|float| whole(*float));
    value.as_u64().or_else(|| float().map(|float| float as u64))
}

/// A count, or nothing where the server wrote something else.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(number(&Value::deserialize(from)?))
}

/// Counts by their names, without what is no count.
pub(crate) fn counts<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, u64>, D::Error> {
    let Value::Object(entries) = Value::deserialize(from)? else {
        return Ok(BTreeMap::new());
    };
    let counted = |(name, value): (String, Value)| Some((name, number(&value)?));
    Ok(entries.into_iter().filter_map(counted).collect())
}

/// A record of counts, or nothing where the server wrote something else.
pub(crate) fn record<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}
