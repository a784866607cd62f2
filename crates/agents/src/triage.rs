//! The triage agent: an issue is read, classified by rules, perhaps diagnosed, checked by code, signed by a person, and
//! commented on once.
//!
//! As a graph: `fetch_evidence` and `normalize_evidence` find out what there is, `classify` says by rules alone which way
//! it goes. Failing checks lead to a fixed comment; an issue that says too little to a model's diagnosis, which rests on
//! snippets of older issues and is criticised by another model; everything else to a person. Whether a diagnosis may be
//! proposed is decided by named checks in code (`gates`), whatever the models wrote. `await_approval` puts the exact bytes
//! before a person; `execute` alone changes anything, by an effect of the gateway's that the program brings.
//!
//! The issue is bound by the address that a person gave: after a stranger's text was read, the gateway lets no effect
//! reach another one. Where nothing may be posted the run ends with a [`Handoff`].

mod acting;
mod capability;
mod checks;
mod classify;
mod day;
mod desk;
mod diagnosis;
mod doors;
mod evaluation;
mod evidence;
mod gates;
mod handoff;
mod hidden;
mod investigating;
mod looking;
mod neutral;
mod owner;
mod prompt;
mod proposal;
mod rehearsal;
mod result;
mod sample;
mod settings;
mod state;

use crate::ending::Ending;
use crate::outcome::RunResult;
use crate::run::{Application, Route};
use crate::spent::Spent;
use crate::{Agent, Error, Stores};
use desk::{Desk, POST, SEARCH, fetch_tool, search_tool};
use paraph_gateway::{Ask, Dialect, DynTool, Limits, Policy, Scalar, Stop, Targets};
use paraph_graph::{END, Graph, State, Update, with};
use state::{TriageState, Way};
use std::sync::Arc;

pub use capability::{DiagnosisScore, KnownIssue, Share, diagnose_known, known_issues};
pub use checks::{Ci, CiState, LinkedPull};
pub use classify::{Class, Classification, classify};
pub use diagnosis::{Citation, Diagnosis, Severity};
pub use doors::{Forge, Retrieved, Snippet, SnippetQuery, Snippets};
pub use evaluation::{GateCase, GateFailure, GateReport, gate_cases, run_gates};
pub use evidence::{Incomplete, IssueComment, IssueEvidence, Rights, Viewer, issue_evidence};
pub use gates::{Check, Gated, ReviewOutcome, ReviewResult, checks as gate_checks};
pub use handoff::{Handoff, HandoffKind, RelatedIssue};
pub use hidden::Hidden;
pub use proposal::ProposedAction;
pub(crate) use rehearsal::rehearse;
pub use result::TriageResult;
pub use sample::{SampleIssue, SampleSnippets};
pub use settings::{TriageRole, TriageSettings, TriageTarget};

/// The agent's name.
pub(crate) const NAME: &str = "triage";

/// What it calls: two tools that read, and one that posts once a person has signed.
pub(crate) const TOOLS: [(&str, &str); 2] = [
    (desk::FETCH, "Reads an issue with its comments and checks"),
    (SEARCH, "Finds passages of older issues that fit"),
];

/// The tool that posts, which the program brings.
pub(crate) const POSTS: (&str, &str) = (
    POST,
    "Posts one comment and one label to the issue, after a person has approved their bytes",
);

const FETCH: &str = "fetch_evidence";
const NORMALIZE: &str = "normalize_evidence";
const CLASSIFY: &str = "classify";
const INVESTIGATE: &str = "ai_investigation";
const DIAGNOSE: &str = "generate_diagnosis";
const REVIEW: &str = "independent_review";
const ESCALATE: &str = "escalate";
const HUMAN: &str = "human_review";
const APPROVAL: &str = "await_approval";
const EXECUTE: &str = "execute";

/// How long a person has to decide about a comment.
const TO_DECIDE: std::time::Duration = std::time::Duration::from_secs(48 * 3_600);

/// What a run may use unless told otherwise: 8 decisions, 8 calls, 60,000 tokens, ten minutes.
pub(crate) fn limits() -> Limits {
    Limits {
        tool_calls: 8,
        seconds: 600,
        tokens: 60_000,
        ..Limits::default()
    }
}

/// What triage is given by the program.
pub struct TriageParts {
    /// The one issue; nothing for an agent that is only drawn or read.
    pub target: Option<TriageTarget>,
    /// Where the evidence comes from.
    pub forge: Arc<dyn Forge>,
    /// Where related issues come from.
    pub snippets: Arc<dyn Snippets>,
    /// The effect `post_triage`; nothing for an agent that posts nothing.
    pub post: Option<DynTool>,
    /// How it is done.
    pub settings: TriageSettings,
}

/// The triage agent for one issue, whose address is the task of its runs. `deny` takes tools away; `allow` does not let
/// anything happen unasked.
///
/// # Errors
/// [`Error::Triage`] for settings out of bounds; [`Error::Gateway`] if the tools do not fit together.
pub fn triage(
    stores: &Stores,
    parts: TriageParts,
    (allow, deny): (&[String], &[String]),
) -> Result<Agent, Error> {
    parts.settings.check().map_err(Error::Triage)?;
    let TriageParts {
        target,
        forge,
        snippets,
        post,
        settings,
    } = parts;
    let read = [
        fetch_tool(forge, target.clone()),
        search_tool(snippets, target.clone(), settings.snippets),
    ];
    let posts = post.is_some();
    let gateway = read
        .into_iter()
        .chain(post)
        .fold(stores.gateway(), paraph_gateway::Builder::dynamic)
        .policy(policy(posts, (allow, deny)))
        .build()?;
    let desk = Arc::new(Desk {
        settings,
        target: target.clone(),
        records: stores.records.clone(),
    });
    let mut agent = Agent::new(NAME.to_owned(), graph(&desk)?, gateway).on(stores.threads.clone());
    agent.targets = target.as_ref().map(targets).unwrap_or_default();
    Ok(agent)
}

/// The rules: reading is allowed and brings in what strangers wrote; posting is asked about each time, and reaches the
/// bound issue alone.
fn policy(posts: bool, (allow, deny): (&[String], &[String])) -> Policy {
    let read = [desk::FETCH, SEARCH];
    let rules = Policy::new()
        .allow(read)
        .allow_unregistered(allow)
        .deny(deny)
        .untrusted(read);
    if !posts {
        return rules;
    }
    rules
        .ask(
            POST,
            Ask {
                expires: TO_DECIDE,
                ..Ask::default()
            },
        )
        .bound(POST, "/owner", "owner")
        .bound(POST, "/repo", "repository")
        .bound(POST, "/number", "issue")
}

fn targets(target: &TriageTarget) -> Targets {
    let number = i64::try_from(target.number).unwrap_or(i64::MAX);
    Targets::from([
        ("owner".to_owned(), Scalar::from(target.owner.as_str())),
        ("repository".to_owned(), Scalar::from(target.repo.as_str())),
        ("issue".to_owned(), Scalar::from(number)),
    ])
}

fn graph(desk: &Arc<Desk>) -> Result<Graph<TriageState>, Error> {
    let graph = Graph::<TriageState>::new(NAME)
        .node(FETCH, with(desk.clone(), looking::fetch_evidence))
        .node(NORMALIZE, with(desk.clone(), looking::normalize_evidence))
        .node(CLASSIFY, with(desk.clone(), looking::classify))
        .node(
            INVESTIGATE,
            with(desk.clone(), investigating::ai_investigation),
        )
        .node(
            DIAGNOSE,
            with(desk.clone(), investigating::generate_diagnosis),
        )
        .node(
            REVIEW,
            with(desk.clone(), investigating::independent_review),
        )
        .node(ESCALATE, acting::escalate)
        .node(HUMAN, with(desk.clone(), acting::human_review))
        .node(APPROVAL, with(desk.clone(), acting::await_approval))
        .node(EXECUTE, with(desk.clone(), acting::execute))
        .start(FETCH)
        .branch(
            FETCH,
            |state| unless_over(state, NORMALIZE),
            [NORMALIZE, END],
        )
        .branch(
            NORMALIZE,
            |state| unless_over(state, CLASSIFY),
            [CLASSIFY, END],
        )
        .branch(
            CLASSIFY,
            after_classify,
            [APPROVAL, INVESTIGATE, HUMAN, END],
        )
        .branch(
            INVESTIGATE,
            |state| unless_over(state, DIAGNOSE),
            [DIAGNOSE, END],
        )
        .branch(DIAGNOSE, after_diagnosis, [REVIEW, HUMAN, END])
        .branch(REVIEW, after_review, [APPROVAL, ESCALATE, END])
        .branch(
            APPROVAL,
            |state| unless_over(state, EXECUTE),
            [EXECUTE, END],
        )
        .end(ESCALATE)
        .end(HUMAN)
        .end(EXECUTE)
        .label(CLASSIFY, APPROVAL, "deterministic")
        .label(CLASSIFY, INVESTIGATE, "ai_investigation")
        .label(CLASSIFY, HUMAN, "human_review")
        .label(DIAGNOSE, HUMAN, "no diagnosis")
        .label(REVIEW, APPROVAL, "approve")
        .label(REVIEW, ESCALATE, "escalate")
        .label(APPROVAL, EXECUTE, "decided");
    Ok(graph.build()?)
}

fn unless_over(state: &TriageState, next: &'static str) -> &'static str {
    match state.ending {
        Some(_) => END,
        None => next,
    }
}

fn after_classify(state: &TriageState) -> &'static str {
    let class = state.classification.as_ref().map(|found| found.class);
    unless_over(
        state,
        match class {
            Some(Class::Deterministic) => APPROVAL,
            Some(Class::AiInvestigation) => INVESTIGATE,
            Some(Class::HumanReview) | None => HUMAN,
        },
    )
}

fn after_diagnosis(state: &TriageState) -> &'static str {
    unless_over(
        state,
        if state.diagnosis.is_some() {
            REVIEW
        } else {
            HUMAN
        },
    )
}

fn after_review(state: &TriageState) -> &'static str {
    let outcome = state.review_result.as_ref().map(|review| review.outcome);
    unless_over(
        state,
        match outcome {
            Some(ReviewOutcome::Approve) => APPROVAL,
            Some(ReviewOutcome::EscalateToHuman) | None => ESCALATE,
        },
    )
}

impl Application for TriageState {
    const DIALECT: Dialect = Dialect::Strict;

    /// Another run on the thread begins anew: what was seen of an issue before may not be so any more.
    fn fresh(url: &str) -> Update<TriageState> {
        TriageState::update()
            .issue_url(url)
            .bundle(None)
            .evidence(None)
            .classification(None)
            .retrieved(None)
            .retrieved_ids(Vec::<String>::new())
            .retrieved_scores(std::collections::BTreeMap::new())
            .diagnosis(None)
            .no_diagnosis(None)
            .review_result(None)
            .proposed_action(None)
            .post_key(None)
            .execution_result(None)
            .handoff(None)
            .replace_trace(Vec::new())
            .step(0)
            .spent(None)
            .way(Way::default())
            .replace_ending(None)
    }

    fn route(&self) -> Route {
        let stopped = self.ending.as_ref().filter(|ending| {
            !matches!(
                ending.stop,
                Stop::Success | Stop::HandedOff | Stop::Escalated(_)
            )
        });
        Route {
            from: self.way.from.clone().into(),
            cause: match stopped {
                Some(ending) => format!("stopped: {}", ending.stop),
                None => self.way.cause.clone(),
            },
        }
    }

    fn task(&self) -> String {
        self.issue_url.clone()
    }

    fn spent(&self) -> Option<&Spent> {
        self.spent.as_ref()
    }

    fn ending(&self) -> Option<Ending> {
        self.ending.clone()
    }

    fn result(state: Option<&TriageState>, ending: Ending) -> RunResult {
        RunResult::Triage(Box::new(TriageResult::of(state, ending)))
    }
}
