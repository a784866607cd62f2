//! LangGraph in a Python process that answers one request a line: see `benches/langgraph/bench.py`.
//!
//! Called by `sample` and `paraph-bench`. While it waits for a request it uses no processor.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::json;

use crate::ground::{POSTGRES, folder, postgres};
use crate::{Fault, Kept, Save, Setting};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/langgraph/bench.py");

/// How LangGraph saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saver {
    /// Not at all.
    None,
    /// In memory after each superstep, in the background: what a user gets who says nothing.
    Async,
    /// In memory, once at the end: what its own benchmarks use.
    Exit,
    /// With its SqliteSaver or PostgresSaver, in the durability of the same name.
    Durable(Setting),
}

impl Saver {
    /// The ways of saving that stand beside one of our settings.
    pub fn beside(setting: Setting) -> Vec<Saver> {
        match setting.kept {
            Kept::Nowhere => vec![Saver::None],
            Kept::Memory => vec![Saver::Async, Saver::Exit],
            Kept::Sqlite(_) | Kept::Postgres(_) => vec![Saver::Durable(setting)],
        }
    }
}

impl fmt::Display for Saver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Saver::None => f.pad("none"),
            Saver::Async => f.pad("async"),
            Saver::Exit => f.pad("exit"),
            Saver::Durable(setting) => setting.fmt(f),
        }
    }
}

/// What one run of LangGraph took.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PeerRun {
    /// Wall time in milliseconds.
    pub ms: f64,
    /// The peak of the process so far, in bytes.
    pub rss: usize,
    /// The bytes on disk after it, for a saver that has some.
    pub disk: Option<u64>,
}

/// A running Python process. It ends when this is dropped.
pub struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a process with that Python.
    ///
    /// # Errors
    /// When it cannot be started, or has no LangGraph.
    pub fn start(python: &Path) -> Result<Peer, Fault> {
        let probe = Command::new(python)
            .args(["-c", "import langgraph.graph"])
            .output()?;
        if !probe.status.success() {
            let said = String::from_utf8_lossy(&probe.stderr).into_owned();
            return Err(said
                .lines()
                .last()
                .unwrap_or("python failed")
                .to_owned()
                .into());
        }
        let mut child = Command::new(python)
            .args([SCRIPT, "serve"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LANGSMITH_TRACING", "false")
            .env("PARAPH_BENCH_FOLDER", folder()?)
            .env(POSTGRES, postgres().unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take().ok_or("no pipe to python")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe from python")?);
        Ok(Peer {
            child,
            requests,
            answers,
        })
    }

    /// Runs a shape once, its updates streamed or not; or says why not.
    ///
    /// # Errors
    /// The reason, as one line: it is printed below the table.
    pub fn run(&mut self, shape: &str, saver: Saver, updates: bool) -> Result<PeerRun, String> {
        if let Some(reason) = left_out(shape, saver) {
            return Err(reason.to_owned());
        }
        let request = json!({ "shape": shape, "saver": saver.to_string(), "updates": updates });
        writeln!(self.requests, "{request}").map_err(|fault| fault.to_string())?;
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(|fault| fault.to_string())?;
        serde_json::from_str(&line).map_err(|_| match line.trim() {
            "" => "its process ended".to_owned(),
            said => said.to_owned(),
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not outlive the harness.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Why a shape is not run on LangGraph at all.
fn left_out(shape: &str, saver: Saver) -> Option<&'static str> {
    let behind = match saver {
        Saver::Durable(setting) => setting.durable() != Some(Save::Exit),
        saver => saver == Saver::Async,
    };
    match shape {
        "sequential_10000" => Some("a run takes the better part of a minute"),
        "react_300" | "react_1000" if behind => {
            Some("a run takes gigabytes: its bytes grow with the square")
        }
        shape if shape.starts_with("cpu_") => Some("its nodes share one core"),
        shape
            if ["threads_", "load_", "paused_", "active_"]
                .iter()
                .any(|kind| shape.starts_with(kind)) =>
        {
            Some("it has no such shape")
        }
        _ => None,
    }
}
