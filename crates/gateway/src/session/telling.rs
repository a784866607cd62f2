//! What a run did to its own conversation, as an entry of the audit.
//!
//! Called by whoever keeps the conversation. It decides nothing and runs nothing.

use super::{Session, broken};
use crate::audit::{Event, EventKind};
use crate::stop::Stop;
use crate::store::Change;

impl Session {
    /// Writes into the audit that the run's conversation could not be sent as it is kept, and was mended for that in
    /// `count` places. `unanswered` are the tools of calls without a result: whether those had an effect is not known
    /// from the conversation, and none of them was made again.
    ///
    /// # Errors
    /// [`Stop::StoreError`] if it cannot be written: a run whose audit cannot be kept does not go on.
    pub async fn history_repaired(&self, count: u64, unanswered: &[String]) -> Result<(), Stop> {
        let now_ms = self.now().await?;
        let event = Event::of_run(EventKind::HistoryRepaired, &self.0.run, now_ms)
            .with("count", count)
            .with("unanswered", unanswered.join(", "));
        let change = Change {
            audit: vec![event.draft()],
            ..Change::default()
        };
        self.commit(change).await.map_err(broken)
    }
}
