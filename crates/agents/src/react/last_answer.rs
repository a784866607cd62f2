//! The last answer of a run whose budget is used up: written without tools, from what there is, out of tokens and money
//! that were kept back for it.
//!
//! Called by the model's node once a limit has ended the run. It changes nothing about the reason for which the run
//! ended, and if it cannot be had the run ends without it.

use super::{ReactState, Speaker, shown};
use crate::AgentEventData;
use crate::asking::Asking;
use crate::declared::{ContextSpec, beside, shown as within};
use crate::ending::Ending;
use crate::terms::ANSWER_TOKENS;
use paraph_gateway::Stop;
use paraph_graph::{Ctx, NodeError};
use paraph_models::{ChatRequest, Estimate, Message, ToolChoice};

/// What the model is told when its run is over but for this answer.
const NUDGE: &str = "The budget of this run is used up, and no tool can be called any more. Answer the task now, from what \
    you have found so far. Say plainly what is missing and what you could not check; invent nothing.";

/// Whether a run that ended like this may still write a last answer: a limit of its own was met, and time is left.
pub(super) fn may_follow(ending: &Ending) -> bool {
    matches!(
        ending.stop,
        Stop::MaxSteps | Stop::MaxToolCalls | Stop::MaxTokens | Stop::MaxCost
    )
}

/// The last answer; nothing if it cannot be had.
pub(super) async fn ask(
    speaker: &Speaker,
    state: &ReactState,
    (run, ctx): (&Asking<'_>, &Ctx),
    ending: &Ending,
) -> Result<Option<String>, NodeError> {
    let Some(reserve) = run.run.reserve.release() else {
        return Ok(None);
    };
    let Some(request) = request(speaker, state, reserve) else {
        return Ok(None);
    };
    ctx.emit(AgentEventData::LastAnswer {
        step: state.step,
        stop_reason: ending.stop.clone(),
    })
    .await?;
    Ok(run.aside(request).await)
}

/// A request that with its answer takes no more tokens than were kept back, of the newest messages if all are too many;
/// nothing if not even the instructions fit.
fn request(speaker: &Speaker, state: &ReactState, reserve: u64) -> Option<ChatRequest> {
    let speech = &speaker.speech;
    let answer = (reserve / 2).min(ANSWER_TOKENS);
    let answer = u32::try_from(answer).ok()?;
    let answer = speech
        .max_answer_tokens
        .map_or(answer, |most| most.min(answer));
    let around = |messages: Vec<Message>| {
        let system = Message::system(speech.instructions(state.summary.as_ref()));
        ChatRequest {
            tools: speaker.tools.clone(),
            tool_choice: ToolChoice::None,
            temperature: speech.temperature,
            max_tokens: Some(answer),
            ..ChatRequest::new([vec![system], messages, vec![Message::human(NUDGE)]].concat())
        }
    };
    let fixed = Estimate::of(&around(Vec::new())).total();
    let room = usize::try_from(reserve.saturating_sub(u64::from(answer))).ok()?;
    let room = speech
        .context
        .as_ref()
        .and_then(|context| context.max_tokens)
        .map_or(room, |most| most.min(room));
    let limits = ContextSpec {
        max_tokens: Some(room),
        max_messages: speech
            .context
            .as_ref()
            .and_then(|context| context.max_messages),
        ..ContextSpec::default()
    };
    let limits = beside(&limits, fixed).ok()?;
    let sound = paraph_models::repair(&state.messages).messages;
    let sound = sound.into_iter().map(shown).collect();
    Some(around(within(sound, &limits).messages))
}

#[cfg(test)]
mod tests;
