//! A task's view of its run: questions, durable steps, keys for the outside, progress.

use crate::{
    Error, Name, NodeError,
    checkpoint::{Note, NoteKind},
    control::Halt,
    error::Kind,
    event::{EventData, MessageEvent, MessagePhase, Mode},
    ids::{Birth, RunId, TaskId},
    key::note_key_fits,
    memory::Memory,
    run::{Failed, Interrupt},
    session::{Session, lock},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{
    future::Future,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// What a node is given besides the state.
pub struct Ctx {
    pub(crate) session: Arc<Session>,
    pub(crate) node: Name,
    pub(crate) birth: Birth,
    pub(crate) attempt: u32,
    pub(crate) failed: Option<Arc<Failed>>,
    pub(crate) halt: Halt,
    pub(crate) inside: Inside,
    pub(crate) pulse: Pulse,
    /// The right to run under a limit of concurrency.
    pub(crate) permit: Mutex<Option<OwnedSemaphorePermit>>,
    counts: Mutex<Vec<(String, u32)>>,
}

/// The right to drive the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseView {
    /// Grows with each driver of the thread; 0 without a store.
    pub epoch: u64,
}

impl Ctx {
    pub(crate) fn new(
        session: Arc<Session>,
        node: Name,
        birth: Birth,
        attempt: u32,
        halt: Halt,
    ) -> Self {
        Ctx {
            halt,
            session,
            node,
            birth,
            attempt,
            failed: None,
            inside: Inside::default(),
            pulse: Pulse::default(),
            permit: Mutex::default(),
            counts: Mutex::default(),
        }
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// 1 for the first try; goes on counting over crashes and interrupts.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The thread's name; empty without a store.
    pub fn thread(&self) -> &str {
        &self.session.scope().thread
    }

    /// Where in the tree of subgraphs the task runs; empty in the graph itself.
    pub fn namespace(&self) -> &str {
        &self.session.scope().namespace
    }

    /// The run.
    pub fn run_id(&self) -> RunId {
        self.session.run.id
    }

    /// The task; stays the same when it runs again.
    pub fn task_id(&self) -> TaskId {
        self.session.task(self.birth)
    }

    /// The superstep, counted over the runs of a thread.
    pub fn superstep(&self) -> i64 {
        self.session.superstep.load(Ordering::Relaxed)
    }

    /// How many supersteps the run may still take, this one included.
    pub fn remaining_supersteps(&self) -> u64 {
        let stop = self.session.stop.load(Ordering::Relaxed);
        u64::try_from(stop.saturating_sub(self.superstep())).unwrap_or(0)
    }

    /// Whether the recursion limit is reached after this superstep.
    pub fn is_last_superstep(&self) -> bool {
        self.remaining_supersteps() <= 1
    }

    /// The failure that this node handles, if it runs in place of a node that failed.
    pub fn failure(&self) -> Option<&Failed> {
        self.failed.as_deref()
    }

    /// The lease under which the run drives its thread.
    pub fn lease(&self) -> LeaseView {
        LeaseView {
            epoch: self.session.run.epoch,
        }
    }

    /// What the caller gave the run with `.context(…)`.
    ///
    /// # Errors
    /// If the run has no context, or one of another type.
    pub fn context<T: Send + Sync + 'static>(&self) -> Result<&T, NodeError> {
        let context = self.session.run.context.as_deref();
        context.and_then(|any| any.downcast_ref()).ok_or_else(|| {
            NodeError::msg(format!(
                "the run has no context of type {}",
                std::any::type_name::<T>()
            ))
        })
    }

    /// Long-term memory, across threads.
    ///
    /// # Errors
    /// If the graph was built without one.
    pub fn memory(&self) -> Result<&dyn Memory, NodeError> {
        let memory = self.session.memory.as_deref();
        memory.ok_or_else(|| NodeError::msg("the graph was built without a memory: .memory(…)"))
    }

    /// A key that stays the same however often this task runs again, for outside systems that
    /// recognise a repeated call: 32 hexadecimal digits. A fork of the thread has other keys.
    pub fn key(&self, name: &str) -> String {
        self.session.key(self.birth, &["key", &self.node, name])
    }

    /// Asks a person. The first time this ends the task (pass the error on with `?`); when the
    /// answer is there, the task runs again from its top and this returns it. `null` is an answer;
    /// an answer that is not a `T` makes it ask again under the same id, saying why.
    ///
    /// The same `name` may be asked again in one task: the second time it is another question.
    ///
    /// # Errors
    /// The question itself; without a store, a failure.
    pub fn interrupt<T: DeserializeOwned>(
        &self,
        name: &str,
        question: impl Serialize,
    ) -> Result<T, NodeError> {
        self.ask(name, question, None)
    }

    /// The same, with a JSON Schema of the answer that is shown with the question.
    ///
    /// # Errors
    /// As [`Ctx::interrupt`].
    pub fn interrupt_for<T: DeserializeOwned + schemars::JsonSchema>(
        &self,
        name: &str,
        question: impl Serialize,
    ) -> Result<T, NodeError> {
        self.ask(name, question, Some(schemars::schema_for!(T).into()))
    }

    fn ask<T: DeserializeOwned>(
        &self,
        name: &str,
        question: impl Serialize,
        answer_schema: Option<serde_json::Value>,
    ) -> Result<T, NodeError> {
        let name = self.ordinal("interrupt", name);
        let id = self
            .session
            .key(self.birth, &["interrupt", &self.node, &name]);
        let answer = lock(&self.session.run.answers).get(&id).map(T::deserialize);
        let refused = match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(e)) => Some(format!("the answer does not fit: {e}")),
            None => None,
        };
        Err(self.question(question, |question| Interrupt {
            id,
            node: self.node.clone(),
            key: name,
            namespace: self.namespace().to_owned(),
            question,
            answer_schema,
            refused,
        }))
    }

    /// Waits for something to be decided elsewhere. This always ends the task; an answer wakes the
    /// task but is not kept: it runs again from its top, and if it comes here again it asks again
    /// under the same id. Return it: `return ctx.wait("approval", &question);`
    ///
    /// # Errors
    /// Always: the question, or without a store a failure.
    pub fn wait<T>(&self, name: &str, question: impl Serialize) -> Result<T, NodeError> {
        let id = self.session.key(self.birth, &["wait", &self.node, name]);
        Err(self.question(question, |question| Interrupt {
            id,
            node: self.node.clone(),
            key: name.to_owned(),
            namespace: self.namespace().to_owned(),
            question,
            answer_schema: None,
            refused: None,
        }))
    }

    fn question(
        &self,
        question: impl Serialize,
        interrupt: impl FnOnce(serde_json::Value) -> Interrupt,
    ) -> NodeError {
        if self.session.journal.store.is_none() {
            return Error::InterruptWithoutStore(self.node.clone()).into();
        }
        match serde_json::to_value(question) {
            Ok(question) => NodeError(Kind::Interrupt(vec![interrupt(question)])),
            Err(e) => e.into(),
        }
    }

    /// Does `work` once: its result is saved before this returns, and read back when the task runs
    /// again after an interrupt, a retry or a crash.
    ///
    /// A crash between `work` and the saving does it again. An outside effect needs [`Ctx::key`], or
    /// the gateway. The work begins when the task itself is saved, so that its key holds; but with
    /// [`crate::Durability::Exit`], where nothing is saved before the end, a crash loses the task too.
    /// The same `name` may be used again in one task; the uses are told apart by order.
    ///
    /// # Errors
    /// Those of `work`, which are not saved; a result that JSON cannot hold; a name longer than
    /// [`crate::LONGEST_KEY`], before anything is done; the store's.
    pub async fn step<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, NodeError>>,
    ) -> Result<T, NodeError> {
        let name = self.ordinal("step", name);
        // Before the work: what it did could not be saved under that name.
        note_key_fits(&name)?;
        let key = (self.task_id(), name);
        let memo = lock(&self.session.memos).get(&key).cloned();
        if let Some(memo) = memo {
            return serde_json::from_str(memo.get()).map_err(|e| {
                NodeError::msg(format!(
                    "the saved result of step `{}` does not fit: {e}",
                    key.1
                ))
            });
        }
        let inside = self.enter()?;
        // The task's key holds only if the task itself is saved: else it would be born anew.
        self.session.settled().await?;
        let value = work.await?;
        let json: Arc<RawValue> = serde_json::value::to_raw_value(&value)?.into();
        let note = Note {
            task: key.0,
            kind: NoteKind::Memo,
            key: key.1.clone(),
            json: json.get().to_owned(),
        };
        self.session
            .journal
            .note(vec![note], Vec::new(), true)
            .await?;
        lock(&self.session.memos).insert(key, json);
        self.heartbeat();
        drop(inside);
        if self.halt.is_cancelled() {
            return Err(NodeError::halted());
        }
        Ok(value)
    }

    /// From here until the guard is dropped the task is not ended from outside.
    pub(crate) fn enter(&self) -> Result<InsideGuard<'_>, NodeError> {
        let guard = self.inside.enter();
        // Looked at after entering: whoever halts looks at the count after that.
        if self.halt.is_cancelled() {
            return Err(NodeError::halted());
        }
        Ok(guard)
    }

    /// Tells whoever streams this run; waits while they are behind.
    ///
    /// # Errors
    /// If `progress` cannot be written as JSON, or the task is to end; the store's, where it keeps events.
    pub async fn emit(&self, progress: impl Serialize) -> Result<(), NodeError> {
        self.shows_life()?;
        if self.session.journal.wants(Mode::Custom) {
            let data = serde_json::to_value(progress)?;
            let node = self.node.clone();
            self.tell(EventData::Custom { node, data }).await?;
        }
        Ok(())
    }

    /// Passes a piece of a model's message on to whoever streams this run in messages mode.
    ///
    /// # Errors
    /// If `payload` cannot be written as JSON, or the task is to end; the store's, where it keeps events.
    pub async fn message(
        &self,
        id: &str,
        phase: MessagePhase,
        payload: impl Serialize,
        tags: &[String],
    ) -> Result<(), NodeError> {
        self.shows_life()?;
        if self.session.journal.wants(Mode::Messages) {
            let payload = serde_json::to_value(payload)?;
            self.tell(EventData::Message(MessageEvent {
                node: self.node.clone(),
                id: id.to_owned(),
                phase,
                payload,
                tags: tags.to_vec(),
            }))
            .await?;
        }
        Ok(())
    }

    /// A sign of life; and a place to end, for a node that never waits for anything else.
    fn shows_life(&self) -> Result<(), NodeError> {
        self.heartbeat();
        if self.halt.is_cancelled() && self.inside.is_idle() {
            return Err(NodeError::halted());
        }
        Ok(())
    }

    async fn tell(&self, data: EventData) -> Result<(), Error> {
        let event = self.session.event(Some(self.birth), data);
        self.session.journal.say(event).await
    }

    /// Shows a sign of life, for idle timeouts: of this task, and of those in which its graph runs.
    pub fn heartbeat(&self) {
        self.pulse.beat();
        self.session.beat();
    }

    /// `name`, then `name#1`, `name#2`, … for each further use within this execution.
    pub(crate) fn ordinal(&self, what: &str, name: &str) -> String {
        let mut counts = lock(&self.counts);
        let used = format!("{what}:{name}");
        match counts.iter_mut().find(|(n, _)| *n == used) {
            Some((_, n)) => {
                *n += 1;
                format!("{name}#{n}")
            }
            None => {
                counts.push((used, 0));
                name.to_owned()
            }
        }
    }
}

/// How many steps a task is inside of.
#[derive(Default)]
pub(crate) struct Inside {
    count: AtomicU32,
    idle: Notify,
}

pub(crate) struct InsideGuard<'a>(&'a Inside);

impl Inside {
    fn enter(&self) -> InsideGuard<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        InsideGuard(self)
    }

    fn is_idle(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Resolves when the task is inside no step.
    async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }
}

impl Drop for InsideGuard<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

/// Resolves when the task is to end, and may.
pub(crate) async fn halted(ctx: &Ctx) {
    ctx.halt.cancelled().await;
    ctx.inside.idle().await;
}

/// Signs of life: the task's own, and those of subgraphs that it runs.
#[derive(Default)]
pub(crate) struct Pulse {
    own: AtomicU64,
    /// Made when the first subgraph begins, since most tasks run none.
    below: OnceLock<Arc<AtomicU64>>,
}

impl Pulse {
    pub(crate) fn beat(&self) {
        self.own.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        let below = self.below.get().map_or(0, |b| b.load(Ordering::Relaxed));
        self.own.load(Ordering::Relaxed).wrapping_add(below)
    }

    /// Where a subgraph shows signs of life.
    pub(crate) fn of_subgraphs(&self) -> Arc<AtomicU64> {
        self.below.get_or_init(Arc::default).clone()
    }
}
