//! One model call within the run's budget. A model call is paid for before it is made (most it may use), settled after it (what it used), and cut
//! off at the run's deadline. A failure of the model is the end of the run with a reason, never an error.

use crate::branches::Branch;
use crate::calling::{Calling, SHOWN_ARGUMENTS, elapsed_ms};
use crate::declared::Voice;
use crate::ending::Ending;
use crate::event::{AgentEventData, SpokenMessage};
use crate::run_context::RunContext;
use crate::spent::Spent;
use crate::teller::Teller;
use crate::terms::ANSWER_TOKENS;
use futures::StreamExt as _;
use paraph_gateway::{
    BegunStep, Dialect, Late, Price, Session, SetAside, Spend, Stop, ToolCall, UNLIMITED,
};
use paraph_graph::{Ctx, NodeError};
use paraph_models::{
    Assembler, ChatModel, ChatReply, ChatRequest, Estimate, FinishReason, LimitWait, Message,
    ModelError, Repair, Repaired, Usage, WaitListener, estimate_message, repair,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// An answer cut shorter than this is of no use, so the model is not asked for it.
const SHORTEST_ANSWER: u64 = 64;

/// The part of a run's time, tokens and money that is kept for its last words, as a fraction: one of so many.
const LAST_SHARE: u64 = 6;

/// The decisions that its last words need.
const LAST_STEPS: u64 = 3;

/// Of how many repairs of a conversation an event tells.
const SHOWN_REPAIRS: usize = 20;

/// A node's way to the model and to the gateway.
#[derive(Clone)]
pub(crate) struct Asking<'r> {
    pub(crate) run: &'r RunContext,
    pub(crate) session: Session,
    /// Who is asked, where it is not the run's own model.
    voice: Option<&'r Voice>,
    /// The longest answer, in tokens, where a limit stands and the request says nothing.
    longest: u64,
    /// The number of the last step before the run's own: a replay goes on with those of its branch.
    base: u64,
}

/// How a node's work ended early: with the end of the run, or with a failure of the engine.
pub(crate) enum Early {
    Ending(Box<Ending>),
    Node(NodeError),
}

impl Early {
    /// The end of the run, if that is what it is.
    pub(crate) fn ending(self) -> Result<Ending, NodeError> {
        match self {
            Early::Ending(ending) => Ok(*ending),
            Early::Node(error) => Err(error),
        }
    }
}

impl From<Ending> for Early {
    fn from(ending: Ending) -> Early {
        Early::Ending(Box::new(ending))
    }
}

impl From<Stop> for Early {
    fn from(stop: Stop) -> Early {
        match Unfinished::of(&stop) {
            Some(unfinished) => Early::Node(unfinished.into()),
            None => Ending::from(stop).into(),
        }
    }
}

/// A stop that says nothing of the run's work: its store failed, or somebody else is at it. It is no end
/// that a state remembers, so that the run can be gone on with.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unfinished(pub(crate) Stop);

impl Unfinished {
    pub(crate) fn of(stop: &Stop) -> Option<Unfinished> {
        let unfinished = matches!(stop, Stop::StoreError(_) | Stop::Conflict(_));
        unfinished.then(|| Unfinished(stop.clone()))
    }
}

impl From<NodeError> for Early {
    fn from(error: NodeError) -> Early {
        Early::Node(error)
    }
}

impl<'r> Asking<'r> {
    /// By the context that the run was given. `spent` and `step` are what the state says.
    pub(crate) async fn of(
        ctx: &'r Ctx,
        spent: Option<&Spent>,
        step: u64,
    ) -> Result<Asking<'r>, Early> {
        let run: &RunContext = ctx.context::<Arc<RunContext>>()?;
        let spent = Spent::of(ctx.run_id(), spent, step);
        let session = run.main(ctx, &spent).await?.clone();
        Ok(Asking {
            run,
            session,
            voice: None,
            longest: ANSWER_TOKENS,
            base: spent.base,
        })
    }

    /// The same for a part of the run that has a session of its own. `spent` and `step` are what the part's state says.
    pub(crate) async fn in_branch(
        ctx: &'r Ctx,
        branch: &Branch<'_>,
        spent: Option<&Spent>,
        step: u64,
    ) -> Result<Asking<'r>, Early> {
        let run: &RunContext = ctx.context::<Arc<RunContext>>()?;
        let spent = Spent::of(ctx.run_id(), spent, step);
        let session = run.branch(ctx, branch, &spent).await?;
        Ok(Asking {
            run,
            session,
            voice: None,
            longest: ANSWER_TOKENS,
            base: spent.base,
        })
    }

    /// The same with another model than the run's own.
    #[must_use]
    pub(crate) fn by(self, voice: Option<&'r Voice>) -> Asking<'r> {
        Asking { voice, ..self }
    }

    /// The same with answers of so many tokens at most, or less if the budget has less left.
    #[must_use]
    pub(crate) fn at_length(self, longest: u64) -> Asking<'r> {
        Asking { longest, ..self }
    }

    /// What is used up but for what the run's last words need, if anything is: then it is time for them.
    pub(crate) fn running_out(&self) -> Option<Stop> {
        let budget = self.session.budget();
        let (left, limits) = (budget.left(), budget.limits());
        let short = |left: u64, limit: u64| limit != UNLIMITED && left <= limit / LAST_SHARE;
        if left.steps <= LAST_STEPS {
            return Some(Stop::MaxSteps);
        }
        if short(left.seconds, limits.seconds) {
            return Some(Stop::MaxSeconds);
        }
        if short(left.tokens, limits.tokens) {
            return Some(Stop::MaxTokens);
        }
        short(left.micro_dollars, limits.micro_dollars).then_some(Stop::MaxCost)
    }

    fn model(&self) -> &'r dyn ChatModel {
        match self.voice {
            Some(voice) => &*voice.model,
            None => &*self.run.model,
        }
    }

    fn price(&self) -> Option<&'r Price> {
        match self.voice {
            Some(voice) => voice.price.as_ref(),
            None => self.run.price.as_ref(),
        }
    }

    /// A part of the run is over: what it has left of its share goes back.
    pub(crate) async fn end_branch(self, name: &str) -> Result<(), Early> {
        self.session.save().await?;
        self.run.branches.close(name);
        Ok(())
    }

    /// For the loop by hand, whose session was opened when it began.
    pub(crate) fn by_hand(run: &'r RunContext) -> Result<Asking<'r>, Early> {
        let session = run.session.get();
        let unopened = || Stop::Internal("the run's session was not opened".to_owned());
        Ok(Asking {
            run,
            session: session.ok_or_else(unopened)?.clone(),
            voice: None,
            longest: ANSWER_TOKENS,
            base: 0,
        })
    }

    /// What the run has used by now, for its state.
    pub(crate) fn spent(&self, ctx: &Ctx) -> Spent {
        let used = self.session.budget().used();
        let attempts = self.run.attempts.load(Ordering::Relaxed);
        Spent::now(ctx.run_id(), self.base, &used, attempts)
    }

    /// A conversation as it can be sent: every call has its result. Says so if it had to be mended for that.
    pub(crate) async fn sound(
        &self,
        teller: &dyn Teller,
        step: u64,
        history: &[Message],
    ) -> Result<Vec<Message>, Early> {
        let Repaired {
            messages,
            mut repairs,
        } = repair(history);
        let count = repairs.len();
        // The same faults are there at each step of a run.
        if self.run.repairs_told.fetch_max(count, Ordering::Relaxed) < count {
            repairs.truncate(SHOWN_REPAIRS);
            let unanswered = repairs.iter().filter_map(|repair| match repair {
                Repair::Answered { tool, .. } => Some(tool.clone()),
                _ => None,
            });
            let unanswered: Vec<_> = unanswered.collect();
            self.session
                .history_repaired(count as u64, &unanswered)
                .await?;
            teller
                .emit(AgentEventData::HistoryRepaired {
                    step,
                    repairs,
                    count: count as u64,
                })
                .await?;
        }
        Ok(messages)
    }

    /// Begins a decision and says so. It counts when it is made; one that is cut off does not.
    pub(crate) async fn begin_step(&self, teller: &dyn Teller) -> Result<(u64, BegunStep), Early> {
        let budget = self.session.budget();
        let begun = budget.begin_step()?;
        let step = self.base.saturating_add(begun.number());
        let steps = budget.limits().steps;
        teller
            .emit(AgentEventData::StepStarted {
                step,
                max_steps: (steps != UNLIMITED).then_some(steps),
            })
            .await?;
        Ok((step, begun))
    }

    /// Asks the model, as one step that ends with its answer or its failure.
    pub(crate) async fn ask(
        &self,
        teller: &dyn Teller,
        (step, begun): (u64, BegunStep),
        mut request: ChatRequest,
    ) -> Result<ChatReply, Early> {
        for message in &request.messages {
            self.tell(teller, step, message).await?;
        }
        let started = Instant::now();
        let input = Estimate::of(&request).total() as u64;
        let answered = match self.set_aside(input, &mut request).await {
            Err(stop) if Unfinished::of(&stop).is_some() => return Err(stop.into()),
            Err(stop) => Err(Ending::from(stop)),
            Ok(held) => {
                let answered = self.call((teller, step), &mut request).await?;
                self.settle(held, &answered, input).await?;
                answered.map_err(|error| match error {
                    Failed::Late(waited) => Ending {
                        detail: waited.map(|wait| format!("it waited for {}", wait.what)),
                        ..Ending::from(Stop::MaxSeconds)
                    },
                    Failed::Model(error) => self.model_ending(&error),
                })
            }
        };
        begun.made();
        let ms = elapsed_ms(started);
        match answered {
            Ok(reply) => {
                let attempts = u64::from(reply.attempts);
                self.run.attempts.fetch_add(attempts, Ordering::Relaxed);
                self.tell(teller, step, &reply.message).await?;
                let (usage, estimated) = used(&reply, input);
                let spend = self.spend(&usage);
                teller
                    .emit(AgentEventData::ModelAnswered {
                        step,
                        ms,
                        attempts: reply.attempts,
                        input_tokens: usage.input_tokens,
                        output_tokens: usage.output_tokens,
                        estimated,
                        micro_dollars: spend.micro_dollars,
                        cut_off: reply.finish_reason == Some(FinishReason::Length),
                        answered_by: answered_by(&reply),
                    })
                    .await?;
                Ok(reply)
            }
            Err(ending) => {
                teller
                    .emit(AgentEventData::ModelFailed {
                        step,
                        ms,
                        stop_reason: ending.stop.clone(),
                        detail: ending.detail.clone(),
                    })
                    .await?;
                Err(ending.into())
            }
        }
    }

    /// Makes the call, and tells for what it waits before it is made.
    async fn call(
        &self,
        (teller, step): (&dyn Teller, u64),
        request: &mut ChatRequest,
    ) -> Result<Result<ChatReply, Failed>, NodeError> {
        let budget = self.session.budget();
        request.deadline = budget.deadline();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        request.waits = Some(WaitListener::new(move |wait| {
            // Nobody listens any more once the answer is there.
            let _ = tell.send(wait);
        }));
        let request = &*request;
        let answer = async {
            match self.session.scope().dialect {
                // Half an action is of no use to anybody.
                Dialect::Strict => self.model().complete(request).await,
                Dialect::Native => self.listen(teller, request).await,
            }
        };
        let mut answer = std::pin::pin!(budget.within(Duration::MAX, answer));
        let mut waits: Option<LimitWait> = None;
        let answered = loop {
            tokio::select! {
                biased;
                Some(wait) = told.recv() => {
                    if let Some(wait) = &wait {
                        teller.emit(waiting(step, wait)).await?;
                    }
                    waits = wait;
                }
                answered = &mut answer => break answered,
            }
        };
        Ok(match answered {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(ModelError::OutOfTime)) | Err(Late::Run | Late::Own) => Err(Failed::Late(waits)),
            Ok(Err(error)) => Err(Failed::Model(error)),
        })
    }

    /// Takes an answer in pieces, and shows each to whoever streams the run in messages mode.
    async fn listen(
        &self,
        teller: &dyn Teller,
        request: &ChatRequest,
    ) -> Result<ChatReply, ModelError> {
        let mut stream = self.model().stream(request);
        let mut assembler = Assembler::new();
        let id = assembler.message_id().to_owned();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            let shown = chunk.to_message_chunk(&id);
            teller.chunk(&id, shown).await;
            assembler.push(chunk)?;
        }
        assembler.finish()
    }

    /// Asks the model for something beside the run's decisions: it is paid for as these are, and is no step. Nothing
    /// if it cannot be had.
    pub(crate) async fn aside(&self, mut request: ChatRequest) -> Option<String> {
        let budget = self.session.budget();
        let input = Estimate::of(&request).total() as u64;
        let held = self.set_aside(input, &mut request).await.ok()?;
        request.deadline = budget.deadline();
        let answer = self.model().complete(&request);
        let answered = match budget.within(Duration::MAX, answer).await {
            Ok(answered) => answered.map_err(Failed::Model),
            Err(_) => Err(Failed::Late(None)),
        };
        self.settle(held, &answered, input).await.ok()?;
        let reply = answered.ok()?;
        let attempts = u64::from(reply.attempts);
        self.run.attempts.fetch_add(attempts, Ordering::Relaxed);
        let text = reply.message.text().trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Sets aside the most that the call may use, and bounds its answer by what is left. Only a run with
    /// a limit on tokens or money, its own or that of its user's day, bounds it: not every server takes such a bound.
    async fn set_aside(&self, input: u64, request: &mut ChatRequest) -> Result<SetAside, Stop> {
        let budget = self.session.budget();
        let (left, day) = (budget.left(), budget.per_user_day());
        let free = |tokens: u64, money: u64| tokens == UNLIMITED && money == UNLIMITED;
        if free(left.tokens, left.micro_dollars) && free(day.tokens, day.micro_dollars) {
            return self.session.set_aside(0).await;
        }
        let by_tokens = left.tokens.saturating_sub(input);
        let by_money = match self.price() {
            _ if left.micro_dollars == UNLIMITED => UNLIMITED,
            None => return Err(Stop::MaxCost),
            Some(price) => {
                let rest = spend_of(Some(price), input, 0).micro_dollars.unwrap_or(0);
                affordable(left.micro_dollars.saturating_sub(rest), price)
            }
        };
        let wanted = request.max_tokens.map_or(self.longest, u64::from);
        let answer = wanted.min(by_tokens).min(by_money);
        if answer < SHORTEST_ANSWER.min(wanted) {
            return Err(match by_tokens <= by_money {
                true => Stop::MaxTokens,
                false => Stop::MaxCost,
            });
        }
        request.max_tokens = u32::try_from(answer).ok();
        let most = spend_of(self.price(), input, answer);
        self.session.set_aside(most).await
    }

    /// Pays for a call, before its answer is saved: after a crash in between, the call is made and paid for again.
    async fn settle(
        &self,
        held: SetAside,
        answered: &Result<ChatReply, Failed>,
        input: u64,
    ) -> Result<(), Stop> {
        let used = match answered {
            Ok(reply) => self.spend(&used(reply, input).0),
            // What an empty answer cost is known if the server said it.
            Err(Failed::Model(ModelError::Empty { usage: Some(usage) })) => self.spend(usage),
            Err(_) => Spend::from(0),
        };
        held.spend(used).await
    }

    fn spend(&self, usage: &Usage) -> Spend {
        spend_of(self.price(), usage.input_tokens, usage.output_tokens)
    }

    fn model_ending(&self, error: &ModelError) -> Ending {
        let stop = error
            .reason()
            .parse()
            .unwrap_or_else(|_| Stop::Internal(format!("`{}` is no stop reason", error.reason())));
        Ending {
            detail: Some(self.run.redactor().text(&error.to_string())),
            ..Ending::from(stop)
        }
    }

    /// Where the calls of a decision are made.
    pub(crate) fn calling(&self, step: u64) -> Calling<'r> {
        Calling {
            session: self.session.clone(),
            held: None,
            redactor: self.run.redactor(),
            step,
        }
    }

    async fn tell(
        &self,
        teller: &dyn Teller,
        step: u64,
        message: &Message,
    ) -> Result<(), NodeError> {
        if !self.run.tell_messages {
            return Ok(());
        }
        let mut text = self.run.redactor().text(&message.text());
        for call in message.tool_calls() {
            let call = ToolCall::native(call.name.clone(), call.args.as_str());
            let args = self.run.redactor().brief(&call, SHOWN_ARGUMENTS);
            text.push_str(&format!("\n{} {args}", call.name()));
        }
        let message = SpokenMessage {
            role: message.kind().to_owned(),
            text,
        };
        teller.emit(AgentEventData::Message { step, message }).await
    }
}

/// How a model call failed.
enum Failed {
    /// The run's time was over, and for what the call waited by then.
    Late(Option<LimitWait>),
    Model(ModelError),
}

fn waiting(step: u64, wait: &LimitWait) -> AgentEventData {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    AgentEventData::ModelWaits {
        step,
        what: wait.what.clone(),
        ms: wait.time.map(ms),
    }
}

/// The provider and the model that answered, as in a spec.
fn answered_by(reply: &ChatReply) -> Option<String> {
    let provider = reply.provider.as_ref()?;
    let model = reply.model.as_deref();
    Some(model.map_or(provider.clone(), |model| format!("{provider}:{model}")))
}

/// What an answer used, and whether that is our estimate because the provider did not say it.
fn used(reply: &ChatReply, input: u64) -> (Usage, bool) {
    match &reply.usage {
        Some(usage) => (usage.clone(), false),
        None => {
            let output = estimate_message(&reply.message) as u64;
            (Usage::new(input, output), true)
        }
    }
}

pub(crate) fn spend_of(price: Option<&Price>, input: u64, output: u64) -> Spend {
    match price {
        Some(price) => price.spend(input, output),
        None => Price::unknown(input, output),
    }
}

/// How many tokens of an answer so many millionths of a dollar buy.
fn affordable(micro_dollars: u64, price: &Price) -> u64 {
    if price.output == 0 {
        return UNLIMITED;
    }
    let tokens = u128::from(micro_dollars) * 1_000_000 / u128::from(price.output);
    u64::try_from(tokens).unwrap_or(UNLIMITED)
}
