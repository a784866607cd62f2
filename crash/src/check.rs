//! What must hold after the last kill.
//!
//! Called by `trial` and by tests, with what the children said, what the world counted, and the store as it is
//! left. A finding is a sentence; none means that all is well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paraph_graph::{LogQuery, RunId, Store, ThreadStatus, Threads};
use serde_json::Value;

use crate::Fault;
use crate::child::Order;
use crate::counter::Hit;
use crate::history::{self, Uncut};
use crate::launch::{Attempt, End, Line};
use crate::outside::Outside;

/// What a trial left besides its store.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the children were told to do; the last one's.
    pub order: &'a Order,
    /// The children, in order; the last one finished.
    pub attempts: &'a [Attempt],
    /// What the world was asked for.
    pub hits: &'a [Hit],
    /// How the same run goes uncut.
    pub uncut: &'a Uncut,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What is wrong, a sentence each.
    pub wrong: Vec<String>,
    /// Effects without a key that were done again because a kill fell between the work and its memo.
    pub repeats: usize,
    /// Effects with a key that the world saw under a second key. Only where nothing is saved before the end:
    /// there a run that is killed begins anew, and it is no fault.
    pub renewed: usize,
}

/// Looks at everything.
///
/// # Errors
/// When the harness itself cannot go on; what the store does wrong is a finding.
pub async fn check(evidence: Evidence<'_>) -> Result<Findings, Fault> {
    let mut found = Findings::default();
    found.wrong.extend(ends(evidence.attempts));
    effects(evidence, &mut found);
    let store = match evidence.order.place.open().await {
        Ok(store) => store,
        Err(error) => {
            found
                .wrong
                .push(format!("the store cannot be opened: {error}"));
            return Ok(found);
        }
    };
    if let Err(error) = stored(evidence, &store, &mut found.wrong).await {
        found
            .wrong
            .push(format!("the store cannot be read: {error}"));
    }
    drop(store);
    match evidence.order.place.damage() {
        Ok(damage) => found
            .wrong
            .extend(damage.iter().map(|line| format!("damage: {line}"))),
        Err(error) => found.wrong.push(format!("the database's check: {error}")),
    }
    Ok(found)
}

/// The last child is done, and none of the others ended otherwise than by a kill.
fn ends(attempts: &[Attempt]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (process, attempt) in attempts.iter().enumerate() {
        let last = process + 1 == attempts.len();
        match &attempt.end {
            End::Done if last => {}
            End::Cut if !last => {}
            end => wrong.push(format!("process {process} ended with {end:?}")),
        }
    }
    wrong
}

/// Whether what a run had told is saved for good, and effects keep their keys.
fn keeps(durability: &str) -> bool {
    durability != "exit"
}

/// Whether a superstep of the parent may be lost after a subgraph saved something in it.
fn may_lose_a_superstep(durability: &str) -> bool {
    durability != "sync"
}

fn effects(evidence: Evidence<'_>, found: &mut Findings) {
    let mut by_effect: BTreeMap<&str, Vec<&Hit>> = BTreeMap::new();
    for hit in evidence.hits {
        by_effect.entry(&hit.effect).or_default().push(hit);
    }
    let expected: BTreeSet<String> = evidence.order.shape.effects().into_iter().collect();
    for effect in by_effect
        .keys()
        .filter(|effect| !expected.contains(**effect))
    {
        found.wrong.push(format!("`{effect}` was never to happen"));
    }
    for effect in &expected {
        let hits = by_effect
            .get(effect.as_str())
            .map_or(&[][..], Vec::as_slice);
        keyed(evidence, (effect, hits), found);
        plain(evidence, (effect, hits), found);
    }
}

/// Whoever recognises keys did it once.
fn keyed(evidence: Evidence<'_>, (effect, hits): (&str, &[&Hit]), found: &mut Findings) {
    let keys: BTreeSet<&String> = hits.iter().filter_map(|hit| hit.key.as_ref()).collect();
    match keys.len() {
        1 => {}
        0 => found.wrong.push(format!("`{effect}` did not happen")),
        many if keeps(&evidence.order.durability) => {
            found
                .wrong
                .push(format!("`{effect}` counts {many} times with its key"));
        }
        many => found.renewed += many - 1,
    }
}

/// Whoever recognises nothing did it again only where the memo of the time before was not saved.
fn plain(evidence: Evidence<'_>, (effect, hits): (&str, &[&Hit]), found: &mut Findings) {
    let mut done: Vec<&&Hit> = hits.iter().filter(|hit| hit.key.is_none()).collect();
    // What a process asked for in its last moment may be read only after the next one has begun.
    done.sort_by_key(|hit| hit.process);
    if done.is_empty() {
        return found
            .wrong
            .push(format!("`{effect}` did not happen without a key"));
    }
    for pair in done.windows(2) {
        let [before, after] = pair else { continue };
        if before.process == after.process {
            found
                .wrong
                .push(format!("process {} did `{effect}` twice", after.process));
            continue;
        }
        found.repeats += 1;
        let memo = |attempt: &Attempt| attempt.memos().any(|memo| memo == effect);
        if keeps(&evidence.order.durability)
            && evidence.attempts.get(before.process).is_some_and(memo)
        {
            found.wrong.push(format!(
                "process {} did `{effect}` again although process {} had said that it was saved",
                after.process, before.process
            ));
        }
    }
}

async fn stored(
    evidence: Evidence<'_>,
    rows: &Arc<dyn Threads>,
    wrong: &mut Vec<String>,
) -> Result<(), Fault> {
    let order = evidence.order;
    let store: Store = rows.clone();
    let graph = order.shape.graph(&Outside::nowhere())?;
    let whole = !may_lose_a_superstep(&order.durability);
    let left = history::read(&graph, &store, (&order.thread, whole)).await?;
    if left.state != evidence.uncut.state {
        wrong.push(format!(
            "the state is {}, uncut {}",
            left.state, evidence.uncut.state
        ));
    }
    wrong.extend(differences(&left.past, &evidence.uncut.past));
    acknowledged(evidence, &store, wrong).await?;
    rows_agree(evidence, rows, wrong).await?;
    log_is_whole(evidence, rows, wrong).await
}

fn differences(
    left: &BTreeMap<String, Vec<Value>>,
    uncut: &BTreeMap<String, Vec<Value>>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let labels: BTreeSet<&String> = left.keys().chain(uncut.keys()).collect();
    for label in labels {
        let (left, uncut) = (left.get(label), uncut.get(label));
        let (left, uncut) = (
            left.map_or(&[][..], Vec::as_slice),
            uncut.map_or(&[][..], Vec::as_slice),
        );
        if left.len() != uncut.len() {
            let lengths = (left.len(), uncut.len());
            wrong.push(format!(
                "history of `{label}`: {} checkpoints, uncut {}",
                lengths.0, lengths.1
            ));
        }
        for (at, (left, uncut)) in left.iter().zip(uncut).enumerate() {
            if left != uncut {
                wrong.push(format!(
                    "history of `{label}`, checkpoint {at}: {left}, uncut {uncut}"
                ));
            }
        }
    }
    wrong
}

/// Every checkpoint that a child had told of is there, with durabilities that promise it.
async fn acknowledged(
    evidence: Evidence<'_>,
    store: &Store,
    wrong: &mut Vec<String>,
) -> Result<(), Fault> {
    if !keeps(&evidence.order.durability) {
        return Ok(());
    }
    let mut there: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (process, attempt) in evidence.attempts.iter().enumerate() {
        for line in &attempt.lines {
            let Line::Saved {
                checkpoint,
                namespace,
            } = line
            else {
                continue;
            };
            if !there.contains_key(namespace.as_str()) {
                let ids = history::ids(store, &evidence.order.thread, namespace).await?;
                there.insert(namespace, ids.iter().map(ToString::to_string).collect());
            }
            if !there
                .get(namespace.as_str())
                .is_some_and(|ids| ids.contains(checkpoint))
            {
                wrong.push(format!(
                    "process {process} had told of {checkpoint} in `{namespace}`; it is lost"
                ));
            }
        }
    }
    Ok(())
}

/// The rows of thread and run say what the checkpoints say.
async fn rows_agree(
    evidence: Evidence<'_>,
    rows: &Arc<dyn Threads>,
    wrong: &mut Vec<String>,
) -> Result<(), Fault> {
    let order = evidence.order;
    let store: Store = rows.clone();
    let head = history::ids(&store, &order.thread, "")
        .await?
        .last()
        .copied();
    match rows.thread(&order.thread).await? {
        None => wrong.push("the thread has no row".to_owned()),
        Some(row) => {
            let rests = row.status == ThreadStatus::Idle && row.holder.is_none();
            if !rests || !row.next.is_empty() || !row.interrupts.is_empty() || row.head != head {
                wrong.push(format!(
                    "the thread's row, with head {head:?}, says {row:?}"
                ));
            }
        }
    }
    let run = RunId::from(order.run);
    match rows.run(run).await? {
        None => wrong.push("the run has no row".to_owned()),
        Some(row) => {
            let ended = row.status == paraph_graph::RunStatus::Success && !row.live;
            let begun = row.attempts >= 1;
            if !ended || !begun || row.error.is_some() || row.thread != order.thread {
                wrong.push(format!("the run's row says {row:?}"));
            }
        }
    }
    Ok(())
}

/// The log is one sequence without a gap, and tells of each checkpoint of the graph once.
async fn log_is_whole(
    evidence: Evidence<'_>,
    rows: &Arc<dyn Threads>,
    wrong: &mut Vec<String>,
) -> Result<(), Fault> {
    let order = evidence.order;
    let mut told: Vec<String> = Vec::new();
    let mut after = 0;
    loop {
        let query = LogQuery {
            after,
            ..LogQuery::default()
        };
        let entries = rows.events(&order.thread, &query).await?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            if entry.seq != after + 1 {
                wrong.push(format!("the log goes from {after} to {}", entry.seq));
            }
            after = entry.seq;
            let event: Value = serde_json::from_str(&entry.json)?;
            let own = event["namespace"].as_str().is_none_or(str::is_empty);
            if event["type"] == "checkpoint" && own {
                told.push(event["id"].as_str().unwrap_or_default().to_owned());
            }
        }
    }
    let store: Store = rows.clone();
    let there = history::ids(&store, &order.thread, "").await?;
    let there: Vec<String> = there.iter().map(ToString::to_string).collect();
    if told != there {
        wrong.push(format!(
            "the log tells of the checkpoints {told:?}, there are {there:?}"
        ));
    }
    Ok(())
}
