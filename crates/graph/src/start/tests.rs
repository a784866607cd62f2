//! How much memory a run takes: of a thousand that wait for a model there is a thousand times as much.

use super::*;
use crate::{Ctx, MemoryStore};

#[derive(State, Clone, Default)]
struct Talk {
    #[reduce(append)]
    said: Vec<String>,
}

async fn speak(_: &Talk, _: &Ctx) -> crate::Result<crate::Update<Talk>> {
    Ok(Talk::update().said(["a word".to_owned()]))
}

fn start() -> Start<Talk> {
    let graph = Graph::<Talk>::new("talk")
        .node("speak", speak)
        .start("speak")
        .end("speak");
    let thread = graph
        .build()
        .map(|graph| graph.thread(&MemoryStore::shared(), "one"));
    thread.unwrap().run(Talk::update())
}

/// Bytes, in a build without optimisation; with it they are fewer.
const LARGEST_FUTURE: usize = 3_000;
/// What the parts of a run share, beside that.
const LARGEST_SHARE: usize = 1_200;

#[test]
fn the_future_of_a_run_stays_small() {
    let future = start().execute(None);
    let bytes = size_of_val(&future);
    assert!(bytes <= LARGEST_FUTURE, "{bytes} bytes");
    // It holds what it was started with once, and what it awaits once.
    assert!(bytes > size_of::<Start<Talk>>(), "{bytes} bytes");
}

#[test]
fn what_a_run_shares_stays_small() {
    let bytes = size_of::<Session>() + size_of::<RunShared>();
    assert!(bytes <= LARGEST_SHARE, "{bytes} bytes");
}
