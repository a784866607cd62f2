//! A run in memory: the state, the machine, and what the tasks of the open superstep left.
//!
//! Applies updates, closes supersteps, saves and restores. Decides nothing about when.

mod own;
mod reopen;
mod restore;
mod save;

use crate::{
    Command, Error, Name, State,
    attempt::Tried,
    checkpoint::{Note, NoteKind, Source},
    event::Event,
    graph::Shape,
    ids::CheckpointId,
    node::Target,
    run::{Hop, Run},
    session::{Session, lock},
    state::{Change, Rejected},
    topology::Route,
    wire,
};
use reopen::Opened;
use std::{collections::HashSet, sync::Arc};
use uuid::Uuid;

pub(crate) struct Live<S: State> {
    pub(crate) run: Run,
    pub(crate) state: Arc<S>,
    /// Per task what it returned.
    pub(crate) done: Vec<Option<Command<S>>>,
    /// Per task how often it was tried before.
    pub(crate) tried: Vec<Tried>,
    /// Whether a breakpoint stopped the run at this very place before.
    pub(crate) passed_breakpoint: bool,
    /// Just read back, at a checkpoint on which nothing has been done yet: the one it follows.
    pub(crate) untouched_since: Option<CheckpointId>,
    /// Told with the next checkpoint.
    pub(crate) untold: Vec<Event>,
    /// What happened to each channel since this object was made (for a subgraph that shares its
    /// parent's state).
    total: Vec<Change>,
    /// What such a subgraph hands back.
    pub(crate) own: S::Update,
    shared: bool,
    /// A superstep could not be closed or saved: what is in memory must not be saved after it.
    pub(crate) broken: bool,
    /// Where nothing is saved before the end: the superstep that is being closed, as it was.
    opened: Option<Opened<S>>,
    /// Per channel about how many bytes of JSON it has.
    sizes: Vec<usize>,
    /// How the open superstep came about.
    source: Source,
    updates: Vec<S::Update>,
    changes: Vec<Change>,
    unsaved: Vec<Change>,
    written: Vec<bool>,
    /// Ephemeral channels that hold something.
    dirty: Vec<usize>,
}

impl<S: State> Live<S> {
    /// Nothing has happened yet.
    pub(crate) fn new(state: Arc<S>) -> Self {
        let channels = S::CHANNELS.len();
        Live {
            run: Run::idle(-1),
            state,
            done: Vec::new(),
            tried: Vec::new(),
            passed_breakpoint: false,
            untouched_since: None,
            untold: Vec::new(),
            total: vec![Change::Unchanged; channels],
            own: S::Update::default(),
            shared: false,
            broken: false,
            opened: None,
            sizes: vec![0; channels],
            source: Source::Loop,
            updates: Vec::new(),
            changes: vec![Change::Unchanged; channels],
            unsaved: vec![Change::Unchanged; channels],
            written: vec![false; channels],
            dirty: Vec::new(),
        }
    }

    /// The same over a state that belongs to the parent: only changes are saved.
    pub(crate) fn over(state: Arc<S>) -> Self {
        Live {
            shared: true,
            ..Self::new(state)
        }
    }

    /// The channels that were ever written on this thread, by index.
    pub(crate) fn written(&self) -> &[bool] {
        &self.written
    }

    /// Takes the input of a run: what was pending before is forgotten.
    pub(crate) async fn input(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        command: Command<S>,
    ) -> Result<(), Error> {
        self.keep_finished(shape);
        self.run.clear();
        self.passed_breakpoint = false;
        self.untouched_since = None;
        let Command { update, goto, .. } = command;
        self.apply(shape, update)?;
        if goto.is_empty() {
            self.enter(shape)?;
        } else {
            self.jump(shape, goto)?;
        }
        self.open(shape, session, Source::Input).await
    }

    /// Folds in what finished in a superstep that will not be closed: nothing that was shown as part
    /// of the state may vanish. Where it does not fit together, the superstep is dropped.
    pub(crate) fn keep_finished(&mut self, shape: &Shape<S>) {
        let done = std::mem::take(&mut self.done);
        let mut updates = Vec::new();
        for command in done.into_iter().flatten() {
            let child = command.child.map(|(name, head)| (name, head.uuid()));
            self.run.children.extend(child);
            updates.push(command.update);
        }
        if updates.is_empty() {
            return;
        }
        let (state, dirty) = (self.state.clone(), self.dirty.clone());
        let (unsaved, written) = (self.unsaved.clone(), self.written.clone());
        if self.fold(shape, &mut updates).is_err() {
            (self.state, self.dirty) = (state, dirty);
            (self.unsaved, self.written) = (unsaved, written);
        }
    }

    /// Goes where a run begins.
    pub(crate) fn enter(&mut self, shape: &Shape<S>) -> Result<(), Error> {
        match (&shape.topology.start, &shape.start_branch) {
            (Route::Edges(start), _) => start.iter().for_each(|&n| self.run.go(Hop::to(n))),
            (route, Some(branch)) => {
                let chosen = branch(&self.state).0;
                self.choose(shape, &crate::START.into(), route, chosen)?;
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// Goes to any nodes of the graph, as a command from outside may.
    fn jump(&mut self, shape: &Shape<S>, goto: Vec<Target>) -> Result<(), Error> {
        let all = (0..shape.topology.nodes.len())
            .map(Some)
            .chain([None])
            .collect();
        self.choose(shape, &crate::START.into(), &Route::Commands(all), goto)
    }

    /// Folds updates from outside into the state.
    pub(crate) fn apply(&mut self, shape: &Shape<S>, update: S::Update) -> Result<(), Error> {
        let rejected = self.fold(shape, &mut [update]);
        rejected.map_err(|rejected| self.rejected(rejected, &|_| crate::START.into()))
    }

    fn rejected(&self, rejected: Rejected, writer: &dyn Fn(usize) -> Name) -> Error {
        match rejected {
            Rejected::TwoWriters {
                channel,
                first,
                second,
            } => Error::TwoWriters {
                channel,
                first: writer(first),
                second: writer(second),
                superstep: self.run.superstep,
            },
            Rejected::Refused {
                channel,
                writer: at,
                why,
            } => Error::Refused {
                channel,
                node: writer(at),
                why,
            },
        }
    }

    fn fold(&mut self, shape: &Shape<S>, updates: &mut [S::Update]) -> Result<(), Rejected> {
        self.changes.fill(Change::Unchanged);
        if !shape.ephemeral.is_empty() {
            for &channel in &self.dirty {
                self.changes[channel] = Change::Replaced;
            }
            let written = |c: &&usize| updates.iter().any(|u| S::writes(u).contains(c));
            self.dirty = shape.ephemeral.iter().filter(written).copied().collect();
        }
        let own = self.to_hand_back(updates);
        let applied = Arc::make_mut(&mut self.state).apply(updates, &mut self.changes);
        // What was folded in before a write was refused has happened.
        for (i, change) in self.changes.iter().enumerate() {
            if *change == Change::Unchanged {
                continue;
            }
            self.written[i] = true;
            self.unsaved[i] = std::mem::take(&mut self.unsaved[i]).then(change.clone());
        }
        applied?;
        match own {
            Some(own) => self.hand_back(&own),
            None => Ok(()),
        }
    }

    /// Closes the superstep and saves: all its updates are folded in, and its nodes' routes decide
    /// what is due.
    pub(crate) async fn commit(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        source: Source,
    ) -> Result<(), Error> {
        let id = self.close_superstep(shape, session)?;
        if self.is_told_at_once(shape, session) {
            return Ok(());
        }
        self.save(shape, session, (id, source), Vec::new()).await
    }

    /// Folds in what the tasks wrote and follows their routes; what is due then is not saved yet.
    pub(crate) fn close_superstep(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
    ) -> Result<CheckpointId, Error> {
        self.opened = session.journal.holds_back().then(|| Opened::of(self));
        self.broken = true;
        let mut updates = std::mem::take(&mut self.updates);
        for done in &mut self.done {
            let update = done.as_mut().map(|c| std::mem::take(&mut c.update));
            updates.push(update.unwrap_or_default());
        }
        let folded = self.fold(shape, &mut updates);
        if let Some(opened) = &mut self.opened {
            opened.is_folded(folded.as_ref(), &updates);
        }
        updates.clear();
        self.updates = updates;
        folded.map_err(|rejected| {
            self.rejected(rejected, &|i| shape.topology.name(self.run.tasks[i].node))
        })?;
        self.route(shape)?;
        let id = self.next_superstep(shape, session)?;
        self.opened = None;
        Ok(id)
    }

    fn route(&mut self, shape: &Shape<S>) -> Result<(), Error> {
        let mut seen = HashSet::new();
        let several = self.run.tasks.len() > 1;
        for i in 0..self.run.tasks.len() {
            let node = self.run.tasks[i].node;
            let done = self.done.get_mut(i).and_then(Option::take);
            let (goto, child) = done.map_or((Vec::new(), None), |c| (c.goto, c.child));
            if let Some((namespace, head)) = child {
                self.run.children.insert(namespace, head.uuid());
            }
            // Several tasks of a node finish together: its branch is asked once, since all of them
            // see the same state, and a join that it is a source of is reached once.
            let first = !several || seen.insert(node);
            let route = &shape.topology.nodes[node].route;
            let chosen = match (route, &shape.branches[node]) {
                (Route::Branch(_), Some(_)) if !first => continue,
                (Route::Branch(_), Some(branch)) => branch(&self.state).0,
                (Route::Edges(_), _) if goto.is_empty() => Vec::new(),
                _ => goto,
            };
            if !matches!(route, Route::Edges(_)) || !chosen.is_empty() {
                self.choose(shape, &shape.topology.name(node), route, chosen)?;
            }
            if first {
                self.run.follow(&shape.topology, node);
            }
        }
        Ok(())
    }

    /// Goes where `from` chose, if it had said that it might.
    fn choose(
        &mut self,
        shape: &Shape<S>,
        from: &Name,
        route: &Route,
        chosen: Vec<Target>,
    ) -> Result<(), Error> {
        if chosen.is_empty() {
            return Err(Error::NoTarget(from.clone()));
        }
        let declared: &[Option<usize>] = match route {
            Route::Branch(to) | Route::Commands(to) => to,
            Route::Edges(_) => &[],
        };
        for target in chosen {
            let undeclared = || Error::Undeclared {
                node: from.clone(),
                target: target.node.clone(),
                declared: shape.topology.declared(route),
            };
            if target.node == crate::END && declared.contains(&None) {
                continue;
            }
            let node = shape
                .topology
                .find(&target.node)
                .filter(|n| declared.contains(&Some(*n)));
            let node = node.ok_or_else(undeclared)?;
            if target.payload.is_some() != shape.topology.nodes[node].each {
                return Err(undeclared());
            }
            let payload = target.payload.transpose().map_err(|e| Error::Node {
                node: from.clone(),
                source: e.into(),
            })?;
            self.run.go(Hop {
                node,
                payload,
                timeout: target.timeout,
            });
        }
        Ok(())
    }

    /// Opens the next superstep at a new checkpoint, which is saved and told.
    pub(crate) async fn open(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
        source: Source,
    ) -> Result<(), Error> {
        let id = self.next_superstep(shape, session)?;
        if self.is_told_at_once(shape, session) {
            return Ok(());
        }
        self.save(shape, session, (id, source), Vec::new()).await
    }

    fn next_superstep(
        &mut self,
        shape: &Shape<S>,
        session: &Session,
    ) -> Result<CheckpointId, Error> {
        let id = self.next_id(session);
        // What was memoised belongs to tasks that are done.
        lock(&session.memos).clear();
        lock(&session.callers).clear();
        self.run
            .advance(&shape.topology, id.uuid())
            .map_err(|dead| {
                let name = |i: usize| shape.topology.name(i);
                Error::DeadJoin {
                    target: name(dead.target),
                    missing: dead
                        .missing
                        .into_iter()
                        .map(|i| format!("`{}`", name(i)))
                        .collect(),
                }
            })?;
        self.reset_tasks();
        self.broken = false;
        Ok(id)
    }

    /// Without a store an id needs to be unique in this run only, and cheap.
    pub(crate) fn next_id(&self, session: &Session) -> CheckpointId {
        if session.journal.store.is_some() {
            return session.journal.next_id();
        }
        // The superstep before the first is -1; every one has a number of its own.
        let step = u128::try_from(i128::from(self.run.superstep) + 2).unwrap_or_default();
        Uuid::from_u128(session.run.id.uuid().as_u128().wrapping_add(step)).into()
    }

    pub(crate) fn reset_tasks(&mut self) {
        self.passed_breakpoint = false;
        let tasks = self.run.tasks.len();
        self.done.clear();
        self.done.reserve_exact(tasks);
        self.done.resize_with(tasks, || None);
        self.tried.clear();
        self.tried.reserve_exact(tasks);
        self.tried.resize(tasks, Tried::default());
    }

    /// The state as it will be if nothing else is written: with what finished tasks wrote.
    pub(crate) fn shown(&self) -> S {
        let mut state = (*self.state).clone();
        let done = self.done.iter().flatten();
        let mut updates: Vec<S::Update> = done.map(|c| c.update.clone()).collect();
        if updates.is_empty() {
            return state;
        }
        let mut changes = vec![Change::Unchanged; S::CHANNELS.len()];
        match state.apply(&mut updates, &mut changes) {
            Ok(()) => state,
            // Two writers: the superstep will fail when it closes. Until then show what is committed.
            Err(_) => (*self.state).clone(),
        }
    }

    /// What a note says of a finished task.
    pub(crate) fn done_note(
        session: &Session,
        birth: crate::ids::Birth,
        command: &Command<S>,
    ) -> Result<Note, Error> {
        Ok(Note {
            task: session.task(birth),
            kind: NoteKind::Done,
            key: String::new(),
            json: wire::write_command(command)?,
        })
    }
}
