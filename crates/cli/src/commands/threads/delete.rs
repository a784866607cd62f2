//! `paraph threads delete`: gone for good, so a person is asked first.

use super::row;
use crate::args::DeleteArgs;
use crate::commands::approvals::lineage;
use crate::failure::{FINISHED, Failure};
use crate::output::{confirmed, note, print};
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use paraph_gateway::State;

pub(super) async fn delete(kept: &Kept, args: &DeleteArgs) -> Result<u8, Failure> {
    // All names are looked up first: nothing is deleted if one of them is wrong.
    for name in &args.names {
        match kept.threads.thread(name).await {
            Ok(Some(_)) => {}
            Ok(None) => drop(row(kept, name).await?),
            // A damaged thread is not to be kept for ever.
            Err(error) => note(&printable(&format!("warning: {error}"))),
        }
    }
    stays(kept, &args.names).await?;
    let names = args.names.iter().map(|name| printable_line(name, 200));
    let question = format!(
        "Delete {} for good, with all checkpoints, runs and events?",
        names.collect::<Vec<_>>().join(", ")
    );
    if !args.yes && !confirmed(&question, "the threads are to be deleted for good")? {
        note("nothing was deleted");
        return Ok(FINISHED);
    }
    for name in &args.names {
        // Once more, and for each: whoever was asked may have taken long to answer.
        stays(kept, std::slice::from_ref(name)).await?;
        if kept.threads.delete(name).await? {
            print(&format!("deleted `{}`", printable(name)))?;
        }
    }
    Ok(FINISHED)
}

/// Refuses to delete a thread on which an agent was called that is not done with what it asked for: it goes on with its
/// caller, and could never go on without. (A thread's own actions are the store's to look after.)
async fn stays(kept: &Kept, names: &[String]) -> Result<(), Failure> {
    let open = State::ALL.into_iter().filter(|state| !state.is_final());
    let open: Vec<_> = open.collect();
    let rows = match kept.desk().list(&open).await {
        Ok(rows) => rows,
        // What is damaged is not to keep other threads for ever.
        Err(error) => {
            note(&printable(&format!(
                "warning: whether agents that were called there still wait cannot be said: {error}"
            )));
            return Ok(());
        }
    };
    for row in rows {
        let said = &row.action.said;
        let above = lineage(kept, &said.run.run).await?;
        let called_on = above.iter().skip(1).find(|run| names.contains(&run.thread));
        if let Some(run) = called_on {
            return Err(Failure::Broken(format!(
                "thread `{}` is still needed: action {} of the agent {}, which was called there, is {}, and has to be \
                 settled first; it was not deleted",
                printable_line(&run.thread, 200),
                row.id(),
                printable_line(&said.run.agent, 200),
                row.state
            )));
        }
    }
    Ok(())
}
