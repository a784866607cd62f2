//! Events as JSON lines: one schema on standard output and in a trace file.

use crate::failure::Failure;
use crate::patience::patiently;
use crate::terminal::printable_json;
use paraph_agents::{AgentEvent, AgentEventData};
use paraph_graph::RunId;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// An event with the time at which it was told.
#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    /// UTC, RFC 3339.
    time: String,
    run_id: RunId,
    thread_id: &'a str,
    #[serde(flatten)]
    data: &'a AgentEventData,
}

/// An event as one line of JSON, without the line break.
pub(crate) fn line(event: &AgentEvent) -> Result<String, Failure> {
    let time = jiff::Timestamp::now();
    let line = serde_json::to_string(&Line {
        seq: event.seq,
        time: format!("{time:.3}"),
        run_id: event.run_id,
        thread_id: &event.thread_id,
        data: &event.data,
    })?;
    Ok(printable_json(line))
}

/// A file that takes events. Only its owner may read it: events tell what customers asked.
pub(crate) struct TraceFile {
    path: PathBuf,
    file: File,
    /// Writing has failed once; the run is worth more than its trace.
    broken: bool,
}

impl TraceFile {
    /// Creates the file, or empties it.
    pub(crate) fn create(path: &Path) -> Result<TraceFile, Failure> {
        let wrong =
            |error: std::io::Error| Failure::Usage(format!("--trace: {}: {error}", path.display()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let named = path.to_owned();
        let file = patiently(path, move || options.open(named))
            .unwrap_or_else(|| Err(std::io::Error::other("nobody reads from this pipe")))
            .map_err(wrong)?;
        // The mode above is for a file that is new.
        #[cfg(unix)]
        if file.metadata().map_err(wrong)?.is_file() {
            let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            file.set_permissions(owner_only).map_err(wrong)?;
        }
        Ok(TraceFile {
            path: path.to_owned(),
            file,
            broken: false,
        })
    }

    /// Adds a line.
    pub(crate) fn write(&mut self, line: &str) {
        if self.broken {
            return;
        }
        if let Err(error) = writeln!(self.file, "{line}") {
            self.broken = true;
            crate::output::note(&format!(
                "warning: the trace in {} is not complete: {error}",
                self.path.display()
            ));
        }
    }
}
