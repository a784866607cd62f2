//! Times in a policy: instants, times of the day and days, all of them in UTC.
//!
//! Rules have hours, grants expire and count by the day. Nothing here looks at a clock.

use serde::{Deserializer, de};
use std::fmt;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// Minutes of a day.
pub(super) const DAY: u16 = 24 * 60;

/// The minute of the day, from 0 to 1439.
pub(super) fn minute_of_day(now_ms: u64) -> u16 {
    u16::try_from(now_ms % DAY_MS / MINUTE_MS).unwrap_or_default()
}

/// The day as `2026-11-30`. After Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms": years
/// begin in March, so that the day that is sometimes missing is the last.
pub(crate) fn day(now_ms: u64) -> String {
    let days = now_ms / DAY_MS + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = match month_from_march {
        0..10 => month_from_march + 3,
        _ => month_from_march - 9,
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// An instant as text, to the second: `2026-11-30T16:30:00Z`.
pub(super) fn instant_text(now_ms: u64) -> String {
    let seconds = now_ms / 1000 % 60;
    let minute = minute_of_day(now_ms);
    format!(
        "{}T{:02}:{:02}:{seconds:02}Z",
        day(now_ms),
        minute / 60,
        minute % 60
    )
}

/// Milliseconds since 1970 of an instant as policies have it, which is RFC 3339: `2026-11-30T16:30:00Z` or
/// `2026-11-30T17:30:00.5+01:00`. Nothing for another text.
///
/// ```
/// assert_eq!(paraph_gateway::instant("1970-01-01T01:00:00+01:00"), Some(0));
/// assert_eq!(paraph_gateway::instant("yesterday"), None);
/// ```
pub fn instant(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(zone)?;
    let [year, month, day] = fields::<3>(date, '-', [4, 2, 2])?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = fields::<3>(clock, ':', [2, 2, 2])?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let in_range = (1..=length).contains(&day) && hour < 24 && minute < 60 && second < 60;
    if fraction.is_empty() || !digits || !in_range || year < 1970 {
        return None;
    }
    let milliseconds: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute;
    let minutes = minutes.checked_add_signed(-offset(zone)?)?;
    Some((minutes * 60 + second) * 1000 + milliseconds)
}

/// Days from 1970 to a date from then on.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leaps = year / 4 - year / 100 + year / 400;
    365 * year + leaps + day_of_year - 719_468
}

/// Minutes by which a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(rest), _) => (1, rest),
        (None, Some(rest)) => (-1, rest),
        (None, None) => return None,
    };
    let [hours, minutes] = fields::<2>(rest, ':', [2, 2])?;
    let fine = hours < 24 && minutes < 60;
    i64::try_from(hours * 60 + minutes)
        .ok()
        .filter(|_| fine)
        .map(|ahead| sign * ahead)
}

/// Numbers of fixed width with a separator between them.
fn fields<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[u64; N]> {
    let mut parts = text.split(separator);
    let mut out = [0; N];
    for (number, width) in out.iter_mut().zip(widths) {
        let part = parts.next()?;
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part
            .parse()
            .ok()
            .filter(|_| part.len() == width && digits)?;
    }
    parts.next().is_none().then_some(out)
}

/// Minutes since midnight of `08:30`; `24:00` is the end of the day.
pub(super) fn time_of_day(text: &str) -> Option<u16> {
    let [hours, minutes] = fields::<2>(text, ':', [2, 2])?;
    let total = u16::try_from(hours * 60 + minutes).ok()?;
    (minutes < 60 && total <= DAY).then_some(total)
}

/// Reads an instant of a policy: RFC 3339, or milliseconds since 1970.
pub(super) fn read_instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(Reader)
}

/// The same where there may be none; a field that is left out has its default.
pub(super) fn read_some_instant<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_option(OptionReader)
}

struct Reader;

impl de::Visitor<'_> for Reader {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an instant such as \"2026-11-30T16:30:00Z\", or milliseconds since 1970")
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        instant(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

struct OptionReader;

impl<'de> de::Visitor<'de> for OptionReader {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Reader.expecting(f)
    }

    fn visit_none<E>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
        read_instant(deserializer).map(Some)
    }
}
