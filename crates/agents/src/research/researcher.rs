//! One researcher: asks its model, makes the calls it wants, asks again, and puts what was found in short.
//!
//! A graph of its own with a state of its own; the supervisor's graph runs it once for each topic, in parallel. It
//! never fails for what a model, a tool or a budget does: then it ends with what it has, and says why. Bounds are kept
//! here, whatever the model says: searches, rounds, going in circles. At a bound each call that is left open gets its
//! answer, the model is asked once more without tools, and the work is put in short.

mod hands;

use super::crew::{Crew, packed, phase};
use super::desk::way;
use super::prompt;
use super::reading::{marks_in, short, without_thoughts};
use super::settings::Role;
use super::state::{Finding, Note, ResearchState, ResearcherState};
use super::tally::{REMINDER, SEARCH, Tally};
use crate::asking::{Asking, Early};
use crate::ending::Ending;
use crate::event::ResearcherDone;
use crate::tool_node::ToolNode;
use crate::tools_condition::calls;
use crate::{AgentEventData, Error};
use hands::Hands;
use paraph_gateway::Stop;
use paraph_graph::{Ctx, Each, Goto, Graph, State, Update, with};
use paraph_models::{Body, ChatRequest, Message, ToolSpec, ToolStatus, estimate_text};
use std::sync::Arc;

const LLM_CALL: &str = "llm_call";
const TOOL_NODE: Each<usize> = Each::new("tool_node");
const COMPRESS: &str = "compress_research";

/// How many characters of each source stand in for what nobody put in short.
const EXCERPT: usize = 400;

/// How many characters of what a search failed by are kept.
const WHY: usize = 300;

/// What the rest of a request needs beside the notes, in tokens.
const BESIDE_NOTES: usize = 1_500;

/// The graph of a researcher.
pub(super) fn graph(crew: &Arc<Crew>) -> Result<Graph<ResearcherState>, Error> {
    let public = ["compressed_research", "raw_notes", "researcher_messages"];
    Ok(Graph::<ResearcherState>::new("researcher")
        .node(LLM_CALL, with(crew.clone(), llm_call))
        .each(TOOL_NODE, ToolNode::of_agent(Hands(crew.clone())))
        .node(COMPRESS, with(crew.clone(), compress_research))
        .start(LLM_CALL)
        .branch(LLM_CALL, should_continue, [TOOL_NODE.name(), COMPRESS])
        .branch(TOOL_NODE, after_tools, [LLM_CALL, COMPRESS])
        .end(COMPRESS)
        .label(LLM_CALL, TOOL_NODE.name(), "calls tools")
        .label(LLM_CALL, COMPRESS, "is done")
        .label(TOOL_NODE.name(), LLM_CALL, "has results")
        .label(TOOL_NODE.name(), COMPRESS, "stops")
        .output(public)
        .build()?)
}

/// To the tools as long as the model wants some, and then to the end of the work.
fn should_continue(state: &ResearcherState) -> Goto {
    let last = state.researcher_messages.last();
    let wanted = last.filter(|last| last.is_ai()).map_or(0, calls);
    match (&state.ending, wanted) {
        (None, 1..) => TOOL_NODE.send_all(0..wanted).into(),
        _ => COMPRESS.into(),
    }
}

fn after_tools(state: &ResearcherState) -> &'static str {
    match state.ending {
        Some(_) => COMPRESS,
        None => LLM_CALL,
    }
}

impl ResearcherState {
    fn tally(&self) -> Tally {
        Tally::of(self.researcher_messages.iter(), marks_in)
    }
}

/// A way to this researcher's models and calls, out of its share.
async fn asking<'r>(
    crew: &Crew,
    state: &ResearcherState,
    ctx: &'r Ctx,
) -> Result<Asking<'r>, Early> {
    let branch = crew.branch(part(ctx), &state.assignment.share);
    Asking::in_branch(ctx, &branch, state.spent.as_ref(), state.step).await
}

/// The name of the part of the run: the subgraph's namespace, which stays the same whoever drives it.
fn part(ctx: &Ctx) -> &str {
    ctx.namespace()
}

/// Why the model gets no tools any more, if it does not.
fn bound_of(crew: &Crew, state: &ResearcherState, tally: &Tally) -> Option<(&'static str, Stop)> {
    let assignment = &state.assignment;
    if tally.searches > assignment.searches {
        return Some((
            "more searches were asked for than there are",
            Stop::MaxToolCalls,
        ));
    }
    if state.tool_call_iterations >= crew.settings.iterations {
        return Some(("all rounds of tools are used up", Stop::MaxSteps));
    }
    tally
        .is_idle()
        .then_some(("the last rounds brought nothing new", Stop::NoProgress))
}

/// Asks the model what to do next, or for its last words.
async fn llm_call(
    crew: &Arc<Crew>,
    state: &ResearcherState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearcherState>> {
    if state.step == 0 {
        ctx.emit(AgentEventData::Researcher {
            number: state.assignment.number,
            topic: short(&state.research_topic, 160),
            done: None,
        })
        .await?;
    }
    let asking = match asking(crew, state, ctx).await {
        Ok(asking) => asking,
        Err(early) => return Ok(ResearcherState::update().ending(Some(early.ending()?))),
    };
    let spent = asking.clone();
    let update = match decide(crew, state, asking, ctx).await {
        Ok(update) => update,
        Err(early) => ResearcherState::update().ending(Some(early.ending()?)),
    };
    Ok(update.spent(Some(spent.spent(ctx))))
}

async fn decide(
    crew: &Crew,
    state: &ResearcherState,
    asking: Asking<'_>,
    ctx: &Ctx,
) -> Result<Update<ResearcherState>, Early> {
    let tally = state.tally();
    let bound = bound_of(crew, state, &tally);
    let date = crew.date();
    let instructions = match &bound {
        Some((why, _)) => prompt::last_words(why, &date),
        None => prompt::researcher(&state.assignment, &tally, &date),
    };
    let may_search = tally.searches < state.assignment.searches;
    let offered = |tool: &&ToolSpec| bound.is_none() && (may_search || tool.name != SEARCH);
    let tools: Vec<_> = crew.field_tools.iter().filter(offered).cloned().collect();
    let sound = asking
        .sound(ctx, state.step, &state.researcher_messages)
        .await?;
    let session = asking.session.clone();
    let request = |room| packed(instructions.clone(), sound.clone(), &tools, room);
    let (step, reply) = crew.ask(Role::Researcher, asking, ctx, request).await?;
    let mut message = reply.message;
    if bound.is_some() && calls(&message) > 0 {
        // It has no tools, and asks for some all the same.
        message = Message::ai(message.text().into_owned());
    }
    let wanted = calls(&message);
    let names = message.tool_calls().iter().map(|call| call.name.clone());
    ctx.emit(AgentEventData::Decided {
        step,
        kind: if wanted == 0 { "final" } else { "tool" }.to_owned(),
        tools: names.collect(),
        stop_reason: None,
    })
    .await?;
    let update = ResearcherState::update()
        .step(step)
        .slots(session.budget().left().tool_calls)
        .researcher_messages([message]);
    let update = match bound {
        Some((_, Stop::NoProgress)) => update.ending(Some(Stop::NoProgress.into())),
        _ => update,
    };
    Ok(match wanted {
        0 => update,
        _ => update.tool_call_iterations(state.tool_call_iterations.saturating_add(1)),
    })
}

/// Puts what was found in short: by a model, and if that cannot be had, by the beginnings of what was read.
async fn compress_research(
    crew: &Arc<Crew>,
    state: &ResearcherState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearcherState>> {
    phase(ctx, "compressing", &state.research_topic).await?;
    let update = ResearcherState::update();
    let asking = match asking(crew, state, ctx).await {
        Ok(asking) => asking,
        // Its share could not be had: there was nothing to do it with.
        Err(early) => {
            let ending = early.ending()?;
            let done = done(state, Some(&ending));
            tell(ctx, state, done).await?;
            return Ok(update
                .ending(Some(ending))
                .compressed_research(excerpts(state)));
        }
    };
    let last = asking.clone();
    let text = match in_short(crew, state, asking, ctx).await {
        Ok(text) => text,
        Err(early) => {
            // What stopped the researcher itself is the reason that counts.
            let _ = early.ending()?;
            None
        }
    };
    let spent = last.spent(ctx);
    match last.end_branch(part(ctx)).await {
        Ok(()) => {}
        Err(early) => {
            let _ = early.ending()?;
        }
    }
    tell(ctx, state, done(state, state.ending.as_ref())).await?;
    Ok(update
        .compressed_research(text.unwrap_or_else(|| excerpts(state)))
        .spent(Some(spent)))
}

/// Nothing if nothing was read, or nothing came of it.
async fn in_short(
    crew: &Crew,
    state: &ResearcherState,
    asking: Asking<'_>,
    ctx: &Ctx,
) -> Result<Option<String>, Early> {
    if state.sources.is_empty() {
        return Ok(None);
    }
    let closing = closing_words(state);
    let instructions = prompt::compressor(&crew.date());
    let request = |room: usize| {
        let notes = newest(&state.raw_notes, room.saturating_sub(BESIDE_NOTES));
        let text = prompt::to_compress(&state.research_topic, &closing, &notes);
        ChatRequest::new([Message::system(instructions.clone()), Message::human(text)])
    };
    let (_, reply) = crew.ask(Role::Compressor, asking, ctx, request).await?;
    let text = without_thoughts(&reply.message.text()).to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// What the researcher wrote at the end.
fn closing_words(state: &ResearcherState) -> String {
    let last = state.researcher_messages.last();
    let said = last.filter(|last| last.is_ai() && calls(last) == 0);
    said.map(|said| without_thoughts(&said.text()).to_owned())
        .unwrap_or_default()
}

/// The newest notes that keep within so many tokens; of one that is too long by itself, its beginning.
fn newest(notes: &[String], room: usize) -> String {
    let mut left = room;
    let mut kept = Vec::new();
    for note in notes.iter().rev() {
        let tokens = estimate_text(note);
        if tokens > left {
            if kept.is_empty() {
                kept.push(short(note, left.saturating_mul(2)));
            }
            break;
        }
        left -= tokens;
        kept.push(note.clone());
    }
    kept.reverse();
    kept.join("\n\n")
}

/// What stands in for what nobody put in short.
fn excerpts(state: &ResearcherState) -> String {
    if state.sources.is_empty() {
        let closing = closing_words(state);
        let said = match closing.is_empty() {
            true => String::new(),
            false => format!(" The researcher's last words, which rest on no source: {closing}"),
        };
        return format!("Nothing was found.{said}");
    }
    let line = |source: &super::source::Source| {
        let text = source
            .versions
            .last()
            .map_or("", |version| version.text.as_str());
        format!(
            "- {}: {} [{}]",
            source.title,
            short(text.trim(), EXCERPT),
            source.id
        )
    };
    let lines: Vec<_> = state.sources.iter().map(line).collect();
    format!(
        "Beginnings of what was read, not put in short:\n{}",
        lines.join("\n")
    )
}

fn done(state: &ResearcherState, ending: Option<&Ending>) -> ResearcherDone {
    let tally = state.tally();
    ResearcherDone {
        searches: tally.searches.min(state.assignment.searches),
        searches_without_reflection: tally.unreflected,
        sources: state.sources.len() as u64,
        stop_reason: ending.map(|ending| ending.stop.clone()),
    }
}

async fn tell(
    ctx: &Ctx,
    state: &ResearcherState,
    done: ResearcherDone,
) -> Result<(), paraph_graph::NodeError> {
    ctx.emit(AgentEventData::Researcher {
        number: state.assignment.number,
        topic: short(&state.research_topic, 160),
        done: Some(done),
    })
    .await
}

/// By what the first search failed, if none of them found anything.
fn unsearched(messages: &[Message]) -> Option<String> {
    let mut first = None;
    for message in messages {
        let Body::Tool(tool) = &message.body else {
            continue;
        };
        if message.name.as_deref() != Some(SEARCH) {
            continue;
        }
        if tool.status != ToolStatus::Error {
            return None;
        }
        first = first.or(Some(message));
    }
    let text = first?.text();
    let text = text.trim_end().trim_end_matches(REMINDER).trim_end();
    let said = serde_json::from_str::<serde_json::Value>(text).ok();
    let said = said.and_then(|said| Some(said.get("message")?.as_str()?.to_owned()));
    Some(short(&said.unwrap_or_else(|| text.to_owned()), WHY))
}

/// What the run gets of a researcher: its short report as the answer to the supervisor's call, and what it read for
/// whoever makes facts of it. The supervisor never sees the latter.
pub(super) fn handed_in(state: ResearcherState) -> Update<ResearchState> {
    let done = done(&state, state.ending.as_ref());
    let failed = state.sources.is_empty();
    let unsearched = unsearched(&state.researcher_messages);
    let stopped = done.stop_reason.as_ref().map(ToString::to_string);
    let detail = state
        .ending
        .as_ref()
        .and_then(|ending| ending.detail.clone());
    let why = match (&stopped, detail) {
        (Some(stop), Some(detail)) => format!(" It stopped early: {stop} ({detail})."),
        (Some(stop), None) => format!(" It stopped early: {stop}."),
        (None, _) => String::new(),
    };
    let report = format!(
        "{}\n\n(Searches: {}, sources: {}.{why})",
        state.compressed_research, done.searches, done.sources
    );
    let assignment = &state.assignment;
    let mut answer = match failed {
        true => Message::tool_error(&assignment.call_id, report),
        false => Message::tool(&assignment.call_id, report),
    };
    answer.name = Some(super::desk::CONDUCT.to_owned());
    let number = assignment.number;
    let note = |text: String| Note {
        number,
        text,
        tries: 0,
    };
    ResearchState::update()
        .supervisor_messages([answer])
        .findings([Finding {
            number,
            topic: assignment.topic.clone(),
            text: state.compressed_research,
            searches: done.searches,
            searches_without_reflection: done.searches_without_reflection,
            sources: state
                .sources
                .iter()
                .map(|source| source.id.clone())
                .collect(),
            stopped,
            unsearched,
            failed,
        }])
        .raw_notes(state.raw_notes.into_iter().map(note).collect::<Vec<_>>())
        .sources(state.sources.0)
        .trace(state.trace)
        .way(way(
            super::CONDUCT_RESEARCH.name(),
            "the researchers have reported",
        ))
}
