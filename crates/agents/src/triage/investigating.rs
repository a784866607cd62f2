//! The nodes in which models speak: what is related, what may be the cause, and what speaks against it. What becomes of
//! it all is for the checks.

use std::sync::Arc;

use super::desk::{Desk, SEARCH, call, unread};
use super::diagnosis::Diagnosis;
use super::doors::Retrieved;
use super::evidence::IssueEvidence;
use super::gates::{Gated, ReviewOutcome, ReviewResult, checks};
use super::looking::ended;
use super::prompt;
use super::proposal::{Basis, propose};
use super::settings::TriageRole;
use super::state::{TriageState, Way};
use crate::asking::{Asking, Early};
use crate::research::{short, without_thoughts};
use paraph_gateway::{LlmError, Stop};
use paraph_graph::{Ctx, State, Update};
use serde_json::json;

/// How often a model is asked for a diagnosis.
const TRIES: u32 = 2;

/// The longest criticism that is kept, in characters.
const LONGEST_REASONING: usize = 4_000;

/// The longest query, in characters.
const LONGEST_QUERY: usize = 8_000;

/// Looks for related issues.
pub(super) async fn ai_investigation(
    _: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let evidence = state.evidence.clone().unwrap_or_default();
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return ended(early),
    };
    let (update, found) = match search(&asking, &evidence, ctx).await? {
        Ok(found) => found,
        Err(early) => return ended(early),
    };
    let above = found.snippets.iter().filter(|one| one.above_floor).count();
    let cause = match &found.no_floor {
        Some(why) => format!("snippets: {}; no floor: {why}", found.snippets.len()),
        None => format!(
            "snippets: {}, above the floor: {above}",
            found.snippets.len()
        ),
    };
    Ok(update
        .retrieved_ids(found.ids())
        .retrieved_scores(found.scores())
        .retrieved(Some(found))
        .way(Way::of(super::INVESTIGATE, cause)))
}

type Searched = Result<(Update<TriageState>, Retrieved), Early>;

/// What is related to the issue. A corpus that cannot be searched has no floor, and says why.
pub(super) async fn search(
    asking: &Asking<'_>,
    evidence: &IssueEvidence,
    ctx: &Ctx,
) -> paraph_graph::Result<Searched> {
    let query = short(
        &format!("{}\n\n{}", evidence.title, evidence.body),
        LONGEST_QUERY,
    );
    let (row, seen) = call(asking, (ctx, None), (SEARCH, &json!({"query": query}))).await?;
    let update = TriageState::update().trace([row]);
    let failed = |why: String| Retrieved {
        no_floor: Some(format!("the corpus could not be searched: {why}")),
        ..Retrieved::default()
    };
    let found = match seen {
        Ok(seen) => {
            let artifact = seen.artifact.unwrap_or_default();
            serde_json::from_str(&artifact)
                .unwrap_or_else(|_| failed("its answer cannot be read".to_owned()))
        }
        Err(stop) => match unread(stop) {
            Ok(why) => failed(why),
            Err(early) => return Ok(Err(early)),
        },
    };
    Ok(Ok((update, found)))
}

/// Asks for a diagnosis. What cannot be read after a second try is none, and a person takes over.
pub(super) async fn generate_diagnosis(
    desk: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking.by(desk.settings.voices.get(&TriageRole::Diagnosis)),
        Err(early) => return ended(early),
    };
    let answered = diagnosed(state, &asking, ctx).await;
    let update = TriageState::update().spent(Some(asking.spent(ctx)));
    let (step, said) = match answered {
        Ok(answered) => answered,
        Err(early) => return Ok(update.ending(Some(early.ending()?))),
    };
    let update = update.step(step);
    Ok(match said {
        Ok(diagnosis) => {
            let cause = format!(
                "severity {}, citations: {}",
                diagnosis.severity.name(),
                diagnosis.citations.len()
            );
            update
                .diagnosis(Some(diagnosis))
                .way(Way::of(super::DIAGNOSE, cause))
        }
        Err(why) => update
            .no_diagnosis(Some(format!("no diagnosis could be read: {why}")))
            .way(Way::of(
                super::DIAGNOSE,
                "the model's answer is no diagnosis",
            )),
    })
}

async fn diagnosed(
    state: &TriageState,
    asking: &Asking<'_>,
    ctx: &Ctx,
) -> Result<(u64, Result<Diagnosis, String>), Early> {
    let evidence = state.evidence.clone().unwrap_or_default();
    let retrieved = state.retrieved.clone().unwrap_or_default();
    let mut earlier: Option<(String, String)> = None;
    let mut tried = 0;
    loop {
        let told = earlier
            .as_ref()
            .map(|(answer, why)| (answer.as_str(), why.as_str()));
        let request = prompt::diagnose(&evidence, &retrieved, told);
        let begun = asking.begin_step(ctx).await?;
        let step = begun.0;
        let text = match asking.ask(ctx, begun, request).await {
            Ok(reply) => reply.message.text().into_owned(),
            // An answer without words is one that cannot be read.
            Err(Early::Ending(ending)) if ending.stop == Stop::LlmEmpty => String::new(),
            Err(early) => return Err(early),
        };
        tried += 1;
        match Diagnosis::read(&text) {
            Ok(diagnosis) => return Ok((step, Ok(diagnosis))),
            Err(why) if tried >= TRIES => return Ok((step, Err(why))),
            Err(why) => earlier = Some((text, why)),
        }
    }
}

/// Has the diagnosis criticised, and decides by code alone.
pub(super) async fn independent_review(
    desk: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let (Some(evidence), Some(diagnosis), Some(retrieved)) =
        (&state.evidence, &state.diagnosis, &state.retrieved)
    else {
        return ended(Stop::Internal("there is no diagnosis to review".to_owned()).into());
    };
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking.by(desk.settings.voices.get(&TriageRole::Reviewer)),
        Err(early) => return ended(early),
    };
    let criticism = criticised(&asking, ctx, (evidence, diagnosis, retrieved)).await;
    let update = TriageState::update().spent(Some(asking.spent(ctx)));
    let (step, criticism) = match criticism {
        Ok(criticism) => criticism,
        Err(early) => return Ok(update.ending(Some(early.ending()?))),
    };
    let basis = Basis::Diagnosed(diagnosis, retrieved);
    let proposed = propose(evidence, &desk.settings, basis);
    let made = checks(Gated {
        evidence,
        retrieved,
        diagnosis,
        label: proposed.label.as_deref(),
        criticism: criticism.as_ref().map(|_| ()).map_err(String::as_str),
        settings: &desk.settings,
    });
    let review = ReviewResult::of(made, criticism.ok());
    let approved = review.outcome == ReviewOutcome::Approve;
    let cause = match approved {
        true => format!("all {} checks hold", review.checks.len()),
        false => format!("checks that failed: {}", review.failed().join(", ")),
    };
    Ok(update
        .step(step)
        .review_result(Some(review))
        .proposed_action(approved.then_some(proposed))
        .way(Way::of(super::REVIEW, cause)))
}

type Criticised = (u64, Result<String, String>);

/// What another model says against the diagnosis, or why it says nothing.
async fn criticised(
    asking: &Asking<'_>,
    ctx: &Ctx,
    (evidence, diagnosis, retrieved): (&IssueEvidence, &Diagnosis, &Retrieved),
) -> Result<Criticised, Early> {
    let begun = asking.begin_step(ctx).await?;
    let step = begun.0;
    let request = prompt::review(evidence, diagnosis, retrieved);
    let silent = |stop: &Stop| match stop {
        // A key that is missing or a script that is at its end is a mistake of whoever runs it, not of the reviewer.
        Stop::LlmError(LlmError::Auth | LlmError::ScriptExhausted) => false,
        stop => matches!(stop, Stop::LlmEmpty | Stop::LlmTimeout | Stop::LlmError(_)),
    };
    match asking.ask(ctx, begun, request).await {
        Ok(reply) => {
            let text = reply.message.text();
            let text = short(without_thoughts(&text), LONGEST_REASONING);
            Ok((
                step,
                match text.trim().is_empty() {
                    true => Err("the answer is empty".to_owned()),
                    false => Ok(text),
                },
            ))
        }
        Err(Early::Ending(ending)) if silent(&ending.stop) => {
            Ok((step, Err(ending.stop.to_string())))
        }
        Err(early) => Err(early),
    }
}
