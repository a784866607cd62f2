//! Removing checkpoints of one scope, when what stays has all it needs.

use super::{
    choice::{Line, row_of},
    pieces::Needed,
    send,
};
use crate::{
    channels::{self, Named},
    checkpoints::rows::{CheckpointRow, corrupt},
    codec::Codec,
    database::Fault,
    events::PieceAt,
    sql::{Statement, Tx},
};
use paraph_graph::CheckpointId;
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many rows are in hand at a time.
const PAGE: usize = 64;

/// Removes what the line does not keep. `told` are pieces that the log needs.
pub(super) async fn shrink(
    tx: &mut dyn Tx,
    codec: &Codec,
    line: &Line,
    told: &HashSet<PieceAt>,
) -> Result<(), Fault> {
    let needed = rebase(tx, codec, line).await?;
    needed.keep_only(tx, codec, line, told).await?;
    let mut statements = Vec::new();
    for id in line.all.keys().filter(|id| !line.kept.contains(*id)) {
        let of = |sql| Statement::new(sql, [line.row.into(), id.to_string().into()]);
        statements.push(of("DELETE FROM note WHERE scope = $1 AND checkpoint = $2"));
        statements.push(of("DELETE FROM checkpoint WHERE scope = $1 AND id = $2"));
    }
    let is_told = told.iter().any(|(scope, _)| *scope == line.row);
    statements.push(match line.kept.last() {
        // Its pieces would go with it, and the log may need some.
        None if !is_told => Statement::new("DELETE FROM scope WHERE id = $1", [line.row.into()]),
        head => Statement::new(
            "UPDATE scope SET head = $2 WHERE id = $1 AND head IS DISTINCT FROM $2",
            [line.row.into(), head.map(ToString::to_string).into()],
        ),
    });
    send(tx, statements).await?;
    Ok(())
}

/// Goes through what stays: writes down anew which channels those have whose base goes, and finds out
/// which pieces they all need.
async fn rebase(tx: &mut dyn Tx, codec: &Codec, line: &Line) -> Result<Needed, Fault> {
    let mut needed = Needed::default();
    let mut bases: HashMap<CheckpointId, Named> = HashMap::new();
    let mut written: HashMap<CheckpointId, CheckpointRow> = HashMap::new();
    let kept: Vec<CheckpointId> = line.kept.iter().copied().collect();
    for page in kept.chunks(PAGE) {
        let mut rows = read(tx, codec, line, page).await?;
        let missing: HashSet<CheckpointId> = rows.iter().filter_map(|row| row.base).collect();
        let missing: Vec<_> = missing
            .into_iter()
            .filter(|id| !bases.contains_key(id))
            .collect();
        for row in read(tx, codec, line, &missing).await? {
            bases.insert(row.entry.id, row.named);
        }
        let mut statements = Vec::new();
        for row in &mut rows {
            let base = row.base.and_then(|base| bases.get(&base));
            let all = row.named.all(base);
            needed.add(line, row, &all);
            if row.base.is_some_and(|base| !line.kept.contains(&base)) {
                name_all(row, all, &written);
                // Only which channels it has is needed again.
                let light = CheckpointRow {
                    machine: Vec::new(),
                    ..row.clone()
                };
                written.insert(row.entry.id, light);
                let id = row.entry.id.to_string();
                statements.push(Statement::new(
                    "DELETE FROM checkpoint WHERE scope = $1 AND id = $2",
                    [line.row.into(), id.into()],
                ));
                statements.push(row.insert(codec, &line.scope, line.row));
            }
        }
        send(tx, statements).await?;
    }
    Ok(needed)
}

/// Lets a checkpoint name its channels without the base it had: over its parent's, if that was written
/// anew just now, else all of them.
fn name_all(
    row: &mut CheckpointRow,
    all: BTreeMap<String, channels::Newest>,
    written: &HashMap<CheckpointId, CheckpointRow>,
) {
    let own = std::mem::take(&mut row.named.own);
    let parent = row.entry.parent.and_then(|parent| written.get(&parent));
    if let Some(parent) = parent {
        let base = parent.base.and_then(|base| written.get(&base));
        // A parent whose base is not at hand says too little.
        if parent.base.is_none() || base.is_some() {
            let base = base.map(|base| &base.named);
            let (named, needs_base) = channels::after(Some((&parent.named, base)), own);
            row.named = named;
            let base = parent.base.unwrap_or(parent.entry.id);
            row.base = needs_base.then_some(base);
            return;
        }
    }
    let older = all.into_iter().filter(|(name, _)| !own.contains_key(name));
    row.named = Named {
        older: older.collect(),
        own,
    };
    row.base = None;
}

/// The rows of these checkpoints.
async fn read(
    tx: &mut dyn Tx,
    codec: &Codec,
    line: &Line,
    ids: &[CheckpointId],
) -> Result<Vec<CheckpointRow>, Fault> {
    let find = ids.iter().map(|id| row_of(line.row, *id)).collect();
    let mut rows = Vec::with_capacity(ids.len());
    for (id, answer) in ids.iter().zip(tx.all(find).await?) {
        let gone = || corrupt(&line.scope, *id, "another is based on it, and it is gone");
        let mut row = answer.first().ok_or_else(gone)?;
        rows.push(CheckpointRow::read(codec, &line.scope, &mut row)?);
    }
    Ok(rows)
}
