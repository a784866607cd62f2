//! The tool node: the calls of the model's last message, each a task of its own.
//!
//! Graphs put it behind their model's node, with [`crate::tools_condition`] between the two; `react` is
//! one of them. A call has the key of its task, so that it runs once however often the task does, and
//! its own place to be resumed at: what one call waits for holds up no other, and nothing that has ended
//! runs again. Results stand in the conversation in the order of the calls. No tool runs but through the
//! gateway's session.

mod command;
mod runtime;
mod sessions;

use crate::asking::Early;
use crate::calling::{Called, Calling};
use crate::outcome::TraceRow;
use crate::tools_condition::{OpenCall, asked, calls, open_call};
use crate::{Error, HasMessages};
use command::{Channel, Next};
use futures::future::BoxFuture;
use paraph_gateway::{Gateway, Injections, Limits, Observation, Stop, ToolCall};
use paraph_graph::{Command, Ctx, IntoEach, Name, Node, NodeError, State, Update, with};
use paraph_models::{Body, Message, RawJson};
pub(crate) use runtime::CallSite;
use sessions::Sessions;
use std::sync::Arc;

pub use command::update_command;
pub use runtime::ToolRuntime;
pub(crate) use sessions::Held;

/// Makes the node of the tools: `.each(TOOLS, tool_node(gateway))`.
///
/// See the example at [`crate::tools_condition`].
pub fn tool_node<S: HasMessages>(gateway: Gateway) -> ToolNode<S> {
    ToolNode::new(Place::Graph(Front {
        sessions: Sessions::new(gateway),
        on_stop: None,
    }))
}

/// A node that makes the calls of the model's last message, for any state with a conversation.
///
/// The model reads the outcome of each call, also that a tool does not exist, that arguments do not fit,
/// that a tool failed or took too long. What ends the run (budget, loops) is [`Error::Ended`], unless
/// [`ToolNode::on_stop`] says otherwise.
///
/// In tools, `#[inject]` gives the state (`state: &Chat`), the task's context (`ctx: &Ctx`), the
/// [`Conversation`](crate::Conversation) and a [`ToolRuntime`].
///
/// A run's calls share a session of the gateway, which knows the run by its id: resume a run under its
/// id ([`paraph_graph::Start::run_id`]), and its budget and its records go on with it.
pub struct ToolNode<S: HasMessages> {
    place: Place<S>,
    or_goto: Option<Name>,
    /// Where messages are written.
    channel: Option<Channel>,
}

/// How a graph's calls are made and what becomes of them: a graph of somebody's, or `react`.
pub(crate) trait Desk<S: State>: Send + Sync + 'static {
    /// Where calls are made in this run.
    fn calling<'a>(
        &'a self,
        state: &'a S,
        ctx: &'a Ctx,
    ) -> BoxFuture<'a, Result<Calling<'a>, Early>>;

    /// How many of the calls of one message the budget has room for: the first ones, in every run
    /// alike, however the tasks are scheduled.
    fn slots(&self, state: &S) -> u64;

    /// Whether tools may write to the state.
    fn takes_commands(&self) -> bool;

    /// Why a call of the last message is not to be made at all, in words that its model reads. Such a call reaches
    /// neither the gateway nor a tool, and the run goes on.
    fn declines(&self, _state: &S, _index: usize, _call: &ToolCall) -> Option<String> {
        None
    }

    /// What the model reads of a call that gave something to read, and what the graph keeps of it besides.
    fn read(
        &self,
        _state: &S,
        open: &OpenCall,
        seen: &Observation,
    ) -> Result<(Message, Update<S>), NodeError> {
        Ok((result(open, seen)?, S::update()))
    }

    /// Adds to an update what the graph remembers of a call; with a stop, the run is to end.
    fn settle(
        &self,
        update: Update<S>,
        row: Option<TraceRow>,
        stop: Option<Stop>,
    ) -> Result<Update<S>, NodeError>;
}

/// Whose calls they are.
enum Place<S: State> {
    /// Those of a graph of somebody's.
    Graph(Front<S>),
    /// Those of an agent.
    Agent(Box<dyn Desk<S>>),
}

/// What a graph of somebody's writes when a call is to end the run.
type OnStop<S> = Box<dyn Fn(Update<S>, &Stop) -> Update<S> + Send + Sync>;

/// Calls of a graph of somebody's.
struct Front<S: State> {
    sessions: Sessions,
    on_stop: Option<OnStop<S>>,
}

impl<S: HasMessages> Desk<S> for Front<S> {
    fn calling<'a>(
        &'a self,
        state: &'a S,
        ctx: &'a Ctx,
    ) -> BoxFuture<'a, Result<Calling<'a>, Early>> {
        Box::pin(async move {
            let decisions = state
                .conversation()
                .iter()
                .filter(|message| message.is_ai());
            let (session, held) = self.sessions.of(ctx).await?;
            Ok(Calling {
                session,
                held: Some(held),
                redactor: self.sessions.gateway.redactor(),
                step: decisions.count() as u64,
            })
        })
    }

    fn slots(&self, _: &S) -> u64 {
        self.sessions.limits.tool_calls
    }

    fn takes_commands(&self) -> bool {
        true
    }

    fn settle(
        &self,
        update: Update<S>,
        _: Option<TraceRow>,
        stop: Option<Stop>,
    ) -> Result<Update<S>, NodeError> {
        match (stop, &self.on_stop) {
            (None, _) => Ok(update),
            (Some(stop), Some(on_stop)) => Ok(on_stop(update, &stop)),
            (Some(stop), None) => Err(Error::Ended(stop).into()),
        }
    }
}

impl<S: HasMessages> ToolNode<S> {
    fn new(place: Place<S>) -> ToolNode<S> {
        ToolNode {
            place,
            or_goto: None,
            channel: Channel::of::<S>(),
        }
    }

    pub(crate) fn of_agent(desk: impl Desk<S>) -> ToolNode<S> {
        ToolNode::new(Place::Agent(Box::new(desk)))
    }

    fn desk(&self) -> &dyn Desk<S> {
        match &self.place {
            Place::Graph(front) => front,
            Place::Agent(desk) => &**desk,
        }
    }

    /// What a run may use: calls, also of each tool, and seconds, which count from its first call on.
    /// Without it, [`Limits::default`].
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> ToolNode<S> {
        if let Place::Graph(front) = &mut self.place {
            front.sessions.limits = limits;
        }
        self
    }

    /// The name under which the gateway records the calls; `graph` without it.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>) -> ToolNode<S> {
        if let Place::Graph(front) = &mut self.place {
            front.sessions.agent = name.into();
        }
        self
    }

    /// Lets the graph end in its own way when a call is to end the run: this adds to the update, which
    /// has the reason as the call's result already, and a branch reads it. Without it the run fails with
    /// [`Error::Ended`].
    #[must_use]
    pub fn on_stop(
        mut self,
        write: impl Fn(Update<S>, &Stop) -> Update<S> + Send + Sync + 'static,
    ) -> ToolNode<S> {
        if let Place::Graph(front) = &mut self.place {
            front.on_stop = Some(Box::new(write));
        }
        self
    }

    /// Lets tools say where to go on: after a call that names no target it is this node. The node then
    /// is one of commands: declare its targets with `.commands(TOOLS, […])` in place of an edge.
    ///
    /// Each call goes its own way: of two calls of one message one may go to a target of its own and the
    /// other to this one, which then both run.
    #[must_use]
    pub fn or_goto(mut self, node: impl Into<Name>) -> ToolNode<S> {
        self.or_goto = Some(node.into());
        self
    }

    /// One call of the model's last message, and what it leads to.
    async fn make(&self, index: usize, state: &S, ctx: &Ctx) -> Result<Next<S>, NodeError> {
        let asked = asked(state);
        let Some(open) = asked.and_then(|asked| open_call(asked, index)) else {
            let calls = asked.map_or(0, calls);
            return Err(Error::NoToolCall { index, calls }.into());
        };
        let calling = match self.desk().calling(state, ctx).await {
            Ok(calling) => calling,
            Err(early) => {
                let stop = early.ending()?.stop;
                return self.stopped(&open, None, stop);
            }
        };
        if let Some(why) = self.desk().declines(state, index, &open.call) {
            return self.declined((ctx, &calling), &open, &why).await;
        }
        let called = if index as u64 >= self.desk().slots(state) {
            calling.refuse(ctx, &open.call, Stop::MaxToolCalls).await?
        } else {
            let injections = Injections::new()
                .with(state)
                .with(state.conversation())
                .with(ctx);
            let call = (&open.call, open.id.as_str());
            calling.make(ctx, call, injections).await?
        };
        match called {
            Called::Seen(row, seen) => self.seen(state, &open, row, &seen),
            Called::Stopped(row, stop) => self.stopped(&open, Some(row), stop),
        }
    }

    /// A call that gave something to read, if only a failure.
    fn seen(
        &self,
        state: &S,
        open: &OpenCall,
        row: TraceRow,
        seen: &Observation,
    ) -> Result<Next<S>, NodeError> {
        let (message, update) = self.desk().read(state, open, seen)?;
        let (update, goto) = match &seen.command {
            None => (S::say(update, vec![message]), Vec::new()),
            Some(_) if !self.desk().takes_commands() => {
                let why = "the state of this agent is its own".to_owned();
                let tool = open.call.name().to_owned();
                return Err(Error::BadCommand { tool, why }.into());
            }
            Some(command) => {
                let read = command::read::<S>(command, self.channel.as_ref(), message);
                let read = read.and_then(|read| match (&self.or_goto, read.1.is_empty()) {
                    (None, false) => Err(
                        "it names where to go on, and the node has edges: build it with `or_goto`"
                            .to_owned(),
                    ),
                    _ => Ok(read),
                });
                read.map_err(|why| Error::BadCommand {
                    tool: open.call.name().to_owned(),
                    why,
                })?
            }
        };
        let update = self.desk().settle(update, Some(row), None)?;
        Ok(Next { update, goto })
    }

    /// A call that is not made, which its model hears.
    async fn declined(
        &self,
        (ctx, calling): (&Ctx, &Calling<'_>),
        open: &OpenCall,
        why: &str,
    ) -> Result<Next<S>, NodeError> {
        let row = calling.decline(ctx, &open.call, why).await?;
        let mut message = Message::tool_error(&open.id, why);
        message.name = Some(open.call.name().to_owned());
        let update = S::say(S::update(), vec![message]);
        Ok(Next {
            update: self.desk().settle(update, Some(row), None)?,
            goto: Vec::new(),
        })
    }

    /// A call that is to end the run. It has a result all the same: the conversation may go on
    /// elsewhere.
    fn stopped(
        &self,
        open: &OpenCall,
        row: Option<TraceRow>,
        stop: Stop,
    ) -> Result<Next<S>, NodeError> {
        let mut message = Message::tool_error(&open.id, stop.to_string());
        message.name = Some(open.call.name().to_owned());
        let update = S::say(S::update(), vec![message]);
        Ok(Next {
            update: self.desk().settle(update, row, Some(stop))?,
            goto: Vec::new(),
        })
    }

    /// For a node with edges.
    async fn update(&self, index: usize, state: &S, ctx: &Ctx) -> Result<Update<S>, NodeError> {
        Ok(self.make(index, state, ctx).await?.update)
    }

    /// For a node of commands.
    async fn command(&self, index: usize, state: &S, ctx: &Ctx) -> Result<Command<S>, NodeError> {
        let Next { update, goto } = self.make(index, state, ctx).await?;
        let command = Command::update(update);
        Ok(match (goto.is_empty(), &self.or_goto) {
            (true, Some(node)) => command.and_goto(node.clone()),
            _ => command.and_goto_all(goto.into_iter().map(|node| Name::from(node).into())),
        })
    }
}

impl<S: HasMessages> std::fmt::Debug for ToolNode<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolNode")
            .field("or_goto", &self.or_goto)
            .finish_non_exhaustive()
    }
}

/// What the model reads of a call, and what the program keeps of it.
pub(crate) fn result(open: &OpenCall, seen: &Observation) -> Result<Message, NodeError> {
    let mut message = match seen.ok() {
        true => Message::tool(&open.id, seen.text()),
        false => Message::tool_error(&open.id, seen.text()),
    };
    message.name = Some(open.call.name().to_owned());
    if let (Body::Tool(body), Some(artifact)) = (&mut message.body, &seen.artifact) {
        body.artifact = Some(RawJson::parse(artifact)?);
    }
    Ok(message)
}

/// Marks the implementation for tool nodes.
pub struct Calls;

impl<S: HasMessages> IntoEach<usize, S, Calls> for ToolNode<S> {
    fn commands(&self) -> bool {
        self.or_goto.is_some()
    }

    fn into_node(self) -> Arc<dyn Node<S>> {
        match self.or_goto {
            None => with(self, ToolNode::update).into_node(),
            Some(_) => with(self, ToolNode::command).into_node(),
        }
    }
}
