//! Whether every attempt in a chain was signed: what the events say of actions, followed one by one.
//!
//! It knows of an action only from its approval until its end, so that it needs memory for what is open at one time
//! and not for all that ever was.

use super::event::{Event, EventKind, Field};
use super::verify::BrokenLink;
use crate::kill::{Target, grant_scope};
use std::collections::{BTreeSet, HashMap};

/// How many actions may be open at once before a chain is not taken for a real one.
const MAX_OPEN: usize = 1 << 20;

/// Signatures that are in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Signatures {
    signed: HashMap<String, Signed>,
    kills: BTreeSet<String>,
    attempts: u64,
}

#[derive(Clone, Debug)]
struct Signed {
    digest: String,
    expires_ms: Option<u64>,
    agent: String,
    tool: Option<String>,
    reads: bool,
    /// The scope of the grant that signed it, if one did.
    grant: Option<String>,
    at: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It can be started.
    Ready,
    /// It was started, and nothing was said of it since.
    Started,
    /// Nobody knows what came of it. It may be started again once somebody has looked.
    Unknown,
}

impl Signatures {
    /// How many attempts there were.
    pub(super) fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Takes in one event, and says what is wrong with it.
    pub(super) fn see(&mut self, event: &Event) -> Result<(), BrokenLink> {
        match (event.kind, event.scope.as_deref()) {
            (EventKind::Killed | EventKind::Revoked, Some(scope)) => {
                self.withdraw(scope, &event.tenant);
                self.kills.insert(scope.to_owned());
                self.bounded()?;
            }
            (EventKind::Unkilled | EventKind::Restored, Some(scope)) => {
                // What was signed while the switch was on was signed in knowledge of it.
                self.kills.remove(scope);
            }
            _ => {}
        }
        let Some(action) = &event.action else {
            return match event.kind {
                EventKind::AttemptStarted => Err(BrokenLink::Unsigned),
                _ => Ok(()),
            };
        };
        if event.kind == EventKind::AttemptStarted {
            self.attempts = self.attempts.saturating_add(1);
            return self.start(action, event);
        }
        match event.state.as_deref() {
            Some("approved") if event.kind == EventKind::Revalidated => {
                self.postpone(action, &event.tenant);
                Ok(())
            }
            Some("approved") => self.sign(action, event),
            Some("pending" | "executing") | None => Ok(()),
            Some("unknown") => {
                if let Some(signed) = self.signed.get_mut(action)
                    && signed.at == Stage::Started
                {
                    signed.at = Stage::Unknown;
                }
                Ok(())
            }
            // It was refused, held or taken back, or it is over.
            Some(_) => {
                self.signed.remove(action);
                Ok(())
            }
        }
    }

    fn sign(&mut self, action: &str, event: &Event) -> Result<(), BrokenLink> {
        let signs = matches!(event.kind, EventKind::Proposed | EventKind::Decided);
        if !signs || self.signed.contains_key(action) {
            return Ok(());
        }
        let Some(digest) = event.digest.clone() else {
            return Err(BrokenLink::OtherBytes);
        };
        let signed = Signed {
            digest,
            expires_ms: event.expires_ms,
            agent: event.agent.clone(),
            tool: event.tool.clone(),
            reads: event.level.as_deref() == Some("read"),
            grant: match event.fields.get("grant") {
                Some(Field::Text(name)) => Some(grant_scope(&event.agent, name)),
                _ => None,
            },
            at: Stage::Ready,
        };
        self.signed.insert(action.to_owned(), signed);
        self.bounded()
    }

    /// It was claimed and not handed over: it can be started again, unless a kill switch came meanwhile.
    fn postpone(&mut self, action: &str, tenant: &str) {
        let Some(signed) = self.signed.get_mut(action) else {
            return;
        };
        match self
            .kills
            .iter()
            .any(|scope| signed.is_within(scope, tenant))
        {
            true => {
                self.signed.remove(action);
            }
            false if signed.at == Stage::Started => signed.at = Stage::Ready,
            false => {}
        }
    }

    fn start(&mut self, action: &str, event: &Event) -> Result<(), BrokenLink> {
        let Some(signed) = self.signed.get_mut(action) else {
            return Err(BrokenLink::Unsigned);
        };
        if event.digest.as_ref() != Some(&signed.digest) {
            return Err(BrokenLink::OtherBytes);
        }
        let late = signed.expires_ms.is_some_and(|until| event.at_ms >= until);
        match signed.at {
            Stage::Started => return Err(BrokenLink::StartedTwice),
            Stage::Ready if late => return Err(BrokenLink::Late),
            Stage::Ready | Stage::Unknown => signed.at = Stage::Started,
        }
        let killed = |scope: &&String| signed.is_within(scope, &event.tenant);
        match self.kills.iter().find(killed) {
            Some(scope) if signed.grant.as_ref() == Some(scope) => Err(BrokenLink::Revoked),
            Some(_) => Err(BrokenLink::Killed),
            None => Ok(()),
        }
    }

    /// A kill switch: what was signed and not started has to be signed anew.
    fn withdraw(&mut self, scope: &str, tenant: &str) {
        self.signed
            .retain(|_, signed| signed.at != Stage::Ready || !signed.is_within(scope, tenant));
    }

    fn bounded(&self) -> Result<(), BrokenLink> {
        match self.signed.len().max(self.kills.len()) > MAX_OPEN {
            true => Err(BrokenLink::TooMuchOpen),
            false => Ok(()),
        }
    }
}

impl Signed {
    fn is_within(&self, scope: &str, tenant: &str) -> bool {
        let target = Target {
            tenant,
            agent: &self.agent,
            tool: self.tool.as_deref().unwrap_or_default(),
            writes: !self.reads,
        };
        target.is_within(scope) || self.grant.as_deref() == Some(scope)
    }
}
