//! Commands: a node, a subgraph or the caller says what to write and where to go.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Desk {
    team: String,
    #[reduce(add)]
    seen: u32,
    #[reduce(append)]
    log: Vec<String>,
}

const SEND: Each<u32> = Each::new("send");

async fn log(_: &Desk, ctx: &Ctx) -> Result<Update<Desk>> {
    Ok(Desk::update().log([format!("{}@{}", ctx.node(), ctx.superstep())]))
}

async fn sent(n: u32, _: &Desk, _: &Ctx) -> Result<Update<Desk>> {
    Ok(Desk::update().log([format!("sent {n}")]))
}

/// Goes where the state says.
async fn triage(desk: &Desk, _: &Ctx) -> Result<Command<Desk>> {
    let update = Desk::update().seen(1).log(["triage".to_owned()]);
    let command = Command::update(update);
    Ok(match &*desk.team {
        "both" => command.and_goto("billing").and_goto("support"),
        "sends" => command
            .and_goto_all(SEND.send_all([2, 1]))
            .and_goto("billing"),
        "end" => command.and_goto(END),
        "end and billing" => command.and_goto(END).and_goto("billing"),
        "nowhere" => command,
        "ghost" => command.and_goto("ghost"),
        _ => command.and_goto("billing"),
    })
}

fn desk() -> Graph<Desk> {
    Graph::<Desk>::new("desk")
        .node("triage", triage)
        .node("support", log)
        .node("billing", log)
        .each(SEND, sent)
        .start("triage")
        .commands("triage", ["billing", "support", SEND.name(), END])
        .end(["billing", "support", SEND.name()])
        .build()
        .unwrap()
}

// 32, 26, 36.
#[tokio::test]
async fn a_command_writes_and_goes_in_one_superstep() {
    let table: [(&str, &[&str]); 5] = [
        ("one", &["triage", "billing@1"]),
        ("both", &["triage", "support@1", "billing@1"]),
        ("sends", &["triage", "billing@1", "sent 2", "sent 1"]),
        ("end", &["triage"]),
        ("end and billing", &["triage", "billing@1"]),
    ];
    for (team, expected) in table {
        let state = desk().invoke(Desk::update().team(team)).await.unwrap();
        assert_eq!(
            (state.log, state.seen),
            (expected.iter().map(ToString::to_string).collect(), 1),
            "{team}"
        );
    }
}

// 32, ours: a command without a target is an error.
#[tokio::test]
async fn a_command_that_goes_nowhere_or_astray_fails_the_run() {
    let error = async |team: &'static str| {
        let result = desk().invoke(Desk::update().team(team)).await;
        result.unwrap_err().to_string()
    };
    assert_eq!(
        error("nowhere").await,
        "`triage` chose no target; to end there, choose END"
    );
    assert_eq!(
        error("ghost").await,
        "`triage` went to `ghost`, which it did not declare (declared: billing, support, send, END)"
    );
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Room {
    #[reduce(append)]
    notes: Vec<String>,
    exit: String,
}

async fn decide(room: &Room, ctx: &Ctx) -> Result<Update<Room>> {
    Ok(Room::update()
        .notes([format!("decided in {}", room.notes.len())])
        .exit(if ctx.namespace().is_empty() {
            "billing"
        } else {
            "support"
        }))
}

/// A room of `depth` rooms, one in the other; the innermost decides where the desk goes on.
fn rooms(depth: usize) -> Graph<Room> {
    async fn other(_: &Room, _: &Ctx) -> Result<Update<Room>> {
        Ok(Room::update().notes(["went astray".to_owned()]))
    }
    async fn passed(_: &Room, _: &Ctx) -> Result<Update<Room>> {
        Ok(Room::update().notes(["passed on".to_owned()]))
    }
    if depth == 1 {
        let room = Graph::<Room>::new("room").node("decide", decide);
        return room.start("decide").end("decide").build().unwrap();
    }
    let inner = rooms(depth - 1).mapped(
        |_: &Room| Room::update().notes(["entered".to_owned()]),
        |inner: Room| {
            Command::update(Room::update().notes(inner.notes).exit(inner.exit)).and_goto("passed")
        },
    );
    Graph::<Room>::new("room")
        .node("inner", inner)
        .node("other", other)
        .node("passed", passed)
        .start("inner")
        .commands("inner", ["other", "passed"])
        .end(["other", "passed"])
        .build()
        .unwrap()
}

fn desk_with_rooms(depth: usize, policy: Policy) -> Builder<Desk> {
    let room = rooms(depth).mapped(
        |_: &Desk| Room::update(),
        |room: Room| {
            let target: Name = room.exit.into();
            Command::update(Desk::update().seen(10).log(room.notes)).and_goto(target)
        },
    );
    Graph::<Desk>::new("desk")
        .node("room", room)
        .node("support", log)
        .node("billing", log)
        .start("room")
        .commands("room", ["support", "billing"])
        .policy("room", policy)
        .end(["support", "billing"])
}

// 34.
#[tokio::test]
async fn a_subgraph_one_two_or_three_levels_deep_jumps_in_its_parent() {
    let table: [&[&str]; 3] = [
        &["decided in 0", "support@1"],
        &["entered", "decided in 1", "passed on", "support@1"],
        &[
            "entered",
            "entered",
            "decided in 1",
            "passed on",
            "passed on",
            "support@1",
        ],
    ];
    for (depth, expected) in (1..).zip(table) {
        let graph = desk_with_rooms(depth, Policy::default()).build().unwrap();
        // The jump's update goes through the parent's reducer.
        let state = graph.invoke(Desk::update().seen(1)).await.unwrap();
        assert_eq!(state.log, expected, "{depth}");
        assert_eq!(state.seen, 11);
    }
}

// 34.
#[tokio::test(start_paused = true)]
async fn a_jump_out_of_a_subgraph_is_no_failure_to_be_retried_timed_or_handled() {
    let policy = Policy {
        attempts: 3,
        timeout: Some(Duration::from_secs(1)),
        idle: Some(Duration::from_secs(1)),
        on_error: Some("billing".into()),
        ..Policy::default()
    };
    let graph = desk_with_rooms(1, policy).build().unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let state = thread.run(Desk::update()).await.unwrap().done().unwrap();
    assert_eq!(state.log, ["decided in 0", "support@1"]);
}

// 34.
#[tokio::test]
async fn a_subgraph_over_the_same_state_decides_by_the_state_it_ends_in() {
    async fn assign(desk: &Desk, ctx: &Ctx) -> Result<Update<Desk>> {
        let team = if desk.seen > 1 { "billing" } else { "support" };
        Ok(Desk::update()
            .team(team)
            .log([ctx.node().to_owned()])
            .seen(1))
    }
    let inner = Graph::<Desk>::new("inner")
        .node("assign", assign)
        .start("assign")
        .end("assign")
        .build()
        .unwrap();
    let graph = Graph::<Desk>::new("desk")
        .node(
            "inner",
            inner.shared_goto(|d: &Desk| -> Name { d.team.clone().into() }),
        )
        .node("support", log)
        .node("billing", log)
        .start("inner")
        .commands("inner", ["support", "billing"])
        .end(["support", "billing"])
        .build()
        .unwrap();
    for (seen, next) in [(0, "support@1"), (2, "billing@1")] {
        let state = graph.invoke(Desk::update().seen(seen)).await.unwrap();
        // Its own changes only: nothing the parent had is added twice.
        assert_eq!(
            (state.log, state.seen),
            (vec!["assign".to_owned(), next.to_owned()], seen + 1)
        );
    }
}

// 35.
#[tokio::test]
async fn a_command_from_outside_writes_and_jumps_on_a_thread_that_exists_and_on_one_that_does_not()
{
    let store = MemoryStore::shared();
    let thread = desk().thread(&store, "old");
    thread
        .run(Desk::update().team("end"))
        .await
        .unwrap()
        .done()
        .unwrap();
    let command = Command::update(Desk::update().seen(5)).and_goto("support");
    let state = thread.command(command).await.unwrap().done().unwrap();
    let expected = Desk {
        team: "end".to_owned(),
        seen: 6,
        log: vec!["triage".to_owned(), "support@2".to_owned()],
    };
    assert_eq!(state, expected);
    let supersteps: Vec<_> = thread
        .history()
        .await
        .unwrap()
        .into_iter()
        .map(|e| (e.metadata.source, e.metadata.superstep))
        .collect();
    let loops = Source::Loop;
    assert_eq!(
        supersteps,
        [
            (loops, 2),
            (Source::Input, 1),
            (loops, 0),
            (Source::Input, -1)
        ]
    );

    let fresh = desk().thread(&store, "new");
    let command = Command::goto(SEND.send(4)).and_goto("billing");
    let state = fresh.command(command).await.unwrap().done().unwrap();
    assert_eq!(state.log, ["billing@0", "sent 4"]);
}

// 35.
#[tokio::test]
async fn a_command_from_outside_with_an_update_alone_begins_at_the_start_and_to_the_end_runs_nothing()
 {
    let store = MemoryStore::shared();
    let thread = desk().thread(&store, "t");
    let update = Command::update(Desk::update().team("end"));
    let state = thread.command(update).await.unwrap().done().unwrap();
    assert_eq!(state.log, ["triage"]);
    let state = thread
        .command(Command::update(Desk::update().seen(9)).and_goto(END))
        .await
        .unwrap()
        .done()
        .unwrap();
    assert_eq!((state.log.len(), state.seen), (1, 10));
    let saved = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!((saved.finished, &saved.next[..]), (true, &[][..]));
}

// 35.
#[tokio::test]
async fn a_command_from_outside_to_a_node_that_is_none_is_refused_and_changes_nothing() {
    let thread = desk().thread(&MemoryStore::shared(), "t");
    let command = Command::update(Desk::update().seen(1)).and_goto("ghost");
    let error = thread.command(command).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`__start__` went to `ghost`, which it did not declare (declared: triage, support, billing, send, END)"
    );
    assert_eq!(thread.history().await.unwrap(), []);
}

// 37.
#[tokio::test]
async fn a_breakpoint_before_the_target_of_a_command_stops_there() {
    let thread = desk().thread(&MemoryStore::shared(), "t");
    let outcome = thread
        .run(Desk::update())
        .pause_before("billing")
        .await
        .unwrap();
    let Outcome::Stopped { state, next, why } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(state.log, ["triage"]);
    assert_eq!((next, why), (vec!["billing".into()], StoppedBy::Breakpoint));
    // A command from outside stops there too, and resuming passes.
    let jump = thread
        .command(Command::goto("billing"))
        .pause_before("billing");
    assert!(matches!(jump.await, Ok(Outcome::Stopped { .. })));
    let state = thread.resume().pause_before("billing").await.unwrap();
    assert_eq!(state.done().unwrap().log, ["triage", "billing@2"]);
}

// 38.
#[tokio::test]
async fn an_empty_command_from_outside_is_an_error() {
    let thread = desk().thread(&MemoryStore::shared(), "t");
    let error = thread.command(Command::update(Desk::update())).await;
    assert!(matches!(error, Err(Error::EmptyCommand)));
    assert_eq!(thread.history().await.unwrap(), []);
}

// 33: that a node with a command has no edges besides is shown in `build.rs`.
#[tokio::test]
async fn commands_of_finished_tasks_are_kept_when_a_sibling_fails() {
    let tries = Arc::new(AtomicUsize::new(0));
    async fn fail_once(tries: &Arc<AtomicUsize>, _: &Desk, _: &Ctx) -> Result<Update<Desk>> {
        if tries.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(NodeError::msg("no"));
        }
        Ok(Desk::update())
    }
    let graph = Graph::<Desk>::new("desk")
        .node("triage", triage)
        .node("fail", with(tries, fail_once))
        .node("billing", log)
        .node("support", log)
        .each(SEND, sent)
        .start(["triage", "fail"])
        .commands("triage", ["billing", "support", SEND.name(), END])
        .end(["fail", "billing", "support", SEND.name()])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let error = thread.run(Desk::update().team("sends")).await.unwrap_err();
    assert_eq!(error.to_string(), "node `fail` failed: no");
    let state = thread.resume().await.unwrap().done().unwrap();
    assert_eq!(
        (state.log.join(", "), state.seen),
        ("triage, billing@1, sent 2, sent 1".to_owned(), 1)
    );
}
