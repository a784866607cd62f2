//! Channels: how the writes of one superstep are folded, what stays, and what a checkpoint holds.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use paraph_graph::*;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

fn longest(best: &mut String, new: String) {
    if new.len() > best.len() {
        *best = new;
    }
}

/// Says what it was called with, so that a test sees the first value.
fn trace(text: &mut String, new: String) {
    *text = format!("({text}+{new})");
}

fn at_most_three(sum: &mut u32, new: u32) -> Result<(), String> {
    if *sum + new > 3 {
        return Err(format!("{} is more than three", *sum + new));
    }
    *sum += new;
    Ok(())
}

/// Lists of `key=value`: an item with a known key takes that item's place.
fn by_key(list: &mut Vec<String>, new: Vec<String>) -> Change {
    fn key(item: &str) -> &str {
        item.split('=').next().unwrap_or(item)
    }
    let from = list.len();
    let mut at = Vec::new();
    for item in new {
        match list.iter().position(|old| key(old) == key(&item)) {
            Some(i) => {
                list[i] = item;
                if i < from {
                    at.push(i);
                }
            }
            None => list.push(item),
        }
    }
    at.sort_unstable();
    at.dedup();
    Change::list(at, from)
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct All {
    plain: String,
    #[reduce(append)]
    list: Vec<String>,
    #[reduce(add)]
    sum: u64,
    #[reduce(max)]
    high: i32,
    #[reduce(min)]
    low: i32,
    #[reduce(merge)]
    map: BTreeMap<String, u32>,
    #[reduce(set)]
    members: BTreeSet<u32>,
    #[reduce(last)]
    latest: String,
    #[reduce(longest)]
    longest: String,
    #[reduce(trace)]
    trace: String,
    #[reduce(at_most_three)]
    small: u32,
    #[reduce(by_key)]
    pairs: Vec<String>,
}

/// A graph whose nodes all run in one superstep and write what `writes` says for their name.
fn together<F>(names: &[&'static str], write: F) -> Graph<All>
where
    F: Fn(&str) -> Update<All> + Send + Sync + Clone + 'static,
{
    async fn node<F>(write: &F, _: &All, ctx: &Ctx) -> Result<Update<All>>
    where
        F: Fn(&str) -> Update<All> + Send + Sync + 'static,
    {
        Ok(write(ctx.node()))
    }
    let mut graph = Graph::<All>::new("together");
    for name in names {
        graph = graph.node(*name, with(write.clone(), node));
    }
    graph
        .start(names.to_vec())
        .end(names.to_vec())
        .build()
        .unwrap()
}

// 10, ours: in the order of declaration, not of names.
#[tokio::test(start_paused = true)]
async fn writes_of_one_superstep_are_folded_in_the_order_of_declaration_whoever_is_first() {
    async fn late(wait: &u64, _: &All, ctx: &Ctx) -> Result<Update<All>> {
        tokio::time::sleep(Duration::from_millis(*wait)).await;
        Ok(All::update()
            .list([ctx.node().to_owned()])
            .trace(ctx.node()))
    }
    for waits in [[30, 20, 10], [10, 20, 30], [20, 30, 10]] {
        let names = ["z", "b", "a"];
        let mut graph = Graph::<All>::new("late");
        for (name, wait) in names.into_iter().zip(waits) {
            graph = graph.node(name, with(wait, late));
        }
        let graph = graph.start(["a", "b", "z"]).end(["a", "b", "z"]);
        let state = graph.build().unwrap().invoke(All::update()).await.unwrap();
        assert_eq!(state.list, names, "{waits:?}");
        assert_eq!(state.trace, "(((+z)+b)+a)", "{waits:?}");
    }
}

// 10.
#[tokio::test]
async fn every_built_in_reducer_folds_the_writes_of_two_nodes() {
    let graph = together(&["one", "two"], |node| {
        let (n, name) = if node == "one" {
            (1, "one")
        } else {
            (2, "two")
        };
        All::update()
            .sum(n)
            .high(i32::try_from(n).unwrap() - 10)
            .low(i32::try_from(n).unwrap() - 10)
            .map(BTreeMap::from([
                ("both".to_owned(), n as u32),
                (name.to_owned(), 0),
            ]))
            .members(BTreeSet::from([0, n as u32]))
            .latest(name)
            .longest(if n == 1 { "long" } else { "longer" })
    });
    let input = All::update().high(-9).sum(4);
    let state = graph.invoke(input).await.unwrap();
    let expected = All {
        sum: 7,
        // The default of the type is the first candidate.
        high: 0,
        low: -9,
        map: BTreeMap::from([
            ("both".to_owned(), 2),
            ("one".to_owned(), 0),
            ("two".to_owned(), 0),
        ]),
        members: BTreeSet::from([0, 1, 2]),
        latest: "two".to_owned(),
        longest: "longer".to_owned(),
        ..All::default()
    };
    assert_eq!(state, expected);
}

// 11.
#[tokio::test]
async fn two_writers_of_a_plain_channel_are_an_error_that_names_them() {
    let graph = together(&["left", "idle", "right"], |node| match node {
        "idle" => All::update(),
        other => All::update().plain(other),
    });
    let error = graph.invoke(All::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`left` and `right` both wrote `plain` in superstep 0; give it a reducer"
    );
    assert!(matches!(
        error,
        Error::TwoWriters {
            channel: "plain",
            superstep: 0,
            ..
        }
    ));
}

// 12.
#[tokio::test]
async fn a_node_that_writes_a_channel_twice_has_both_writes_folded() {
    let graph = together(&["only"], |_| {
        All::update()
            .list(["a".to_owned()])
            .list(["b".to_owned()])
            .trace("x")
            .trace("y")
            .plain("first")
            .plain("second")
    });
    let state = graph.invoke(All::update()).await.unwrap();
    assert_eq!(state.list, ["a", "b"]);
    assert_eq!(state.trace, "((+x)+y)");
    assert_eq!(state.plain, "second", "without a reducer the later wins");
}

// 13.
#[tokio::test]
async fn a_channel_nobody_wrote_has_its_default_and_the_first_write_is_folded_into_that() {
    async fn look(state: &All, _: &Ctx) -> Result<Update<All>> {
        assert_eq!(*state, All::default());
        Ok(All::update().trace("first"))
    }
    let graph = Graph::<All>::new("look")
        .node("look", look)
        .start("look")
        .end("look");
    let graph = graph.build().unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    thread.run(All::update()).await.unwrap().done().unwrap();
    let saved = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(saved.state.trace, "(+first)");
    assert_eq!(
        saved.written,
        ["trace"],
        "the others have never been written"
    );
}

// 14.
#[tokio::test]
async fn a_replacement_wins_over_siblings_and_later_writes_go_on_from_it() {
    let graph = together(&["a", "b", "c"], |node| match node {
        "b" => All::update()
            .replace_list(vec!["new".to_owned()])
            .list(["more".to_owned()]),
        other => All::update().list([other.to_owned()]),
    });
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let input = All::update().list(["old".to_owned()]);
    let state = thread.run(input).await.unwrap().done().unwrap();
    assert_eq!(state.list, ["new", "more"]);

    let append = together(&["a"], |node| All::update().list([node.to_owned()]));
    let later = append.thread(&MemoryStore::shared(), "t");
    let input = All::update()
        .list(["x".to_owned()])
        .replace_list(vec!["y".to_owned()]);
    let state = later.run(input).await.unwrap().done().unwrap();
    assert_eq!(state.list, ["y", "a"]);
}

// 14.
#[tokio::test]
async fn two_replacements_in_one_superstep_are_an_error() {
    let graph = together(&["a", "b"], |node| {
        All::update().replace_list(vec![node.to_owned()])
    });
    let error = graph.invoke(All::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` and `b` both wrote `list` in superstep 0; give it a reducer"
    );
}

// 14.
#[tokio::test]
async fn replacements_and_repeated_writes_have_a_form_in_json() {
    let json = json!({
        "list": {"$replace": ["y"], "$each": [["z"]]},
        "trace": {"$each": ["a", "b"]},
        "map": {"$replace": {"k": 1}},
    });
    let state = together(&["idle"], |_| All::update())
        .invoke(All::update_from_json(json).unwrap())
        .await
        .unwrap();
    assert_eq!(state.list, ["y", "z"]);
    assert_eq!(state.trace, "((+a)+b)");
    assert_eq!(state.map, BTreeMap::from([("k".to_owned(), 1)]));
    let wrong = All::update_from_json(json!({"trace": {"$each": "a"}}));
    assert_eq!(
        wrong.err().unwrap().to_string(),
        "channel `trace`: `$each` takes an array"
    );
    // Readers see what it comes to.
    let update = All::update()
        .replace_list(vec!["y".to_owned()])
        .list(["z".to_owned()])
        .sum(1)
        .sum(2);
    assert_eq!(
        All::update_to_json(&update).unwrap(),
        json!({"list": ["y", "z"], "sum": 3})
    );
}

/// A map whose keys look like the engine's markers.
#[derive(State, Clone, Default, Debug, PartialEq)]
struct Loose {
    value: Value,
    #[reduce(append)]
    log: Vec<String>,
}

// 14.
#[tokio::test]
async fn a_value_that_looks_like_a_marker_survives_a_pause() {
    let tricky = json!({"$replace": 1});
    async fn write(value: &Value, _: &Loose, _: &Ctx) -> Result<Update<Loose>> {
        Ok(Loose::update().value(value.clone()))
    }
    async fn ask(_: &Loose, ctx: &Ctx) -> Result<Update<Loose>> {
        let answer: String = ctx.interrupt("go", "?")?;
        Ok(Loose::update().log([answer]))
    }
    let graph = Graph::<Loose>::new("loose")
        .node("write", with(tricky.clone(), write))
        .node("ask", ask)
        .start(["write", "ask"])
        .end(["write", "ask"])
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Loose::update()).await.unwrap();
    let id = paused.interrupts()[0].id.clone();
    assert_eq!(paused.state().value, tricky);
    let state = thread.answer(&id, "ok").await.unwrap().done().unwrap();
    let expected = Loose {
        value: tricky,
        log: vec!["ok".to_owned()],
    };
    assert_eq!(state, expected);
}

#[tokio::test]
async fn a_reducer_that_refuses_a_write_stops_the_run_and_says_why() {
    let graph = together(&["two", "three"], |node| {
        All::update().small(if node == "two" { 2 } else { 3 })
    });
    let error = graph.invoke(All::update()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "channel `small` refused what `three` wrote: 5 is more than three"
    );
    let error = graph.invoke(All::update().small(4)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "channel `small` refused what `__start__` wrote: 4 is more than three"
    );
}

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Passing {
    #[reduce(untracked)]
    secret: String,
    #[reduce(append, untracked)]
    scratch: Vec<String>,
    #[reduce(ephemeral)]
    signal: Option<String>,
    #[reduce(append, ephemeral)]
    topic: Vec<String>,
    #[reduce(append)]
    log: Vec<String>,
}

async fn look(state: &Passing, ctx: &Ctx) -> Result<Update<Passing>> {
    let seen = format!(
        "{}: {} {:?} {:?}",
        ctx.node(),
        state.secret,
        state.signal,
        state.topic
    );
    Ok(Passing::update().log([seen]))
}

async fn speak(_: &Passing, ctx: &Ctx) -> Result<Update<Passing>> {
    Ok(Passing::update()
        .signal(Some("now".to_owned()))
        .topic([ctx.node().to_owned()]))
}

// 15.
#[tokio::test]
async fn an_untracked_value_is_seen_in_its_run_and_is_in_no_checkpoint() {
    let graph = Graph::<Passing>::new("untracked")
        .node("first", look)
        .node("second", look)
        .start("first")
        .edge("first", "second")
        .end("second")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let input = Passing::update().secret("s3cret").scratch(["x".to_owned()]);
    let state = thread.run(input).await.unwrap().done().unwrap();
    assert_eq!(
        state.log,
        ["first: s3cret None []", "second: s3cret None []"]
    );
    for entry in thread.history().await.unwrap() {
        let saved = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
        assert_eq!((&*saved.state.secret, saved.state.scratch.len()), ("", 0));
        assert!(!saved.written.contains(&"secret"));
    }
    let state = thread.run(Passing::update()).await.unwrap().done().unwrap();
    assert_eq!(state.log[2..], ["first:  None []", "second:  None []"]);
}

// 15.
#[tokio::test]
async fn an_untracked_value_is_in_no_note_of_a_task_either() {
    async fn whisper(_: &Passing, _: &Ctx) -> Result<Update<Passing>> {
        Ok(Passing::update().secret("s3cret").log(["done".to_owned()]))
    }
    async fn fail(_: &Passing, _: &Ctx) -> Result<Update<Passing>> {
        Err(NodeError::msg("no"))
    }
    let graph = Graph::<Passing>::new("untracked")
        .node("whisper", whisper)
        .node("fail", fail)
        .start(["whisper", "fail"])
        .end(["whisper", "fail"])
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let thread = graph.thread(&store, "t");
    assert!(matches!(
        thread.run(Passing::update()).await,
        Err(Error::Node { .. })
    ));
    let scope = Scope {
        thread: "t".into(),
        namespace: "".into(),
    };
    let loaded = store.load(&scope, None).await.unwrap().unwrap();
    let done: Vec<_> = loaded
        .notes
        .iter()
        .filter(|n| n.kind == NoteKind::Done)
        .map(|n| n.json.as_str())
        .collect();
    assert_eq!(done, [r#"{"update":{"log":["done"]}}"#]);
}

// 15.
#[tokio::test]
async fn an_untracked_value_comes_out_of_a_cache_as_the_node_wrote_it() {
    async fn whisper(_: &Passing, _: &Ctx) -> Result<Update<Passing>> {
        Ok(Passing::update()
            .secret("s3cret")
            .replace_scratch(vec!["x".to_owned()])
            .scratch(["y".to_owned()]))
    }
    let cached = Policy {
        cache: Some(Duration::from_secs(60)),
        ..Policy::default()
    };
    let graph = Graph::<Passing>::new("cached")
        .node("whisper", whisper)
        .policy("whisper", cached)
        .start("whisper")
        .end("whisper")
        .build()
        .unwrap();
    let first = graph.invoke(Passing::update()).await.unwrap();
    assert_eq!((&*first.secret, first.scratch.len()), ("s3cret", 2));
    assert_eq!(graph.invoke(Passing::update()).await.unwrap(), first);
}

// 16.
#[tokio::test]
async fn an_ephemeral_value_lasts_for_one_superstep_and_a_list_of_them_is_a_topic() {
    let graph = Graph::<Passing>::new("ephemeral")
        .node("before", look)
        .node("speak", speak)
        .node("echo", speak_in_turn)
        .node("after", look)
        .node("later", look)
        .start("before")
        .edge("before", ["speak", "echo"])
        .join(["speak", "echo"], "after")
        .edge("after", "later")
        .end("later")
        .build()
        .unwrap();
    let input = Passing::update().signal(Some("input".to_owned()));
    let expected = [
        r#"before:  Some("input") []"#,
        r#"after:  Some("now") ["speak", "echo"]"#,
        "later:  None []",
    ];
    let state = graph.invoke(input.clone()).await.unwrap();
    assert_eq!(state.log, expected);
    assert_eq!((state.signal, state.topic.len()), (None, 0));

    // The same when the run is cut and brought back before each superstep.
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let mut outcome = thread.run(input).pause_before("*").await.unwrap();
    while let Outcome::Stopped { .. } = outcome {
        outcome = thread.resume().pause_before("*").await.unwrap();
    }
    assert_eq!(outcome.done().unwrap().log, expected);
}

async fn speak_in_turn(_: &Passing, ctx: &Ctx) -> Result<Update<Passing>> {
    Ok(Passing::update().topic([ctx.node().to_owned()]))
}

/// Writes one item per superstep, in turn new, edited, replaced.
async fn edit(state: &All, _: &Ctx) -> Result<Update<All>> {
    let n = state.sum;
    let update = All::update().sum(1);
    Ok(match n {
        0 | 1 => update.pairs([format!("k{n}={n}")]).list([n.to_string()]),
        2 => update.pairs(["k0=edited".to_owned(), "k2=2".to_owned()]),
        3 => update.replace_list(vec!["reset".to_owned()]),
        4 => update
            .list(["again".to_owned()])
            .pairs(["k0=twice".to_owned()]),
        _ => update.pairs(["k2=last".to_owned(), "k1=last".to_owned()]),
    })
}

fn editing() -> Graph<All> {
    Graph::<All>::new("edit")
        .node("edit", edit)
        .start("edit")
        .branch(
            "edit",
            |s| if s.sum < 6 { "edit" } else { END },
            ["edit", END],
        )
        .build()
        .unwrap()
}

fn lists(state: &All) -> (String, String) {
    (state.pairs.join(" "), state.list.join(" "))
}

// 17.
#[tokio::test]
async fn lists_saved_as_differences_read_back_as_they_were_at_every_checkpoint() {
    let expected = [
        ("", ""),
        ("k0=0", "0"),
        ("k0=0 k1=1", "0 1"),
        ("k0=edited k1=1 k2=2", "0 1"),
        ("k0=edited k1=1 k2=2", "reset"),
        ("k0=twice k1=1 k2=2", "reset again"),
        ("k0=twice k1=last k2=last", "reset again"),
    ];
    for durability in [Durability::Sync, Durability::Async] {
        let thread = editing().thread(&MemoryStore::shared(), "t");
        let run = thread.run(All::update()).durability(durability);
        run.await.unwrap().done().unwrap();
        let mut history = thread.history().await.unwrap();
        history.reverse();
        let mut seen = Vec::new();
        for entry in &history {
            let saved = thread.snapshot(Some(entry.id)).await.unwrap().unwrap();
            seen.push(lists(&saved.state));
        }
        let expected: Vec<_> = expected.map(|(p, l)| (p.to_owned(), l.to_owned())).into();
        assert_eq!(seen, expected);

        // The way from any of them ends as the first way did.
        for entry in &history[..6] {
            thread.fork(entry.id).await.unwrap();
            let state = thread.resume().await.unwrap().done().unwrap();
            assert_eq!(lists(&state), expected[6]);
        }
    }
}

// 17.
#[tokio::test]
async fn differences_add_up_over_what_was_held_back_and_what_was_written_from_outside() {
    let thread = editing().thread(&MemoryStore::shared(), "t");
    let run = thread.run(All::update()).durability(Durability::Exit);
    let end = lists(&run.await.unwrap().done().unwrap());
    let read = async || {
        let saved = thread.snapshot(None).await.unwrap().unwrap();
        lists(&saved.state)
    };
    assert_eq!(read().await, end);
    assert_eq!(thread.history().await.unwrap().len(), 1);
    let update = All::update().pairs(["k1=outside".to_owned(), "k3=3".to_owned()]);
    thread.update(update).await.unwrap();
    assert_eq!(
        read().await,
        (
            "k0=twice k1=outside k2=last k3=3".to_owned(),
            "reset again".to_owned()
        )
    );
}

// 17.
#[tokio::test]
async fn renamed_and_newly_reduced_channels_read_older_checkpoints_and_go_on_from_them() {
    #[derive(State, Clone, Default, Debug, PartialEq)]
    struct Before {
        items: Vec<u32>,
        title: String,
    }
    #[derive(State, Clone, Default, Debug, PartialEq)]
    #[state(was(title = "headline", items = "entries"))]
    struct After {
        #[reduce(append)]
        entries: Vec<u32>,
        headline: String,
        added: bool,
    }
    let before = Graph::<Before>::new("g")
        .node("only", async |_: &Before, _: &Ctx| {
            Ok(Before::update().items([1, 2]).title("old"))
        })
        .start("only")
        .end("only")
        .build()
        .unwrap();
    let after = Graph::<After>::new("g")
        .node("only", async |_: &After, _: &Ctx| {
            Ok(After::update().entries([3]))
        })
        .start("only")
        .end("only")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let run = before.thread(&store, "t").run(Before::update());
    run.await.unwrap().done().unwrap();
    let thread = after.thread(&store, "t");
    let input = After::update().headline("new");
    for entries in [vec![1, 2, 3], vec![1, 2, 3, 3]] {
        let expected = After {
            entries,
            headline: "new".to_owned(),
            added: false,
        };
        let run = thread.run(input.clone());
        assert_eq!(run.await.unwrap().done().unwrap(), expected);
        let saved = thread.snapshot(None).await.unwrap().unwrap();
        assert_eq!(*saved.state, expected);
    }
}

// 17.
#[tokio::test]
async fn a_channel_that_the_state_no_longer_has_is_an_error_that_names_it() {
    #[derive(State, Clone, Default, Debug, PartialEq)]
    struct Less {
        plain: String,
    }
    let full = together(&["only"], |_| All::update().plain("p").sum(1));
    let store = MemoryStore::shared();
    let run = full.thread(&store, "t").run(All::update());
    run.await.unwrap().done().unwrap();
    let less = Graph::<Less>::new("less")
        .node("only", async |_: &Less, _: &Ctx| Ok(Less::update()))
        .start("only")
        .end("only")
        .build()
        .unwrap();
    let thread = less.thread(&store, "t");
    let error = thread.snapshot(None).await.unwrap_err();
    let Error::Corrupt { why, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        why,
        "it has a channel `sum`, which the state does not (known: plain)"
    );
}

// 39.
#[tokio::test]
async fn a_subgraph_over_the_same_state_hands_back_its_writes_and_siblings_keep_theirs() {
    async fn add(_: &All, ctx: &Ctx) -> Result<Update<All>> {
        let answer: u64 = ctx.interrupt("how many", "?")?;
        Ok(All::update()
            .sum(answer)
            .pairs(["k=sub".to_owned(), "n=sub".to_owned()])
            .list(["sub".to_owned()]))
    }
    async fn first(_: &All, _: &Ctx) -> Result<Update<All>> {
        Ok(All::update()
            .sum(1)
            .pairs(["k=first".to_owned()])
            .list(["first".to_owned()])
            .members(BTreeSet::from([7])))
    }
    async fn beside(_: &All, _: &Ctx) -> Result<Update<All>> {
        Ok(All::update()
            .sum(100)
            .pairs(["k=beside".to_owned(), "m=beside".to_owned()])
            .list(["beside".to_owned()])
            .members(BTreeSet::from([8])))
    }
    let inner = Graph::<All>::new("inner")
        .node("first", first)
        .node("add", add)
        .start("first")
        .edge("first", "add")
        .end("add")
        .build()
        .unwrap();
    let outer = Graph::<All>::new("outer")
        .node("beside", beside)
        .node("left", inner.shared())
        .node("right", inner.shared())
        .start(["beside", "left", "right"])
        .end(["beside", "left", "right"])
        .build()
        .unwrap();
    let thread = outer.thread(&MemoryStore::shared(), "t");
    let input = All::update()
        .sum(1000)
        .pairs(["k=input".to_owned()])
        .list(["input".to_owned()]);
    let outcome = thread.run(input).await.unwrap();
    // Written from outside while both subgraphs wait.
    thread.update(All::update().sum(10_000)).await.unwrap();
    let answers = outcome
        .interrupts()
        .iter()
        .map(|q| (q.id.clone(), json!(20)));
    let state = thread.answers(answers).await.unwrap().done().unwrap();
    let expected = All {
        sum: 11_142,
        pairs: ["k=sub", "m=beside", "n=sub"].map(str::to_owned).into(),
        list: ["input", "beside", "first", "sub", "first", "sub"]
            .map(str::to_owned)
            .into(),
        members: BTreeSet::from([7, 8]),
        ..All::default()
    };
    assert_eq!(state, expected);
}

// 14, 39.
#[tokio::test]
async fn a_subgraph_that_replaced_a_channel_hands_back_a_replacement() {
    async fn reset(_: &All, _: &Ctx) -> Result<Update<All>> {
        Ok(All::update()
            .replace_sum(5)
            .list(["a".to_owned()])
            .plain("x"))
    }
    async fn more(all: &All, _: &Ctx) -> Result<Update<All>> {
        assert_eq!(all.sum, 5);
        Ok(All::update()
            .sum(1)
            .replace_list(vec!["b".to_owned()])
            .plain("y"))
    }
    let inner = Graph::<All>::new("inner")
        .node("reset", reset)
        .node("more", more)
        .start("reset")
        .edge("reset", "more")
        .end("more")
        .build()
        .unwrap();
    let outer = Graph::<All>::new("outer")
        .node("sub", inner.shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    let input = All::update().sum(100).list(["input".to_owned()]);
    let state = outer.invoke(input).await.unwrap();
    let expected = All {
        sum: 6,
        list: vec!["b".to_owned()],
        plain: "y".to_owned(),
        ..All::default()
    };
    assert_eq!(state, expected);
}
