//! What the tests of a store have in common: a thread that is written to step by step.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]
#![allow(dead_code, reason = "each test binary uses its part")]

use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Delta, Error, Lease, Loaded, Metadata, Note, NoteKind, Notes,
    PatchKind, Put, RunId, RunStart, Scope, Source, TaskId,
};
use paraph_store::{Options, Sqlite};
use serde_json::{Map, Value, json};
use std::{path::Path, sync::Arc};

pub(crate) async fn open(path: impl AsRef<Path>) -> Arc<Sqlite> {
    Arc::new(Sqlite::open(path, Options::default()).await.unwrap())
}

/// A thread as its writer sees it.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) scope: Scope,
    pub(crate) epoch: u64,
    pub(crate) head: Option<CheckpointId>,
    pub(crate) run: RunId,
}

impl Line {
    pub(crate) fn on(thread: &str) -> Self {
        Line {
            scope: Scope {
                thread: thread.into(),
                namespace: "".into(),
            },
            epoch: 0,
            head: None,
            run: RunId::fresh(),
        }
    }

    /// A put after the head that changes these channels.
    pub(crate) fn put(&self, deltas: &[(&str, PatchKind, Value)]) -> Put {
        let delta = |(channel, kind, json): &(&str, PatchKind, Value)| Delta {
            channel: (*channel).to_owned(),
            kind: *kind,
            json: json.to_string().into_bytes(),
        };
        Put {
            id: CheckpointId::fresh(),
            parent: self.head,
            expect: self.head,
            metadata: Metadata {
                source: Source::Loop,
                superstep: 3,
                run: self.run,
                created_ms: 1_700_000_000_000,
                user: Map::from_iter([("who".to_owned(), json!("x"))]),
            },
            machine: br#"{"tasks":[]}"#.to_vec(),
            deltas: deltas.iter().map(delta).collect(),
            notes: Vec::new(),
            epoch: self.epoch,
            standing: None,
            events: Vec::new(),
        }
    }

    pub(crate) async fn step(
        &mut self,
        store: &(impl Checkpoints + ?Sized),
        deltas: &[(&str, PatchKind, Value)],
    ) -> CheckpointId {
        let put = self.put(deltas);
        let id = put.id;
        Checkpoints::put(store, &self.scope, put).await.unwrap();
        self.head = Some(id);
        id
    }

    pub(crate) fn notes(&self, notes: Vec<Note>) -> Notes {
        Notes {
            at: self.head.unwrap(),
            epoch: self.epoch,
            notes,
            events: Vec::new(),
        }
    }
}

pub(crate) fn note(task: u128, kind: NoteKind, key: &str, json: &str) -> Note {
    Note {
        task: TaskId::from(uuid::Uuid::from_u128(task)),
        kind,
        key: key.to_owned(),
        json: json.to_owned(),
    }
}

pub(crate) fn claim(run: RunId) -> Claim {
    Claim { run, start: None }
}

pub(crate) fn start(run: RunId) -> Claim {
    let start = Some(RunStart {
        graph: "g".to_owned(),
        arguments: json!({"a": 1}),
    });
    Claim { run, start }
}

/// A lease as soon as the one before has been given back.
pub(crate) async fn lease(
    store: &(impl Checkpoints + ?Sized),
    thread: &str,
    claim: &Claim,
) -> Lease {
    for _ in 0..2000 {
        match store.lease(thread, claim.clone()).await {
            Ok(lease) => return lease,
            Err(Error::Conflict { .. }) => {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            Err(e) => panic!("{e}"),
        }
    }
    panic!("the lease was never given back");
}

/// What a checkpoint is, in a form that can be compared.
pub(crate) fn plain(loaded: &Loaded) -> (CheckpointId, Option<CheckpointId>, Value) {
    let channels: Map<String, Value> = loaded
        .channels
        .iter()
        .map(|(name, pieces)| {
            let pieces = pieces.iter().map(|piece| {
                let json: Value = serde_json::from_slice(&piece.json).unwrap();
                json!([piece.kind, json])
            });
            (name.clone(), pieces.collect())
        })
        .collect();
    let mut changed = loaded.changed.clone();
    changed.sort();
    let rest = json!({
        "metadata": loaded.metadata,
        "machine": String::from_utf8(loaded.machine.clone()).unwrap(),
        "channels": channels,
        "changed": changed,
        "notes": loaded.notes,
    });
    (loaded.id, loaded.parent, rest)
}

/// The value of a list channel, put together from its pieces.
pub(crate) fn list(loaded: &Loaded, channel: &str) -> Vec<Value> {
    let pieces = loaded.channels.iter().find(|(name, _)| name == channel);
    let mut all: Vec<Value> = Vec::new();
    for piece in pieces.iter().flat_map(|(_, pieces)| pieces) {
        let json: Value = serde_json::from_slice(&piece.json).unwrap();
        match piece.kind {
            PatchKind::Whole => all = json.as_array().unwrap().clone(),
            PatchKind::Append => all.extend(json.as_array().unwrap().clone()),
            PatchKind::Edit => {
                for pair in json["set"].as_array().unwrap() {
                    let at = usize::try_from(pair[0].as_u64().unwrap()).unwrap();
                    all[at] = pair[1].clone();
                }
                all.extend(json["append"].as_array().unwrap().clone());
            }
        }
    }
    all
}
