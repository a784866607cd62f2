//! Going on with a thread: where it stands, or on a new branch from where it stood, with answers or without.
//!
//! Called by `start.rs` when a run begins with answers or with nothing. The machine says whose a
//! question is; here only ids are compared and notes written.

use super::{Start, restore_at};
use crate::{
    Error, Interrupt, State,
    checkpoint::{Loaded, Note, NoteKind, Source},
    graph::Shape,
    ids::Birth,
    live::Live,
    session::{Session, lock},
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

impl<S: State> Start<S> {
    pub(super) async fn resume(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        (head, older): (Option<Loaded>, Option<Loaded>),
        given: Vec<(String, Value)>,
    ) -> Result<Box<Live<S>>, Error> {
        let nothing = || Error::NothingToResume(session.scope().thread.to_string());
        let newest = head.as_ref().ok_or_else(nothing)?;
        let (notes, last) = (newest.notes.clone(), newest.metadata.run);
        let branching = older.is_some();
        let asked = older.as_ref().map(|l| questions(&l.notes)).transpose()?;
        let mut live = Box::new(restore_at(shape, session, None, (head, older))?);
        if live.run.is_over() {
            if branching {
                return Err(nothing());
            }
            if given.is_empty() && self.update.is_none() && last == session.run.id {
                // It was over when its process ended, but for saying so.
                return Ok(live);
            }
            // Whatever is asked of it now, its row is to say that it is over.
            self.left_behind = Some(live.left_behind(shape, last));
            return Err(nothing());
        }
        if !branching {
            let answers = answer(&mut live, session, given)?;
            self.continue_with(&mut live, shape, session, (notes, answers))
                .await?;
            return Ok(live);
        }
        let id = session.journal.next_id();
        let old: Vec<_> = live.run.tasks.iter().map(|t| t.birth).collect();
        live.run.renew(id.uuid());
        live.reset_tasks();
        let answers = carry_over(&live, session, &old, asked.unwrap_or_default(), given)?;
        if let Some(update) = self.update.take() {
            live.apply(shape, update)?;
        }
        live.run.superstep += 1;
        live.save(shape, session, (id, Source::Fork), answers)
            .await?;
        Ok(live)
    }

    async fn continue_with(
        &mut self,
        live: &mut Live<S>,
        shape: &Shape<S>,
        session: &Session,
        (mut notes, answers): (Vec<Note>, Vec<Note>),
    ) -> Result<(), Error> {
        let Some(update) = self.update.take() else {
            if answers.is_empty() {
                return Ok(());
            }
            return session.journal.note(answers, Vec::new(), true).await;
        };
        live.untouched_since = None;
        live.apply(shape, update)?;
        notes.extend(answers);
        live.run.superstep += 1;
        live.save(
            shape,
            session,
            (session.journal.next_id(), Source::Update),
            notes,
        )
        .await
    }
}

/// Makes the answered tasks due; the notes that say so.
fn answer<S: State>(
    live: &mut Live<S>,
    session: &Session,
    given: Vec<(String, Value)>,
) -> Result<Vec<Note>, Error> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let open: Vec<String> = live.run.waiting().into_iter().map(|q| q.id).collect();
    if open.is_empty() {
        return Err(Error::NothingToResume(session.scope().thread.to_string()));
    }
    let mut answers = BTreeMap::new();
    for (id, answer) in given {
        if !open.contains(&id) || answers.insert(id.clone(), answer).is_some() {
            return Err(Error::UnknownInterrupt(id));
        }
    }
    let found = live.run.answer(|id| answers.contains_key(id));
    let whose: HashMap<String, usize> = found.into_iter().collect();
    let mut notes = Vec::new();
    for (id, answer) in answers {
        let Some(&i) = whose.get(&id) else { continue };
        notes.push(answer_note(session, live.run.tasks[i].birth, &id, answer));
    }
    Ok(notes)
}

fn answer_note(session: &Session, birth: Birth, id: &str, answer: Value) -> Note {
    let json = answer.to_string();
    lock(&session.run.answers).insert(id.to_owned(), answer);
    lock(&session.run.fresh).insert(id.to_owned());
    Note {
        task: session.task(birth),
        kind: NoteKind::Answer,
        key: id.to_owned(),
        json,
    }
}

/// All questions that stand in notes, answered or not.
fn questions(notes: &[Note]) -> Result<Vec<Interrupt>, Error> {
    let mut all = Vec::new();
    for note in notes.iter().filter(|n| n.kind == NoteKind::Question) {
        let asked: Vec<Interrupt> = serde_json::from_str(&note.json).map_err(Error::store)?;
        all.extend(asked);
    }
    Ok(all)
}

/// Answers to questions of an older checkpoint, for the tasks that ask them again on a new branch.
fn carry_over<S: State>(
    live: &Live<S>,
    session: &Session,
    old: &[Birth],
    asked: Vec<Interrupt>,
    given: Vec<(String, Value)>,
) -> Result<Vec<Note>, Error> {
    let mut notes = Vec::new();
    for (id, answer) in given {
        let unknown = || Error::UnknownInterrupt(id.clone());
        let question = asked.iter().find(|q| q.id == id).ok_or_else(unknown)?;
        // A question asked inside a subgraph belongs to that subgraph's old branch: it is not found.
        let owner = ["interrupt", "wait"].into_iter().find_map(|kind| {
            let parts = [kind, &*question.node, &*question.key];
            let was = old
                .iter()
                .position(|birth| session.key(*birth, &parts) == id)?;
            let birth = live.run.tasks.get(was)?.birth;
            Some((birth, session.key(birth, &parts)))
        });
        let (birth, renewed) = owner.ok_or_else(unknown)?;
        notes.push(answer_note(session, birth, &renewed, answer));
    }
    Ok(notes)
}
