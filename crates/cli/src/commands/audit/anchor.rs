//! `paraph audit anchor`: the last entry of a chain as a line that is kept elsewhere.

use super::verify::head;
use crate::anchors::{Anchors, append};
use crate::args::AuditAnchorArgs;
use crate::cells::now_ms;
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print};
use crate::stores::Kept;
use crate::terminal::printable;
use crate::writing::refuse_own;
use paraph_gateway::Anchor;

pub(super) async fn anchor(
    kept: &Kept,
    config: &Config,
    args: &AuditAnchorArgs,
) -> Result<u8, Failure> {
    let tenant = args.chain.tenant.as_str();
    if let Some(path) = &args.output {
        refuse_own("--output", path, kept.file.as_deref())?;
    }
    let to = args.to.as_deref();
    let to = to.map(|text| Anchors::named(config, text)).transpose()?;
    // Only a chain that is whole is worth to be written down.
    let found = head(kept, tenant).await?;
    let Some(head) = found else {
        return Err(Failure::Usage(format!(
            "the chain of `{tenant}` is empty: there is nothing to anchor yet"
        )));
    };
    let anchor = Anchor::new(tenant, &head, now_ms());
    let place = keep(&anchor, (to, args)).await?;
    if let Some(place) = &place {
        let seq = head.seq;
        note(&printable(&format!("entry {seq} is anchored in {place}")));
    }
    // It is kept; that the chain says so is a courtesy.
    let place = place.unwrap_or_else(|| "standard output".to_owned());
    if let Err(error) = kept.desk().anchored(&anchor, &place).await {
        note(&printable(&format!(
            "warning: that it was anchored could not be written down: {error}"
        )));
    }
    Ok(FINISHED)
}

/// Keeps an anchor where the flags say, and gives that place; nothing if it was printed.
async fn keep(
    anchor: &Anchor,
    (to, args): (Option<Anchors>, &AuditAnchorArgs),
) -> Result<Option<String>, Failure> {
    match (to, &args.output) {
        (Some(to), _) => match to.keep(anchor).await {
            Ok(()) => Ok(Some(to.shown())),
            Err(why) => Err(Failure::Broken(format!("--to: {}: {why}", to.shown()))),
        },
        (None, Some(path)) => match append(path, &anchor.to_string()) {
            Ok(()) => Ok(Some(path.display().to_string())),
            Err(error) => Err(Failure::Broken(format!("{}: {error}", path.display()))),
        },
        (None, None) => print(&anchor.to_string()).map(|()| None),
    }
}
