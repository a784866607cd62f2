//! What listings show in a cell: times, ids, sizes, ages. And what people write for an age.

use paraph_graph::ThreadStatus;
use serde::Serialize;
use std::time::Duration;

/// A time in UTC, RFC 3339, from milliseconds since the Unix epoch.
pub(crate) fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => format!("{time:.3}"),
        // Beyond the year 9999.
        Err(_) => ms.to_string(),
    }
}

/// The same to the second, for a column.
pub(crate) fn short_time(ms: u64) -> String {
    let full = time(ms);
    match full.split_once('.') {
        Some((seconds, _)) => format!("{}Z", seconds.replace('T', " ")),
        None => full,
    }
}

/// Now, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// A size in the unit that fits.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = n as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).unwrap_or(&"B");
    match unit {
        0 => format!("{n} B"),
        _ => format!("{size:.1} {name}"),
    }
}

/// So many of something: `1 thread`, `2 threads`.
pub(crate) fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// What a status is called: as it is in JSON.
pub(crate) fn word(status: impl Serialize) -> String {
    match serde_json::to_value(status) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

/// A status by its name.
pub(crate) fn status<T: serde::de::DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

/// All statuses of a thread.
pub(crate) const THREAD_STATUSES: [ThreadStatus; 4] = [
    ThreadStatus::Idle,
    ThreadStatus::Busy,
    ThreadStatus::Interrupted,
    ThreadStatus::Error,
];

/// An age: a whole number and its unit, as `30d`.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no age, such as 45m, 12h, 30d or 8w");
    let text = text.trim();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number = text.strip_suffix(unit).unwrap_or(text).trim_end();
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits
        .then(|| number.parse().ok())
        .flatten()
        .ok_or_else(wrong)?;
    let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
    // As milliseconds it still fits into whatever counts them.
    match seconds.checked_mul(1_000) {
        Some(_) => Ok(Duration::from_secs(seconds)),
        None => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_a_number_and_a_unit() {
        let table = [
            ("45s", Some(45)),
            ("2m", Some(120)),
            (" 12 h ", Some(43_200)),
            ("30d", Some(2_592_000)),
            ("1w", Some(604_800)),
            ("0d", Some(0)),
            ("30", None),
            ("d", None),
            ("", None),
            ("-1d", None),
            ("1.5d", None),
            ("3dd", None),
            ("30 days", None),
            ("99999999999999999999d", None),
            ("18446744073709551615s", None),
        ];
        for (text, seconds) in table {
            assert_eq!(age(text).ok().map(|age| age.as_secs()), seconds, "{text}");
        }
    }

    #[test]
    fn times_and_sizes_are_readable() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(1_764_460_800_123), "2025-11-30T00:00:00.123Z");
        assert_eq!(short_time(1_764_460_800_123), "2025-11-30 00:00:00Z");
        assert_eq!(time(u64::MAX), i64::MAX.to_string());
        let table = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (5 << 30, "5.0 GiB"),
        ];
        for (n, expected) in table {
            assert_eq!(bytes(n), expected);
        }
    }

    #[test]
    fn statuses_are_named_as_in_json() {
        for known in THREAD_STATUSES {
            assert_eq!(status(&word(known)), Some(known));
        }
        assert_eq!(status::<ThreadStatus>("happy"), None);
    }
}
