//! A model that is out for harm: whatever it says, nothing happens that nobody approved, and nothing breaks.
//!
//! Called by `paraph-crash prove` and by tests. In the place of the model stands a generator (`hostile/words`) that
//! knows the gateway's tools, its formats, and the ids and digests of all that waits. Beside it sits a person who now
//! and then approves, edits, rejects or stops something. What the effects did is written down by themselves; after
//! each episode it is compared with what that person approved, and every action with its bytes.

mod episode;
mod stage;
mod words;

use std::collections::BTreeMap;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use paraph_gateway::Store;

use crate::Fault;
use crate::tally::Tally;
use episode::Episode;
use stage::Stage;

/// So many episodes have one store.
const TOGETHER: u64 = 50;

/// By how much the process may be larger at the end than after a tenth of the episodes, in kilobytes.
const MOST_GROWTH_KB: u64 = 64 << 10;

/// Panics that nobody was to see.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Counts panics from now on, wherever they are caught.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
}

/// Lets the model have its way, so many times. `over` may put another store over the one in memory.
///
/// # Errors
/// When a gateway cannot be built.
pub async fn hostile_episodes(
    episodes: u64,
    seed: u64,
    over: impl Fn(Arc<dyn Store>) -> Arc<dyn Store>,
) -> Result<Tally, Fault> {
    count_panics();
    let panics = PANICS.load(Ordering::SeqCst);
    let mut tally = Tally::of("episodes with a hostile model");
    for what in [CALLS, EFFECTS, UNAPPROVED, "panics"] {
        tally.count(what, 0);
    }
    let mut stage = Stage::set(&over)?;
    let mut after_a_tenth = None;
    for number in 0..episodes {
        if number % TOGETHER == 0 {
            stage = Stage::set(&over)?;
        }
        let episode = Episode::new(&stage, seed.wrapping_add(number));
        // In a task of its own: a panic is the end of the task, and a finding.
        let (found, counted) = match tokio::spawn(episode.play()).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(fault)) => (vec![fault.to_string()], BTreeMap::new()),
            Err(error) => (vec![format!("it broke off: {error}")], BTreeMap::new()),
        };
        for (what, count) in counted {
            tally.count(what, count);
        }
        tally.take(format!("seed {}", seed.wrapping_add(number)), found);
        if number == episodes / 10 {
            after_a_tenth = resident_kb();
        }
    }
    tally.count("panics", PANICS.load(Ordering::SeqCst) - panics);
    if tally.counted("panics") > 0 {
        tally.take("panics", vec!["something panicked".to_owned()]);
    }
    weigh(&mut tally, after_a_tenth);
    Ok(tally)
}

const CALLS: &str = "calls";
const EFFECTS: &str = "effects";
const UNAPPROVED: &str = "effects that nobody approved";

/// Says how large the process has become.
fn weigh(tally: &mut Tally, after_a_tenth: Option<u64>) {
    let (Some(before), Some(now)) = (after_a_tenth, resident_kb()) else {
        return;
    };
    tally.notes.push(format!(
        "resident: {:.1} MB after a tenth, {:.1} MB at the end",
        before as f64 / 1_024.0,
        now as f64 / 1_024.0
    ));
    if now > before + MOST_GROWTH_KB {
        tally.take("memory", vec!["it grows".to_owned()]);
    }
}

/// How much memory this process has, in kilobytes, where the system tells it.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
