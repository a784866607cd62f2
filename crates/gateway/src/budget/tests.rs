//! Budgets on a paused clock, under many tasks at once, and as properties of random histories.

use super::*;
use proptest::prelude::*;

fn limits() -> Limits {
    Limits {
        steps: 2,
        tool_calls: 3,
        seconds: 10,
        tokens: 1_000,
        micro_dollars: 500,
        children: 2,
        per_tool: BTreeMap::from([("search".to_owned(), 1)]),
        per_user_day: DayLimits::default(),
    }
}

#[test]
fn the_defaults_are_the_articles() {
    let limits = Limits::default();
    assert_eq!(
        (limits.steps, limits.tool_calls, limits.seconds),
        (8, 6, 20)
    );
    assert_eq!(
        (limits.tokens, limits.micro_dollars, limits.children),
        (UNLIMITED, UNLIMITED, 0)
    );
}

#[test]
fn a_step_that_is_cut_off_is_no_step() {
    let budget = Budget::new(limits());
    let begun = budget.begin_step().unwrap();
    assert_eq!((begun.number(), budget.used().steps), (1, 1));
    drop(begun);
    assert_eq!(budget.used().steps, 0);
    budget.begin_step().unwrap().made();
    let second = budget.begin_step().unwrap();
    assert_eq!(second.number(), 2);
    // While it is under way it counts.
    assert_eq!(budget.begin_step().unwrap_err(), Stop::MaxSteps);
}

#[test]
fn calls_end_with_the_run_s_or_the_tool_s_own_cap() {
    let budget = Budget::new(limits());
    assert_eq!(budget.count_call("search"), Ok(()));
    assert_eq!(budget.count_call("search"), Err(Stop::MaxToolCalls));
    assert_eq!(budget.count_call("read"), Ok(()));
    assert_eq!(budget.count_call("read"), Ok(()));
    assert_eq!(budget.count_call("read"), Err(Stop::MaxToolCalls));
    let used = budget.used();
    assert_eq!(used.tool_calls, 3);
    let per_tool = [("read".to_owned(), 2), ("search".to_owned(), 1)];
    assert_eq!(used.per_tool, BTreeMap::from(per_tool));
    assert_eq!(budget.left().per_tool["search"], 0);
}

#[tokio::test(start_paused = true)]
async fn when_steps_and_time_are_both_used_up_steps_are_named() {
    let budget = Budget::new(limits());
    assert_eq!((budget.step(), budget.step()), (Ok(1), Ok(2)));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(budget.step(), Err(Stop::MaxSteps));
    assert_eq!(budget.count_call("read"), Err(Stop::MaxSeconds));
    let other = Budget::new(limits());
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(other.step(), Err(Stop::MaxSeconds));
}

#[tokio::test(start_paused = true)]
async fn no_seconds_are_no_time_and_unlimited_ones_have_no_deadline() {
    let none = Budget::new(Limits {
        seconds: 0,
        ..limits()
    });
    assert_eq!(none.step(), Err(Stop::MaxSeconds));
    let unlimited = Budget::new(Limits::unlimited());
    tokio::time::advance(Duration::from_secs(1 << 30)).await;
    assert_eq!(
        (unlimited.deadline(), unlimited.time_left()),
        (None, Duration::MAX)
    );
    assert_eq!(unlimited.left(), Limits::unlimited());
    assert_eq!(unlimited.within(Duration::MAX, async { 7 }).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_person_does_not_count() {
    let budget = Budget::new(limits());
    tokio::time::advance(Duration::from_secs(4)).await;
    let pause = budget.pause();
    let second = budget.pause();
    tokio::time::advance(Duration::from_secs(3600)).await;
    drop(pause);
    tokio::time::advance(Duration::from_secs(3600)).await;
    drop(second);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(budget.time_left(), Duration::from_secs(1));
    assert_eq!(budget.used().active, Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn of_two_limits_the_earlier_names_the_reason_and_a_tie_is_the_run_s() {
    let budget = Budget::new(limits());
    let late = |seconds| budget.within(Duration::from_secs(seconds), std::future::pending::<()>());
    assert_eq!(late(9).await, Err(Late::Own));
    tokio::time::advance(Duration::ZERO).await;
    // One second is left.
    assert_eq!(late(1).await, Err(Late::Run));
    let budget = Budget::new(limits());
    let ready = budget.within(Duration::ZERO, async { "at once" });
    assert_eq!(ready.await, Ok("at once"));
}

#[test]
fn what_is_reserved_is_gone_until_it_is_settled_or_dropped() {
    let budget = Budget::new(limits());
    let most = Spend {
        tokens: 900,
        micro_dollars: Some(300),
    };
    let reserved = budget.reserve(most).unwrap();
    assert_eq!(budget.reserve(most).err(), Some(Stop::MaxTokens));
    assert_eq!(budget.reserve(201).err(), Some(Stop::MaxCost));
    drop(reserved);
    assert_eq!(
        (budget.left().tokens, budget.left().micro_dollars),
        (1_000, 500)
    );
    budget.reserve(most).unwrap().spend(Spend {
        tokens: 100,
        micro_dollars: Some(10),
    });
    assert_eq!(
        (budget.left().tokens, budget.left().micro_dollars),
        (900, 490)
    );
    // More than was reserved is taken too, even from an empty purse.
    budget.reserve(490).unwrap().spend(600);
    assert_eq!(budget.left().micro_dollars, 0);
    assert_eq!(budget.used().cost(), Some(610));
}

#[test]
fn an_unknown_price_is_said_and_a_limited_purse_refuses_it() {
    let limited = Budget::new(limits());
    assert_eq!(
        limited.reserve(Price::unknown(10, 10)).err(),
        Some(Stop::MaxCost)
    );
    let unlimited = Budget::new(Limits::default());
    assert_eq!(unlimited.used().cost(), Some(0));
    unlimited
        .reserve(Price::unknown(10, 10))
        .unwrap()
        .spend(Price::unknown(8, 2));
    assert_eq!(
        (unlimited.used().tokens, unlimited.used().cost()),
        (10, None)
    );
}

#[test]
fn prices_round_up_and_do_not_overflow() {
    let price = Price {
        input: 150_000,
        output: 600_000,
        source: "a test".into(),
    };
    assert_eq!(price.spend(1, 0).micro_dollars, Some(1));
    assert_eq!(
        price.spend(1_000_000, 1_000_000).micro_dollars,
        Some(750_000)
    );
    assert_eq!(price.spend(u64::MAX, u64::MAX).tokens, u64::MAX);
}

/// F10: a late stage wants 75 calls where 8 are left; it gets what fits, and not one more.
#[test]
fn a_late_stage_is_limited_to_what_fits_in_what_is_left() {
    let parent = Budget::new(Limits {
        tool_calls: 80,
        children: 1,
        ..Limits::default()
    });
    let earlier: Vec<_> = (0..72).map(|_| parent.count_call("search")).collect();
    assert!(earlier.iter().all(Result::is_ok));
    let share = |tool_calls| Limits {
        tool_calls,
        ..Limits::default()
    };
    assert_eq!(parent.carve(share(75)).err(), Some(Stop::MaxToolCalls));
    let verify = parent.carve(share(parent.left().tool_calls)).unwrap();
    let checked = (0..75)
        .filter(|_| verify.count_call("verify").is_ok())
        .count();
    assert_eq!((checked, parent.left().tool_calls), (8, 0));
}

/// F09: 100 children want to start; the cap holds when they ask, and what the parent kept is there for
/// the report.
#[test]
fn children_are_admitted_up_to_the_cap_and_the_parent_s_reserve_stays() {
    let parent = Budget::new(Limits {
        children: 5,
        tokens: 200_000,
        ..Limits::default()
    });
    let synthesis = parent
        .reserve(Spend {
            tokens: 50_000,
            micro_dollars: None,
        })
        .unwrap();
    let share = Limits {
        tool_calls: 1,
        tokens: 40_000,
        ..Limits::default()
    };
    let wanted: Vec<_> = (0..100).map(|_| parent.carve(share.clone())).collect();
    let started = wanted.iter().filter(|child| child.is_ok()).count();
    assert_eq!(started, 3);
    assert_eq!(wanted[3].as_ref().err(), Some(&Stop::MaxTokens));
    let small = Limits {
        tool_calls: 1,
        tokens: 1,
        ..Limits::default()
    };
    let more: Vec<_> = (0..3)
        .map(|_| parent.carve(small.clone()).map(drop))
        .collect();
    assert_eq!(more, [Ok(()), Ok(()), Err(Stop::MaxChildren)]);
    synthesis.spend(Spend {
        tokens: 50_000,
        micro_dollars: None,
    });
    drop(wanted);
    assert_eq!(parent.used().tokens, 50_000);
    assert_eq!(parent.left().tokens, 150_000);
}

#[test]
fn what_a_child_used_is_its_parent_s_use() {
    let parent = Budget::new(Limits {
        children: 2,
        ..limits()
    });
    let share = Limits {
        children: 1,
        tool_calls: 2,
        tokens: 600,
        micro_dollars: 200,
        ..Limits::default()
    };
    let child = parent.carve(share.clone()).unwrap();
    assert_eq!(parent.left().children, 0);
    assert_eq!(parent.carve(share).err(), Some(Stop::MaxChildren));
    child.count_call("search").unwrap();
    child
        .reserve(Spend {
            tokens: 500,
            micro_dollars: Some(50),
        })
        .unwrap()
        .spend(Spend {
            tokens: 100,
            micro_dollars: Some(20),
        });
    // The cap of a single tool holds for parent and children together.
    assert_eq!(parent.count_call("search"), Err(Stop::MaxToolCalls));
    drop(child);
    let (left, used) = (parent.left(), parent.used());
    assert_eq!(
        (
            left.tool_calls,
            left.tokens,
            left.micro_dollars,
            left.children
        ),
        (2, 900, 480, 1)
    );
    assert_eq!(
        (used.tool_calls, used.child_tool_calls, used.children),
        (0, 1, 1)
    );
}

#[test]
fn a_child_without_a_share_spends_from_its_parent_as_it_goes() {
    let parent = Budget::new(limits());
    let share = Limits {
        tool_calls: UNLIMITED,
        ..Limits::default()
    };
    let child = parent.carve(share).unwrap();
    for _ in 0..3 {
        child.count_call("read").unwrap();
    }
    assert_eq!(child.count_call("read"), Err(Stop::MaxToolCalls));
    assert_eq!(child.reserve(501).err(), Some(Stop::MaxCost));
    child.reserve(400).unwrap().spend(300);
    assert_eq!(
        (parent.left().tool_calls, parent.left().micro_dollars),
        (0, 200)
    );
    drop(child);
    assert_eq!(
        (parent.left().tool_calls, parent.left().micro_dollars),
        (0, 200)
    );
    assert_eq!(parent.used().child_tool_calls, 3);
}

#[tokio::test(start_paused = true)]
async fn a_child_s_time_never_outlasts_its_parent_s() {
    let parent = Budget::new(limits());
    let share = |seconds| Limits {
        tool_calls: 0,
        seconds,
        ..Limits::default()
    };
    let (long, short) = (
        parent.carve(share(60)).unwrap(),
        parent.carve(share(3)).unwrap(),
    );
    assert_eq!(long.time_left(), Duration::from_secs(10));
    assert_eq!(short.time_left(), Duration::from_secs(3));
    let _pause = parent.pause();
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(long.time_left(), Duration::from_secs(10));
}

/// F02: fifty at once are fifty.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counts_are_exact_when_many_count_at_once() {
    let budget = Budget::new(Limits {
        tool_calls: UNLIMITED,
        ..Limits::default()
    });
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let budget = budget.clone();
            tokio::spawn(async move { budget.count_call("read").unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(budget.used().tool_calls, 50);
}

/// F08: the budget is kept under 64 reservations at once, and settling lower frees the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reservations_of_64_tasks_never_overshoot() {
    let budget = Budget::new(Limits {
        tokens: 20_000,
        ..Limits::default()
    });
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let budget = budget.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    let most = Spend {
                        tokens: 300,
                        micro_dollars: Some(0),
                    };
                    if let Ok(reserved) = budget.reserve(most) {
                        tokio::task::yield_now().await;
                        reserved.spend(Spend {
                            tokens: 290,
                            micro_dollars: Some(0),
                        });
                    }
                    assert!(budget.used().tokens <= 20_000);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let used = budget.used().tokens;
    assert!(used <= 20_000 && used > 20_000 - 300, "{used}");
}

#[derive(Clone, Debug)]
enum Act {
    Call,
    Reserve(u64),
    Settle(prop::sample::Index, u64),
    Release(prop::sample::Index),
    Carve(u64, u64),
    ChildCall(prop::sample::Index),
    EndChild(prop::sample::Index),
}

fn act() -> impl Strategy<Value = Act> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        Just(Act::Call),
        (0..400_u64).prop_map(Act::Reserve),
        (index(), 0..400_u64).prop_map(|(which, used)| Act::Settle(which, used)),
        index().prop_map(Act::Release),
        (prop_oneof![0..5_u64, Just(UNLIMITED)], 0..300_u64)
            .prop_map(|(calls, money)| Act::Carve(calls, money)),
        index().prop_map(Act::ChildCall),
        index().prop_map(Act::EndChild),
    ]
}

fn take<T>(from: &mut Vec<T>, which: prop::sample::Index) -> Option<T> {
    match from.is_empty() {
        true => None,
        false => Some(from.swap_remove(which.index(from.len()))),
    }
}

proptest! {
    #[test]
    fn nothing_is_ever_spent_twice_or_lost(acts in prop::collection::vec(act(), 0..60)) {
        let budget = Budget::new(Limits {
            tool_calls: 12,
            micro_dollars: 1_000,
            children: 6,
            ..Limits::default()
        });
        let (mut reserved, mut children) = (Vec::new(), Vec::new());
        let (mut calls, mut money, mut started) = (0, 0, 0);
        for act in acts {
            match act {
                Act::Call => calls += u64::from(budget.count_call("read").is_ok()),
                Act::Reserve(most) => reserved.extend(budget.reserve(most).ok().map(|held| (held, most))),
                Act::Settle(which, used) => {
                    if let Some((held, most)) = take(&mut reserved, which) {
                        // An honest estimate: no more than was reserved.
                        let used = used.min(most);
                        held.spend(used);
                        money += used;
                    }
                }
                Act::Release(which) => drop(take(&mut reserved, which)),
                Act::Carve(tool_calls, micro_dollars) => {
                    let share = Limits { tool_calls, micro_dollars, ..Limits::default() };
                    if let Ok(child) = budget.carve(share) {
                        started += 1;
                        children.push(child);
                    }
                }
                Act::ChildCall(which) if !children.is_empty() => {
                    let child = &children[which.index(children.len())];
                    calls += u64::from(child.count_call("read").is_ok());
                }
                Act::ChildCall(_) => {}
                Act::EndChild(which) => drop(take(&mut children, which)),
            }
            let used = budget.used();
            prop_assert!(used.tool_calls + used.child_tool_calls <= 12);
            prop_assert!(used.micro_dollars <= 1_000);
        }
        drop((reserved, children));
        let left = budget.left();
        prop_assert_eq!(
            (left.tool_calls, left.micro_dollars, left.children),
            (12 - calls, 1_000 - money, 6 - started)
        );
    }
}
