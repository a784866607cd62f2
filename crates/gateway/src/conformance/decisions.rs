//! Decisions of people, as the desk takes them at a store.

use super::Checked;
use super::scene::{Scene, action, same, text};
use crate::action::{ActionId, ActionRow, State};
use crate::approvals::{AnchorDue, ApprovalError, Approvals, Whose};
use crate::audit::{Event, EventKind, Field, Verifier};
use crate::store::{Change, Find};
use futures::future::join_all;

/// What a person decides, and where the action stands after it.
const DECISIONS: [(&str, State); 4] = [
    ("approve", State::Approved),
    ("reject", State::Rejected),
    ("ask for a change", State::Superseded),
    ("respond", State::Answered),
];

async fn decide(
    desk: &Approvals,
    (id, digest): (ActionId, &str),
    (what, by): (&str, &str),
) -> Result<ActionRow, ApprovalError> {
    match what {
        "approve" => desk.approve(id, digest, by).await,
        "reject" => desk.reject(id, digest, by, "no").await,
        "ask for a change" => desk.ask_change(id, digest, by, "less").await,
        _ => desk.respond(id, digest, by, "it is done").await,
    }
}

pub(super) async fn decided(t: Scene) -> Checked {
    let store = t.store()?;
    let desk = Approvals::new(store.clone());
    let run = t.run("1");
    for (n, (what, state)) in DECISIONS.into_iter().enumerate() {
        let mut row = action(&run, &format!("order:{n}"), "{}")?;
        row = in_time(row)?;
        t.commit(Change {
            actions: vec![row.clone()],
            ..Change::default()
        })
        .await?;
        let which = (row.id(), row.digest.as_str());
        let done = decide(&desk, which, (what, "ann")).await;
        let done = done.map_err(|error| format!("{what}: {error}"))?;
        same(what, (done.state, done.version), (state, 2))?;
        let kept = store.actions(Find::Id(row.id())).await.map_err(text)?;
        same("what is kept", kept, vec![done.clone()])?;
        let again = decide(&desk, which, (what, "ann")).await;
        same("the same again", again, Ok(done.clone()))?;
        for (other, _) in DECISIONS.into_iter().filter(|(other, _)| *other != what) {
            let late = decide(&desk, which, (other, "bob")).await;
            let winner = Err(ApprovalError::Conflict(Box::new(done.clone())));
            same(&format!("{other} after {what}"), late, winner)?;
        }
        let wakes = store.wakes(usize::MAX).await.map_err(text)?;
        let ours = wakes.into_iter().filter(|wake| wake.action == row.id());
        let ours: Vec<_> = ours.map(|wake| (wake.version, wake.key)).collect();
        same("its wake", ours, vec![(2, row.action.said.key.clone())])?;
    }
    let entries = store
        .audit(&run.tenant, 0, usize::MAX)
        .await
        .map_err(text)?;
    let mut told = Vec::new();
    for entry in &entries {
        let event = Event::read(&entry.event)?;
        told.push((event.kind, event.state.unwrap_or_default()));
    }
    let states = DECISIONS.map(|(_, state)| (EventKind::Decided, state.name().to_owned()));
    same("the audit", told, states.to_vec())
}

/// The action with an end that is still to come.
fn in_time(row: ActionRow) -> Result<ActionRow, String> {
    let mut said = row.action.said.clone();
    said.expires_ms = u64::from(u32::MAX) * 1_000;
    let action = crate::action::Action::of(said).map_err(|error| error.to_string())?;
    Ok(ActionRow::proposed(action, None))
}

pub(super) async fn erased_and_anchored(t: Scene) -> Checked {
    let desk = Approvals::new(t.store()?);
    let tenant = t.run("").tenant.clone();
    let told = |n: u64| {
        let by = match n.is_multiple_of(2) {
            true => "person:ann",
            false => "person:bob (unverified)",
        };
        let event = Event::new(EventKind::Decided, tenant.as_str(), 1).with("n", n);
        event.draft_with([("by".to_owned(), Field::from(by))].into())
    };
    t.commit(Change {
        audit: (0..7).map(told).collect(),
        ..Change::default()
    })
    .await?;
    same(
        "due",
        desk.anchor_due(&tenant, 8).await,
        Ok(AnchorDue::In(1)),
    )?;
    let ann = Whose::User("ann".to_owned());
    for expected in [4, 0] {
        let erased = desk.erase(&tenant, &ann, "eve", "she asked").await;
        same("how many are erased", erased, Ok(expected))?;
    }
    let due = desk.anchor_due(&tenant, 8).await;
    let Ok(AnchorDue::Now(anchor)) = due else {
        return Err(format!("no anchor is due: {due:?}"));
    };
    let mut tellers = Vec::new();
    for n in 0..8 {
        let (desk, anchor) = (Approvals::new(t.handle(n)?), anchor.clone());
        tellers.push(async move { desk.anchored(&anchor, "elsewhere").await });
    }
    for told in join_all(tellers).await {
        told.map_err(|error| error.to_string())?;
    }
    let chain = t
        .store()?
        .audit(&tenant, 0, usize::MAX)
        .await
        .map_err(text)?;
    let found = Verifier::check(tenant.as_str(), &chain, &[anchor]);
    let found = found.map_err(|broken| broken.to_string())?;
    same(
        "entries, erased, untold, anchored",
        (
            found.entries,
            found.erased,
            found.erased_untold,
            found.anchored,
        ),
        (9, 4, 0, 1),
    )
}
