//! Erases what is personal beside the chain of the audit. The entries stay, and the chain stays whole; who erased what
//! is told in it.

use super::deciding::reason;
use super::{ApprovalError, Approvals};
use crate::action::{ActionId, Person, Signer};
use crate::audit::{AuditEntry, Event, EventKind, Field, Spans};
use crate::redact::{Redaction, Redactor};
use crate::store::{Change, Erase};
use serde_json::Value;
use std::collections::BTreeSet;

/// How many entries are read at a time.
const PAGE: usize = 500;

/// How many details are erased in one commit, which is told in one entry.
const BATCH: usize = 500;

/// Whose personal data are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All that was said about one action.
    Action(ActionId),
    /// All that was said about the actions that were asked for on somebody's behalf, and wherever they themselves
    /// decided, were shown something, or used a switch.
    User(String),
    /// All that was said about the actions that are about this, such as `order:7`.
    Subject(String),
}

impl Approvals {
    /// The numbers of a tenant's entries that have something personal of somebody beside them.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn personal(&self, tenant: &str, whose: &Whose) -> Result<Vec<u64>, ApprovalError> {
        let mut search = Search {
            whose,
            redacted: match whose {
                Whose::Subject(subject) => Redactor::new(&Redaction::default()).said(subject),
                Whose::Action(_) | Whose::User(_) => String::new(),
            },
            actions: BTreeSet::new(),
        };
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = self.store.audit(tenant, after, PAGE).await?;
            for entry in &page {
                after = entry.seq;
                if search.concerns(entry) {
                    found.push(entry.seq);
                }
            }
            if page.len() < PAGE {
                return Ok(found);
            }
        }
    }

    /// Erases for ever what is personal of somebody beside a tenant's chain, and says of how many entries. The chain
    /// tells which entries, who erased and why, and not whom it was about. What is erased already is not erased again.
    ///
    /// # Errors
    /// [`ApprovalError::NoReason`], [`ApprovalError::TooLong`], [`ApprovalError::Store`].
    pub async fn erase(
        &self,
        tenant: &str,
        whose: &Whose,
        by: impl Into<Person>,
        why: &str,
    ) -> Result<usize, ApprovalError> {
        let (by, why) = (Signer::Person(by.into()).named(), reason(why)?);
        let found = self.personal(tenant, whose).await?;
        for batch in found.chunks(BATCH) {
            for spans in Spans::parts(batch) {
                let event = Event::new(EventKind::Erased, tenant, self.now().await?);
                let event = event.with("entries", spans.to_string());
                let event = event.with("count", spans.count());
                let event = match whose {
                    Whose::Action(id) => event.with("of", format!("action {id}")),
                    Whose::User(_) => event.with("of", "a user"),
                    Whose::Subject(_) => event.with("of", "a subject"),
                };
                let said = [("by", by.as_str()), ("why", why.as_str())];
                let said = said.map(|(name, text)| (name.to_owned(), Field::from(text)));
                let erase = spans.all().map(|seq| Erase {
                    tenant: tenant.to_owned(),
                    seq,
                });
                let change = Change {
                    audit: vec![event.draft_with(said.into())],
                    erase: erase.collect(),
                    ..Change::default()
                };
                self.store.commit(change).await?;
            }
        }
        Ok(found.len())
    }
}

/// What is looked for, on the way along a chain.
struct Search<'w> {
    whose: &'w Whose,
    /// A subject as the audit has it.
    redacted: String,
    /// The actions that are known to be meant: an action is proposed before anything else is said of it.
    actions: BTreeSet<String>,
}

impl Search<'_> {
    /// Whether what stands beside an entry is meant.
    fn concerns(&mut self, entry: &AuditEntry) -> bool {
        let (Some(detail), Ok(event)) = (&entry.detail, Event::read(&entry.event)) else {
            return false;
        };
        // Who erased something has to be known as long as that it was erased.
        if event.kind == EventKind::Erased {
            return false;
        }
        let said: Value = serde_json::from_str(detail).unwrap_or_default();
        let says = |name: &str, text: &str| said["said"][name].as_str() == Some(text);
        let action = event.action.unwrap_or_default();
        let own = match self.whose {
            Whose::Action(id) => return action == id.to_string(),
            // It stands there without secrets, however it is named now.
            Whose::Subject(subject) => says("subject", subject) || says("subject", &self.redacted),
            Whose::User(user) => says("requester", user),
        };
        if own && event.kind == EventKind::Proposed {
            self.actions.insert(action.clone());
        }
        own || self.actions.contains(&action) || self.names(&said["said"])
    }

    /// Whether a user did it, or was shown it.
    fn names(&self, said: &Value) -> bool {
        let Whose::User(user) = self.whose else {
            return false;
        };
        let spelled = [true, false].map(|verified| {
            let person = Person {
                id: user.clone(),
                verified,
            };
            Signer::Person(person).named()
        });
        let named = |name: &str| said[name].as_str();
        let is = |text: &str| text == user || spelled.iter().any(|known| known == text);
        ["by", "to"].into_iter().filter_map(named).any(is)
    }
}
