//! What happened, before it has its place: the event itself, and what is personal about it.
//!
//! The event is hashed and stays for ever, so nothing personal is in it. Who it was, their reasons and other texts go
//! into the detail, which stands beside the chain: the event has only its hash, and erasing the detail leaves the
//! chain whole. A random salt in the detail keeps anybody from guessing it back from the hash.

use super::{ascii, is_hash};
use crate::call::sha256;
use crate::canonical::{self, Numbers, canonical_of};
use crate::record::RunRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Bytes of one text in an event; more is cut, with its length and hash in place of the rest.
const MAX_TEXT: usize = 1 << 10;
/// Bytes of one text in a detail.
const MAX_DETAIL_TEXT: usize = 32 << 10;
/// How many fields an event has at most.
const MAX_FIELDS: usize = 32;
/// How many fields a detail has at most.
const MAX_DETAIL_FIELDS: usize = 16;

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// An action was made of a call.
    Proposed,
    /// An action was shown to somebody.
    Shown,
    /// A person decided, or gave one of several votes.
    Decided,
    /// A rule denied a call.
    PolicyDecided,
    /// A signed action was looked at once more: nothing spoke against starting it, or nobody could tell yet.
    Revalidated,
    /// What was signed is not what would happen.
    Drifted,
    /// An action is handed to its effect.
    AttemptStarted,
    /// The effect came back.
    ProviderReplied,
    /// Nobody knows what came of an attempt.
    Unknown,
    /// Somebody or something found out what came of it.
    Reconciled,
    /// A kill switch came before the start, or whoever signed may not any more.
    Held,
    /// Nobody decided, or nobody started it, in time.
    Expired,
    /// A run was ended before the start.
    Cancelled,
    /// A later action about the same took an action's place.
    Superseded,
    /// A person lets a closed subject be asked for again.
    Reopened,
    /// A kill switch was put on.
    Killed,
    /// A kill switch was taken off.
    Unkilled,
    /// A standing grant was revoked.
    Revoked,
    /// A standing grant that was revoked is in force again.
    Restored,
    /// A grant's allowance was used.
    Budget,
    /// A conversation was repaired before a model saw it.
    HistoryRepaired,
    /// Details were erased.
    Erased,
    /// The head of the chain was written down elsewhere.
    Anchored,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [EventKind; 23] = [
        EventKind::Proposed,
        EventKind::Shown,
        EventKind::Decided,
        EventKind::PolicyDecided,
        EventKind::Revalidated,
        EventKind::Drifted,
        EventKind::AttemptStarted,
        EventKind::ProviderReplied,
        EventKind::Unknown,
        EventKind::Reconciled,
        EventKind::Held,
        EventKind::Expired,
        EventKind::Cancelled,
        EventKind::Superseded,
        EventKind::Reopened,
        EventKind::Killed,
        EventKind::Unkilled,
        EventKind::Revoked,
        EventKind::Restored,
        EventKind::Budget,
        EventKind::HistoryRepaired,
        EventKind::Erased,
        EventKind::Anchored,
    ];

    /// Its name, as events have it.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Proposed => "proposed",
            EventKind::Shown => "shown",
            EventKind::Decided => "decided",
            EventKind::PolicyDecided => "policy_decided",
            EventKind::Revalidated => "revalidated",
            EventKind::Drifted => "drifted",
            EventKind::AttemptStarted => "attempt_started",
            EventKind::ProviderReplied => "provider_replied",
            EventKind::Unknown => "unknown",
            EventKind::Reconciled => "reconciled",
            EventKind::Held => "held",
            EventKind::Expired => "expired",
            EventKind::Cancelled => "cancelled",
            EventKind::Superseded => "superseded",
            EventKind::Reopened => "reopened",
            EventKind::Killed => "killed",
            EventKind::Unkilled => "unkilled",
            EventKind::Revoked => "revoked",
            EventKind::Restored => "restored",
            EventKind::Budget => "budget",
            EventKind::HistoryRepaired => "history_repaired",
            EventKind::Erased => "erased",
            EventKind::Anchored => "anchored",
        }
    }
}

/// A plain value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Field {
    /// Yes or no.
    Bool(bool),
    /// A count, a version, an amount in cents.
    Number(u64),
    /// A text. In an event it holds nothing personal.
    Text(String),
}

impl From<bool> for Field {
    fn from(yes: bool) -> Field {
        Field::Bool(yes)
    }
}

impl From<u64> for Field {
    fn from(number: u64) -> Field {
        Field::Number(number)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Field {
        Field::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Field {
        Field::Text(text)
    }
}

/// Something that happened. What is empty is left out of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What kind of thing.
    pub kind: EventKind,
    /// Whose chain it belongs to.
    pub tenant: String,
    /// When, in milliseconds since the Unix epoch, by the clock of who says so.
    pub at_ms: u64,
    /// The agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The thread.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thread: String,
    /// The run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub run: String,
    /// The action's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The digest of the action's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Where the action stands after this, by the state's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool's level, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// What a kill switch stops: `global`, `writes`, `agent:NAME`, `tool:NAME` or `tenant:NAME`. Of a grant that was
    /// revoked `grant:AGENT/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Until when the action may be started, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Anything else, at most 32 of it. Nothing personal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Field>,
    /// SHA-256 of the detail's text. [`Event::draft_with`] fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Event {
    /// Something that happened to a tenant.
    pub fn new(kind: EventKind, tenant: impl Into<String>, at_ms: u64) -> Event {
        Event {
            kind,
            tenant: tenant.into(),
            at_ms,
            agent: String::new(),
            thread: String::new(),
            run: String::new(),
            action: None,
            digest: None,
            state: None,
            tool: None,
            level: None,
            scope: None,
            expires_ms: None,
            fields: BTreeMap::new(),
            detail: None,
        }
    }

    /// Something that happened in a run.
    pub fn of_run(kind: EventKind, run: &RunRef, at_ms: u64) -> Event {
        Event {
            agent: run.agent.clone(),
            thread: run.thread.clone(),
            run: run.run.clone(),
            ..Event::new(kind, run.tenant.clone(), at_ms)
        }
    }

    /// The same with one more field, which holds nothing personal.
    pub fn with(mut self, name: &str, value: impl Into<Field>) -> Event {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// Ready to be chained, without anything personal.
    pub fn draft(mut self) -> Draft {
        self.detail = None;
        self.written(None)
    }

    /// Ready to be chained, with a detail of at most 16 fields beside the chain.
    pub fn draft_with(self, detail: BTreeMap<String, Field>) -> Draft {
        self.draft_salted(detail, Salt::fresh())
    }

    /// As [`Event::draft_with`], with a salt of one's own, which must not be used twice.
    pub fn draft_salted(mut self, said: BTreeMap<String, Field>, salt: Salt) -> Draft {
        let detail = DetailText {
            said: bounded(said, MAX_DETAIL_FIELDS, MAX_DETAIL_TEXT),
            salt: salt.0,
        };
        let detail = one_line(&detail);
        self.detail = Some(sha256(&detail));
        self.written(Some(detail))
    }

    fn written(mut self, detail: Option<String>) -> Draft {
        for text in [
            &mut self.tenant,
            &mut self.agent,
            &mut self.thread,
            &mut self.run,
        ] {
            cut(text, MAX_TEXT);
        }
        for text in [
            &mut self.action,
            &mut self.digest,
            &mut self.state,
            &mut self.tool,
            &mut self.level,
            &mut self.scope,
        ] {
            text.iter_mut().for_each(|text| cut(text, MAX_TEXT));
        }
        self.fields = bounded(self.fields, MAX_FIELDS, MAX_TEXT);
        Draft {
            event: one_line(&self),
            tenant: self.tenant,
            detail,
        }
    }

    /// Reads the text of a chained event. Whatever is not spelled as [`Event::draft`] does is refused, so that each
    /// event has one text.
    pub fn read(text: &str) -> Result<Event, String> {
        let json = canonical::read(text).map_err(|error| error.to_string())?;
        let again = canonical::canonical(&json, Numbers::IntegersOnly)
            .map_err(|error| error.to_string())?;
        if ascii(&again) != text {
            return Err("it is not spelled canonically".to_owned());
        }
        let event: Event = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match event.detail.as_deref().is_none_or(is_hash) {
            true => Ok(event),
            false => Err("the hash of its detail is none".to_owned()),
        }
    }
}

/// An event that waits for its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub(super) tenant: String,
    pub(super) event: String,
    pub(super) detail: Option<String>,
}

impl Draft {
    /// Whose chain it belongs to: the store links it to the last entry of that chain.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }
}

/// Sixteen random bytes that make the hash of a detail tell nothing about it.
#[derive(Clone, PartialEq, Eq)]
pub struct Salt(String);

impl Salt {
    /// A new one, from the operating system.
    pub fn fresh() -> Salt {
        let mut bytes = [0; 16];
        #[expect(
            clippy::expect_used,
            reason = "without the system's random numbers no id and no TLS connection can be made either"
        )]
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Salt::from(bytes)
    }
}

impl From<[u8; 16]> for Salt {
    fn from(bytes: [u8; 16]) -> Salt {
        let mut digits = String::with_capacity(32);
        for byte in bytes {
            // Writing into a string cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        Salt(digits)
    }
}

/// Not its digits: they are as secret as the detail.
impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Salt")
    }
}

#[derive(Serialize)]
struct DetailText {
    said: BTreeMap<String, Field>,
    salt: String,
}

/// The one text of a value of texts, integers and booleans.
fn one_line(value: &impl Serialize) -> String {
    #[expect(
        clippy::expect_used,
        reason = "texts, integers and booleans whose sizes were bounded before have a canonical text"
    )]
    let text = canonical_of(value, Numbers::IntegersOnly).expect("a bounded value of plain parts");
    ascii(&text)
}

fn bounded(fields: BTreeMap<String, Field>, count: usize, bytes: usize) -> BTreeMap<String, Field> {
    let cut_one = |(mut name, mut value): (String, Field)| {
        cut(&mut name, MAX_TEXT);
        if let Field::Text(text) = &mut value {
            cut(text, bytes);
        }
        (name, value)
    };
    fields.into_iter().take(count).map(cut_one).collect()
}

/// Keeps the beginning of a long text and says how long it was and what its hash is.
fn cut(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        let rest = format!("… ({} bytes, SHA-256 {})", text.len(), sha256(text));
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(rest.len())));
        text.push_str(&rest);
    }
}
