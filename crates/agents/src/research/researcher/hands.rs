//! The tools of a researcher: which calls are made, and what is read of what they give.
//!
//! Searches above the researcher's bound are not made, and their model hears so. What a call gives is a stranger's
//! text: it is written down with the id of its source, fenced, and kept as a note and as a source.

use crate::asking::Early;
use crate::calling::Calling;
use crate::outcome::TraceRow;
use crate::research::crew::Crew;
use crate::research::source::{annotated, sources_of};
use crate::research::state::ResearcherState;
use crate::research::tally::{REMINDER, SEARCH};
use crate::tool_node::{Desk, result};
use crate::tools_condition::{OpenCall, asked};
use futures::future::BoxFuture;
use paraph_gateway::{Observation, Stop, ToolCall};
use paraph_graph::{Ctx, NodeError, State, Update};
use paraph_models::{Content, Message};
use std::sync::Arc;

pub(super) struct Hands(pub(super) Arc<Crew>);

impl Desk<ResearcherState> for Hands {
    fn calling<'a>(
        &'a self,
        state: &'a ResearcherState,
        ctx: &'a Ctx,
    ) -> BoxFuture<'a, Result<Calling<'a>, Early>> {
        Box::pin(async move {
            let asking = super::asking(&self.0, state, ctx).await?;
            Ok(asking.calling(state.step))
        })
    }

    fn slots(&self, state: &ResearcherState) -> u64 {
        state.slots
    }

    fn takes_commands(&self) -> bool {
        false
    }

    fn declines(&self, state: &ResearcherState, index: usize, call: &ToolCall) -> Option<String> {
        let most = state.assignment.searches;
        (call.name() == SEARCH && before(state, index) >= most).then(|| {
            format!("This search was not made: all {most} are used up. Write down what you have.")
        })
    }

    fn read(
        &self,
        state: &ResearcherState,
        open: &OpenCall,
        seen: &Observation,
    ) -> Result<(Message, Update<ResearcherState>), NodeError> {
        let mut message = result(open, seen)?;
        let tool = open.call.name();
        let mut update = ResearcherState::update();
        let sources = match seen.ok() {
            true => sources_of(tool, &seen.content, &self.0.now()),
            false => Vec::new(),
        };
        let mut text = message.text().into_owned();
        if !sources.is_empty() {
            text = annotated(&seen.content, &sources);
            update = update.raw_notes([text.clone()]).sources(sources);
        }
        if tool == SEARCH {
            let tally = state.tally();
            if tally.unreflected > 0 && !tally.reminded {
                text = format!("{text}\n\n{REMINDER}");
            }
        }
        message.content = Content::Text(text);
        Ok((message, update))
    }

    fn settle(
        &self,
        update: Update<ResearcherState>,
        row: Option<TraceRow>,
        stop: Option<Stop>,
    ) -> Result<Update<ResearcherState>, NodeError> {
        let update = update.trace(row);
        Ok(match stop {
            None => update,
            Some(stop) => update.ending(Some(stop.into())),
        })
    }
}

/// How many searches were asked for before this call: in earlier messages, and in its own.
fn before(state: &ResearcherState, index: usize) -> u64 {
    let newest = asked(state).map_or(&[][..], Message::tool_calls);
    let is_search = |call: &&paraph_models::ToolCall| call.name == SEARCH;
    let all = state.tally().searches;
    let here = newest.iter().filter(is_search).count() as u64;
    let ahead = newest.iter().take(index).filter(is_search).count() as u64;
    all.saturating_sub(here).saturating_add(ahead)
}
