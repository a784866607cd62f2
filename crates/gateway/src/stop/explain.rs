//! What each stop reason means to a person: its status, its exit code, and plain words.
//!
//! `paraph explain` and the result objects read this; it decides nothing.

use super::{Failure, InvalidAction, LlmError, Stop};
use serde::{Deserialize, Serialize};

/// How a run stands, as the result objects say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it was meant to do, which may be a hand-over to a person.
    Ok,
    /// It ended early.
    Stopped,
    /// It goes on when somebody has decided.
    Waiting,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Status::Ok => "ok",
            Status::Stopped => "stopped",
            Status::Waiting => "waiting",
        })
    }
}

/// A stop reason in plain words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The reason as scripts see it.
    pub reason: String,
    /// How the run stands.
    pub status: Status,
    /// The exit code of `paraph run`.
    pub exit_code: u8,
    /// What happened.
    pub happened: &'static str,
    /// What one can do about it.
    pub remedy: &'static str,
}

impl Stop {
    /// How the run stands.
    pub fn status(&self) -> Status {
        match self {
            Stop::Success | Stop::HandedOff | Stop::Escalated(_) => Status::Ok,
            Stop::ApprovalPending => Status::Waiting,
            _ => Status::Stopped,
        }
    }

    /// The exit code of `paraph run`: 0 it is done, 3 a rule or a limit ended it, 4 its model did, 5 a
    /// person has to decide, 6 the store or the program failed it, 130 somebody interrupted it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Stop::Success | Stop::HandedOff | Stop::Escalated(_) => 0,
            Stop::LlmTimeout | Stop::LlmEmpty | Stop::LlmError(_) => 4,
            Stop::ApprovalPending => 5,
            Stop::Conflict(_)
            | Stop::StoreError(_)
            | Stop::KeyReused { .. }
            | Stop::Internal(_) => 6,
            Stop::Cancelled => 130,
            _ => 3,
        }
    }

    /// What happened and what to do, in plain words.
    ///
    /// ```
    /// use paraph_gateway::Stop;
    /// let explanation = Stop::MaxSteps.explain();
    /// assert_eq!((explanation.reason.as_str(), explanation.exit_code), ("max_steps", 3));
    /// ```
    pub fn explain(&self) -> Explanation {
        let (happened, remedy) = match self {
            Stop::Failed(failure) => failure_words(failure),
            Stop::InvalidAction(detail) => action_words(*detail),
            Stop::LlmError(kind) => model_words(*kind),
            Stop::MaxSteps
            | Stop::MaxToolCalls
            | Stop::MaxSeconds
            | Stop::MaxTokens
            | Stop::MaxCost
            | Stop::MaxChildren => budget_words(self),
            Stop::UserDay { .. } => (
                "What this user may use in one day is used up, in all runs together.",
                "Go on with it when the day is over (in UTC), or raise the user's limit.",
            ),
            _ => run_words(self),
        };
        Explanation {
            reason: self.to_string(),
            status: self.status(),
            exit_code: self.exit_code(),
            happened,
            remedy,
        }
    }
}

type Words = (&'static str, &'static str);

fn budget_words(stop: &Stop) -> Words {
    match stop {
        Stop::MaxSteps => (
            "The model used all its decisions without giving a final answer. The last tool's result is in the history.",
            "Look in the trace for detours; if the task is really that long, raise --max-steps.",
        ),
        Stop::MaxToolCalls => (
            "The run asked for one tool call more than it may make, in all or of one tool. That call did not run.",
            "Raise --max-tool-calls, or give the agent a tool that answers more at once.",
        ),
        Stop::MaxSeconds => (
            "The run's active time ran out. Whatever was under way was cut off; waiting for a person is not counted.",
            "Look for the slow step in the trace; raise --max-seconds if it is needed.",
        ),
        Stop::MaxTokens => (
            "The next model call could have used more tokens than the run has left, so it was not made.",
            "Raise --max-tokens, or shorten what the agent sends.",
        ),
        Stop::MaxCost => (
            "The next model call could have cost more than the run has left, or its price is not known while the cost is capped.",
            "Raise --max-cost, configure the model's price, or choose a cheaper model.",
        ),
        _ => (
            "The run wanted to start more children than it may.",
            "Raise the limit on children, or have the agent split its task into fewer parts.",
        ),
    }
}

fn run_words(stop: &Stop) -> Words {
    const WHO_SWITCHED: &str = "Ask whoever put the switch on why; once it is off again, ask anew.";
    match stop {
        Stop::Success => ("The agent gave its final answer.", "Nothing to do."),
        Stop::LoopDetected => (
            "The model asked again for a call that it had already made with the same arguments. The repeat did not run.",
            "Check that the tool's answer tells the model what it needs; where repeats are legitimate, use --loop cycle.",
        ),
        Stop::NoProgress => (
            "Several steps in a row changed nothing.",
            "Read the last steps in the trace: the agent probably lacks a tool or a fact.",
        ),
        Stop::LlmTimeout => (
            "The model did not answer in time, or could not be reached at all.",
            "Check the network and the base URL (`paraph doctor`), or raise the model's timeout.",
        ),
        Stop::LlmEmpty => (
            "The model answered without any content.",
            "Try again; if it happens often, choose another model.",
        ),
        Stop::ApprovalPending => (
            "An action waits for a person. Everything so far is saved.",
            "Approve it or refuse it; the run goes on when somebody has.",
        ),
        Stop::Drifted => (
            "Between the approval and its execution something changed, so what would happen is not what was approved. Nothing was done.",
            "Start the action anew and have it approved again.",
        ),
        Stop::KilledGlobal => (
            "A kill switch is on for everything, or for this agent.",
            WHO_SWITCHED,
        ),
        Stop::KilledTenant => ("A kill switch is on for this tenant.", WHO_SWITCHED),
        Stop::WritesDisabled => (
            "Tools that change something are switched off; tools that read still work.",
            WHO_SWITCHED,
        ),
        Stop::ToolDisabled(_) => ("This tool is switched off.", WHO_SWITCHED),
        Stop::Escalated(_) => (
            "Checks in code did not let the agent decide alone; the case was handed to a person. The names after the colon are the checks.",
            "Look at the evidence in the result and decide.",
        ),
        Stop::HandedOff => (
            "The agent handed the case to a person, as it is built to do.",
            "Take over from the result.",
        ),
        Stop::Cancelled => (
            "The run was interrupted from outside. What its store keeps of it is what had finished.",
            "Go on with it by `paraph runs resume RUN`, if its store outlives the process; otherwise run it again.",
        ),
        Stop::Conflict(_) => (
            "Another process drives this run, or this very call is still under way.",
            "Wait for the other one, or end it by `paraph runs cancel RUN`, and try again.",
        ),
        Stop::StoreError(_) => (
            "The store could not be read or written. Nothing that was not saved counts as done.",
            "Check the store's address, its rights and the disk (`paraph doctor`, `paraph store check`), then go on by `paraph runs resume RUN`.",
        ),
        _ => (
            "The program contradicted itself. This is a fault of ours or of the agent's code, not of its model.",
            "Run again with --log debug and report what it says.",
        ),
    }
}

fn failure_words(failure: &Failure) -> Words {
    match failure {
        Failure::Denied { .. } => (
            "The model asked for a tool that the policy does not allow. It did not run.",
            "If the agent should have it, add it to the policy or use --allow NAME; a deny rule wins over that.",
        ),
        Failure::Missing { .. } => (
            "The policy allows this name, but no tool of that name is registered.",
            "Correct the name in the policy, or register the tool.",
        ),
        Failure::BadArgs { .. } => (
            "The arguments are not what the tool's schema asks for. The tool did not run.",
            "See the arguments in the trace; a clearer description of the tool often helps the model.",
        ),
        Failure::Error { .. } => (
            "The tool ran and failed.",
            "The trace has the tool's own message; check the service behind it.",
        ),
        Failure::Timeout { .. } => (
            "The tool took longer than it may and was cut off.",
            "Check the service behind it, or raise the tool's timeout.",
        ),
        Failure::Rejected { .. } => (
            "A person refused the action. It was not done.",
            "The person's reason is with the decision.",
        ),
        Failure::Expired { .. } => (
            "Nobody decided about the action in time. It was not done.",
            "Run again, and decide before the action expires.",
        ),
    }
}

fn action_words(detail: InvalidAction) -> Words {
    const REMEDY: &str =
        "See `raw_action` in the result; a stronger model keeps the format more reliably.";
    let happened = match detail {
        InvalidAction::NotObject => "The model's answer is JSON, but not an object.",
        InvalidAction::BadJson => {
            "The model's answer is no JSON, or it is too large, too deep, or has numbers that JSON does not have."
        }
        InvalidAction::BadKind => "The action's `kind` is neither `tool` nor `final`.",
        InvalidAction::ExtraKeys => {
            "The action has keys that its kind does not have. Nothing was guessed from them."
        }
        InvalidAction::MissingAnswer => "The final action has no answer, or a blank one.",
        InvalidAction::MissingToolName => "The tool action does not name a tool.",
        InvalidAction::BadArgs => "The action's `args` is not an object.",
    };
    (happened, REMEDY)
}

fn model_words(kind: LlmError) -> Words {
    match kind {
        LlmError::Auth => (
            "The model's service did not accept the key.",
            "Check the key and its rights (`paraph doctor`).",
        ),
        LlmError::RateLimited => (
            "The model's service asked us to slow down, and waiting for it did not fit into the run's time.",
            "Wait a while, raise the quota, or raise --max-seconds.",
        ),
        LlmError::BadRequest => (
            "The model's service refused the request as malformed.",
            "Check the model's name and whether it knows tools or JSON mode; --log debug shows the answer.",
        ),
        LlmError::ContextOverflow => (
            "The conversation no longer fits into the model's window.",
            "Use a model with a larger window, or start a new thread.",
        ),
        LlmError::Server => (
            "The model's service failed several times in a row.",
            "Try again later, or configure another provider.",
        ),
        LlmError::Connection => (
            "The connection to the model's service broke.",
            "Check the network and any proxy, then try again.",
        ),
        LlmError::Decode => (
            "The model's service answered with something that could not be read.",
            "Check that the base URL speaks the expected protocol.",
        ),
        LlmError::ScriptExhausted => (
            "The script or the recording that stands for the model has no answer to this.",
            "Look in the trace for a call that it did not expect; add lines to the script, or record again.",
        ),
    }
}
