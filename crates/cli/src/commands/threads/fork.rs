//! `paraph threads fork`: a new branch of a thread, or a copy of it.

use super::{checkpoint, row};
use crate::args::ForkArgs;
use crate::commands::agent_of;
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json};
use crate::stores::{Kept, quoted};
use crate::terminal::printable;
use paraph_graph::CheckpointId;
use serde::Serialize;

#[derive(Serialize)]
struct Forked<'a> {
    thread: &'a str,
    /// Of which it is a copy.
    copy_of: Option<&'a str>,
    /// The checkpoint that was gone back to.
    from: Option<CheckpointId>,
    /// The new head, if it was.
    checkpoint: Option<CheckpointId>,
}

pub(super) async fn fork(kept: &Kept, args: &ForkArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.name).await?;
    let at = args
        .checkpoint
        .as_deref()
        .map(|id| checkpoint(id, "CHECKPOINT"));
    let at = at.transpose()?;
    if let Some(at) = at {
        known(kept, &row.name, at).await?;
    }
    let name = match &args.to {
        None => &row.name,
        Some(to) => {
            copy(kept, &row.name, to).await?;
            to
        }
    };
    let forked = match at {
        None => None,
        Some(at) => {
            let agent = agent_of(kept, &row).await?;
            let done = agent.fork(name, at).await;
            Some(done.map_err(super::super::not_started)?)
        }
    };
    let forked = Forked {
        thread: name,
        copy_of: args.to.is_some().then_some(row.name.as_str()),
        from: at,
        checkpoint: forked,
    };
    match args.json {
        true => print_json(&forked)?,
        false => print(&in_words(&forked, row.graph.as_deref()))?,
    }
    Ok(FINISHED)
}

async fn known(kept: &Kept, thread: &str, at: CheckpointId) -> Result<(), Failure> {
    let scope = paraph_graph::Scope {
        thread: thread.into(),
        namespace: "".into(),
    };
    match kept.threads.load(&scope, Some(at)).await? {
        Some(_) => Ok(()),
        None => Err(paraph_graph::Error::UnknownCheckpoint {
            thread: thread.to_owned(),
            checkpoint: at,
        }
        .into()),
    }
}

async fn copy(kept: &Kept, from: &str, to: &str) -> Result<(), Failure> {
    if kept.threads.thread(to).await?.is_some() {
        return Err(Failure::Usage(format!(
            "--as: there is a thread `{to}` already"
        )));
    }
    crate::commands::check_thread_name("--as", to)?;
    Ok(kept.threads.copy(from, to).await?)
}

fn in_words(forked: &Forked<'_>, graph: Option<&str>) -> String {
    let mut text = String::new();
    let name = printable(forked.thread);
    if let Some(old) = forked.copy_of {
        text.push_str(&format!("copied `{}` to `{name}`\n", printable(old)));
    }
    if let (Some(from), Some(head)) = (forked.from, forked.checkpoint) {
        text.push_str(&format!(
            "`{name}` stands at {head}, a branch from {from}\nrun what is due there: paraph run {} --thread {} --from {head}\n",
            graph.unwrap_or("AGENT"),
            quoted(&name)
        ));
    }
    text
}
