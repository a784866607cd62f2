//! A store that fails: its words end the run, in every durability, and nothing unsaved is told.

#![expect(
    clippy::unwrap_used,
    reason = "a test may panic; clippy sees only the test functions as tests, not what they call"
)]

use futures::future::BoxFuture;
use paraph_graph::*;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

#[derive(State, Clone, Default, Debug, PartialEq)]
struct Case {
    #[reduce(append)]
    log: Vec<String>,
}

async fn log(_: &Case, ctx: &Ctx) -> Result<Update<Case>> {
    Ok(Case::update().log([ctx.node().to_owned()]))
}

fn graph() -> Builder<Case> {
    Graph::<Case>::new("case")
}

/// A graph of one node that logs its name.
fn single() -> Graph<Case> {
    graph()
        .node("only", log)
        .start("only")
        .end("only")
        .build()
        .unwrap()
}

/// A store that fails at one of its doors.
struct Broken {
    store: MemoryStore,
    door: &'static str,
    /// How often the door still works.
    works: AtomicUsize,
}

impl Broken {
    fn at(door: &'static str, works: usize) -> Store {
        Arc::new(Broken {
            store: MemoryStore::default(),
            door,
            works: AtomicUsize::new(works),
        })
    }

    fn check(&self, door: &str) -> Result<(), Error> {
        let spent = |n: usize| n.checked_sub(1);
        if door == self.door
            && self
                .works
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, spent)
                .is_err()
        {
            return Err(Error::store(format!("the {door} is broken")));
        }
        Ok(())
    }
}

impl Checkpoints for Broken {
    fn lease<'a>(&'a self, thread: &'a str, claim: Claim) -> BoxFuture<'a, Result<Lease, Error>> {
        Box::pin(async move {
            self.check("lease")?;
            self.store.lease(thread, claim).await
        })
    }
    fn put<'a>(&'a self, scope: &'a Scope, put: Put) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.check("put")?;
            self.store.put(scope, put).await
        })
    }
    fn note<'a>(&'a self, scope: &'a Scope, notes: Notes) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.check("note")?;
            self.store.note(scope, notes).await
        })
    }
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        at: Option<CheckpointId>,
    ) -> BoxFuture<'a, Result<Option<Loaded>, Error>> {
        Box::pin(async move {
            self.check("load")?;
            self.store.load(scope, at).await
        })
    }
    fn history<'a>(
        &'a self,
        scope: &'a Scope,
        query: &'a HistoryQuery,
    ) -> BoxFuture<'a, Result<Vec<Entry>, Error>> {
        self.store.history(scope, query)
    }
}

// 4.
#[tokio::test]
async fn a_failing_store_fails_the_run_with_its_own_words_in_every_durability() {
    let graph = graph()
        .node("left", log)
        .node("right", log)
        .node("last", log)
        .start(["left", "right"])
        .join(["left", "right"], "last")
        .end("last")
        .build()
        .unwrap();
    let doors = [
        ("lease", 0),
        ("load", 0),
        ("put", 0),
        ("put", 1),
        ("put", 2),
        ("note", 0),
        ("note", 1),
    ];
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        for (door, works) in doors {
            // With `Exit` there is one checkpoint in all, and no note.
            if durability == Durability::Exit && (works > 0 || door == "note") {
                continue;
            }
            let thread = graph.thread(&Broken::at(door, works), "t");
            let run = thread.run(Case::update()).durability(durability);
            let error = run.await.unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("store: the {door} is broken"),
                "{durability:?}, after {works}"
            );
        }
    }
}

// 4, SERVER-NEEDS: nothing is told before it is saved.
#[tokio::test]
async fn what_could_not_be_saved_is_not_told() {
    for durability in [Durability::Sync, Durability::Async] {
        let thread = single().thread(&Broken::at("put", 1), "t");
        let run = thread.run(Case::update()).durability(durability);
        let mut stream = run.stream([Mode::Values, Mode::Updates]);
        let mut told = Vec::new();
        while let Some(event) = stream.next().await {
            told.push(serde_json::to_value(&event).unwrap()["type"].clone());
        }
        assert_eq!(told, ["values"], "the input alone, {durability:?}");
        assert!(matches!(stream.outcome().await, Err(Error::Store(_))));
    }
}
