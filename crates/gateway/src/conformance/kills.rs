//! Kill switches.

use super::Checked;
use super::scene::{Scene, add, refused, same, text};
use crate::store::{Change, Guard, Kill};

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
