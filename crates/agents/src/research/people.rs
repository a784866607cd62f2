//! People in the loop: at certain points the run asks how to go on, with what was found so far. Nobody is asked unless
//! the run was told to.

use super::desk::way;
use super::settings::ResearchSettings;
use super::state::{Asked, ResearchState};
use super::{CHECK_IN, prompt};
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
            Direction::Said(text) => match text.trim().to_lowercase().as_str() {
                "" | "continue" | "c" | "yes" | "y" => (Way::Continue, String::new()),
                "stop" | "s" | "quit" | "q" => (Way::Stop, String::new()),
                _ => (Way::Redirect, text.trim().to_owned()),
            },
        }
    }
}

/// Whether a person is to be asked now.
pub(super) fn is_due(settings: &ResearchSettings, state: &ResearchState) -> bool {
    let round = state.research_iterations;
    let every = settings
        .checkpoint_every
        .is_some_and(|every| round > state.asked.round && round > 0 && round.is_multiple_of(every));
    every || passed(settings, state) > state.asked.cost
}

/// How many times the cost bound was passed.
fn passed(settings: &ResearchSettings, state: &ResearchState) -> u64 {
    let cost = state
        .spent
        .as_ref()
        .map_or(0, |spent| spent.usage().micro_dollars);
    match settings.checkpoint_cost {
        Some(bound) if bound > 0 => cost / bound,
        _ => 0,
    }
}

/// Asks how to go on.
pub(super) async fn check_in(
    settings: &ResearchSettings,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let direction: Direction = ctx.interrupt_for(DIRECTION, asked(settings, state))?;
    let update = ResearchState::update().asked(Asked {
        round: state.research_iterations,
        cost: passed(settings, state),
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

fn asked(settings: &ResearchSettings, state: &ResearchState) -> DirectionAsked {
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
        micro_dollars: state.spent.as_ref().and_then(|spent| spent.usage().cost()),
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
            (r#""look at costs""#, (Way::Redirect, "look at costs")),
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
                cost: 0,
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
}
