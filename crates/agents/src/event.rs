//! What a run tells while it runs: one schema for all agents.
//!
//! Nodes say the parts they know through the engine's stream, `run` puts them in order and adds what
//! only it knows. Arguments are shown redacted and cut; the whole is in the gateway's records.

use crate::RunResult;
use crate::waits::Approval;
use paraph_gateway::{Budget, Stop, UNLIMITED};
use paraph_graph::RunId;
use paraph_models::Repair;
use serde::{Deserialize, Serialize};

/// One thing that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentEvent {
    /// Counts the events of the run, from 0.
    pub seq: u64,
    /// The run.
    pub run_id: RunId,
    /// The thread's name.
    pub thread_id: String,
    /// What happened.
    #[serde(flatten)]
    pub data: AgentEventData,
}

/// What happened. In JSON its name is the `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEventData {
    /// The first event.
    RunStarted {
        /// The agent.
        agent: String,
        /// The model.
        model: String,
        /// The task as the model is given it, redacted.
        task: String,
        /// What the run may use.
        budget: BudgetView,
    },
    /// The model is asked for a decision.
    StepStarted {
        /// Which, from 1.
        step: u64,
        /// How many it may make; nothing if there is no limit.
        max_steps: Option<u64>,
    },
    /// A message was sent to the model, or came from it. Only if the run was asked to tell them.
    Message {
        /// The step it belongs to.
        step: u64,
        /// The message.
        #[serde(flatten)]
        message: SpokenMessage,
    },
    /// The model answered.
    ModelAnswered {
        /// The step.
        step: u64,
        /// Milliseconds, retries and waits included.
        ms: u64,
        /// Attempts it took.
        attempts: u32,
        /// Tokens sent.
        input_tokens: u64,
        /// Tokens received.
        output_tokens: u64,
        /// The provider did not say what it used: the figures are our estimate.
        estimated: bool,
        /// Millionths of a US dollar; nothing if the price is not known.
        micro_dollars: Option<u64>,
        /// The answer ends where its longest length was reached.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        cut_off: bool,
        /// Who answered, as `provider:model`, where the provider says so.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        answered_by: Option<String>,
    },
    /// The model is not asked yet: the call waits for the limits of its provider. Told once for each wait of a second
    /// and more.
    ModelWaits {
        /// The step.
        step: u64,
        /// For what.
        what: String,
        /// Milliseconds, as far as that is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        ms: Option<u64>,
    },
    /// The model gave no usable answer, or was not asked because it could not be paid for.
    ModelFailed {
        /// The step.
        step: u64,
        /// Milliseconds.
        ms: u64,
        /// The reason.
        stop_reason: Stop,
        /// More about it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<String>,
    },
    /// What the model decided.
    Decided {
        /// The step.
        step: u64,
        /// `tool`, `final` or `invalid`.
        kind: String,
        /// The tools it wants called.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        tools: Vec<String>,
        /// Why the decision is none.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<Stop>,
    },
    /// A call goes to the gateway.
    ToolStarted {
        /// The step.
        step: u64,
        /// The tool's name as the model gave it.
        tool: String,
        /// The arguments, redacted and cut.
        args: String,
        /// Twelve digits that stand for the arguments.
        args_hash: String,
    },
    /// A tool says how far it is.
    ToolProgress {
        /// The step.
        step: u64,
        /// The tool.
        tool: String,
        /// Twelve digits that stand for the arguments.
        args_hash: String,
        /// What it says, redacted and bounded.
        data: serde_json::Value,
        /// How many reports before this one were left out.
        #[serde(skip_serializing_if = "is_zero", default)]
        left_out: u64,
    },
    /// The gateway has answered.
    ToolEnded {
        /// The step.
        step: u64,
        /// The tool.
        tool: String,
        /// The arguments, redacted and cut.
        args: String,
        /// Twelve digits that stand for the arguments.
        args_hash: String,
        /// Whether the tool ran and succeeded.
        ok: bool,
        /// Milliseconds, all checks included.
        ms: u64,
        /// Why it did not.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        stop_reason: Option<Stop>,
        /// More about it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        detail: Option<String>,
    },
    /// A call waits: people have to decide about what it would do, or nobody saw what came of it.
    ApprovalAsked {
        /// The step.
        step: u64,
        /// The action.
        #[serde(flatten)]
        approval: Approval,
    },
    /// Older messages were summarised by the model, because the conversation was full.
    Summarised {
        /// The step that needed it.
        step: u64,
        /// How many messages.
        messages: u64,
    },
    /// The budget is used up, and the model is asked for a last answer, without tools, out of what was kept back for it.
    LastAnswer {
        /// The last step.
        step: u64,
        /// The limit that was met, which stays the reason of the run.
        stop_reason: Stop,
    },
    /// The conversation could not be sent as it is kept: some call has no result, say. What is sent was mended; what
    /// is kept stays as it is, and no call was made again. Told once for each fault and process.
    HistoryRepaired {
        /// The step that needed it.
        step: u64,
        /// What was mended, the first of it if it is much.
        repairs: Vec<Repair>,
        /// How much that is in all.
        count: u64,
    },
    /// Something happened in the run of an agent that this one called as a tool.
    Child {
        /// The agent that was called.
        agent: String,
        /// Its run.
        child_run_id: RunId,
        /// Its thread.
        child_thread_id: String,
        /// What happened; how it ended is the end of the tool's call.
        event: Box<AgentEventData>,
    },
    /// Something happened in a part of the run that has a state of its own: a subgraph.
    Inside {
        /// Which, as the engine names it: the same for all events of one part.
        namespace: String,
        /// What happened.
        event: Box<AgentEventData>,
    },
    /// What a part of the run is busy with, for people who watch.
    Phase {
        /// A word for it, such as `drafting`.
        phase: String,
        /// What it is about, bounded.
        about: String,
    },
    /// A researcher began, or is done.
    Researcher {
        /// Which, from 1.
        number: u64,
        /// What it is to find out, bounded.
        topic: String,
        /// Nothing as long as it is at work.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        done: Option<ResearcherDone>,
    },
    /// A superstep ended and the graph went on.
    Routed {
        /// The superstep.
        superstep: i64,
        /// The node that is done.
        from: String,
        /// The nodes that are due; none at the end.
        to: Vec<String>,
        /// Why there.
        cause: String,
    },
    /// What the run has used.
    Budget {
        /// The figures.
        #[serde(flatten)]
        budget: BudgetView,
    },
    /// The last event.
    #[serde(skip_deserializing)]
    RunEnded {
        /// The reason, with its own words where it has some.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The exit code that stands for it.
        exit_code: u8,
        /// What came out.
        result: RunResult,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How a researcher's work ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearcherDone {
    /// Searches that it made.
    pub searches: u64,
    /// Of these, how many were followed by another one without a reflection between the two.
    pub searches_without_reflection: u64,
    /// Sources that it read.
    pub sources: u64,
    /// Why it stopped before it was done, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop_reason: Option<Stop>,
}

/// A message as it is shown: redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpokenMessage {
    /// `system`, `human`, `ai` or `tool`.
    pub role: String,
    /// The text.
    pub text: String,
}

/// What a run has used, beside what it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetView {
    /// Decisions.
    pub steps: u64,
    /// Of how many.
    pub max_steps: Option<u64>,
    /// Tool calls, those of agents that were called too.
    pub tool_calls: u64,
    /// Of how many.
    pub max_tool_calls: Option<u64>,
    /// Active milliseconds.
    pub ms: u64,
    /// Of how many seconds.
    pub max_seconds: Option<u64>,
    /// Tokens.
    pub tokens: u64,
    /// Of how many.
    pub max_tokens: Option<u64>,
    /// Millionths of a US dollar; nothing if any price was not known.
    pub micro_dollars: Option<u64>,
    /// Of how many.
    pub max_micro_dollars: Option<u64>,
}

impl BudgetView {
    pub(crate) fn of(budget: &Budget) -> BudgetView {
        let (used, limits) = (budget.used(), budget.limits());
        let limit = |amount: u64| (amount != UNLIMITED).then_some(amount);
        BudgetView {
            steps: used.steps,
            max_steps: limit(limits.steps),
            tool_calls: used.tool_calls.saturating_add(used.child_tool_calls),
            max_tool_calls: limit(limits.tool_calls),
            ms: u64::try_from(used.active.as_millis()).unwrap_or(u64::MAX),
            max_seconds: limit(limits.seconds),
            tokens: used.tokens,
            max_tokens: limit(limits.tokens),
            micro_dollars: used.cost(),
            max_micro_dollars: limit(limits.micro_dollars),
        }
    }
}
