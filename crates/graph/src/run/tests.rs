//! The step machine by tables: no state, no clock, no futures.

use super::{DeadJoin, Hop, Interrupt, Run, Saved, Status};
use crate::{
    Name,
    topology::{Draft, DraftNode, Topology},
};
use serde_json::value::RawValue;
use std::sync::Arc;
use uuid::Uuid;

/// A topology from nodes (a `*` before the name: once per send), edges and joins.
fn topology(
    nodes: &[&'static str],
    edges: &[(&'static str, &'static str)],
    join: Option<(&[&'static str], &'static str)>,
) -> Topology {
    let mut draft = Draft::default();
    for node in nodes {
        let name = node.trim_start_matches(['*', '~']);
        draft.nodes.push(DraftNode {
            name: name.into(),
            each: node.starts_with('*'),
            commands: false,
        });
        if node.starts_with('~') {
            draft.deferred.push(name.into());
        }
        let leads_on = edges.iter().any(|(from, _)| *from == name)
            || join.is_some_and(|(from, _)| from.contains(&name));
        if !leads_on {
            draft.ends.push(name.into());
        }
        let reached =
            edges.iter().any(|(_, to)| *to == name) || join.is_some_and(|(_, to)| to == name);
        if !reached && !node.starts_with('*') {
            draft.start.push(name.into());
        }
    }
    // Nodes that are sent to are reached by a branch that the driver would evaluate.
    let sent: Vec<Name> = draft
        .nodes
        .iter()
        .filter(|n| n.each)
        .map(|n| n.name.clone())
        .collect();
    if !sent.is_empty() {
        let first = draft.start[0].clone();
        draft.ends.retain(|n| *n != first);
        draft.branches.push((first, sent));
    }
    for (from, to) in edges {
        draft.edges.push(((*from).into(), vec![(*to).into()]));
    }
    if let Some((from, to)) = join {
        let from = from.iter().map(|n| Name::from(*n)).collect();
        draft.joins.push((from, to.into()));
    }
    Topology::check(&draft).unwrap()
}

fn send(node: usize, payload: &str) -> Hop {
    Hop {
        payload: Some(Arc::from(
            RawValue::from_string(payload.to_owned()).unwrap(),
        )),
        ..Hop::to(node)
    }
}

/// The tasks as text: `node` or `node(payload)`.
fn tasks(run: &Run, topology: &Topology) -> Vec<String> {
    let text = |t: &super::Task| match &t.payload {
        None => topology.name(t.node).to_string(),
        Some(payload) => format!("{}({})", topology.name(t.node), payload.get()),
    };
    run.tasks.iter().map(text).collect()
}

fn at(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Ends all tasks and opens the next superstep.
fn step(run: &mut Run, topology: &Topology, id: u128) -> Result<(), DeadJoin> {
    let nodes: Vec<usize> = run.tasks.iter().map(|t| t.node).collect();
    for node in nodes {
        run.follow(topology, node);
    }
    run.advance(topology, at(id))
}

#[test]
fn plain_targets_come_once_in_declared_order_and_sends_after_them_in_their_own() {
    let topology = topology(&["a", "b", "*m", "c"], &[("b", "c")], None);
    let [b, m, c] = ["b", "m", "c"].map(|n| topology.find(n).unwrap());
    let mut run = Run::idle(-1);
    for hop in [
        send(m, "2"),
        Hop::to(c),
        send(m, "1"),
        Hop::to(b),
        Hop::to(c),
    ] {
        run.go(hop);
    }
    run.advance(&topology, at(1)).unwrap();
    assert_eq!(tasks(&run, &topology), ["b", "c", "m(2)", "m(1)"]);
    assert_eq!(run.superstep, 0);
    let births: Vec<_> = run
        .tasks
        .iter()
        .map(|t| (t.birth.at, t.birth.index))
        .collect();
    assert_eq!(births, [(at(1), 0), (at(1), 1), (at(1), 2), (at(1), 3)]);
}

#[test]
fn a_join_waits_for_all_its_sources_over_several_supersteps() {
    let topology = topology(
        &["a", "b", "b2", "d"],
        &[("b", "b2")],
        Some((&["a", "b2"], "d")),
    );
    let mut run = Run::idle(-1);
    run.go(Hop::to(0));
    run.go(Hop::to(1));
    run.advance(&topology, at(1)).unwrap();
    assert_eq!(tasks(&run, &topology), ["a", "b"]);
    step(&mut run, &topology, 2).unwrap();
    assert_eq!(tasks(&run, &topology), ["b2"]);
    step(&mut run, &topology, 3).unwrap();
    assert_eq!(tasks(&run, &topology), ["d"]);
    step(&mut run, &topology, 4).unwrap();
    assert!(run.is_over());
}

#[test]
fn a_join_that_can_never_be_reached_is_named_with_its_missing_sources() {
    let topology = topology(&["a", "b", "d"], &[], Some((&["a", "b"], "d")));
    let mut run = Run::idle(-1);
    run.go(Hop::to(0));
    run.advance(&topology, at(1)).unwrap();
    let dead = step(&mut run, &topology, 2).unwrap_err();
    assert_eq!(
        dead,
        DeadJoin {
            target: 2,
            missing: vec![1]
        }
    );
}

#[test]
fn a_deferred_node_runs_once_when_nothing_else_is_due() {
    let topology = topology(
        &["a", "b", "~last"],
        &[("a", "b"), ("a", "last"), ("b", "last")],
        None,
    );
    let mut run = Run::idle(-1);
    run.go(Hop::to(0));
    run.advance(&topology, at(1)).unwrap();
    step(&mut run, &topology, 2).unwrap();
    assert_eq!(tasks(&run, &topology), ["b"]);
    step(&mut run, &topology, 3).unwrap();
    assert_eq!(tasks(&run, &topology), ["last"]);
    step(&mut run, &topology, 4).unwrap();
    assert!(run.is_over());
}

#[test]
fn saving_and_restoring_between_any_two_supersteps_changes_nothing() {
    let topology = topology(
        &["a", "b", "b2", "~last", "d"],
        &[("a", "last"), ("b", "b2")],
        Some((&["a", "b2"], "d")),
    );
    let walk = |through_json: bool| {
        let mut run = Run::idle(-1);
        run.go(Hop::to(0));
        run.go(Hop::to(1));
        run.advance(&topology, at(1)).unwrap();
        let mut seen = vec![tasks(&run, &topology)];
        for id in 2..6 {
            if through_json {
                let json = serde_json::to_string(&run.save(&topology)).unwrap();
                let saved: Saved = serde_json::from_str(&json).unwrap();
                run = Run::restore(&topology, saved).unwrap();
            }
            step(&mut run, &topology, id).unwrap();
            seen.push(tasks(&run, &topology));
        }
        seen
    };
    assert_eq!(walk(true), walk(false));
}

#[test]
fn a_saved_machine_names_what_the_graph_has_lost() {
    let old = topology(&["a", "gone"], &[("a", "gone")], None);
    let new = topology(&["a"], &[], None);
    let mut run = Run::idle(-1);
    run.go(Hop::to(1));
    run.advance(&old, at(1)).unwrap();
    assert_eq!(Run::restore(&new, run.save(&old)).unwrap_err(), "gone");
}

#[test]
fn an_answer_wakes_the_task_that_asked_and_no_other() {
    let topology = topology(&["a", "b"], &[], None);
    let mut run = Run::idle(-1);
    run.go(Hop::to(0));
    run.go(Hop::to(1));
    run.advance(&topology, at(1)).unwrap();
    let ask = |id: &str, node: &'static str| Interrupt {
        id: id.to_owned(),
        node: node.into(),
        key: "k".to_owned(),
        namespace: String::new(),
        question: serde_json::Value::Null,
        answer_schema: None,
        refused: None,
    };
    run.tasks[0].status = Status::Waiting(vec![ask("1", "a"), ask("2", "a")]);
    run.tasks[1].status = Status::Waiting(vec![ask("3", "b")]);
    assert_eq!(run.answer(|id| id == "2"), [("2".to_owned(), 0)]);
    assert_eq!(run.due().collect::<Vec<_>>(), [0]);
    assert_eq!(run.waiting(), [ask("3", "b")]);
    assert_eq!(run.answer(|id| id == "2"), []);
}
