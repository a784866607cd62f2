//! People in the loop: at certain points the run asks how to go on, with what was found so far. Nobody is asked unless
//! the run was told to.

use super::desk::way;
use super::settings::ResearchSettings;
use super::state::{Asked, ResearchState};
use super::{CHECK_IN, prompt};
use crate::asking::Asking;
use paraph_graph::{Ctx, State, Update};
use paraph_models::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the question.
pub(crate) const DIRECTION: &str = "direction";

/// The longest new instruction, in characters.
const LONGEST: usize = 4_000;

/// How many facts are shown, the newest.
const SHOWN_FACTS: usize = 10;

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectionAsked {
    /// What is asked, in words.
    pub question: String,
    /// The research question.
    pub research: String,
    /// Decisions of the supervisor so far, and at most.
    pub round: u64,
    /// At most.
    pub rounds: u64,
    /// Topics that were looked into.
    pub topics: Vec<String>,
    /// Sources that were read.
    pub sources: u64,
    /// The newest facts, with the ids of their sources.
    pub found: Vec<String>,
    /// What still speaks against the draft.
    pub open: Vec<String>,
    /// Millionths of a US dollar so far; nothing if a price is not known.
    pub micro_dollars: Option<u64>,
}

/// How a person wants a run to go on: `"continue"`, `"stop"`, or any other text as a new instruction; also as an
/// object, `{"decision": "redirect", "instruction": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Direction {
    /// In a word, or as an instruction.
    Said(String),
    /// Spelled out.
    Decided {
        /// `continue`, `redirect` or `stop`.
        decision: Way,
        /// What to look into instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instruction: Option<String>,
    },
}

/// Which way a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// As it is.
    Continue,
    /// With a new instruction.
    Redirect,
    /// To a report of what there is.
    Stop,
}

impl Direction {
    fn read(self) -> (Way, String) {
        match self {
            Direction::Decided {
                decision,
                instruction,
            } => (decision, instruction.unwrap_or_default().trim().to_owned()),
            Direction::Said(text) => {
                let word = plain(&text);
                let is = |words: &[&str]| words.contains(&&*word);
                match (is(&GO_ON), is(&STOP)) {
                    (true, _) => (Way::Continue, String::new()),
                    (_, true) => (Way::Stop, String::new()),
                    _ => (Way::Redirect, text.trim().to_owned()),
                }
            }
        }
    }
}

/// What people say when they mean that it goes on as it is. Nothing is said by whoever just presses enter.
const GO_ON: [&str; 14] = [
    "",
    "continue",
    "c",
    "yes",
    "y",
    "ok",
    "okay",
    "go",
    "go on",
    "go ahead",
    "carry on",
    "proceed",
    "keep going",
    "please continue",
];

/// What people say when they mean that it ends: their words must not be paid for as an instruction.
const STOP: [&str; 18] = [
    "stop",
    "s",
    "quit",
    "q",
    "no",
    "n",
    "abort",
    "cancel",
    "end",
    "halt",
    "exit",
    "done",
    "finish",
    "enough",
    "stop now",
    "stop here",
    "please stop",
    "report what there is",
];

/// A text in small letters, in single blanks, without the marks around it.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split_whitespace().collect::<Vec<_>>().join(" ");
    let marks = |c: char| c.is_ascii_punctuation() || c.is_whitespace();
    words.trim_matches(marks).to_owned()
}

/// Whether a person is to be asked now.
pub(super) fn is_due(settings: &ResearchSettings, state: &ResearchState) -> bool {
    let round = state.research_iterations;
    if round >= settings.depth {
        // Nothing is left that could be done otherwise.
        return false;
    }
    let every = settings
        .checkpoint_every
        .is_some_and(|every| round > state.asked.round && round > 0 && round.is_multiple_of(every));
    // What researchers spent is not in the state before somebody has looked.
    let unknown = state.findings.len() as u64 > state.asked.findings;
    every || (settings.checkpoint_cost.is_some() && unknown)
}

/// How many times the cost bound will be passed after another round that costs as much as those before it.
fn passed(settings: &ResearchSettings, (cost, rounds): (u64, u64)) -> u64 {
    let next = cost.saturating_add(cost / rounds.max(1));
    match settings.checkpoint_cost {
        Some(bound) if bound > 0 => next / bound,
        _ => 0,
    }
}

/// Asks how to go on.
pub(super) async fn check_in(
    settings: &ResearchSettings,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let spent = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking.spent(ctx),
        Err(early) => return Ok(ResearchState::update().cut_short(Some(early.ending()?))),
    };
    let round = state.research_iterations;
    let cost = passed(settings, (spent.usage().micro_dollars, round));
    let looked = Asked {
        findings: state.findings.len() as u64,
        ..state.asked
    };
    let by_round = settings
        .checkpoint_every
        .is_some_and(|every| round > state.asked.round && round.is_multiple_of(every));
    if !by_round && cost <= state.asked.cost {
        return Ok(ResearchState::update()
            .asked(looked)
            .spent(Some(spent))
            .way(way(
                CHECK_IN,
                "the next round costs less than people are asked at",
            )));
    }
    let question = asked(settings, state, spent.usage().cost());
    let direction: Direction = ctx.interrupt_for(DIRECTION, question)?;
    let update = ResearchState::update().spent(Some(spent)).asked(Asked {
        round,
        cost,
        ..looked
    });
    let (way_on, instruction) = direction.read();
    Ok(match (way_on, instruction.is_empty()) {
        (Way::Stop, _) => update
            .stopped_by(Some(format!(
                "a person stopped the research after {} of {} rounds",
                state.research_iterations, settings.depth
            )))
            .complete(true)
            .way(way(CHECK_IN, "a person wants the report now")),
        (Way::Redirect, false) => {
            let text = super::reading::short(&instruction, LONGEST);
            let told = Message::human(format!("New instruction from the person who asked: {text}"));
            update
                .supervisor_messages([told])
                .way(way(CHECK_IN, "a person gave a new instruction"))
        }
        _ => update.way(way(CHECK_IN, "a person wants to go on")),
    })
}

fn asked(
    settings: &ResearchSettings,
    state: &ResearchState,
    micro_dollars: Option<u64>,
) -> DirectionAsked {
    let newest = state.knowledge_base.len().saturating_sub(SHOWN_FACTS);
    let facts = state.knowledge_base.get(newest..).unwrap_or_default();
    let found: Vec<String> = match facts.is_empty() {
        false => facts
            .iter()
            .map(|fact| prompt::facts(std::slice::from_ref(fact)))
            .collect(),
        true => state
            .findings
            .iter()
            .map(|finding| super::reading::short(&prompt::finding(finding), 400))
            .collect(),
    };
    DirectionAsked {
        question: "Go on, stop with a report of what there is, or look into something else?"
            .to_owned(),
        research: state.question.clone(),
        round: state.research_iterations,
        rounds: settings.depth,
        topics: state
            .findings
            .iter()
            .map(|finding| finding.topic.clone())
            .collect(),
        sources: state.sources.len() as u64,
        found,
        open: state
            .open_critiques()
            .map(|critique| critique.concern.clone())
            .collect(),
        micro_dollars,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_a_word_an_instruction_or_an_object() {
        let table = [
            (r#""continue""#, (Way::Continue, "")),
            (r#""""#, (Way::Continue, "")),
            (r#"" STOP ""#, (Way::Stop, "")),
            (r#""Stop.""#, (Way::Stop, "")),
            (r#""STOP!""#, (Way::Stop, "")),
            (r#""stop  now""#, (Way::Stop, "")),
            (r#""No""#, (Way::Stop, "")),
            (r#""cancel""#, (Way::Stop, "")),
            (r#""go on""#, (Way::Continue, "")),
            (r#""Continue.""#, (Way::Continue, "")),
            (r#""OK!""#, (Way::Continue, "")),
            (r#""look at costs""#, (Way::Redirect, "look at costs")),
            (
                r#""Stop using blogs.""#,
                (Way::Redirect, "Stop using blogs."),
            ),
            (r#"{"decision": "stop"}"#, (Way::Stop, "")),
            (
                r#"{"decision": "redirect", "instruction": " costs "}"#,
                (Way::Redirect, "costs"),
            ),
        ];
        for (json, (way, text)) in table {
            let direction: Direction = serde_json::from_str(json).unwrap();
            assert_eq!(direction.read(), (way, text.to_owned()), "{json}");
        }
        assert!(serde_json::from_str::<Direction>("5").is_err());
    }

    #[test]
    fn people_are_asked_every_so_many_rounds_and_once_each() {
        let every = ResearchSettings {
            checkpoint_every: Some(2),
            ..ResearchSettings::default()
        };
        let state = |round, asked| ResearchState {
            research_iterations: round,
            asked: Asked {
                round: asked,
                ..Asked::default()
            },
            ..ResearchState::default()
        };
        let table = [
            (0, 0, false),
            (1, 0, false),
            (2, 0, true),
            (2, 2, false),
            (3, 2, false),
            (4, 2, true),
        ];
        for (round, asked, expected) in table {
            assert_eq!(
                is_due(&every, &state(round, asked)),
                expected,
                "{round} {asked}"
            );
            assert!(!is_due(&ResearchSettings::default(), &state(round, asked)));
        }
    }

    #[test]
    fn people_are_asked_before_the_next_round_passes_their_bound() {
        let bound = ResearchSettings {
            checkpoint_cost: Some(300),
            ..ResearchSettings::default()
        };
        // Cost and rounds so far: one more round of 220 would pass 300.
        for (so_far, times) in [
            ((0, 0), 0),
            ((100, 1), 0),
            ((220, 1), 1),
            ((440, 2), 2),
            ((600, 6), 2),
        ] {
            assert_eq!(passed(&bound, so_far), times, "{so_far:?}");
        }
        assert_eq!(passed(&ResearchSettings::default(), (1_000, 1)), 0);
    }
}
