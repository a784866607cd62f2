//! `load_N`: the head of a thread on which `react_N` has run, read back in a store that was just opened.
//!
//! The floor reads the same messages from a table without meaning. Both are written once and then kept until the
//! harness ends.

use std::time::Instant;

use futures::future::BoxFuture;
use paraph_graph::{Durability, Graph, State, Store};
use tokio::sync::OnceCell;

use super::react::{self, Chat, Message, Script};
use crate::bare::Bare;
use crate::ground::Ground;
use crate::{Fault, Run, Save, Setting, Shape};

struct Load {
    script: Script,
    graph: Graph<Chat>,
    written: OnceCell<(Ground, Ground)>,
}

pub(super) fn shape(turns: usize) -> Result<Box<dyn Shape>, Fault> {
    let script = Script {
        turns,
        noise: false,
    };
    Ok(Box::new(Load {
        script,
        graph: react::graph(script)?,
        written: OnceCell::new(),
    }))
}

impl Load {
    /// The store and the table, written when they are first asked for.
    async fn written(&self, setting: Setting) -> Result<&(Ground, Ground), Fault> {
        self.written
            .get_or_try_init(async || {
                let (Some(own), Some(bare)) = (
                    Ground::lay(setting, None).await?,
                    Ground::lay(setting, None).await?,
                ) else {
                    return Err("only a store that outlives the process is read back".into());
                };
                let store: Store = own.open().await?;
                let input = Chat::update().messages([react::question()]);
                let run = self.graph.thread(&store, "bench").run(input);
                run.durability(Durability::Async).await?.done()?;
                let changes = react::floor_of(self.script, setting).await.changes;
                Bare::open(&bare)
                    .await?
                    .commit(Save::Exit, &changes)
                    .await?;
                Ok((own, bare))
            })
            .await
    }

    async fn run_engine(&self, setting: Setting) -> Result<Run, Fault> {
        let (own, _) = self.written(setting).await?;
        let store: Store = own.open().await?;
        let start = Instant::now();
        let snapshot = self.graph.thread(&store, "bench").snapshot(None).await?;
        let time = start.elapsed();
        let messages = snapshot.map_or(0, |snapshot| snapshot.state.messages.len());
        if messages != 2 * self.script.turns + 2 {
            return Err(format!("{messages} messages were read").into());
        }
        drop(store);
        Ok(Run {
            disk: Some(own.bytes().await?),
            ..Run::of(time)
        })
    }

    async fn run_floor(&self, setting: Setting) -> Result<Run, Fault> {
        let (_, bare) = self.written(setting).await?;
        let mut bare = Bare::open(bare).await?;
        let start = Instant::now();
        let mut messages: Vec<Message> = Vec::new();
        for value in bare.read().await? {
            match value.as_bytes() {
                // A step of the hands is a list, one of the brain a message; the rest is lease and end.
                [b'[', ..] => messages.extend(serde_json::from_str::<Vec<Message>>(&value)?),
                [b'{', b'"', ..] => messages.push(serde_json::from_str(&value)?),
                _ => {}
            }
        }
        let time = start.elapsed();
        if messages.len() != 2 * self.script.turns + 1 {
            return Err(format!("{} messages were read by the floor", messages.len()).into());
        }
        Ok(Run::of(time))
    }
}

impl Shape for Load {
    fn name(&self) -> String {
        format!("load_{}", self.script.turns)
    }

    fn node_runs(&self) -> usize {
        2 * self.script.turns + 1
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
