//! A signed action, looked at once more: whether it still is what was signed, and whether those who signed may.
//!
//! Called when an action is started, and by whoever has claimed it just before it is handed over. Whatever it finds,
//! nothing has been done: what becomes of the action is decided by `sending.rs`.

use super::Session;
use crate::action::{ActionRow, Changed, Resolved, Signer};
use crate::canonical::{Numbers, canonical};
use crate::json::Json;
use crate::policy::{Ask, Verdict};
use crate::rights::Entitled;
use crate::tool::{Registered, ToolError};
use std::collections::BTreeSet;

/// What a look at a signed action found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// It is as it was signed.
    Same,
    /// It is not what was signed any more: why, and what changed.
    Drifted(String, Vec<Changed>),
    /// Whoever signed may not any more.
    NotEntitled(String),
    /// A kill switch came meanwhile.
    Killed,
    /// Nobody can tell for now.
    Unclear(String),
}

/// What a tool finds out about arguments that were prepared, within its own time.
pub(crate) async fn resolved(tool: &Registered, args: &Json) -> Result<Resolved, ToolError> {
    let Some(effect) = &tool.effect else {
        return Ok(Resolved::new());
    };
    let looking = effect.clone().resolve(args.clone());
    match tokio::time::timeout(tool.timeout, looking).await {
        Ok(found) => found,
        Err(_) => Err(ToolError::new(format!(
            "looking at it took longer than {} seconds",
            tool.timeout.as_secs_f32()
        ))),
    }
}

impl Session {
    /// Looks at all of it, the quick things first.
    pub(super) async fn look_again(
        &self,
        tool: &Registered,
        row: &ActionRow,
        now_ms: u64,
    ) -> Sight {
        if let Some(why) = self.drifted(tool, row, now_ms) {
            return Sight::Drifted(why, Vec::new());
        }
        if let Some(why) = self.unproved(row) {
            return Sight::NotEntitled(why.to_owned());
        }
        match self.entitled(row, now_ms).await {
            Ok(Entitled::Yes) => {}
            Ok(Entitled::No(why)) => return Sight::NotEntitled(why),
            Err(error) => {
                let why = format!("whether who signed may still sign it: {}", error.text);
                return Sight::Unclear(why);
            }
        }
        let signed = &row.action.said;
        match resolved(tool, &signed.args).await {
            // What was signed fits nothing any more.
            Err(error) if error.bad_args => Sight::Drifted(error.text, Vec::new()),
            Err(error) => Sight::Unclear(error.text),
            Ok(now) => {
                let changed = signed.resolved.changes(&now);
                match changed.is_empty() {
                    true => Sight::Same,
                    false => Sight::Drifted(in_words(&changed), changed),
                }
            }
        }
    }

    /// Whether there is anything outside of this process to look at once more after the claim.
    pub(super) fn depends(&self, row: &ActionRow) -> bool {
        self.0.parts.rights.is_some() || !row.action.said.resolved.is_empty()
    }

    /// Why the votes count for nothing, if they have no proof that this process can check: then people decide anew.
    pub(super) fn unproved(&self, row: &ActionRow) -> Option<&'static str> {
        let proved = self.0.parts.seal.holds(row);
        (!proved).then_some(
            "the proof of who approved it is missing, or cannot be checked with the seal key of this process",
        )
    }

    /// Why what was signed is not what would happen now, as far as that is known here.
    pub(super) fn drifted(
        &self,
        tool: &Registered,
        row: &ActionRow,
        now_ms: u64,
    ) -> Option<String> {
        let action = &row.action;
        if !action.is_intact(&row.digest) || !row.is_signed() {
            return Some("the stored bytes are not those that were signed".to_owned());
        }
        let args = &action.said.args;
        let judged = self.judge(&action.said.tool, args, now_ms);
        match judged.verdict {
            Verdict::Denied { .. } => {
                return Some(format!("a rule denies it by now: {}", judged.because));
            }
            Verdict::Ask(ask) if !is_enough(row, ask) => {
                return Some(format!(
                    "the rules ask for more than when it was signed: {ask} to approve it"
                ));
            }
            Verdict::Ask(_) | Verdict::Allowed => {}
        }
        if let Err(why) = tool.check(args) {
            return Some(format!("its arguments do not fit the tool any more: {why}"));
        }
        let now = match tool.prepare(args) {
            Ok(prepared) => canonical(&prepared.args, Numbers::Any),
            Err(error) => {
                return Some(format!(
                    "its arguments cannot be read any more: {}",
                    error.text
                ));
            }
        };
        match now == canonical(args, Numbers::Any) {
            true => None,
            false => Some("the tool would read its arguments in another way".to_owned()),
        }
    }

    /// Whether those who signed may: a grant has to be in the policy still, and people are asked about where somebody
    /// knows them.
    async fn entitled(&self, row: &ActionRow, now_ms: u64) -> Result<Entitled, ToolError> {
        let said = &row.action.said;
        for vote in &row.votes {
            let Signer::Rule(name) = &vote.by else {
                continue;
            };
            let judged = self.judge(&said.tool, &said.args, now_ms);
            // What nobody has to be asked about any more needs no grant.
            let asks = judged.verdict != Verdict::Allowed;
            if asks && !judged.grants.iter().any(|fit| fit.grant == name) {
                return Ok(Entitled::No(format!(
                    "the grant `{name}`, which signed it, is not in force any more"
                )));
            }
        }
        let Some(rights) = &self.0.parts.rights else {
            return Ok(Entitled::Yes);
        };
        let signers: Vec<Signer> = row.votes.iter().map(|vote| vote.by.clone()).collect();
        let limit = crate::tool::DEFAULT_TIMEOUT;
        match tokio::time::timeout(limit, rights.still_entitled(&signers, &row.action)).await {
            Ok(answer) => answer,
            Err(_) => Err(ToolError::new("nobody answered in time")),
        }
    }
}

/// Whether the people who signed are as many, and such, as the rules ask for now. What a grant signed, no person had to.
fn is_enough(row: &ActionRow, ask: Ask) -> bool {
    let said = &row.action.said;
    let people = row.votes.iter().filter_map(|vote| match &vote.by {
        Signer::Person(person) => Some(person),
        _ => None,
    });
    let people: Vec<_> = people.collect();
    let by_people = people.len() == row.votes.len();
    let each: BTreeSet<&str> = people.iter().map(|person| person.id.as_str()).collect();
    let quorum = usize::try_from(ask.quorum).unwrap_or(usize::MAX);
    !by_people
        || (each.len() >= quorum
            && (!ask.verified || people.iter().all(|person| person.verified))
            && (!ask.not_by_requester || people.iter().all(|person| person.id != said.requester)))
}

fn in_words(changed: &[Changed]) -> String {
    let changes: Vec<_> = changed.iter().map(ToString::to_string).collect();
    format!(
        "it is not as it was when it was proposed: {}",
        changes.join("; ")
    )
}
