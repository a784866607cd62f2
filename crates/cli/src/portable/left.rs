//! What does not go with an exported thread: actions that are not over, with what people decide about them.
//!
//! They stay in the store where they were proposed, so that nothing signed there is done a second time elsewhere. Whoever
//! exports, imports or goes on with such a thread is told so.

use super::owner;
use crate::commands::lineage;
use crate::failure::Failure;
use crate::stores::Kept;
use paraph_gateway::{ActionId, ApprovalError, State};
use paraph_graph::RunId;

fn unread(error: &ApprovalError) -> Failure {
    Failure::Broken(error.to_string())
}

/// The actions of a thread that are not over, and those of agents that were called there.
pub(crate) async fn left_behind(kept: &Kept, thread: &str) -> Result<Vec<ActionId>, Failure> {
    let open: Vec<_> = State::ALL
        .into_iter()
        .filter(|state| !state.is_final())
        .collect();
    let rows = kept.desk().list(&open).await;
    let mut found = Vec::new();
    for row in rows.map_err(|error| unread(&error))? {
        let run = &row.action.said.run;
        let called = async || {
            let above = lineage(kept, &run.run).await?;
            Ok::<_, Failure>(above.iter().any(|row| row.thread == thread))
        };
        if run.thread == thread || called().await? {
            found.push(row.id());
        }
    }
    Ok(found)
}

/// The actions that a run here waits for and that are not in this store, since the run was read in from another.
pub(crate) async fn elsewhere(
    kept: &Kept,
    (graph, thread, run): (&str, &str, RunId),
) -> Result<Vec<ActionId>, Failure> {
    let records = kept.opened.gateway.calls(&owner(graph, thread, run)).await;
    let records = records.map_err(|error| Failure::Broken(error.to_string()))?;
    let open = records.iter().filter(|record| record.outcome.is_none());
    let mut found = Vec::new();
    for id in open.filter_map(|record| record.action) {
        match kept.desk().show(id).await {
            Ok(_) => {}
            Err(ApprovalError::NoAction(_)) => found.push(id),
            Err(error) => return Err(unread(&error)),
        }
    }
    Ok(found)
}
