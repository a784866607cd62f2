//! Budgets with 64 who spend at the same time: nobody gets a call, a token or a signature that there is none of.
//!
//! Called by `paraph-crash prove` and by tests. Calls are counted where they are made, not by the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paraph_gateway::{
    Ask, Budget, Gateway, Grant, Limits, MemoryStore, Policy, Reply, Scope, Session, Spend, Stop,
    Store, ToolCall, ToolError, examples::Pay,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Barrier;

use crate::Fault;
use crate::effects::now_ms;
use crate::seed::Seed;
use crate::tally::Tally;

/// How many spend at the same time.
const MANY: u64 = 64;

#[derive(Deserialize, JsonSchema)]
struct Number {
    n: u64,
}

/// A gateway with a tool that counts how often it ran.
fn counting(store: Arc<dyn Store>) -> Result<(Gateway, Arc<AtomicU64>), Fault> {
    let ran = Arc::new(AtomicU64::new(0));
    let counter = ran.clone();
    let count = move |number: Number| {
        let counter = counter.clone();
        async move {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            Ok::<_, ToolError>(number.n)
        }
    };
    let gateway = Gateway::builder(store)
        .read("count", "Counts", count)
        .policy(Policy::new().allow(["count"]))
        .build()?;
    Ok((gateway, ran))
}

/// Calls of one run: exactly as many are made as there may be, in all and of one tool, by the run itself and by its
/// children.
///
/// # Errors
/// When a gateway cannot be built or a session not be opened.
pub async fn calls_of_many(rounds: u64) -> Result<Tally, Fault> {
    let mut tally = Tally::of(format!("calls by {MANY} at a time"));
    tally.count("calls over a limit", 0);
    for round in 0..rounds {
        let mut chance = Seed(round);
        let (gateway, ran) = counting(MemoryStore::shared())?;
        let may = 1 + chance.below(200);
        let limits = match round % 2 {
            0 => Limits {
                tool_calls: may,
                ..Limits::unlimited()
            },
            _ => Limits {
                per_tool: [("count".to_owned(), may)].into(),
                ..Limits::unlimited()
            },
        };
        let budget = Budget::new(limits);
        let mut sessions = Vec::new();
        let own = Scope::new("clerk", "own");
        sessions.push(gateway.session_in(own, budget.clone()).await?);
        // A cap of one tool is the run's own: children have theirs.
        if round % 2 == 0 {
            for child in 0..chance.below(4) {
                let purse = budget.carve(Limits::unlimited())?;
                let scope = Scope::new("clerk", format!("child-{child}"));
                sessions.push(gateway.session_in(scope, purse).await?);
            }
        }
        let refused = spend(&sessions).await?;
        let made = ran.load(Ordering::SeqCst);
        tally.count("calls", made);
        tally.count("calls over a limit", made.saturating_sub(may));
        let mut wrong = refused;
        if made != may {
            wrong.push(format!("{made} calls were made where {may} may be"));
        }
        tally.take(format!("round {round}"), wrong);
    }
    Ok(tally)
}

/// All of them call until they are told that there is no more. Says what else they were told.
async fn spend(sessions: &[Session]) -> Result<Vec<String>, Fault> {
    let barrier = Arc::new(Barrier::new(MANY as usize));
    let mut tasks = Vec::new();
    for n in 0..MANY {
        let session = sessions.get(n as usize % sessions.len());
        let session = session.ok_or("no session was given")?.clone();
        let barrier = barrier.clone();
        tasks.push(tokio::spawn(async move {
            barrier.wait().await;
            for turn in 0_u64.. {
                let call = ToolCall::native("count", &format!(r#"{{"n":{}}}"#, n * 10_000 + turn));
                match session.call(&format!("{n} {turn}"), &call).await {
                    Ok(Reply::Observed(seen)) if seen.ok() => {}
                    Err(Stop::MaxToolCalls) => return None,
                    other => return Some(format!("{n} was told {other:?}")),
                }
            }
            None
        }));
    }
    let mut wrong = Vec::new();
    for task in tasks {
        wrong.extend(task.await?);
    }
    Ok(wrong)
}

/// Tokens of model calls: what was reserved is never more than there is, and what answers took beyond their
/// reservation is at most what those were off that were under way.
///
/// # Errors
/// When a task breaks off.
pub async fn tokens_of_many(rounds: u64) -> Result<Tally, Fault> {
    let mut tally = Tally::of(format!("tokens by {MANY} at a time"));
    tally.count(
        "tokens over a limit, where answers keep to what was reserved",
        0,
    );
    let mut worst = (0, 0);
    for round in 0..rounds {
        let mut chance = Seed(round);
        // In every other round answers are longer than what was reserved for them.
        let off = (round % 2) * (1 + chance.below(50));
        let (most, may) = (1 + chance.below(100), 1_000 + chance.below(5_000));
        let budget = Budget::new(Limits {
            tokens: may,
            ..Limits::unlimited()
        });
        let answers = Arc::new(Answers::default());
        let barrier = Arc::new(Barrier::new(MANY as usize));
        let tasks: Vec<_> = (0..MANY)
            .map(|_| {
                let (budget, answers, barrier) = (budget.clone(), answers.clone(), barrier.clone());
                tokio::spawn(async move {
                    barrier.wait().await;
                    ask_until_told(&budget, &answers, (most, off)).await
                })
            })
            .collect();
        let mut wrong = Vec::new();
        for task in tasks {
            wrong.extend(task.await?);
        }
        let used = answers.used.load(Ordering::SeqCst);
        let at_once = answers.at_once.load(Ordering::SeqCst);
        let over = used.saturating_sub(may);
        if budget.used().tokens != used {
            wrong.push(format!(
                "{used} were used, and {} counted",
                budget.used().tokens
            ));
        }
        if over > at_once * off {
            wrong.push(format!(
                "{over} over {may}, with {at_once} answers under way that were off by {off}"
            ));
        }
        // Nobody was sent away while there was enough for one more.
        if used + most <= may {
            wrong.push(format!("{used} of {may} were used, at {most} each"));
        }
        match off {
            0 => tally.count(
                "tokens over a limit, where answers keep to what was reserved",
                over,
            ),
            _ => worst = worst.max((over, at_once * off)),
        }
        tally.take(format!("round {round}"), wrong);
    }
    tally.notes.push(format!(
        "where answers are longer than what was reserved: at most {} tokens over, by answers under way that could be {} off",
        worst.0, worst.1
    ));
    Ok(tally)
}

/// What answers took, and how many were under way at the same time at most.
#[derive(Default)]
struct Answers {
    used: AtomicU64,
    under_way: AtomicU64,
    at_once: AtomicU64,
}

/// Makes model calls until there is nothing left for one. Says what else it was told.
async fn ask_until_told(
    budget: &Budget,
    answers: &Answers,
    (most, off): (u64, u64),
) -> Option<String> {
    let tokens = |tokens| Spend {
        tokens,
        micro_dollars: None,
    };
    loop {
        // Under way from before it is reserved until after it is settled.
        let now = answers.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        answers.at_once.fetch_max(now, Ordering::SeqCst);
        let reserved = budget.reserve(tokens(most));
        if let Ok(reserved) = reserved {
            tokio::task::yield_now().await;
            answers.used.fetch_add(most + off, Ordering::SeqCst);
            reserved.spend(tokens(most + off));
            answers.under_way.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        answers.under_way.fetch_sub(1, Ordering::SeqCst);
        return match reserved {
            Ok(_) | Err(Stop::MaxTokens) => None,
            Err(other) => Some(format!("a reservation was told {other:?}")),
        };
    }
}

/// A day's signatures of a grant, wanted by 64 runs at a store: exactly as many happen as it gives.
///
/// # Errors
/// When a gateway cannot be built or a session not be opened.
pub async fn signatures_of_many(
    (name, handles): (&str, &[Arc<dyn Store>]),
    rounds: u64,
) -> Result<Tally, Fault> {
    let mut tally = Tally::of(format!("{name} signatures of a grant for {MANY} at a time"));
    tally.count("effects over a limit", 0);
    for round in 0..rounds {
        let may = 1 + Seed(round).below(MANY - 1);
        let pay = Pay::default();
        let tenant = format!("grants-{}", uuid::Uuid::now_v7().simple());
        let barrier = Arc::new(Barrier::new(MANY as usize));
        let mut tasks = Vec::new();
        for n in 0..MANY {
            let store = handles.get(n as usize % handles.len().max(1));
            let store = store.ok_or("no store was given")?.clone();
            let grant = Grant {
                at_most: vec![("/cents".into(), 100)],
                per_day: Some(may),
                ..Grant::new("small", "pay", now_ms() + 86_400_000)
            };
            let gateway = Gateway::builder(store)
                .effect(pay.clone())
                .policy(Policy::new().ask("pay", Ask::default()).grant(grant))
                .build()?;
            let scope = Scope {
                tenant: tenant.clone(),
                ..Scope::new("clerk", format!("{tenant} {n}"))
            };
            let barrier = barrier.clone();
            tasks.push(tokio::spawn(async move {
                let session = gateway.session(scope, Limits::default()).await?;
                barrier.wait().await;
                let call = ToolCall::native("pay", r#"{"cents":5}"#);
                session.call("k", &call).await
            }));
        }
        let (mut done, mut wrong) = (0, Vec::new());
        for task in tasks {
            match task.await? {
                Ok(Reply::Observed(seen)) if seen.ok() => done += 1,
                Ok(Reply::Waiting(_)) => {}
                other => wrong.push(format!("a call was told {other:?}")),
            }
        }
        let paid = pay.paid().len() as u64;
        tally.count("effects", paid);
        tally.count("effects over a limit", paid.saturating_sub(may));
        if (paid, done) != (may, may) {
            wrong.push(format!(
                "{paid} were paid, {done} said so, and {may} may be"
            ));
        }
        tally.take(format!("round {round}"), wrong);
    }
    Ok(tally)
}
