//! `paraph-bench-count SHAPE SETTING`: what a shape allocates, as one line of JSON. Called by `paraph-bench`.

use std::alloc::System;

use bench::{Fault, Setting, shapes};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    if let Ok(url) = std::env::var(bench::POSTGRES) {
        bench::set_postgres(url);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [shape, setting] = arguments.as_slice() else {
        return Err("usage: paraph-bench-count SHAPE SETTING".into());
    };
    let setting = Setting::parse(setting).ok_or("no such setting")?;
    let shape = shapes::build(shape)?;
    // The first run fills whatever is kept between runs.
    shape.engine(setting).await?;

    let before = ALLOCATOR.stats();
    let run = shape.engine(setting).await?;
    let after = ALLOCATOR.stats();
    let with_store = live(after);
    drop(run.store);
    let held = with_store.saturating_sub(live(ALLOCATOR.stats()));

    let floor_before = ALLOCATOR.stats();
    shape.floor(setting).await?;
    let floor_after = ALLOCATOR.stats();
    let report = serde_json::json!({
        "allocations": allocations(after) - allocations(before),
        "floor_allocations": allocations(floor_after) - allocations(floor_before),
        "held": held,
        "state": run.state_bytes,
    });
    println!("{report}");
    Ok(())
}

fn allocations(stats: stats_alloc::Stats) -> usize {
    stats.allocations + stats.reallocations
}

fn live(stats: stats_alloc::Stats) -> usize {
    stats
        .bytes_allocated
        .saturating_sub(stats.bytes_deallocated)
}
