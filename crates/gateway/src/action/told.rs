//! What the audit is told of an action.

use super::ActionRow;
use crate::store::Draft;

impl ActionRow {
    /// An entry about this action as it is now.
    pub(crate) fn told(&self, kind: &str, at_ms: u64) -> Draft {
        let said = &self.action.said;
        let event = serde_json::json!({"kind": kind, "at_ms": at_ms, "action": self.id(), "digest": self.digest, "state": self.state, "version": self.version});
        Draft { tenant: said.run.tenant.clone(), event: event.to_string(), detail: None }
    }
}
