//! What reading and writing cost: rows and statements are counted, time is not.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use super::*;
use crate::{
    codec::Codec,
    options::Options,
    sql::{Answer, SqlError, Statement, Tx},
    sqlite::Sqlite,
};
use paraph_graph::{Delta, Metadata, PatchKind, RunId, Source};

/// A transaction that counts.
struct Counting<'a> {
    tx: &'a mut dyn Tx,
    calls: usize,
    statements: usize,
    rows: usize,
}

impl Tx for Counting<'_> {
    fn all<'t>(
        &'t mut self,
        statements: Vec<Statement<'t>>,
    ) -> BoxFuture<'t, Result<Vec<Answer>, SqlError>> {
        self.calls += 1;
        self.statements += statements.len();
        Box::pin(async move {
            let answers = self.tx.all(statements).await?;
            self.rows += answers.iter().map(|a| a.rows.len()).sum::<usize>();
            Ok(answers)
        })
    }

    fn clock(&self) -> &'static str {
        self.tx.clock()
    }
}

type Counts = (usize, usize, usize);

fn scope() -> Scope {
    Scope {
        thread: "t".into(),
        namespace: "".into(),
    }
}

fn step(head: Option<CheckpointId>, deltas: &[(&str, PatchKind)]) -> Put {
    let delta = |(channel, kind): &(&str, PatchKind)| Delta {
        channel: (*channel).to_owned(),
        kind: *kind,
        json: b"[1]".to_vec(),
    };
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run: RunId::fresh(),
            created_ms: 1,
            user: serde_json::Map::new(),
        },
        machine: b"{}".to_vec(),
        deltas: deltas.iter().map(delta).collect(),
        notes: Vec::new(),
        epoch: 0,
        standing: None,
        events: Vec::new(),
    }
}

async fn counted_put(store: &Sqlite, put: Put) -> Counts {
    let (codec, put) = (store.codec.clone(), Arc::new(write::Ready::put(put)));
    let done = store.write("t", move |tx| {
        let (codec, put) = (codec.clone(), put.clone());
        Box::pin(async move {
            let mut tx = counting(tx);
            write::put(&mut tx, &codec, &scope(), &put).await?;
            Ok((tx.calls, tx.statements, tx.rows))
        })
    });
    done.await.unwrap()
}

async fn counted_load(store: &Sqlite, at: CheckpointId) -> Counts {
    let codec: Arc<Codec> = store.codec.clone();
    let done = store.read(move |tx| {
        let codec = codec.clone();
        Box::pin(async move {
            let mut tx = counting(tx);
            read::load(&mut tx, &codec, &scope(), Some(at))
                .await?
                .unwrap();
            Ok((tx.calls, tx.statements, tx.rows))
        })
    });
    done.await.unwrap()
}

fn counting(tx: &mut dyn Tx) -> Counting<'_> {
    Counting {
        tx,
        calls: 0,
        statements: 0,
        rows: 0,
    }
}

#[tokio::test]
async fn reading_a_checkpoint_costs_its_state_and_not_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("a.db"), Options::default());
    let store = store.await.unwrap();
    let all: Vec<String> = (0..12).map(|i| format!("c{i}")).collect();
    let mut ids = Vec::new();
    for i in 0..700 {
        // One list that is never longer than ten pieces, and two of the other channels.
        let list = if i % 10 == 0 {
            PatchKind::Whole
        } else {
            PatchKind::Append
        };
        let mut deltas = vec![("list", list)];
        let some = if i == 0 { 0..12 } else { i % 11..i % 11 + 2 };
        deltas.extend(some.map(|c| (&*all[c], PatchKind::Whole)));
        let put = step(ids.last().copied(), &deltas);
        ids.push(put.id);
        let costs = counted_put(&store, put).await;
        // Thread, head, parent and base; then the checkpoint and its three pieces.
        let expected = match i {
            // The first makes the rows of thread and scope too.
            0 => continue,
            _ => (2, 8),
        };
        assert_eq!((costs.0, costs.1), expected, "put {i}");
    }
    for i in (0..700).step_by(41) {
        let (calls, statements, rows) = counted_load(&store, ids[i]).await;
        // The checkpoint, its base, 12 pieces, and up to ten of the list.
        assert_eq!(calls, 3, "{i}");
        assert!(
            statements <= 3 + 13 && rows <= 2 + 12 + 10,
            "{i}: {statements}, {rows}"
        );
    }
}

#[tokio::test]
async fn a_put_costs_the_same_however_long_the_history_and_the_chains_are() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("a.db"), Options::default());
    let store = store.await.unwrap();
    let (mut head, mut costs) = (None, Vec::new());
    for _ in 0..300 {
        let put = step(head, &[("list", PatchKind::Append)]);
        head = Some(put.id);
        costs.push(counted_put(&store, put).await);
    }
    assert!(costs[2..].iter().all(|cost| *cost == costs[2]), "{costs:?}");
}
