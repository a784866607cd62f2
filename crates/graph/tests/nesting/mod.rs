//! What the tests of subgraphs share: a parent's state, a child's state, and a child that counts.
#![allow(
    dead_code,
    reason = "each test file is a program of its own and uses a part of this"
)]
#![allow(
    unreachable_pub,
    reason = "the same part is private to the program that includes it"
)]

use paraph_graph::*;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

#[derive(State, Clone, Default, Debug, PartialEq)]
pub struct Outer {
    pub turn: u32,
    #[reduce(append)]
    pub log: Vec<String>,
    pub total: u32,
}

#[derive(State, Clone, Default, Debug, PartialEq)]
pub struct Inner {
    pub word: String,
    pub count: u32,
    #[reduce(append)]
    pub seen: Vec<String>,
}

pub type Count = Arc<AtomicU32>;

pub fn count() -> Count {
    Count::default()
}

pub fn hit(count: &Count) -> u32 {
    count.fetch_add(1, Ordering::SeqCst) + 1
}

pub fn hits(count: &Count) -> u32 {
    count.load(Ordering::SeqCst)
}

pub fn log(line: impl Into<String>) -> Update<Outer> {
    Outer::update().log([line.into()])
}

pub fn seen(line: impl Into<String>) -> Update<Inner> {
    Inner::update().seen([line.into()])
}

/// Counts how often it was called in one state, and remembers each word.
pub fn counting() -> Graph<Inner> {
    Graph::<Inner>::new("counting")
        .node("count", async |i: &Inner, _: &Ctx| {
            Ok(seen(i.word.clone()).count(i.count + 1))
        })
        .start("count")
        .end("count")
        .build()
        .unwrap()
}

/// A parent that calls `child` once per run and logs what it had seen.
pub fn calling(child: &Graph<Inner>, persistent: bool) -> Graph<Outer> {
    let node = child.mapped(
        |o: &Outer| Inner::update().word(format!("turn {}", o.turn)),
        |i: Inner| log(i.seen.join(" + ")).total(i.count),
    );
    let graph = Graph::<Outer>::new("calling");
    let graph = if persistent {
        graph.node("child", node.persistent())
    } else {
        graph.node("child", node)
    };
    graph.start("child").end("child").build().unwrap()
}
