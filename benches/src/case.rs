//! One shape with its graph and its floor, and how to run either once. The binaries call it; it prints nothing.

use std::error::Error;
use std::future::ready;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use paraph_graph::{EventData, Graph, MemoryStore, Mode, State, Store};
use serde::Serialize;

use crate::bare::Bare;
use crate::ground::Ground;
use crate::{Kept, Setting};

/// Whatever went wrong; a benchmark only prints it.
pub type Fault = Box<dyn Error + Send + Sync>;

/// What one run took and did.
pub struct Run {
    /// From the start of the run to its end; making the input and dropping the state are not in it.
    pub time: Duration,
    /// The update events that were read; 0 when nobody listened.
    pub events: usize,
    /// The final state as JSON, in bytes.
    pub state_bytes: usize,
    /// The store of the run, if it had one in this process.
    pub store: Option<Store>,
    /// The bytes on disk after it, if it was to outlive the process.
    pub disk: Option<u64>,
}

impl Run {
    /// One of which only the time is known.
    pub(crate) fn of(time: Duration) -> Run {
        Run {
            time,
            events: 0,
            state_bytes: 0,
            store: None,
            disk: None,
        }
    }
}

/// A shape that can be run, whatever its state is.
pub trait Shape: Send + Sync {
    /// Its name, as in `react_100`.
    fn name(&self) -> String;
    /// How many times a node runs, subgraphs included.
    fn node_runs(&self) -> usize;
    /// In which settings it is measured where nobody asks for some.
    fn settings(&self) -> Vec<Setting> {
        Setting::QUICK.to_vec()
    }
    /// Runs the graph once.
    fn engine(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>>;
    /// Runs the hand-written loop once.
    fn floor(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>>;
}

/// What a floor leaves behind.
pub struct Floor<S> {
    /// The final state.
    pub state: S,
    /// The JSON of each change, in order; empty without checkpoints.
    pub changes: Vec<Vec<u8>>,
}

impl<S> Floor<S> {
    /// A floor that starts from a state.
    pub fn from(state: S) -> Self {
        Floor {
            state,
            changes: Vec::new(),
        }
    }

    /// Makes the JSON of one change if somebody asks for it, and keeps it as a store would.
    pub fn tell<T: Serialize>(&mut self, setting: Setting, change: &T) {
        if !setting.saves() && !setting.updates {
            return;
        }
        // Our shapes hold no value that JSON cannot say; a fault would show in the byte counts.
        let json = black_box(serde_json::to_vec(change).unwrap_or_default());
        if setting.saves() {
            self.changes.push(json);
        }
    }
}

type FloorFn<S> = Box<dyn Fn(Setting) -> BoxFuture<'static, Floor<S>> + Send + Sync>;

/// A shape over the state `S`.
pub struct Case<S: State> {
    /// See [`Shape::name`].
    pub name: String,
    /// The graph, built once.
    pub graph: Graph<S>,
    /// Makes the input of one run.
    pub input: Box<dyn Fn() -> S::Update + Send + Sync>,
    /// How many update events of the graph itself a listener must see; subgraphs have their own.
    pub events: usize,
    /// See [`Shape::node_runs`].
    pub node_runs: usize,
    /// See [`Shape::settings`]; those within one process always come first.
    pub durable: Vec<Setting>,
    /// The hand-written loop. What the function does is preparation, what its future does is timed.
    pub floor: FloorFn<S>,
    /// Whether a final state is right.
    pub check: Box<dyn Fn(&S) -> bool + Send + Sync>,
}

impl<S: State + Serialize> Case<S> {
    fn judge(&self, state: &S, time: Duration, events: usize) -> Result<Run, Fault> {
        if !(self.check)(state) {
            return Err(format!("{}: the final state is wrong", self.name).into());
        }
        Ok(Run {
            events,
            state_bytes: json_size(state)?,
            ..Run::of(time)
        })
    }

    async fn run_engine(&self, setting: Setting) -> Result<Run, Fault> {
        let Some(ground) = Ground::lay(setting, None).await? else {
            let store = (setting.kept == Kept::Memory).then(MemoryStore::shared);
            let run = self.drive(setting, store.as_ref()).await?;
            return Ok(Run { store, ..run });
        };
        let store: Store = ground.open().await?;
        let run = self.drive(setting, Some(&store)).await?;
        drop(store);
        let disk = Some(ground.bytes().await?);
        ground.clear().await?;
        Ok(Run { disk, ..run })
    }

    async fn drive(&self, setting: Setting, store: Option<&Store>) -> Result<Run, Fault> {
        let input = (self.input)();
        let start = Instant::now();
        let run = match store {
            Some(store) => self.graph.thread(store, "bench").run(input),
            None => self.graph.run(input),
        };
        let run = match setting.durable() {
            Some(save) => run.durability(save.durability()),
            None => run,
        };
        let mut events = 0;
        let outcome = if setting.updates {
            let mut stream = run.stream([Mode::Updates]);
            while let Some(event) = stream.next().await {
                let own = event.scope.namespace.is_empty();
                events += usize::from(own && matches!(event.data, EventData::Update { .. }));
            }
            stream.outcome().await?
        } else {
            run.await?
        };
        let state = outcome.done()?;
        let time = start.elapsed();
        if setting.updates && events != self.events {
            return Err(
                format!("{}: {events} events instead of {}", self.name, self.events).into(),
            );
        }
        self.judge(&state, time, events)
    }

    async fn run_floor(&self, setting: Setting) -> Result<Run, Fault> {
        let work = (self.floor)(setting);
        let start = Instant::now();
        let floor = work.await;
        let time = start.elapsed();
        let run = self.judge(&floor.state, time, 0)?;
        let (Some(ground), Some(save)) = (Ground::lay(setting, None).await?, setting.durable())
        else {
            return Ok(run);
        };
        // Making the changes and committing them one after the other takes as long as in turn.
        let mut bare = Bare::open(&ground).await?;
        let committing = bare.commit(save, &floor.changes).await?;
        drop(bare);
        let disk = Some(ground.bytes().await?);
        ground.clear().await?;
        Ok(Run {
            time: time + committing,
            disk,
            ..run
        })
    }
}

impl<S: State + Serialize> Shape for Case<S> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn node_runs(&self) -> usize {
        self.node_runs
    }

    fn settings(&self) -> Vec<Setting> {
        let mut settings = Setting::QUICK.to_vec();
        settings.extend(&self.durable);
        settings
    }

    fn engine(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_engine(setting))
    }

    fn floor(&self, setting: Setting) -> BoxFuture<'_, Result<Run, Fault>> {
        Box::pin(self.run_floor(setting))
    }
}

/// How long the JSON of a value is, without building it: the peak of memory is measured too.
pub(crate) fn json_size(value: &impl Serialize) -> Result<usize, Fault> {
    struct Length(usize);
    impl Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    serde_json::to_writer(&mut length, value)?;
    Ok(length.0)
}

/// A node of a floor: an async function behind one box, as the engine must call it too.
pub(crate) type Step<S, T> = Arc<dyn for<'a> Fn(&'a S) -> BoxFuture<'a, T> + Send + Sync>;

/// Makes a node of a floor from a plain function.
pub(crate) fn step<S, T: Send + 'static>(
    work: impl Fn(&S) -> T + Send + Sync + 'static,
) -> Step<S, T> {
    Arc::new(move |state| Box::pin(ready(work(state))))
}
