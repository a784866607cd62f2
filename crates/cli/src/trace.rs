//! The live trace of a run on standard error: one line for each thing that happened.
//!
//! On a terminal a spinner shows what is under way; elsewhere there are plain lines only. Everything
//! that comes from a model or a tool is made safe to show first.

mod crew;

use crate::output::note;
use crate::terminal::{Ink, Screen, printable, printable_line};
use crew::Crew;
use paraph_agents::{AgentEvent, AgentEventData, BudgetView, SpokenMessage};
use paraph_gateway::Why;
use paraph_graph::RunId;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// How often the spinner moves.
pub(crate) const TICK: Duration = Duration::from_millis(120);

const FRAMES: [&str; 4] = ["|", "/", "-", "\\"];
/// The longest name of a tool that is shown.
const NAME: usize = 60;
/// The longest detail that is shown.
const DETAIL: usize = 300;

/// Shows a run.
pub(crate) struct Trace {
    screen: Screen,
    quiet: bool,
    max_steps: Option<u64>,
    /// Several models may answer: then it is said who did.
    several: bool,
    /// What is under way, and since when.
    busy: Option<(String, Instant)>,
    /// How the model's answer went, until it is known what it decided.
    answer: String,
    budget: Option<BudgetView>,
    frame: usize,
    drawn: bool,
    /// The traces of agents that were called, by their runs.
    children: BTreeMap<RunId, Trace>,
    /// Who is at work in a research run.
    crew: Crew,
}

impl Trace {
    pub(crate) fn new(screen: Screen, quiet: bool) -> Trace {
        Trace {
            screen,
            quiet,
            max_steps: None,
            several: false,
            busy: None,
            answer: String::new(),
            budget: None,
            frame: 0,
            drawn: false,
            children: BTreeMap::new(),
            crew: Crew::default(),
        }
    }

    /// Whether there is a spinner to move.
    pub(crate) fn spins(&self) -> bool {
        self.screen.live && !self.quiet && self.busy.is_some()
    }

    /// Moves the spinner.
    pub(crate) fn tick(&mut self) {
        let Some((what, since)) = &self.busy else {
            return;
        };
        let frame = FRAMES.get(self.frame % FRAMES.len()).unwrap_or(&"-");
        self.frame += 1;
        let seconds = since.elapsed().as_secs_f32();
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r\u{1b}[2K{frame} {what} {seconds:.1} s");
        let _ = out.flush();
        self.drawn = true;
    }

    /// Takes the spinner away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\u{1b}[2K");
            let _ = out.flush();
        }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, event: &AgentEvent) {
        self.clear();
        self.busy = self.under_way(&event.data);
        if self.quiet {
            return;
        }
        if let Some(line) = self.line(event) {
            note(&line);
        }
    }

    fn under_way(&mut self, data: &AgentEventData) -> Option<(String, Instant)> {
        if let Some(progress) = self.crew.see(data) {
            return Some((
                progress,
                self.busy
                    .take()
                    .map_or_else(Instant::now, |(_, since)| since),
            ));
        }
        let what = match data {
            AgentEventData::StepStarted { step, max_steps } => {
                self.max_steps = *max_steps;
                format!("{} think", self.step(*step))
            }
            AgentEventData::ToolStarted { step, tool, .. } => {
                format!("{} act {}", self.step(*step), printable_line(tool, NAME))
            }
            AgentEventData::Message { .. } | AgentEventData::ToolProgress { .. } => {
                return self.busy.take();
            }
            _ => return None,
        };
        Some((what, Instant::now()))
    }

    fn step(&self, step: u64) -> String {
        match self.max_steps {
            Some(most) => format!("step {step}/{most}"),
            None => format!("step {step}"),
        }
    }

    /// The line of an event; none if it is part of a later one.
    fn line(&mut self, event: &AgentEvent) -> Option<String> {
        match &event.data {
            AgentEventData::RunStarted { agent, model, .. } => {
                self.several = model.contains(", else ");
                Some(format!(
                    "run    {agent}  model {}  thread {}",
                    printable_line(model, NAME),
                    printable_line(&event.thread_id, 200)
                ))
            }
            AgentEventData::Message { message, .. } => Some(spoken(self.screen, message)),
            AgentEventData::ModelAnswered { .. } => {
                self.answer = answered(&event.data, self.several);
                None
            }
            AgentEventData::ModelFailed { .. } | AgentEventData::Decided { .. } => {
                self.thought(&event.data)
            }
            AgentEventData::ModelWaits { step, what, ms } => {
                let time = ms.map_or(String::new(), |ms| {
                    format!(", about {} s", ms.div_ceil(1_000))
                });
                let what = printable_line(what, DETAIL);
                let line = format!("{}  think  waits for {what}{time}", self.step(*step));
                Some(self.screen.paint(Ink::Yellow, &line))
            }
            AgentEventData::ToolProgress {
                step, tool, data, ..
            } => {
                let said = match data.as_str() {
                    Some(text) => printable_line(text, DETAIL),
                    None => printable_line(&data.to_string(), DETAIL),
                };
                let tool = printable_line(tool, NAME);
                let line = format!("{}  act    {tool}: {said}", self.step(*step));
                Some(self.screen.paint(Ink::Dim, &line))
            }
            AgentEventData::ToolEnded { .. } => self.called(&event.data),
            AgentEventData::ApprovalAsked { step, approval } => {
                let why = match approval.why {
                    Why::Approval => "waits for a person",
                    Why::Held => "held, waits for a person",
                    Why::Unchecked => "cannot be looked at again yet, nothing was done",
                    Why::Unknown => "nobody saw what came of it",
                    Why::Killed => "waits until a kill switch is off",
                };
                Some(format!(
                    "{}  act    {}  {}  {}",
                    self.step(*step),
                    printable_line(&approval.says, DETAIL),
                    approval.id,
                    self.screen.paint(Ink::Yellow, why)
                ))
            }
            AgentEventData::Routed {
                from, to, cause, ..
            } => {
                let to = match to.is_empty() {
                    true => "end".to_owned(),
                    false => to.join(", "),
                };
                let cause = printable_line(cause, DETAIL);
                let line = format!("route  {from} -> {to}: {cause}");
                Some(self.screen.paint(Ink::Dim, &line))
            }
            AgentEventData::Summarised { .. }
            | AgentEventData::LastAnswer { .. }
            | AgentEventData::HistoryRepaired { .. } => self.conversation(&event.data),
            AgentEventData::Child { .. } => self.child(&event.data),
            AgentEventData::Budget { budget } => {
                self.budget = Some(budget.clone());
                None
            }
            AgentEventData::RunEnded { .. } => {
                let line = spent(&self.budget.take()?);
                Some(self.screen.paint(Ink::Dim, &line))
            }
            other => self.crew.line(self.screen, other),
        }
    }

    /// What was done to the conversation before it was sent.
    fn conversation(&self, data: &AgentEventData) -> Option<String> {
        let (ink, step, what) = match data {
            AgentEventData::Summarised { step, messages } => {
                let what = format!("summarised {messages} older messages");
                (Ink::Dim, step, what)
            }
            AgentEventData::LastAnswer { step, stop_reason } => {
                let what =
                    format!("{stop_reason}: a last answer, without tools, from what there is");
                (Ink::Yellow, step, what)
            }
            AgentEventData::HistoryRepaired {
                step,
                repairs,
                count,
            } => {
                let first = repairs.first().map(|first| {
                    let others = match count.saturating_sub(1) {
                        0 => String::new(),
                        more => format!(" (and {more} more)"),
                    };
                    format!(": {}{others}", printable_line(&first.to_string(), DETAIL))
                });
                let what = format!(
                    "mended the conversation that is sent{}",
                    first.unwrap_or_default()
                );
                (Ink::Yellow, step, what)
            }
            _ => return None,
        };
        let line = format!("{}  think  {what}", self.step(*step));
        Some(self.screen.paint(ink, &line))
    }

    /// A line of an agent that was called, behind its name.
    fn child(&mut self, data: &AgentEventData) -> Option<String> {
        let AgentEventData::Child {
            agent,
            child_run_id,
            child_thread_id,
            event,
        } = data
        else {
            return None;
        };
        let screen = self.screen;
        let child = self
            .children
            .entry(*child_run_id)
            .or_insert_with(|| Trace::new(screen, true));
        let event = AgentEvent {
            seq: 0,
            run_id: *child_run_id,
            thread_id: child_thread_id.clone(),
            data: AgentEventData::clone(event),
        };
        let _ = child.under_way(&event.data);
        let lines = child.line(&event)?;
        let name = screen.paint(Ink::Dim, &format!("{} |", printable_line(agent, NAME)));
        let lines: Vec<_> = lines.lines().map(|line| format!("{name} {line}")).collect();
        Some(lines.join("\n"))
    }

    /// What the model decided, or why it did not.
    fn thought(&mut self, data: &AgentEventData) -> Option<String> {
        let (step, what) = match data {
            AgentEventData::ModelFailed {
                step,
                ms,
                stop_reason,
                detail,
            } => {
                let reason = self.screen.paint(Ink::Red, &stop_reason.to_string());
                (step, format!("{ms} ms  {reason}{}", more(detail)))
            }
            AgentEventData::Decided {
                step,
                kind,
                tools,
                stop_reason,
            } => {
                let tools = tools.iter().map(|tool| printable_line(tool, NAME));
                let mut words = vec![kind.clone()];
                words.extend(tools);
                let verdict = match stop_reason {
                    None => self.screen.paint(Ink::Green, "ok"),
                    Some(stop) => self.screen.paint(Ink::Red, &stop.to_string()),
                };
                let answer = std::mem::take(&mut self.answer);
                (step, format!("{}  {answer}  {verdict}", words.join(" ")))
            }
            _ => return None,
        };
        Some(format!("{}  think  {what}", self.step(*step)))
    }

    fn called(&self, data: &AgentEventData) -> Option<String> {
        let AgentEventData::ToolEnded {
            step,
            tool,
            args,
            args_hash,
            ok,
            ms,
            stop_reason,
            detail,
        } = data
        else {
            return None;
        };
        let verdict = match (ok, stop_reason) {
            (true, _) => self.screen.paint(Ink::Green, "ok"),
            (false, Some(stop)) => {
                let reason = printable_line(&stop.to_string(), DETAIL);
                self.screen.paint(Ink::Red, &reason) + &more(detail)
            }
            (false, None) => self.screen.paint(Ink::Yellow, "not ok"),
        };
        Some(format!(
            "{}  act    {} {}  {args_hash}  {ms} ms  {verdict}",
            self.step(*step),
            printable_line(tool, NAME),
            printable_line(args, DETAIL),
        ))
    }
}

/// How an answer of the model's went: time, tokens, attempts; who gave it, if others might have; whether it is whole.
fn answered(data: &AgentEventData, several: bool) -> String {
    let AgentEventData::ModelAnswered {
        ms,
        attempts,
        input_tokens,
        output_tokens,
        estimated,
        cut_off,
        answered_by,
        ..
    } = data
    else {
        return String::new();
    };
    let mut text = format!("{ms} ms");
    if let Some(by) = answered_by.as_deref().filter(|_| several) {
        text.push_str(&format!("  by {}", printable_line(by, NAME)));
    }
    if *input_tokens > 0 || *output_tokens > 0 {
        let about = if *estimated { "about " } else { "" };
        text.push_str(&format!("  {about}{input_tokens}+{output_tokens} tokens"));
    }
    if *attempts > 1 {
        text.push_str(&format!("  {attempts} attempts"));
    }
    if *cut_off {
        text.push_str("  cut off at its longest length");
    }
    text
}

fn more(detail: &Option<String>) -> String {
    match detail {
        Some(detail) => format!("  ({})", printable_line(detail, DETAIL)),
        None => String::new(),
    }
}

fn spoken(screen: Screen, message: &SpokenMessage) -> String {
    let mut lines = String::new();
    for line in printable(&message.text).lines() {
        let role = screen.paint(Ink::Dim, &format!("{:>6} |", message.role));
        lines.push_str(&format!("{role} {line}\n"));
    }
    lines
}

/// The budget line: what is used, of how much.
pub(crate) fn spent(budget: &BudgetView) -> String {
    let of = |most: Option<u64>| most.map_or(String::new(), |most| format!("/{most}"));
    let dollars = |micro: u64| format!("{:.4}", micro as f64 / 1e6);
    let cost = match (budget.micro_dollars, budget.max_micro_dollars) {
        (None, _) => "cost unknown".to_owned(),
        (Some(used), None) => format!("cost {} USD", dollars(used)),
        (Some(used), Some(most)) => format!("cost {}/{} USD", dollars(used), dollars(most)),
    };
    format!(
        "budget steps {}{}, tool calls {}{}, {:.1}{} s, tokens {}{}, {cost}",
        budget.steps,
        of(budget.max_steps),
        budget.tool_calls,
        of(budget.max_tool_calls),
        budget.ms as f64 / 1e3,
        of(budget.max_seconds),
        budget.tokens,
        of(budget.max_tokens),
    )
}
