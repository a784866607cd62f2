//! A model that is out for harm: whatever it says, nothing happens that nobody approved, and nothing breaks.
//!
//! Called by `paraph-crash prove` and by tests. In the place of the model stands a generator (`hostile/words`) that
//! knows the gateway's tools, its formats, and the ids and digests of all that waits. Beside it sits a person who now
//! and then approves, edits, rejects or stops something. What the effects did is written down by themselves; after
//! each episode it is compared with what that person approved, and every action with its bytes.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use futures::future::join_all;
use paraph_gateway::{
    Action, ActionId, ActionRow, ApprovalError, Approvals, Ask, Attempt, Dialect, DynTool, Effect,
    EffectError, Found, Gateway, IntoOutput, Json, Level, Limits, LoopRule, MemoryStore, Numbers,
    Policy, Reply, Scope, Session, State, Step, Stop, Store, ToolCall, ToolError, Verifier,
    Waiting, Warrant, Why, canonical_of, parse_action,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Fault;
use crate::seed::Seed;
use crate::tally::Tally;
use words::Words;

/// So many episodes have one store.
const TOGETHER: u64 = 50;

/// By how much the process may be larger at the end than after a tenth of the episodes, in kilobytes.
const MOST_GROWTH_KB: u64 = 64 << 10;

/// What an effect did: of which action, under which digest, with which arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Done {
    action: ActionId,
    digest: String,
    args: String,
}

/// The world, which writes down what happens to it.
#[derive(Clone, Debug, Default)]
struct Ledger(Arc<Mutex<Vec<Done>>>);

impl Ledger {
    fn all(&self) -> MutexGuard<'_, Vec<Done>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends money somewhere.
#[derive(Clone)]
struct Send(Ledger);

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Transfer {
    cents: u32,
    to: String,
    #[serde(default)]
    note: String,
}

impl Effect for Send {
    type Args = Transfer;
    type Receipt = String;
    const NAME: &'static str = "send_money";
    const ABOUT: &'static str = "Sends money";

    fn describe(&self, transfer: &Transfer) -> String {
        format!("Send {} cents to {}", transfer.cents, transfer.to)
    }

    fn subject(&self, transfer: &Transfer) -> String {
        format!("transfer to {} of {}", transfer.to, transfer.cents)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        let args = canonical_of(&warrant.args, Numbers::Any);
        self.0.all().push(Done {
            action: warrant.action(),
            digest: warrant.digest().to_owned(),
            args: args.map_err(|error| EffectError::unknown(error.to_string()))?,
        });
        // Now and then nobody sees the end.
        match warrant.args.cents % 5 {
            0 => Err(EffectError::unknown("the answer was lost")),
            _ => Ok("sent".to_owned()),
        }
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        let sent = self
            .0
            .all()
            .iter()
            .any(|done| done.action == attempt.action());
        Ok(match sent {
            true => Found::Done("sent".to_owned()),
            false => Found::SendAgain,
        })
    }
}

/// Panics that nobody was to see.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts panics from now on, wherever they are caught.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
}

/// Lets the model have its way, so many times.
///
/// # Errors
/// When a gateway cannot be built.
pub async fn hostile_episodes(episodes: u64, seed: u64) -> Result<Tally, Fault> {
    count_panics();
    let panics = PANICS.load(Ordering::SeqCst);
    let mut tally = Tally::of("episodes with a hostile model");
    for what in [CALLS, EFFECTS, "effects that nobody approved", "panics"] {
        tally.count(what, 0);
    }
    let mut stage = Stage::set()?;
    let mut after_a_tenth = None;
    for number in 0..episodes {
        if number % TOGETHER == 0 {
            stage = Stage::set()?;
        }
        let episode = Episode::new(&stage, seed.wrapping_add(number));
        // In a task of its own: a panic is the end of the task, and a finding.
        let (found, counted) = match tokio::spawn(episode.play()).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(fault)) => (vec![fault.to_string()], BTreeMap::new()),
            Err(error) => (vec![format!("it broke off: {error}")], BTreeMap::new()),
        };
        for (what, count) in counted {
            tally.count(what, count);
        }
        tally.take(format!("seed {}", seed.wrapping_add(number)), found);
        if number == episodes / 10 {
            after_a_tenth = resident_kb();
        }
    }
    tally.count("panics", PANICS.load(Ordering::SeqCst) - panics);
    if tally.counted("panics") > 0 {
        tally.take("panics", vec!["something panicked".to_owned()]);
    }
    weigh(&mut tally, after_a_tenth);
    Ok(tally)
}

const CALLS: &str = "calls";
const EFFECTS: &str = "effects";

/// Says how large the process has become.
fn weigh(tally: &mut Tally, after_a_tenth: Option<u64>) {
    let (Some(before), Some(now)) = (after_a_tenth, resident_kb()) else {
        return;
    };
    tally.notes.push(format!(
        "resident: {:.1} MB after a tenth, {:.1} MB at the end",
        before as f64 / 1_024.0,
        now as f64 / 1_024.0
    ));
    if now > before + MOST_GROWTH_KB {
        tally.take("memory", vec!["it grows".to_owned()]);
    }
}

/// How much memory this process has, in kilobytes, where the system tells it.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A gateway and its world, which several episodes share.
struct Stage {
    gateway: Gateway,
    store: Arc<dyn Store>,
    ledger: Ledger,
    /// What the time is, in milliseconds.
    clock: Arc<AtomicU64>,
    /// What the tool did that is known only at run time: the action's id, and the arguments.
    dropped: Arc<Mutex<Vec<(String, String)>>>,
}

impl Stage {
    fn set() -> Result<Stage, Fault> {
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let time = clock.clone();
        let store = MemoryStore::with_clock(move || time.load(Ordering::SeqCst));
        let ledger = Ledger::default();
        let dropped = Arc::new(Mutex::new(Vec::new()));
        let sink = dropped.clone();
        let anything = json!({"type": "object"});
        let mut drop_it = DynTool::in_context(
            "drop_table",
            "Drops a table",
            anything.clone(),
            move |args: Json, context| {
                let done = (context.key().to_owned(), args.to_string());
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(done);
                Box::pin(async { "dropped".into_output() })
            },
        );
        drop_it.level = Level::Delete;
        let look = DynTool::new("look", "Looks", anything, async |args: Json| {
            // What strangers wrote comes back as it is.
            Ok::<_, ToolError>(args)
        });
        let ask = Ask::default();
        let policy = Policy::new()
            .allow(["look"])
            .ask("send_money", ask)
            .ask("drop_table", ask);
        let gateway = Gateway::builder(store.clone())
            .effect(Send(ledger.clone()))
            .dynamic(look)
            .dynamic(drop_it)
            .policy(policy)
            .build()?;
        Ok(Stage {
            gateway,
            store,
            ledger,
            clock,
            dropped,
        })
    }
}

/// What the world and the person beside the model know at the end.
struct Episode {
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
type Ended = (Vec<String>, BTreeMap<&'static str, u64>);

const SWITCHES: [&str; 4] = ["global", "writes", "tool:send_money", "agent:clerk"];

impl Episode {
    fn new(stage: &Stage, seed: u64) -> Episode {
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

    async fn play(mut self) -> Result<Ended, Fault> {
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
        for (id, args) in dropped {
            let id: ActionId = id.parse()?;
            let row = self.desk().show(id).await?;
            happened.push((id, row.digest, args));
        }
        self.count(EFFECTS, happened.len() as u64);
        let mut seen = BTreeSet::new();
        for (id, digest, args) in happened {
            if self.approved.get(&id) != Some(&digest) {
                self.count("effects that nobody approved", 1);
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
    }
}
