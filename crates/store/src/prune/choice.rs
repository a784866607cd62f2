//! Which checkpoints stay.
//!
//! Decided on what is light: ids, parents, times and runs. Only where subgraphs have checkpoints of their
//! own are machines looked into, for ids they name: a persistent subgraph stands where its parent's
//! checkpoint says, and that one has to stay with it.

use crate::{
    checkpoints::rows::{CheckpointRow, checkpoint_columns},
    codec::Codec,
    database::Fault,
    error::damaged,
    sql::{BadCell, Row, Statement, Tx, one},
};
use paraph_graph::{CheckpointId, Keep, Scope};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many machines are in hand at a time.
const PAGE: usize = 64;

/// What the choice needs to know of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Light {
    pub(super) parent: Option<CheckpointId>,
    pub(super) base: Option<CheckpointId>,
    pub(super) run: String,
    pub(super) created_ms: u64,
}

/// The checkpoints of one scope, and those of them that stay.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The scope's row.
    pub(super) row: i64,
    pub(super) scope: Scope,
    pub(super) all: BTreeMap<CheckpointId, Light>,
    pub(super) kept: BTreeSet<CheckpointId>,
}

impl Line {
    /// Keeps what the rule says of a scope by itself.
    pub(super) fn keep(&mut self, keep: Keep) {
        let newest = self.all.keys().next_back().copied();
        let from = match keep {
            Keep::Last(n) => self.all.keys().nth_back(n.max(1) - 1).copied(),
            Keep::Since(_) | Keep::UpTo(_) => None,
        };
        let stays = |id: &CheckpointId, light: &Light| match keep {
            Keep::Last(_) => from.is_none_or(|from| *id >= from),
            Keep::Since(ms) => light.created_ms >= ms || newest == Some(*id),
            Keep::UpTo(at) => *id <= at,
        };
        let kept = self.all.iter().filter(|(id, light)| stays(id, light));
        self.kept = kept.map(|(id, _)| *id).collect();
    }

    /// Whether a checkpoint that stays follows none that stays.
    pub(super) fn is_root(&self, id: CheckpointId) -> bool {
        let parent = self.all.get(&id).and_then(|light| light.parent);
        parent.is_none_or(|parent| !self.kept.contains(&parent))
    }
}

/// The line of the graph itself.
pub(super) fn root(lines: &[Line]) -> Option<&Line> {
    lines.iter().find(|line| line.scope.namespace.is_empty())
}

/// All lines of a thread; nothing is kept yet.
pub(super) async fn lines(tx: &mut dyn Tx, name: &str, thread: i64) -> Result<Vec<Line>, Fault> {
    let scopes = Statement::new(
        "SELECT id, namespace FROM scope WHERE thread = $1 ORDER BY id",
        [thread.into()],
    );
    let mut lines = Vec::new();
    for row in one(tx, scopes).await?.rows {
        let bad = |e: BadCell| damaged(format!("a scope of thread `{name}`"), e.to_string());
        lines.push(Line {
            row: row.int(0).map_err(bad)?,
            scope: Scope {
                thread: name.into(),
                namespace: row.text(1).map_err(bad)?.into(),
            },
            all: BTreeMap::new(),
            kept: BTreeSet::new(),
        });
    }
    let list = |line: &Line| {
        Statement::new(
            "SELECT id, parent, base, run, created_ms FROM checkpoint WHERE scope = $1",
            [line.row.into()],
        )
    };
    let answers = tx.all(lines.iter().map(list).collect()).await?;
    for (line, answer) in lines.iter_mut().zip(answers) {
        for row in answer.rows {
            let light = light(&row).map_err(|e| {
                damaged(
                    format!("a checkpoint of thread `{}`", line.scope),
                    e.to_string(),
                )
            });
            line.all.extend([light?]);
        }
    }
    Ok(lines)
}

fn light(row: &Row) -> Result<(CheckpointId, Light), BadCell> {
    const WHAT: &str = "the id of a checkpoint";
    let light = Light {
        parent: row.opt_parsed(1, WHAT)?,
        base: row.opt_parsed(2, WHAT)?,
        run: row.text(3)?.to_owned(),
        created_ms: row.unsigned(4)?,
    };
    Ok((row.parsed(0, WHAT)?, light))
}

/// Keeps what is named by what is kept, in whatever scope, and what that names.
pub(super) async fn follow(
    tx: &mut dyn Tx,
    codec: &Codec,
    lines: &mut [Line],
) -> Result<(), Fault> {
    let mut removable: HashMap<CheckpointId, usize> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        // Nothing names a checkpoint of the graph itself.
        if !line.scope.namespace.is_empty() {
            let gone = line.all.keys().filter(|id| !line.kept.contains(*id));
            removable.extend(gone.map(|id| (*id, at)));
        }
    }
    let kept = |(at, line): (usize, &Line)| line.kept.iter().map(move |id| (at, *id)).collect();
    let mut unread: Vec<(usize, CheckpointId)> = lines
        .iter()
        .enumerate()
        .flat_map::<Vec<_>, _>(kept)
        .collect();
    while !removable.is_empty() && !unread.is_empty() {
        let page = unread.split_off(unread.len().saturating_sub(PAGE));
        let find = |(at, id): &(usize, CheckpointId)| {
            let scope = lines.get(*at).map_or(0, |line| line.row);
            row_of(scope, *id)
        };
        let answers = tx.all(page.iter().map(find).collect()).await?;
        for ((at, _), answer) in page.into_iter().zip(answers) {
            let Some((line, mut row)) = lines.get(at).zip(answer.first()) else {
                continue;
            };
            let read = CheckpointRow::read(codec, &line.scope, &mut row)?;
            for id in named(&read.machine) {
                if let Some(at) = removable.remove(&id) {
                    unread.push((at, id));
                    lines.get_mut(at).map(|line| line.kept.insert(id));
                }
            }
        }
    }
    Ok(())
}

/// Reads one checkpoint's row.
pub(super) fn row_of(scope: i64, id: CheckpointId) -> Statement<'static> {
    Statement::new(
        checkpoint_columns!("", "FROM checkpoint c WHERE c.scope = $1 AND c.id = $2"),
        [scope.into(), id.to_string().into()],
    )
}

/// The texts in a machine that may be ids of checkpoints.
fn named(machine: &[u8]) -> impl Iterator<Item = CheckpointId> + '_ {
    let texts = machine.split(|byte| *byte == b'"');
    let ids = texts.filter(|text| text.len() == 36);
    ids.filter_map(|text| std::str::from_utf8(text).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn id(n: u128) -> CheckpointId {
        Uuid::from_u128(n).into()
    }

    fn line(times: &[u64]) -> Line {
        let light = |at: &u64| Light {
            parent: None,
            base: None,
            run: String::new(),
            created_ms: *at,
        };
        let all = (1..).zip(times).map(|(n, at)| (id(n), light(at)));
        Line {
            row: 1,
            scope: Scope::default(),
            all: all.collect(),
            kept: BTreeSet::new(),
        }
    }

    #[test]
    fn a_rule_keeps_what_it_says_and_the_head() {
        let times = [10, 20, 30, 40];
        let table: [(Keep, &[u128]); 8] = [
            (Keep::Last(0), &[4]),
            (Keep::Last(1), &[4]),
            (Keep::Last(3), &[2, 3, 4]),
            (Keep::Last(9), &[1, 2, 3, 4]),
            (Keep::Since(0), &[1, 2, 3, 4]),
            (Keep::Since(30), &[3, 4]),
            (Keep::Since(99), &[4]),
            (Keep::UpTo(id(2)), &[1, 2]),
        ];
        for (keep, expected) in table {
            let mut line = line(&times);
            line.keep(keep);
            let expected: BTreeSet<_> = expected.iter().map(|n| id(*n)).collect();
            assert_eq!(line.kept, expected, "{keep:?}");
        }
        let mut empty = line(&[]);
        empty.keep(Keep::Last(1));
        assert_eq!(empty.kept, BTreeSet::new());
    }

    #[test]
    fn what_a_machine_names_is_found_wherever_it_stands() {
        let machine = format!(
            r#"{{"children":{{"a|b":"{}"}},"x":"{}","y":7}}"#,
            id(7),
            "z".repeat(36)
        );
        assert_eq!(named(machine.as_bytes()).collect::<Vec<_>>(), [id(7)]);
        assert_eq!(named(b"\"").count(), 0);
    }
}
