//! The research agent: researchers look things up in parallel, a supervisor says what, a red team attacks the draft, and
//! a report cites only what was really read.
//!
//! As a graph: the question becomes a brief and a first draft; the supervisor sends researchers (`conduct_research`, a
//! graph of its own, once for each topic), has the draft written anew, or ends the research; the draft is attacked
//! (`red_team`) whenever it is new; notes become facts (`context_pruner`) before they grow too long; a person may be
//! asked how to go on; and the report is written once, from facts, and checked by code. Each bound is kept by code:
//! decisions, researchers, searches, rounds, tokens, time.
//!
//! Tools come from the caller, which has the network or a folder: `web_search` and `fetch_page`, and `think`.

mod citation;
mod crew;
mod desk;
mod documents;
mod drafting;
mod evaluation;
mod people;
mod prompt;
mod pruning;
mod reading;
mod rehearsal;
mod report;
mod researcher;
mod sample;
mod settings;
mod source;
mod state;
mod tally;
mod writing;

use crate::ending::Ending;
use crate::outcome::{ReportResult, RunResult};
use crate::run::{Application, Route};
use crate::spent::Spent;
use crate::{Agent, Error, Stores};
use crew::Crew;
use paraph_gateway::{Dialect, DynTool, Gateway, Limits, LoopRule, Policy};
use paraph_graph::{Builder, Each, Graph, State, Update, with};
use paraph_models::Messages;
use state::{Assignment, ResearchState, Way};
use std::sync::Arc;
use tally::{SEARCH, THINK};

pub use citation::{
    Checked as CheckedCitations, CitationFigures, Reference, Refused, RefusedKind,
    check as check_citations,
};
pub use documents::sample_documents;
pub use evaluation::{
    Cited, GoldFact, Judgement, JudgementKind, QuestionKind, ReportScore, ResearchQuestion,
    RunFigures, ScoreTotal, research_questions, score_report,
};
pub use people::{Direction, DirectionAsked, Way as DirectionWay};
pub(crate) use reading::{short, without_thoughts};
pub(crate) use rehearsal::rehearse;
pub use report::{Report, ReportFigures, ReportFrame};
pub use sample::sample_sources;
pub use settings::{ResearchSettings, Role};
pub use source::{
    Added, Library, Source, SourceKind, SourceVersion, add_sources, annotated, sources_of,
};

/// The agent's name.
pub(crate) const NAME: &str = "research";

/// What its researchers may call unless told otherwise.
pub(crate) const TOOLS_OF_RESEARCHERS: [(&str, &str); 3] = [
    (SEARCH, "Searches the web, or the documents of a folder"),
    ("fetch_page", "Reads a page, or a document"),
    (THINK, "Writes down what it makes of what it read"),
];

const CLARIFY: &str = "clarify";
const ASK_BACK: &str = "ask_back";
const BRIEF: &str = "write_brief";
const DRAFT: &str = "draft";
const ATTACK: &str = "red_team";
const SUPERVISOR: &str = "supervisor";
const TOOLS: &str = "supervisor_tools";
const CONDUCT_RESEARCH: Each<Assignment> = Each::new("conduct_research");
const PRUNE: &str = "context_pruner";
const CHECK_IN: &str = "check_in";
const COMPLETE: &str = "research_complete";
const REPORT: &str = "final_report";

/// What a run may use unless told otherwise: 80 decisions beside those of researchers, 400 calls, 60 researchers, two
/// million tokens, half an hour.
pub(crate) fn limits() -> Limits {
    Limits {
        steps: 80,
        tool_calls: 400,
        seconds: 1_800,
        tokens: 2_000_000,
        children: 60,
        ..Limits::default()
    }
}

/// How many tokens are kept back for the report: what it is made of, and itself. Of a small budget a share is.
const LAST_WORDS: u64 = 24_000;

/// Of a run's tokens no more than this part is kept back, one of so many.
const LAST_WORDS_SHARE: u64 = 4;

/// The research agent with these tools, of which `web_search`, `fetch_page` and `think` are offered to researchers,
/// whether or not there are such, besides what is allowed here; a denied name is denied all the same.
///
/// # Errors
/// [`Error::Research`] for settings out of bounds; [`Error::Gateway`] if the tools do not fit together.
///
/// ```
/// use paraph_agents::{ResearchSettings, Rehearsal, Role, Stores, Terms, research, sample_sources};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), paraph_agents::Error> {
/// let settings = ResearchSettings::rehearsal();
/// let agent = research(&Stores::in_memory(), sample_sources(), settings, (&[], &[]))?;
/// let terms = Terms { limits: agent.limits(), ..Terms::new(Arc::new(Rehearsal::Research(Role::Writer)), "rag") };
/// let question = "How can a system with retrieval be kept from making things up?";
/// let result = agent.start(question, &terms).await?.result().await;
/// assert!(result.answer().is_some_and(|report| report.contains("[1]")));
/// # Ok(()) }
/// ```
pub fn research(
    stores: &Stores,
    tools: Vec<DynTool>,
    settings: ResearchSettings,
    (allow, deny): (&[String], &[String]),
) -> Result<Agent, Error> {
    settings.check().map_err(Error::Research)?;
    let field_names = TOOLS_OF_RESEARCHERS.map(|(name, _)| name.to_owned());
    let policy = Policy::new()
        .allow_unregistered(field_names)
        .allow_unregistered(allow)
        .deny(deny);
    let field = tools
        .into_iter()
        .fold(stores.gateway(), paraph_gateway::Builder::dynamic)
        .policy(policy)
        .build()?;
    let desk = desk_gateway(stores, deny)?;
    let crew = Arc::new(Crew::new(settings, field.clone(), &desk));
    let mut agent = Agent::new(NAME.to_owned(), graph(&crew)?, desk).on(stores.threads.clone());
    agent.called.insert("researcher".to_owned(), field);
    agent.synthesis_reserve = LAST_WORDS;
    agent.reserve_share = Some(LAST_WORDS_SHARE);
    Ok(agent)
}

/// Where the supervisor's calls go: it has no tool that reaches outside.
fn desk_gateway(stores: &Stores, deny: &[String]) -> Result<Gateway, Error> {
    let tools = desk::tools();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
    let gateway = tools
        .into_iter()
        .fold(stores.gateway(), paraph_gateway::Builder::dynamic)
        .dynamic(desk::think())
        .policy(Policy::new().allow(names).allow([THINK]).deny(deny))
        .build()?;
    Ok(gateway)
}

fn graph(crew: &Arc<Crew>) -> Result<Graph<ResearchState>, Error> {
    let researcher = researcher::graph(crew)?;
    let enter = |assignment: Assignment, _: &ResearchState| {
        state::ResearcherState::update()
            .research_topic(assignment.topic.clone())
            .researcher_messages([paraph_models::Message::human(&*assignment.topic)])
            .assignment(assignment)
    };
    let [after_attack, after_research, after_prune, after_check] =
        std::array::from_fn(|_| next(crew));
    let (after_complete, beginning) = (completed(crew), crew.settings.clarify);
    let onward = [PRUNE, CHECK_IN, DRAFT, SUPERVISOR, REPORT];
    let graph = Graph::<ResearchState>::new(NAME)
        .node(CLARIFY, with(crew.clone(), drafting::clarify))
        .node(ASK_BACK, drafting::ask_back)
        .node(BRIEF, with(crew.clone(), drafting::write_brief))
        .node(DRAFT, with(crew.clone(), drafting::draft))
        .node(ATTACK, with(crew.clone(), drafting::red_team))
        .node(SUPERVISOR, with(crew.clone(), desk::supervisor))
        .node(TOOLS, with(crew.clone(), desk::supervisor_tools))
        .each(
            CONDUCT_RESEARCH,
            researcher.mapped_each(enter, researcher::handed_in),
        )
        .node(PRUNE, with(crew.clone(), pruning::context_pruner))
        .node(CHECK_IN, with(crew.settings.clone(), people::check_in))
        .node(COMPLETE, with(crew.clone(), writing::research_complete))
        .node(REPORT, with(crew.clone(), writing::final_report))
        .start_branch(
            move |_| if beginning { CLARIFY } else { BRIEF },
            [CLARIFY, BRIEF],
        )
        .branch(CLARIFY, after_clarify, [ASK_BACK, BRIEF, REPORT])
        .edge(ASK_BACK, BRIEF)
        .branch(BRIEF, after_brief, [DRAFT, REPORT])
        .branch(DRAFT, after_draft, [ATTACK, REPORT])
        .branch(ATTACK, after_attack, [PRUNE, CHECK_IN, SUPERVISOR, REPORT])
        .branch(SUPERVISOR, after_supervisor, [TOOLS, COMPLETE, REPORT])
        .commands(
            TOOLS,
            [
                CONDUCT_RESEARCH.name(),
                DRAFT,
                CHECK_IN,
                COMPLETE,
                SUPERVISOR,
                REPORT,
            ],
        )
        .branch(CONDUCT_RESEARCH, after_research, onward)
        .branch(PRUNE, after_prune, onward)
        .branch(CHECK_IN, after_check, [PRUNE, DRAFT, SUPERVISOR, REPORT])
        .branch(COMPLETE, after_complete, onward)
        .end(REPORT)
        .label(paraph_graph::START, CLARIFY, "may ask back")
        .label(CLARIFY, ASK_BACK, "is unclear")
        .label(CLARIFY, BRIEF, "is clear")
        .label(SUPERVISOR, TOOLS, "has decided")
        .label(TOOLS, CONDUCT_RESEARCH.name(), "topics")
        .label(TOOLS, DRAFT, "new draft")
        .label(TOOLS, COMPLETE, "enough")
        .label(DRAFT, ATTACK, "is new")
        .label(COMPLETE, SUPERVISOR, "grave points")
        .label(COMPLETE, REPORT, "over");
    Ok(labelled(graph).build()?)
}

/// Says at each edge of [`next`] what has to be due for it.
fn labelled(graph: Builder<ResearchState>) -> Builder<ResearchState> {
    let research = CONDUCT_RESEARCH.name();
    let onward: [(&str, &[&str], &str); 5] = [
        (PRUNE, &[ATTACK, research, CHECK_IN], "much to keep"),
        (CHECK_IN, &[ATTACK, research, PRUNE], "a person is due"),
        (DRAFT, &[research, PRUNE, CHECK_IN], "draft is due"),
        (SUPERVISOR, &[ATTACK, research, PRUNE, CHECK_IN], "goes on"),
        (
            REPORT,
            &[
                CLARIFY, BRIEF, DRAFT, ATTACK, SUPERVISOR, TOOLS, research, PRUNE, CHECK_IN,
            ],
            "is cut short",
        ),
    ];
    let mut graph = graph
        .label(SUPERVISOR, COMPLETE, "rounds are over")
        .label(TOOLS, CHECK_IN, "a person is due")
        .label(TOOLS, SUPERVISOR, "goes on")
        .label(COMPLETE, PRUNE, "much to keep")
        .label(COMPLETE, CHECK_IN, "a person is due")
        .label(COMPLETE, DRAFT, "draft is due")
        .label(BRIEF, DRAFT, "is written")
        .label(PRUNE, PRUNE, "more to keep");
    for (to, all, label) in onward {
        for from in all {
            graph = graph.label(*from, to, label);
        }
    }
    graph
}

fn after_clarify(state: &ResearchState) -> &'static str {
    match (&state.cut_short, &state.clarification) {
        (Some(_), _) => REPORT,
        (None, Some(_)) => ASK_BACK,
        (None, None) => BRIEF,
    }
}

fn after_brief(state: &ResearchState) -> &'static str {
    match state.cut_short {
        Some(_) => REPORT,
        None => DRAFT,
    }
}

/// A new draft is attacked before anything else is done with it.
fn after_draft(state: &ResearchState) -> &'static str {
    match state.cut_short {
        Some(_) => REPORT,
        None => ATTACK,
    }
}

fn after_supervisor(state: &ResearchState) -> &'static str {
    if state.cut_short.is_some() {
        return REPORT;
    }
    match state.complete {
        true => COMPLETE,
        false => TOOLS,
    }
}

/// Where the run goes once the supervisor has called it complete: to the report, unless that was held up.
fn completed(crew: &Arc<Crew>) -> impl Fn(&ResearchState) -> &'static str + Send + Sync + 'static {
    let next = next(crew);
    move |state| if state.complete { REPORT } else { next(state) }
}

/// Where the run goes between two decisions of the supervisor: whatever is due comes first.
fn next(crew: &Arc<Crew>) -> impl Fn(&ResearchState) -> &'static str + Send + Sync + 'static {
    let settings = crew.settings.clone();
    move |state| {
        if state.cut_short.is_some() || state.stopped_by.is_some() {
            REPORT
        } else if pruning::is_due(state, settings.prune_tokens()) {
            PRUNE
        } else if people::is_due(&settings, state) {
            CHECK_IN
        } else if state.redraft.is_some() {
            DRAFT
        } else {
            SUPERVISOR
        }
    }
}

impl Application for ResearchState {
    const DIALECT: Dialect = Dialect::Native;

    /// The supervisor may say the same twice, with other reports before it; what it may say at all is counted.
    fn loops(said: LoopRule) -> LoopRule {
        match said {
            LoopRule::Exact | LoopRule::Soft => LoopRule::Cycle,
            rule => rule,
        }
    }

    /// A question is a research of its own: what an earlier one on the thread found is not taken for an answer.
    fn fresh(task: &str) -> Update<ResearchState> {
        let blank = ResearchState::default();
        ResearchState::update()
            .question(task)
            .clarification(None)
            .research_brief(None)
            .draft_report(None)
            .redraft(None)
            .replace_supervisor_messages(blank.supervisor_messages)
            .research_iterations(0)
            .researchers(0)
            .replace_findings(Vec::new())
            .replace_raw_notes(Vec::new())
            .replace_knowledge_base(Vec::new())
            .replace_sources(blank.sources)
            .critiques(Vec::new())
            .replace_held_up(Vec::new())
            .asked(blank.asked)
            .complete(false)
            .stopped_by(None)
            .replace_cut_short(None)
            .final_report(None)
            .replace_trace(Vec::new())
            .step(0)
            .spent(None)
            .replace_way(Way::default())
            .replace_ending(None)
    }

    fn route(&self) -> Route {
        Route {
            from: self.way.from.clone().into(),
            cause: match &self.ending {
                Some(ending) if ending.stop != paraph_gateway::Stop::Success => {
                    format!("stopped: {}", ending.stop)
                }
                _ => self.way.cause.clone(),
            },
        }
    }

    fn task(&self) -> String {
        self.question.clone()
    }

    fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn ending(&self) -> Option<Ending> {
        self.ending.clone()
    }

    fn result(state: Option<&ResearchState>, ending: Ending) -> RunResult {
        let messages =
            state.map_or_else(Messages::new, |state| state.supervisor_messages.0.clone());
        RunResult::Report(Box::new(ReportResult {
            status: ending.stop.status(),
            stop_reason: ending.stop,
            approvals: ending.approvals,
            questions: ending.questions,
            answer: ending.answer,
            report: state.and_then(|state| state.final_report.clone()),
            trace: state.map_or(Vec::new(), |state| state.trace.clone()),
            messages,
        }))
    }
}

#[cfg(test)]
mod tests;
