//! Processes that act without a pause, a kill switch that is put on, and how soon the last call was begun after that.
//!
//! The child, `paraph-crash busy ORDER`, opens one session and makes calls one after the other: one that reads, one
//! effect that a standing grant signs. The parent puts the switch on through a store handle of its own. When that has
//! returned, no effect may be claimed any more: the audit shows it, in which both have their place. What was claimed
//! before may still be on its way then; how many those are, and how late the last call reached the world, is printed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use paraph_gateway::{
    Approvals, Ask, Gateway, Grant, Limits, Policy, Scope, Session, Stop, Store, ToolCall,
    ToolError, Verifier,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::effects::{Answer, Pay, Reach, Request, World, now_ms};
use crate::fuse::Fuse;
use crate::launch::{Launch, Running};
use crate::outside::say;
use crate::place::Place;
use crate::tally::Tally;

/// The agent, whose name a switch can concern.
const AGENT: &str = "clerk";

/// Whose chain has the switches that concern everybody.
const TENANT: &str = "local";

/// How long a child that was refused waits before it tries again.
const REFUSED: Duration = Duration::from_millis(2);

/// How long everything that a round waits for may take.
const STUCK: Duration = Duration::from_secs(60);

/// What a busy child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Busy {
    /// The store, which all children share.
    pub place: Place,
    /// Where the world listens.
    pub world: SocketAddr,
    /// How the world knows what these processes do.
    pub trial: String,
    /// Which child this is, from 0; what it pays says so.
    pub process: u32,
}

/// What is read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Page {
    number: u64,
}

/// Acts until it is killed.
///
/// # Errors
/// Those of the store, and any end of a call that no switch explains.
pub async fn be_busy(busy: &Busy) -> Result<(), Fault> {
    let opened = busy.place.open_all().await?;
    let reach = Reach {
        world: busy.world,
        trial: busy.trial.clone(),
        fuse: Arc::new(Fuse::default()),
        claimed_ms: Arc::new(AtomicU64::new(0)),
        flaw: None,
    };
    let (noting, what) = (reach.clone(), format!("read {}", busy.process));
    let read = move |_: Page| {
        let (noting, what) = (noting.clone(), what.clone());
        async move {
            noting.note(&what).await?;
            Ok::<_, ToolError>("a page")
        }
    };
    let grant = Grant {
        at_most: vec![("/cents".into(), 1_000)],
        per_day: Some(u64::MAX / 2),
        ..Grant::new("small", "pay", now_ms() + 86_400_000)
    };
    let policy = Policy::new().allow(["read"]).ask("pay", Ask::default());
    let gateway = Gateway::builder(opened.gateway.clone())
        .effect(Pay(reach.clone()))
        .read("read", "Reads a page", read)
        .policy(policy.grant(grant))
        .build()?;
    let scope = Scope::new(AGENT, format!("busy-{}-{}", busy.trial, busy.process));
    let session = gateway.session(scope, Limits::unlimited()).await?;
    say("began");
    for number in 1.. {
        let page = ToolCall::native("read", &format!(r#"{{"number":{number}}}"#));
        let cents = busy.process + 1;
        let pay = format!(r#"{{"cents":{cents},"order":{number}}}"#);
        let pay = ToolCall::native("pay", &pay);
        let mut refused = false;
        for (what, call) in [("reading", &page), ("paying", &pay)] {
            if call_once(&session, (&format!("{what} {number}"), call)).await? {
                refused = true;
                reach
                    .note(&format!("{what} is refused to {}", busy.process))
                    .await?;
            }
        }
        if refused {
            tokio::time::sleep(REFUSED).await;
        }
    }
    Ok(())
}

/// Makes a call; says whether a switch refused it.
async fn call_once(session: &Session, (key, call): (&str, &ToolCall)) -> Result<bool, Fault> {
    match session.call(key, call).await {
        Ok(_) => Ok(false),
        Err(
            Stop::KilledGlobal | Stop::KilledTenant | Stop::WritesDisabled | Stop::ToolDisabled(_),
        ) => Ok(true),
        Err(other) => Err(other.into()),
    }
}

/// Stops at one store.
pub struct Stopping<'a> {
    /// The kind of store.
    pub name: &'static str,
    /// The store. No other process may use it meanwhile.
    pub place: Place,
    /// How children are started.
    pub launch: &'a Launch,
    /// How many there are.
    pub children: u32,
}

/// What a switch stops, and whether that is reading too.
const SCOPES: [(&str, bool); 4] = [
    ("global", true),
    ("writes", false),
    ("agent:clerk", true),
    ("tool:pay", false),
];

impl Stopping<'_> {
    /// Puts a switch on and takes it off again, so many times.
    ///
    /// # Errors
    /// When a child does not go on or does not stop.
    pub async fn run(&self, rounds: u64) -> Result<Tally, Fault> {
        let world = World::start()?;
        let opened = self.place.open_all().await?;
        let desk = Approvals::new(opened.gateway.clone());
        let trial = format!("stopping-{}", uuid::Uuid::now_v7().simple());
        let mut children: Vec<Running> = Vec::new();
        for process in 0..self.children {
            children.push(self.launch.start(&Busy {
                place: self.place.clone(),
                world: world.address(),
                trial: trial.clone(),
                process,
            })?);
        }
        let round = Round {
            world: &world,
            trial: &trial,
            desk: &desk,
            children: self.children,
        };
        let mut tally = Tally::of(format!(
            "{} kill switch, {} processes",
            self.name, self.children
        ));
        let (mut effects, mut reads) = (Vec::new(), Vec::new());
        for number in 0..rounds {
            let stopped = round.stop(SCOPES[number as usize % SCOPES.len()]).await?;
            tally.take(format!("round {number}"), stopped.wrong);
            tally.count(
                "effects under way at the acknowledgement",
                stopped.under_way,
            );
            tally.count("effects", stopped.effects);
            effects.push(stopped.effect);
            reads.extend(stopped.read);
        }
        drop(children);
        tally.notes.push(times(
            "from the kill to the last effect that reached the world",
            effects,
        ));
        tally
            .notes
            .push(times("from the kill to the last call that read", reads));
        self.judge(&*opened.gateway, &mut tally).await?;
        Ok(tally)
    }

    /// No attempt stands in the chain between a switch and its end.
    async fn judge(&self, store: &dyn Store, tally: &mut Tally) -> Result<(), Fault> {
        let audit = store.audit(TENANT, 0, usize::MAX).await?;
        match Verifier::check(TENANT, &audit, &[]) {
            Ok(verified) => tally.count("attempts in the audit", verified.attempts),
            Err(broken) => {
                tally.take("the audit", vec![broken.to_string()]);
            }
        }
        Ok(())
    }
}

/// What a round works with.
struct Round<'a> {
    world: &'a World,
    trial: &'a str,
    desk: &'a Approvals,
    children: u32,
}

/// How a stop went.
struct Stopped {
    wrong: Vec<String>,
    effects: u64,
    under_way: u64,
    effect: Duration,
    read: Option<Duration>,
}

impl Round<'_> {
    async fn stop(&self, (scope, reading): (&str, bool)) -> Result<Stopped, Fault> {
        self.until("acts", || {
            let paid = self.paid();
            (1..=self.children).all(|cents| paid.get(&cents).is_some_and(|count| *count > 1))
        })
        .await?;
        let killed = Instant::now();
        self.desk.kill(scope, "ann", "a proof").await?;
        let acknowledged = Instant::now();
        let what = if reading { "reading" } else { "paying" };
        // Each is refused both times: what it does after that would be seen.
        for what in ["paying", what] {
            let refused = |process| {
                let notes = self.world.notes(self.trial);
                let at = notes.get(&format!("{what} is refused to {process}"));
                at.is_some_and(|at| *at > acknowledged)
            };
            self.until("stops", || (0..self.children).all(refused))
                .await?;
        }
        let payments = self.world.payments(self.trial);
        let last = payments.values().map(|payment| payment.at).max();
        let under_way = payments
            .values()
            .filter(|payment| payment.at > acknowledged)
            .count();
        let mut wrong = Vec::new();
        // One call at a time in each process: more can only have been claimed afterwards.
        if under_way > self.children as usize {
            wrong.push(format!(
                "{under_way} effects came after the kill of {scope}"
            ));
        }
        let read = self.last_read().filter(|_| reading);
        let read = read.map(|at| at.saturating_duration_since(killed));
        if read.is_some_and(|late| late > Duration::from_secs(1)) {
            wrong.push(format!(
                "a call still read {read:?} after the kill of {scope}"
            ));
        }
        // Nobody acts now: the next round begins with nothing.
        self.world.forget(self.trial);
        self.desk.unkill(scope, "ann").await?;
        Ok(Stopped {
            wrong,
            effects: payments.len() as u64,
            under_way: under_way as u64,
            effect: last.map_or(Duration::ZERO, |at| at.saturating_duration_since(killed)),
            read,
        })
    }

    /// How much each child has paid for, by what it pays.
    fn paid(&self) -> BTreeMap<u32, usize> {
        let mut paid = BTreeMap::new();
        for payment in self.world.payments(self.trial).values() {
            *paid.entry(payment.cents).or_default() += 1;
        }
        paid
    }

    fn last_read(&self) -> Option<Instant> {
        let notes = self.world.notes(self.trial);
        let reads = notes.iter().filter(|(what, _)| what.starts_with("read "));
        reads.map(|(_, at)| *at).max()
    }

    /// Waits until the children have come so far.
    async fn until(&self, what: &str, there: impl Fn() -> bool) -> Result<(), Fault> {
        let limit = Instant::now() + STUCK;
        while !there() {
            if Instant::now() > limit {
                return Err(format!("a child never {what}").into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

/// The middle, the worst but one in a hundred, and the worst.
fn times(what: &str, mut all: Vec<Duration>) -> String {
    all.sort();
    let at = |share: f64| {
        let place = (all.len() as f64 * share).ceil() as usize;
        let found = all.get(place.saturating_sub(1)).copied();
        found.unwrap_or_default().as_secs_f64() * 1_000.0
    };
    format!(
        "{what}: p50 {:.1} ms, p99 {:.1} ms, at most {:.1} ms, in {} rounds",
        at(0.5),
        at(0.99),
        at(1.0),
        all.len()
    )
}

impl Reach {
    /// Has something written down outside.
    async fn note(&self, what: &str) -> std::io::Result<()> {
        let request = Request::Note {
            trial: self.trial.clone(),
            what: what.to_owned(),
        };
        match self.ask(("note", "noted"), &request).await? {
            Answer::Noted => Ok(()),
            other => Err(std::io::Error::other(format!("the world said {other:?}"))),
        }
    }
}
