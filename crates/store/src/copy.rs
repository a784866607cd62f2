//! Copying a thread under another name.
//!
//! Called by `threads`. Every row is read, checked and written anew: what a row's sum and its encryption
//! are bound to has the thread's name in it. Rows are in hand in pages, all in one transaction.

use crate::{
    checkpoints::{
        ThreadDoc, Touch, new_thread, read,
        rows::{
            CheckpointRow, PieceKey, PieceRow, checkpoint_columns, corrupt, note_insert, note_read,
        },
    },
    codec::Codec,
    database::{Database, Fault},
    durable::Durable,
    error::damaged,
    events,
    sql::{BadCell, Row, Statement, Tx, one},
    threads::{Living, Stored, hold, is_there},
};
use paraph_graph::{CheckpointId, Error, Scope, Standing, with_origin};
use std::{collections::HashMap, sync::Arc};

/// How many rows are in hand at a time.
const PAGE: u64 = 64;

/// A scope of both threads.
struct Pair {
    from: (Scope, i64),
    to: (Scope, i64),
}

async fn copy(
    tx: &mut dyn Tx,
    codec: &Codec,
    living: &Living,
    (from, to): (&str, &str),
) -> Result<(), Fault> {
    let conflict = |thread: &str, holder| {
        Fault::Refused(Error::Conflict {
            thread: thread.to_owned(),
            holder,
        })
    };
    let taken = Statement::new("SELECT id FROM thread WHERE name = $1", [to.into()]);
    if is_there(tx, taken).await? {
        return Err(conflict(to, None));
    }
    let found = hold(tx, codec, from).await?;
    let found = found.ok_or_else(|| Error::UnknownThread(from.to_owned()))?;
    if living.has(&found.owner) {
        return Err(conflict(from, found.row.holder));
    }
    one(tx, new_thread(codec, to, living.now_ms, None)).await?;
    let new = hold(tx, codec, to).await?;
    let new =
        new.ok_or_else(|| damaged(format!("the row of thread `{to}`"), "it cannot be made"))?;
    let pairs = scopes(tx, (from, found.id), (to, new.id)).await?;
    for pair in &pairs {
        checkpoints(tx, codec, pair).await?;
        pieces(tx, codec, pair).await?;
    }
    let moved = pairs.iter().map(|pair| (pair.from.1, pair.to.1)).collect();
    log(tx, codec, (from, found.id), (to, new.id), &moved).await?;
    rows(tx, codec, &found, &new).await
}

/// What the new thread's row says.
async fn rows(tx: &mut dyn Tx, codec: &Codec, found: &Stored, new: &Stored) -> Result<(), Fault> {
    let name = new.row.name.as_str();
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
        now_ms: Some(new.row.updated_ms),
        grows: (0, 0),
        standing: Some(&standing),
    };
    let doc = ThreadDoc {
        metadata: found.row.metadata.clone(),
        state: found.row.values.clone(),
    };
    let counts = Statement::new(
        "UPDATE thread SET graph = $3, seq = (SELECT seq FROM thread WHERE id = $2), \
         counter = (SELECT counter FROM thread WHERE id = $2) WHERE id = $1",
        [
            new.id.into(),
            found.id.into(),
            found.row.graph.as_deref().into(),
        ],
    );
    let save = doc.save(codec, name, new.id);
    tx.all(vec![touch.statement(codec), counts, save]).await?;
    Ok(())
}

async fn scopes(tx: &mut dyn Tx, from: (&str, i64), to: (&str, i64)) -> Result<Vec<Pair>, Fault> {
    let bad = |e: BadCell| damaged(format!("a scope of thread `{}`", from.0), e.to_string());
    let list = Statement::new(
        "SELECT id, namespace, head FROM scope WHERE thread = $1 ORDER BY id",
        [from.1.into()],
    );
    let mut pairs = Vec::new();
    for row in one(tx, list).await?.rows {
        let namespace = row.text(1).map_err(bad)?;
        let insert = Statement::new(
            "INSERT INTO scope (thread, namespace, head) VALUES ($1, $2, $3) RETURNING id",
            [
                to.1.into(),
                namespace.into(),
                row.opt_text(2).map_err(bad)?.into(),
            ],
        );
        let made = one(tx, insert).await?.first();
        let made = made
            .ok_or_else(|| damaged(format!("a scope of thread `{}`", to.0), "it cannot be made"))?;
        let scope = |thread: &str| Scope {
            thread: thread.into(),
            namespace: namespace.into(),
        };
        pairs.push(Pair {
            from: (scope(from.0), row.int(0).map_err(bad)?),
            to: (scope(to.0), made.int(0).map_err(bad)?),
        });
    }
    Ok(pairs)
}

async fn checkpoints(tx: &mut dyn Tx, codec: &Codec, pair: &Pair) -> Result<(), Fault> {
    let mut after = String::new();
    loop {
        let page = Statement::new(
            checkpoint_columns!(
                "",
                "FROM checkpoint c WHERE c.scope = $1 AND c.id > $2 ORDER BY c.id LIMIT $3"
            ),
            [pair.from.1.into(), after.as_str().into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows;
        let is_last = (rows.len() as u64) < PAGE;
        let mut ids = Vec::with_capacity(rows.len());
        let mut statements = Vec::with_capacity(rows.len());
        for mut row in rows {
            let mut row = CheckpointRow::read(codec, &pair.from.0, &mut row)?;
            // Whatever the old one is a move of, this is another thread. What is no machine is copied as it is.
            if let Ok(machine) = with_origin(&row.machine, None) {
                row.machine = machine;
            }
            ids.push(row.entry.id);
            statements.push(row.insert(codec, &pair.to.0, pair.to.1));
        }
        tx.all(statements).await?;
        notes(tx, codec, pair, &ids).await?;
        match ids.last() {
            Some(last) if !is_last => after = last.to_string(),
            _ => return Ok(()),
        }
    }
}

async fn notes(
    tx: &mut dyn Tx,
    codec: &Codec,
    pair: &Pair,
    ids: &[CheckpointId],
) -> Result<(), Fault> {
    let of = |id: &CheckpointId| {
        Statement::new(
            "SELECT task, kind, key, n, value, value_packed, sum FROM note \
             WHERE scope = $1 AND checkpoint = $2",
            [pair.from.1.into(), id.to_string().into()],
        )
    };
    let answers = tx.all(ids.iter().map(of).collect()).await?;
    let mut all = Vec::new();
    for (id, answer) in ids.iter().zip(answers) {
        for row in answer.rows {
            let note = note_read(codec, &pair.from.0, *id, row);
            let note = note.map_err(|why| corrupt(&pair.from.0, *id, why))?;
            all.push((*id, note));
        }
    }
    let mut statements = Vec::with_capacity(all.len());
    for (id, (note, n)) in &all {
        statements.push(note_insert(
            codec,
            &pair.to.0,
            pair.to.1,
            *id,
            (note, *n, None),
        ));
    }
    tx.all(statements).await?;
    Ok(())
}

async fn pieces(tx: &mut dyn Tx, codec: &Codec, pair: &Pair) -> Result<(), Fault> {
    let mut after = 0;
    loop {
        let page = Statement::new(
            "SELECT n, channel, kind, before, value, value_packed, sum FROM piece \
             WHERE scope = $1 AND n > $2 ORDER BY n LIMIT $3",
            [pair.from.1.into(), after.into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows.into_iter();
        let read = |row: Row| PieceRow::read(codec, &pair.from.0, row);
        let read: Result<Vec<PieceRow>, String> = rows.map(read).collect();
        let read = read.map_err(|why| damaged(format!("thread `{}`", pair.from.0), why))?;
        let mut statements = Vec::with_capacity(read.len());
        for piece in &read {
            let key = PieceKey {
                channel: &piece.channel,
                n: piece.n,
                kind: piece.kind,
                before: piece.before,
            };
            statements.push(key.insert(codec, &pair.to.0, pair.to.1, (&piece.json, None)));
        }
        tx.all(statements).await?;
        match read.last() {
            Some(last) if read.len() as u64 == PAGE => after = last.n,
            _ => return Ok(()),
        }
    }
}

/// The log, whose entries name pieces by the rows of their scopes.
async fn log(
    tx: &mut dyn Tx,
    codec: &Codec,
    from: (&str, i64),
    to: (&str, i64),
    moved: &HashMap<i64, i64>,
) -> Result<(), Fault> {
    let mut after = 0;
    loop {
        let page = Statement::new(
            events::columns!(
                "FROM event e WHERE e.thread = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3"
            ),
            [from.1.into(), after.into(), PAGE.into()],
        );
        let rows = one(tx, page).await?.rows.into_iter();
        let read: Result<Vec<_>, Error> =
            rows.map(|row| events::read(codec, from.0, row)).collect();
        let mut read = read?;
        let mut statements = Vec::with_capacity(read.len());
        for found in &mut read {
            for (scope, _) in found.same.values_mut() {
                *scope = moved.get(scope).copied().unwrap_or(*scope);
            }
            statements.push(found.insert(codec, (to.1, to.0)));
        }
        tx.all(statements).await?;
        let last = read.last().map(|found| found.seq);
        let full = read.len() as u64 == PAGE;
        match last {
            Some(last) if full => after = last,
            _ => return Ok(()),
        }
    }
}

impl<D: Database> Durable<D> {
    pub(crate) async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        let living = Arc::new(self.living_on(&[from]).await?);
        let codec = self.codec.clone();
        let names = Arc::new((from.to_owned(), to.to_owned()));
        self.write(to, move |tx| {
            let (codec, living, names) = (codec.clone(), living.clone(), names.clone());
            Box::pin(async move { copy(tx, &codec, &living, (&names.0, &names.1)).await })
        })
        .await
    }
}
