//! `paraph approvals settle` and `reopen`: what people found out, and what they allow to be asked for again.

use super::decide::afterwards;
use super::{Listed, desk, lineage, looked_at, refused, row, without_secrets};
use crate::args::{ReopenArgs, SettleArgs};
use crate::cells::{now_ms, time};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print_json};
use crate::person::local;
use crate::pieces::raw;
use crate::stores::{Kept, lease};
use crate::terminal::printable_line;
use paraph_gateway::{ActionRow, Finding, State};

/// The longest name of a subject that is shown, in characters.
const SUBJECT: usize = 200;

pub(super) async fn settle(kept: &Kept, config: &Config, args: &SettleArgs) -> Result<u8, Failure> {
    let finding = match &args.happened {
        Some(receipt) => {
            raw(receipt.as_bytes()).map_err(|error| {
                Failure::Usage(format!("--happened: the receipt is no JSON: {error}"))
            })?;
            Finding::Happened(receipt.clone())
        }
        None => Finding::DidNotHappen,
    };
    let mut row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    if row.state == State::Executing {
        gone(kept, config, &row).await?;
        let why = "the process that handed it over is gone";
        let unknown = desk(kept).give_up(&row, by.as_str(), why).await;
        row = unknown.map_err(|error| refused(kept, error))?;
    }
    let found = (finding, args.reason.as_str());
    let now = desk(kept)
        .settle(row.id(), &row.digest, by.as_str(), found)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&match now.version == row.version {
        true => format!("action {} was settled like this by {by} before", now.id()),
        false => format!(
            "settled by {by} (unverified): action {} has {}",
            now.id(),
            now.state
        ),
    });
    afterwards(kept, config, &now, &args.then).await
}

/// That whoever handed an action over is gone: no run that it belongs to is driven, and a lease has passed since then.
async fn gone(kept: &Kept, config: &Config, row: &ActionRow) -> Result<(), Failure> {
    let id = row.id();
    let driven = lineage(kept, &row.action.said.run.run).await?;
    if let Some(driven) = driven.iter().find(|run| run.live) {
        return Err(Failure::Broken(format!(
            "action {id} is executing: run {} is driven by a process, and what comes of the action is still to be seen",
            driven.id
        )));
    }
    let lease = u64::try_from(lease(config)?.as_millis()).unwrap_or(u64::MAX);
    let free_ms = row.sending.at_ms.saturating_add(lease);
    match now_ms() < free_ms {
        true => Err(Failure::Broken(format!(
            "action {id} is executing, and was handed over a moment ago; it can be settled from {} on",
            time(free_ms)
        ))),
        false => Ok(()),
    }
}

pub(super) async fn reopen(kept: &Kept, config: &Config, args: &ReopenArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.id).await?;
    if !row.closes {
        return Err(Failure::Usage(format!(
            "action {} is {} and closes nothing",
            row.id(),
            row.state
        )));
    }
    let by = local(&config.environment);
    let now = desk(kept).reopen(row.id(), by.as_str()).await;
    let now = now.map_err(|error| refused(kept, error))?;
    let said = &now.action.said;
    note(&format!(
        "reopened by {by} (unverified): on thread {} agents may ask about {} again",
        printable_line(&said.run.thread, SUBJECT),
        printable_line(&without_secrets(&said.subject), SUBJECT)
    ));
    if args.out.json {
        print_json(&Listed::of(&now))?;
    }
    Ok(FINISHED)
}
