//! Whatever is done to threads, in whatever order, both databases read as the store in memory does.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

mod cluster;

use cluster::Cluster;
use paraph_graph::{
    CheckpointId, Claim, Delta, Error, HistoryQuery, Keep, LogEntry, LogQuery, MemoryStore,
    Metadata, Note, NoteKind, PatchKind, Pruned, Put, RunEnd, RunId, RunQuery, RunStart, RunStatus,
    Scope, Source, Standing, ThreadRow, Threads,
};
use paraph_store::{Options, Postgres, Sqlite};
use proptest::{prelude::*, sample::Index};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::runtime::Runtime;

const SPACES: [&str; 3] = ["", "child", "child|deep"];

/// Something to do. Indices are of what is there then.
#[derive(Clone, Debug)]
enum Op {
    /// A run of some puts, in a namespace, after the head or after an older checkpoint.
    Run(u8, Vec<Step>),
    Prune(Keeping),
    DeleteRun(Index),
    /// Goes on with a copy; the original is deleted, or stays.
    Copy(bool),
    Trim(Index),
}

#[derive(Clone, Debug)]
struct Step {
    space: usize,
    parent: Option<Index>,
    channel: u8,
    what: u8,
    /// A checkpoint that the machine names.
    names: Option<Index>,
}

#[derive(Clone, Debug)]
enum Keeping {
    Last(usize),
    Since(u64),
    UpTo(Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = || proptest::option::weighted(0.3, any::<Index>());
    (0..3_usize, index(), 0..3_u8, any::<u8>(), index()).prop_map(
        |(space, parent, channel, what, names)| Step {
            space,
            parent,
            channel,
            what,
            names,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let keeping = prop_oneof![
        (0..9_usize).prop_map(Keeping::Last),
        (0..40_u64).prop_map(Keeping::Since),
        any::<Index>().prop_map(Keeping::UpTo),
    ];
    prop_oneof![
        6 => (any::<u8>(), proptest::collection::vec(step(), 1..12)).prop_map(|(s, steps)| Op::Run(s, steps)),
        3 => keeping.prop_map(Op::Prune),
        2 => any::<Index>().prop_map(Op::DeleteRun),
        1 => any::<bool>().prop_map(Op::Copy),
        1 => any::<Index>().prop_map(Op::Trim),
    ]
}

/// Both stores, and what is known of the thread in them.
struct Pair {
    stores: [Arc<dyn Threads>; 2],
    thread: String,
    /// Counts puts, as their time.
    clock: u64,
    copies: usize,
    runs: Vec<RunId>,
}

/// How a checkpoint reads: parent, metadata, machine, changes, notes, values.
type View = (
    CheckpointId,
    Value,
    Vec<u8>,
    Vec<String>,
    Vec<Note>,
    BTreeMap<String, Value>,
);

impl Pair {
    fn scope(&self, space: usize) -> Scope {
        Scope {
            thread: self.thread.as_str().into(),
            namespace: SPACES[space].into(),
        }
    }

    /// Does the same on both, and wants the same answer.
    async fn both<T: PartialEq + Debug>(
        &self,
        ask: impl AsyncFn(&dyn Threads) -> Result<T, Error>,
    ) -> Result<T, String> {
        let [memory, file] = &self.stores;
        let (memory, file) = (ask(&**memory).await, ask(&**file).await);
        let words = |answer: Result<T, Error>| answer.map_err(|e| e.to_string());
        let (memory, file) = (words(memory), words(file));
        if file != memory {
            let short = |answer| format!("{answer:?}").chars().take(1500).collect::<String>();
            panic!("{}\nand in memory {}", short(&file), short(&memory));
        }
        memory
    }

    async fn ids(&self, space: usize) -> Vec<CheckpointId> {
        let scope = self.scope(space);
        let all = self
            .both(async |store| store.history(&scope, &HistoryQuery::default()).await)
            .await;
        all.unwrap().into_iter().map(|entry| entry.id).collect()
    }

    async fn run(&mut self, status: u8, steps: &[Step]) {
        let run = RunId::fresh();
        let claim = Claim {
            run,
            start: Some(RunStart {
                graph: "graph".to_owned(),
                arguments: json!({"n": self.clock}),
            }),
        };
        let mut leases = Vec::new();
        for store in &self.stores {
            leases.push(store.lease(&self.thread, claim.clone()).await.unwrap());
        }
        for step in steps {
            let put = self.put(run, step).await;
            let scope = self.scope(step.space);
            for (store, lease) in self.stores.iter().zip(&leases) {
                let epoch = lease.epoch;
                let put = Put {
                    epoch,
                    ..put.clone()
                };
                store.put(&scope, put).await.unwrap();
            }
        }
        let status =
            [RunStatus::Success, RunStatus::Paused, RunStatus::Error][usize::from(status) % 3];
        for (store, lease) in self.stores.iter().zip(leases) {
            let end = RunEnd {
                run,
                epoch: lease.epoch,
                status,
                error: None,
                standing: Some(Standing {
                    values: Some(json!({"at": self.clock})),
                    ..Standing::IDLE
                }),
                events: Vec::new(),
            };
            store.finish(&self.thread, end).await.unwrap();
            drop(lease);
        }
        self.runs.push(run);
    }

    async fn put(&mut self, run: RunId, step: &Step) -> Put {
        self.clock += 1;
        let ids = self.ids(step.space).await;
        let head = ids.first().copied();
        let parent = match step.parent {
            Some(at) if !ids.is_empty() => Some(*at.get(&ids)),
            _ => head,
        };
        let items = self.items(step, parent).await;
        let (kind, json) = match (step.what % 4, items) {
            (0, 1..) => {
                let at = usize::from(step.what) % items;
                let text = "e".repeat(usize::from(step.what) * 20);
                (
                    PatchKind::Edit,
                    json!({"set": [[at, text]], "append": [self.clock]}),
                )
            }
            (1, _) => (PatchKind::Whole, json!([self.clock, "whole"])),
            _ => (PatchKind::Append, json!([self.clock, step.what])),
        };
        let channel = format!("channel {}", step.channel);
        let children = match step.space {
            2 => vec![],
            space => self.ids(space + 1).await,
        };
        let named = step
            .names
            .filter(|_| !children.is_empty())
            .map(|at| *at.get(&children));
        let machine = json!({"superstep": 0, "children": named.map(|id| json!({"x": id}))});
        let told = json!({"type": "updates", "update": {"n": self.clock}});
        Put {
            id: CheckpointId::fresh(),
            parent,
            expect: head,
            metadata: Metadata {
                source: Source::Loop,
                superstep: 0,
                run,
                created_ms: self.clock,
                user: Map::new(),
            },
            machine: match named {
                Some(_) => machine.to_string().into_bytes(),
                None => br#"{"superstep":0}"#.to_vec(),
            },
            deltas: vec![Delta {
                channel: channel.clone(),
                kind,
                json: json.to_string().into_bytes(),
            }],
            notes: vec![Note {
                task: uuid::Uuid::from_u128(1).into(),
                kind: NoteKind::Memo,
                key: format!("{}", self.clock),
                json: "1".to_owned(),
            }],
            epoch: 0,
            standing: (step.space == 0).then_some(Standing::IDLE),
            events: vec![LogEntry {
                run,
                namespace: SPACES[step.space].to_owned(),
                created_ms: self.clock,
                json: told.to_string(),
                same: vec![channel],
            }],
        }
    }

    /// How many items the step's channel has where it goes on from.
    async fn items(&self, step: &Step, parent: Option<CheckpointId>) -> usize {
        let Some(parent) = parent else { return 0 };
        let loaded = self.stores[0]
            .load(&self.scope(step.space), Some(parent))
            .await;
        let values = values(&loaded.unwrap().unwrap());
        let list = values.get(&format!("channel {}", step.channel));
        list.and_then(Value::as_array).map_or(0, Vec::len)
    }

    async fn act(&mut self, op: &Op) {
        let name = self.thread.clone();
        match op {
            Op::Run(status, steps) => self.run(*status, steps).await,
            Op::Prune(keeping) => {
                let ids = self.ids(0).await;
                let keep = match keeping {
                    Keeping::Last(n) => Keep::Last(*n),
                    Keeping::Since(back) => Keep::Since(self.clock.saturating_sub(*back)),
                    Keeping::UpTo(at) if !ids.is_empty() => Keep::UpTo(*at.get(&ids)),
                    Keeping::UpTo(_) => Keep::Last(1),
                };
                let pruned = self
                    .both(async |store| store.prune(&name, keep).await)
                    .await;
                assert!(pruned.is_ok_and(|pruned: Pruned| !pruned.pending) || self.runs.is_empty());
            }
            Op::DeleteRun(at) if !self.runs.is_empty() => {
                let run = self.runs.remove(at.index(self.runs.len()));
                let removed = self
                    .both(async |store| store.delete_runs(&[run]).await)
                    .await;
                removed.unwrap();
            }
            Op::DeleteRun(_) => {}
            Op::Copy(and_delete) => {
                self.copies += 1;
                let copy = format!("thread {}", self.copies);
                let copied = self
                    .both(async |store| store.copy(&name, &copy).await)
                    .await;
                if copied.is_ok() {
                    self.thread = copy;
                    self.runs.clear();
                    if *and_delete {
                        let deleted = self.both(async |store| Threads::delete(store, &name).await);
                        assert_eq!(deleted.await, Ok(true));
                    }
                }
            }
            Op::Trim(at) => {
                let upto = at.index(60) as u64;
                let trimmed = self.both(async |store| store.trim(&name, upto).await).await;
                trimmed.unwrap();
            }
        }
    }

    /// All of it reads the same.
    async fn compare(&self) {
        for space in 0..SPACES.len() {
            let scope = self.scope(space);
            let read = self.both(async |store| views(store, &scope).await).await;
            read.unwrap();
        }
        let name = &self.thread;
        let log = self.both(async |store| store.events(name, &LogQuery::default()).await);
        log.await.unwrap();
        let row = self
            .both(async |store| Ok(Threads::thread(store, name).await?.map(said)))
            .await;
        row.unwrap();
        let runs = async |store: &dyn Threads| {
            let all = store.runs(&RunQuery::default()).await?;
            Ok(all
                .into_iter()
                .map(|row| (row.id, row.thread, row.status))
                .collect::<Vec<_>>())
        };
        self.both(runs).await.unwrap();
        let counts = async |store: &dyn Threads| {
            let all = store.stats(Some(name)).await?;
            let counts = all.into_iter().map(|s| (s.checkpoints, s.notes, s.events));
            Ok(counts.collect::<Vec<_>>())
        };
        self.both(counts).await.unwrap();
        self.both(async |store| store.namespaces(name).await)
            .await
            .unwrap();
    }
}

/// What of a row does not hang on the clock, nor on chance.
fn said(row: ThreadRow) -> Value {
    json!([
        row.name, row.graph, row.status, row.holder, row.head, row.next, row.values
    ])
}

fn values(loaded: &paraph_graph::Loaded) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (channel, pieces) in &loaded.channels {
        let mut list: Vec<Value> = Vec::new();
        for piece in pieces {
            let json: Value = serde_json::from_slice(&piece.json).unwrap();
            match piece.kind {
                PatchKind::Whole => list = json.as_array().unwrap().clone(),
                PatchKind::Append => list.extend(json.as_array().unwrap().clone()),
                PatchKind::Edit => {
                    for pair in json["set"].as_array().unwrap() {
                        let at = usize::try_from(pair[0].as_u64().unwrap()).unwrap();
                        list[at] = pair[1].clone();
                    }
                    list.extend(json["append"].as_array().unwrap().clone());
                }
            }
        }
        all.insert(channel.clone(), Value::Array(list));
    }
    all
}

async fn views(store: &dyn Threads, scope: &Scope) -> Result<Vec<View>, Error> {
    let all = store.views(scope, &HistoryQuery::default()).await?;
    let view = |loaded: paraph_graph::Loaded| {
        let values = values(&loaded);
        // The last piece of what changed is the change itself.
        let own = loaded
            .channels
            .iter()
            .filter(|(name, _)| loaded.changed.contains(name));
        let own: Vec<_> = own
            .map(|(_, pieces)| pieces.last().unwrap().json.to_vec())
            .collect();
        let said = json!([loaded.parent, loaded.metadata, own]);
        (
            loaded.id,
            said,
            loaded.machine,
            loaded.changed,
            loaded.notes,
            values,
        )
    };
    Ok(all.into_iter().map(view).collect())
}

async fn check(file: Arc<dyn Threads>, ops: &[Op]) {
    let mut pair = Pair {
        stores: [MemoryStore::with_events(), file],
        thread: "thread".to_owned(),
        clock: 0,
        copies: 0,
        runs: Vec::new(),
    };
    for op in ops {
        pair.act(op).await;
        pair.compare().await;
    }
}

fn options(with_key: bool) -> Options {
    Options {
        key: with_key.then(|| "9".repeat(64).parse().unwrap()),
        ..Options::default()
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn threads_in_a_file_read_as_those_in_memory(
        ops in proptest::collection::vec(op(), 1..20),
        with_key in any::<bool>(),
    ) {
        Runtime::new().unwrap().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.db");
            check(Arc::new(Sqlite::open(path, options(with_key)).await.unwrap()), &ops).await;
        });
    }
}

/// One server for all cases.
static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
static CASE: AtomicU32 = AtomicU32::new(0);

proptest! {
    #![proptest_config(cases(6))]

    #[test]
    fn threads_in_postgres_read_as_those_in_memory(
        ops in proptest::collection::vec(op(), 1..20),
        with_key in any::<bool>(),
    ) {
        if let Some(cluster) = CLUSTER.get_or_init(Cluster::start) {
            Runtime::new().unwrap().block_on(async {
                let case = format!("case{}", CASE.fetch_add(1, Ordering::Relaxed));
                let url = cluster.database(&case);
                check(Arc::new(Postgres::connect(&url, options(with_key)).await.unwrap()), &ops).await;
            });
        }
    }
}
