//! `paraph runs events`: the log of a run or a thread, as lines of JSON.

use super::by_id;
use crate::args::EventsArgs;
use crate::failure::{FINISHED, Failure};
use crate::lines::logged;
use crate::output::{note, print};
use crate::stores::Kept;
use paraph_graph::{LogQuery, RunId};
use std::time::Duration;

/// How often a run whose log does not grow is looked at.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn events(kept: &Kept, args: &EventsArgs) -> Result<u8, Failure> {
    let (thread, run) = match (&args.which.run, &args.which.thread) {
        (Some(id), _) => {
            let row = by_id(kept, id).await?;
            (row.thread, Some(row.id))
        }
        (None, Some(thread)) => (
            crate::commands::threads::row(kept, thread).await?.name,
            None,
        ),
        (None, None) => return Err(Failure::usage("a run's id, or --thread NAME")),
    };
    let mut query = LogQuery {
        after: args.after,
        run,
        ..LogQuery::default()
    };
    let mut any = false;
    loop {
        // Looked at first: what the run logged before it came to rest is read after that.
        let rests = rests(kept, run).await?;
        let page = kept.threads.events(&thread, &query).await?;
        for entry in &page {
            print(&logged(entry, &thread)?)?;
        }
        any |= !page.is_empty();
        match page.last() {
            Some(last) => query.after = last.seq,
            None if !args.follow || rests => break,
            None => {
                // A dead process logs nothing more, and nobody says so.
                let grown = kept.threads.grown(&thread, query.after);
                if let Ok(grown) = tokio::time::timeout(LOOK, grown).await {
                    grown?;
                }
            }
        }
    }
    if !any {
        note("nothing was logged");
    }
    Ok(FINISHED)
}

/// Whether nothing more is to come; never, of a whole thread.
async fn rests(kept: &Kept, run: Option<RunId>) -> Result<bool, Failure> {
    let Some(run) = run else { return Ok(false) };
    let row = kept.threads.run(run).await?;
    Ok(row.is_none_or(|row| row.status.rests() || !row.live))
}
