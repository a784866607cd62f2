//! An agent by hand: ask the model, make all its calls at once, put the results to the conversation, ask again.
//!
//! No graph and no checkpoint. What bounds it is what bounds every agent: the gateway's session, its budget, and
//! one reason for which the run ends.

use crate::asking::Unfinished;
use crate::asking::{Asking, Early};
use crate::branches::Branches;
use crate::calling::Called;
use crate::ending::Ending;
use crate::event::{AgentEvent, AgentEventData, BudgetView};
use crate::outcome::{TraceRow, of_messages};
use crate::run::AgentRun;
use crate::run_context::RunContext;
use crate::spent::Spent;
use crate::teller::Teller;
use crate::tool_node::result;
use crate::tools_condition::{OpenCall, calls, open_call};
use crate::waits::Waits;
use crate::{Error, Terms};
use futures::future::{BoxFuture, join_all};
use futures::stream::{StreamExt as _, unfold};
use paraph_gateway::{Dialect, Gateway, Injections, Scope, Stop};
use paraph_graph::{Control, NodeError, RunId};
use paraph_models::{ChatRequest, Message, Messages, ToolSpec};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use tokio::sync::{OnceCell, mpsc};

/// An agent that is run by hand.
pub(super) struct Talk<'a> {
    pub(super) agent: &'a str,
    pub(super) instructions: &'a str,
    pub(super) gateway: &'a Gateway,
}

impl Talk<'_> {
    pub(super) async fn start(self, task: &str, terms: &Terms) -> Result<AgentRun, Error> {
        let run = terms.run.unwrap_or_else(RunId::fresh);
        let context = RunContext {
            scope: Scope {
                run: run.to_string(),
                dialect: Dialect::Native,
                loops: terms.loops,
                user: terms.user.clone(),
                ..Scope::new(self.agent, terms.thread.clone())
            },
            gateway: self.gateway.clone(),
            limits: terms.limits.clone(),
            purse: terms.purse.clone(),
            model: terms.model.clone(),
            price: terms.price.clone(),
            tell_messages: terms.tell_messages,
            reserve: crate::reserve::Reserve::default(),
            again: false,
            known: Spent::of(run, None, 0),
            loops: terms.loops,
            branches: Branches::default(),
            session: OnceCell::new(),
            attempts: AtomicU64::new(0),
            repairs_told: AtomicUsize::new(0),
        };
        context.open_by_hand().await.map_err(Error::Stopped)?;
        let (tell, told) = mpsc::unbounded_channel();
        let started = AgentEventData::RunStarted {
            agent: self.agent.to_owned(),
            model: terms.model.name().to_owned(),
            task: context.redactor().text(task),
            budget: context.fresh_budget(),
        };
        // Whoever would hear it holds the other end.
        let _ = tell.send(started);
        let tools = self.gateway.catalogue().iter().map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.about.clone(),
            schema: tool.schema.clone(),
        });
        let control = Control::default();
        let the_loop = Loop {
            context: Arc::new(context),
            instructions: self.instructions.to_owned(),
            tools: tools.collect(),
            tell,
            messages: vec![Message::human(task)],
            trace: Vec::new(),
            step: 0,
        };
        let follow = Follow {
            working: Some(Box::pin(the_loop.run(control.clone()))),
            told,
            seq: 0,
            run,
            thread: terms.thread.clone(),
            control: control.clone(),
        };
        let named = (run, terms.thread.clone());
        Ok(AgentRun::of(
            unfold(follow, Follow::next).boxed(),
            control,
            named,
        ))
    }
}

/// The events of a loop that runs while they are read.
struct Follow {
    /// Gone when it has ended.
    working: Option<BoxFuture<'static, ()>>,
    told: mpsc::UnboundedReceiver<AgentEventData>,
    seq: u64,
    run: RunId,
    thread: String,
    control: Control,
}

impl Follow {
    async fn next(mut self) -> Option<(AgentEvent, Self)> {
        let data = loop {
            let Some(working) = &mut self.working else {
                break self.told.recv().await?;
            };
            tokio::select! {
                // What was told comes before what is told next.
                biased;
                Some(data) = self.told.recv() => break data,
                () = working => self.working = None,
            }
        };
        let event = AgentEvent {
            seq: self.seq,
            run_id: self.run,
            thread_id: self.thread.clone(),
            data,
        };
        self.seq += 1;
        Some((event, self))
    }
}

impl Drop for Follow {
    /// A run whose events nobody reads any more is over too.
    fn drop(&mut self) {
        if self.working.is_some() {
            self.control.end(paraph_graph::Ending::Cancelled);
        }
    }
}

/// The loop and what it remembers.
struct Loop {
    context: Arc<RunContext>,
    instructions: String,
    tools: Vec<ToolSpec>,
    tell: mpsc::UnboundedSender<AgentEventData>,
    messages: Vec<Message>,
    trace: Vec<TraceRow>,
    step: u64,
}

impl Loop {
    /// Runs to the end, and tells it.
    async fn run(mut self, control: Control) {
        let ending = tokio::select! {
            // A wish to stop is heard before another call is begun.
            biased;
            () = control.cancel_requested() => Stop::Cancelled.into(),
            ending = self.turns() => ending,
        };
        if let Some(session) = self.context.session.get()
            && let Err(stop) = session.save().await
        {
            tracing::warn!(%stop, "what the run used was not saved");
        }
        let ended = match ending.stop {
            Stop::Cancelled => paraph_graph::Ending::Cancelled,
            _ => paraph_graph::Ending::Finished,
        };
        let data = AgentEventData::RunEnded {
            detail: ending.detail.clone(),
            exit_code: ending.stop.exit_code(),
            result: of_messages(ending, self.trace, Messages::from(self.messages)),
        };
        let _ = self.tell.send(data);
        control.end(ended);
    }

    async fn turns(&mut self) -> Ending {
        loop {
            match self.turn().await {
                Ok(None) => {}
                Ok(Some(ending)) => return ending,
                Err(Early::Ending(ending)) => return *ending,
                Err(Early::Node(error)) => return unfinished(&error),
            }
        }
    }

    /// One decision of the model, and what comes of it; an ending if it is the last.
    async fn turn(&mut self) -> Result<Option<Ending>, Early> {
        let context = self.context.clone();
        let asking = Asking::by_hand(&context)?;
        let teller = Spoken::of(&self.tell, String::new());
        let (step, begun) = asking.begin_step(&teller).await?;
        self.step = step;
        let mut messages = vec![Message::system(self.instructions.clone())];
        messages.extend(asking.sound(&teller, step, &self.messages).await?);
        let request = ChatRequest {
            tools: self.tools.clone(),
            ..ChatRequest::new(messages)
        };
        let message = asking.ask(&teller, (step, begun), request).await?.message;
        let wanted = message.tool_calls().iter().map(|call| call.name.clone());
        let open = (0..calls(&message)).filter_map(|index| open_call(&message, index));
        let open: Vec<OpenCall> = open.collect();
        teller
            .emit(AgentEventData::Decided {
                step,
                kind: if open.is_empty() { "final" } else { "tool" }.to_owned(),
                tools: wanted.collect(),
                stop_reason: None,
            })
            .await?;
        let answer = message.text().trim().to_owned();
        self.messages.push(message);
        let ending = match open.is_empty() {
            true => Some(Ending::answered(answer)),
            false => self.act(&asking, &open).await?,
        };
        let budget = BudgetView::of(asking.session.budget());
        teller.emit(AgentEventData::Budget { budget }).await?;
        Ok(ending)
    }

    /// Makes all calls of a message at once; an ending if one of them ends the run.
    async fn act(
        &mut self,
        asking: &Asking<'_>,
        open: &[OpenCall],
    ) -> Result<Option<Ending>, Early> {
        let slots = asking.session.budget().left().tool_calls;
        let calling = asking.calling(self.step);
        let made = open.iter().enumerate().map(|(index, open)| {
            let teller = Spoken::of(&self.tell, format!("{}.{index}", self.step));
            let calling = &calling;
            async move {
                match index as u64 >= slots {
                    true => {
                        calling
                            .refuse(&teller, &open.call, Stop::MaxToolCalls)
                            .await
                    }
                    false => {
                        let call = (&open.call, open.id.as_str());
                        calling.make(&teller, call, Injections::new()).await
                    }
                }
            }
        });
        let made = join_all(made).await;
        let mut ending = None;
        for (open, called) in open.iter().zip(made) {
            let (row, message, stop) = match called? {
                Called::Seen(row, seen) => (Some(row), result(open, &seen)?, None),
                Called::Stopped(row, stop) => (Some(row), refusal(open, &stop), Some(stop)),
            };
            self.trace.extend(row);
            self.messages.push(message);
            ending = ending.or(stop.map(Ending::from));
        }
        Ok(ending)
    }
}

/// Every call has a result, in a conversation that ends here too.
fn refusal(open: &OpenCall, stop: &Stop) -> Message {
    let mut message = Message::tool_error(&open.id, stop.to_string());
    message.name = Some(open.call.name().to_owned());
    message
}

fn unfinished(error: &NodeError) -> Ending {
    match error.downcast_ref::<Unfinished>() {
        Some(Unfinished(stop)) => stop.clone().into(),
        None => Stop::Internal(error.to_string()).into(),
    }
}

/// Passes on what one turn, or one call of it, says.
struct Spoken {
    tell: mpsc::UnboundedSender<AgentEventData>,
    key: String,
}

impl Spoken {
    fn of(tell: &mpsc::UnboundedSender<AgentEventData>, key: String) -> Spoken {
        let tell = tell.clone();
        Spoken { tell, key }
    }
}

impl Teller for Spoken {
    fn wait(&self, _: &Waits) -> NodeError {
        Unfinished(Stop::ApprovalPending).into()
    }

    fn emit(&self, data: AgentEventData) -> BoxFuture<'_, Result<(), NodeError>> {
        // Whoever listens drives the run: if they are gone, so is this.
        let _ = self.tell.send(data);
        Box::pin(std::future::ready(Ok(())))
    }

    fn chunk<'a>(&'a self, _: &'a str, _: Value) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn call_key(&self) -> String {
        self.key.clone()
    }
}
