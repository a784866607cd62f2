//! Kill switches, and grants that were revoked.

use super::Checked;
use super::scene::{Scene, action, add, refused, same, text};
use crate::action::{ActionRow, Signer, State, Vote};
use crate::approvals::{Approvals, Revocation};
use crate::kill::grant_scope;
use crate::store::{Change, Find, Guard, Kill};

pub(super) async fn switches(t: Scene) -> Checked {
    let store = t.store()?;
    let (a, b) = (t.kill("a"), t.kill("b"));
    let ours = async || -> Result<Vec<Kill>, String> {
        let all = store.kills().await.map_err(text)?;
        let mut ours: Vec<_> = all
            .into_iter()
            .filter(|k| k.scope.contains(&t.tag))
            .collect();
        ours.sort_by(|a, b| a.scope.cmp(&b.scope));
        Ok(ours)
    };
    let on = |kills: &[Kill]| Change {
        kill: kills.to_vec(),
        ..Change::default()
    };
    let off = |scopes: &[&Kill]| Change {
        unkill: scopes.iter().map(|kill| kill.scope.clone()).collect(),
        ..Change::default()
    };
    t.commit(on(&[b.clone(), a.clone()])).await?;
    same("two", ours().await?, vec![a.clone(), b.clone()])?;
    let anew = Kill {
        by: "bob".to_owned(),
        reason: "still wrong".to_owned(),
        at_ms: 2,
        ..a.clone()
    };
    t.commit(on(std::slice::from_ref(&anew))).await?;
    same("said anew", ours().await?, vec![anew.clone(), b.clone()])?;
    let alive = Guard::Alive {
        scopes: vec![t.kill("c").scope, b.scope.clone()],
    };
    let claim = || Change {
        guards: vec![alive.clone()],
        add: vec![add(&t.run("1"), "n", 1)],
        ..Change::default()
    };
    refused("one is on", store.commit(claim()).await, alive.clone())?;
    t.commit(off(&[&b, &t.kill("never")])).await?;
    same("one is left", ours().await?, vec![anew.clone()])?;
    t.commit(claim()).await?;
    // Taken away first, put on then: in one change it is on.
    t.commit(Change {
        kill: vec![a.clone()],
        ..off(&[&a])
    })
    .await?;
    same("on anew", ours().await?, vec![a.clone()])?;
    t.commit(off(&[&a])).await?;
    same("none", ours().await?, vec![])
}

pub(super) async fn grants(t: Scene) -> Checked {
    let store = t.store()?;
    let desk = Approvals::new(store.clone());
    let agent = format!("agent/of %{}", t.tag);
    let which = (agent.as_str(), "small");
    let failed = |error: crate::ApprovalError| error.to_string();
    let ours = async || -> Result<Vec<Revocation>, String> {
        let mut all = desk.revocations().await.map_err(failed)?;
        all.retain(|one| one.agent == agent);
        Ok(all)
    };
    // Something that it has signed and nobody has started, and something that is another agent's.
    let mut run = (*t.run("1")).clone();
    run.agent.clone_from(&agent);
    let (own, other) = (granted(&run.into())?, granted(&t.run("2"))?);
    t.commit(Change {
        actions: vec![own.clone(), other.clone()],
        ..Change::default()
    })
    .await?;
    let held = desk
        .revoke(which, "ann", "too many")
        .await
        .map_err(failed)?;
    same("what is held", held, 1)?;
    for (row, state) in [(&own, State::Held), (&other, State::Approved)] {
        let found = store.actions(Find::Id(row.id())).await.map_err(text)?;
        let states: Vec<_> = found.iter().map(|row| row.state).collect();
        same("where it stands", states, vec![state])?;
    }
    let revoked = ours().await?;
    let said: Vec<_> = revoked
        .iter()
        .map(|one| (one.grant.as_str(), one.by.as_str(), one.reason.as_str()))
        .collect();
    same("revoked", said, vec![("small", "ann", "too many")])?;
    let in_force = |grant: &str| Guard::Alive {
        scopes: vec![grant_scope(&agent, grant)],
    };
    let signs = |guard: Guard| Change {
        guards: vec![guard],
        add: vec![add(&t.run("1"), "n", 1)],
        ..Change::default()
    };
    let signed = store.commit(signs(in_force("small"))).await;
    refused("what it signs", signed, in_force("small"))?;
    t.commit(signs(in_force("smaller"))).await?;
    let kills = desk.kills().await.map_err(failed)?;
    same(
        "switches",
        kills.iter().any(|kill| kill.scope.contains(&t.tag)),
        false,
    )?;
    desk.restore(which, "bob", "a mistake")
        .await
        .map_err(failed)?;
    same("restored", ours().await?, vec![])?;
    t.commit(signs(in_force("small"))).await
}

/// An action that a grant called `small` has signed.
fn granted(run: &std::sync::Arc<crate::RunRef>) -> Result<ActionRow, String> {
    let mut said = action(run, "order:1", "{}")?.action.said.clone();
    said.expires_ms = u64::from(u32::MAX) * 1_000;
    let action = crate::action::Action::of(said).map_err(|error| error.to_string())?;
    let vote = Vote {
        by: Signer::Rule("small".to_owned()),
        digest: action.digest.clone(),
        at_ms: 0,
        seal: None,
    };
    Ok(ActionRow::proposed(action, Some(vote)))
}
