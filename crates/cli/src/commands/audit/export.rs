//! `paraph audit export`: a whole chain as lines of JSON, which a verifier needs nothing else for.

use super::{PAGE, page};
use crate::args::AuditExportArgs;
use crate::cells::count;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print};
use crate::patience::patiently;
use crate::stores::Kept;
use crate::writing::refuse_own;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::Path;

pub(super) async fn export(kept: &Kept, args: &AuditExportArgs) -> Result<u8, Failure> {
    let mut out = match &args.output {
        Some(path) => {
            refuse_own("--output", path, kept.file.as_deref())?;
            Some((BufWriter::new(create(path)?), path))
        }
        None => None,
    };
    let (mut last, mut written) = (0, 0);
    loop {
        let entries = page(kept, &args.chain.tenant, (last, PAGE)).await?;
        for entry in &entries {
            let line = entry.to_line();
            match &mut out {
                Some((file, path)) => {
                    writeln!(file, "{line}").map_err(|error| broken(path, &error))?;
                }
                None => print(&line)?,
            }
            last = entry.seq;
            written += 1;
        }
        if entries.len() < PAGE {
            break;
        }
    }
    if let Some((mut file, path)) = out {
        file.flush().map_err(|error| broken(path, &error))?;
        let entries = count(written, "line");
        note(&format!("exported {entries} to {}", path.display()));
    } else if written == 0 {
        note("nothing was audited yet");
    }
    Ok(FINISHED)
}

/// A file for its owner only: details tell who decided, and why.
pub(super) fn create(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let named = path.to_owned();
    patiently(path, move || options.open(named))
        .unwrap_or_else(|| Err(std::io::Error::other("nobody reads from this pipe")))
        .map_err(|error| Failure::Usage(format!("--output: {}: {error}", path.display())))
}

fn broken(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Broken(format!("{}: {error}", path.display()))
}
