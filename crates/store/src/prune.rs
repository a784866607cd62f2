//! Removing checkpoints: of a thread as a retention rule says, or those that some runs wrote.
//!
//! Called by `threads`. Which ones stay is decided on light rows (`choice`), and what they need is
//! written down before anything is removed (`scope`). All of it is one transaction.

mod choice;
mod pieces;
mod scope;

use crate::{
    checkpoints::{ThreadDoc, Touch, read},
    codec::Codec,
    database::{Database, Fault, Lock, LockOn},
    durable::Durable,
    error::damaged,
    events, gateway,
    sql::{Statement, Tx, one},
    threads::{Living, Stored, find, free, hold, is_free, is_settled, is_there},
};
use choice::Line;
use paraph_graph::{Error, Keep, Pruned, RunId, RunStatus, Scope, Standing, ThreadStatus};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

/// How many statements are sent at a time.
const BATCH: usize = 500;

/// Sends statements in batches; says how many rows they wrote.
async fn send(tx: &mut dyn Tx, statements: Vec<Statement<'_>>) -> Result<u64, Fault> {
    let mut written = 0;
    let mut rest = statements.into_iter();
    loop {
        let batch: Vec<_> = rest.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(written);
        }
        let answers = tx.all(batch).await?;
        written += answers.iter().map(|answer| answer.written).sum::<u64>();
    }
}

/// Whether something on the thread is to go on.
async fn is_pending(tx: &mut dyn Tx, found: &Stored) -> Result<bool, Fault> {
    let row = &found.row;
    if row.status != ThreadStatus::Idle || !row.next.is_empty() || !row.interrupts.is_empty() {
        return Ok(true);
    }
    if gateway::unsettled(tx, &row.name, None).await?.is_some() {
        return Ok(true);
    }
    let word = crate::runs::word;
    let waits = Statement::new(
        "SELECT id FROM run WHERE thread = $1 AND (status = $2 OR status = $3) LIMIT 1",
        [
            row.name.as_str().into(),
            word(RunStatus::Pending).into(),
            word(RunStatus::Running).into(),
        ],
    );
    is_there(tx, waits).await
}

/// What stays of a thread; nothing if something on it is to go on.
async fn chosen(
    tx: &mut dyn Tx,
    codec: &Codec,
    found: &Stored,
    keep: Keep,
) -> Result<Option<Vec<Line>>, Fault> {
    let name = found.row.name.as_str();
    let mut lines = choice::lines(tx, name, found.id).await?;
    if let Keep::UpTo(at) = keep {
        if !choice::root(&lines).is_some_and(|line| line.all.contains_key(&at)) {
            return Err(Fault::Refused(Error::UnknownCheckpoint {
                thread: name.to_owned(),
                checkpoint: at,
            }));
        }
    } else if is_pending(tx, found).await? {
        return Ok(None);
    }
    for line in &mut lines {
        line.keep(keep);
    }
    choice::follow(tx, codec, &mut lines).await?;
    Ok(Some(lines))
}

async fn prune(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    (name, keep): (&str, Keep),
) -> Result<Pruned, Fault> {
    let found = hold(tx, codec, name).await?;
    let found = found.ok_or_else(|| Error::UnknownThread(name.to_owned()))?;
    free(tx, living, &found).await?;
    match chosen(tx, codec, &found, keep).await? {
        Some(lines) => remove(tx, codec, (&found, living.now_ms), &lines).await,
        None => Ok(Pruned::PENDING),
    }
}

/// What [`prune`] would do, without doing it.
async fn prunable(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    (name, keep): (&str, Keep),
) -> Result<Pruned, Fault> {
    let found = find(tx, codec, name).await?;
    let found = found.ok_or_else(|| Error::UnknownThread(name.to_owned()))?;
    is_free(living, &found)?;
    let Some(lines) = chosen(tx, codec, &found, keep).await? else {
        return Ok(Pruned::PENDING);
    };
    let gone = lines.iter().map(|line| line.all.len() - line.kept.len());
    let checkpoints = gone.sum::<usize>() as u64;
    let count = |run: &String| {
        Statement::new(
            "SELECT COUNT(*) FROM event WHERE thread = $1 AND run = $2",
            [found.id.into(), run.clone().into()],
        )
    };
    let runs = runs_gone(&lines);
    let mut events = 0;
    for answer in tx.all(runs.iter().map(count).collect()).await? {
        let counted = answer.first().map(|row| row.unsigned(0)).transpose();
        let counted = counted
            .map_err(|e| damaged(format!("the number of events of `{name}`"), e.to_string()))?;
        events += counted.unwrap_or_default();
    }
    Ok(Pruned {
        checkpoints,
        events,
        pending: false,
    })
}

/// The runs of which no checkpoint stays.
fn runs_gone(lines: &[Line]) -> Vec<String> {
    let runs_of = |kept: bool| {
        let of = move |line: &Line| {
            let all = line
                .all
                .iter()
                .filter(|(id, _)| line.kept.contains(*id) == kept);
            all.map(|(_, light)| light.run.clone()).collect::<Vec<_>>()
        };
        lines.iter().flat_map(of).collect::<HashSet<String>>()
    };
    let (gone, stay) = (runs_of(false), runs_of(true));
    gone.difference(&stay).cloned().collect()
}

/// Removes what the lines do not keep, and what only that needed.
async fn remove(
    tx: &mut dyn Tx,
    codec: &Codec,
    (found, now_ms): (&Stored, u64),
    lines: &[Line],
) -> Result<Pruned, Fault> {
    let forget = |run: &String| {
        Statement::new(
            "DELETE FROM event WHERE thread = $1 AND run = $2",
            [found.id.into(), run.clone().into()],
        )
    };
    let events = send(tx, runs_gone(lines).iter().map(forget).collect()).await?;
    let told = events::pieces_told(tx, found.id, &found.row.name).await?;
    let mut checkpoints = 0;
    // A scope that only the log needed so far may be needed by nobody now.
    let shrinks = |line: &&Line| line.kept.len() < line.all.len() || line.all.is_empty();
    for line in lines.iter().filter(shrinks) {
        scope::shrink(tx, codec, line, &told).await?;
        checkpoints += (line.all.len() - line.kept.len()) as u64;
    }
    let root = choice::root(lines);
    if root.is_some_and(|line| line.all.keys().next_back() != line.kept.last()) {
        stand_at_head(tx, codec, found, now_ms).await?;
    }
    Ok(Pruned {
        checkpoints,
        events,
        pending: false,
    })
}

/// The thread stands where its head stands, which is another one now.
async fn stand_at_head(
    tx: &mut dyn Tx,
    codec: &Codec,
    found: &Stored,
    now_ms: u64,
) -> Result<(), Fault> {
    let name = found.row.name.as_str();
    let root = Scope {
        thread: name.into(),
        namespace: "".into(),
    };
    let standing = match read::load(tx, codec, &root, None).await? {
        Some(head) => Standing::of(name, &head)?,
        None => Standing::IDLE,
    };
    let touch = Touch {
        thread: name,
        epoch: u64::MAX,
        now_ms: Some(now_ms),
        grows: (0, 0),
        standing: Some(&standing),
    };
    let doc = ThreadDoc {
        metadata: found.row.metadata.clone(),
        state: None,
    };
    let save = doc.save(codec, name, found.id);
    tx.all(vec![touch.statement(codec), save]).await?;
    Ok(())
}

/// Removes what these runs wrote on one thread.
async fn remove_from(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    (name, runs): (&str, &[RunId]),
) -> Result<Pruned, Fault> {
    let Some(found) = hold(tx, codec, name).await? else {
        return Ok(Pruned::default());
    };
    free(tx, living, &found).await?;
    let mut lines = choice::lines(tx, name, found.id).await?;
    let ids: HashSet<String> = runs.iter().map(ToString::to_string).collect();
    for line in &mut lines {
        let stays = line
            .all
            .iter()
            .filter(|(_, light)| !ids.contains(&light.run));
        line.kept = stays.map(|(id, _)| *id).collect();
    }
    choice::follow(tx, codec, &mut lines).await?;
    let forget = |run: &String| {
        Statement::new(
            "DELETE FROM event WHERE thread = $1 AND run = $2",
            [found.id.into(), run.clone().into()],
        )
    };
    let events = send(tx, ids.iter().map(forget).collect()).await?;
    let mut pruned = remove(tx, codec, (&found, living.now_ms), &lines).await?;
    pruned.events += events;
    Ok(pruned)
}

async fn remove_runs(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    (runs, threads): (&[RunId], &BTreeSet<String>),
) -> Result<Pruned, Fault> {
    for run in runs {
        let find = Statement::new("SELECT id FROM run WHERE id = $1", [run.to_string().into()]);
        if !is_there(tx, find).await? {
            return Err(Fault::Refused(Error::UnknownRun(*run)));
        }
    }
    let mut all = Pruned::default();
    for thread in threads {
        for run in runs {
            is_settled(tx, thread, Some(&run.to_string())).await?;
        }
        let pruned = remove_from(tx, codec, living, (thread, runs)).await?;
        all.checkpoints += pruned.checkpoints;
        all.events += pruned.events;
        for run in runs {
            tx.all(gateway::forget(thread, Some(&run.to_string())).into())
                .await?;
        }
    }
    for run in runs {
        let delete = Statement::new("DELETE FROM run WHERE id = $1", [run.to_string().into()]);
        one(tx, delete).await?;
    }
    Ok(all)
}

impl<D: Database> Durable<D> {
    pub(crate) async fn prune_thread(&self, name: &str, keep: Keep) -> Result<Pruned, Error> {
        let living = Arc::new(self.living_on(&[name]).await?);
        let (codec, lane) = (self.codec.clone(), name);
        let name = Arc::<str>::from(name);
        self.write(lane, move |tx| {
            let (codec, living, name) = (codec.clone(), living.clone(), name.clone());
            Box::pin(async move { prune(tx, &codec, &living, (&name, keep)).await })
        })
        .await
    }

    pub(crate) async fn prunable_of(&self, name: &str, keep: Keep) -> Result<Pruned, Error> {
        let living = Arc::new(self.living_on(&[name]).await?);
        let codec = self.codec.clone();
        let name = Arc::<str>::from(name);
        self.read(move |tx| {
            let (codec, living, name) = (codec.clone(), living.clone(), name.clone());
            Box::pin(async move { prunable(tx, &codec, &living, (&name, keep)).await })
        })
        .await
    }

    pub(crate) async fn remove_runs(&self, runs: &[RunId]) -> Result<Pruned, Error> {
        let mut threads = BTreeSet::new();
        for run in runs {
            let row = self.find_run(*run).await?;
            threads.insert(row.ok_or(Error::UnknownRun(*run))?.thread);
        }
        let names: Vec<&str> = threads.iter().map(String::as_str).collect();
        let living = Arc::new(self.living_on(&names).await?);
        let lane = names.first().copied().unwrap_or_default().to_owned();
        let others = names.iter().skip(1);
        let locks = others.map(|name| Lock::alone(LockOn::Lane, *name));
        let locks = locks.collect();
        let (codec, asked) = (self.codec.clone(), Arc::new((runs.to_vec(), threads)));
        self.write_locked(&lane, locks, move |tx| {
            let (codec, living, asked) = (codec.clone(), living.clone(), asked.clone());
            Box::pin(async move { remove_runs(tx, &codec, &living, (&asked.0, &asked.1)).await })
        })
        .await
    }
}
