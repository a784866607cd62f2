//! Which run called which: from a run that asks for something up to the one that `paraph run` began. It goes by the ids
//! that stand with the runs, and never by what threads are called.

use crate::failure::Failure;
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_agents::caller_of;
use paraph_gateway::RunRef;
use paraph_graph::{RunId, RunRow};

/// How many runs may stand above one another. Agents call agents less deep than that; more is no lineage.
const HIGHEST: usize = 64;

/// The run, the one that called it, and so on, as far as they are in the store: nothing if the run itself is not.
pub(crate) async fn lineage(kept: &Kept, run: &str) -> Result<Vec<RunRow>, Failure> {
    let mut found: Vec<RunRow> = Vec::new();
    let mut next: Option<RunId> = run.parse().ok();
    while let Some(id) = next
        && found.len() < HIGHEST
    {
        let Some(row) = kept.threads.run(id).await? else {
            break;
        };
        next = caller_of(&row);
        found.push(row);
    }
    Ok(found)
}

/// The run that goes on when something was decided for this one: itself, or that whose agents called it.
pub(super) async fn waiting_run(kept: &Kept, run: &RunRef) -> Result<RunRow, Failure> {
    let gone = |run: &str| {
        Failure::Usage(format!(
            "run {} is not in {} any more, and nothing of it goes on",
            printable(run),
            kept.shown
        ))
    };
    let top = lineage(kept, &run.run).await?.pop();
    let top = top.ok_or_else(|| gone(&run.run))?;
    match caller_of(&top) {
        None => Ok(top),
        Some(caller) => Err(gone(&caller.to_string())),
    }
}
