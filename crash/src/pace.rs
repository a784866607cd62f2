//! A child that only writes: checkpoints of a thread of its own, at a given rate.
//!
//! Started as `paraph-crash pace PLACE THREAD RATE SECONDS`, two at a time on one file, to see whether either is
//! ever told that the database is locked (langchain-ai/langgraph#8136).

use std::time::Duration;

use paraph_graph::{CheckpointId, Claim, Delta, Metadata, PatchKind, Put, RunId, Scope, Source};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use crate::Fault;
use crate::place::Place;

/// What such a child says at its end, as one line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Paced {
    /// Writes that were acknowledged.
    pub written: usize,
    /// Those that were not, with the words of the store.
    pub errors: Vec<String>,
    /// The longest that a write took, in milliseconds.
    pub slowest_ms: f64,
}

/// Writes to a thread so many times a second, for so many seconds.
///
/// # Errors
/// When the store cannot be opened, or gives no lease.
pub async fn pace(place: &Place, thread: &str, rate: u32, seconds: u32) -> Result<Paced, Fault> {
    let store = place.open().await?;
    let run = RunId::fresh();
    let claim = Claim { run, start: None };
    let lease = store.lease(thread, claim).await?;
    let scope = Scope {
        thread: thread.into(),
        namespace: "".into(),
    };
    let mut paced = Paced::default();
    let mut head = None;
    let began = Instant::now();
    for at in 0..rate * seconds {
        sleep_until(began + Duration::from_secs(1) * at / rate).await;
        let asked = Instant::now();
        let put = next(head, (run, lease.epoch), at);
        let id = put.id;
        match store.put(&scope, put).await {
            Ok(()) => {
                paced.written += 1;
                head = Some(id);
            }
            Err(error) => paced.errors.push(error.to_string()),
        }
        paced.slowest_ms = paced.slowest_ms.max(asked.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(paced)
}

fn next(head: Option<CheckpointId>, (run, epoch): (RunId, u64), at: u32) -> Put {
    Put {
        id: CheckpointId::fresh(),
        parent: head,
        expect: head,
        metadata: Metadata {
            source: Source::Loop,
            superstep: i64::from(at),
            run,
            created_ms: 0,
            user: serde_json::Map::new(),
        },
        machine: b"{}".to_vec(),
        deltas: vec![Delta {
            channel: "log".to_owned(),
            kind: PatchKind::Append,
            json: format!("[{at}]").into_bytes(),
        }],
        notes: Vec::new(),
        epoch,
        standing: None,
        events: Vec::new(),
    }
}
