//! The child: it looks how far an errand has come, and does all that is still to be done of it.
//!
//! Started by `launch` as `paraph-crash errand ERRAND`. An errand is one run of a graph with one call at the gateway
//! that a person has to approve. The same program is that person, as at the command line: it looks at what is shown,
//! says yes to its digest, and drives the run on. What it says on standard output, a line each: `began`, `shown ID
//! DIGEST`, `approved ID DIGEST` (once that is saved), `acts`, `marked TEXT`, `writes DEED…`, `done`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use paraph_gateway::{
    Action, ActionId, Approvals, Ask, Gateway, Limits, Policy, Reply, RunRef, Scope, ToolCall,
    Waiting, Wake, Why,
};
use paraph_graph::{
    Ctx, Durability, Error, Graph, Mode, NodeError, Result, RunId, RunStatus, State, Store, Thread,
    Threads, Update, with,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::acting::{Flaw, Pay, Reach, Write};
use super::watched::WatchedActions;
use super::world::now_ms;
use crate::Fault;
use crate::child::Stop;
use crate::failpoint::Watched;
use crate::fuse::Fuse;
use crate::outside::say;
use crate::place::Place;

/// Who approves.
pub(crate) const PERSON: &str = "ann";

/// The agent's name.
const AGENT: &str = "clerk";

/// How often a run is taken up before it counts as stuck: a few times it rests, and now and then something is due.
const MOST: usize = 50;

/// Which of the two services the effect is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Payments, with keys.
    Pay,
    /// Comments, without.
    Write,
}

impl Api {
    /// Both.
    pub const ALL: [Api; 2] = [Api::Pay, Api::Write];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Api::Pay => "payments",
            Api::Write => "comments",
        }
    }

    /// What the agent calls.
    fn call(self) -> (&'static str, &'static str) {
        match self {
            Api::Pay => ("pay", r#"{"cents":4200,"order":7}"#),
            Api::Write => ("write", r#"{"text":"Fixed in 1.2, see the notes."}"#),
        }
    }
}

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The store.
    pub place: Place,
    /// The thread, which is also the tenant, and how the world knows the trial.
    pub thread: String,
    /// The run; all processes of a trial drive the same.
    pub run: Uuid,
    /// Whom the effect reaches.
    pub api: Api,
    /// Where the world listens.
    pub world: SocketAddr,
    /// A fault in the effect.
    pub flaw: Option<Flaw>,
    /// Where the child ends by itself, if it does.
    pub stop: Option<Stop>,
}

impl Errand {
    /// Under which name the gateway keeps its run.
    pub(crate) fn run_ref(&self) -> RunRef {
        RunRef {
            tenant: self.thread.clone(),
            agent: AGENT.to_owned(),
            thread: self.thread.clone(),
            run: RunId::from(self.run).to_string(),
        }
    }
}

/// Does what is left of an errand.
///
/// # Errors
/// Whatever the stores, the engine or the gateway said; a run that never comes to its end.
pub async fn run_errand(errand: &Errand) -> std::result::Result<(), Fault> {
    let opened = errand.place.open_all().await?;
    let fuse = Arc::new(Fuse::new(errand.stop));
    let claimed_ms = Arc::new(AtomicU64::new(0));
    let gateway_store: Arc<dyn paraph_gateway::Store> = Arc::new(WatchedActions {
        inner: opened.gateway,
        fuse: fuse.clone(),
        claimed_ms: claimed_ms.clone(),
    });
    let reach = Reach {
        world: errand.world,
        trial: errand.thread.clone(),
        fuse: fuse.clone(),
        claimed_ms,
        flaw: errand.flaw,
    };
    let ask = Ask::default();
    let gateway = Gateway::builder(gateway_store)
        .effect(Pay(reach.clone()))
        .effect(Write(reach))
        .policy(Policy::new().ask("pay", ask).ask("write", ask))
        .build()?;
    say("began");
    let driver = Driver {
        desk: gateway.approvals(),
        graph: graph(gateway, errand.api)?,
        store: Arc::new(Watched::with(opened.threads.clone(), fuse.clone())),
        rows: opened.threads,
        errand,
    };
    let driven = driver.to_the_end().await;
    say(&format!("writes {}", fuse.deeds()));
    driven?;
    say("done");
    Ok(())
}

/// The state of an errand.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) receipt: String,
    pub(crate) told: bool,
}

/// What the node that acts needs.
struct Door {
    gateway: Gateway,
    api: Api,
}

/// Calls the gateway, and waits for whatever the gateway waits for.
async fn act(door: &Arc<Door>, _: &Job, ctx: &Ctx) -> Result<Update<Job>> {
    let scope = Scope {
        tenant: ctx.thread().to_owned(),
        run: ctx.run_id().to_string(),
        epoch: ctx.lease().epoch,
        ..Scope::new(AGENT, ctx.thread())
    };
    let session = door.gateway.session(scope, Limits::unlimited()).await?;
    let (tool, arguments) = door.api.call();
    let call = ToolCall::native(tool, arguments);
    match session.call(&ctx.key("call"), &call).await? {
        Reply::Observed(seen) if seen.ok() => Ok(Job::update().receipt(seen.text())),
        Reply::Waiting(waiting) => ctx.wait("approval", &waiting),
        other => Err(NodeError::msg(format!("the gateway said {other:?}"))),
    }
}

fn graph(gateway: Gateway, api: Api) -> std::result::Result<Graph<Job>, Error> {
    Graph::<Job>::new("errand")
        .node("act", with(Arc::new(Door { gateway, api }), act))
        .node(
            "tell",
            async |_: &Job, _: &Ctx| Ok(Job::update().told(true)),
        )
        .start("act")
        .sequence(["act", "tell"])
        .end("tell")
        .build()
}

/// The graph of an errand as whoever only reads it needs it.
pub(crate) fn readable(api: Api) -> std::result::Result<Graph<Job>, Fault> {
    let gateway = Gateway::builder(paraph_gateway::MemoryStore::shared()).build()?;
    Ok(graph(gateway, api)?)
}

/// Whoever does an errand.
struct Driver<'e> {
    graph: Graph<Job>,
    desk: Approvals,
    store: Store,
    rows: Arc<dyn Threads>,
    errand: &'e Errand,
}

impl Driver<'_> {
    async fn to_the_end(&self) -> std::result::Result<(), Fault> {
        let thread = self.graph.thread(&self.store, self.errand.thread.as_str());
        for _ in 0..MOST {
            // Those that come while the run is driven stay for the next time.
            let wakes = self.wakes().await?;
            let over = self.go_on(&thread).await?;
            let now_ms = now_ms();
            for wake in &wakes {
                if over || wake.due_ms <= now_ms {
                    self.desk.woken(wake).await?;
                }
            }
            if over && self.wakes().await?.is_empty() {
                return Ok(());
            }
        }
        Err("the run is never done".into())
    }

    async fn wakes(&self) -> std::result::Result<Vec<Wake>, Fault> {
        let mut wakes = self.desk.wakes().await?;
        wakes.retain(|wake| wake.run.thread == self.errand.thread);
        Ok(wakes)
    }

    /// Does what is due next. Says whether nothing is left.
    async fn go_on(&self, thread: &Thread<Job>) -> std::result::Result<bool, Fault> {
        let start = match thread.snapshot(None).await? {
            None => thread.run(Job::update()),
            Some(stands) if stands.finished && self.is_told().await? => return Ok(true),
            Some(stands) if stands.interrupts.is_empty() => thread.resume(),
            Some(stands) => {
                for asked in &stands.interrupts {
                    self.attend(&serde_json::from_value(asked.question.clone())?)
                        .await?;
                }
                let ids = stands.interrupts.into_iter().map(|asked| asked.id);
                thread.answers(ids.map(|id| (id, true.into())))
            }
        };
        let stream = start
            .run_id(RunId::from(self.errand.run))
            .durability(Durability::Sync)
            .stream([Mode::Checkpoints]);
        stream.outcome().await?;
        Ok(false)
    }

    /// Whether the run's row says that it is over.
    async fn is_told(&self) -> std::result::Result<bool, Fault> {
        let row = self.rows.run(RunId::from(self.errand.run)).await?;
        Ok(row.is_some_and(|row| row.status == RunStatus::Success))
    }

    /// Sees to what the run waits for: a person's yes, or a moment.
    async fn attend(&self, waiting: &Waiting) -> std::result::Result<(), Fault> {
        match waiting.why {
            Why::Unknown | Why::Unchecked => {
                let due_ms = waiting.due_ms.ok_or("only a person could find out")?;
                let left = due_ms.saturating_sub(now_ms());
                tokio::time::sleep(Duration::from_millis(left + 1)).await;
                Ok(())
            }
            Why::Approval | Why::Held => self.decide(waiting.action).await,
            Why::Killed => Err("a kill switch is on, and nobody has put one on".into()),
        }
    }

    async fn decide(&self, id: ActionId) -> std::result::Result<(), Fault> {
        let row = self.desk.show(id).await?;
        if !row.state.is_undecided() {
            return Ok(());
        }
        // What is on the screen is made of the bytes, and their digest is taken from nothing else.
        let shown = Action::read(&row.action.bytes)?.digest;
        say(&format!("shown {id} {shown}"));
        let signed = self.desk.approve(id, &shown, PERSON).await?;
        say(&format!("approved {id} {}", signed.digest));
        Ok(())
    }
}
