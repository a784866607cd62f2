//! What the gateway adds: `allowed_N`, N allowed calls of a tool that only reads; `approved_N`, N effects that are
//! proposed, approved and executed; `rules_N`, a thousand decisions of a policy with N rules; `digest_N`, a thousand
//! canonical digests of N bytes.
//!
//! The floors: the tool itself, with its arguments read from JSON; four bare commits for each effect; the same
//! comparisons by hand on arguments that are read once for each decision; SHA-256 of what `serde_json` reads and writes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use paraph_gateway::examples::Pay;
use paraph_gateway::{
    Approvals, Ask, Bounds, Condition, Gateway, Json, Level, Limits, LoopRule, MemoryStore,
    Numbers, Operator, Policy, PolicyEngine, Reply, Request, Rule, Scope, Targets, Then, ToolCall,
    ToolSpec, canonical,
};
use paraph_store::Options;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::bare::Bare;
use crate::ground::Ground;
use crate::{Fault, Run, Setting, Shape};

/// How often the shapes do their work whose size is no number of calls.
const ROUNDS: usize = 1_000;

/// How many tools the rules are about.
const TOOLS: usize = 10;

/// What the last rule compares with; the others lie above it, so that none speaks.
const MOST: u64 = 1_000_000;

/// What is measured, and how much of it.
#[derive(Clone, Copy)]
pub(super) enum Governed {
    Allowed(usize),
    Approved(usize),
    Rules(usize),
    Digest(usize),
}

pub(super) fn shape(governed: Governed) -> Box<dyn Shape> {
    Box::new(governed)
}

/// The tool that reads, without a door before it.
async fn letters(word: &str) -> usize {
    word.chars().count()
}

async fn allowed(calls: usize) -> Result<Duration, Fault> {
    let gateway = Gateway::builder(MemoryStore::shared())
        .read("letters", "Counts letters", async |args: Value| {
            Ok(letters(args["word"].as_str().unwrap_or_default()).await)
        })
        .policy(Policy::new().allow(["letters"]))
        .build()?;
    let scope = Scope {
        loops: LoopRule::Off,
        ..Scope::new("bench", "allowed")
    };
    let session = gateway.session(scope, Limits::unlimited()).await?;
    let mut time = Duration::ZERO;
    // The first call compiles the tool's schema.
    for at in 0..=calls {
        let text = format!(r#"{{"word":"word {at}"}}"#);
        let key = at.to_string();
        let start = Instant::now();
        let reply = session
            .call(&key, &ToolCall::native("letters", &text))
            .await?;
        time += if at == 0 {
            Duration::ZERO
        } else {
            start.elapsed()
        };
        if !matches!(reply, Reply::Observed(seen) if seen.ok()) {
            return Err("a call was not answered".into());
        }
    }
    Ok(time)
}

async fn called_by_hand(calls: usize) -> Result<Duration, Fault> {
    let mut time = Duration::ZERO;
    for at in 0..calls {
        let text = format!(r#"{{"word":"word {at}"}}"#);
        let start = Instant::now();
        let args: Value = serde_json::from_str(&text)?;
        let said = Box::pin(letters(args["word"].as_str().unwrap_or_default())).await;
        black_box(serde_json::to_string(&said)?);
        time += start.elapsed();
    }
    Ok(time)
}

/// Effects from the proposal to the receipt, each decided by somebody else than the run.
async fn approved(effects: usize, ground: &Ground) -> Result<Duration, Fault> {
    let opened = paraph_store::open(ground.url(), Options::default()).await?;
    let gateway = Gateway::builder(opened.gateway.clone())
        .effect(Pay::default())
        .policy(Policy::new().ask("pay", Ask::default()))
        .build()?;
    let session = gateway
        .session(Scope::new("bench", "approved"), Limits::unlimited())
        .await?;
    let desk = Approvals::new(opened.gateway.clone());
    let start = Instant::now();
    for at in 0..effects {
        let call = ToolCall::native("pay", &format!(r#"{{"cents":{at}}}"#));
        let key = at.to_string();
        let Reply::Waiting(question) = session.call(&key, &call).await? else {
            return Err("an effect did not wait to be approved".into());
        };
        desk.approve(question.action, &question.digest, "ann")
            .await?;
        let reply = session.call(&key, &call).await?;
        if !matches!(reply, Reply::Observed(seen) if seen.ok()) {
            return Err("an approved effect did not happen".into());
        }
    }
    Ok(start.elapsed())
}

/// A proposal, a decision, a start and an end: four commits of a small row for each effect.
async fn committed(effects: usize, setting: Setting, ground: &Ground) -> Result<Duration, Fault> {
    let save = setting.durable().ok_or("only on disk")?;
    let row = format!("\"{}\"", "-".repeat(500)).into_bytes();
    Bare::open(ground)
        .await?
        .commit(save, &vec![row; 4 * effects])
        .await
}

const ARGUMENTS: &str = r#"{"user_id":42,"amount_cents":900,"reason":"the parcel came late"}"#;

fn engine(rules: usize) -> PolicyEngine {
    let tools: Vec<ToolSpec> = (0..TOOLS)
        .map(|at| ToolSpec {
            name: format!("tool_{at}"),
            about: "A tool".to_owned(),
            schema: json!({"type": "object"}),
            level: Level::Read,
        })
        .collect();
    let mut policy = Policy::new().allow(["*"]);
    for at in 0..rules {
        let above = Operator::Above((MOST + at as u64).into());
        let rule = Rule {
            when: vec![Condition::new("/amount_cents", above)],
            ..Rule::new(
                format!("rule {at}"),
                Then::Deny,
                [format!("tool_{}", at % TOOLS)],
            )
        };
        policy = policy.rule(rule);
    }
    PolicyEngine::new(policy, &tools)
}

fn decided(rules: usize) -> Result<Duration, Fault> {
    let engine = engine(rules);
    let args = Json::read(ARGUMENTS, Bounds::default())?;
    let targets = Targets::default();
    let request = Request {
        tenant: "bench",
        agent: "bench",
        user: "ann",
        thread: "rules",
        tool: "tool_1",
        args: &args,
        tainted: &[],
        targets: &targets,
        now_ms: 0,
    };
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(engine.decide(black_box(&request)));
    }
    Ok(start.elapsed())
}

fn compared(rules: usize) -> Result<Duration, Fault> {
    let rules: Vec<(String, u64)> = (0..rules)
        .map(|at| (format!("tool_{}", at % TOOLS), MOST + at as u64))
        .collect();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let args: Value = serde_json::from_str(black_box(ARGUMENTS))?;
        let amount = args["amount_cents"].as_u64().unwrap_or_default();
        let speaks = |(tool, above): &(String, u64)| tool == "tool_1" && amount > *above;
        black_box(rules.iter().any(speaks));
    }
    Ok(start.elapsed())
}

/// An object of about that many bytes, its keys out of order.
fn document(bytes: usize) -> String {
    let lines: Vec<Value> = (0..bytes / 64)
        .map(|at| json!({"to": "somebody", "cents": at, "about": "a line of the same size"}))
        .collect();
    json!({"user": 42, "lines": lines}).to_string()
}

fn digested(
    bytes: usize,
    digest: impl Fn(&str) -> Result<String, Fault>,
) -> Result<Duration, Fault> {
    let text = document(bytes);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(Sha256::digest(digest(black_box(&text))?));
    }
    Ok(start.elapsed())
}

impl Shape for Governed {
    fn name(&self) -> String {
        match self {
            Governed::Allowed(calls) => format!("allowed_{calls}"),
            Governed::Approved(effects) => format!("approved_{effects}"),
            Governed::Rules(rules) => format!("rules_{rules}"),
            Governed::Digest(bytes) => format!("digest_{bytes}"),
        }
    }

    fn node_runs(&self) -> usize {
        match self {
            Governed::Allowed(times) | Governed::Approved(times) => *times,
            Governed::Rules(_) | Governed::Digest(_) => ROUNDS,
        }
    }

    fn settings(&self) -> Vec<Setting> {
        let [none, ..] = Setting::QUICK;
        match self {
            Governed::Approved(_) => Setting::SYNC.to_vec(),
            _ => vec![none],
        }
    }

    fn engine(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(async move {
            Ok(match *self {
                Governed::Allowed(calls) => Run::of(allowed(calls).await?),
                Governed::Approved(effects) => {
                    let ground = ground(setting).await?;
                    let time = approved(effects, &ground).await?;
                    ended(&ground, time).await?
                }
                Governed::Rules(rules) => Run::of(decided(rules)?),
                Governed::Digest(bytes) => Run::of(digested(bytes, |text| {
                    let json = Json::read(text, Bounds::default())?;
                    Ok(canonical(&json, Numbers::IntegersOnly)?)
                })?),
            })
        })
    }

    fn floor(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(async move {
            Ok(match *self {
                Governed::Allowed(calls) => Run::of(called_by_hand(calls).await?),
                Governed::Approved(effects) => {
                    let ground = ground(setting).await?;
                    let time = committed(effects, setting, &ground).await?;
                    ended(&ground, time).await?
                }
                Governed::Rules(rules) => Run::of(compared(rules)?),
                Governed::Digest(bytes) => Run::of(digested(bytes, |text| {
                    let json: Value = serde_json::from_str(text)?;
                    Ok(serde_json::to_string(&json)?)
                })?),
            })
        })
    }
}

async fn ground(setting: Setting) -> Result<Ground, Fault> {
    let ground = Ground::lay(setting, None).await?;
    ground.ok_or_else(|| "effects are approved in a store on disk".into())
}

async fn ended(ground: &Ground, time: Duration) -> Result<Run, Fault> {
    let disk = Some(ground.bytes().await?);
    ground.clear().await?;
    Ok(Run {
        disk,
        ..Run::of(time)
    })
}
