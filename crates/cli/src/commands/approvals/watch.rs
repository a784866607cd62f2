//! `paraph approvals watch`: what waits, and what comes to wait, until somebody ends it.

use super::{Listed, desk, list, refused, sweep};
use crate::args::ApprovalsWatchArgs;
use crate::failure::Failure;
use crate::output::{note, print};
use crate::stores::Kept;
use crate::terminal::printable_json;
use paraph_gateway::{ActionId, State};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn watch(kept: &Kept, args: &ApprovalsWatchArgs) -> Result<u8, Failure> {
    let desk = desk(kept);
    let mut seen: BTreeMap<ActionId, State> = BTreeMap::new();
    if !args.out.json {
        note("watching; Ctrl-C ends it");
    }
    loop {
        sweep(&desk).await;
        let rows = desk.waiting().await;
        let rows = rows.map_err(|error| refused(kept, error))?;
        for row in &rows {
            if seen.get(&row.id()) == Some(&row.state) {
                continue;
            }
            print(&match args.out.json {
                true => printable_json(serde_json::to_string(&Listed::of(row))?),
                false => list::line(row).join("  "),
            })?;
        }
        // What is no longer waiting is forgotten, so that this does not grow for ever.
        seen = rows.iter().map(|row| (row.id(), row.state)).collect();
        tokio::time::sleep(LOOK).await;
    }
}
