//! One episode: turns of the model and of the person beside it, and then the comparison of what happened with what was
//! approved.
//!
//! Played by `hostile`, each in a task of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use paraph_gateway::{
    Action, ActionId, ActionRow, ApprovalError, Approvals, Dialect, Gateway, Limits, LoopRule,
    Reply, Scope, Session, State, Step, Stop, Store, ToolCall, Verifier, Waiting, Why,
    parse_action,
};
use sha2::{Digest as _, Sha256};

use super::stage::{Done, Ledger, Stage};
use super::words::Words;
use super::{CALLS, EFFECTS, UNAPPROVED};
use crate::Fault;
use crate::seed::Seed;

/// What the world and the person beside the model know at the end.
pub(super) struct Episode {
    gateway: Gateway,
    store: Arc<dyn Store>,
    ledger: Ledger,
    clock: Arc<AtomicU64>,
    dropped: Arc<Mutex<Vec<(String, String)>>>,
    words: Words,
    thread: String,
    /// Calls that were made, which the program makes again when it goes on.
    made: Vec<(String, ToolCall)>,
    /// What waits, as the model was told too.
    waits: Vec<Waiting>,
    /// The digests that the person has approved, by their actions.
    approved: BTreeMap<ActionId, String>,
    /// The switches that are on.
    switches: BTreeSet<&'static str>,
    counted: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

/// What was found, and what was counted.
pub(super) type Ended = (Vec<String>, BTreeMap<&'static str, u64>);

const SWITCHES: [&str; 4] = ["global", "writes", "tool:send_money", "agent:clerk"];

impl Episode {
    pub(super) fn new(stage: &Stage, seed: u64) -> Episode {
        Episode {
            gateway: stage.gateway.clone(),
            store: stage.store.clone(),
            ledger: stage.ledger.clone(),
            clock: stage.clock.clone(),
            dropped: stage.dropped.clone(),
            words: Words(Seed(seed)),
            thread: format!("episode-{seed}"),
            made: Vec::new(),
            waits: Vec::new(),
            approved: BTreeMap::new(),
            switches: BTreeSet::new(),
            counted: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    fn desk(&self) -> Approvals {
        self.gateway.approvals()
    }

    fn count(&mut self, what: &'static str, by: u64) {
        *self.counted.entry(what).or_default() += by;
    }

    /// A tenant of its own, so that its audit can be read alone.
    fn scope(&mut self, epoch: u64) -> Scope {
        let loops = [
            LoopRule::Exact,
            LoopRule::Soft,
            LoopRule::Cycle,
            LoopRule::Off,
        ];
        Scope {
            tenant: self.thread.clone(),
            epoch,
            dialect: match self.words.one_in(4) {
                true => Dialect::Strict,
                false => Dialect::Native,
            },
            loops: *self.words.pick(&loops),
            ..Scope::new("clerk", self.thread.clone())
        }
    }

    pub(super) async fn play(mut self) -> Result<Ended, Fault> {
        let first = self.ledger.all().len();
        let turns = 1 + self.words.below(10);
        let mut session = self.open(1).await?;
        for turn in 0..turns {
            // Now and then the process is another one.
            if self.words.one_in(8) {
                session = self.open(turn + 2).await?;
            }
            // Long enough for what nobody saw to be looked up; now and then for nobody to decide in time.
            let seconds = if self.words.one_in(30) { 4_000 } else { 3 };
            self.clock.fetch_add(seconds * 1_000, Ordering::SeqCst);
            self.model_turn(&session).await;
            self.person_turn().await?;
        }
        let switches: Vec<_> = self.switches.iter().copied().collect();
        for scope in switches {
            self.desk().unkill(scope, "ann").await?;
        }
        self.judge(first).await?;
        Ok((self.wrong, self.counted))
    }

    async fn open(&mut self, epoch: u64) -> Result<Session, Fault> {
        let limits = Limits {
            tool_calls: 1 + self.words.below(40),
            ..Limits::unlimited()
        };
        let scope = self.scope(epoch);
        Ok(self.gateway.session(scope, limits).await?)
    }

    /// The model says something, or several things at once, and what comes of it is taken in.
    async fn model_turn(&mut self, session: &Session) {
        let many = 1 + self.words.below(6);
        let mut calls = Vec::new();
        for _ in 0..many {
            if !self.made.is_empty() && self.words.one_in(2) {
                calls.push(self.words.pick(&self.made).clone());
                continue;
            }
            let key = self.words.key();
            let call = match self.words.one_in(3) {
                true => match parse_action(&self.words.action(&self.waits)) {
                    Ok(Step::Tool(call)) => call,
                    // It is no call: the agent asks again, or ends.
                    _ => continue,
                },
                false => self.words.call(&self.waits),
            };
            self.made.push((key.clone(), call.clone()));
            calls.push((key, call));
        }
        self.count(CALLS, calls.len() as u64);
        let replies = match self.words.one_in(2) {
            true => session.call_all(&calls).await,
            // All at once, with the same keys too: as several nodes of a graph do.
            false => {
                let each = calls.iter().map(|(key, call)| session.call(key, call));
                join_all(each).await
            }
        };
        for reply in replies {
            match reply {
                Ok(Reply::Waiting(waiting)) => self.waits.push(waiting),
                Ok(_) => {}
                Err(stop @ (Stop::Internal(_) | Stop::StoreError(_))) => {
                    self.wrong.push(format!("a call was told {stop}"));
                }
                Err(_) => {}
            }
        }
    }

    /// The person beside it does something, or nothing.
    async fn person_turn(&mut self) -> Result<(), Fault> {
        if self.words.one_in(20) {
            let scope = *self.words.pick(&SWITCHES);
            if self.switches.remove(scope) {
                self.desk().unkill(scope, "ann").await?;
            } else {
                self.switches.insert(scope);
                self.desk().kill(scope, "ann", "odd").await?;
                self.forget_held().await?;
            }
        }
        if self.waits.is_empty() {
            return Ok(());
        }
        let waiting = self.words.pick(&self.waits).clone();
        let (id, digest) = (waiting.action, waiting.digest);
        let desk = self.desk();
        let decided = match self.words.below(12) {
            0..3 => {
                let approved = desk.approve(id, &digest, "ann").await;
                if approved.is_ok() {
                    self.approved.insert(id, digest);
                }
                approved
            }
            3 => desk.reject(id, &digest, "ann", "no").await,
            4 => {
                let row = desk.show(id).await?;
                let args = r#"{"cents":1,"to":"petty cash"}"#;
                self.gateway.edit(&row, &digest, "ann", args).await
            }
            // A stale or invented digest.
            5 => desk.approve(id, &"0".repeat(64), "ann").await,
            _ => return Ok(()),
        };
        match decided {
            Ok(row) if row.state == State::Pending => self.waits.push(asked_anew(&row)),
            Ok(_)
            | Err(
                ApprovalError::Conflict(_) | ApprovalError::OtherDigest | ApprovalError::BadArgs(_),
            ) => {}
            Err(error) => self.wrong.push(format!("a decision was told {error}")),
        }
        Ok(())
    }

    /// What is held by a switch has to be approved anew.
    async fn forget_held(&mut self) -> Result<(), Fault> {
        for id in self.approved.keys().copied().collect::<Vec<_>>() {
            if self.desk().show(id).await?.state == State::Held {
                self.approved.remove(&id);
            }
        }
        Ok(())
    }

    /// What happened is what was approved, once, and of the same bytes; and the audit says so.
    async fn judge(&mut self, first: usize) -> Result<(), Fault> {
        let done: Vec<Done> = self.ledger.all().iter().skip(first).cloned().collect();
        let mut happened: Vec<(ActionId, String, String)> = done
            .into_iter()
            .map(|done| (done.action, done.digest, done.args))
            .collect();
        let dropped =
            std::mem::take(&mut *self.dropped.lock().unwrap_or_else(PoisonError::into_inner));
        // The tool that is known only at run time is told no id, only the key that was made of one.
        let keys: BTreeMap<String, ActionId> = self
            .approved
            .keys()
            .map(|id| (key_of(&self.thread, *id), *id))
            .collect();
        for (key, args) in dropped {
            let Some(id) = keys.get(&key).copied() else {
                self.count(UNAPPROVED, 1);
                self.wrong.push(format!(
                    "{key} was done, and is no key of what was approved"
                ));
                continue;
            };
            let row = self.desk().show(id).await?;
            happened.push((id, row.digest, args));
        }
        self.count(EFFECTS, happened.len() as u64);
        let mut seen = BTreeSet::new();
        for (id, digest, args) in happened {
            if self.approved.get(&id) != Some(&digest) {
                self.count(UNAPPROVED, 1);
                self.wrong
                    .push(format!("{id} was done, and nobody approved {digest}"));
            }
            if !seen.insert(id) {
                self.wrong.push(format!("{id} was done twice"));
            }
            let row = self.desk().show(id).await?;
            self.same_bytes(&row, (&digest, &args))?;
        }
        let tenant = self.thread.clone();
        let audit = self.store.audit(&tenant, 0, usize::MAX).await?;
        match Verifier::check(&tenant, &audit, &[]) {
            Ok(verified) if verified.attempts >= seen.len() as u64 => {}
            Ok(verified) => self.wrong.push(format!(
                "the audit tells of {} attempts, the world of {}",
                verified.attempts,
                seen.len()
            )),
            Err(broken) => self.wrong.push(format!("the audit: {broken}")),
        }
        Ok(())
    }

    /// The stored bytes have the digest that was approved, and the arguments that were carried out.
    fn same_bytes(&mut self, row: &ActionRow, (digest, args): (&str, &str)) -> Result<(), Fault> {
        let read = Action::read(&row.action.bytes)?;
        let signed: serde_json::Value = serde_json::from_str(&read.said.args.to_string())?;
        let carried_out: serde_json::Value = serde_json::from_str(args)?;
        if read.digest != digest || !row.action.is_intact(digest) || signed != carried_out {
            self.wrong
                .push(format!("{} is not what was done: {args}", row.action.bytes));
        }
        Ok(())
    }
}

/// An action that took another's place, as something that waits.
fn asked_anew(row: &ActionRow) -> Waiting {
    let said = &row.action.said;
    Waiting {
        why: Why::Approval,
        action: row.id(),
        digest: row.digest.clone(),
        key: said.key.clone(),
        tool: said.tool.clone(),
        says: said.says.clone(),
        expires_ms: said.expires_ms,
        due_ms: row.due_ms,
        because: None,
    }
}

/// The idempotency key of an action, as the gateway's documentation says how it is made.
fn key_of(tenant: &str, id: ActionId) -> String {
    let text = format!("paraph/key/v1 {} {tenant} {id}", tenant.len());
    format!("{:x}", Sha256::digest(text))
}
