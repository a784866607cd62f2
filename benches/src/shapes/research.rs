//! `research_N`: one research run whose supervisor sends N researchers at once, where every model call takes 50 ms.
//!
//! The floor makes as many calls one after the other as the run's longest chain has, N at a time: what nobody can beat
//! who asks the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, try_join_all};
use futures::{FutureExt as _, StreamExt as _};
use paraph_agents::{
    AgentEventData, Rehearsal, ResearchSettings, Role, Stores, Terms, Voice, research,
    sample_sources,
};
use paraph_models::{ChatModel, ChatRequest, Chunk, ChunkStream, FinishReason, ToolCallDelta};
use serde_json::json;

use crate::ground::Ground;
use crate::{Fault, Run, Setting, Shape};

const MODEL: Duration = Duration::from_millis(50);
const QUESTION: &str =
    "Which measures against made-up answers are there in retrieval-augmented generation?";

/// A part of the rehearsal that takes its time. The supervisor's first decision sends all researchers.
struct Slow {
    role: Role,
    researchers: usize,
    asked: AtomicU64,
}

impl ChatModel for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let first = self.asked.fetch_add(1, Ordering::Relaxed) == 0;
        let played: ChunkStream<'a> = match (self.role, first) {
            (Role::Supervisor, true) => {
                let all = (0u32..).take(self.researchers).map(|index| ToolCallDelta {
                    index: Some(index),
                    name: Some("conduct_research".to_owned()),
                    arguments: json!({"topic": format!("made-up answers, part {index}"), "complexity": "simple"})
                        .to_string(),
                    ..ToolCallDelta::default()
                });
                let chunk = Chunk {
                    tool_calls: all.collect(),
                    finish_reason: Some(FinishReason::ToolCalls),
                    ..Chunk::default()
                };
                futures::stream::iter([Ok(chunk)]).boxed()
            }
            _ => {
                let role = self.role;
                async move {
                    let played = Rehearsal::Research(role);
                    let chunks: Vec<_> = played.stream(request).collect().await;
                    futures::stream::iter(chunks)
                }
                .flatten_stream()
                .boxed()
            }
        };
        async move {
            tokio::time::sleep(MODEL).await;
            played
        }
        .flatten_stream()
        .boxed()
    }
}

struct Research {
    researchers: usize,
}

pub(super) fn shape(researchers: usize) -> Box<dyn Shape> {
    Box::new(Research { researchers })
}

impl Research {
    fn settings_of(&self) -> ResearchSettings {
        let voice = |role| Voice {
            model: Arc::new(Slow {
                role,
                researchers: self.researchers,
                asked: AtomicU64::new(0),
            }),
            price: None,
        };
        ResearchSettings {
            breadth: self.researchers as u64,
            voices: Role::ALL.map(|role| (role, voice(role))).into(),
            ..ResearchSettings::rehearsal()
        }
    }

    /// Runs it; gives the time, and the calls of its longest chain.
    async fn run_once(&self, stores: &Stores) -> Result<(Duration, u64), Fault> {
        let agent = research(stores, sample_sources(), self.settings_of(), (&[], &[]))?;
        let mut limits = agent.limits();
        limits.children = self.researchers as u64;
        limits.tool_calls = 100 * self.researchers as u64;
        let model = Arc::new(Rehearsal::Research(Role::Supervisor));
        let terms = Terms {
            limits,
            ..Terms::new(model, "bench")
        };
        let start = Instant::now();
        let mut run = agent.start(QUESTION, &terms).await?;
        let (mut main, mut inner) = (0, 0);
        while let Some(event) = run.next().await {
            match event.data {
                AgentEventData::StepStarted { step, .. } => main = main.max(step),
                AgentEventData::Inside { event, .. } => {
                    if let AgentEventData::StepStarted { step, .. } = *event {
                        inner = inner.max(step);
                    }
                }
                AgentEventData::RunEnded { result, .. } => {
                    let figures = result.report().ok_or("there is no report")?.figures;
                    if figures.researchers != self.researchers as u64 {
                        return Err("not all researchers were sent".into());
                    }
                }
                _ => {}
            }
        }
        Ok((start.elapsed(), main + inner))
    }

    async fn run_engine(&self, setting: Setting) -> Result<Run, Fault> {
        let Some(ground) = Ground::lay(setting, None).await? else {
            return Ok(Run::of(self.run_once(&Stores::in_memory()).await?.0));
        };
        let stores = Stores {
            threads: ground.open().await?,
            ..Stores::in_memory()
        };
        let (time, _) = self.run_once(&stores).await?;
        drop(stores);
        let disk = Some(ground.bytes().await?);
        ground.clear().await?;
        Ok(Run {
            disk,
            ..Run::of(time)
        })
    }

    async fn run_floor(&self) -> Result<Run, Fault> {
        let (_, chain) = self.run_once(&Stores::in_memory()).await?;
        let start = Instant::now();
        let all = (0..self.researchers).map(|_| {
            tokio::spawn(async move {
                for _ in 0..chain {
                    tokio::time::sleep(MODEL).await;
                }
            })
        });
        try_join_all(all).await?;
        Ok(Run::of(start.elapsed()))
    }
}

impl Shape for Research {
    fn name(&self) -> String {
        format!("research_{}", self.researchers)
    }

    fn node_runs(&self) -> usize {
        self.researchers
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
