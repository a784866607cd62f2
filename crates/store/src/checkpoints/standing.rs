//! How a thread stands, as its row says it; and the row itself, when a thread is first written to.
//!
//! Called by all that writes to a thread's row in passing; `threads` reads what is written here.

use crate::{
    codec::{Codec, Place},
    sql::{Cell, Statement},
};
use paraph_graph::{Interrupt, Name, Standing, ThreadStatus};
use uuid::Uuid;

const STATUSES: [(ThreadStatus, &str); 4] = [
    (ThreadStatus::Idle, "idle"),
    (ThreadStatus::Busy, "busy"),
    (ThreadStatus::Interrupted, "interrupted"),
    (ThreadStatus::Error, "error"),
];

/// For column `status` of a thread.
pub(crate) fn status_text(status: ThreadStatus) -> &'static str {
    let found = STATUSES.iter().find(|(known, _)| *known == status);
    found.map_or("?", |(_, text)| text)
}

/// What [`status_text`] says.
pub(crate) fn status_of(text: &str) -> Option<ThreadStatus> {
    let found = STATUSES.iter().find(|(_, known)| *known == text);
    found.map(|(status, _)| *status)
}

fn place(thread: &str) -> Place {
    Place::new("thread").text(thread)
}

/// For the columns next, interrupts, interrupts_packed and sum.
pub(crate) fn due(
    codec: &Codec,
    thread: &str,
    next: &[Name],
    interrupts: &[Interrupt],
) -> [Cell<'static>; 4] {
    // Names and questions are JSON whatever is in them.
    let next = serde_json::to_string(next).unwrap_or_default();
    let asked =
        (!interrupts.is_empty()).then(|| serde_json::to_vec(interrupts).unwrap_or_default());
    let docs = [("interrupts", asked.as_deref())];
    let ([doc], sum) = codec.put(&place(thread), &[next.as_bytes()], docs);
    let [text, packed] = doc.owned().cells();
    [next.into(), text, packed, sum.into()]
}

/// What [`due`] wrote.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn due_read(
    codec: &Codec,
    thread: &str,
    next: &str,
    (text, packed): (Cell<'static>, Cell<'static>),
    sum: i64,
) -> Result<(Vec<Name>, Vec<Interrupt>), String> {
    let docs = [("interrupts", text, packed)];
    let [asked] = codec.take(&place(thread), &[next.as_bytes()], docs, sum)?;
    let next = serde_json::from_str(next).map_err(|e| format!("`next`: {e}"))?;
    let asked = match asked {
        None => Vec::new(),
        Some(json) => serde_json::from_slice(&json).map_err(|e| format!("`interrupts`: {e}"))?,
    };
    Ok((next, asked))
}

/// The row of a thread that is not there yet; if it is by now, it stays as it is. Without an `epoch` it
/// has that of the newest lease of all: whoever wrote to a thread of this name before it was deleted has
/// an older one.
pub(crate) fn new_thread(
    codec: &Codec,
    thread: &str,
    now_ms: u64,
    epoch: Option<u64>,
) -> Statement<'static> {
    let [next, interrupts, packed, sum] = due(codec, thread, &[], &[]);
    Statement::new(
        "INSERT INTO thread (name, uuid, status, created_ms, updated_ms, epoch, expires_ms, seq, \
         counter, next, interrupts, interrupts_packed, sum) \
         VALUES ($1, $2, $3, $4, $4, \
         COALESCE(CAST($9 AS BIGINT), (SELECT epoch FROM store WHERE one = 1), 0), \
         0, 0, 0, $5, $6, $7, $8) ON CONFLICT (name) DO NOTHING",
        [
            thread.to_owned().into(),
            Uuid::now_v7().to_string().into(),
            status_text(ThreadStatus::Idle).into(),
            now_ms.into(),
            next,
            interrupts,
            packed,
            sum,
            epoch.into(),
        ],
    )
}

/// What is written to a thread's row together with something else: its log and its pieces grow.
pub(crate) struct Touch<'a> {
    pub(crate) thread: &'a str,
    /// Of the writer's lease; if the thread's is newer, nothing is written and no row is answered.
    pub(crate) epoch: u64,
    /// When; nothing leaves the time of the last write.
    pub(crate) now_ms: Option<u64>,
    /// So many entries of the log, and so many numbers for pieces and notes.
    pub(crate) grows: (usize, usize),
    pub(crate) standing: Option<&'a Standing>,
}

impl<'a> Touch<'a> {
    /// Answers id, seq and counter of the thread, as they are afterwards. In a database with several
    /// writers this also makes all other writers to the thread wait.
    pub(crate) fn statement(&self, codec: &Codec) -> Statement<'a> {
        let (events, numbers) = self.grows;
        let mut values: Vec<Cell<'a>> = vec![
            self.thread.into(),
            self.epoch.into(),
            (events as u64).into(),
            (numbers as u64).into(),
            self.now_ms.into(),
        ];
        let Some(standing) = self.standing else {
            return Statement::new(
                "UPDATE thread SET seq = seq + $3, counter = counter + $4, \
                 updated_ms = COALESCE($5, updated_ms) \
                 WHERE name = $1 AND epoch <= $2 RETURNING id, seq, counter",
                values,
            );
        };
        values.push(status_text(standing.status).into());
        let due = due(codec, self.thread, &standing.next, &standing.interrupts);
        values.extend(due);
        Statement::new(
            "UPDATE thread SET seq = seq + $3, counter = counter + $4, \
             updated_ms = COALESCE($5, updated_ms), status = $6, \
             next = $7, interrupts = $8, interrupts_packed = $9, sum = $10 \
             WHERE name = $1 AND epoch <= $2 RETURNING id, seq, counter",
            values,
        )
    }
}
