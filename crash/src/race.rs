//! Many who decide about one action at the same time: each standing of it has one winner, and all others are told which.
//!
//! Called by `paraph-crash prove` and by tests, with one or several handles to a store, as several processes have
//! them. What the participants were told is compared with the action's entries in the audit: these are the order in
//! which things happened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use paraph_gateway::{
    ActionRow, ApprovalError, Approvals, Ask, Event, EventKind, Field, Find, Gateway, Limits,
    Policy, Reply, RunRef, Scope, State, Store, ToolCall, Verifier, examples::Pay,
};
use tokio::sync::Barrier;

use crate::Fault;
use crate::seed::Seed;
use crate::tally::Tally;

/// How many decide at the same time.
const MANY: usize = 32;

/// How long an action stands in the rounds in which its time is over just then.
const SHORT: Duration = Duration::from_millis(80);

/// What one of them does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    Approve,
    Reject,
    Edit,
    Expire,
    Kill,
}

/// What one of them was told.
#[derive(Clone, Debug)]
enum Told {
    /// The decision counts; the row that it made.
    Won(Box<ActionRow>),
    /// Somebody else was first; how the action stood then.
    Lost(Box<ActionRow>),
    /// A sweep or a switch: how many actions it changed. Other rounds leave nothing that it could.
    Changed(usize),
    Failed(String),
}

/// Races at one store.
pub struct Races {
    /// The kind of store.
    pub name: &'static str,
    /// Handles to it, among which the participants are divided.
    pub handles: Vec<Arc<dyn Store>>,
}

impl Races {
    /// Lets 32 decide about an action, so many times.
    ///
    /// # Errors
    /// When an action cannot even be proposed.
    pub async fn run(&self, rounds: u64) -> Result<Tally, Fault> {
        let mut tally = Tally::of(format!("{} decisions of {MANY} at a time", self.name));
        for what in WINNERS {
            tally.count(what, 0);
        }
        for round in 0..rounds {
            let wrong = self.round(round, &mut tally).await?;
            tally.take(format!("round {round}"), wrong);
        }
        Ok(tally)
    }

    async fn round(&self, round: u64, tally: &mut Tally) -> Result<Vec<String>, Fault> {
        let mut chance = Seed(round);
        let short = chance.below(3) == 0;
        let ask = Ask {
            expires: if short { SHORT } else { Ask::default().expires },
            ..Ask::default()
        };
        let mut gateways = Vec::new();
        for store in &self.handles {
            let policy = Policy::new().ask("pay", ask);
            let gateway = Gateway::builder(store.clone()).effect(Pay::default());
            gateways.push(gateway.policy(policy).build()?);
        }
        let first = gateways.first().ok_or("no store was given")?;
        let row = proposed(first).await?;
        let run = row.action.said.run.clone();
        if short {
            // Until shortly before its time is over, so that it is over while they decide.
            let now_ms = first_store(&self.handles)?.now_ms().await?;
            let left = row.action.said.expires_ms;
            let left = left.saturating_sub(now_ms + chance.below(6));
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        let told = together(&gateways, &row, &mut chance).await?;
        let desk = first.approvals();
        let found = self.judge(&row, &told, tally).await;
        // So that no sweep of a later round finds anything of this one.
        let swept = clear(&desk, &run).await;
        found.and_then(|wrong| swept.map(|()| wrong))
    }

    /// Compares what they were told with what happened.
    async fn judge(
        &self,
        row: &ActionRow,
        told: &[(Deed, Told)],
        tally: &mut Tally,
    ) -> Result<Vec<String>, Fault> {
        let store = first_store(&self.handles)?;
        let tenant = &row.action.said.run.tenant;
        let audit = store.audit(tenant, 0, usize::MAX).await?;
        let mut wrong = Vec::new();
        if let Err(broken) = Verifier::check(tenant, &audit, &[]) {
            wrong.push(format!("the audit: {broken}"));
        }
        let mut past = Vec::new();
        for entry in &audit {
            let event = Event::read(&entry.event)?;
            if event.action.as_deref() == Some(&*row.id().to_string()) {
                past.push(Step::of(&event)?);
            }
        }
        let last = store.actions(Find::Id(row.id())).await?;
        let last = last.first().ok_or("the action is gone")?;
        wrong.extend(consecutive(&past, last));
        wrong.extend(told_right(&past, told));
        for step in &past {
            if let Some(what) = step.winner() {
                tally.count(what, 1);
            }
        }
        let late = told
            .iter()
            .filter(|(_, told)| matches!(told, Told::Lost(_)));
        tally.count("told who won", late.count() as u64);
        Ok(wrong)
    }
}

const WINNERS: [&str; 5] = ["approved", "rejected", "edited", "expired", "held"];

fn first_store(handles: &[Arc<dyn Store>]) -> Result<&Arc<dyn Store>, Fault> {
    Ok(handles.first().ok_or("no store was given")?)
}

/// An action that waits, of a tenant of its own. On a slow machine its time may be over before anybody was asked: then
/// there is nothing to decide about, and another one is proposed.
async fn proposed(gateway: &Gateway) -> Result<ActionRow, Fault> {
    const MOST: usize = 50;
    for _ in 0..MOST {
        let tenant = format!("race-{}", uuid::Uuid::now_v7().simple());
        let scope = Scope {
            tenant: tenant.clone(),
            ..Scope::new("clerk", tenant)
        };
        let session = gateway.session(scope, Limits::default()).await?;
        let call = ToolCall::native("pay", r#"{"cents":100}"#);
        if let Reply::Waiting(waiting) = session.call("k", &call).await? {
            return Ok(gateway.approvals().show(waiting.action).await?);
        }
    }
    Err("nobody is ever asked".into())
}

/// Takes back what a round left, and takes its switch off.
async fn clear(desk: &Approvals, run: &RunRef) -> Result<(), Fault> {
    desk.unkill(&format!("tenant:{}", run.tenant), "referee")
        .await?;
    desk.cancel(run, "referee", "the round is over").await?;
    Ok(())
}

/// Lets all of them begin at once.
async fn together(
    gateways: &[Gateway],
    row: &ActionRow,
    chance: &mut Seed,
) -> Result<Vec<(Deed, Told)>, Fault> {
    // In every other round nobody may undo a decision: then there is one winner and no other.
    let kills = chance.below(2) * 4;
    let barrier = Arc::new(Barrier::new(MANY));
    let mut tasks = Vec::new();
    for n in 0..MANY {
        let deed = match n as u64 {
            n if n < kills => Deed::Kill,
            4..8 => Deed::Expire,
            _ => match chance.below(3) {
                0 => Deed::Reject,
                1 => Deed::Edit,
                _ => Deed::Approve,
            },
        };
        let gateway = gateways
            .get(n % gateways.len())
            .ok_or("no store was given")?;
        let work = (gateway.clone(), row.clone(), barrier.clone());
        tasks.push((deed, tokio::spawn(decide(work, deed, n))));
    }
    let mut all = Vec::new();
    for (deed, task) in tasks {
        all.push((deed, task.await?));
    }
    Ok(all)
}

async fn decide(
    (gateway, row, barrier): (Gateway, ActionRow, Arc<Barrier>),
    deed: Deed,
    n: usize,
) -> Told {
    let (desk, id, digest) = (gateway.approvals(), row.id(), row.digest.as_str());
    let who = format!("p{n}");
    barrier.wait().await;
    let decided = match deed {
        Deed::Approve => desk.approve(id, digest, &*who).await,
        Deed::Reject => desk.reject(id, digest, &*who, "no").await,
        Deed::Edit => gateway.edit(&row, digest, &*who, r#"{"cents":90}"#).await,
        Deed::Expire => return changed(desk.expire().await),
        Deed::Kill => {
            let scope = format!("tenant:{}", row.action.said.run.tenant);
            return changed(desk.kill(&scope, &who, "stop").await);
        }
    };
    match decided {
        Ok(row) => Told::Won(Box::new(row)),
        Err(ApprovalError::Conflict(row)) => Told::Lost(row),
        Err(error) => Told::Failed(error.to_string()),
    }
}

fn changed(done: Result<usize, ApprovalError>) -> Told {
    match done {
        Ok(count) => Told::Changed(count),
        Err(error) => Told::Failed(error.to_string()),
    }
}

/// One entry about the action.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    kind: EventKind,
    state: State,
    version: u64,
    replaced_by: Option<String>,
}

impl Step {
    fn of(event: &Event) -> Result<Step, Fault> {
        let named = |state: &State| Some(state.name()) == event.state.as_deref();
        let state = State::ALL.into_iter().find(named);
        let Some(Field::Number(version)) = event.fields.get("version") else {
            return Err("an entry has no version".into());
        };
        let replaced_by = match event.fields.get("replaced_by") {
            Some(Field::Text(id)) => Some(id.clone()),
            _ => None,
        };
        Ok(Step {
            kind: event.kind,
            state: state.ok_or("an entry has no state")?,
            version: *version,
            replaced_by,
        })
    }

    /// As what a standing of the action ended with this, if somebody or something won it.
    fn winner(&self) -> Option<&'static str> {
        WINNERS
            .into_iter()
            .find(|winner| *winner == self.state.name())
    }
}

/// Each entry follows from the one before it, by one way and by one alone, and the row is where they end.
fn consecutive(past: &[Step], last: &ActionRow) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, step) in past.iter().enumerate() {
        if step.version != at as u64 + 1 {
            wrong.push(format!("version {} comes at place {at}", step.version));
        }
        let before = at.checked_sub(1).and_then(|before| past.get(before));
        let allowed = match before {
            None => step.state == State::Pending,
            Some(before) => before.state.next().contains(&step.state),
        };
        if !allowed {
            wrong.push(format!("{before:?} was followed by {step:?}"));
        }
    }
    let end = past.last().map(|step| (step.version, step.state));
    if end != Some((last.version, last.state)) {
        wrong.push(format!(
            "it is {} in version {}, and the audit ends with {end:?}",
            last.state, last.version
        ));
    }
    wrong
}

/// Who won is in the audit, once each; who lost was told of something that is there.
fn told_right(past: &[Step], told: &[(Deed, Told)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut winners: BTreeMap<u64, usize> = BTreeMap::new();
    let (mut swept, mut held) = (0, 0);
    for (deed, told) in told {
        match told {
            Told::Won(row) => {
                let won = past.iter().find(|step| match deed {
                    Deed::Edit => step.replaced_by == Some(row.id().to_string()),
                    _ => (step.version, step.state) == (row.version, row.state),
                });
                match won {
                    Some(step) => *winners.entry(step.version).or_default() += 1,
                    None => wrong.push(format!("{deed:?} was told that it won: {}", row.state)),
                }
            }
            Told::Lost(row) => {
                let seen = |step: &Step| (step.version, step.state) == (row.version, row.state);
                if row.state.is_undecided() || !past.iter().any(seen) {
                    wrong.push(format!(
                        "{deed:?} lost to {} in version {}",
                        row.state, row.version
                    ));
                }
            }
            Told::Changed(count) if *deed == Deed::Kill => held += count,
            Told::Changed(count) => swept += count,
            Told::Failed(why) => wrong.push(format!("{deed:?}: {why}")),
        }
    }
    let count = |state| past.iter().filter(|step| step.state == state).count();
    let decided = |step: &&Step| step.kind == EventKind::Decided;
    for step in past.iter().filter(decided) {
        let who = winners.get(&step.version).copied().unwrap_or(0);
        if who != 1 {
            wrong.push(format!("{who} were told that they won {step:?}"));
        }
    }
    // What took the action's place may be swept too, where its time is as short.
    if held != count(State::Held) || swept > count(State::Expired) + count(State::Edited) {
        wrong.push(format!(
            "{held} were said to be held and {swept} expired, in {past:?}"
        ));
    }
    wrong
}
