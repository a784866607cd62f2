//! [`Pause`]: the whole client waits when GitHub says that there were too many requests.
//!
//! All clones of a client share one. Whoever is about to send something passes here first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::fault::GitHubFault;
use super::heads::Limit;
use super::moment;

/// Who is told, in one line, what is waited for.
pub type GitHubProgress = Arc<dyn Fn(&str) + Send + Sync>;

/// The pause of one client.
pub(super) struct Pause {
    state: Mutex<State>,
    /// The longest time that is waited at once; what would take longer is an error.
    patience: Duration,
    progress: Option<GitHubProgress>,
}

#[derive(Default)]
struct State {
    until: Option<(Instant, bool)>,
    /// How many limits there were in a row that had no end to read.
    strikes: u32,
}

impl Pause {
    pub(super) fn new(patience: Duration, progress: Option<GitHubProgress>) -> Pause {
        Pause {
            state: Mutex::default(),
            patience,
            progress,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often in a row it was put on.
    pub(super) fn strikes(&self) -> u32 {
        self.state().strikes
    }

    /// Puts it on; a later end of an earlier limit stays.
    pub(super) fn begin(&self, limit: Limit, refused: bool) {
        let end = Instant::now() + Duration::from_secs(limit.seconds.min(24 * 3_600));
        let mut state = self.state();
        state.strikes = state.strikes.saturating_add(u32::from(refused));
        if state.until.is_none_or(|(until, _)| until < end) {
            state.until = Some((end, limit.secondary));
        }
    }

    /// An answer that was no limit.
    pub(super) fn calm(&self) {
        self.state().strikes = 0;
    }

    /// How long there is to wait, and whether for the limit of bursts.
    pub(super) fn left(&self) -> Option<(Duration, bool)> {
        let mut state = self.state();
        let (until, secondary) = state.until?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.until = None;
            return None;
        }
        Some((left, secondary))
    }

    /// Waits until it is over. The error is a limit that is not waited for.
    pub(super) async fn pass(&self) -> Result<(), GitHubFault> {
        while let Some((left, secondary)) = self.left() {
            // Rounded up: what is shown is never too early.
            let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
            if left > self.patience {
                return Err(GitHubFault::Limited {
                    until: moment::now() + seconds,
                    secondary,
                });
            }
            self.tell(&format!(
                "GitHub's {} is used up: waiting {seconds} s",
                match secondary {
                    true => "limit for many requests at once",
                    false => "hourly limit",
                }
            ));
            tokio::time::sleep(left).await;
        }
        Ok(())
    }

    /// Tells whoever listens.
    pub(super) fn tell(&self, what: &str) {
        if let Some(progress) = &self.progress {
            progress(what);
        }
    }
}
