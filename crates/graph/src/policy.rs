//! How often, how long and with what fallback a node may run.

use crate::{Name, NodeError};
use std::time::Duration;

/// A node's rules; see each field. The default is one attempt without limits.
///
/// ```
/// use paraph_graph::Policy;
/// use std::time::Duration;
/// let patient = Policy { attempts: 3, timeout: Some(Duration::from_secs(5)), ..Policy::default() };
/// assert_eq!(patient.wait(1), Duration::from_millis(500));
/// assert_eq!(patient.wait(2), Duration::from_secs(1));
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    /// How often the node is tried in all, at least once. How many were made is saved, so a crash
    /// does not begin anew.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each further one.
    pub backoff: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
    /// Adds up to half of the wait, so that siblings do not return in step. It is drawn from the
    /// task's identity: the same task waits the same time.
    pub jitter: bool,
    /// Whether a failure is worth another attempt.
    pub retry_on: fn(&NodeError) -> bool,
    /// The longest time one attempt may take. It ends at the node's next `.await`; code that never
    /// awaits cannot be stopped.
    pub timeout: Option<Duration>,
    /// The longest time one attempt may show no sign of life: no event, no finished `ctx.step`, no
    /// `ctx.heartbeat`.
    pub idle: Option<Duration>,
    /// How long a result may be used again for the same state and payload. In memory, per graph. A
    /// node that reads the run's context or the memory must not have one: they are no part of the key.
    pub cache: Option<Duration>,
    /// The node that runs in place of this one when its last attempt failed, in the same superstep.
    /// The handler's own edges decide where it goes on; this node's do not count.
    pub on_error: Option<Name>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            attempts: 1,
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(128),
            jitter: false,
            retry_on: |_| true,
            timeout: None,
            idle: None,
            cache: None,
            on_error: None,
        }
    }
}

impl Policy {
    /// The wait after the `failures`th failure, without jitter.
    #[must_use]
    pub fn wait(&self, failures: u32) -> Duration {
        let factor = 2u32.saturating_pow(failures.saturating_sub(1));
        self.backoff.saturating_mul(factor).min(self.backoff_max)
    }

    /// The same with jitter, if the policy asks for it; `dice` is any number.
    pub(crate) fn wait_with(&self, failures: u32, dice: u64) -> Duration {
        let wait = self.wait(failures);
        if !self.jitter {
            return wait;
        }
        let share = u32::try_from(dice % 1024).unwrap_or(0);
        wait.saturating_add(wait.saturating_mul(share) / 2048)
    }
}
