//! `threads_TxN`: T threads of `react_N` at the same time on one store: whether their commits share the disk.
//!
//! The floor commits the same changes of all threads one after the other, as whoever shares nothing must.

use std::time::Instant;

use futures::future::{BoxFuture, try_join_all};
use paraph_graph::{Graph, MemoryStore, State, Store};

use super::react::{self, Chat, Script};
use crate::bare::Bare;
use crate::ground::Ground;
use crate::{Fault, Run, Setting, Shape};

struct Threads {
    threads: usize,
    script: Script,
    graph: Graph<Chat>,
}

pub(super) fn shape(threads: usize, turns: usize) -> Result<Box<dyn Shape>, Fault> {
    let script = Script {
        turns,
        noise: false,
    };
    Ok(Box::new(Threads {
        threads,
        script,
        graph: react::graph(script)?,
    }))
}

impl Threads {
    async fn run_all(&self, setting: Setting, store: &Store) -> Result<(), Fault> {
        let durability = setting
            .durable()
            .map(|save| save.durability())
            .unwrap_or_default();
        let runs = (0..self.threads).map(|at| {
            let thread = self.graph.thread(store, format!("bench {at}"));
            let input = Chat::update().messages([react::question()]);
            tokio::spawn(thread.run(input).durability(durability).into_future())
        });
        for run in try_join_all(runs).await? {
            if run?.done()?.messages.len() != 2 * self.script.turns + 2 {
                return Err("the final state is wrong".into());
            }
        }
        Ok(())
    }

    async fn run_engine(&self, setting: Setting) -> Result<Run, Fault> {
        let Some(ground) = Ground::lay(setting, None).await? else {
            let store = MemoryStore::shared();
            let start = Instant::now();
            self.run_all(setting, &store).await?;
            return Ok(Run::of(start.elapsed()));
        };
        let store: Store = ground.open().await?;
        let start = Instant::now();
        self.run_all(setting, &store).await?;
        let time = start.elapsed();
        drop(store);
        let disk = Some(ground.bytes().await?);
        ground.clear().await?;
        let state = react::floor_of(self.script, setting).await.state;
        Ok(Run {
            disk,
            state_bytes: self.threads * crate::case::json_size(&state)?,
            ..Run::of(time)
        })
    }

    async fn run_floor(&self, setting: Setting) -> Result<Run, Fault> {
        let start = Instant::now();
        let mut floors = Vec::new();
        for _ in 0..self.threads {
            floors.push(react::floor_of(self.script, setting).await);
        }
        let mut time = start.elapsed();
        if let (Some(ground), Some(save)) = (Ground::lay(setting, None).await?, setting.durable()) {
            let mut bare = Bare::open(&ground).await?;
            for floor in &floors {
                time += bare.commit(save, &floor.changes).await?;
            }
            drop(bare);
            ground.clear().await?;
        }
        Ok(Run::of(time))
    }
}

impl Shape for Threads {
    fn name(&self) -> String {
        format!("threads_{}x{}", self.threads, self.script.turns)
    }

    fn node_runs(&self) -> usize {
        self.threads * (2 * self.script.turns + 1)
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
