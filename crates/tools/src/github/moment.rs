//! Moments as GitHub writes them: seconds since the Unix epoch, and RFC 3339 in UTC.
//!
//! Pure, but for [`now`].

use std::time::{SystemTime, UNIX_EPOCH};

/// The seconds of a day.
const DAY: u64 = 86_400;

/// Seconds since the Unix epoch by the clock of this machine.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// A moment of a header, such as `Tue, 01 Dec 2026 00:00:00 GMT`, in seconds since the Unix epoch.
pub(super) fn of_header(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// As RFC 3339: `2026-12-01T00:00:00Z`.
pub(super) fn stamp(seconds: u64) -> String {
    // What lies beyond the year 9999 is not worth a calendar.
    let seconds = seconds.min(253_402_300_799);
    let (days, rest) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}

/// The date of a day, counted from 1 January 1970, in the calendar of Gregory. Years are counted from 1 March on, so
/// that a leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097;
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / ERA, shifted % ERA);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = match from_march < 10 {
        true => from_march + 3,
        false => from_march - 9,
    };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_github_writes_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_796_083_200, "2026-12-01T00:00:00Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(stamp(seconds), text);
        }
        assert_eq!(
            of_header("Tue, 01 Dec 2026 00:00:00 GMT"),
            Some(1_796_083_200)
        );
        assert_eq!(of_header("tomorrow"), None);
    }
}
