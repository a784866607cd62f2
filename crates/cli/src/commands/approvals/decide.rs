//! `paraph approvals approve` and `reject`: the decision, and then the run that waits for it.

use super::lineage::waiting_run;
use super::{Listed, desk, flag, looked_at, refused, tell_of_switches, without_secrets};
use crate::args::{AfterwardsArgs, ApproveArgs, RejectArgs, RespondArgs};
use crate::commands::runs::go_on;
use crate::config::Config;
use crate::failure::{FINISHED, Failure, WAITING};
use crate::output::{note, print_json};
use crate::person::local;
use crate::stores::Kept;
use crate::terminal::printable_line;
use paraph_gateway::ActionRow;

/// The longest text of an action in a note, in characters.
const SAYS: usize = 300;

/// What was decided, if it was neither yes nor no.
pub(super) const CHANGE: &str = "asked to be changed";
pub(super) const ANSWERED: &str = "answered in words, and not done,";

pub(super) async fn approve(
    kept: &Kept,
    config: &Config,
    args: &ApproveArgs,
) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let now = desk(kept).approve(row.id(), &row.digest, by.as_str()).await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&match now.version == row.version {
        true => format!("action {} was approved by {by} before", row.id()),
        false => told("approved", &by, &now),
    });
    if now.state.is_undecided() {
        let (given, needed) = (now.votes.len(), now.action.said.quorum);
        note(&format!(
            "{given} of {needed} approvals are given; it waits for the others"
        ));
        if args.then.printing.json {
            print_json(&Listed::of(&now))?;
        }
        return Ok(WAITING);
    }
    afterwards(kept, config, &now, &args.then).await
}

pub(super) async fn reject(kept: &Kept, config: &Config, args: &RejectArgs) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let desk = desk(kept);
    let now = desk
        .reject(row.id(), &row.digest, by.as_str(), &args.reason)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&match now.version == row.version {
        true => format!("action {} was refused by {by} before", row.id()),
        false => told("refused", &by, &now),
    });
    let stands = now.ended.as_ref().map_or("", |ended| ended.why.as_str());
    if stands != args.reason.trim() {
        note(&format!(
            "the reason that was given first stands: {}",
            printable_line(stands, SAYS)
        ));
    }
    afterwards(kept, config, &now, &args.then).await
}

pub(super) async fn ask_change(
    kept: &Kept,
    config: &Config,
    args: &RejectArgs,
) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let desk = desk(kept);
    let now = desk
        .ask_change(row.id(), &row.digest, by.as_str(), &args.reason)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&told(CHANGE, &by, &now));
    afterwards(kept, config, &now, &args.then).await
}

pub(super) async fn respond(
    kept: &Kept,
    config: &Config,
    args: &RespondArgs,
) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    let by = local(&config.environment);
    let desk = desk(kept);
    let now = desk
        .respond(row.id(), &row.digest, by.as_str(), &args.answer)
        .await;
    let now = now.map_err(|error| refused(kept, error))?;
    note(&told(ANSWERED, &by, &now));
    afterwards(kept, config, &now, &args.then).await
}

/// What was decided, for the one who did.
pub(super) fn told(what: &str, by: &str, row: &ActionRow) -> String {
    format!(
        "{what} by {by} (unverified): {}",
        printable_line(&without_secrets(&row.action.said.says), SAYS)
    )
}

/// Drives the run of an action about which somebody has decided.
pub(super) async fn afterwards(
    kept: &Kept,
    config: &Config,
    row: &ActionRow,
    then: &AfterwardsArgs,
) -> Result<u8, Failure> {
    let said = &row.action.said;
    let flag = flag(kept);
    let stands = |run: &str| {
        let run = printable_line(run, SAYS);
        format!("the decision stands; go on with the run: paraph runs resume {run}{flag}")
    };
    let run = match waiting_run(kept, &said.run).await {
        Ok(run) => run,
        Err(failure) => return Err(and(failure, &stands(&said.run.run))),
    };
    let stands = stands(&run.id.to_string());
    if then.no_run {
        note(&stands);
        tell_of_switches(kept, std::iter::once(row.id())).await;
        if then.printing.json {
            print_json(&Listed::of(row))?;
        }
        return Ok(FINISHED);
    }
    match go_on(kept, config, run, (&then.printing, None)).await {
        Err(failure) => Err(and(failure, &stands)),
        Ok(code) => Ok(code),
    }
}

/// A failure after something that stays as it is.
fn and(failure: Failure, stands: &str) -> Failure {
    let more = |text: String| format!("{text}\n{stands}");
    match failure {
        Failure::Usage(text) => Failure::Usage(more(text)),
        Failure::Broken(text) => Failure::Broken(more(text)),
        Failure::Refused(text) => Failure::Refused(more(text)),
        Failure::ClosedPipe => Failure::ClosedPipe,
    }
}
