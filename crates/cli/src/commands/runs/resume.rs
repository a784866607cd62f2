//! `paraph runs resume`: goes on with a run where it was cut off, cancelled or interrupted.

use super::row;
use crate::args::ResumeArgs;
use crate::choice::{check_price, chosen};
use crate::commands::follow::{Printing, Told, follow};
use crate::commands::{agent, not_started, support_for};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use crate::started::Started;
use crate::stores::{Kept, lease, quoted};
use crate::terminal::Screen;
use crate::trace::Trace;
use paraph_agents::{AgentRun, Error, Support, Terms};
use paraph_graph::{Entry, HistoryQuery, RunRow, RunStatus, Scope};

pub(super) async fn resume(kept: Kept, config: &Config, args: &ResumeArgs) -> Result<u8, Failure> {
    let row = row(&kept, &args.which).await?;
    let started = Started::of(&row)?;
    let mut printing = Printing::of(&args.printing, kept.file.as_deref())?;
    let support = support_for(&kept, &started)?;
    if row.status == RunStatus::Success {
        let result = support.result(row.id, &row.thread, started.dialect).await;
        if let Some(result) = result.map_err(not_started)? {
            note(&format!(
                "run {} was over already; this is its result",
                row.id
            ));
            return printing.over(&result);
        }
        // What came out stood on its checkpoints. To begin it anew would do again what it did.
        return Err(Failure::Usage(format!(
            "run {} was over already, and is not run again; its checkpoints are no longer there, and its \
             result with them",
            row.id
        )));
    }
    let info = agent(&started.agent)?;
    let choice = chosen(config, &info, started.model()?, true)?;
    check_price(&choice, &started.limits)?;
    if !args.printing.quiet {
        kept.warn_of_short_disk();
    }
    if row.live {
        note(&format!(
            "run {} is driven by another process, or was moments ago; if that one is dead, the thread is free \
             after {} seconds at the latest",
            row.id,
            lease(config)?.as_secs()
        ));
    }
    let terms = Terms {
        price: choice.price,
        limits: started.limits.clone(),
        loops: started.loops,
        dialect: started.dialect,
        tell_messages: args.printing.verbose,
        run: Some(row.id),
        ..Terms::new(choice.model, row.thread.clone())
    };
    let run = again(&kept, &support, (&row, &started), &terms).await?;
    let screen = Screen::of_stderr(&config.environment);
    let told = Told {
        printing,
        trace: Trace::new(screen, args.printing.quiet),
    };
    follow(run, &kept, config, told).await
}

/// The run under its own id: where it stands, or from its beginning if nothing of it was saved.
async fn again(
    kept: &Kept,
    support: &Support,
    (row, started): (&RunRow, &Started),
    terms: &Terms,
) -> Result<AgentRun, Failure> {
    let Some(own) = newest(kept, row, true).await? else {
        if row.attempts > 0
            && let Some(head) = newest(kept, row, false).await?
            && is_later(&head, row)
        {
            return Err(Failure::Usage(format!(
                "thread `{}` has gone on since, and stands at {}: of run {} there is no checkpoint left to go \
                 on from",
                row.thread, head.id, row.id
            )));
        }
        let case = started.case();
        let run = match (started.from, case) {
            (Some(from), case) => support.replay(from, case.as_ref(), terms).await,
            (None, Some(case)) => support.start(&case, terms).await,
            (None, None) => Err(Error::EmptyTask),
        };
        return run.map_err(not_started);
    };
    if let Some(head) = newest(kept, row, false).await?
        && head.metadata.run != row.id
    {
        return Err(moved_on(row, started, &own, &head));
    }
    support.resume(row.id, terms).await.map_err(not_started)
}

/// Whether a checkpoint of another run was made after this one was handed in. Ids of runs begin with the
/// time at which they were made; rows that were imported have the time of their import.
fn is_later(head: &Entry, row: &RunRow) -> bool {
    head.metadata.run > row.id || head.metadata.created_ms > row.created_ms
}

/// The newest checkpoint of the run, or of its thread.
async fn newest(kept: &Kept, row: &RunRow, own: bool) -> Result<Option<Entry>, Failure> {
    let scope = Scope {
        thread: row.thread.as_str().into(),
        namespace: "".into(),
    };
    let mut one = HistoryQuery {
        limit: Some(1),
        ..HistoryQuery::default()
    };
    if own {
        one.filter
            .insert("run".to_owned(), row.id.to_string().into());
    }
    Ok(kept.threads.history(&scope, &one).await?.pop())
}

fn moved_on(row: &RunRow, started: &Started, own: &Entry, head: &Entry) -> Failure {
    Failure::Usage(format!(
        "thread `{thread}` has gone on since: run {id} left checkpoint {own}, and the thread stands at {head}. \
         To run again from there, on a new branch: paraph run {agent} --thread {name} --from {own}",
        thread = row.thread,
        id = row.id,
        own = own.id,
        head = head.id,
        agent = started.agent,
        name = quoted(&row.thread),
    ))
}
