//! `paraph approvals settle` and `reopen`: what people found out, and what they allow to be asked for again.

use super::decide::afterwards;
use super::{Listed, desk, looked_at, refused, row, without_secrets};
use crate::args::{ReopenArgs, SettleArgs};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print_json};
use crate::person::local;
use crate::pieces::raw;
use crate::stores::Kept;
use crate::terminal::printable_line;
use paraph_gateway::Finding;

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
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let found = (finding, args.reason.as_str());
    let now = desk(kept)
        .settle(row.id(), &row.digest, by.as_str(), found)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&format!(
        "settled by {by} (unverified): action {} has {}",
        now.id(),
        now.state
    ));
    afterwards(kept, config, &now, &args.then).await
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
