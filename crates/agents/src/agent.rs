//! An agent that can be run, whichever it is: a graph with a gateway, on a store.
//!
//! [`react`](crate::react()), [`support`](crate::support()), [`weather`](crate::weather()) and
//! [`declared`](crate::declared()) make one each; whoever has it need not know which it is. What it is to do comes as
//! a [`Case`], everything else that concerns a run as [`Terms`].

use crate::outcome::RunResult;
use crate::run::{AgentRun, Application, Begin, outcome_of, start};
use crate::terms::check_task;
use crate::{Error, Terms};
use futures::future::BoxFuture;
use paraph_gateway::{Gateway, Limits, Targets};
use paraph_graph::{CheckpointId, Drawing, Graph, Interrupt, MemoryStore, RunId, Store};
use serde_json::Value;
use std::collections::BTreeMap;

/// What an agent is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The number of the customer who asks, for an agent that has customers.
    pub user: u64,
    /// What they ask.
    pub question: String,
}

impl From<&str> for Case {
    fn from(question: &str) -> Case {
        Case {
            user: 0,
            question: question.to_owned(),
        }
    }
}

impl From<&Case> for Case {
    fn from(case: &Case) -> Case {
        case.clone()
    }
}

/// An agent, ready to run.
pub struct Agent {
    pub(crate) name: String,
    pub(crate) gateway: Gateway,
    /// Those of the agents that it calls, by their names.
    pub(crate) called: BTreeMap<String, Gateway>,
    /// What its runs are about, which flow rules hold effects to.
    pub(crate) targets: Targets,
    pub(crate) store: Store,
    /// How many tokens its runs keep back for a last answer; 0 for none.
    pub(crate) synthesis_reserve: u64,
    /// Of a run's tokens no more than this part of them is kept back, one of so many.
    pub(crate) reserve_share: Option<u64>,
    graph: Box<dyn Driven>,
    /// What is drawn of it, if that is more than its graph.
    drawn: Option<Drawing>,
    /// How its graph is told the task.
    telling: Telling,
}

/// From what is asked to what a graph is told; refuses what cannot be a task.
pub(crate) type Telling = fn(&Case) -> Result<String, Error>;

impl Agent {
    /// An agent whose graph is told the task as it is. What it does dies with the process; see [`Agent::on`].
    pub(crate) fn new<A: Application>(name: String, graph: Graph<A>, gateway: Gateway) -> Agent {
        Agent {
            name,
            gateway,
            called: BTreeMap::new(),
            targets: Targets::new(),
            store: MemoryStore::shared(),
            synthesis_reserve: 0,
            reserve_share: None,
            graph: Box::new(graph),
            drawn: None,
            telling: |case| check_task(&case.question).map(str::to_owned),
        }
    }

    /// The same, told the task in other words.
    pub(crate) fn told(self, telling: Telling) -> Agent {
        Agent { telling, ..self }
    }

    /// The same on a store that may outlive the process. (The gateway brings its own.)
    #[must_use]
    pub fn on(self, store: Store) -> Agent {
        Agent { store, ..self }
    }

    /// The same, which keeps so many tokens (in and out) of each run's budget back for a last answer: when the run's steps,
    /// calls, tokens or money are used up, the model is asked once more, without tools, for what it can say from what it
    /// has. The run ends with the limit as its reason all the same. 0 keeps nothing back; an agent with JSON actions just
    /// stops.
    ///
    /// ```
    /// use paraph_agents::{Terms, react};
    /// use paraph_gateway::{Gateway, Limits, MemoryStore, Policy};
    /// use paraph_models::ScriptedModel;
    /// use std::sync::Arc;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Nothing {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gateway = Gateway::builder(MemoryStore::shared())
    ///     .read("look", "Looks", async |_: Nothing| Ok("three of ten"))
    ///     .policy(Policy::new().allow(["look"]))
    ///     .build()?;
    /// let script = r#"{"tool_calls":[{"name":"look","arguments":{}}]}
    /// {"content":"Three of ten; I could not look at the rest."}"#;
    /// let terms = Terms {
    ///     limits: Limits { steps: 1, ..Limits::default() },
    ///     ..Terms::new(Arc::new(ScriptedModel::parse(script, "script")?), "t")
    /// };
    /// let agent = react("looker", "Look.", gateway)?.keeping_back(1_000);
    /// let result = agent.start("How many?", &terms).await?.result().await;
    /// assert_eq!(result.stop().to_string(), "max_steps");
    /// assert_eq!(result.answer(), Some("Three of ten; I could not look at the rest."));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn keeping_back(self, tokens: u64) -> Agent {
        Agent {
            synthesis_reserve: tokens,
            ..self
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The gateway of the agent of this name: its own, or that of one that it calls. People who change an action's
    /// arguments need it.
    pub fn gateway_of(&self, agent: &str) -> Option<&Gateway> {
        match agent == self.name {
            true => Some(&self.gateway),
            false => self.called.get(agent),
        }
    }

    /// What a run of it may use unless told otherwise, if it is one of the built-in agents.
    pub fn limits(&self) -> Limits {
        let known = crate::builtin()
            .into_iter()
            .find(|info| info.name == self.name);
        known.map(|info| info.limits).unwrap_or_default()
    }

    /// Whether anything that it or an agent which it calls does may have to wait for a person.
    pub fn may_ask(&self) -> bool {
        self.gateway.may_ask() || self.called.values().any(Gateway::may_ask)
    }

    /// Remarks on the rules that are no mistakes.
    pub fn warnings(&self) -> &[String] {
        self.gateway.warnings()
    }

    /// The same, drawn like this.
    pub(crate) fn drawn(self, drawing: Drawing) -> Agent {
        Agent {
            drawn: Some(drawing),
            ..self
        }
    }

    /// The graph, to be drawn; with the agents that it calls as nodes which have their graphs inside.
    pub fn drawing(&self) -> Drawing {
        self.drawn.clone().unwrap_or_else(|| self.graph.drawing())
    }

    /// Starts a run. It runs while its events are read. On a thread that has a conversation the question is its next
    /// message; an agent with JSON actions is told what was asked and answered there.
    ///
    /// # Errors
    /// [`Error::EmptyTask`], [`Error::LongTask`].
    pub async fn start(&self, case: impl Into<Case>, terms: &Terms) -> Result<AgentRun, Error> {
        let task = (self.telling)(&case.into())?;
        let begin = Begin {
            task: Some(task),
            ..Begin::of(terms.run.unwrap_or_else(RunId::fresh))
        };
        self.graph.begin(self, begin, terms).await
    }

    /// Goes on with a run that was cut off or cancelled, with what it had finished, used and recorded. The terms are
    /// those it was started with.
    ///
    /// # Errors
    /// [`Error::NothingLeft`] if the thread has nothing that is due.
    pub async fn resume(&self, run: RunId, terms: &Terms) -> Result<AgentRun, Error> {
        self.graph.begin(self, Begin::of(run), terms).await
    }

    /// Starts a run at an older checkpoint of the thread, on a new branch: with what was due there, or with another
    /// question. What came after that checkpoint stays as it is.
    ///
    /// # Errors
    /// As [`Agent::start`] and [`Agent::resume`]; [`Error::Graph`] for an unknown checkpoint.
    pub async fn replay(
        &self,
        at: CheckpointId,
        case: Option<Case>,
        terms: &Terms,
    ) -> Result<AgentRun, Error> {
        let begin = Begin {
            task: case.as_ref().map(self.telling).transpose()?,
            at: Some(at),
            ..Begin::of(terms.run.unwrap_or_else(RunId::fresh))
        };
        self.graph.begin(self, begin, terms).await
    }

    /// The questions that tools of a thread's run have asked ([`crate::ToolRuntime::ask`]) and that nobody has
    /// answered. Such a run has stopped with `approval_pending`.
    ///
    /// # Errors
    /// [`Error::Graph`] if the store cannot be read.
    pub async fn questions(&self, thread: &str) -> Result<Vec<Interrupt>, Error> {
        self.graph.questions(&self.store, thread).await
    }

    /// Goes on with a run whose tools asked, with answers to some or all of the questions by their ids. Only the calls
    /// that have an answer run again.
    ///
    /// # Errors
    /// As [`Agent::resume`]. An answer to no open question ends the run with `internal`.
    pub async fn answer(
        &self,
        run: RunId,
        answers: impl IntoIterator<Item = (String, Value)>,
        terms: &Terms,
    ) -> Result<AgentRun, Error> {
        let begin = Begin {
            answers: answers.into_iter().collect(),
            ..Begin::of(run)
        };
        self.graph.begin(self, begin, terms).await
    }

    /// The result of a run that is over; nothing if the thread has none of this run that is.
    ///
    /// # Errors
    /// [`Error::Graph`] if the store cannot be read.
    pub async fn result(&self, run: RunId, thread: &str) -> Result<Option<RunResult>, Error> {
        self.graph.result(&self.store, thread, run).await
    }

    /// Goes back to a checkpoint of a thread: what runs there next begins on a new branch.
    ///
    /// # Errors
    /// [`Error::Graph`] for an unknown checkpoint, and while a run drives the thread.
    pub async fn fork(&self, thread: &str, at: CheckpointId) -> Result<CheckpointId, Error> {
        self.graph.fork(&self.store, thread, at).await
    }
}

/// A graph that is an agent's, whatever its state.
trait Driven: Send + Sync {
    fn drawing(&self) -> Drawing;

    fn begin<'a>(
        &'a self,
        agent: &'a Agent,
        begin: Begin,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<AgentRun, Error>>;

    fn questions<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Interrupt>, Error>>;

    fn result<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        run: RunId,
    ) -> BoxFuture<'a, Result<Option<RunResult>, Error>>;

    fn fork<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        at: CheckpointId,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>>;
}

impl<A: Application> Driven for Graph<A> {
    fn drawing(&self) -> Drawing {
        Graph::drawing(self)
    }

    fn begin<'a>(
        &'a self,
        agent: &'a Agent,
        begin: Begin,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<AgentRun, Error>> {
        Box::pin(start(self, agent, begin, terms))
    }

    fn questions<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Interrupt>, Error>> {
        Box::pin(async move {
            let snapshot = self.thread(store, thread).snapshot(None).await?;
            Ok(snapshot.map_or(Vec::new(), |snapshot| snapshot.interrupts))
        })
    }

    fn result<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        run: RunId,
    ) -> BoxFuture<'a, Result<Option<RunResult>, Error>> {
        Box::pin(async move { outcome_of(&self.thread(store, thread), run).await })
    }

    fn fork<'a>(
        &'a self,
        store: &'a Store,
        thread: &'a str,
        at: CheckpointId,
    ) -> BoxFuture<'a, Result<CheckpointId, Error>> {
        Box::pin(async move { Ok(self.thread(store, thread).fork(at).await?) })
    }
}
