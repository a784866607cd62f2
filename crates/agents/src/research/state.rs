//! The states of a research run: that of the run, and that of each researcher. What is public of a researcher through
//! its thread's state keeps the names that people know: `researcher_messages`, `tool_call_iterations`,
//! `research_topic`, `compressed_research`, `raw_notes`.

use super::report::Report;
use super::source::{Library, add_sources};
use crate::ending::{Ending, keep_first};
use crate::outcome::TraceRow;
use crate::spent::Spent;
use crate::{Conversation, HasMessages, add_messages};
use paraph_gateway::Limits;
use paraph_graph::{Change, State, Update};
use paraph_models::Message;
use serde::{Deserialize, Serialize};

/// The state of one researcher.
#[derive(State, Clone, Default)]
pub(crate) struct ResearcherState {
    /// Its conversation. The instructions are not part of it: they are made anew each time.
    #[reduce(add_messages, list)]
    pub(crate) researcher_messages: Conversation,
    /// Rounds of tools so far.
    pub(crate) tool_call_iterations: u64,
    /// What it is to find out.
    pub(crate) research_topic: String,
    /// What it found, in short, with the ids of its sources.
    pub(crate) compressed_research: String,
    /// What it read, as it read it.
    #[reduce(append)]
    pub(crate) raw_notes: Vec<String>,
    /// Who it is and what it may use.
    pub(crate) assignment: Assignment,
    /// What was fetched.
    #[reduce(add_sources, list)]
    pub(crate) sources: Library,
    /// All tool calls, those too that were not made.
    #[reduce(append)]
    pub(crate) trace: Vec<TraceRow>,
    /// The number of its last decision.
    pub(crate) step: u64,
    /// How many calls of that decision its budget has room for.
    pub(crate) slots: u64,
    /// What it has used of its models.
    pub(crate) spent: Option<Spent>,
    /// Why it stopped before it was done.
    #[reduce(keep_first)]
    pub(crate) ending: Option<Ending>,
}

/// The payload that makes a researcher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Assignment {
    /// Which one of the run it is, from 1.
    pub(crate) number: u64,
    /// The supervisor's call that it answers.
    pub(crate) call_id: String,
    /// What it is to find out.
    pub(crate) topic: String,
    /// Searches at most.
    pub(crate) searches: u64,
    /// Its share of the run's purse.
    pub(crate) share: Limits,
}

impl HasMessages for ResearcherState {
    fn conversation(&self) -> &Conversation {
        &self.researcher_messages
    }

    fn say(update: Update<ResearcherState>, messages: Vec<Message>) -> Update<ResearcherState> {
        update.researcher_messages(messages)
    }
}

/// The state of a run.
#[derive(State, Clone, Default)]
pub(crate) struct ResearchState {
    /// What is asked.
    pub(crate) question: String,
    /// What was asked back, and answered.
    pub(crate) clarification: Option<Clarification>,
    /// What is to be found out.
    pub(crate) research_brief: Option<Brief>,
    /// The newest draft.
    pub(crate) draft_report: Option<Draft>,
    /// What the supervisor wants changed in it.
    pub(crate) redraft: Option<String>,
    /// The supervisor's conversation: short results, never what researchers read.
    #[reduce(add_messages, list)]
    pub(crate) supervisor_messages: Conversation,
    /// Decisions of the supervisor.
    pub(crate) research_iterations: u64,
    /// Researchers that were sent.
    pub(crate) researchers: u64,
    /// What they brought, in short.
    #[reduce(append)]
    pub(crate) findings: Vec<Finding>,
    /// What they read and nobody has made facts of yet.
    #[reduce(append)]
    pub(crate) raw_notes: Vec<Note>,
    /// Facts with their sources.
    #[reduce(append)]
    pub(crate) knowledge_base: Vec<Fact>,
    /// What was fetched.
    #[reduce(add_sources, list)]
    pub(crate) sources: Library,
    /// What speaks against the drafts.
    pub(crate) critiques: Vec<Critique>,
    /// The critiques that have held up the end of the research.
    #[reduce(append)]
    pub(crate) held_up: Vec<String>,
    /// After which decision people were asked last, and how often the cost had been passed.
    pub(crate) asked: Asked,
    /// The supervisor has said that it is done.
    pub(crate) complete: bool,
    /// What a person said that ends the research early.
    pub(crate) stopped_by: Option<String>,
    /// Why research ends before it is done.
    #[reduce(keep_first)]
    pub(crate) cut_short: Option<Ending>,
    /// The report.
    pub(crate) final_report: Option<Report>,
    /// All tool calls, of researchers too.
    #[reduce(append)]
    pub(crate) trace: Vec<TraceRow>,
    /// The number of the last decision.
    pub(crate) step: u64,
    /// What the run has used of its models.
    pub(crate) spent: Option<Spent>,
    /// The node that was last, and why the run goes where it goes.
    #[reduce(keep_newest)]
    pub(crate) way: Way,
    /// Why the run ends.
    #[reduce(keep_first)]
    pub(crate) ending: Option<Ending>,
}

/// A question that was asked back, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clarification {
    pub(crate) asked: String,
    pub(crate) answered: String,
}

/// What is to be found out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Brief {
    /// In a few sentences.
    pub(crate) text: String,
    /// Questions that together answer it.
    pub(crate) questions: Vec<String>,
    /// Whether one search or two will do for each.
    pub(crate) simple: bool,
}

/// A draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Draft {
    /// From 1.
    pub(crate) version: u64,
    pub(crate) text: String,
    /// Whether the red team has seen it.
    pub(crate) attacked: bool,
}

/// What a researcher brought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// Whose.
    pub(crate) number: u64,
    pub(crate) topic: String,
    /// In short, with ids of sources.
    pub(crate) text: String,
    pub(crate) searches: u64,
    pub(crate) searches_without_reflection: u64,
    /// The sources that it read.
    pub(crate) sources: Vec<String>,
    /// Why it stopped before it was done, if it did.
    pub(crate) stopped: Option<String>,
    /// What the last of its searches failed by, if none succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsearched: Option<String>,
    /// It brought nothing.
    pub(crate) failed: bool,
}

/// What a researcher read, as it read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// Whose.
    pub(crate) number: u64,
    pub(crate) text: String,
    /// How often facts could not be made of it.
    pub(crate) tries: u64,
}

/// A fact and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) text: String,
    /// Ids of sources that were fetched, at least one.
    pub(crate) sources: Vec<String>,
}

/// A weakness of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Critique {
    /// `c1`, `c2`, …
    pub(crate) id: String,
    pub(crate) concern: String,
    /// 1 to 10.
    pub(crate) severity: u64,
    /// Of which draft.
    pub(crate) version: u64,
    pub(crate) standing: Standing,
    /// How often it was raised.
    pub(crate) raised: u64,
}

/// How a critique stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// It waits for an answer.
    Raised,
    /// A newer draft is to answer it; the red team has not looked yet.
    Answered,
    /// It is answered.
    Closed,
}

/// When people were asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    /// After this decision of the supervisor.
    pub(crate) round: u64,
    /// How many times the cost bound had been passed.
    pub(crate) cost: u64,
    /// Of how many findings the cost was known.
    #[serde(default)]
    pub(crate) findings: u64,
}

/// The node that was last, and why the run goes on as it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Way {
    pub(crate) from: String,
    pub(crate) cause: String,
}

/// Parallel researchers say the same of the run's way.
fn keep_newest(way: &mut Way, new: Way) -> Change {
    *way = new;
    Change::Replaced
}

impl ResearchState {
    /// The critiques that wait for an answer.
    pub(crate) fn open_critiques(&self) -> impl Iterator<Item = &Critique> {
        let open = |critique: &&Critique| critique.standing == Standing::Raised;
        self.critiques.iter().filter(open)
    }

    /// Whether there is anything that a report could say.
    pub(crate) fn found_something(&self) -> bool {
        !self.sources.is_empty() && self.findings.iter().any(|finding| !finding.failed)
    }
}
