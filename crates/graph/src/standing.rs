//! How a thread stands at a checkpoint, read from what is saved there, without the graph's type.
//!
//! Called by stores that move a thread's head back. What a driver says of a thread itself
//! (`Put::standing`) comes first; this is for checkpoints that were not the head for a while.

use crate::{
    Error, Interrupt, Name,
    checkpoint::{Loaded, NoteKind},
    run::Saved,
    threads::{Standing, ThreadStatus},
};
use std::collections::HashMap;

/// A task of the open superstep, by its notes.
enum Left {
    Done,
    Asked(Vec<Interrupt>),
    Due,
}

impl Standing {
    /// Nothing is due.
    pub const IDLE: Standing = Standing {
        status: ThreadStatus::Idle,
        next: Vec::new(),
        interrupts: Vec::new(),
        values: None,
    };

    /// How the thread of this name stands where its own graph (no subgraph) is at this checkpoint: idle
    /// if nothing is due, else interrupted. The channels are not looked at.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if machine or notes are not the engine's.
    pub fn of(thread: &str, at: &Loaded) -> Result<Standing, Error> {
        let corrupt = |why: serde_json::Error| Error::Corrupt {
            thread: thread.to_owned(),
            checkpoint: at.id,
            why: why.to_string(),
        };
        let saved: Saved = serde_json::from_slice(&at.machine).map_err(corrupt)?;
        let mut left = HashMap::new();
        for note in &at.notes {
            let now = match note.kind {
                NoteKind::Done => Left::Done,
                NoteKind::Question => {
                    Left::Asked(serde_json::from_str(&note.json).map_err(corrupt)?)
                }
                NoteKind::Answer | NoteKind::Retry => Left::Due,
                NoteKind::Memo | NoteKind::Failure | NoteKind::Pause => continue,
            };
            left.insert(note.task, now);
        }
        let is_over = saved.tasks.is_empty();
        let thread = saved.origin.as_deref().unwrap_or(thread);
        let (mut next, mut interrupts): (Vec<Name>, _) = (Vec::new(), Vec::new());
        for task in saved.tasks {
            match left.remove(&task.birth.task(thread, "")) {
                Some(Left::Done) => continue,
                Some(Left::Asked(asked)) => interrupts.extend(asked),
                Some(Left::Due) | None => {}
            }
            next.push(task.node.into());
        }
        next.dedup();
        let status = match is_over {
            true => ThreadStatus::Idle,
            false => ThreadStatus::Interrupted,
        };
        Ok(Standing {
            status,
            next,
            interrupts,
            values: None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

    use super::*;
    use crate::checkpoint::Note;
    use crate::ids::{Birth, TaskId};
    use serde_json::json;
    use uuid::Uuid;

    fn birth(index: u32) -> Birth {
        Birth {
            at: Uuid::from_u128(7),
            index,
        }
    }

    fn at(machine: Vec<u8>, notes: Vec<Note>) -> Loaded {
        Loaded {
            id: Uuid::from_u128(7).into(),
            parent: None,
            metadata: crate::Metadata {
                source: crate::Source::Loop,
                superstep: 1,
                run: Uuid::from_u128(8).into(),
                created_ms: 9,
                user: serde_json::Map::new(),
            },
            machine,
            channels: Vec::new(),
            changed: Vec::new(),
            notes,
        }
    }

    fn note(task: TaskId, kind: NoteKind, json: &serde_json::Value) -> Note {
        Note {
            task,
            kind,
            key: String::new(),
            json: json.to_string(),
        }
    }

    #[test]
    fn what_is_due_and_asked_follows_from_the_machine_and_the_notes() {
        let task = |index| birth(index).task("t", "");
        let saved = |nodes: &[&str]| {
            let task = |(i, node)| json!({"node": node, "birth": birth(i)});
            let tasks: Vec<_> = (0..).zip(nodes).map(task).collect();
            json!({"superstep": 1, "tasks": tasks})
                .to_string()
                .into_bytes()
        };
        let question = json!({"id": "q", "node": "b", "key": "k", "question": 1});
        let asked: Interrupt = serde_json::from_value(question.clone()).unwrap();
        let stands = |status, next: &[&'static str], interrupts| Standing {
            status,
            next: next.iter().map(|name| Name::from(*name)).collect(),
            interrupts,
            values: None,
        };
        let (done, ask) = (
            note(task(0), NoteKind::Done, &json!({})),
            note(task(1), NoteKind::Question, &json!([question])),
        );
        let answer = note(task(1), NoteKind::Answer, &json!(1));
        let waits = ThreadStatus::Interrupted;
        let table: [(&[&str], Vec<Note>, Standing); 5] = [
            (&[], vec![], Standing::IDLE),
            (&["a", "b"], vec![], stands(waits, &["a", "b"], vec![])),
            (
                &["a", "b"],
                vec![done.clone(), ask.clone()],
                stands(waits, &["b"], vec![asked]),
            ),
            (
                &["a", "b"],
                vec![done.clone(), ask, answer],
                stands(waits, &["b"], vec![]),
            ),
            // All tasks are done, and the superstep is not closed.
            (&["a"], vec![done], stands(waits, &[], vec![])),
        ];
        for (nodes, notes, expected) in table {
            let at = at(saved(nodes), notes);
            assert_eq!(Standing::of("t", &at).unwrap(), expected);
        }
        assert!(Standing::of("t", &at(b"{}".to_vec(), vec![])).is_err());
    }
}
