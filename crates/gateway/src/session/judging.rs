//! What the policy says about one call of this run, what the audit hears of that, and what the run has read from
//! strangers.
//!
//! Called before a tool runs, when an action is made of a call, and once more when that is started. That a run has read
//! from an untrusted tool is kept with its thread: a later run has the same words before it.

use super::{Session, broken};
use crate::audit::{Draft, Event, EventKind};
use crate::gateway::Parts;
use crate::json::Json;
use crate::policy::{Decision, Request};
use crate::record::{CallRecord, Observation, Outcome, Ruled, Ruling, RunRef};
use crate::stop::{Failure, Stop};
use crate::store::Add;
use crate::tool::Level;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What stands before the tool's name in the name of the counter that says it was read from.
const READ: &str = "untrusted:";

/// The untrusted tools that a thread has read from.
#[derive(Debug)]
pub(super) struct Taint {
    /// Whose counters say so: those of the thread, and of none of its runs.
    thread: Arc<RunRef>,
    tools: Mutex<BTreeSet<String>>,
}

impl Taint {
    /// What is known of the thread of a run. Nothing is read where the policy trusts everything.
    pub(super) async fn of(parts: &Parts, run: &RunRef) -> Result<Taint, Stop> {
        let thread = RunRef {
            agent: String::new(),
            run: String::new(),
            ..run.clone()
        };
        let known = match parts.rules.policy().flow.untrusted.is_empty() {
            true => BTreeSet::new(),
            false => {
                let counters = parts.store.counters(&thread).await.map_err(broken)?;
                let names = counters.into_keys();
                let tools = names.filter_map(|name| Some(name.strip_prefix(READ)?.to_owned()));
                tools.collect()
            }
        };
        Ok(Taint {
            thread: Arc::new(thread),
            tools: Mutex::new(known),
        })
    }

    fn tools(&self) -> Vec<String> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.iter().cloned().collect()
    }

    /// Notes that a tool was read from, and gives what the store has to be told of it.
    fn note(&self, tool: &str) -> Option<Add> {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.insert(tool.to_owned()).then(|| Add {
            run: self.thread.clone(),
            counter: format!("{READ}{tool}"),
            by: 1,
        })
    }
}

impl Session {
    /// What the policy says about a call with these arguments.
    pub(super) fn judge(&self, tool: &str, args: &Json, now_ms: u64) -> Decision<'_> {
        let scope = &self.0.scope;
        self.0.parts.rules.decide(&Request {
            tenant: &scope.tenant,
            agent: &scope.agent,
            user: &scope.user,
            thread: &scope.thread,
            tool,
            args,
            tainted: &self.0.taint.tools(),
            targets: &scope.targets,
            now_ms,
        })
    }

    /// What has to be written with the record of a call that ended because a rule denies it.
    pub(super) fn denial(&self, record: &CallRecord) -> Option<Draft> {
        let ruling = record.ruling.as_ref()?;
        if ruling.is != Ruled::Denied || record.outcome.is_none() {
            return None;
        }
        let tool = self.0.parts.tool(&record.tool);
        let requester = self.0.scope.user.as_str();
        let level = tool.map(|tool| tool.spec.level);
        Some(told_of(record, ruling, (level, requester)))
    }

    /// What has to be written with the record of a tool that was read from.
    pub(super) fn was_read(&self, tool: &str) -> Option<Add> {
        match self.0.parts.rules.is_untrusted(tool) {
            true => self.0.taint.note(tool),
            false => None,
        }
    }
}

/// What the audit is told of a call that a rule denies. A name that is none of ours may be anything, and so it stands
/// beside the chain, where it can be erased.
fn told_of(
    record: &CallRecord,
    ruling: &Ruling,
    (level, requester): (Option<Level>, &str),
) -> Draft {
    let mut event = Event {
        state: Some("denied".to_owned()),
        tool: level.map(|_| record.tool.clone()),
        level: level.map(|level| level.to_string()),
        ..Event::of_run(EventKind::PolicyDecided, &record.run, system_ms())
    }
    .with("policy", ruling.policy.as_str());
    if let Some(rule) = &ruling.rule {
        event = event.with("rule", rule.as_str());
    }
    let mut detail = BTreeMap::new();
    detail.insert("args_hash".to_owned(), record.args_hash.as_str().into());
    if !requester.is_empty() {
        detail.insert("requester".to_owned(), requester.into());
    }
    if level.is_none() {
        detail.insert("tool".to_owned(), record.tool.as_str().into());
    }
    if let Some(Outcome::Observed(Observation {
        failure: Some(Failure::Denied { why, .. }),
        ..
    })) = &record.outcome
    {
        detail.insert("why".to_owned(), why.as_str().into());
    }
    event.draft_with(detail)
}

/// Now, by this machine's clock: what only reads does not ask the store for the time.
pub(super) fn system_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
