//! `paraph audit anchor`: the last entry of a chain as a line that is kept elsewhere.

use super::verify::head;
use crate::args::AuditAnchorArgs;
use crate::cells::now_ms;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print};
use crate::stores::Kept;
use crate::writing::refuse_own;
use paraph_gateway::Anchor;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

pub(super) async fn anchor(kept: &Kept, args: &AuditAnchorArgs) -> Result<u8, Failure> {
    let tenant = args.chain.tenant.as_str();
    if let Some(path) = &args.output {
        refuse_own("--output", path, kept.file.as_deref())?;
    }
    // Only a chain that is whole is worth to be written down.
    let found = head(kept, tenant).await?;
    let Some(head) = found else {
        return Err(Failure::Usage(format!(
            "the chain of `{tenant}` is empty: there is nothing to anchor yet"
        )));
    };
    let line = Anchor::new(tenant, &head, now_ms()).to_string();
    match &args.output {
        None => print(&line)?,
        Some(path) => {
            append(path, &line)
                .map_err(|error| Failure::Broken(format!("{}: {error}", path.display())))?;
            note(&format!(
                "entry {} is anchored in {}",
                head.seq,
                path.display()
            ));
        }
    }
    Ok(FINISHED)
}

/// Adds a line, and waits until the disk has it.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    match file.metadata()?.is_file() {
        true => file.sync_all(),
        false => Ok(()),
    }
}
