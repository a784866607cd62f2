//! What the rules have in common: a thread of their own, things to put, and comparing.

use crate::{
    CheckpointId, Claim, Delta, Entry, Error, HistoryQuery, Lease, Loaded, Metadata, Note,
    NoteKind, Notes, PatchKind, Put, RunId, Scope, Source, Store, TaskId,
};
use serde_json::{Map, Value};
use std::fmt::{Debug, Display};

/// A thread of one rule's own.
#[derive(Clone)]
pub(super) struct Scene {
    pub(super) store: Store,
    pub(super) scope: Scope,
    pub(super) epoch: u64,
}

impl Scene {
    pub(super) fn on(store: Store, rule: &str) -> Self {
        let scope = Scope {
            thread: format!("{rule} {}", RunId::fresh()).into(),
            namespace: "".into(),
        };
        Scene {
            store,
            scope,
            epoch: 0,
        }
    }

    /// A put of nothing, to be filled.
    pub(super) fn put(&self, parent: Option<CheckpointId>, expect: Option<CheckpointId>) -> Put {
        Put {
            id: CheckpointId::fresh(),
            parent,
            expect,
            metadata: Metadata {
                source: Source::Loop,
                superstep: 0,
                run: RunId::fresh(),
                created_ms: 1_700_000_000_123,
                user: Map::new(),
            },
            machine: b"{}".to_vec(),
            deltas: Vec::new(),
            notes: Vec::new(),
            epoch: self.epoch,
            standing: None,
            events: Vec::new(),
        }
    }

    pub(super) fn notes(&self, at: CheckpointId, notes: Vec<Note>) -> Notes {
        Notes {
            at,
            epoch: self.epoch,
            notes,
            events: Vec::new(),
        }
    }

    pub(super) async fn try_put(&self, put: Put) -> Result<(), Error> {
        self.store.put(&self.scope, put).await
    }

    pub(super) async fn save(&self, put: Put) -> Result<(), String> {
        self.try_put(put).await.map_err(text)
    }

    pub(super) async fn try_note(&self, at: CheckpointId, notes: Vec<Note>) -> Result<(), Error> {
        self.store.note(&self.scope, self.notes(at, notes)).await
    }

    pub(super) async fn load(&self, at: Option<CheckpointId>) -> Result<Option<Loaded>, String> {
        self.store.load(&self.scope, at).await.map_err(text)
    }

    pub(super) async fn history(&self, query: HistoryQuery) -> Result<Vec<Entry>, String> {
        self.store.history(&self.scope, &query).await.map_err(text)
    }

    /// A lease, when the one before has been given back: dropping one may take a store a moment.
    pub(super) async fn lease_when_free(&self, thread: &str, run: RunId) -> Result<Lease, String> {
        let mut tries = 0;
        loop {
            match self.store.lease(thread, Claim { run, start: None }).await {
                Ok(lease) => return Ok(lease),
                Err(Error::Conflict { .. }) if tries < 1000 => {
                    tries += 1;
                    tokio::task::yield_now().await;
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                Err(e) => return Err(format!("a lease: {e}")),
            }
        }
    }
}

pub(super) fn text(e: impl Display) -> String {
    e.to_string()
}

pub(super) fn delta(channel: &str, kind: PatchKind, json: &Value) -> Delta {
    Delta {
        channel: channel.to_owned(),
        kind,
        json: json.to_string().into_bytes(),
    }
}

pub(super) fn note(task: u128, kind: NoteKind, key: &str, json: &str) -> Note {
    Note {
        task: TaskId::from(uuid::Uuid::from_u128(task)),
        kind,
        key: key.to_owned(),
        json: json.to_owned(),
    }
}

/// The pieces of a channel, put together as the engine would.
pub(super) fn value_of(loaded: &Loaded, channel: &str) -> Result<Option<Value>, String> {
    let mut named = loaded.channels.iter().filter(|(name, _)| name == channel);
    let Some((_, pieces)) = named.next() else {
        return Ok(None);
    };
    if named.next().is_some() {
        return Err(format!("`{channel}` is there twice"));
    }
    let mut value = Value::Array(Vec::new());
    for piece in pieces {
        let json: Value = serde_json::from_slice(&piece.json).map_err(text)?;
        match (piece.kind, &mut value, json) {
            (PatchKind::Whole, value, json) => *value = json,
            (PatchKind::Append, Value::Array(all), Value::Array(more)) => all.extend(more),
            (PatchKind::Edit, Value::Array(all), Value::Object(edit)) => edited(all, &edit)?,
            (kind, ..) => return Err(format!("a piece of `{channel}` is no {kind:?}")),
        }
    }
    Ok(Some(value))
}

fn edited(all: &mut Vec<Value>, edit: &Map<String, Value>) -> Result<(), String> {
    let list = |key: &str| edit.get(key).and_then(Value::as_array).cloned();
    for pair in list("set").ok_or("an edit without `set`")? {
        let at = pair.get(0).and_then(Value::as_u64);
        let slot = at.and_then(|at| all.get_mut(usize::try_from(at).ok()?));
        let (slot, item) = slot.zip(pair.get(1)).ok_or("an edit of no item")?;
        *slot = item.clone();
    }
    all.extend(list("append").ok_or("an edit without `append`")?);
    Ok(())
}

pub(super) fn same<T: PartialEq + Debug>(what: &str, seen: T, wanted: T) -> Result<(), String> {
    if seen == wanted {
        return Ok(());
    }
    let mut why = format!("{what} is {seen:?}, not {wanted:?}");
    if why.len() > 4000 {
        why.truncate(why.floor_char_boundary(4000));
    }
    Err(why)
}

/// A result that must be an error of one kind.
pub(super) fn fails<T>(
    what: &str,
    result: Result<T, Error>,
    as_wanted: impl Fn(&Error) -> bool,
) -> Result<(), String> {
    match result {
        Ok(_) => Err(format!("{what} went well")),
        Err(e) if as_wanted(&e) => Ok(()),
        Err(e) => Err(format!("{what} failed otherwise: {e}")),
    }
}

/// A key of just so many bytes that no database can pack: of printable characters, or of those that take two.
pub(super) fn long_key(bytes: usize, low: bool) -> String {
    let mut n = 7_u64;
    let mut next = |of: u64| {
        n = n
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Always below 128.
        char::from(u8::try_from((n >> 33) % of).unwrap_or_default())
    };
    match low {
        true => (0..bytes / 2).map(|_| next(4)).collect(),
        false => (0..bytes)
            .map(|_| char::from(next(90) as u8 + 35))
            .collect(),
    }
}
