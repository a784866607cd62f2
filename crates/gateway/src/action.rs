//! An action: a proposed effect in its one form, from which it is shown, decided and executed.
//!
//! The session makes one of a call, stores keep its bytes, people decide about its digest, and the effect gets
//! arguments that are decoded from the same bytes. Nothing here waits or decides: where an action stands is a
//! [`ActionRow`], and how it may go on is in `action/machine.rs`.

mod evidence;
mod machine;
mod resolved;
mod row;
#[cfg(test)]
mod tests;
mod told;

use crate::call::sha256;
use crate::canonical::{Numbers, canonical};
use crate::json::{Bounds, Json, Shape, Style, View, quote};
use crate::record::RunRef;
use crate::tool::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use uuid::Uuid;

pub use evidence::Evidence;
pub(crate) use machine::{Refusal, Voted};
pub use resolved::{Changed, Resolved};
pub use row::{ActionRow, Ended, Person, Sending, Signer, State, Vote};

/// What stands before the bytes when they are hashed, so that no other text has the same digest.
const DOMAIN: &str = "paraph/action/v1";

/// The version of the form of the bytes.
const SCHEMA: u64 = 1;

/// The name of an action, unique in all stores. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionId(Uuid);

impl ActionId {
    /// A new one.
    pub(crate) fn fresh() -> ActionId {
        ActionId(Uuid::now_v7())
    }
}

impl std::fmt::Display for ActionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for ActionId {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<ActionId, crate::Error> {
        let id = Uuid::try_parse(text).map(ActionId);
        id.map_err(|_| crate::Error::BadActionId(text.chars().take(64).collect()))
    }
}

/// A proposed effect. It never changes: what people decide about it is beside it, in its [`ActionRow`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its name.
    pub id: ActionId,
    /// SHA-256 of `paraph/action/v1` and the bytes: 64 hexadecimal digits.
    pub digest: String,
    /// All of it as canonical JSON: what is shown, signed and executed.
    pub bytes: String,
    /// What the bytes say.
    pub said: Proposal,
}

/// What an action consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Whose run proposes it.
    pub run: Arc<RunRef>,
    /// The key of its call in that run.
    pub key: String,
    /// For whom the agent acts.
    pub requester: String,
    /// The effect.
    pub tool: String,
    /// What it does to the world.
    pub level: Level,
    /// Its arguments, with defaults filled in.
    pub args: Json,
    /// What would happen, in words for a person.
    pub says: String,
    /// What it is about, such as `order:7`.
    pub subject: String,
    /// What the effect found out about the arguments: ids of targets, and what has to be so still when it is done.
    pub resolved: Resolved,
    /// How many people have to approve it.
    pub quorum: u32,
    /// Whether whoever asked for it, or edited it, may not approve it.
    pub not_by_requester: bool,
    /// Whether only people whose identity was verified may approve it.
    pub verified: bool,
    /// The hash of the policy under which it was proposed.
    pub policy: String,
    /// What the run had read when it proposed it; nothing if it had read nothing.
    pub evidence: Option<Evidence>,
    /// An earlier action on this thread about the same subject that was signed.
    pub again: Option<ActionId>,
    /// What it replaces, and who edited it.
    pub edited: Option<(ActionId, String)>,
    /// When it was proposed, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// When it can no longer be started.
    pub expires_ms: u64,
}

/// Why bytes are no action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored action cannot be read: {0}")]
pub struct BadAction(String);

impl Action {
    /// Gives a proposal its name, its bytes and their digest.
    ///
    /// # Errors
    /// If the arguments have no canonical form.
    pub(crate) fn of(said: Proposal) -> Result<Action, BadAction> {
        let id = ActionId::fresh();
        let text = Json::read(&said.written(id), BOUNDS);
        let text = text.map_err(|error| BadAction(error.to_string()))?;
        let bytes = canonical(&text, Numbers::Any);
        Action::read(&bytes.map_err(|error| BadAction(error.to_string()))?)
    }

    /// Reads an action's bytes.
    ///
    /// # Errors
    /// If they are not the bytes of an action of this version.
    pub fn read(bytes: &str) -> Result<Action, BadAction> {
        let json = Json::read(bytes, BOUNDS).map_err(|error| BadAction(error.to_string()))?;
        let fields = Fields(json.view());
        if fields.number("schema")? != SCHEMA {
            return Err(BadAction("it was written by another version".to_owned()));
        }
        Ok(Action {
            id: fields.id("id")?.ok_or_else(|| missing("id"))?,
            digest: digest(bytes),
            said: Proposal::read(&fields)?,
            bytes: bytes.to_owned(),
        })
    }

    /// Whether these bytes are those that were signed under this digest.
    pub fn is_intact(&self, digest: &str) -> bool {
        self.digest == digest && self::digest(&self.bytes) == digest
    }
}

/// The store is ours, so its texts are bounded only against damage.
const BOUNDS: Bounds = Bounds {
    bytes: 16 << 20,
    depth: Bounds::MAX_DEPTH,
    digits: 1 << 16,
};

fn digest(bytes: &str) -> String {
    sha256(&format!("{DOMAIN}{bytes}"))
}

fn missing(field: &str) -> BadAction {
    BadAction(format!("`{field}` is missing or of another kind"))
}

impl Proposal {
    /// As JSON, in any order of keys.
    fn written(&self, id: ActionId) -> String {
        let mut text = format!("{{\"schema\":{SCHEMA}");
        let run = &self.run;
        let texts = [
            ("id", id.to_string()),
            ("tenant", run.tenant.clone()),
            ("agent", run.agent.clone()),
            ("thread", run.thread.clone()),
            ("run", run.run.clone()),
            ("key", self.key.clone()),
            ("requester", self.requester.clone()),
            ("tool", self.tool.clone()),
            ("level", self.level.to_string()),
            ("says", self.says.clone()),
            ("subject", self.subject.clone()),
            ("policy", self.policy.clone()),
        ];
        let again = self.again.map(|id| ("again", id.to_string()));
        let edited = self
            .edited
            .iter()
            .flat_map(|(from, by)| [("edited_from", from.to_string()), ("edited_by", by.clone())]);
        for (name, value) in texts.into_iter().chain(again).chain(edited) {
            // Writing to a string cannot fail.
            let _ = write!(text, ",\"{name}\":{}", quote(&value, Style::Exact));
        }
        // An effect that looks at nothing has neither.
        for (name, entries) in [
            ("targets", &self.resolved.targets),
            ("preconditions", &self.resolved.preconditions),
        ] {
            if !entries.is_empty() {
                let _ = write!(text, ",\"{name}\":{}", object(entries));
            }
        }
        if let Some(evidence) = &self.evidence {
            let (calls, hash) = (evidence.calls, quote(&evidence.hash, Style::Exact));
            let _ = write!(text, ",\"evidence\":{{\"calls\":{calls},\"hash\":{hash}}}");
        }
        let _ = write!(
            text,
            ",\"args\":{},\"quorum\":{},\"not_by_requester\":{},\"verified\":{},\"created_ms\":{},\"expires_ms\":{}}}",
            self.args,
            self.quorum,
            self.not_by_requester,
            self.verified,
            self.created_ms,
            self.expires_ms
        );
        text
    }

    fn read(fields: &Fields<'_>) -> Result<Proposal, BadAction> {
        let level = fields.text("level")?;
        let level = Level::from_name(&level).ok_or_else(|| missing("level"))?;
        let edited = match fields.id("edited_from")? {
            Some(from) => Some((from, fields.text("edited_by")?)),
            None => None,
        };
        let args = fields.0.get("args").ok_or_else(|| missing("args"))?;
        let args = Json::read(&args.to_string(), BOUNDS).map_err(|_| missing("args"))?;
        Ok(Proposal {
            run: Arc::new(RunRef {
                tenant: fields.text("tenant")?,
                agent: fields.text("agent")?,
                thread: fields.text("thread")?,
                run: fields.text("run")?,
            }),
            key: fields.text("key")?,
            requester: fields.text("requester")?,
            tool: fields.text("tool")?,
            level,
            args,
            says: fields.text("says")?,
            subject: fields.text("subject")?,
            resolved: Resolved {
                targets: fields.texts("targets")?,
                preconditions: fields.texts("preconditions")?,
            },
            quorum: u32::try_from(fields.number("quorum")?).map_err(|_| missing("quorum"))?,
            not_by_requester: fields.flag("not_by_requester")?,
            verified: fields.flag("verified")?,
            policy: fields.text("policy")?,
            evidence: fields.evidence()?,
            again: fields.id("again")?,
            edited,
            created_ms: fields.number("created_ms")?,
            expires_ms: fields.number("expires_ms")?,
        })
    }
}

/// Texts by their names, as JSON.
fn object(entries: &BTreeMap<String, String>) -> String {
    let entries = entries.iter().map(|(name, value)| {
        let (name, value) = (quote(name, Style::Exact), quote(value, Style::Exact));
        format!("{name}:{value}")
    });
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// The fields of an action's bytes.
struct Fields<'j>(View<'j>);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<String, BadAction> {
        let text = self.0.get(name).and_then(|value| value.as_str());
        text.map(str::to_owned).ok_or_else(|| missing(name))
    }

    /// An object of texts; there is none if nothing was found out.
    fn texts(&self, name: &str) -> Result<BTreeMap<String, String>, BadAction> {
        let Some(value) = self.0.get(name) else {
            return Ok(BTreeMap::new());
        };
        let Shape::Object(entries) = value.shape() else {
            return Err(missing(name));
        };
        let text = |(name_of, value): (&str, View<'_>)| {
            let text = value.as_str().ok_or_else(|| missing(name))?;
            Ok((name_of.to_owned(), text.to_owned()))
        };
        entries.map(text).collect()
    }

    /// What the run had read; actions of older versions, and of runs that had read nothing, have none.
    fn evidence(&self) -> Result<Option<Evidence>, BadAction> {
        let Some(value) = self.0.get("evidence") else {
            return Ok(None);
        };
        let fields = Fields(value);
        Ok(Some(Evidence {
            calls: fields.number("calls")?,
            hash: fields.text("hash")?,
        }))
    }

    fn number(&self, name: &str) -> Result<u64, BadAction> {
        match self.0.get(name).map(|value| value.shape()) {
            Some(Shape::Number(digits)) => digits.parse().map_err(|_| missing(name)),
            _ => Err(missing(name)),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, BadAction> {
        match self.0.get(name).map(|value| value.shape()) {
            Some(Shape::Bool(flag)) => Ok(flag),
            _ => Err(missing(name)),
        }
    }

    fn id(&self, name: &str) -> Result<Option<ActionId>, BadAction> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        let id = value.as_str().and_then(|text| text.parse().ok());
        id.map(Some).ok_or_else(|| missing(name))
    }
}
