//! What comes out of a run: the result objects that scripts read. Order of fields and spelling are a
//! contract; they are written from structs, never from a map.

use crate::ending::Ending;
use crate::waits::{Approval, OpenQuestion};
use crate::{Report, TriageResult};
use paraph_gateway::{Json, Status, Stop, raw_action};
use paraph_models::Messages;
use serde::{Deserialize, Serialize};

/// One tool call in a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRow {
    /// The model's decision it was part of, from 1.
    pub step: u64,
    /// The tool's name as the model gave it.
    pub tool: String,
    /// Twelve digits that stand for the arguments.
    pub args_hash: String,
    /// Whether the tool ran and succeeded.
    pub ok: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

/// One finished step in a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryRow {
    /// The model's decision, from 1.
    pub step: u64,
    /// What the model wanted.
    pub action: ActionEcho,
    /// What the tool gave.
    pub observation: Json,
}

/// A valid action, as it is echoed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActionEcho {
    /// Always `tool`.
    pub kind: &'static str,
    /// The tool.
    pub name: String,
    /// The arguments, digit by digit.
    pub args: Json,
}

/// The result of an agent that speaks in JSON actions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionResult {
    /// How the run stands.
    pub status: Status,
    /// Why it ended.
    pub stop_reason: Stop,
    /// What it waits for, if it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// The answer of a run that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// What the model wrote, if it was no valid action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_action: Option<Json>,
    /// All tool calls.
    pub trace: Vec<TraceRow>,
    /// All steps that were finished.
    pub history: Vec<HistoryRow>,
}

/// The result of an agent that keeps messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageResult {
    /// How the run stands.
    pub status: Status,
    /// Why it ended.
    pub stop_reason: Stop,
    /// What it waits for, if it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// The answer of a run that succeeded. Of one that a limit stopped, and that had kept something back for it, what the
    /// model could say from what it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// All tool calls.
    pub trace: Vec<TraceRow>,
    /// The whole conversation.
    pub messages: Messages,
}

/// The result of a research run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportResult {
    /// How the run stands.
    pub status: Status,
    /// Why it ended.
    pub stop_reason: Stop,
    /// What it waits for, if it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// What it asks a person, if it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<OpenQuestion>,
    /// The report as Markdown. A run that was cut short may have one too, which says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The report by its parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// All tool calls, of researchers too.
    pub trace: Vec<TraceRow>,
    /// The supervisor's conversation.
    pub messages: Messages,
}

/// The result of any agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunResult {
    /// Of one with JSON actions.
    Actions(ActionResult),
    /// Of one with messages.
    Messages(MessageResult),
    /// Of a research run.
    Report(Box<ReportResult>),
    /// Of a triage run.
    Triage(Box<TriageResult>),
}

impl RunResult {
    /// Why the run ended.
    pub fn stop(&self) -> &Stop {
        match self {
            RunResult::Actions(result) => &result.stop_reason,
            RunResult::Messages(result) => &result.stop_reason,
            RunResult::Report(result) => &result.stop_reason,
            RunResult::Triage(result) => &result.stop_reason,
        }
    }

    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&str> {
        match self {
            RunResult::Actions(result) => result.answer.as_deref(),
            RunResult::Messages(result) => result.answer.as_deref(),
            RunResult::Report(result) => result.answer.as_deref(),
            RunResult::Triage(result) => result.answer.as_deref(),
        }
    }

    /// What the run waits for.
    pub fn approvals(&self) -> &[Approval] {
        match self {
            RunResult::Actions(result) => &result.approvals,
            RunResult::Messages(result) => &result.approvals,
            RunResult::Report(result) => &result.approvals,
            RunResult::Triage(result) => &result.approvals,
        }
    }

    /// What the run asks a person besides.
    pub fn questions(&self) -> &[OpenQuestion] {
        match self {
            RunResult::Report(result) => &result.questions,
            RunResult::Actions(_) | RunResult::Messages(_) | RunResult::Triage(_) => &[],
        }
    }

    /// The report, if it is one's.
    pub fn report(&self) -> Option<&Report> {
        match self {
            RunResult::Report(result) => result.report.as_ref(),
            RunResult::Actions(_) | RunResult::Messages(_) | RunResult::Triage(_) => None,
        }
    }

    /// What came of triage, if it is that.
    pub fn triage(&self) -> Option<&TriageResult> {
        match self {
            RunResult::Triage(result) => Some(result),
            RunResult::Actions(_) | RunResult::Messages(_) | RunResult::Report(_) => None,
        }
    }

    /// All tool calls.
    pub fn trace(&self) -> &[TraceRow] {
        match self {
            RunResult::Actions(result) => &result.trace,
            RunResult::Messages(result) => &result.trace,
            RunResult::Report(result) => &result.trace,
            RunResult::Triage(result) => &result.trace,
        }
    }

    /// As it is printed: two spaces of indentation, other characters than ASCII as they are.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

/// The result of a run with JSON actions that ended like this.
pub(crate) fn of_actions(
    ending: Ending,
    trace: Vec<TraceRow>,
    history: Vec<HistoryRow>,
) -> RunResult {
    RunResult::Actions(ActionResult {
        status: ending.stop.status(),
        stop_reason: ending.stop,
        approvals: ending.approvals,
        answer: ending.answer,
        raw_action: ending.refused.as_deref().map(raw_action),
        trace,
        history,
    })
}

/// The result of a run with messages that ended like this.
pub(crate) fn of_messages(ending: Ending, trace: Vec<TraceRow>, messages: Messages) -> RunResult {
    RunResult::Messages(MessageResult {
        status: ending.stop.status(),
        stop_reason: ending.stop,
        approvals: ending.approvals,
        answer: ending.answer,
        trace,
        messages,
    })
}
