//! The step machine: which tasks are due, which wait, and which follow from them.
//!
//! It knows no state, waits for nothing and draws nothing: ids are given to it, and all of it can be
//! saved. The driver says which tasks are done and where they lead, and never shows it what they wrote.
//! What is saved has names and no indices, so that a graph may gain nodes between two runs.

use crate::{
    ids::{Birth, TaskId},
    node::Payload,
    state::Change,
    topology::{Route, Topology},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use uuid::Uuid;

/// A question that a task asks. Answer it by `id`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// 32 hexadecimal digits, stable however often the task runs again.
    pub id: String,
    /// The node that asks.
    pub node: crate::Name,
    /// The name the node gave the question.
    pub key: String,
    /// The namespace of the subgraph it was asked in; empty in the graph itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// What is asked, as JSON.
    pub question: serde_json::Value,
    /// The JSON Schema that an answer must fit, if the node gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<serde_json::Value>,
    /// Why the answer that was given before did not do, when the question is asked again for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One node execution in the open superstep.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) node: usize,
    pub(crate) birth: Birth,
    pub(crate) payload: Option<Payload>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) status: Status,
    /// Set while a handler runs in place of a node that failed.
    pub(crate) failed: Option<Failed>,
}

/// The node whose failure a handler handles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The node that failed.
    pub node: crate::Name,
    /// Its last error.
    pub message: String,
    /// How often it was tried.
    pub attempts: u32,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Status {
    Due,
    Done,
    Waiting(Vec<Interrupt>),
}

/// One place a task goes, beyond its fixed edges.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) node: usize,
    pub(crate) payload: Option<Payload>,
    pub(crate) timeout: Option<Duration>,
}

impl Hop {
    pub(crate) fn to(node: usize) -> Self {
        Hop {
            node,
            payload: None,
            timeout: None,
        }
    }
}

/// A join that some of its sources have not reached at the end of the run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeadJoin {
    pub(crate) target: usize,
    pub(crate) missing: Vec<usize>,
}

/// One execution, between two supersteps or within one.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The superstep that is open; the input of a run has the number before its first.
    pub(crate) superstep: i64,
    pub(crate) tasks: Vec<Task>,
    /// Joins that some sources have reached: join, sources that did.
    joins: Vec<(usize, Vec<usize>)>,
    deferred: Vec<usize>,
    hops: Vec<Hop>,
    /// Per persistent subgraph the checkpoint at which it stands.
    pub(crate) children: BTreeMap<String, Uuid>,
    /// In a subgraph: the parent's task that this run belongs to.
    pub(crate) owner: Option<TaskId>,
}

impl Run {
    /// Nothing due yet, on a thread whose last superstep was `superstep`.
    pub(crate) fn idle(superstep: i64) -> Self {
        Run {
            superstep,
            tasks: Vec::new(),
            joins: Vec::new(),
            deferred: Vec::new(),
            hops: Vec::new(),
            children: BTreeMap::new(),
            owner: None,
        }
    }

    /// Forgets what was pending, as new input does. Persistent subgraphs keep their place.
    pub(crate) fn clear(&mut self) {
        *self = Run {
            children: std::mem::take(&mut self.children),
            owner: self.owner,
            ..Run::idle(self.superstep)
        };
    }

    pub(crate) fn is_over(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn due(&self) -> impl Iterator<Item = usize> + '_ {
        let due = |(i, t): (usize, &Task)| (t.status == Status::Due).then_some(i);
        self.tasks.iter().enumerate().filter_map(due)
    }

    pub(crate) fn all_done(&self) -> bool {
        self.tasks.iter().all(|t| t.status == Status::Done)
    }

    /// All open questions, in the order of their tasks.
    pub(crate) fn waiting(&self) -> Vec<Interrupt> {
        let asked = self.tasks.iter().filter_map(|t| match &t.status {
            Status::Waiting(asked) => Some(asked),
            Status::Due | Status::Done => None,
        });
        asked.flatten().cloned().collect()
    }

    /// Makes the tasks due again that asked one of `answered`; says which question was whose.
    pub(crate) fn answer(&mut self, answered: impl Fn(&str) -> bool) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        for (i, task) in self.tasks.iter_mut().enumerate() {
            let Status::Waiting(asked) = &task.status else {
                continue;
            };
            let before = found.len();
            let ids = asked.iter().map(|q| &q.id).filter(|id| answered(id));
            found.extend(ids.map(|id| (id.clone(), i)));
            if found.len() > before {
                task.status = Status::Due;
            }
        }
        found
    }

    /// Notes that something goes to `hop` in the next superstep.
    pub(crate) fn go(&mut self, hop: Hop) {
        self.hops.push(hop);
    }

    /// Notes where the end of a task of `node` leads by itself: its edges and its joins.
    pub(crate) fn follow(&mut self, topology: &Topology, node: usize) {
        let shape = &topology.nodes[node];
        if let Route::Edges(to) = &shape.route {
            self.hops.extend(to.iter().map(|&n| Hop::to(n)));
        }
        for &join in &shape.joins {
            self.reach(topology, join, node);
        }
    }

    fn reach(&mut self, topology: &Topology, join: usize, source: usize) {
        let place = self.joins.iter().position(|(j, _)| *j == join);
        let place = place.unwrap_or_else(|| {
            self.joins.push((join, Vec::new()));
            self.joins.len() - 1
        });
        let reached = &mut self.joins[place].1;
        if !reached.contains(&source) {
            reached.push(source);
        }
        if reached.len() == topology.joins[join].sources.len() {
            self.joins.swap_remove(place);
            self.hops.push(Hop::to(topology.joins[join].target));
        }
    }

    /// Closes the superstep: what was noted becomes the tasks of the next one, born at `at`.
    ///
    /// Plain targets run once each, in the order of declaration; then the sends, in the order in
    /// which they were sent. Deferred nodes wait until nothing else is due.
    ///
    /// # Errors
    /// [`DeadJoin`] when nothing is due any more and a join still waits.
    pub(crate) fn advance(&mut self, topology: &Topology, at: Uuid) -> Result<(), DeadJoin> {
        self.superstep += 1;
        self.tasks.clear();
        let mut hops = std::mem::take(&mut self.hops);
        hops.retain(|hop| {
            let later = hop.payload.is_none() && topology.nodes[hop.node].deferred;
            if later {
                self.deferred.push(hop.node);
            }
            !later
        });
        if hops.is_empty() {
            hops.extend(self.deferred.drain(..).map(Hop::to));
        }
        // The sort keeps the order of the sends, which all come last.
        hops.sort_by_key(|h| {
            if h.payload.is_some() {
                usize::MAX
            } else {
                h.node
            }
        });
        hops.dedup_by(|b, a| a.payload.is_none() && b.payload.is_none() && a.node == b.node);
        // Most supersteps have one task, and room for the usual four would be more than half a kilobyte.
        self.tasks.reserve_exact(hops.len());
        for (hop, index) in hops.drain(..).zip(0..) {
            self.tasks.push(Task {
                node: hop.node,
                birth: Birth { at, index },
                payload: hop.payload,
                timeout: hop.timeout,
                status: Status::Due,
                failed: None,
            });
        }
        self.hops = hops;
        match self.joins.first() {
            Some((join, reached)) if self.tasks.is_empty() => {
                let join = &topology.joins[*join];
                Err(DeadJoin {
                    target: join.target,
                    missing: join
                        .sources
                        .iter()
                        .copied()
                        .filter(|s| !reached.contains(s))
                        .collect(),
                })
            }
            _ => Ok(()),
        }
    }

    /// All tasks anew: due, and born at `at`. What a fork does.
    pub(crate) fn renew(&mut self, at: Uuid) {
        for (task, index) in self.tasks.iter_mut().zip(0..) {
            task.birth = Birth { at, index };
            task.status = Status::Due;
            task.failed = None;
        }
    }

    /// The machine as it is saved: between supersteps, so without what finished tasks left.
    pub(crate) fn save(&self, topology: &Topology) -> Saved {
        let name = |i: usize| topology.nodes[i].name.to_string();
        Saved {
            superstep: self.superstep,
            tasks: self
                .tasks
                .iter()
                .map(|t| SavedTask {
                    // A note says that a handler took over; here it stays the node's task.
                    node: t
                        .failed
                        .as_ref()
                        .map_or_else(|| name(t.node), |failed| failed.node.to_string()),
                    birth: t.birth,
                    payload: t.payload.clone(),
                    timeout_ms: t
                        .timeout
                        .map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
                })
                .collect(),
            joins: self
                .joins
                .iter()
                .map(|(j, reached)| {
                    let join = &topology.joins[*j];
                    SavedJoin {
                        target: name(join.target),
                        sources: join.sources.iter().map(|&s| name(s)).collect(),
                        reached: reached.iter().map(|&s| name(s)).collect(),
                    }
                })
                .collect(),
            deferred: self.deferred.iter().map(|&d| name(d)).collect(),
            children: self.children.clone(),
            owner: self.owner,
            origin: None,
            changes: BTreeMap::new(),
            own: serde_json::Map::new(),
        }
    }

    /// Brings a saved machine back.
    ///
    /// # Errors
    /// The name of a node, or the sources of a join, that the graph no longer has.
    pub(crate) fn restore(topology: &Topology, saved: Saved) -> Result<Run, String> {
        let find = |name: &str| topology.find(name).ok_or_else(|| name.to_owned());
        let mut run = Run {
            children: saved.children,
            owner: saved.owner,
            ..Run::idle(saved.superstep)
        };
        for task in saved.tasks {
            run.tasks.push(Task {
                node: find(&task.node)?,
                birth: task.birth,
                payload: task.payload,
                timeout: task.timeout_ms.map(Duration::from_millis),
                status: Status::Due,
                failed: None,
            });
        }
        for join in saved.joins {
            let target = find(&join.target)?;
            let mut sources = join
                .sources
                .iter()
                .map(|s| find(s))
                .collect::<Result<Vec<_>, _>>()?;
            sources.sort_unstable();
            let same = |j: &crate::topology::Join| j.target == target && j.sources == sources;
            let index = topology.joins.iter().position(same).ok_or(join.target)?;
            let reached = join
                .reached
                .iter()
                .map(|s| find(s))
                .collect::<Result<_, _>>()?;
            run.joins.push((index, reached));
        }
        run.deferred = saved
            .deferred
            .iter()
            .map(|d| find(d))
            .collect::<Result<_, _>>()?;
        Ok(run)
    }
}

/// A machine as stored, in JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) superstep: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tasks: Vec<SavedTask>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    joins: Vec<SavedJoin>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deferred: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    children: BTreeMap<String, Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<TaskId>,
    /// Of a thread that was moved: see `origin.rs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Arc<str>>,
    /// In a subgraph over its parent's state: what it has changed so far.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) changes: BTreeMap<String, Change>,
    /// What it hands back of that, but for new items of lists.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) own: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SavedTask {
    pub(crate) node: String,
    pub(crate) birth: Birth,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<Arc<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedJoin {
    target: String,
    sources: Vec<String>,
    reached: Vec<String>,
}

#[cfg(test)]
mod tests;
