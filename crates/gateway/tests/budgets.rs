//! Budgets that outlive a process: what is set aside for model calls, what children used, and what a user may use in a
//! day over all runs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use futures::future::join_all;
use paraph_gateway::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// 2026-11-30T22:00:00Z.
const EVENING_MS: u64 = 1_796_076_000_000;

struct Stage {
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
    ran: Arc<AtomicU64>,
}

impl Stage {
    fn new() -> Stage {
        let clock = Arc::new(AtomicU64::new(EVENING_MS));
        let time = clock.clone();
        Stage {
            store: MemoryStore::with_clock(move || time.load(Ordering::SeqCst)),
            clock,
            ran: Arc::default(),
        }
    }

    fn gateway(&self) -> Gateway {
        let ran = self.ran.clone();
        Gateway::builder(self.store.clone())
            .read("look", "Looks", move |_: Nothing| {
                ran.fetch_add(1, Ordering::SeqCst);
                std::future::ready(Ok::<_, ToolError>(1))
            })
            .effect(examples::Pay::default())
            .policy(Policy::new().allow(["look"]).ask("pay", Ask::default()))
            .build()
            .unwrap()
    }

    async fn session(&self, scope: Scope, limits: &Limits) -> Session {
        let limits = limits.clone();
        self.gateway().session(scope, limits).await.unwrap()
    }

    fn ran(&self) -> u64 {
        self.ran.load(Ordering::SeqCst)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn look() -> ToolCall {
    ToolCall::native("look", "{}")
}

fn run(number: usize) -> Scope {
    Scope {
        loops: LoopRule::Off,
        ..Scope::new("clerk", format!("case-{number}"))
    }
}

fn of(tokens: u64, micro_dollars: u64) -> Spend {
    Spend {
        tokens,
        micro_dollars: Some(micro_dollars),
    }
}

fn day(tool_calls: u64, tokens: u64, micro_dollars: u64) -> Limits {
    Limits {
        per_user_day: DayLimits {
            tool_calls,
            tokens,
            micro_dollars,
        },
        ..Limits::unlimited()
    }
}

#[tokio::test]
async fn what_was_set_aside_when_the_process_died_counts_as_spent() {
    let stage = Stage::new();
    let limits = Limits {
        tokens: 1_000,
        micro_dollars: 500,
        ..Limits::default()
    };
    let first = stage.session(run(1), &limits).await;
    first
        .set_aside(of(400, 200))
        .await
        .unwrap()
        .spend(of(150, 70))
        .await
        .unwrap();
    // The process dies during the second call.
    std::mem::forget(first.set_aside(of(300, 100)).await.unwrap());
    for _ in 0..2 {
        let next = stage.session(run(1), &limits).await;
        let used = next.budget().used();
        assert_eq!((used.tokens, used.micro_dollars), (450, 170));
        let left = next.budget().left();
        assert_eq!((left.tokens, left.micro_dollars), (550, 330));
    }
    let next = stage.session(run(1), &limits).await;
    next.set_aside(of(550, 330))
        .await
        .unwrap()
        .spend(of(10, 10))
        .await
        .unwrap();
    let used = stage.session(run(1), &limits).await.budget().used();
    assert_eq!((used.tokens, used.micro_dollars), (460, 180));
    let refused = next.set_aside(of(541, 0)).await;
    assert_eq!(refused.err(), Some(Stop::MaxTokens));
}

#[tokio::test]
async fn a_run_without_limits_writes_nothing_for_a_model_call() {
    let stage = Stage::new();
    let session = stage.session(run(1), &Limits::default()).await;
    let held = session.set_aside(of(400, 200)).await.unwrap();
    let counters = stage.store.counters(&run(1).run_ref()).await.unwrap();
    assert!(counters.is_empty(), "{counters:?}");
    held.spend(of(5, 5)).await.unwrap();
    assert_eq!(session.budget().used().tokens, 5);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told once")]
async fn a_child_that_waited_and_goes_on_is_counted_once() {
    let stage = Stage::new();
    let limits = Limits {
        tool_calls: 10,
        tokens: 1_000,
        children: 1,
        ..Limits::default()
    };
    let share = Limits {
        tool_calls: 4,
        tokens: 500,
        ..Limits::default()
    };
    let child_scope = || run(2);
    let used = |session: &Session| {
        let used = session.budget().used();
        (used.child_tool_calls, used.tokens, used.children)
    };
    let parent = stage.session(run(1), &limits).await;
    let purse = parent
        .budget()
        .carve_again("call-1", share.clone())
        .unwrap();
    let child = stage
        .gateway()
        .session_in(child_scope(), purse)
        .await
        .unwrap();
    child.call("a", &look()).await.unwrap();
    child
        .set_aside(of(100, 0))
        .await
        .unwrap()
        .spend(of(100, 0))
        .await
        .unwrap();
    child.save().await.unwrap();
    // It waits for a person: its purse is given back, and its caller is saved.
    drop(child);
    assert_eq!(used(&parent), (1, 100, 1));
    parent.save().await.unwrap();
    assert_eq!(parent.budget().left_for("call-1").tool_calls, 10);

    // In this process, and in another one.
    let again = stage.session(run(1), &limits).await;
    for parent in [parent, again] {
        assert_eq!(used(&parent), (1, 100, 1));
        // The one child that there may be is this one.
        let purse = parent
            .budget()
            .carve_again("call-1", share.clone())
            .unwrap();
        let child = stage
            .gateway()
            .session_in(child_scope(), purse)
            .await
            .unwrap();
        let left = child.budget().left();
        assert_eq!((left.tool_calls, left.tokens), (3, 400));
        assert_eq!(
            (
                parent.budget().left().tool_calls,
                parent.budget().left().tokens
            ),
            (6, 500)
        );
        drop(child);
        assert_eq!(used(&parent), (1, 100, 1));
    }
    let parent = stage.session(run(1), &limits).await;
    let purse = parent.budget().carve_again("call-1", share).unwrap();
    let child = stage
        .gateway()
        .session_in(child_scope(), purse)
        .await
        .unwrap();
    child.call("b", &look()).await.unwrap();
    child
        .set_aside(of(50, 0))
        .await
        .unwrap()
        .spend(of(30, 0))
        .await
        .unwrap();
    drop(child);
    parent.save().await.unwrap();
    let parent = stage.session(run(1), &limits).await;
    assert_eq!(used(&parent), (2, 130, 1));
    assert_eq!(
        parent.budget().carve(Limits::default()).err(),
        Some(Stop::MaxChildren)
    );
}

#[tokio::test]
async fn a_user_s_calls_of_a_day_are_counted_over_all_runs_and_come_back_at_midnight() {
    let stage = Stage::new();
    let limits = day(3, UNLIMITED, UNLIMITED);
    let first = stage.session(run(1), &limits).await;
    first.call("a", &look()).await.unwrap();
    // Denied ones count too, and a call under its known key does not.
    let denied = ToolCall::native("drop_table", "{}");
    first.call("b", &denied).await.unwrap();
    first.call("a", &look()).await.unwrap();
    let again = stage.session(run(1), &limits).await;
    again.call("a", &look()).await.unwrap();
    let second = stage.session(run(2), &limits).await;
    second.call("a", &look()).await.unwrap();
    let Err(Stop::UserDay { what, text }) = second.call("b", &look()).await else {
        panic!()
    };
    assert_eq!(
        (what.to_string().as_str(), stage.ran()),
        ("max_tool_calls", 2)
    );
    assert_eq!(
        text,
        "of the 3 tool calls that this user has for 2026-11-30 not enough are left; they are there again from 2026-12-01T00:00:00Z on"
    );
    // An effect is not even proposed.
    let pay = ToolCall::native("pay", r#"{"cents":1}"#);
    let stopped = stage.session(run(3), &limits).await.call("a", &pay).await;
    assert!(matches!(stopped, Err(Stop::UserDay { .. })), "{stopped:?}");
    assert!(
        stage
            .gateway()
            .approvals()
            .waiting()
            .await
            .unwrap()
            .is_empty()
    );

    // Others are not concerned, and the next day is another one.
    for scope in [
        Scope {
            user: "ann".into(),
            ..run(4)
        },
        Scope {
            tenant: "acme".into(),
            ..run(5)
        },
    ] {
        stage
            .session(scope, &limits)
            .await
            .call("a", &look())
            .await
            .unwrap();
    }
    stage.clock.fetch_add(2 * 3_600_000, Ordering::SeqCst);
    let morning = stage.session(run(2), &limits).await;
    morning.call("b", &look()).await.unwrap();
    assert_eq!(stage.ran(), 5);
}

#[tokio::test]
async fn a_user_s_money_of_a_day_is_set_aside_before_it_is_spent() {
    let stage = Stage::new();
    let limits = day(UNLIMITED, UNLIMITED, 2_500_000);
    let first = stage.session(run(1), &limits).await;
    let held = first.set_aside(of(0, 2_000_000)).await.unwrap();
    let second = stage.session(run(2), &limits).await;
    let Err(stop) = second.set_aside(of(0, 600_000)).await else {
        panic!()
    };
    assert_eq!(
        (stop.to_string().as_str(), stop.exit_code()),
        ("max_cost", 3)
    );
    let Stop::UserDay { text, .. } = stop else {
        panic!()
    };
    assert_eq!(
        text,
        "of the 2.500000 US dollars that this user has for 2026-11-30 not enough are left; they are there again from 2026-12-01T00:00:00Z on"
    );
    // After midnight it is given back to the day it was taken from.
    held.spend(of(0, 400_000)).await.unwrap();
    second
        .set_aside(of(0, 2_100_000))
        .await
        .unwrap()
        .spend(of(0, 2_100_000))
        .await
        .unwrap();
    assert!(second.set_aside(of(0, 1)).await.is_err());
    let unknown = Spend {
        tokens: 1,
        micro_dollars: None,
    };
    assert_eq!(second.set_aside(unknown).await.err(), Some(Stop::MaxCost));
    // A call that failed used nothing; one whose process died may have used all.
    stage.clock.fetch_add(24 * 3_600_000, Ordering::SeqCst);
    second
        .set_aside(of(0, 2_500_000))
        .await
        .unwrap()
        .spend(0)
        .await
        .unwrap();
    drop(second.set_aside(of(0, 2_500_000)).await.unwrap());
    assert!(first.set_aside(of(0, 1)).await.is_err());
}

#[tokio::test]
async fn a_child_is_held_to_the_day_of_its_parent_s_user() {
    let stage = Stage::new();
    let limits = Limits {
        children: 1,
        ..day(1, UNLIMITED, UNLIMITED)
    };
    let parent = stage.session(run(1), &limits).await;
    let purse = parent.budget().carve(Limits::default()).unwrap();
    let child = stage.gateway().session_in(run(2), purse).await.unwrap();
    child.call("a", &look()).await.unwrap();
    let stopped = child.call("b", &look()).await;
    assert!(matches!(stopped, Err(Stop::UserDay { .. })), "{stopped:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_runs_at_once_none_goes_over_its_user_s_day() {
    let stage = Arc::new(Stage::new());
    let limits = day(100, 10_000, 5_000);
    let tasks = (0..64).map(|number| {
        let (stage, limits) = (stage.clone(), limits.clone());
        tokio::spawn(async move {
            let session = stage.session(run(number), &limits).await;
            let (mut calls, mut tokens, mut money) = (0, 0, 0);
            for step in 0..5_u64 {
                calls += u64::from(session.call(&format!("k{step}"), &look()).await.is_ok());
                if let Ok(held) = session.set_aside(of(200, 100)).await {
                    tokio::task::yield_now().await;
                    held.spend(of(150, 90)).await.unwrap();
                    tokens += 150;
                    money += 90;
                }
            }
            (calls, tokens, money)
        })
    });
    let (mut calls, mut tokens, mut money) = (0, 0, 0);
    for ended in join_all(tasks).await {
        let (c, t, m) = ended.unwrap();
        (calls, tokens, money) = (calls + c, tokens + t, money + m);
    }
    assert_eq!((calls, stage.ran()), (100, 100));
    assert!(tokens <= 10_000 && money <= 5_000, "{tokens} {money}");
    // A call is refused only while nearly all is taken; of what is taken nine tenths, and three quarters, are used.
    assert!(tokens >= 7_350 || money >= 4_410, "{tokens} {money}");
}
