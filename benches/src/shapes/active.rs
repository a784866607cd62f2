//! `active_N`: N runs at the same time that wait for a model twice, 50 ms each: how many a process can carry.
//!
//! The floor waits the same and saves nothing; nobody is done before 100 ms.

use std::time::{Duration, Instant};

use futures::future::{BoxFuture, try_join_all};
use paraph_graph::{Ctx, Graph, MemoryStore, Result as NodeResult, State, Store, Update};
use serde::Serialize;

use crate::ground::Ground;
use crate::{Fault, Run, Setting, Shape};

const MODEL: Duration = Duration::from_millis(50);

#[derive(State, Clone, Default, Serialize)]
struct Talk {
    #[reduce(append)]
    said: Vec<String>,
}

async fn ask(_: &Talk, ctx: &Ctx) -> NodeResult<Update<Talk>> {
    tokio::time::sleep(MODEL).await;
    Ok(Talk::update().said([format!("{} has an answer", ctx.node())]))
}

async fn look(_: &Talk, _: &Ctx) -> NodeResult<Update<Talk>> {
    Ok(Talk::update().said(["what the tool found".to_owned()]))
}

struct Active {
    runs: usize,
    graph: Graph<Talk>,
}

pub(super) fn shape(runs: usize) -> Result<Box<dyn Shape>, Fault> {
    let graph = Graph::<Talk>::new("active")
        .node("ask", ask)
        .node("look", look)
        .node("conclude", ask)
        .start("ask")
        .sequence(["ask", "look", "conclude"])
        .end("conclude")
        .build()?;
    Ok(Box::new(Active { runs, graph }))
}

impl Active {
    async fn run_all(&self, setting: Setting, store: &Store) -> Result<Run, Fault> {
        let durability = setting
            .durable()
            .map(|save| save.durability())
            .unwrap_or_default();
        let start = Instant::now();
        let runs = (0..self.runs).map(|at| {
            let run = self
                .graph
                .thread(store, format!("bench {at}"))
                .run(Talk::update());
            tokio::spawn(run.durability(durability).into_future())
        });
        for run in try_join_all(runs).await? {
            if run?.done()?.said.len() != 3 {
                return Err("the final state is wrong".into());
            }
        }
        Ok(Run::of(start.elapsed()))
    }

    async fn run_engine(&self, setting: Setting) -> Result<Run, Fault> {
        let Some(ground) = Ground::lay(setting, None).await? else {
            return self.run_all(setting, &MemoryStore::shared()).await;
        };
        let store: Store = ground.open().await?;
        let run = self.run_all(setting, &store).await?;
        drop(store);
        let disk = Some(ground.bytes().await?);
        ground.clear().await?;
        Ok(Run { disk, ..run })
    }

    async fn run_floor(&self) -> Result<Run, Fault> {
        let start = Instant::now();
        let runs = (0..self.runs).map(|_| {
            tokio::spawn(async {
                tokio::time::sleep(MODEL).await;
                tokio::time::sleep(MODEL).await;
            })
        });
        try_join_all(runs).await?;
        Ok(Run::of(start.elapsed()))
    }
}

impl Shape for Active {
    fn name(&self) -> String {
        format!("active_{}", self.runs)
    }

    fn node_runs(&self) -> usize {
        self.runs * 3
    }

    fn settings(&self) -> Vec<Setting> {
        let [_, _, memory, _] = Setting::QUICK;
        [memory].into_iter().chain(Setting::SYNC).collect()
    }

    fn engine(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_engine(setting))
    }

    fn floor(&self, _: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_floor())
    }
}
