//! Events as JSON lines: one schema on standard output, in a trace file, and of what was logged.

use crate::failure::Failure;
use crate::patience::patiently;
use crate::pieces::{Raw, raw};
use crate::terminal::printable_json;
use paraph_agents::{AgentEvent, AgentEventData};
use paraph_graph::{Logged, RunId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
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

/// An event that was logged, at its place in the log of this thread: in the same form where it is one of an
/// agent's own. What the engine logs beside them has the same beginning, and then what its type brings.
///
/// # Errors
/// If it is damaged.
pub(crate) fn logged(entry: &Logged, thread: &str) -> Result<String, Failure> {
    let damaged = |why: String| Failure::Broken(format!("event {}: {why}", entry.seq));
    let event: BTreeMap<String, Raw> = serde_json::from_str(&entry.json)
        .map_err(|error| damaged(format!("it is no object: {error}")))?;
    let kind = event.get("type").map_or("null", |kind| kind.get());
    if let ("\"custom\"", Some(data)) = (kind, event.get("data"))
        && let Ok(data) = serde_json::from_str::<AgentEventData>(data.get())
    {
        let line = serde_json::to_string(&Line {
            seq: entry.seq,
            time: crate::cells::time(entry.created_ms),
            run_id: entry.run,
            thread_id: thread,
            data: &data,
        })?;
        return Ok(printable_json(line));
    }
    const FIRST: [&str; 5] = ["seq", "time", "run_id", "thread_id", "type"];
    let mut parts = vec![
        format!("\"seq\":{}", entry.seq),
        format!("\"time\":\"{}\"", crate::cells::time(entry.created_ms)),
        format!("\"run_id\":\"{}\"", entry.run),
        format!("\"thread_id\":{}", serde_json::to_string(thread)?),
        format!("\"type\":{kind}"),
    ];
    for (key, value) in &event {
        if !FIRST.contains(&key.as_str()) {
            parts.push(format!("{}:{}", serde_json::to_string(key)?, value.get()));
        }
    }
    let line = format!("{{{}}}", parts.join(","));
    // Line breaks may stand between the tokens of a text that others wrote.
    raw(line.as_bytes()).map_err(damaged)?;
    Ok(printable_json(line.replace(['\n', '\r'], " ")))
}

/// A file that takes events. Only its owner may read it: events tell what customers asked.
pub(crate) struct TraceFile {
    path: PathBuf,
    file: File,
    /// Writing has failed once; the run is worth more than its trace.
    broken: bool,
}

impl TraceFile {
    /// Creates the file, or empties it if it is a trace. A slip such as the agent's own file stays as it is.
    pub(crate) fn create(path: &Path) -> Result<TraceFile, Failure> {
        let wrong =
            |error: std::io::Error| Failure::Usage(format!("--trace: {}: {error}", path.display()));
        if !may_be_replaced(path) {
            return Err(Failure::Usage(format!(
                "--trace: {} is there and is no trace, and stays as it is: name another file, or delete this one",
                path.display()
            )));
        }
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

/// Whether a file may be written over: it is not there, is empty, is no file of the disk, or begins with an event.
fn may_be_replaced(path: &Path) -> bool {
    /// An event before any text of a person's or a model's comes.
    const BEGINNING: u64 = 4_096;
    let Ok(found) = std::fs::metadata(path) else {
        return true;
    };
    if !found.is_file() || found.len() == 0 {
        return true;
    }
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut first));
    // What cannot be read cannot be looked at; opening it says why.
    read.is_err() || is_event(&first)
}

/// Whether a file begins as [`line()`] writes an event.
fn is_event(first: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(first.split(|&byte| byte == b'\n').next().unwrap_or(first))
    else {
        return false;
    };
    let rest = line
        .strip_prefix("{\"seq\":")
        .map(|rest| rest.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    rest.is_some_and(|rest| rest.starts_with(",\"time\":\"") && rest.contains("\"run_id\":\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;
    use serde_json::{Value, json};

    fn entry(json: &str) -> Logged {
        Logged {
            seq: 7,
            run: "01920000-0000-7000-8000-000000000000".parse().unwrap(),
            created_ms: 0,
            json: json.to_owned(),
        }
    }

    #[test]
    fn a_line_begins_with_place_and_time_and_keeps_every_digit() {
        let json = "{\"type\":\"custom\",\n\"data\":12345678901234567890.50,\"run_id\":\"x\",\
                    \"thread_id\":\"older name\"}";
        assert_eq!(
            logged(&entry(json), "t").unwrap(),
            concat!(
                r#"{"seq":7,"time":"1970-01-01T00:00:00.000Z","#,
                r#""run_id":"01920000-0000-7000-8000-000000000000","thread_id":"t","#,
                r#""type":"custom","data":12345678901234567890.50}"#
            )
        );
        assert!(logged(&entry("["), "t").is_err());
    }

    #[test]
    fn only_traces_and_empty_files_are_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let event = AgentEvent {
            seq: 12,
            run_id: entry("").run,
            thread_id: "t".to_owned(),
            data: AgentEventData::StepStarted {
                step: 3,
                max_steps: None,
            },
        };
        let event = line(&event).unwrap();
        let long = format!(
            "{}{}\n",
            &event[..event.len() - 1],
            ",\"x\":\"é\"}".repeat(4_000)
        );
        let table = [
            ("", true),
            (&*format!("{event}\n{event}\n"), true),
            (&event, true),
            (&long, true),
            ("name = \"clerk\"\n", false),
            ("{\"seq\":1}\n", false),
            ("{\"time\":\"\",\"run_id\":\"\"}", false),
            ("\n", false),
            ("SQLite format 3\0", false),
        ];
        for (text, replaced) in table {
            let path = folder.path().join("file");
            std::fs::write(&path, text).unwrap();
            assert_eq!(may_be_replaced(&path), replaced, "{text:.60}");
            let made = TraceFile::create(&path);
            assert_eq!(made.is_ok(), replaced);
            let left = std::fs::read_to_string(&path).unwrap();
            assert_eq!(left, if replaced { "" } else { text });
        }
        assert!(may_be_replaced(&folder.path().join("nothing")));
        assert!(may_be_replaced(Path::new("/dev/null")));
    }

    #[test]
    fn what_an_agent_told_reads_from_the_log_as_it_was_told() {
        let data = AgentEventData::StepStarted {
            step: 3,
            max_steps: Some(8),
        };
        let told = AgentEvent {
            seq: 7,
            run_id: entry("").run,
            thread_id: "t".to_owned(),
            data: data.clone(),
        };
        let custom = json!({"type": "custom", "node": "think", "superstep": 1, "data": data});
        let read = |line: &str| -> Value {
            let mut line: Value = serde_json::from_str(line).unwrap();
            assert!(line["time"].take().is_string());
            line
        };
        let logged = logged(&entry(&custom.to_string()), "t").unwrap();
        assert_eq!(read(&logged), read(&line(&told).unwrap()));
    }
}
