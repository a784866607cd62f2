//! `paused_N`: a store with N threads that wait for an answer is opened, and all of them are listed.
//!
//! The store is written once and kept beside the binary, also for the process whose peak of memory is taken. The
//! floor opens a table without meaning and reads as many short documents from it.

use std::hint::black_box;
use std::time::Instant;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream;
use paraph_graph::{Ctx, Graph, Result as NodeResult, State, Store, ThreadQuery, Update};
use serde_json::Value;

use crate::bare::Bare;
use crate::ground::Ground;
use crate::{Fault, Run, Save, Setting, Shape};

/// How many threads are written at the same time.
const AT_ONCE: usize = 400;

#[derive(State, Clone, Default)]
struct Case {
    subject: String,
    answer: String,
}

async fn ask(case: &Case, ctx: &Ctx) -> NodeResult<Update<Case>> {
    let answer: String = ctx.interrupt("approve", format!("May I do {}?", case.subject))?;
    Ok(Case::update().answer(answer))
}

struct Paused {
    threads: usize,
    graph: Graph<Case>,
}

pub(super) fn shape(threads: usize) -> Result<Box<dyn Shape>, Fault> {
    let graph = Graph::<Case>::new("paused")
        .node("ask", ask)
        .start("ask")
        .end("ask")
        .build()?;
    Ok(Box::new(Paused { threads, graph }))
}

impl Paused {
    async fn ground(&self, setting: Setting, what: &str) -> Result<Ground, Fault> {
        let name = format!("{what}_{}", self.threads);
        let ground = Ground::lay(setting, Some(&name)).await?;
        ground.ok_or_else(|| "only a store that outlives the process is opened again".into())
    }

    /// The store with all its threads; a rest of it is written when it is first asked for.
    async fn written(&self, setting: Setting) -> Result<Ground, Fault> {
        let ground = self.ground(setting, "paused").await?;
        let store = ground.open().await?;
        let there = store.threads(&ThreadQuery::default()).await?.len();
        let store: Store = store;
        let missing = stream::iter(there..self.threads).map(|at| {
            let subject = format!("number {at}");
            let thread = self.graph.thread(&store, format!("case {at}"));
            async move { thread.run(Case::update().subject(subject)).await }
        });
        let mut written = missing.buffer_unordered(AT_ONCE);
        while let Some(outcome) = written.next().await {
            if outcome?.interrupts().len() != 1 {
                return Err("a thread does not wait".into());
            }
        }
        Ok(ground)
    }

    async fn run_engine(&self, setting: Setting) -> Result<Run, Fault> {
        let ground = self.written(setting).await?;
        let start = Instant::now();
        let store = ground.open().await?;
        let rows = store.threads(&ThreadQuery::default()).await?;
        let time = start.elapsed();
        let waiting = rows.iter().filter(|row| row.interrupts.len() == 1).count();
        if waiting != self.threads {
            return Err(format!("{waiting} threads wait").into());
        }
        Ok(Run::of(time))
    }

    async fn run_floor(&self, setting: Setting) -> Result<Run, Fault> {
        let ground = self.ground(setting, "paused_floor").await?;
        let mut bare = Bare::open(&ground).await?;
        let there = bare.read().await?.len();
        if there < self.threads {
            let row = serde_json::json!({
                "name": "case 1234", "status": "interrupted", "next": ["ask"],
                "interrupts": [{"id": "0".repeat(32), "node": "ask", "question": "May I do number 1234?"}],
            });
            let rows = vec![row.to_string().into_bytes(); self.threads - there];
            bare.commit(Save::Exit, &rows).await?;
        }
        drop(bare);
        let start = Instant::now();
        let mut bare = Bare::open(&ground).await?;
        for row in bare.read().await? {
            black_box(serde_json::from_str::<Value>(&row)?);
        }
        Ok(Run::of(start.elapsed()))
    }
}

impl Shape for Paused {
    fn name(&self) -> String {
        format!("paused_{}", self.threads)
    }

    fn node_runs(&self) -> usize {
        self.threads
    }

    fn settings(&self) -> Vec<Setting> {
        Setting::SYNC.to_vec()
    }

    fn engine(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_engine(setting))
    }

    fn floor(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_floor(setting))
    }
}
