//! How a research run is made: how broad, how deep, by whose voices, and when people are asked. Plain data.

use crate::terms::ANSWER_TOKENS;
use crate::{Rehearsal, Voice};
use paraph_gateway::{Limits, Price};
use paraph_graph::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts that models play in a research run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Searches, reads, thinks.
    Researcher,
    /// Makes a short text, or facts, of what was read.
    Compressor,
    /// Says what is to be found out next.
    Supervisor,
    /// Attacks the draft.
    RedTeam,
    /// Writes the brief, the drafts and the report.
    Writer,
}

impl Role {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Role; 5] = [
        Role::Researcher,
        Role::Compressor,
        Role::Supervisor,
        Role::RedTeam,
        Role::Writer,
    ];

    /// Its name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Role::Researcher => "researcher",
            Role::Compressor => "compressor",
            Role::Supervisor => "supervisor",
            Role::RedTeam => "red_team",
            Role::Writer => "writer",
        }
    }

    /// The longest answer of this part, in tokens, where the run has a limit on tokens or money. It is set aside before it
    /// is asked for, and less of it if less is left.
    pub(crate) fn longest_answer(self) -> u64 {
        match self {
            Role::Writer => 16_384,
            Role::Compressor => 8_192,
            Role::Researcher | Role::Supervisor | Role::RedTeam => ANSWER_TOKENS,
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Role, String> {
        let known = Role::ALL.into_iter().find(|role| role.name() == name);
        known.ok_or_else(|| {
            let all = Role::ALL.map(Role::name).join(", ");
            format!("`{name}` is no part of a research run; there are {all}")
        })
    }
}

/// How a research run is made. Every bound is kept by code, whatever the models say.
#[derive(Clone)]
pub struct ResearchSettings {
    /// Researchers that work at the same time, 1 to [`ResearchSettings::MOST_BREADTH`].
    pub breadth: u64,
    /// Decisions of the supervisor, 1 to [`ResearchSettings::MOST_DEPTH`].
    pub depth: u64,
    /// Searches of one researcher on a simple question.
    pub simple_searches: u64,
    /// Searches of one researcher at most.
    pub searches: u64,
    /// Rounds of tools of one researcher at most.
    pub iterations: u64,
    /// Active seconds of one researcher at most.
    pub researcher_seconds: u64,
    /// How many tokens a model is sent at most. What is longer is packed, the newest first, and never by half a pair of
    /// a call and its result.
    pub window: usize,
    /// The share of the window, in percent, at which notes are turned into facts and cleared.
    pub prune_at: u64,
    /// Whether a question that can be understood in several ways is asked back.
    pub clarify: bool,
    /// After how many decisions of the supervisor a person is asked how to go on; nothing for never.
    pub checkpoint_every: Option<u64>,
    /// Above which cost, in millionths of a US dollar, a person is asked, and again at each multiple of it.
    pub checkpoint_cost: Option<u64>,
    /// Who plays which part; the run's own model plays the others.
    pub voices: BTreeMap<Role, Voice>,
    /// The time of day, for prompts and sources.
    pub clock: Arc<dyn Clock>,
}

impl Default for ResearchSettings {
    fn default() -> ResearchSettings {
        ResearchSettings {
            breadth: 3,
            depth: 6,
            simple_searches: 3,
            searches: 5,
            iterations: 12,
            researcher_seconds: 600,
            window: 96_000,
            prune_at: 40,
            clarify: false,
            checkpoint_every: None,
            checkpoint_cost: None,
            voices: BTreeMap::new(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for ResearchSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResearchSettings")
            .field("breadth", &self.breadth)
            .field("depth", &self.depth)
            .field("window", &self.window)
            .field("voices", &self.voices.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl ResearchSettings {
    /// More researchers than this at a time are refused.
    pub const MOST_BREADTH: u64 = 64;

    /// More decisions of the supervisor than this are refused.
    pub const MOST_DEPTH: u64 = 50;

    /// The settings of a rehearsal: each part is played by rules, and the window is small, so that a short run goes
    /// every way there is.
    #[must_use]
    pub fn rehearsal() -> ResearchSettings {
        let voice = |role| Voice {
            model: Arc::new(Rehearsal::Research(role)),
            price: Some(Price {
                input: 0,
                output: 0,
                source: "the rehearsal model costs nothing".to_owned(),
            }),
        };
        ResearchSettings {
            window: 16_000,
            prune_at: 15,
            voices: Role::ALL.map(|role| (role, voice(role))).into(),
            ..ResearchSettings::default()
        }
    }

    /// What is wrong with them, if anything is.
    ///
    /// # Errors
    /// A sentence for each mistake.
    pub fn check(&self) -> Result<(), String> {
        let bounds = [
            ("breadth", self.breadth, Self::MOST_BREADTH),
            ("depth", self.depth, Self::MOST_DEPTH),
            ("searches", self.searches, 20),
            ("iterations", self.iterations, 100),
            ("prune_at", self.prune_at, 100),
            (
                "checkpoint_every",
                self.checkpoint_every.unwrap_or(1),
                1_000,
            ),
        ];
        for (name, value, most) in bounds {
            if value == 0 || value > most {
                return Err(format!("`{name}` is {value}; it can be 1 to {most}"));
            }
        }
        if self.checkpoint_cost == Some(0) {
            return Err("`checkpoint_cost` is 0; it is a sum of money".to_owned());
        }
        if self.window < Self::LEAST_WINDOW {
            return Err(format!(
                "`window` is {} tokens; less than {} leaves no room for what is read",
                self.window,
                Self::LEAST_WINDOW
            ));
        }
        Ok(())
    }

    const LEAST_WINDOW: usize = 4_000;

    /// How many tokens of notes and conversation are kept before they are turned into facts.
    pub(crate) fn prune_tokens(&self) -> usize {
        let share = usize::try_from(self.prune_at).unwrap_or(100);
        self.window.saturating_mul(share) / 100
    }

    /// What a researcher may use besides what it is given of the run's purse: a decision for each round of tools, and
    /// some for its last words.
    pub(crate) fn researcher_limits(&self) -> Limits {
        Limits {
            steps: self.iterations.saturating_add(LAST_WORDS),
            seconds: self.researcher_seconds,
            tool_calls: self.iterations.saturating_mul(CALLS_PER_ROUND),
            ..Limits::unlimited()
        }
    }
}

/// Decisions of a researcher after its last round of tools: to say what it found, and to have it put in short.
const LAST_WORDS: u64 = 4;

/// How many calls a round of tools has room for, over all rounds.
const CALLS_PER_ROUND: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_bounds_are_named_with_what_they_can_be() {
        let fine = ResearchSettings::default;
        let table = [
            (fine(), Ok(())),
            (ResearchSettings::rehearsal(), Ok(())),
            (
                ResearchSettings {
                    breadth: 0,
                    ..fine()
                },
                Err("`breadth` is 0; it can be 1 to 64"),
            ),
            (
                ResearchSettings {
                    depth: 51,
                    ..fine()
                },
                Err("`depth` is 51; it can be 1 to 50"),
            ),
            (
                ResearchSettings {
                    checkpoint_every: Some(0),
                    ..fine()
                },
                Err("`checkpoint_every` is 0; it can be 1 to 1000"),
            ),
            (
                ResearchSettings {
                    checkpoint_cost: Some(0),
                    ..fine()
                },
                Err("`checkpoint_cost` is 0; it is a sum of money"),
            ),
            (
                ResearchSettings {
                    window: 100,
                    ..fine()
                },
                Err("`window` is 100 tokens; less than 4000 leaves no room for what is read"),
            ),
        ];
        for (settings, expected) in table {
            assert_eq!(settings.check(), expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn parts_are_read_by_their_names() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
        }
        let error = "judge".parse::<Role>().err();
        let expected = "`judge` is no part of a research run; there are researcher, compressor, supervisor, red_team, writer";
        assert_eq!(error.as_deref(), Some(expected));
    }
}
