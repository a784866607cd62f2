//! The last nodes: what is posted once a person has signed it, and what a person is left with where nothing is.
//!
//! Only `execute` changes anything, and only by the gateway's effect. `await_approval` puts the exact bytes before people
//! and waits; it never calls an effect that was decided about.

use std::sync::Arc;

use super::desk::{Desk, POST, call};
use super::handoff::{Handoff, HandoffKind, related};
use super::investigating::search;
use super::looking::ended;
use super::proposal::ProposedAction;
use super::settings::TriageTarget;
use super::state::{TriageState, Way};
use crate::asking::{Asking, Early};
use crate::ending::Ending;
use crate::teller::Teller;
use crate::waits::{Approval, Waits};
use paraph_gateway::{ActionRow, State as Stands, Stop, Why};
use paraph_graph::{Ctx, State, Update};
use serde_json::{Value, json};

/// The name of the key of the call that posts.
const KEY: &str = "post";

/// Proposes what would be posted, and waits until it was decided about.
pub(super) async fn await_approval(
    desk: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let (asking, target, proposed) = match ready(desk, state, ctx).await {
        Ok(ready) => ready,
        Err(early) => return ended(early),
    };
    let key = ctx.key(KEY);
    let update = TriageState::update().post_key(Some(key.clone()));
    let Some(row) = desk.action(&asking, &key).await? else {
        let args = post_args(state, target, proposed);
        let (row, seen) = call(&asking, (ctx, Some(&key)), (POST, &args)).await?;
        // Nobody was asked: the call was refused before, or a standing signature has signed it.
        let update = update.trace([row]);
        return Ok(match seen {
            Ok(_) => update.way(Way::of(super::APPROVAL, "it is signed")),
            Err(stop) => update.ending(Some(stop.into())),
        });
    };
    let now_ms = desk.records.now_ms().await;
    let now_ms = now_ms.map_err(|error| paraph_graph::NodeError::msg(error.to_string()))?;
    if row.state.is_undecided() && now_ms < row.action.said.expires_ms {
        let approvals = vec![waiting(&row)];
        return Err(Teller::wait(ctx, &Waits { approvals }));
    }
    let cause = format!("it is {}", row.state);
    Ok(update.way(Way::of(super::APPROVAL, cause)))
}

async fn ready<'a>(
    desk: &'a Desk,
    state: &'a TriageState,
    ctx: &'a Ctx,
) -> Result<(Asking<'a>, &'a TriageTarget, &'a ProposedAction), Early> {
    let target = desk.target(&state.issue_url)?;
    let nothing = || Stop::Internal("there is nothing to propose".to_owned());
    let proposed = state.proposed_action.as_ref().ok_or_else(nothing)?;
    let asking = Asking::of(ctx, state.spent.as_ref(), state.step).await?;
    Ok((asking, target, proposed))
}

/// What the effect is asked to do. Where it goes is the target that a person named, and nothing else.
fn post_args(state: &TriageState, target: &TriageTarget, proposed: &ProposedAction) -> Value {
    let mut args = json!({
        "owner": target.owner,
        "repo": target.repo,
        "number": target.number,
        "comment": proposed.comment,
        "label": proposed.label,
    });
    let read = state.evidence.as_ref();
    if let Some(etag) = read.and_then(|evidence| evidence.etag.as_deref()) {
        // What was read is named, so that nobody is asked about an issue that says something else by now.
        args["etag"] = etag.into();
    }
    args
}

fn waiting(row: &ActionRow) -> Approval {
    let said = &row.action.said;
    Approval {
        id: row.id(),
        digest: row.digest.clone(),
        why: match row.state {
            Stands::Held => Why::Held,
            _ => Why::Approval,
        },
        tool: said.tool.clone(),
        says: said.says.clone(),
        expires_ms: said.expires_ms,
        due_ms: row.due_ms,
        because: None,
    }
}

/// Does what was signed, and nothing else.
pub(super) async fn execute(
    desk: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let (asking, target, proposed) = match ready(desk, state, ctx).await {
        Ok(ready) => ready,
        Err(early) => return ended(early),
    };
    let Some(key) = state.post_key.clone() else {
        return ended(Stop::Internal("nobody was asked".to_owned()).into());
    };
    let args = post_args(state, target, proposed);
    let (row, seen) = call(&asking, (ctx, Some(&key)), (POST, &args)).await?;
    let update = TriageState::update().trace([row]);
    let seen = match seen {
        Ok(seen) => seen,
        Err(stop) => {
            let cause = format!("nothing was posted: {stop}");
            return Ok(update
                .way(Way::of(super::EXECUTE, cause))
                .ending(Some(stop.into())));
        }
    };
    let action = desk.action(&asking, &key).await?;
    if let Some(row) = action.as_ref().filter(|row| row.state != Stands::Succeeded) {
        let handoff = in_words(row, &seen.text());
        return Ok(update
            .handoff(Some(handoff))
            .way(Way::of(super::EXECUTE, "a person answered in words"))
            .ending(Some(Stop::HandedOff.into())));
    }
    let result: Value = serde_json::from_str(&seen.content).unwrap_or_default();
    let posted = action.and_then(|row| posted(&row, proposed));
    let answer = told(&state.issue_url, &result);
    Ok(update
        .proposed_action(Some(posted.unwrap_or_else(|| proposed.clone())))
        .execution_result(Some(result))
        .way(Way::of(super::EXECUTE, "it was posted"))
        .ending(Some(Ending::answered(answer))))
}

/// What a person said in place of a decision.
fn in_words(row: &ActionRow, text: &str) -> Handoff {
    let how = match row.state {
        Stands::Superseded => "a person wants a change",
        _ => "a person answered in words",
    };
    Handoff {
        kind: HandoffKind::HandedOff,
        why: vec![format!("{how}: {text}")],
        related: Vec::new(),
    }
}

/// What was posted, if somebody has edited it.
fn posted(row: &ActionRow, proposed: &ProposedAction) -> Option<ProposedAction> {
    let args: Value = serde_json::from_str(&row.action.said.args.to_string()).ok()?;
    Some(ProposedAction {
        comment: args["comment"].as_str()?.to_owned(),
        label: args["label"].as_str().map(str::to_owned),
        remarks: proposed.remarks.clone(),
    })
}

/// What was done, for people.
fn told(url: &str, result: &Value) -> String {
    let address = result["comment"]["url"].as_str().unwrap_or(url);
    let label = match (&result["label"], &result["label_error"]) {
        (Value::String(label), _) => format!("; the label `{label}` was added"),
        (_, Value::String(why)) => format!("; the label could not be added: {why}"),
        (Value::Null, _) => String::new(),
        (label, _) => format!("; the label was added: {label}"),
    };
    format!("Posted: {address}{label}")
}

/// Leaves the issue to a person, with what is related if the corpus has something above its floor.
pub(super) async fn human_review(
    _: &Arc<Desk>,
    state: &TriageState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let evidence = state.evidence.clone().unwrap_or_default();
    let mut update = TriageState::update();
    let mut found = state.retrieved.clone();
    // An issue that was not read is related to nothing.
    if found.is_none() && !evidence.title.is_empty() {
        let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
            Ok(asking) => asking,
            Err(early) => return ended(early),
        };
        match search(&asking, &evidence, ctx).await? {
            Ok((searched, retrieved)) => {
                update = searched
                    .retrieved_ids(retrieved.ids())
                    .retrieved_scores(retrieved.scores());
                found = Some(retrieved);
            }
            Err(early) => return ended(early),
        }
    }
    let found = found.unwrap_or_default();
    let mut why = Vec::new();
    why.extend(state.no_diagnosis.clone());
    let classified = state.classification.as_ref();
    let classified = classified.filter(|_| state.no_diagnosis.is_none());
    why.extend(classified.map(|class| class.why.clone()));
    let handoff = Handoff {
        kind: HandoffKind::HandedOff,
        why,
        related: related(&evidence.target, &found),
    };
    Ok(update
        .handoff(Some(handoff))
        .way(Way::of(super::HUMAN, "a person takes over"))
        .ending(Some(Stop::HandedOff.into())))
}

/// Leaves an issue to a person whose diagnosis did not pass its checks.
pub(super) async fn escalate(
    state: &TriageState,
    _: &Ctx,
) -> paraph_graph::Result<Update<TriageState>> {
    let failed = state.review_result.as_ref();
    let failed: Vec<_> = failed
        .map(|review| review.checks.iter().filter(|check| !check.passed).collect())
        .unwrap_or_default();
    let names: Vec<_> = failed.iter().map(|check| check.name.as_str()).collect();
    let evidence = state.evidence.clone().unwrap_or_default();
    let retrieved = state.retrieved.clone().unwrap_or_default();
    let handoff = Handoff {
        kind: HandoffKind::Escalated,
        why: failed
            .iter()
            .map(|check| format!("{}: {}", check.name, check.why))
            .collect(),
        related: related(&evidence.target, &retrieved),
    };
    Ok(TriageState::update()
        .handoff(Some(handoff))
        .way(Way::of(super::ESCALATE, "checks did not let it pass"))
        .ending(Some(Stop::Escalated(names.join(",")).into())))
}
