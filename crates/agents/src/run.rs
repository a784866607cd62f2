//! A run under way: the engine's stream, told in the words of agents, and the result at its end.
//!
//! There is one way to run an agent: whoever wants the result alone reads the events to their end
//! ([`AgentRun::result`]). The last event is always [`AgentEventData::RunEnded`].

use crate::asking::Unfinished;
use crate::branches::Branches;
use crate::ending::Ending;
use crate::event::{AgentEvent, AgentEventData, BudgetView};
use crate::outcome::RunResult;
use crate::reserve::Reserve;
use crate::run_context::RunContext;
use crate::spent::Spent;
use crate::waits::{approvals, questions, wakes};
use crate::{Agent, Error, Terms};
use futures::StreamExt as _;
use futures::stream::{BoxStream, unfold};
use paraph_gateway::{Dialect, LoopRule, Scope, Stop, UNLIMITED};
use paraph_graph::{
    CancelReason, CheckpointId, Control, EventData, Graph, HistoryQuery, Interrupt, Mode, Name,
    Outcome, RunId, RunOptions, Snapshot, Source, State, Stream, Thread,
};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use tokio::sync::OnceCell;

/// What the engine takes beside a model's decision and its calls: one superstep each, and some air.
const SUPERSTEPS_PER_STEP: u64 = 2;

/// The state of a graph that is an agent's: it says where the graph goes and what came out.
pub(crate) trait Application: State {
    /// How the agent's model says what it wants.
    const DIALECT: Dialect;

    /// What counts as a loop among its own calls, where the run's terms say this.
    fn loops(said: LoopRule) -> LoopRule {
        said
    }

    /// What a run that is to do this begins with: what belongs to an older one begins anew.
    fn fresh(task: &str) -> Self::Update;

    /// Where the graph goes from this state, and why: what its branch asks too.
    fn route(&self) -> Route;

    /// What the run is for, as the events tell it.
    fn task(&self) -> String;

    /// What the run has used of its model.
    fn spent(&self) -> Option<&Spent>;

    /// The ending that it holds.
    fn ending(&self) -> Option<Ending>;

    /// The result of a run that ended like this. There is no state if nothing was ever saved.
    fn result(state: Option<&Self>, ending: Ending) -> RunResult;
}

/// Where a graph goes, and why.
pub(crate) struct Route {
    pub(crate) from: Cow<'static, str>,
    pub(crate) cause: String,
}

/// Where a run begins, and with what.
pub(crate) struct Begin {
    pub(crate) run: RunId,
    /// Nothing for what is due anyway.
    pub(crate) task: Option<String>,
    /// Nothing for the head.
    pub(crate) at: Option<CheckpointId>,
    /// Answers to open questions, by their ids, for what is due.
    pub(crate) answers: Vec<(String, serde_json::Value)>,
}

impl Begin {
    /// With what is due at the head.
    pub(crate) fn of(run: RunId) -> Begin {
        Begin {
            run,
            task: None,
            at: None,
            answers: Vec::new(),
        }
    }
}

/// A run under way. It runs while its events are read; dropped, it is cancelled.
pub struct AgentRun {
    events: BoxStream<'static, AgentEvent>,
    control: Control,
    run: RunId,
    thread: String,
}

impl AgentRun {
    /// A run that is driven elsewhere than by a graph.
    pub(crate) fn of(
        events: BoxStream<'static, AgentEvent>,
        control: Control,
        (run, thread): (RunId, String),
    ) -> AgentRun {
        AgentRun {
            events,
            control,
            run,
            thread,
        }
    }

    /// The next event; nothing after the last one.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        self.events.next().await
    }

    /// Reads the events to their end and gives the result.
    pub async fn result(mut self) -> RunResult {
        let mut ended = None;
        while let Some(event) = self.next().await {
            if let AgentEventData::RunEnded { result, .. } = event.data {
                ended = Some(result);
            }
        }
        ended.unwrap_or_else(|| {
            let stop = Stop::Internal("the run told no end".to_owned());
            crate::outcome::of_actions(stop.into(), Vec::new(), Vec::new())
        })
    }

    /// A handle to cancel the run from elsewhere.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The run's id.
    pub fn run_id(&self) -> RunId {
        self.run
    }

    /// The thread's name.
    pub fn thread(&self) -> &str {
        &self.thread
    }
}

impl std::fmt::Debug for AgentRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRun")
            .field("run", &self.run)
            .field("thread", &self.thread)
            .finish_non_exhaustive()
    }
}

/// Starts an agent on these terms.
pub(crate) async fn start<A: Application>(
    graph: &Graph<A>,
    agent: &Agent,
    begin: Begin,
    terms: &Terms,
) -> Result<AgentRun, Error> {
    let Begin {
        run,
        task,
        at,
        answers,
    } = begin;
    let again = task.is_none() && at.is_none();
    let thread = graph.thread(&agent.store, terms.thread.clone());
    // Whatever an unknown checkpoint, or nothing to do, leads to is said before anything is begun.
    let before = match (&task, at) {
        (Some(_), None) => None,
        (_, at) => Some(stands(&thread, at).await?),
    };
    let spent = before.as_ref().and_then(|before| before.state.spent());
    let known = Spent::of(run, spent, 0);
    let context = Arc::new(context_of::<A>(agent, terms, (run, again), known));
    let (task, budget, begun) = match (task, before) {
        (Some(task), _) => {
            let begun = thread.run(A::fresh(&task));
            (task, context.fresh_budget(), begun)
        }
        // A run that is over may have ended before its row said so: then the engine says it now.
        (None, Some(before))
            if !before.finished
                || (at.is_none() && answers.is_empty() && before.metadata.run == run) =>
        {
            let budget = context.budget_so_far().await.map_err(Error::Stopped)?;
            let answers = match answers.is_empty() && at.is_none() {
                true => wakes(&before.interrupts),
                false => answers,
            };
            let begun = match answers.is_empty() {
                true => thread.resume(),
                false => thread.answers(answers),
            };
            (before.state.task(), budget, begun)
        }
        _ => return Err(Error::NothingLeft(terms.thread.clone())),
    };
    let started = AgentEventData::RunStarted {
        agent: agent.name.clone(),
        model: terms.model.name().to_owned(),
        task: context.redactor().text(&task),
        budget,
    };
    let begun = match at {
        Some(at) => begun.at(at),
        None => begun,
    };
    let stream = begun
        .options(RunOptions {
            limit: supersteps(terms.limits.steps),
            arguments: terms.arguments.clone(),
            ..RunOptions::default()
        })
        .run_id(run)
        .context(context.clone())
        .stream([Mode::Custom, Mode::Checkpoints]);
    let control = stream.control();
    let follow = Follow::<A> {
        stream: Some(stream),
        thread,
        context,
        pending: vec![started],
        seq: 0,
        run,
    };
    Ok(AgentRun {
        events: unfold(follow, Follow::next).boxed(),
        control,
        run,
        thread: terms.thread.clone(),
    })
}

/// What the nodes of a run find in their context.
fn context_of<A: Application>(
    agent: &Agent,
    terms: &Terms,
    (run, again): (RunId, bool),
    known: Spent,
) -> RunContext {
    RunContext {
        scope: Scope {
            run: run.to_string(),
            dialect: A::DIALECT,
            loops: A::loops(terms.loops),
            targets: agent.targets.clone(),
            user: terms.user.clone(),
            ..Scope::new(agent.name.clone(), terms.thread.clone())
        },
        gateway: agent.gateway.clone(),
        limits: terms.limits.clone(),
        purse: terms.purse.clone(),
        model: terms.model.clone(),
        price: terms.price.clone(),
        tell_messages: terms.tell_messages,
        reserve: Reserve::of(kept_back(agent, terms.limits.tokens)),
        again,
        known,
        session: OnceCell::new(),
        loops: terms.loops,
        branches: Branches::default(),
        attempts: AtomicU64::new(0),
        repairs_told: AtomicUsize::new(0),
    }
}

/// How many tokens are kept back for a run's last words.
fn kept_back(agent: &Agent, limit: u64) -> u64 {
    match agent.reserve_share {
        Some(part) if limit != UNLIMITED => agent.synthesis_reserve.min(limit / part.max(1)),
        _ => agent.synthesis_reserve,
    }
}

/// The thread as it stands, or as it stood at a checkpoint.
async fn stands<S: State>(
    thread: &Thread<S>,
    at: Option<CheckpointId>,
) -> Result<Snapshot<S>, Error> {
    match (thread.snapshot(at).await?, at) {
        (Some(snapshot), _) => Ok(snapshot),
        (None, None) => Err(Error::NothingLeft(thread.name().to_owned())),
        (None, Some(checkpoint)) => Err(Error::Graph(paraph_graph::Error::UnknownCheckpoint {
            thread: thread.name().to_owned(),
            checkpoint,
        })),
    }
}

/// The result of a run that is over, from the last checkpoint that it wrote.
pub(crate) async fn outcome_of<A: Application>(
    thread: &Thread<A>,
    run: RunId,
) -> Result<Option<RunResult>, Error> {
    let mut last = HistoryQuery {
        limit: Some(1),
        ..HistoryQuery::default()
    };
    last.filter.insert("run".to_owned(), run.to_string().into());
    let Some(entry) = thread.history_of(&last).await?.pop() else {
        return Ok(None);
    };
    let snapshot = thread.snapshot(Some(entry.id)).await?;
    Ok(snapshot.and_then(|snapshot| {
        let ending = snapshot.state.ending()?;
        Some(A::result(Some(&snapshot.state), ending))
    }))
}

/// The gateway's budget ends the run; the engine's limit is only there for a graph that never asks it.
fn supersteps(steps: u64) -> u64 {
    match steps {
        UNLIMITED => UNLIMITED,
        steps => steps.saturating_mul(SUPERSTEPS_PER_STEP).saturating_add(8),
    }
    // The engine counts in signed numbers.
    .min(i64::MAX as u64 / 2)
}

/// Follows a stream and puts the events in order.
struct Follow<A: Application> {
    /// Gone once the end was told.
    stream: Option<Stream<A>>,
    thread: Thread<A>,
    context: Arc<RunContext>,
    /// Events that are ready, the next one last.
    pending: Vec<AgentEventData>,
    seq: u64,
    run: RunId,
}

impl<A: Application> Follow<A> {
    async fn next(mut self) -> Option<(AgentEvent, Self)> {
        let data = self.next_data().await?;
        let event = AgentEvent {
            seq: self.seq,
            run_id: self.run,
            thread_id: self.thread.name().to_owned(),
            data,
        };
        self.seq += 1;
        Some((event, self))
    }

    async fn next_data(&mut self) -> Option<AgentEventData> {
        loop {
            if let Some(ready) = self.pending.pop() {
                return Some(ready);
            }
            let event = self.stream.as_mut()?.next().await;
            match event {
                Some(event) => self.take(event.superstep, &event.scope.namespace, event.data),
                None => self.end().await,
            }
        }
    }

    fn take(&mut self, superstep: i64, namespace: &str, data: EventData) {
        match data {
            EventData::Custom { data, .. } => {
                // Nodes of other crates may say what they like; only our own words are ours to tell.
                let told: Option<AgentEventData> = serde_json::from_value(data).ok();
                self.pending.extend(told.map(|told| match namespace {
                    "" => told,
                    namespace => AgentEventData::Inside {
                        namespace: namespace.to_owned(),
                        event: Box::new(told),
                    },
                }));
            }
            EventData::Checkpoint {
                source: Source::Loop,
                next,
                state,
                ..
            } => {
                if let Some(state) = state.get::<A>() {
                    let routed = routed::<A>(superstep, state, &next);
                    // In this order they are popped: the route, then the budget.
                    self.pending = vec![self.budget(), routed];
                }
            }
            _ => {}
        }
    }

    fn budget(&self) -> AgentEventData {
        AgentEventData::Budget {
            budget: match self.context.session.get() {
                Some(session) => BudgetView::of(session.budget()),
                None => self.context.fresh_budget(),
            },
        }
    }

    async fn end(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        let (state, ending) = match stream.outcome().await {
            Ok(Outcome::Done(state)) => {
                let ending = state.ending().unwrap_or_else(|| {
                    Stop::Internal("the graph ended without a reason".to_owned()).into()
                });
                (Some(state), ending)
            }
            Ok(Outcome::Paused { state, interrupts }) => {
                let ending = Ending {
                    detail: Some(asked(&interrupts)),
                    approvals: approvals(&interrupts),
                    questions: questions(&interrupts),
                    ..Stop::ApprovalPending.into()
                };
                (Some(state), ending)
            }
            Ok(outcome) => {
                let stop = Stop::Internal("the graph stopped half-way".to_owned());
                (Some(outcome.state().clone()), stop.into())
            }
            // What the thread holds is another run's.
            Err(error @ paraph_graph::Error::Conflict { .. }) => (None, stop_of(error).into()),
            Err(error @ paraph_graph::Error::RunOver(_)) => self.over(error).await,
            Err(error) => (self.saved().await, stop_of(error).into()),
        };
        let taken_over = matches!(ending.stop, Stop::Conflict(_));
        if let (Some(session), false) = (self.context.session.get(), taken_over)
            && let Err(stop) = session.save().await
        {
            tracing::warn!(%stop, "what the run used was not saved");
        }
        self.pending = vec![AgentEventData::RunEnded {
            detail: ending.detail.clone(),
            exit_code: ending.stop.exit_code(),
            result: A::result(state.as_ref(), ending),
        }];
    }

    /// What came out of a run that was over before it was taken up again, if the thread still has it.
    async fn over(&mut self, error: paraph_graph::Error) -> (Option<A>, Ending) {
        let snapshot = match self.context.again {
            true => self.thread.snapshot(None).await.ok().flatten(),
            // It was to do something else.
            false => None,
        };
        let its_own = snapshot.filter(|now| now.finished && now.metadata.run == self.run);
        let state = its_own.map(|now| A::clone(&now.state));
        match state.as_ref().and_then(A::ending) {
            Some(ending) => (state, ending),
            None => (None, stop_of(error).into()),
        }
    }

    /// What the thread holds after a run that failed: everything that was finished.
    async fn saved(&mut self) -> Option<A> {
        let snapshot = self.thread.snapshot(None).await.ok().flatten()?;
        Some(A::clone(&snapshot.state))
    }
}

fn routed<A: Application>(superstep: i64, state: &A, next: &[Name]) -> AgentEventData {
    let route = state.route();
    let mut to: Vec<String> = next.iter().map(ToString::to_string).collect();
    to.dedup();
    AgentEventData::Routed {
        superstep,
        from: route.from.into_owned(),
        to,
        cause: route.cause,
    }
}

/// Which questions are open, for people.
fn asked(interrupts: &[Interrupt]) -> String {
    let ids: Vec<_> = interrupts.iter().map(|it| it.id.as_str()).collect();
    format!(
        "{} question(s) wait for an answer: {}",
        ids.len(),
        ids.join(", ")
    )
}

/// What a failure of the engine means to the run.
fn stop_of(error: paraph_graph::Error) -> Stop {
    use paraph_graph::Error as Engine;
    match error {
        Engine::Cancelled(CancelReason::LeaseLost) => {
            Stop::Conflict("another process took the thread over".to_owned())
        }
        Engine::Cancelled(_) => Stop::Cancelled,
        // Whoever came to its end with it was another, while this one waited.
        Engine::Conflict { .. } | Engine::RunOver(_) => Stop::Conflict(error.to_string()),
        Engine::Node { ref source, .. } => match source.downcast_ref::<Unfinished>() {
            Some(Unfinished(stop)) => stop.clone(),
            None => Stop::Internal(error.to_string()),
        },
        Engine::Store(_) | Engine::Corrupt { .. } => Stop::StoreError(error.to_string()),
        other => Stop::Internal(other.to_string()),
    }
}
