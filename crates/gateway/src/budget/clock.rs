//! A stopwatch for active time. It is told what time it is and reads no clock of its own.

use super::UNLIMITED;
use std::time::Duration;
use tokio::time::Instant;

/// Counts towards a limit, except while anybody holds a pause.
#[derive(Debug)]
pub(super) struct Stopwatch {
    limit: Duration,
    counted: Duration,
    since: Option<Instant>,
    pauses: usize,
}

impl Stopwatch {
    pub(super) fn started(seconds: u64) -> Stopwatch {
        Stopwatch {
            limit: match seconds {
                UNLIMITED => Duration::MAX,
                seconds => Duration::from_secs(seconds),
            },
            counted: Duration::ZERO,
            since: Some(Instant::now()),
            pauses: 0,
        }
    }

    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        let running = self
            .since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.counted.saturating_add(running)
    }

    /// [`Duration::MAX`] if there is no limit.
    pub(super) fn left(&self, now: Instant) -> Duration {
        match self.limit {
            Duration::MAX => Duration::MAX,
            limit => limit.saturating_sub(self.elapsed(now)),
        }
    }

    pub(super) fn add(&mut self, earlier: Duration) {
        self.counted = self.counted.saturating_add(earlier);
    }

    pub(super) fn pause(&mut self, now: Instant) {
        self.counted = self.elapsed(now);
        self.since = None;
        self.pauses += 1;
    }

    pub(super) fn resume(&mut self, now: Instant) {
        self.pauses = self.pauses.saturating_sub(1);
        if self.pauses == 0 {
            self.since = Some(now);
        }
    }
}
