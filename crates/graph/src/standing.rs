//! How a thread stands at a checkpoint, read from what is saved there, without the graph's type.
//!
//! Called by stores that move a thread's head back. What a driver says of a thread itself
//! (`Put::standing`) comes first; this is for checkpoints that were not the head for a while.

use crate::{
    Interrupt, Name,
    checkpoint::{Note, NoteKind},
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
    /// How the thread of this name stands where its own graph (no subgraph) has this machine and these
    /// notes: idle if nothing is due, else interrupted. Nothing if the engine has not written the
    /// machine, or the notes.
    #[must_use]
    pub fn of(thread: &str, machine: &[u8], notes: &[Note]) -> Option<Standing> {
        let saved: Saved = serde_json::from_slice(machine).ok()?;
        let mut left = HashMap::new();
        for note in notes {
            let now = match note.kind {
                NoteKind::Done => Left::Done,
                NoteKind::Question => Left::Asked(serde_json::from_str(&note.json).ok()?),
                NoteKind::Answer | NoteKind::Retry => Left::Due,
                NoteKind::Memo | NoteKind::Failure | NoteKind::Pause => continue,
            };
            left.insert(note.task, now);
        }
        let is_over = saved.tasks.is_empty();
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
        Some(Standing {
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
    use crate::ids::{Birth, TaskId};
    use serde_json::json;
    use uuid::Uuid;

    fn birth(index: u32) -> Birth {
        Birth {
            at: Uuid::from_u128(7),
            index,
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
        let (idle, waits) = (ThreadStatus::Idle, ThreadStatus::Interrupted);
        let table: [(&[&str], Vec<Note>, Standing); 5] = [
            (&[], vec![], stands(idle, &[], vec![])),
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
            assert_eq!(Standing::of("t", &saved(nodes), &notes), Some(expected));
        }
        assert_eq!(Standing::of("t", b"{}", &[]), None);
    }
}
