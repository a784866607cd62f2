//! The live view of a research run: who looks what up, and how far it all is.
//!
//! A line for each thing that a researcher begins, behind its number; on a terminal a bar of rounds, researchers and
//! sources as well. What comes from a model or a tool is made safe to show first.

use crate::terminal::{Ink, Screen, printable_line};
use paraph_agents::AgentEventData;
use std::collections::BTreeMap;

/// The longest text of a line, in characters.
const SHOWN: usize = 160;

/// How many characters the bar has.
const BAR: u64 = 12;

/// Who is at work.
#[derive(Default)]
pub(super) struct Crew {
    /// Researchers by the engine's name of their part.
    numbers: BTreeMap<String, u64>,
    at_work: u64,
    sources: u64,
    round: u64,
    rounds: u64,
}

impl Crew {
    /// Takes an event in. Gives the bar, if this is a research run.
    pub(super) fn see(&mut self, data: &AgentEventData) -> Option<String> {
        match data {
            AgentEventData::Phase { phase, about } if phase == "supervising" => {
                let mut numbers = about
                    .split(|c: char| !c.is_ascii_digit())
                    .filter_map(|n| n.parse().ok());
                self.round = numbers.next().unwrap_or(self.round);
                self.rounds = numbers.next().unwrap_or(self.rounds);
            }
            AgentEventData::Phase { .. } => {}
            AgentEventData::Inside { namespace, event } => match &**event {
                AgentEventData::Researcher {
                    number, done: None, ..
                } => {
                    let new = self.numbers.insert(namespace.clone(), *number).is_none();
                    self.at_work += u64::from(new);
                }
                AgentEventData::Researcher {
                    done: Some(done), ..
                } => {
                    self.at_work = self.at_work.saturating_sub(1);
                    self.sources += done.sources;
                }
                _ => {}
            },
            _ => return None,
        }
        Some(self.bar())
    }

    fn bar(&self) -> String {
        let full = match self.rounds {
            0 => 0,
            rounds => (self.round.min(rounds) * BAR / rounds).min(BAR),
        };
        let (full, empty) = (full as usize, BAR.saturating_sub(full) as usize);
        format!(
            "[{}{}] round {}/{}  {} researchers at work  {} sources ",
            "#".repeat(full),
            "-".repeat(empty),
            self.round,
            self.rounds,
            self.at_work,
            self.sources
        )
    }

    /// The line of an event; none if it is part of a later one.
    pub(super) fn line(&self, screen: Screen, data: &AgentEventData) -> Option<String> {
        match data {
            AgentEventData::Phase { phase, about } => {
                let about = printable_line(about, SHOWN);
                Some(screen.paint(Ink::Dim, &format!("phase  {phase}: {about}")))
            }
            AgentEventData::Inside { namespace, event } => {
                let number = self
                    .numbers
                    .get(namespace)
                    .map_or("?".to_owned(), u64::to_string);
                let what = what(screen, event)?;
                let (branch, what) = what;
                let name = screen.paint(Ink::Dim, &format!("  {branch} r{number}"));
                Some(format!("{name}  {what}"))
            }
            _ => None,
        }
    }
}

/// What a researcher is at, and how its line hangs on the tree.
fn what(screen: Screen, event: &AgentEventData) -> Option<(&'static str, String)> {
    let text = |text: &str| printable_line(text, SHOWN);
    Some(match event {
        AgentEventData::Researcher {
            topic, done: None, ..
        } => ("+-", format!("researching {}", text(topic))),
        AgentEventData::Researcher {
            done: Some(done), ..
        } => {
            let stop = done.stop_reason.as_ref().map(|stop| {
                screen.paint(
                    Ink::Yellow,
                    &format!("  stopped early: {}", text(&stop.to_string())),
                )
            });
            let bare = match done.searches_without_reflection {
                0 => String::new(),
                n => format!(", {n} without reflection"),
            };
            let done = format!("{} searches{bare}, {} sources", done.searches, done.sources);
            let ok = screen.paint(Ink::Green, "done");
            ("`-", format!("{ok}: {done}{}", stop.unwrap_or_default()))
        }
        AgentEventData::ToolStarted { tool, args, .. } => {
            let verb = match tool.as_str() {
                "web_search" => "searching",
                "fetch_page" => "reading",
                "think" => "thinking",
                _ => "calling",
            };
            ("| ", format!("{verb} {}", text(&inner(tool, args))))
        }
        AgentEventData::ToolEnded {
            ok: false,
            tool,
            stop_reason,
            detail,
            ..
        } => {
            let why = stop_reason
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let detail = detail
                .as_deref()
                .map(|detail| format!(" ({})", text(detail)));
            let line = format!(
                "{} failed: {}{}",
                text(tool),
                text(&why),
                detail.unwrap_or_default()
            );
            ("| ", screen.paint(Ink::Yellow, &line))
        }
        AgentEventData::Phase { phase, .. } => ("| ", text(phase)),
        AgentEventData::ModelFailed {
            stop_reason,
            detail,
            ..
        } => {
            let detail = detail
                .as_deref()
                .map(|detail| format!(" ({})", text(detail)));
            let line = format!("model failed: {stop_reason}{}", detail.unwrap_or_default());
            ("| ", screen.paint(Ink::Red, &line))
        }
        _ => return None,
    })
}

/// The one argument that says what a call is about; all of them if there is none.
fn inner(tool: &str, args: &str) -> String {
    let key = match tool {
        "web_search" => "query",
        "fetch_page" => "url",
        "think" => "reflection",
        _ => return format!("{tool} {args}"),
    };
    let value: Option<serde_json::Value> = serde_json::from_str(args).ok();
    let found = value.as_ref().and_then(|value| value.get(key)?.as_str());
    // What was cut is no JSON any more.
    let cut = || {
        args.trim_start_matches(['{', '"'])
            .trim_start_matches(key)
            .trim_start_matches(['"', ':'])
            .to_owned()
    };
    found.map_or_else(cut, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paraph_agents::ResearcherDone;

    fn inside(event: AgentEventData) -> AgentEventData {
        AgentEventData::Inside {
            namespace: "conduct_research:1".to_owned(),
            event: Box::new(event),
        }
    }

    #[test]
    fn researchers_have_a_line_for_each_thing_they_begin() {
        let screen = Screen {
            live: false,
            colour: false,
        };
        let mut crew = Crew::default();
        let researcher = |done| AgentEventData::Researcher {
            number: 2,
            topic: "chunks".to_owned(),
            done,
        };
        let called = |tool: &str, args: &str| AgentEventData::ToolStarted {
            step: 1,
            tool: tool.to_owned(),
            args: args.to_owned(),
            args_hash: String::new(),
        };
        let done = ResearcherDone {
            searches: 2,
            searches_without_reflection: 1,
            sources: 3,
            stop_reason: None,
        };
        let table = [
            (researcher(None), "  +- r2  researching chunks"),
            (
                called("web_search", r#"{"query":"chunk size"}"#),
                "  |  r2  searching chunk size",
            ),
            (
                called("fetch_page", r#"{"url":"local:a.md"}"#),
                "  |  r2  reading local:a.md",
            ),
            (
                called("think", r#"{"reflection":"a long one th…"#),
                "  |  r2  thinking a long one th…",
            ),
            (
                researcher(Some(done)),
                "  `- r2  done: 2 searches, 1 without reflection, 3 sources",
            ),
        ];
        for (event, expected) in table {
            let event = inside(event);
            crew.see(&event);
            assert_eq!(crew.line(screen, &event).as_deref(), Some(expected));
        }
        let round = AgentEventData::Phase {
            phase: "supervising".to_owned(),
            about: "round 3 of 6".to_owned(),
        };
        let bar = "[######------] round 3/6  0 researchers at work  3 sources ";
        assert_eq!(crew.see(&round).as_deref(), Some(bar));
    }
}
