//! What becomes of raw notes: facts with their sources. Then the notes are cleared, really, and the supervisor's older
//! messages are shortened, so that what models are sent stays flat however long research goes on.
//!
//! Every note is read once. One of which no facts could be made stays for another try, and after that the beginnings of
//! its sources are taken as they are: nothing gets lost, and nothing is taken twice.

use super::PRUNE;
use super::crew::{Crew, phase};
use super::desk::way;
use super::prompt;
use super::reading::{Extracted, ids_in, short, value};
use super::settings::Role;
use super::source::Library;
use super::state::{Fact, Note, ResearchState};
use crate::asking::Asking;
use paraph_graph::{Ctx, State, Update};
use paraph_models::{
    Body, ChatRequest, Content, Message, ResponseFormat, estimate_message, estimate_text,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// After so many tries a note's sources are taken as they are.
const TRIES: u64 = 2;

/// How many characters of a source are taken as they are, and how many a fact may have.
const EXCERPT: usize = 300;
const LONGEST_FACT: usize = 600;

/// The most facts of a run.
const MOST_FACTS: usize = 1_000;

/// What the instructions need beside the notes, in tokens.
const BESIDE_NOTES: usize = 2_000;

/// Whether notes and conversation have grown so much that facts have to be made of them.
pub(super) fn is_due(state: &ResearchState, tokens: usize) -> bool {
    let notes: usize = state
        .raw_notes
        .iter()
        .map(|note| estimate_text(&note.text))
        .sum();
    let spoken: usize = state.supervisor_messages.iter().map(estimate_message).sum();
    !state.raw_notes.is_empty() && notes.saturating_add(spoken) > tokens
}

/// Makes facts of the notes.
pub(super) async fn context_pruner(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let count = state.raw_notes.len();
    phase(ctx, "pruning", &format!("{count} notes")).await?;
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(ResearchState::update().cut_short(Some(early.ending()?))),
    };
    let spent = asking.clone();
    let mut facts = Vec::new();
    let mut kept = Vec::new();
    let mut step = state.step;
    let mut alive = asking.running_out().is_none();
    for batch in batches(&state.raw_notes, crew.settings.window / 2) {
        let text = texts(&batch);
        let found = match alive {
            true => {
                // A part that was cut off would be cleared unread.
                let request = to_extract(state, &text);
                match crew.ask_once(Role::Compressor, &asking, ctx, request).await {
                    Ok((asked, reply)) => {
                        step = asked;
                        value::<Extracted>(&reply.message.text())
                    }
                    Err(early) => {
                        let _ = early.ending()?;
                        alive = asking.running_out().is_none();
                        None
                    }
                }
            }
            false => None,
        };
        match found {
            Some(found) => facts.extend(held(found, &ids_in(&text), &state.sources)),
            None => {
                for note in batch {
                    match note.tries + 1 < TRIES && alive {
                        true => kept.push(Note {
                            tries: note.tries + 1,
                            ..note
                        }),
                        false => facts.extend(as_they_are(&note, &state.sources)),
                    }
                }
            }
        }
    }
    let new = only_new(&state.knowledge_base, facts);
    let cause = format!("{} facts were made of {count} notes", new.len());
    Ok(ResearchState::update()
        .knowledge_base(new)
        .replace_raw_notes(kept)
        .supervisor_messages(shortened(state))
        .step(step)
        .spent(Some(spent.spent(ctx)))
        .way(way(PRUNE, cause)))
}

fn to_extract(state: &ResearchState, notes: &str) -> ChatRequest {
    ChatRequest {
        response_format: ResponseFormat::JsonObject,
        ..ChatRequest::new([
            Message::system(prompt::extractor()),
            Message::human(prompt::to_extract(state, notes)),
        ])
    }
}

/// Notes in groups that keep within so many tokens. A note longer than that is cut into parts: each is read.
fn batches(notes: &[Note], tokens: usize) -> Vec<Vec<Note>> {
    let room = tokens.saturating_sub(BESIDE_NOTES).max(BESIDE_NOTES);
    let mut all: Vec<Vec<Note>> = Vec::new();
    let mut left = 0;
    for note in notes.iter().flat_map(|note| parts(note, room)) {
        let size = estimate_text(&note.text);
        match all.last_mut() {
            Some(last) if size <= left => {
                left -= size;
                last.push(note);
            }
            _ => {
                left = room.saturating_sub(size);
                all.push(vec![note]);
            }
        }
    }
    all
}

/// A note in pieces that keep within so many tokens, each with the ids of the sources that are named before it.
fn parts(note: &Note, room: usize) -> Vec<Note> {
    if estimate_text(&note.text) <= room {
        return vec![note.clone()];
    }
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut tokens = 0;
    let mut named = String::new();
    for line in note.text.split_inclusive('\n') {
        // A line without an end is cut too.
        for piece in pieces(line, room) {
            let size = estimate_text(piece);
            if tokens + size > room && !part.is_empty() {
                parts.push(std::mem::take(&mut part));
                part.push_str(&named);
                tokens = estimate_text(&named);
            }
            if let Some(id) = ids_in(piece).pop() {
                named = format!("(of {id})\n");
            }
            part.push_str(piece);
            tokens += size;
        }
    }
    parts.push(part);
    let note = |text| Note {
        text,
        ..note.clone()
    };
    parts.into_iter().map(note).collect()
}

fn pieces(line: &str, room: usize) -> Vec<&str> {
    let most = room.saturating_mul(2).max(1);
    let mut rest = line;
    let mut all = Vec::new();
    while rest.len() > most {
        let at = rest
            .floor_char_boundary(most)
            .max(rest.chars().next().map_or(1, char::len_utf8));
        let (head, tail) = rest.split_at(at);
        all.push(head);
        rest = tail;
    }
    all.push(rest);
    all
}

fn texts(batch: &[Note]) -> String {
    let texts: Vec<_> = batch.iter().map(|note| note.text.as_str()).collect();
    texts.join("\n\n")
}

/// The facts that rest on sources which stood in what was read. The others are nobody's.
fn held(found: Extracted, read: &[String], library: &Library) -> Vec<Fact> {
    let fact = |fact: super::reading::ExtractedFact| {
        let known = |id: &String| read.contains(id) && library.by_id(id).is_some();
        let sources: BTreeSet<_> = fact
            .sources
            .iter()
            .flat_map(|id| ids_in(id))
            .filter(known)
            .collect();
        let text = short(fact.fact.trim(), LONGEST_FACT);
        (!text.is_empty() && !sources.is_empty()).then(|| Fact {
            text,
            sources: sources.into_iter().collect(),
        })
    };
    found.facts.into_iter().filter_map(fact).collect()
}

/// The beginnings of a note's sources.
fn as_they_are(note: &Note, library: &Library) -> Vec<Fact> {
    let sources = ids_in(&note.text);
    let fact = |id: &String| {
        let source = library.by_id(id)?;
        let text = source.versions.last()?.text.trim();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then(|| Fact {
            text: format!("{} says: {}", source.title, short(&text, EXCERPT)),
            sources: vec![id.clone()],
        })
    };
    sources.iter().filter_map(fact).collect()
}

/// Without what is known, in any case and spacing, from the same sources.
fn only_new(known: &[Fact], found: Vec<Fact>) -> Vec<Fact> {
    let key = |fact: &Fact| {
        let words: Vec<_> = fact
            .text
            .to_lowercase()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        (words.join(" "), fact.sources.clone())
    };
    let mut seen: BTreeSet<_> = known.iter().map(key).collect();
    let room = MOST_FACTS.saturating_sub(known.len());
    let new = found.into_iter().filter(|fact| seen.insert(key(fact)));
    new.take(room).collect()
}

/// The reports that the supervisor has read, in short: their facts are known now. A message keeps its place and its id.
fn shortened(state: &ResearchState) -> Vec<Message> {
    let messages = state.supervisor_messages.as_slice();
    let read = messages.iter().rposition(Message::is_ai).unwrap_or(0);
    let is_long = |message: &&Message| {
        matches!(message.body, Body::Tool(_))
            && message.name.as_deref() == Some(super::desk::CONDUCT)
    };
    let long = messages.iter().take(read).filter(is_long);
    let short = long.filter_map(|message| {
        let text = message.text();
        let short = prompt::old_finding(&text);
        (short.len() < text.len()).then(|| Message {
            content: Content::Text(short),
            ..message.clone()
        })
    });
    short.collect()
}

#[cfg(test)]
mod tests;
