//! How long something is tried again, and with which pauses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(15);
const LONGEST: Duration = Duration::from_millis(500);

/// Pauses that grow, and an end.
pub(super) struct Patience {
    all: Duration,
    next: Duration,
}

impl Patience {
    pub(super) fn new(all: Duration) -> Self {
        Patience { all, next: FIRST }
    }

    /// Whether nothing failed yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.next == FIRST
    }

    /// Whether whoever began then has waited long enough.
    pub(super) fn is_over(&self, since: Instant) -> bool {
        since.elapsed() >= self.all
    }

    /// A pause, longer than the one before; not the same for all who began together.
    pub(super) async fn wait(&mut self) {
        // Clocks of two lanes or machines never agree to the nanosecond.
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let spread = f64::from(clock.unwrap_or_default().subsec_nanos() % 997) / 997.0;
        tokio::time::sleep(self.next.mul_f64(0.75 + spread / 2.0)).await;
        self.next = (self.next * 2).min(LONGEST);
    }
}
