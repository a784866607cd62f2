//! Bug reports of other projects, turned around: what must not happen here. Each test names its report by
//! the letter and number of the project's own log of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

#[expect(dead_code, reason = "shared with tests of stores that live on")]
mod faulty;

use faulty::{Calls, Fault, Faulty};
use futures::future::BoxFuture;
use paraph_graph::*;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    future::IntoFuture,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    turn: u32,
    #[reduce(append)]
    log: Vec<String>,
    data: Value,
    when: String,
}

fn log(line: impl Into<String>) -> Update<Case> {
    Case::update().log([line.into()])
}

const TOOL: Each<u32> = Each::new("tool");

/// As many questions at once as the state says.
fn tools() -> Graph<Case> {
    Graph::<Case>::new("tools")
        .each(TOOL, async |n: u32, _: &Case, ctx: &Ctx| {
            let said: String = ctx.interrupt("allow", format!("tool {n}?"))?;
            Ok(log(format!("tool {n} {said}")))
        })
        .start_branch(|case: &Case| TOOL.send_all(0..case.turn), TOOL)
        .end(TOOL)
        .build()
        .unwrap()
}

async fn ask(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    let said: String = ctx.interrupt("q", ctx.node())?;
    Ok(log(format!("{} {said}", ctx.node())))
}

fn two_that_ask() -> Graph<Case> {
    Graph::<Case>::new("two")
        .node("first", ask)
        .node("second", ask)
        .start("first")
        .edge("first", "second")
        .end("second")
        .build()
        .unwrap()
}

/// The order of the numbers below `n`, by a seed.
fn shuffled(n: u32, seed: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..n).collect();
    all.sort_by_key(|i| (i + 1).wrapping_mul(seed.wrapping_mul(2_654_435_761) | 1));
    all
}

// D01, langchain-ai/langgraph#6626: two questions share an id, and answers are swapped.
#[tokio::test]
async fn d01_answers_reach_the_question_they_were_given_to_in_every_order() {
    let store = MemoryStore::shared();
    let graph = tools();
    for seed in 0..1000 {
        let count = 2 + seed % 2;
        let thread = graph.thread(&store, format!("t{seed}"));
        let paused = thread.run(Case::update().turn(count)).await.unwrap();
        let asked = paused.interrupts();
        let order = shuffled(count, seed);
        let answers = order.iter().map(|&n| {
            let question = &asked[n as usize];
            assert_eq!(question.question, format!("tool {n}?"));
            (question.id.clone(), json!(format!("answer {n}")))
        });
        let state = thread.answers(answers).await.unwrap().done().unwrap();
        let expected: Vec<_> = (0..count).map(|n| format!("tool {n} answer {n}")).collect();
        assert_eq!(state.log, expected, "order {order:?}");
    }
}

// D02, langchain-ai/langgraph#8579: one bare answer is taken while two questions are open in a subgraph.
#[tokio::test]
async fn d02_an_answer_that_names_no_question_answers_none() {
    let graph = Graph::<Case>::new("outer")
        .node("sub", tools().shared())
        .start("sub")
        .end("sub")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update().turn(2)).await.unwrap();
    assert_eq!(paused.interrupts().len(), 2);
    for bare in ["", "ok", "sub", &paused.interrupts()[0].namespace] {
        let refused = thread.answer(bare, "ok").await.unwrap_err();
        assert!(matches!(refused, Error::UnknownInterrupt(_)), "{refused}");
    }
    let now = thread.snapshot(None).await.unwrap().unwrap();
    assert_eq!(now.interrupts, paused.interrupts());
}

// D03, langchain-ai/langgraph#2870: an answer is used again for the next question.
#[tokio::test]
async fn d03_the_next_question_is_still_open_after_the_first_is_answered() {
    for durability in ALL {
        let thread = two_that_ask().thread(&MemoryStore::shared(), "t");
        let paused = thread
            .run(Case::update())
            .durability(durability)
            .await
            .unwrap();
        let answer = thread.answer(&paused.interrupts()[0].id, "A");
        let paused = answer.durability(durability).await.unwrap();
        let open: Vec<_> = paused.interrupts().iter().map(|q| &*q.node).collect();
        assert_eq!(open, ["second"]);
        assert_eq!(paused.state().log, ["first A"]);
        let again = thread.resume().durability(durability).await.unwrap();
        assert_eq!(again.interrupts(), paused.interrupts());
    }
}

// D04, langchain-ai/langgraph#6663: one question is answered twice, otherwise, from an old checkpoint.
#[tokio::test]
async fn d04_a_question_is_answered_once_but_for_a_fork_which_has_new_keys() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let graph = Graph::<Case>::new("g")
        .node(
            "act",
            with(
                keys.clone(),
                async |keys: &Arc<Mutex<Vec<String>>>, _: &Case, ctx: &Ctx| {
                    let yes: bool = ctx.interrupt("sure", "?")?;
                    keys.lock().unwrap().push(ctx.key("act"));
                    Ok(log(yes.to_string()))
                },
            ),
        )
        .start("act")
        .end("act")
        .build()
        .unwrap();
    let thread = graph.thread(&MemoryStore::shared(), "t");
    let paused = thread.run(Case::update()).await.unwrap();
    let question = paused.interrupts()[0].id.clone();
    let asked_at = thread.history().await.unwrap()[0].id;
    thread.answer(&question, true).await.unwrap();
    let second = thread.answer(&question, false).await;
    assert!(matches!(second, Err(Error::NothingToResume(_))));
    // Said to be a fork it is one: nothing that was signed under the first key fits the second.
    let forked = thread.answer(&question, false).at(asked_at).await.unwrap();
    assert_eq!(forked.state().log, ["false"]);
    let keys = keys.lock().unwrap();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
}

/// An outside system that recognises a repeated call by its key.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<BTreeMap<String, u32>>>);

// D09, langchain-ai/langgraph#8039: two writes without an order let a kill repeat what was finished.
#[tokio::test]
async fn d09_a_kill_at_any_write_leaves_each_effect_once_by_its_key() {
    async fn effect(outside: &Outside, _: &Case, ctx: &Ctx) -> Result<Update<Case>> {
        let key = ctx.key("effect");
        let times = ctx
            .step("effect", async {
                let mut all = outside.0.lock().unwrap();
                *all.entry(key).or_default() += 1;
                Ok(all.len())
            })
            .await?;
        Ok(log(format!("{} {times}", ctx.node())))
    }
    for durability in ALL {
        for fault in [Fault::Dies, Fault::DiesAfter] {
            for at in 0.. {
                let outside = Outside::default();
                let graph = ["1", "2", "3"]
                    .into_iter()
                    .fold(Graph::<Case>::new("g"), |graph, node| {
                        graph.node(node, with(outside.clone(), effect))
                    })
                    .start("1")
                    .edge("1", "2")
                    .edge("2", "3")
                    .end("3")
                    .build()
                    .unwrap();
                let store = MemoryStore::shared();
                let dying = Faulty::over(&store, Calls::Writes, at, fault);
                let killed = graph.thread(&(dying.clone() as Store), "t");
                let run = killed.run(Case::update()).durability(durability).await;
                let thread = graph.thread(&store, "t");
                let state = match thread.snapshot(None).await.unwrap() {
                    None => thread.run(Case::update()).durability(durability).await,
                    Some(now) if now.finished => Ok(Outcome::Done((*now.state).clone())),
                    Some(_) => thread.resume().durability(durability).await,
                };
                let what = format!("{durability:?}, {fault:?} at {at}");
                assert_eq!(state.unwrap().state().log.len(), 3, "{what}");
                let all = outside.0.lock().unwrap();
                // What was lost whole, with the thread itself, has other keys: nothing was acknowledged.
                let begun_anew = durability == Durability::Exit && run.is_err();
                assert!(all.len() == 3 || begun_anew, "{what}: {all:?}");
                assert!(all.values().all(|times| *times <= 2), "{what}: {all:?}");
                if dying.count() <= at {
                    assert!(all.values().all(|times| *times == 1), "{what}: {all:?}");
                    break;
                }
            }
        }
    }
}

// D18, crewAIInc/crewAI#1774: a replay from a task that asks a person asks without end.
#[tokio::test]
async fn d18_a_replay_from_a_task_that_asks_asks_once_and_completes() {
    let thread = two_that_ask().thread(&MemoryStore::shared(), "t");
    let mut paused = thread.run(Case::update()).await.unwrap();
    while let Some(question) = paused.interrupts().first().cloned() {
        paused = thread.answer(&question.id, "yes").await.unwrap();
    }
    let history = thread.history().await.unwrap();
    let before_second = history.iter().find(|e| e.metadata.superstep == 0).unwrap();
    let replayed = thread.resume().at(before_second.id).await.unwrap();
    assert_eq!(replayed.interrupts().len(), 1);
    let done = thread.answer(&replayed.interrupts()[0].id, "again").await;
    assert_eq!(
        done.unwrap().done().unwrap().log,
        ["first yes", "second again"]
    );
}

// D26, langchain-ai/langgraphjs PR#2552: one graph for all callers leaks one's state into another's.
#[tokio::test(flavor = "multi_thread")]
async fn d26_ten_thousand_runs_of_one_graph_on_fifty_threads_see_only_their_own() {
    async fn mark(case: &Case, ctx: &Ctx) -> Result<Update<Case>> {
        let own: &String = ctx.context()?;
        assert!(
            case.log.iter().all(|marker| marker == own),
            "{own}: {:?}",
            case.log
        );
        tokio::task::yield_now().await;
        Ok(log(own.clone()))
    }
    let graph = Graph::<Case>::new("g")
        .node("mark", mark)
        .start("mark")
        .end("mark")
        .build()
        .unwrap();
    let store = MemoryStore::shared();
    let runs = (0..50).map(|n| {
        let (graph, store) = (graph.clone(), store.clone());
        tokio::spawn(async move {
            for turn in 0..200 {
                let thread = graph.thread(&store, format!("t{n} {}", turn / 10));
                let run = thread.run(Case::update()).context(n.to_string());
                run.await.unwrap().done().unwrap();
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
}

// G05, langchain-ai/langgraph#8826: the rule of a time zone is lost on saving.
#[tokio::test]
async fn g05_a_time_is_saved_as_it_was_written_zone_and_all() {
    let graph = Graph::<Case>::new("g")
        .node("ask", ask)
        .start("ask")
        .end("ask")
        .build()
        .unwrap();
    let when = "2026-03-07T09:00:00-05:00[America/New_York]";
    for durability in ALL {
        let thread = graph.thread(&MemoryStore::shared(), "t");
        let run = thread.run(Case::update().when(when)).durability(durability);
        let question = run.await.unwrap().interrupts()[0].id.clone();
        let state = thread.answer(&question, "yes").await.unwrap();
        assert_eq!(state.state().when, when);
        // And the engine's own times are instants: milliseconds since the epoch.
        let entry = &thread.history().await.unwrap()[0];
        assert!(entry.metadata.created_ms > 1_600_000_000_000);
    }
}

/// A store whose file somebody has written to: one channel reads as something else.
struct Tampered(Store, &'static str);

impl Checkpoints for Tampered {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        self.0.lease(thread, claim)
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        self.0.put(scope, put)
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        self.0.note(scope, notes)
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        Box::pin(async move {
            let mut loaded = self.0.load(scope, at).await?;
            for (channel, pieces) in loaded.iter_mut().flat_map(|l| &mut l.channels) {
                if channel == "log" {
                    pieces[0].json = self.1.as_bytes().to_vec().into();
                }
            }
            Ok(loaded)
        })
    }
    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.0.history(scope, query)
    }
}

// G14, langchain-ai/langgraph#8522 (CVE-2026-28277): a saved value names a type that is then made. And
// G16, PR#7031: what cannot be read becomes null, and the run goes on without it.
#[tokio::test]
async fn g14_g16_a_saved_value_that_does_not_fit_is_an_error_that_names_its_channel() {
    let ran = Arc::new(AtomicU32::new(0));
    let graph = Graph::<Case>::new("g")
        .node(
            "a",
            with(
                ran.clone(),
                async |ran: &Arc<AtomicU32>, _: &Case, ctx: &Ctx| {
                    ran.fetch_add(1, Ordering::SeqCst);
                    Ok(log(ctx.interrupt::<String>("q", "?")?))
                },
            ),
        )
        .start("a")
        .end("a")
        .build()
        .unwrap();
    for written in [
        r#"{"lc":1,"type":"constructor","id":["os","system"],"kwargs":{"command":"true"}}"#,
        r#"{"py/object":"builtins.list"}"#,
        "null",
        "[null]",
        "[\"cut o",
        "",
    ] {
        let store = MemoryStore::shared();
        let paused = graph.thread(&store, "t").run(log("before")).await.unwrap();
        let question = &paused.interrupts()[0].id;
        let before = ran.load(Ordering::SeqCst);
        let tampered: Store = Arc::new(Tampered(store, written));
        let thread = graph.thread(&tampered, "t");
        let errors = [
            thread.snapshot(None).await.err(),
            thread.resume().await.err(),
            thread.answer(question, "yes").await.err(),
            thread.run(Case::update()).await.err(),
            thread.update(log("x")).await.err(),
        ];
        for error in errors {
            let error = error.unwrap();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains("channel `log`"), "{error}");
        }
        assert_eq!(ran.load(Ordering::SeqCst), before, "nothing was run on it");
    }
}

// G15, langchain-ai/langgraphjs#2346: what a user wrote looks like the saver's own words.
#[tokio::test]
async fn g15_what_looks_like_the_engines_own_words_is_saved_as_it_is() {
    let table = [
        json!({"lc": 1, "type": "constructor", "id": ["x"], "kwargs": {}}),
        json!({"$replace": [1, 2]}),
        json!({"$each": [1, 2]}),
        json!({"$replace": {"$replace": null}, "$each": []}),
        json!({"update": {}, "goto": [{"node": "b"}]}),
        json!({"set": [[0, 1]], "append": []}),
        json!({"__overwrite__": 1, "\u{0}": "\u{0}", "": null}),
    ];
    for data in table {
        for durability in ALL {
            let graph = Graph::<Case>::new("g")
                .node(
                    "data",
                    with(data.clone(), async |data: &Value, _: &Case, _: &Ctx| {
                        Ok(Case::update().data(data.clone()))
                    }),
                )
                .node("ask", ask)
                .node("last", async |_: &Case, _: &Ctx| Ok(log("last")))
                .start(["data", "ask"])
                .join(["data", "ask"], "last")
                .end("last")
                .build()
                .unwrap();
            let store = MemoryStore::shared();
            let thread = graph.thread(&store, "t");
            let paused = thread.run(Case::update()).durability(durability).await;
            let question = paused.unwrap().interrupts()[0].id.clone();
            let now = thread.snapshot(None).await.unwrap().unwrap();
            assert_eq!(now.state.data, data, "{durability:?}");
            let answer = thread.answer(&question, data.to_string());
            answer.durability(durability).await.unwrap();
            let now = thread.snapshot(None).await.unwrap().unwrap();
            assert_eq!(now.state.data, data, "{durability:?}");
        }
    }
}

// G18, dbos-inc/dbos-transact-java#491: a run that begins while another process recovers runs twice. And
// G20, dbos-inc/dbos-transact-ts#1205: two that recover one run see different things.
#[tokio::test(flavor = "multi_thread")]
async fn g18_g20_of_many_who_take_a_run_up_at_once_one_has_it() {
    for durability in ALL {
        let ran = Arc::new(AtomicU32::new(0));
        let graph = Graph::<Case>::new("g")
            .node("ask", ask)
            .node(
                "body",
                with(
                    ran.clone(),
                    async |ran: &Arc<AtomicU32>, _: &Case, _: &Ctx| {
                        ran.fetch_add(1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        Ok(log("body"))
                    },
                ),
            )
            .start("ask")
            .edge("ask", "body")
            .end("body")
            .build()
            .unwrap();
        let store = MemoryStore::new();
        for round in 0..20 {
            let run = RunId::fresh();
            let thread = || graph.thread(&(store.clone() as Store), format!("t{round}"));
            // All begin in the same moment; one does.
            let begin: Vec<_> = (0..8)
                .map(|_| {
                    let start = thread().run(Case::update()).run_id(run);
                    tokio::spawn(start.durability(durability).into_future())
                })
                .collect();
            let mut begun = 0;
            for start in begin {
                match start.await.unwrap() {
                    Ok(_) => begun += 1,
                    Err(Error::Conflict { holder, .. }) => assert_eq!(holder, Some(run)),
                    Err(e) => panic!("{e}"),
                }
            }
            assert!(begun >= 1);
            let now = thread().snapshot(None).await.unwrap().unwrap();
            let question = now.interrupts[0].id.clone();
            let answers: Vec<_> = (0..8)
                .map(|n| {
                    let start = thread().answer(&question, n.to_string()).run_id(run);
                    tokio::spawn(start.durability(durability).into_future())
                })
                .collect();
            let mut ends = Vec::new();
            for answer in answers {
                match answer.await.unwrap() {
                    Ok(outcome) => ends.push(outcome.done().unwrap()),
                    Err(Error::Conflict { .. } | Error::NothingToResume(_) | Error::RunOver(_)) => {
                    }
                    Err(e) => panic!("{e}"),
                }
            }
            assert_eq!(ends.len(), 1, "{durability:?}");
            let now = thread().snapshot(None).await.unwrap().unwrap();
            assert_eq!(*now.state, ends[0]);
        }
        assert_eq!(ran.load(Ordering::SeqCst), 20, "{durability:?}");
    }
}

// G22, restatedev/restate#447: what came out is saved, but not that it is over; and all is done again.
#[tokio::test]
async fn g22_a_run_that_was_over_and_had_not_said_so_is_finished_without_running_again() {
    let name = "a run that was over and had not said so is finished without running anything again";
    let rule = conformance::ENGINE_RULES
        .iter()
        .find(|rule| rule.name == name);
    let store: Arc<dyn Threads> = MemoryStore::new();
    assert_eq!(rule.unwrap().check(&store).await, Ok(()));
}
