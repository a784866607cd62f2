//! `paraph audit erase`: what is personal beside the chain is gone for good, so a person is asked first.

use crate::args::{AuditEraseArgs, WhoseArgs};
use crate::cells::count;
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{confirmed, note, print, print_json};
use crate::person::local;
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use paraph_gateway::{ApprovalError, Whose};
use serde::Serialize;

/// The longest name that is shown, in characters.
const NAME: usize = 200;

#[derive(Serialize)]
struct Erased {
    /// How many details are gone now that were there before.
    erased: usize,
}

pub(super) async fn erase(
    kept: &Kept,
    config: &Config,
    args: &AuditEraseArgs,
) -> Result<u8, Failure> {
    let tenant = args.chain.tenant.as_str();
    let whose = whose(&args.whose)?;
    let desk = kept.desk();
    let found = desk.personal(tenant, &whose).await.map_err(refused)?;
    let what = in_words(&whose);
    let details = count(found.len() as u64, "detail");
    let question = format!("Erase {details} {what} for good?");
    let sure = found.is_empty() || args.yes;
    if !sure && !confirmed(&question, "what is personal is to be erased for good")? {
        note("nothing was erased");
        return Ok(FINISHED);
    }
    let by = local(&config.environment);
    let done = desk.erase(tenant, &whose, by.as_str(), &args.reason).await;
    let erased = done.map_err(refused)?;
    match erased {
        0 => note(&format!("nothing personal {what} stands beside the chain")),
        _ => note(&printable(&format!(
            "erased by {by} (unverified); the chain is whole, and tells of it"
        ))),
    }
    match args.json {
        true => print_json(&Erased { erased })?,
        false if erased > 0 => print(&format!(
            "erased: {} {what}",
            count(erased as u64, "detail")
        ))?,
        false => {}
    }
    Ok(FINISHED)
}

fn whose(args: &WhoseArgs) -> Result<Whose, Failure> {
    let wrong = |error| Failure::Usage(format!("--action: {error}"));
    Ok(match (&args.action, &args.user, &args.subject) {
        (Some(id), _, _) => Whose::Action(id.trim().parse().map_err(wrong)?),
        (None, Some(user), _) => Whose::User(user.clone()),
        (None, None, subject) => Whose::Subject(subject.clone().unwrap_or_default()),
    })
}

fn in_words(whose: &Whose) -> String {
    match whose {
        Whose::Action(id) => format!("about action {id}"),
        Whose::User(name) => format!("of the user {}", printable_line(name, NAME)),
        Whose::Subject(text) => format!("about {}", printable_line(text, NAME)),
    }
}

fn refused(error: ApprovalError) -> Failure {
    match error {
        ApprovalError::NoReason | ApprovalError::TooLong { .. } => {
            Failure::Usage(format!("--reason: {error}"))
        }
        error => Failure::Broken(error.to_string()),
    }
}
