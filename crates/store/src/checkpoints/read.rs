//! Reading checkpoints: one, a history, or many with their states.
//!
//! A checkpoint costs two small rows, its notes, and the pieces of its state, wherever in a history it is.

use super::rows::{
    CHECKPOINT_COLUMNS, CheckpointRow, PieceRow, checkpoint_columns, corrupt, note_read,
};
use super::spread::spread;
use crate::{
    channels::{Named, Newest},
    codec::Codec,
    database::Fault,
    sql::{Answer, Cell, Row, Statement, Tx, next, one},
};
use paraph_graph::{CheckpointId, Entry, Error, HistoryQuery, Loaded, Note, Piece, Scope};
use std::collections::{BTreeMap, HashMap};

/// How many checkpoints of a history are read at a time.
const PAGE: u64 = 256;

/// Greater than every id of a checkpoint, which has digits and small letters only.
const AFTER_ALL: &str = "~";

/// A checkpoint and where it is.
pub(crate) struct Placed {
    pub(crate) row: CheckpointRow,
    /// The row of its scope.
    pub(crate) scope: i64,
}

/// Finds a checkpoint, or the head.
pub(crate) fn find(scope: &Scope, at: Option<CheckpointId>) -> Statement<'_> {
    Statement::new(
        checkpoint_columns!(
            ", s.id, s.head",
            "FROM thread t JOIN scope s ON s.thread = t.id \
             LEFT JOIN checkpoint c ON c.scope = s.id AND c.id = COALESCE($3, s.head) \
             WHERE t.name = $1 AND s.namespace = $2"
        ),
        [
            (&*scope.thread).into(),
            (&*scope.namespace).into(),
            at.map(|at| at.to_string()).into(),
        ],
    )
}

/// Finds the base of a checkpoint, if it has one. Its id is asked for on its own: joined in, a planner that has
/// not counted the rows yet may walk through the whole history for it.
pub(crate) fn find_base(scope: &Scope, at: CheckpointId) -> Statement<'_> {
    Statement::new(
        checkpoint_columns!(
            "",
            "FROM thread t JOIN scope s ON s.thread = t.id \
             JOIN checkpoint c ON c.scope = s.id \
             AND c.id = (SELECT base FROM checkpoint WHERE scope = s.id AND id = $3) \
             WHERE t.name = $1 AND s.namespace = $2"
        ),
        [
            (&*scope.thread).into(),
            (&*scope.namespace).into(),
            at.to_string().into(),
        ],
    )
}

/// What [`find`] found.
///
/// # Errors
/// If it is damaged, or the head is not there.
pub(crate) fn found(
    codec: &Codec,
    scope: &Scope,
    answer: Answer,
    is_head: bool,
) -> Result<Option<Placed>, Error> {
    let Some(mut row) = answer.first() else {
        return Ok(None);
    };
    let (id, head) = (CHECKPOINT_COLUMNS, CHECKPOINT_COLUMNS + 1);
    let bad = |e: crate::sql::BadCell| {
        crate::error::damaged(format!("the row of scope `{scope}`"), e.to_string())
    };
    if row.opt_text(0).is_ok_and(|id| id.is_none()) {
        let head: Option<CheckpointId> = row
            .opt_parsed(head, "the id of a checkpoint")
            .map_err(bad)?;
        return match head {
            Some(head) if is_head => {
                Err(corrupt(scope, head, "it is the head, and its row is gone"))
            }
            _ => Ok(None),
        };
    }
    let scope_row = row.int(id).map_err(bad)?;
    let row = CheckpointRow::read(codec, scope, &mut row)?;
    Ok(Some(Placed {
        row,
        scope: scope_row,
    }))
}

/// Checks that a checkpoint which needs a base has it; `found` is what [`find_base`] found.
pub(crate) fn base_of(
    codec: &Codec,
    scope: &Scope,
    row: &CheckpointRow,
    found: Option<Row>,
) -> Result<Option<Named>, Error> {
    let (Some(base), found) = (row.base, found) else {
        return Ok(None);
    };
    let Some(mut found) = found else {
        let why = format!("checkpoint {base}, on which it is based, is gone");
        return Err(corrupt(scope, row.entry.id, why));
    };
    let base = CheckpointRow::read(codec, scope, &mut found)?;
    match base.base {
        None => Ok(Some(base.named)),
        Some(_) => {
            let why = "the checkpoint on which it is based is based on another";
            Err(corrupt(scope, row.entry.id, why))
        }
    }
}

/// A piece and all that it goes on from, oldest first.
pub(crate) fn chain(scope: i64, newest: u64) -> Statement<'static> {
    Statement::new(
        "WITH RECURSIVE chain (n, before) AS ( \
           SELECT n, before FROM piece WHERE scope = $1 AND n = $2 \
           UNION ALL \
           SELECT p.n, p.before FROM chain c \
           JOIN piece p ON p.scope = $1 AND p.n = c.before AND p.n < c.n \
         ) SELECT p.n, p.channel, p.kind, p.before, p.value, p.value_packed, p.sum \
         FROM chain c JOIN piece p ON p.scope = $1 AND p.n = c.n ORDER BY p.n",
        [scope.into(), newest.into()],
    )
    // The same, but each step looks up one piece, whatever the planner believes of how many a scope has: else it
    // reads all of them at every step while nobody has counted. `OFFSET 0` is what it may not look through.
    .or_on_postgres(
        "WITH RECURSIVE chain (n, before) AS ( \
           SELECT n, before FROM piece WHERE scope = $1 AND n = $2 \
           UNION ALL \
           SELECT p.n, p.before FROM chain c CROSS JOIN LATERAL ( \
             SELECT n, before FROM piece WHERE scope = $1 AND n = c.before AND n < c.n OFFSET 0 \
           ) p \
         ) SELECT p.n, p.channel, p.kind, p.before, p.value, p.value_packed, p.sum \
         FROM chain c CROSS JOIN LATERAL ( \
           SELECT n, channel, kind, before, value, value_packed, sum FROM piece \
           WHERE scope = $1 AND n = c.n OFFSET 0 \
         ) p ORDER BY p.n",
    )
}

/// Reads what [`chain`] found, and checks that nothing of it is missing.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn chain_read(
    codec: &Codec,
    scope: &Scope,
    (channel, newest): (&str, u64),
    answer: Answer,
) -> Result<Vec<PieceRow>, String> {
    let mut pieces: Vec<PieceRow> = Vec::with_capacity(answer.rows.len());
    for piece in spread(answer.rows, |row| PieceRow::read(codec, scope, row)) {
        let piece = piece?;
        if piece.channel != channel {
            let (n, other) = (piece.n, &piece.channel);
            return Err(format!(
                "channel `{channel}`, piece {n}: it is one of channel `{other}`"
            ));
        }
        let before = pieces.last().map(|before| before.n);
        if piece.before != before {
            let (n, lost) = (piece.n, piece.before.unwrap_or_default());
            return Err(format!(
                "channel `{channel}`, piece {n}: piece {lost}, from which it goes on, is gone"
            ));
        }
        pieces.push(piece);
    }
    match pieces.last() {
        Some(last) if last.n == newest => Ok(pieces),
        _ => Err(format!("channel `{channel}`, piece {newest}: it is gone")),
    }
}

/// Reads what several checkpoints of a scope have in common once.
struct Reading<'a> {
    codec: &'a Codec,
    scope: &'a Scope,
    bases: HashMap<CheckpointId, Named>,
    pieces: HashMap<u64, PieceRow>,
}

impl Reading<'_> {
    /// The notes of each checkpoint; bases that were not there yet are there then.
    async fn notes(&mut self, tx: &mut dyn Tx, rows: &[Placed]) -> Result<Vec<Vec<Note>>, Fault> {
        let mut bases: Vec<&Placed> = Vec::new();
        for placed in rows {
            let known = |base| self.bases.contains_key(&base);
            let asked = |base| bases.iter().any(|other| other.row.base == Some(base));
            if placed
                .row
                .base
                .is_some_and(|base| !known(base) && !asked(base))
            {
                bases.push(placed);
            }
        }
        let mut statements: Vec<Statement<'_>> = bases
            .iter()
            .map(|placed| find_base(self.scope, placed.row.entry.id))
            .collect();
        statements.extend(rows.iter().map(|placed| {
            Statement::new(
                "SELECT task, kind, key, n, value, value_packed, sum FROM note \
                 WHERE scope = $1 AND checkpoint = $2 ORDER BY n",
                [
                    placed.scope.into(),
                    Cell::from(placed.row.entry.id.to_string()),
                ],
            )
        }));
        let mut answers = tx.all(statements).await?.into_iter();
        for placed in bases {
            let found = next(&mut answers)?.first();
            let named = base_of(self.codec, self.scope, &placed.row, found)?;
            self.bases.extend(placed.row.base.zip(named));
        }
        let mut all = Vec::with_capacity(rows.len());
        for placed in rows {
            let id = placed.row.entry.id;
            let read = |row| note_read(self.codec, self.scope, id, row).map(|(note, _)| note);
            let notes: Result<Vec<_>, _> = next(&mut answers)?.rows.into_iter().map(read).collect();
            all.push(notes.map_err(|why| corrupt(self.scope, id, why))?);
        }
        Ok(all)
    }

    /// The state of a checkpoint. Pieces that were not there yet are there then.
    async fn loaded(
        &mut self,
        tx: &mut dyn Tx,
        placed: Placed,
        notes: Vec<Note>,
    ) -> Result<Loaded, Fault> {
        let (row, scope_row) = (placed.row, placed.scope);
        let id = row.entry.id;
        let base = row.base.and_then(|base| self.bases.get(&base));
        let named = row.named.all(base);
        self.fetch(tx, (scope_row, id), &named).await?;
        let mut channels = Vec::with_capacity(named.len());
        for (channel, newest) in named {
            let pieces = self.pieces_of(&channel, newest);
            let pieces = pieces.map_err(|why| corrupt(self.scope, id, why))?;
            channels.push((channel, pieces));
        }
        Ok(Loaded {
            id,
            parent: row.entry.parent,
            metadata: row.entry.metadata,
            machine: row.machine,
            channels,
            changed: row.named.own.into_keys().collect(),
            notes,
        })
    }

    async fn fetch(
        &mut self,
        tx: &mut dyn Tx,
        (scope, id): (i64, CheckpointId),
        named: &BTreeMap<String, Newest>,
    ) -> Result<(), Fault> {
        let missing: Vec<(&str, u64)> = named
            .iter()
            .map(|(channel, newest)| (&**channel, newest.0))
            .filter(|(_, n)| !self.pieces.contains_key(n))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let statements = missing.iter().map(|(_, n)| chain(scope, *n)).collect();
        let mut answers = tx.all(statements).await?.into_iter();
        for wanted in missing {
            let pieces = chain_read(self.codec, self.scope, wanted, next(&mut answers)?)
                .map_err(|why| corrupt(self.scope, id, why))?;
            for piece in pieces {
                // What is there already is shared by whoever has it.
                self.pieces.entry(piece.n).or_insert(piece);
            }
        }
        Ok(())
    }

    fn pieces_of(&self, channel: &str, newest: Newest) -> Result<Vec<Piece>, String> {
        let mut pieces = Vec::new();
        let mut wanted = Some(newest.0);
        while let Some(n) = wanted {
            let piece = self.pieces.get(&n).filter(|piece| piece.channel == channel);
            let piece =
                piece.ok_or_else(|| format!("channel `{channel}`, piece {n}: it is gone"))?;
            pieces.push(Piece {
                kind: piece.kind,
                json: piece.json.clone(),
            });
            wanted = piece.before;
        }
        pieces.reverse();
        Ok(pieces)
    }
}

/// Checkpoints with their states, in the order given.
pub(crate) async fn with_states(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    rows: Vec<Placed>,
) -> Result<Vec<Loaded>, Fault> {
    let mut reading = Reading {
        codec,
        scope,
        bases: HashMap::new(),
        pieces: HashMap::new(),
    };
    let notes = reading.notes(tx, &rows).await?;
    let mut all = Vec::with_capacity(rows.len());
    for (placed, notes) in rows.into_iter().zip(notes) {
        all.push(reading.loaded(tx, placed, notes).await?);
    }
    Ok(all)
}

/// One checkpoint with its state, or the head.
pub(crate) async fn load(
    tx: &mut dyn Tx,
    codec: &Codec,
    scope: &Scope,
    at: Option<CheckpointId>,
) -> Result<Option<Loaded>, Fault> {
    let answer = one(tx, find(scope, at)).await?;
    let Some(placed) = found(codec, scope, answer, at.is_none())? else {
        return Ok(None);
    };
    let loaded = with_states(tx, codec, scope, vec![placed]).await?;
    Ok(loaded.into_iter().next())
}

/// The checkpoints that a query wants, newest first, each as `keep` has it.
pub(crate) async fn select<T>(
    tx: &mut dyn Tx,
    codec: &Codec,
    (scope, query): (&Scope, &HistoryQuery),
    keep: fn(Placed) -> T,
) -> Result<Vec<T>, Fault> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut wanted = Vec::new();
    let mut before = query.before;
    while wanted.len() < limit {
        let page = one(tx, page(scope, before)).await?.rows;
        let is_last = (page.len() as u64) < PAGE;
        for mut row in page {
            let scope_row = row.int(CHECKPOINT_COLUMNS).unwrap_or_default();
            let row = CheckpointRow::read(codec, scope, &mut row)?;
            before = Some(row.entry.id);
            if wanted.len() < limit && query.wants(&row.entry) {
                wanted.push(keep(Placed {
                    row,
                    scope: scope_row,
                }));
            }
        }
        if is_last {
            break;
        }
    }
    Ok(wanted)
}

fn page(scope: &Scope, before: Option<CheckpointId>) -> Statement<'_> {
    let before = before.map_or_else(|| AFTER_ALL.to_owned(), |id| id.to_string());
    Statement::new(
        checkpoint_columns!(
            ", c.scope",
            "FROM thread t JOIN scope s ON s.thread = t.id JOIN checkpoint c ON c.scope = s.id \
             WHERE t.name = $1 AND s.namespace = $2 AND c.id < $3 ORDER BY c.id DESC LIMIT $4"
        ),
        [
            (&*scope.thread).into(),
            (&*scope.namespace).into(),
            before.into(),
            PAGE.into(),
        ],
    )
}

/// For [`select`].
pub(crate) fn entry(placed: Placed) -> Entry {
    placed.row.entry
}
