//! The first nodes: what there is, what it means, and which way it goes. They ask no model.

use std::sync::Arc;

use super::classify::{Class, classify as class_of};
use super::desk::{Desk, FETCH, call, unread};
use super::evidence::{IssueEvidence, normalise};
use super::proposal::{Basis, propose};
use super::state::{TriageState, Way};
use crate::asking::{Asking, Early};
use paraph_graph::{Ctx, State, Update};
use serde_json::{Value, json};

/// Reads the issue. What cannot be read is no failure of the run: a person takes over.
pub(super) async fn fetch_evidence(
    desk: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let asking = match begun(desk, state, ctx).await {
        Ok(asking) => asking,
        Err(early) => return ended(early),
    };
    let (row, seen) = call(&asking, (ctx, None), (FETCH, &json!({}))).await?;
    let update = TriageState::update().trace([row]);
    let target = match desk.target(&state.issue_url) {
        Ok(target) => target,
        Err(stop) => return ended(stop.into()),
    };
    match seen {
        Ok(seen) => Ok(update
            .bundle(seen.artifact)
            .way(Way::of(super::FETCH, "the issue was read"))),
        Err(stop) => match unread(stop) {
            Ok(why) => Ok(update
                .evidence(Some(IssueEvidence::unreadable(target.clone(), &why)))
                .way(Way::of(super::FETCH, "the issue could not be read"))),
            Err(early) => Ok(update.ending(Some(early.ending()?))),
        },
    }
}

async fn begun<'r>(desk: &Desk, state: &TriageState, ctx: &'r Ctx) -> Result<Asking<'r>, Early> {
    desk.target(&state.issue_url)?;
    let asking = Asking::of(ctx, state.spent.as_ref(), state.step).await?;
    desk.count(&asking).await?;
    Ok(asking)
}

/// Makes evidence of what was read.
pub(super) async fn normalize_evidence(
    desk: &Arc<Desk>,
    state: &TriageState,
    _: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let update = TriageState::update().bundle(None);
    let target = match desk.target(&state.issue_url) {
        Ok(target) => target,
        Err(stop) => return ended(stop.into()),
    };
    let evidence = match (&state.evidence, &state.bundle) {
        (Some(evidence), _) => evidence.clone(),
        (None, bundle) => {
            let read: Option<Value> = bundle
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok());
            match read {
                Some(bundle) => normalise(target, &bundle),
                None => IssueEvidence::unreadable(target.clone(), "what was read is no JSON"),
            }
        }
    };
    let cause = match (evidence.incomplete.len(), evidence.hidden.len()) {
        (0, 0) => "the evidence is complete".to_owned(),
        (0, hidden) => format!("the evidence is complete; hidden texts taken out: {hidden}"),
        (missing, _) => format!("parts of the evidence that are missing: {missing}"),
    };
    Ok(update
        .evidence(Some(evidence))
        .way(Way::of(super::NORMALIZE, cause)))
}

/// Says which way the issue goes.
pub(super) async fn classify(
    desk: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let evidence = state.evidence.clone().unwrap_or_default();
    // The rules' decision is one of the run's: what was read before it is what a later proposal rests on.
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return ended(early),
    };
    match asking.session.budget().begin_step() {
        Ok(step) => step.made(),
        Err(stop) => return ended(stop.into()),
    }
    let classification = class_of(&evidence, &desk.settings);
    let proposed = (classification.class == Class::Deterministic)
        .then(|| propose(&evidence, &desk.settings, Basis::FailingChecks));
    let cause = format!("{}: {}", classification.rule, classification.why);
    Ok(TriageState::update()
        .spent(Some(asking.spent(ctx)))
        .step(state.step + 1)
        .classification(Some(classification))
        .proposed_action(proposed)
        .way(Way::of(super::CLASSIFY, cause)))
}

/// The end of a run whose node could not work.
pub(super) fn ended(early: Early) -> paraph_graph::Result<Update<TriageState>> {
    Ok(TriageState::update().ending(Some(early.ending()?)))
}
