//! The applications: complete agents built on the graph engine, the gateway and the models.
//!
//! Take [`react`](react()) for an agent of your own with the tools of your gateway, [`support`](support()) for the
//! refund agent. Each is an [`Agent`]: started with [`Terms`] (model, limits, thread), it tells what it does as
//! [`AgentEvent`]s, and ends with a [`RunResult`].
//!
//! ```
//! use paraph_agents::{Case, Rehearsal, Stores, Terms, support};
//! use paraph_gateway::Dialect;
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), paraph_agents::Error> {
//! let terms = Terms::new(Arc::new(Rehearsal::Support), "case-8");
//! let case = Case { user: 7, question: "May I have my money back?".into() };
//! let agent = support(&Stores::in_memory(), Dialect::Strict, &[], &[])?;
//! let mut run = agent.start(&case, &terms).await?;
//! while let Some(event) = run.next().await {
//!     println!("{}: {:?}", event.seq, event.data);
//! }
//! # Ok(()) }
//! ```
//!
//! For a graph of your own over a conversation there are the parts: [`tool_node`] and [`tools_condition`]. If you
//! come from LangGraph, begin with the [table of names](from_langgraph).
//!
//! Every tool call of every agent passes [`paraph_gateway::Session::call_with`]; nothing here runs a tool,
//! opens a connection or reads the environment by itself.
//!
//! # Layout
//! - `catalogue`: which agents there are, as data ([`builtin`]).
//! - `terms`: on what terms a run is made ([`Terms`]): model, limits, price.
//! - `event`, `outcome`: what a run tells ([`AgentEvent`]) and what comes out of it ([`RunResult`]).
//! - `agent`: what can be done with any of them ([`Agent`]).
//! - `run`: a run under way ([`AgentRun`]): the engine's stream, told in the words of agents.
//! - `stores`: where threads and records are kept ([`Stores`]). `spent`: what a run has used, in its state.
//! - `teller`: who passes on what a run says. `run_context`: what its nodes find in
//!   their context. `asking`: one model call within the run's budget. `calling`: one tool call, told as it goes.
//!   `branches`: parts of a run with a share of its budget each.
//! - `ending`: why a run ends, as part of a state.
//! - `python_json`: JSON laid out as Python's `json.dumps` does, for prompts.
//! - `conversation`: a channel of messages, and what has one ([`HasMessages`]). `tools_condition`: where to
//!   go after the model ([`tools_condition`]). `tool_node`: its calls, one task each ([`tool_node`]).
//! - `react`: the loop of these ([`react`](react())).
//! - `support`: the refund agent, with JSON actions or with tool calls ([`support`](support())).
//! - `weather`: hotels and temperatures, on the engine and as a loop by hand ([`weather`](weather())).
//! - `research`: researchers, a supervisor, a red team, and a report whose citations are checked ([`research`](research())).
//! - `triage`: an issue's evidence, a diagnosis that code checks, a comment that a person signs ([`triage`](triage())).
//! - `rehearsal`: a rule-based model that plays an agent's part ([`Rehearsal`]).
//! - `declared`: agents that stand in a TOML file ([`read_agent_file`]).

mod catalogue;
mod terms;

mod event;
mod outcome;

mod agent;
mod asking;
mod branches;
mod calling;
mod ending;
mod reserve;
mod run;
mod run_context;
mod spent;
mod stores;
mod teller;

mod conversation;
mod python_json;
mod react;
mod rehearsal;
mod research;
mod support;
mod tool_node;
mod tools_condition;
mod triage;
mod waits;
mod weather;

mod declared;

mod error;

pub use agent::{Agent, Case};
pub use catalogue::{AgentInfo, ToolInfo, builtin, triage_info};
pub use conversation::{
    Conversation, HasMessages, MessagesState, MessagesStateUpdate, add_messages,
};
pub use declared::{
    AgentFile, AgentSpec, BudgetSpec, Checked, ContextSpec, DaySpec, DeclaredPolicy, HttpFacts,
    JudgeMcp, Mistake, OutputSpec, Parts, PolicySpec, Supply, ToolsSpec, Voice, WhenFull,
    agent_schema, caller_of, declared, declared_drawing, declared_reader, read_agent_file,
    read_policies,
};
pub use error::Error;
pub use event::{AgentEvent, AgentEventData, BudgetView, ResearcherDone, SpokenMessage};
pub use outcome::{
    ActionEcho, ActionResult, HistoryRow, MessageResult, ReportResult, RunResult, TraceRow,
};
pub use python_json::python_json;
pub use react::react;
pub use rehearsal::Rehearsal;
pub use research::{
    Added, CheckedCitations, CitationFigures, Cited, Direction, DirectionAsked, DirectionWay,
    GoldFact, Judgement, JudgementKind, Library, QuestionKind, Reference, Refused, RefusedKind,
    Report, ReportFigures, ReportFrame, ReportScore, ResearchQuestion, ResearchSettings, Role,
    RunFigures, ScoreTotal, Source, SourceKind, SourceVersion, add_sources, annotated,
    check_citations, research, research_questions, sample_documents, sample_sources, score_report,
    sources_of,
};
pub use run::AgentRun;
pub use stores::Stores;
pub use support::{support, support_that_refunds};
pub use terms::{ANSWER_TOKENS, Terms};
pub use tool_node::{ToolNode, ToolRuntime, tool_node, update_command};
pub use tools_condition::{TOOLS, tools_condition, tools_or};
pub use triage::{
    Check, Ci, CiState, Citation, Class, Classification, Diagnosis, DiagnosisScore, Forge,
    GateCase, GateFailure, GateReport, Gated, Handoff, HandoffKind, Hidden, Incomplete,
    IssueComment, IssueEvidence, KnownIssue, LinkedPull, ProposedAction, RelatedIssue, Retrieved,
    ReviewOutcome, ReviewResult, Rights, SampleIssue, SampleSnippets, Severity, Share, Snippet,
    SnippetQuery, Snippets, TriageParts, TriageResult, TriageRole, TriageSettings, TriageTarget,
    Viewer, classify, diagnose_known, gate_cases, gate_checks, issue_evidence, known_issues,
    run_gates, triage,
};
pub use waits::{APPROVAL, Approval, OpenQuestion};
pub use weather::{sample_tools, weather, weather_by_hand};

#[doc = include_str!("docs/from_langgraph.md")]
pub mod from_langgraph {}

#[doc = include_str!("docs/effects.md")]
pub mod effects {}

/// The examples of the project's README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
