//! A child that takes its thread's lease, waits, and then writes in every way there is.
//!
//! Started as `paraph-crash linger ORDER` by a test that stops it beyond its lease meanwhile: each of its writes
//! must be refused, whatever it knows by then. `paraph-crash take ORDER` is who takes the thread over.

use paraph_graph::{
    CheckpointId, Checkpoints, Claim, Delta, Error, Metadata, Note, NoteKind, Notes, PatchKind,
    Put, RunEnd, RunId, RunStart, RunStatus, Scope, Source, TaskId,
};
use uuid::Uuid;

use crate::Fault;
use crate::child::Order;
use crate::failpoint::Watched;
use crate::outside::{Outside, say};

/// The effect by which such a child waits; the counter holds it.
const WAIT: &str = "linger";

/// Takes the lease, says `held`, waits for the counter, and says of each write whether it was refused.
///
/// # Errors
/// When the store cannot be opened, gives no lease, or fails in another way than by refusing.
pub async fn linger(order: &Order) -> Result<(), Fault> {
    let store = order.place.open().await?;
    let claim = Claim {
        run: RunId::from(order.run),
        start: Some(RunStart::default()),
    };
    let lease = store.lease(&order.thread, claim).await?;
    let scope = Scope {
        thread: order.thread.as_str().into(),
        namespace: "".into(),
    };
    let run = RunId::from(order.run);
    let first = put(None, run, lease.epoch);
    let head = first.id;
    store.put(&scope, first).await?;
    say("held");
    let outside = Outside {
        counter: Some(order.counter),
        trial: order.thread.clone(),
        process: order.process,
        takes: std::time::Duration::ZERO,
    };
    outside
        .ask(WAIT, None)
        .await
        .map_err(|error| error.to_string())?;

    judge(
        "put",
        store.put(&scope, put(Some(head), run, lease.epoch)).await,
    )?;
    let note = Note {
        task: TaskId::from(Uuid::from_u128(1)),
        kind: NoteKind::Memo,
        key: "late".to_owned(),
        json: "1".to_owned(),
    };
    let notes = Notes {
        at: head,
        epoch: lease.epoch,
        notes: vec![note],
        events: Vec::new(),
    };
    judge("note", store.note(&scope, notes).await)?;
    let end = RunEnd {
        run,
        epoch: lease.epoch,
        status: RunStatus::Success,
        error: None,
        standing: None,
        events: Vec::new(),
    };
    judge("finish", store.finish(&order.thread, end).await)
}

/// Takes the lease of a thread when it is to be had, and writes once after its head.
///
/// # Errors
/// Those of the store.
pub async fn take(order: &Order) -> Result<(), Fault> {
    let store = Watched::over(order.place.open().await?, None);
    let run = RunId::from(order.run);
    let claim = Claim {
        run,
        start: Some(RunStart::default()),
    };
    let lease = store.lease(&order.thread, claim).await?;
    let scope = Scope {
        thread: order.thread.as_str().into(),
        namespace: "".into(),
    };
    let head = store.load(&scope, None).await?.map(|loaded| loaded.id);
    store.put(&scope, put(head, run, lease.epoch)).await?;
    Ok(())
}

fn judge(write: &str, answer: Result<(), Error>) -> Result<(), Fault> {
    match answer {
        Ok(()) => say(&format!("accepted {write}")),
        Err(Error::Conflict { .. }) => say(&format!("refused {write}")),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn put(after: Option<CheckpointId>, run: RunId, epoch: u64) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: after,
        expect: after,
        metadata: Metadata {
            source: Source::Loop,
            superstep: 0,
            run,
            created_ms: 0,
            user: serde_json::Map::new(),
        },
        machine: b"{}".to_vec(),
        deltas: vec![Delta {
            channel: "log".to_owned(),
            kind: PatchKind::Append,
            json: b"[1]".to_vec(),
        }],
        notes: Vec::new(),
        epoch,
        standing: None,
        events: Vec::new(),
    }
}
