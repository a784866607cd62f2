//! What rules work with: handles to a store, names of their own, rows, and comparisons that say what differs.

use super::Checked;
use crate::action::{Action, ActionRow, Proposal};
use crate::audit::{AuditEntry, Draft, Event, EventKind, Field, Verifier};
use crate::json::{Bounds, Json};
use crate::record::{CallRecord, Observation, Outcome, Ruled, Ruling, RunRef};
use crate::store::{Add, Change, Guard, Kill, Store, StoreError, Wake};
use crate::tool::Level;
use std::fmt::Debug;
use std::sync::Arc;

/// A store as a rule sees it.
#[derive(Clone)]
pub(super) struct Scene {
    handles: Vec<Arc<dyn Store>>,
    /// A name that no other scene has.
    pub(super) tag: String,
}

impl Scene {
    pub(super) fn on(handles: &[Arc<dyn Store>], rule: &str) -> Scene {
        Scene {
            handles: handles.to_vec(),
            tag: format!("{rule} {}", uuid::Uuid::now_v7()),
        }
    }

    /// One of the handles; work that is numbered is divided among them.
    pub(super) fn handle(&self, n: usize) -> Result<Arc<dyn Store>, String> {
        let count = self.handles.len().max(1);
        let handle = self.handles.get(n % count);
        handle
            .cloned()
            .ok_or_else(|| "no store was given".to_owned())
    }

    pub(super) fn store(&self) -> Result<Arc<dyn Store>, String> {
        self.handle(0)
    }

    pub(super) async fn commit(&self, change: Change) -> Checked {
        self.store()?.commit(change).await.map_err(text)
    }

    /// A run of this scene.
    pub(super) fn run(&self, run: &str) -> Arc<RunRef> {
        Arc::new(RunRef {
            tenant: format!("tenant of {}", self.tag),
            agent: "agent".to_owned(),
            thread: self.tag.clone(),
            run: run.to_owned(),
        })
    }

    /// An entry for the audit of this scene's tenant.
    pub(super) fn draft(&self, n: usize) -> Draft {
        draft(&self.run("").tenant, n)
    }

    pub(super) fn kill(&self, scope: &str) -> Kill {
        Kill {
            scope: format!("tool:{} {scope}", self.tag),
            by: "ann".to_owned(),
            reason: "something is wrong".to_owned(),
            at_ms: 1_700_000_000_000,
        }
    }
}

pub(super) fn text(error: StoreError) -> String {
    error.to_string()
}

pub(super) fn same<T: PartialEq + Debug>(what: &str, is: T, should: T) -> Checked {
    match is == should {
        true => Ok(()),
        false => Err(format!("{what}: {is:?}, and should be {should:?}")),
    }
}

/// That a commit was refused by this guard.
pub(super) fn refused(what: &str, done: Result<(), StoreError>, guard: Guard) -> Checked {
    same(what, done, Err(StoreError::Refused(Box::new(guard))))
}

fn event(tenant: &str, n: usize) -> Event {
    Event::new(EventKind::Budget, tenant, 1).with("n", n as u64)
}

/// An entry for a tenant's audit, with a number by which it is known again.
pub(super) fn draft(tenant: &str, n: usize) -> Draft {
    event(tenant, n).draft()
}

/// The same with something personal.
pub(super) fn detailed(tenant: &str, n: usize, why: &str) -> Draft {
    event(tenant, n).draft_with([("why".to_owned(), Field::from(why))].into())
}

/// The numbers of a tenant's whole audit, if it is a chain from its first entry on.
pub(super) fn chained(tenant: &str, entries: &[AuditEntry]) -> Result<Vec<u64>, String> {
    Verifier::check(tenant, entries, &[]).map_err(|broken| broken.to_string())?;
    let number = |entry: &AuditEntry| match Event::read(&entry.event)?.fields.get("n") {
        Some(Field::Number(n)) => Ok(*n),
        other => Err(format!("an entry says {other:?}")),
    };
    entries.iter().map(number).collect()
}

pub(super) fn call(run: &Arc<RunRef>, key: &str, seq: u64) -> CallRecord {
    CallRecord {
        run: run.clone(),
        key: key.to_owned(),
        seq,
        step: 1,
        epoch: 7,
        tool: "look \u{0}é".to_owned(),
        arguments: r#"{"n": 1e999, "text": "\u0000"}"#.to_owned(),
        args_hash: "0".repeat(12),
        args_digest: "0".repeat(64),
        action: None,
        ruling: None,
        outcome: None,
        full_output: None,
        ms: 0,
    }
}

/// The record with an outcome.
pub(super) fn done(mut call: CallRecord, content: &str) -> CallRecord {
    call.outcome = Some(Outcome::Observed(Observation {
        tool: call.tool.clone(),
        args_hash: call.args_hash.clone(),
        content: content.to_owned(),
        failure: None,
        artifact: Some(r#"{"rows":[1,2]}"#.to_owned()),
        command: None,
        action: None,
    }));
    call.full_output = Some("x".repeat(50_000));
    call.ruling = Some(Ruling {
        is: Ruled::Asked,
        rule: Some("two people at \u{e9}".to_owned()),
        grant: Some("small".to_owned()),
        policy: "0".repeat(64),
    });
    call.ms = 12;
    call
}

pub(super) fn add(run: &Arc<RunRef>, counter: &str, by: u64) -> Add {
    Add {
        run: run.clone(),
        counter: counter.to_owned(),
        by,
    }
}

pub(super) fn fresh(run: &Arc<RunRef>, key: &str) -> Guard {
    Guard::Fresh {
        run: run.clone(),
        key: key.to_owned(),
    }
}

pub(super) fn open(run: &Arc<RunRef>, key: &str) -> Guard {
    Guard::Open {
        run: run.clone(),
        key: key.to_owned(),
    }
}

pub(super) fn at(row: &ActionRow) -> Guard {
    Guard::At {
        id: row.id(),
        version: row.version,
    }
}

/// An action of a run about a subject. `args` is JSON.
pub(super) fn action(run: &Arc<RunRef>, subject: &str, args: &str) -> Result<ActionRow, String> {
    let args = Json::read(
        args,
        Bounds {
            bytes: 4 << 20,
            ..Bounds::default()
        },
    );
    let action = Action::of(Proposal {
        run: run.clone(),
        key: "key".to_owned(),
        requester: "ann".to_owned(),
        tool: "pay".to_owned(),
        level: Level::Write,
        args: args.map_err(|e| e.to_string())?,
        says: "Pay".to_owned(),
        subject: subject.to_owned(),
        resolved: crate::Resolved::new(),
        quorum: 1,
        not_by_requester: false,
        verified: false,
        policy: String::new(),
        evidence: None,
        again: None,
        edited: None,
        created_ms: 1_700_000_000_000,
        expires_ms: 1_700_000_600_000,
    });
    let action = action.map_err(|e| e.to_string())?;
    Ok(ActionRow::proposed(action, None))
}

/// The next version of a row.
pub(super) fn next(row: &ActionRow) -> ActionRow {
    ActionRow {
        version: row.version + 1,
        ..row.clone()
    }
}

pub(super) fn wake(row: &ActionRow, key: &str, due_ms: u64) -> Wake {
    Wake {
        run: row.action.said.run.clone(),
        key: key.to_owned(),
        action: row.id(),
        version: row.version,
        due_ms,
    }
}
