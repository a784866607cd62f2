//! Which pieces of channels stay, and where a chain of them is put together to one.
//!
//! Called by `scope`. What was appended stays as it is: it is the value. Where items were edited since,
//! the value before the oldest checkpoint that stays is written down whole, in the place of the last
//! piece of it, so that what was edited away is gone.

use super::{choice::Line, send};
use crate::{
    channels::{self, Newest},
    checkpoints::{
        read::{chain, chain_read},
        rows::{CheckpointRow, PieceKey, corrupt},
    },
    codec::Codec,
    database::Fault,
    error::damaged,
    events::PieceAt,
    sql::{BadCell, Row, Statement, Tx, one},
};
use paraph_graph::{CheckpointId, PatchKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The pieces that checkpoints of one scope need.
#[derive(Debug, Default)]
pub(super) struct Needed {
    /// The newest of each channel of each.
    newest: HashSet<u64>,
    /// Those that are the change of a checkpoint that stays.
    own: HashSet<u64>,
    /// The newest pieces of checkpoints that follow none that stays, with their channels and whether
    /// they are the checkpoint's own change.
    oldest: BTreeMap<u64, (String, bool, CheckpointId)>,
}

/// A piece without its value.
struct Link {
    before: Option<u64>,
    is_edit: bool,
}

impl Needed {
    /// What one checkpoint needs, that has these channels.
    pub(super) fn add(&mut self, line: &Line, row: &CheckpointRow, all: &BTreeMap<String, Newest>) {
        let is_root = line.is_root(row.entry.id);
        for (channel, Newest(n, ..)) in all {
            self.newest.insert(*n);
            let is_own = row.named.own.contains_key(channel);
            if is_own {
                self.own.insert(*n);
            }
            if is_root {
                let at = (channel.clone(), is_own, row.entry.id);
                self.oldest.insert(*n, at);
            }
        }
    }

    /// Removes all others.
    pub(super) async fn keep_only(
        &self,
        tx: &mut dyn Tx,
        codec: &Codec,
        line: &Line,
        told: &HashSet<PieceAt>,
    ) -> Result<(), Fault> {
        let list = Statement::new(
            "SELECT n, before, kind FROM piece WHERE scope = $1",
            [line.row.into()],
        );
        let mut links = HashMap::new();
        for row in one(tx, list).await?.rows {
            let bad = |e: BadCell| damaged(format!("a piece of `{}`", line.scope), e.to_string());
            links.extend([link(&row).map_err(bad)?]);
        }
        for (n, (channel, is_own, id)) in &self.oldest {
            let end = match is_own {
                true => links.get(n).and_then(|link| link.before),
                false => Some(*n),
            };
            let is_free = |n: &u64| !self.own.contains(n) && !told.contains(&(line.row, *n));
            let Some(end) = end.filter(|n| is_free(n) && has_edits(&links, *n)) else {
                continue;
            };
            join(tx, codec, line, (channel, end), *id).await?;
            let whole = Link {
                before: None,
                is_edit: false,
            };
            links.insert(end, whole);
        }
        let stays = self.closure(&links, line.row, told);
        let delete = |n: &u64| {
            Statement::new(
                "DELETE FROM piece WHERE scope = $1 AND n = $2",
                [line.row.into(), (*n).into()],
            )
        };
        let gone = links.keys().filter(|n| !stays.contains(n));
        send(tx, gone.map(delete).collect()).await?;
        Ok(())
    }

    /// What is needed, with all that it goes on from.
    fn closure(
        &self,
        links: &HashMap<u64, Link>,
        scope: i64,
        told: &HashSet<PieceAt>,
    ) -> HashSet<u64> {
        let mut stays = HashSet::with_capacity(links.len());
        for newest in &self.newest {
            let mut next = Some(*newest);
            while let Some(n) = next {
                if !stays.insert(n) {
                    break;
                }
                next = links.get(&n).and_then(|link| link.before);
            }
        }
        stays.extend(told.iter().filter(|(at, _)| *at == scope).map(|(_, n)| *n));
        stays
    }
}

/// Puts the value up to this piece in its place, whole.
async fn join(
    tx: &mut dyn Tx,
    codec: &Codec,
    line: &Line,
    (channel, n): (&str, u64),
    checkpoint: CheckpointId,
) -> Result<(), Fault> {
    let answer = one(tx, chain(line.row, n)).await?;
    let whole = chain_read(codec, &line.scope, (channel, n), answer)
        .and_then(|chain| channels::whole(chain.iter().map(|p| (p.kind, p.json.as_slice()))))
        .map_err(|why| corrupt(&line.scope, checkpoint, why))?;
    let key = PieceKey {
        channel,
        n,
        kind: PatchKind::Whole,
        before: None,
    };
    let delete = Statement::new(
        "DELETE FROM piece WHERE scope = $1 AND n = $2",
        [line.row.into(), n.into()],
    );
    let insert = key.insert(codec, &line.scope, line.row, (&whole, None));
    tx.all(vec![delete, insert]).await?;
    Ok(())
}

fn link(row: &Row) -> Result<(u64, Link), BadCell> {
    let link = Link {
        before: match row.opt_int(1)? {
            None => None,
            Some(_) => Some(row.unsigned(1)?),
        },
        is_edit: row.text(2)? == channels::kind_text(PatchKind::Edit),
    };
    Ok((row.unsigned(0)?, link))
}

fn has_edits(links: &HashMap<u64, Link>, newest: u64) -> bool {
    let mut next = Some(newest);
    while let Some(link) = next.and_then(|n| links.get(&n)) {
        if link.is_edit {
            return true;
        }
        // A damaged chain could lead in a circle.
        next = link
            .before
            .filter(|before| next.is_some_and(|n| *before < n));
    }
    false
}
