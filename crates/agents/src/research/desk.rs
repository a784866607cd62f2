//! The supervisor: decides, and has its decision carried out. Its calls pass the gateway like all others, and where
//! the run goes next is told by a command: to researchers, to a new draft, to the end, or back.

use super::crew::{Crew, packed, phase};
use super::prompt;
use super::settings::Role;
use super::state::{Assignment, ResearchState, Way};
use super::{COMPLETE, CONDUCT_RESEARCH, DRAFT, REPORT, SUPERVISOR};
use crate::asking::{Asking, Early};
use crate::calling::Called;
use crate::event::AgentEventData;
use crate::outcome::TraceRow;
use crate::spent::Spent;
use crate::teller::Teller;
use crate::tool_node::result;
use crate::tools_condition::{OpenCall, calls, open_call};
use crate::waits::Waits;
use futures::future::BoxFuture;
use paraph_gateway::{DynTool, Injections, Json, Limits, Observation, Stop, ToolError, UNLIMITED};
use paraph_graph::{Command, Ctx, NodeError, State, Update};
use paraph_models::Message;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Sends a researcher.
pub(super) const CONDUCT: &str = "conduct_research";
/// Has the draft written anew.
pub(super) const REFINE: &str = "refine_draft";
/// Ends the research.
pub(super) const FINISH: &str = "research_complete";

/// What part of the tokens and the money that are left researchers may use, in percent: the rest is for what comes
/// after them.
const FOR_RESEARCHERS: u64 = 70;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Topic {
    /// What is to be found out, with all that matters for it: the researcher knows nothing else.
    #[schemars(length(min = 3, max = 4_000))]
    topic: String,
    /// Whether a search or two will do, or it is hard.
    #[serde(default)]
    complexity: Complexity,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Complexity {
    Simple,
    #[default]
    Complex,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Change {
    /// What the new draft is to do better.
    #[schemars(length(min = 1, max = 4_000))]
    instructions: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Done {
    /// Why there is enough, in a sentence. It stands in the conversation and is not read again.
    #[serde(default, rename = "reason")]
    #[schemars(rename = "reason", length(max = 2_000))]
    _reason: Option<String>,
}

/// The supervisor's tools. They only accept what is asked: the graph does it.
pub(super) fn tools() -> Vec<DynTool> {
    vec![
        accepting::<Topic>(
            CONDUCT,
            "Send a researcher to find one thing out. It searches, reads and reports in short, with its sources.",
        ),
        accepting::<Change>(
            REFINE,
            "Have the draft of the report written anew from what was found. It is attacked afterwards.",
        ),
        accepting::<Done>(FINISH, "End the research and have the report written."),
    ]
}

/// The supervisor's `think`: what it writes down stands in its conversation.
pub(super) fn think() -> DynTool {
    let about = "Write down what is known, what is missing, and what to do next and why. Nothing happens outside.";
    let schema = schemars::schema_for!(Thought).into();
    DynTool::new(super::THINK, about, schema, async |args: Json| {
        let thought: Thought = serde_json::from_str(&args.to_string())
            .map_err(|error| ToolError::new(error.to_string()))?;
        Ok::<_, ToolError>(format!("Noted, keep to it: {}", thought.reflection))
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Thought {
    /// What is known, what is missing, and the plan from here.
    #[schemars(length(min = 1, max = 10_000))]
    reflection: String,
}

fn accepting<T: JsonSchema>(name: &str, about: &str) -> DynTool {
    let schema = schemars::schema_for!(T).into();
    DynTool::new(name, about, schema, async |_: Json| {
        Ok::<_, ToolError>("Accepted.".to_owned())
    })
}

/// Asks the supervisor what to do next. At its last decision, and when the run has not enough left, it is not asked.
pub(super) async fn supervisor(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let update = ResearchState::update();
    if state.research_iterations >= crew.settings.depth {
        let rounds = crew.settings.depth;
        return Ok(update.complete(true).way(way(
            SUPERVISOR,
            format!("all {rounds} decisions of the supervisor are made"),
        )));
    }
    let round = state.research_iterations.saturating_add(1);
    phase(
        ctx,
        "supervising",
        &format!("round {round} of {}", crew.settings.depth),
    )
    .await?;
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(update.cut_short(Some(early.ending()?))),
    };
    if let Some(stop) = asking.running_out() {
        let cause = format!("research is cut short: {stop}");
        return Ok(update
            .cut_short(Some(stop.into()))
            .way(way(SUPERVISOR, cause)));
    }
    let spent = asking.clone();
    let update = match decide(crew, state, asking, ctx).await {
        Ok(update) => update.research_iterations(round),
        Err(early) => {
            let ending = early.ending()?;
            let cause = format!("research is cut short: {}", ending.stop);
            update.cut_short(Some(ending)).way(way(SUPERVISOR, cause))
        }
    };
    Ok(update.spent(Some(spent.spent(ctx))))
}

async fn decide(
    crew: &Crew,
    state: &ResearchState,
    asking: Asking<'_>,
    ctx: &Ctx,
) -> Result<Update<ResearchState>, Early> {
    let instructions = prompt::supervisor(state, &crew.settings, &crew.date());
    let sound = asking
        .sound(ctx, state.step, &state.supervisor_messages)
        .await?;
    let request = |room| packed(instructions.clone(), sound.clone(), &crew.desk_tools, room);
    let (step, reply) = crew.ask(Role::Supervisor, asking, ctx, request).await?;
    let message = reply.message;
    let names = message.tool_calls().iter().map(|call| call.name.clone());
    let names: Vec<_> = names.collect();
    let wanted = calls(&message);
    ctx.emit(AgentEventData::Decided {
        step,
        kind: if wanted == 0 { "final" } else { "tool" }.to_owned(),
        tools: names,
        stop_reason: None,
    })
    .await?;
    let cause = match wanted {
        0 => "the supervisor wants nothing more",
        _ => "the supervisor has decided",
    };
    Ok(ResearchState::update()
        .step(step)
        .complete(wanted == 0)
        .supervisor_messages([message])
        .way(way(SUPERVISOR, cause)))
}

pub(super) fn way(from: &str, cause: impl Into<String>) -> Way {
    Way {
        from: from.to_owned(),
        cause: cause.into(),
    }
}

/// What the calls of one decision come to.
#[derive(Default)]
struct Orders {
    topics: Vec<(String, Topic)>,
    redraft: Vec<String>,
    complete: bool,
    answers: Vec<Message>,
    rows: Vec<TraceRow>,
    stop: Option<Stop>,
}

/// Carries the supervisor's decision out.
pub(super) async fn supervisor_tools(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Command<ResearchState>> {
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => {
            let update = ResearchState::update().cut_short(Some(early.ending()?));
            return Ok(Command::update(update).and_goto(REPORT));
        }
    };
    let asked = state
        .supervisor_messages
        .iter()
        .rfind(|message| message.is_ai());
    let mut orders = Orders::default();
    for index in 0..asked.map_or(0, calls) {
        let open = asked.and_then(|asked| open_call(asked, index));
        if let Some(open) = open {
            take(&mut orders, &open, index, (&asking, state.step), ctx).await?;
        }
    }
    let sent = sent(crew, state, &asking, &mut orders);
    Ok(command((crew, state), orders, sent, asking.spent(ctx)))
}

/// Has one call judged and recorded, and notes what it wants done.
async fn take(
    orders: &mut Orders,
    open: &OpenCall,
    index: usize,
    (asking, step): (&Asking<'_>, u64),
    ctx: &Ctx,
) -> Result<(), NodeError> {
    if orders.stop.is_some() {
        return Ok(());
    }
    let teller = Numbered { ctx, index };
    let calling = asking.calling(step);
    let injections = Injections::new().with(ctx);
    match calling
        .make(&teller, (&open.call, &open.id), injections)
        .await?
    {
        Called::Seen(row, seen) => {
            orders.rows.push(row);
            orders.accept(open, &seen)
        }
        Called::Stopped(row, stop) => {
            orders.rows.push(row);
            orders
                .answers
                .push(named(Message::tool_error(&open.id, stop.to_string()), open));
            orders.stop = Some(stop);
            Ok(())
        }
    }
}

fn named(message: Message, open: &OpenCall) -> Message {
    Message {
        name: Some(open.call.name().to_owned()),
        ..message
    }
}

impl Orders {
    fn accept(&mut self, open: &OpenCall, seen: &Observation) -> Result<(), NodeError> {
        let args = open.call.args().to_string();
        match open.call.name() {
            CONDUCT if seen.ok() => {
                self.topics
                    .push((open.id.clone(), serde_json::from_str(&args)?));
                return Ok(());
            }
            REFINE if seen.ok() => {
                let change: Change = serde_json::from_str(&args)?;
                self.redraft.push(change.instructions);
            }
            FINISH if seen.ok() => self.complete = true,
            _ => {}
        }
        self.answers.push(result(open, seen)?);
        Ok(())
    }
}

/// The researchers that are sent. Of those that are not, the supervisor hears why.
fn sent(
    crew: &Crew,
    state: &ResearchState,
    asking: &Asking<'_>,
    orders: &mut Orders,
) -> Vec<Assignment> {
    let settings = &crew.settings;
    let left = asking.session.budget().left();
    let may = settings.breadth.min(left.children);
    let wanted = std::mem::take(&mut orders.topics);
    let sent = (wanted.len() as u64).min(may);
    let mut assignments: Vec<Assignment> = Vec::new();
    for (call_id, topic) in wanted {
        let known = |other: &str| same_topic(other, &topic.topic);
        let twice = assignments.iter().any(|other| known(&other.topic))
            || state
                .findings
                .iter()
                .any(|old| !old.failed && known(&old.topic));
        let refusal = if orders.stop.is_some() {
            Some("No researcher was sent: the run has to end.".to_owned())
        } else if twice {
            Some(
                "No researcher was sent: this topic was given before. Read the report that came."
                    .to_owned(),
            )
        } else if left.children == 0 {
            Some("No researcher was sent: all that the run may have were sent.".to_owned())
        } else if assignments.len() as u64 >= may {
            Some(format!(
                "No researcher was sent: at most {may} work at a time. Ask again once their reports are there."
            ))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let answer = Message::tool_error(&call_id, refusal);
            orders.answers.push(Message {
                name: Some(CONDUCT.to_owned()),
                ..answer
            });
            continue;
        }
        assignments.push(Assignment {
            number: state.researchers + assignments.len() as u64 + 1,
            call_id,
            searches: match topic.complexity {
                Complexity::Simple => settings.simple_searches.min(settings.searches),
                Complexity::Complex => settings.searches,
            },
            topic: topic.topic,
            share: share(settings.researcher_limits(), &left, sent),
        });
    }
    assignments
}

/// Topics that say the same in other case or spacing.
fn same_topic(one: &str, other: &str) -> bool {
    let words = |text: &str| {
        text.to_lowercase()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    words(one) == words(other)
}

/// One of so many equal shares of what a run has left, and no more than a researcher may use anyway.
fn share(own: Limits, left: &Limits, of: u64) -> Limits {
    let part = |left: u64| match left {
        UNLIMITED => UNLIMITED,
        left => {
            u64::try_from(u128::from(left) * u128::from(FOR_RESEARCHERS) / 100).unwrap_or(left)
                / of.max(1)
        }
    };
    Limits {
        tool_calls: own.tool_calls.min(part(left.tool_calls)),
        tokens: part(left.tokens),
        micro_dollars: part(left.micro_dollars),
        seconds: match left.seconds {
            UNLIMITED => own.seconds,
            seconds => own
                .seconds
                .min((seconds.saturating_mul(FOR_RESEARCHERS) / 100).max(1)),
        },
        children: 0,
        ..own
    }
}

/// Where the run goes: research first, then the draft that was asked for; the end only when nothing else was.
fn command(
    (crew, state): (&Crew, &ResearchState),
    orders: Orders,
    sent: Vec<Assignment>,
    spent: Spent,
) -> Command<ResearchState> {
    let redraft = match orders.redraft.is_empty() {
        true => state.redraft.clone(),
        // Of several wishes none is lost, and there is one draft.
        false => Some(orders.redraft.join("\n")),
    };
    let update = ResearchState::update()
        .supervisor_messages(orders.answers)
        .trace(orders.rows)
        .spent(Some(spent))
        .redraft(redraft.clone());
    if let Some(stop) = orders.stop {
        let cause = format!("research is cut short: {stop}");
        let update = update
            .cut_short(Some(stop.into()))
            .way(way(super::TOOLS, cause));
        return Command::update(update).and_goto(REPORT);
    }
    let researchers = state.researchers + sent.len() as u64;
    let (cause, targets) = match (sent.is_empty(), redraft.is_some(), orders.complete) {
        (false, _, _) => (
            super::reading::counted(sent.len() as u64, "researcher", "", "sent"),
            CONDUCT_RESEARCH.send_all(sent),
        ),
        (true, true, _) => ("a new draft is wanted".to_owned(), vec![DRAFT.into()]),
        (true, false, true) => (
            "the supervisor has enough".to_owned(),
            vec![COMPLETE.into()],
        ),
        (true, false, false) if super::people::is_due(&crew.settings, state) => {
            ("a person is asked".to_owned(), vec![super::CHECK_IN.into()])
        }
        (true, false, false) => (
            "the supervisor has something new to read".to_owned(),
            vec![SUPERVISOR.into()],
        ),
    };
    let update = update
        .researchers(researchers)
        .way(way(super::TOOLS, cause));
    Command::update(update).and_goto_all(targets)
}

/// Passes on what one of several calls of a task says; each has a key of its own.
struct Numbered<'c> {
    ctx: &'c Ctx,
    index: usize,
}

impl Teller for Numbered<'_> {
    fn emit(&self, data: AgentEventData) -> BoxFuture<'_, Result<(), NodeError>> {
        Teller::emit(self.ctx, data)
    }

    fn chunk<'a>(&'a self, id: &'a str, shown: serde_json::Value) -> BoxFuture<'a, ()> {
        Teller::chunk(self.ctx, id, shown)
    }

    fn call_key(&self) -> String {
        self.ctx.key(&format!("call-{}", self.index))
    }

    fn wait(&self, waits: &Waits) -> NodeError {
        Teller::wait(self.ctx, waits)
    }
}
