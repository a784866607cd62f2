//! Chains as a gateway makes them: the lives of several actions, mixed.

use super::super::*;
use std::collections::BTreeMap;

/// A chain in memory, as a store keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) tenant: String,
    pub(crate) entries: Vec<AuditEntry>,
}

impl Chain {
    pub(crate) fn new(tenant: &str) -> Chain {
        Chain {
            tenant: tenant.to_owned(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, draft: Draft) {
        assert_eq!(draft.tenant(), self.tenant);
        let head = self.entries.last().map(AuditEntry::head);
        self.entries.push(AuditEntry::link(head.as_ref(), draft));
    }

    /// An anchor of one of its entries.
    pub(crate) fn anchor(&self, seq: usize) -> Anchor {
        Anchor::new(self.tenant.as_str(), &self.entries[seq - 1].head(), 5)
    }

    /// The chain as somebody who owns it would write it anew after changing it: every hash is right.
    pub(crate) fn sealed_anew(&self) -> Chain {
        let mut new = Chain::new(&self.tenant);
        for entry in &self.entries {
            let draft = Draft {
                tenant: self.tenant.clone(),
                event: entry.event.clone(),
                detail: entry.detail.clone(),
            };
            new.add(draft);
        }
        new
    }
}

/// An event about an action of the agent `support` and the tool `pay`.
pub(crate) fn about(kind: EventKind, tenant: &str, action: &str) -> Event {
    Event {
        agent: "support".into(),
        thread: "case-7".into(),
        run: "r1".into(),
        action: Some(action.into()),
        digest: Some(crate::call::sha256(&format!(
            "paraph/action/v1{}",
            bytes_of(tenant, action)
        ))),
        tool: Some("pay".into()),
        level: Some("write".into()),
        ..Event::new(kind, tenant, 7)
    }
}

/// The bytes of an action, as far as the audit knows them.
pub(crate) fn bytes_of(tenant: &str, action: &str) -> String {
    format!(r#"{{"args":{{"cents":42}},"id":"{action}","tenant":"{tenant}"}}"#)
}

/// Every life of an action that has an attempt, and some that have none.
pub(crate) const LIVES: [&[(EventKind, &str)]; 5] = [
    &[
        (EventKind::Proposed, "pending"),
        (EventKind::Shown, "pending"),
        (EventKind::Decided, "approved"),
        (EventKind::AttemptStarted, "executing"),
        (EventKind::ProviderReplied, "succeeded"),
    ],
    &[
        (EventKind::Proposed, "pending"),
        (EventKind::Decided, "approved"),
        (EventKind::AttemptStarted, "executing"),
        (EventKind::Unknown, "unknown"),
        (EventKind::AttemptStarted, "executing"),
        (EventKind::ProviderReplied, "succeeded"),
    ],
    &[
        (EventKind::Proposed, "pending"),
        (EventKind::Decided, "rejected"),
    ],
    &[
        (EventKind::Proposed, "approved"),
        (EventKind::AttemptStarted, "executing"),
        (EventKind::ProviderReplied, "failed"),
    ],
    &[
        (EventKind::Proposed, "pending"),
        (EventKind::Expired, "expired"),
    ],
];

/// A chain of these lives: each number says whose life goes on with its next event.
pub(crate) fn mixed(tenant: &str, lives: &[usize], turns: &[usize]) -> Chain {
    let mut chain = Chain::new(tenant);
    let mut at = vec![0; lives.len()];
    for turn in turns
        .iter()
        .copied()
        .chain(lives.iter().flat_map(|_| 0..lives.len()).cycle())
    {
        if lives.is_empty()
            || at
                .iter()
                .zip(lives)
                .all(|(at, life)| *at == LIVES[*life].len())
        {
            break;
        }
        let who = turn % lives.len();
        let Some((kind, state)) = LIVES[lives[who]].get(at[who]) else {
            continue;
        };
        at[who] += 1;
        let event = Event {
            state: Some((*state).to_owned()),
            ..about(*kind, tenant, &format!("a{who}"))
        };
        let event = event.with("version", at[who] as u64);
        let by = BTreeMap::from([("by".to_owned(), Field::from("ann"))]);
        chain.add(match kind {
            EventKind::Decided => event.draft_salted(by, [who as u8; 16].into()),
            _ => event.draft(),
        });
    }
    chain
}
