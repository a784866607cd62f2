//! What the rules about whole threads have in common: a thread with rows, and how it reads.

use super::scene::{self, Scene, text, value_of};
use crate::{
    CheckpointId, Claim, HistoryQuery, Interrupt, Lease, LogEntry, LogQuery, Logged, Metadata,
    Name, Note, Put, RunEnd, RunId, RunRow, RunStart, RunStatus, Scope, Standing, ThreadRow,
    ThreadStatus, Threads,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// A thread of one rule's own, on a store that is complete.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) threads: Arc<dyn Threads>,
    pub(super) s: Scene,
}

/// How a checkpoint reads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub(super) id: CheckpointId,
    pub(super) parent: Option<CheckpointId>,
    pub(super) metadata: Metadata,
    pub(super) machine: Vec<u8>,
    pub(super) changed: Vec<String>,
    pub(super) notes: Vec<Note>,
    pub(super) values: BTreeMap<String, Value>,
}

impl Stage {
    pub(super) fn on(threads: Arc<dyn Threads>, rule: &str) -> Self {
        let s = Scene::on(threads.clone(), rule);
        Stage { threads, s }
    }

    /// The name of the rule's thread.
    pub(super) fn name(&self) -> &str {
        &self.s.scope.thread
    }

    /// The same on another thread.
    pub(super) fn on_thread(&self, name: &str) -> Stage {
        let mut other = self.clone();
        other.s.scope.thread = name.into();
        other.s.epoch = 0;
        other
    }

    /// The same in another namespace of the thread.
    pub(super) fn within(&self, namespace: &str) -> Stage {
        let mut other = self.clone();
        other.s.scope = Scope {
            thread: self.s.scope.thread.clone(),
            namespace: namespace.into(),
        };
        other
    }

    pub(super) async fn row(&self) -> Result<ThreadRow, String> {
        let row = self.threads.thread(self.name()).await.map_err(text)?;
        row.ok_or_else(|| "the thread has no row".to_owned())
    }

    pub(super) async fn run(&self, run: RunId) -> Result<RunRow, String> {
        let row = self.threads.run(run).await.map_err(text)?;
        row.ok_or_else(|| format!("run {run} has no row"))
    }

    pub(super) async fn log(&self, query: LogQuery) -> Result<Vec<Logged>, String> {
        self.threads.events(self.name(), &query).await.map_err(text)
    }

    /// The thread for a run, with a row. Writes are under its lease from here on.
    pub(super) async fn begin(&mut self, run: RunId) -> Result<Lease, String> {
        let claim = Claim {
            run,
            start: Some(RunStart {
                graph: "a graph".to_owned(),
                arguments: json!({"text": "hello"}),
            }),
        };
        let lease = self.threads.lease(self.name(), claim).await.map_err(text)?;
        self.s.epoch = lease.epoch;
        Ok(lease)
    }

    /// Has had the thread, so that what is written from here on is no older than it is.
    pub(super) async fn had(&mut self) -> Result<(), String> {
        let run = RunId::fresh();
        let lease = self.s.lease_when_free(self.name(), run).await?;
        self.s.epoch = lease.epoch;
        let end = RunEnd {
            standing: None,
            ..self.end(run, RunStatus::Success)
        };
        self.finish(end).await
    }

    pub(super) fn end(&self, run: RunId, status: RunStatus) -> RunEnd {
        RunEnd {
            run,
            epoch: self.s.epoch,
            status,
            error: None,
            standing: Some(Standing::IDLE),
            events: Vec::new(),
        }
    }

    pub(super) async fn finish(&self, end: RunEnd) -> Result<(), String> {
        self.threads.finish(self.name(), end).await.map_err(text)
    }

    /// A put at which nothing is due.
    pub(super) fn put(&self, parent: Option<CheckpointId>, head: Option<CheckpointId>) -> Put {
        let mut put = self.s.put(parent, head);
        put.machine = machine(&[]);
        put
    }

    /// Saves a line of puts of one run, each of which `fill` fills; says their ids. The thread is idle
    /// after it.
    pub(super) async fn line(
        &self,
        (run, n): (RunId, usize),
        mut head: Option<CheckpointId>,
        fill: impl Fn(usize, &mut Put),
    ) -> Result<Vec<CheckpointId>, String> {
        let mut line = Vec::new();
        for i in 0..n {
            let mut put = self.put(head, head);
            put.metadata.run = run;
            fill(i, &mut put);
            head = Some(put.id);
            line.push(put.id);
            self.s.save(put).await?;
        }
        Ok(line)
    }

    /// How all of a namespace reads, oldest first.
    pub(super) async fn reads(&self) -> Result<Vec<View>, String> {
        let mut views = Vec::new();
        for entry in self.s.history(HistoryQuery::default()).await? {
            let loaded = self.s.load(Some(entry.id)).await?;
            let loaded = loaded.ok_or_else(|| format!("{} is listed and gone", entry.id))?;
            let mut values = BTreeMap::new();
            for (channel, _) in &loaded.channels {
                values.extend(value_of(&loaded, channel)?.map(|v| (channel.clone(), v)));
            }
            let mut changed = loaded.changed;
            changed.sort();
            views.push(View {
                id: loaded.id,
                parent: loaded.parent,
                metadata: loaded.metadata,
                machine: loaded.machine,
                changed,
                notes: loaded.notes,
                values,
            });
        }
        views.reverse();
        Ok(views)
    }
}

/// A machine whose open superstep has these nodes.
pub(super) fn machine(nodes: &[&str]) -> Vec<u8> {
    let at = uuid::Uuid::nil();
    let task = |(i, node)| json!({"node": node, "birth": {"at": at, "index": i}});
    let tasks: Vec<Value> = (0..).zip(nodes).map(task).collect();
    json!({"superstep": 1, "tasks": tasks})
        .to_string()
        .into_bytes()
}

pub(super) fn stands(status: ThreadStatus, next: &[&str]) -> Standing {
    Standing {
        status,
        next: next
            .iter()
            .map(|node| Name::from((*node).to_owned()))
            .collect(),
        interrupts: Vec::new(),
        values: None,
    }
}

pub(super) fn question(id: &str) -> Interrupt {
    Interrupt {
        id: id.to_owned(),
        node: Name::from("ask"),
        key: "k".to_owned(),
        namespace: String::new(),
        question: json!({"text": "a\u{0}b", "n": u64::MAX}),
        answer_schema: None,
        refused: None,
    }
}

/// An entry of the log; its text says what it is.
pub(super) fn entry(run: RunId, what: &str) -> LogEntry {
    LogEntry {
        run,
        namespace: String::new(),
        created_ms: 1_700_000_000_123,
        json: json!({"type": "custom", "what": what}).to_string(),
        same: Vec::new(),
    }
}

/// What the entries of a log say, as [`entry`] wrote it.
pub(super) fn whats(log: &[Logged]) -> Result<Vec<(u64, String)>, String> {
    let what = |logged: &Logged| {
        let event: Value = serde_json::from_str(&logged.json).map_err(scene::text)?;
        let what = event.get("what").and_then(Value::as_str).unwrap_or("?");
        Ok((logged.seq, what.to_owned()))
    };
    log.iter().map(what).collect()
}
