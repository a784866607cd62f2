//! The same kills on LangGraph: its SqliteSaver in `sync`, the same chain of three effects, the same counter.
//!
//! Called by `paraph-crash --langgraph PYTHON`. What is found is printed beside ours and judged by nobody.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::json;

use crate::counter::{Counter, Hit};
use crate::launch::Line;
use crate::seed::Seed;
use crate::{Fault, Shape};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/langgraph/crash.py");
const STUCK: Duration = Duration::from_secs(60);

/// What became of LangGraph's runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerSeries {
    /// How many runs.
    pub trials: usize,
    /// How many processes were killed.
    pub kills: usize,
    /// Effects of all runs, each counted once.
    pub effects: usize,
    /// Effects without a key that were done again, their result not saved.
    pub repeats: usize,
    /// Those that were done again although the program had gone on after them.
    pub repeats_after_memo: usize,
    /// Effects that were done again after a checkpoint behind them had been told of.
    pub repeats_after_step: usize,
    /// Effects with a key that came under a second one.
    pub renewed: usize,
    /// Checkpoints that had been told of and are not there.
    pub lost: usize,
    /// Runs whose final state is not the uncut one, or that did not end.
    pub wrong: usize,
}

impl std::fmt::Display for PeerSeries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "LangGraph, SqliteSaver, sync: {} runs, {} kills; {} of {} unkeyed effects done again, {} of them after \
             the node had gone on, {} after the step had been told of; {} keyed ones under a new key; {} told \
             checkpoints lost; {} runs wrong at the end",
            self.trials,
            self.kills,
            self.repeats,
            self.effects,
            self.repeats_after_memo,
            self.repeats_after_step,
            self.renewed,
            self.lost,
            self.wrong
        )
    }
}

/// Kills so many processes at random moments.
///
/// # Errors
/// When Python cannot be started, or has no LangGraph with its SQLite saver.
pub fn peer_kills(
    python: &Path,
    folder: &Path,
    seed: u64,
    kills: usize,
) -> Result<PeerSeries, Fault> {
    let counter = Counter::start()?;
    let mut zygote = Zygote::start(python)?;
    let mut series = PeerSeries::default();
    let mut life = Duration::ZERO;
    for at in 0_u64.. {
        let trial = PeerTrial {
            counter: &counter,
            database: folder
                .join(format!("langgraph-{at}.db"))
                .display()
                .to_string(),
            name: format!("langgraph-{at}"),
            life,
        };
        // The first two only tell how long a run takes.
        let chance = (at > 1).then(|| Seed(seed.wrapping_add(at)));
        let lived = trial.run(&mut zygote, chance, &mut series)?;
        if at < 2 {
            series = PeerSeries::default();
            life = lived;
        }
        for end in ["", "-wal", "-shm"] {
            // It is gone already when there was none.
            let _ = std::fs::remove_file(format!("{}{end}", trial.database));
        }
        if series.kills >= kills {
            return Ok(series);
        }
    }
    Ok(series)
}

struct PeerTrial<'a> {
    counter: &'a Counter,
    database: String,
    name: String,
    life: Duration,
}

#[derive(Deserialize)]
struct Left {
    state: serde_json::Value,
    next: Vec<String>,
    checkpoints: Vec<String>,
}

impl PeerTrial<'_> {
    /// One run with its kills; how long the first process lived.
    fn run(
        &self,
        zygote: &mut Zygote,
        mut chance: Option<Seed>,
        series: &mut PeerSeries,
    ) -> Result<Duration, Fault> {
        const MOST_KILLS: u64 = 3;
        let kills = chance
            .as_mut()
            .map_or(0, |chance| 1 + chance.below(MOST_KILLS));
        let mut said: Vec<Vec<Line>> = Vec::new();
        let mut first = Duration::ZERO;
        let well = loop {
            let process = said.len();
            let kill = chance.as_mut().filter(|_| (process as u64) < kills);
            let kill = kill.map(|chance| self.life.mul_f64(chance.share() * 1.05));
            let request = json!({ "run": {
                "database": self.database,
                "thread": self.name,
                "trial": self.name,
                "counter": [self.counter.address().ip().to_string(), self.counter.address().port()],
                "process": process,
            }});
            let child = zygote.ask(&request, kill)?;
            if process == 0 {
                first = child.lived;
            }
            said.push(child.lines);
            match child.code {
                0 => break true,
                -9 => series.kills += 1,
                _ => break false,
            }
        };
        let read = json!({ "read": { "database": self.database, "thread": self.name } });
        let left = zygote
            .ask(&read, None)?
            .lines
            .into_iter()
            .find_map(|line| match line {
                Line::Other(text) => serde_json::from_str::<Left>(&text).ok(),
                _ => None,
            });
        series.trials += 1;
        let log = ["first after 0", "second after 1", "third after 2"];
        let right = left
            .as_ref()
            .is_some_and(|left| left.state == json!({ "log": log }) && left.next.is_empty());
        series.wrong += usize::from(!well || !right);
        let there: BTreeSet<String> = left
            .map(|left| left.checkpoints)
            .unwrap_or_default()
            .into_iter()
            .collect();
        let told = said.iter().flatten().filter_map(|line| match line {
            Line::Saved { checkpoint, .. } => Some(checkpoint),
            _ => None,
        });
        series.lost += told
            .filter(|checkpoint| !there.contains(*checkpoint))
            .count();
        count(&self.counter.hits(&self.name), &said, series);
        Ok(first)
    }
}

fn count(hits: &[Hit], said: &[Vec<Line>], series: &mut PeerSeries) {
    for effect in Shape::Steps.effects() {
        series.effects += 1;
        let of: Vec<&Hit> = hits.iter().filter(|hit| hit.effect == effect).collect();
        let keys: BTreeSet<&String> = of.iter().filter_map(|hit| hit.key.as_ref()).collect();
        series.renewed += keys.len().saturating_sub(1);
        let mut plain: Vec<&&Hit> = of.iter().filter(|hit| hit.key.is_none()).collect();
        plain.sort_by_key(|hit| hit.process);
        for before in plain.iter().take(plain.len().saturating_sub(1)) {
            series.repeats += 1;
            let empty = Vec::new();
            let lines = said.get(before.process).unwrap_or(&empty);
            let memo = lines
                .iter()
                .position(|line| matches!(line, Line::Memo(memo) if *memo == effect));
            series.repeats_after_memo += usize::from(memo.is_some());
            let later = memo.map_or(&[][..], |at| &lines[at..]);
            let told = later.iter().any(|line| matches!(line, Line::Saved { .. }));
            series.repeats_after_step += usize::from(told);
        }
    }
}

/// A Python process that has imported everything and forks.
struct Zygote {
    child: Child,
    requests: ChildStdin,
    lines: Receiver<String>,
}

/// What one forked child said and how it ended.
struct Forked {
    lines: Vec<Line>,
    code: i32,
    lived: Duration,
}

impl Zygote {
    fn start(python: &Path) -> Result<Zygote, Fault> {
        let mut child = Command::new(python)
            .arg(SCRIPT)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("LANGSMITH_TRACING", "false")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take().ok_or("no pipe to python")?;
        let said = child.stdout.take().ok_or("no pipe from python")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Zygote {
            child,
            requests,
            lines,
        })
    }

    /// Lets it fork for a request; kills the child at that moment of its life.
    fn ask(
        &mut self,
        request: &serde_json::Value,
        kill: Option<Duration>,
    ) -> Result<Forked, Fault> {
        writeln!(self.requests, "{request}")?;
        let first = self
            .lines
            .recv_timeout(STUCK)
            .map_err(|_| "python said nothing")?;
        let pid = first
            .strip_prefix("pid ")
            .ok_or("python did not fork")?
            .parse()?;
        let pid = Pid::from_raw(pid).ok_or("no process")?;
        let began = Instant::now();
        let mut until = began + kill.unwrap_or(STUCK);
        let mut lines = Vec::new();
        loop {
            match self
                .lines
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(line) => match line.strip_prefix("ended ") {
                    Some(code) => {
                        return Ok(Forked {
                            lines,
                            code: code.parse()?,
                            lived: began.elapsed(),
                        });
                    }
                    None => lines.push(Line::read(&line)),
                },
                Err(RecvTimeoutError::Timeout) => {
                    // It may have ended at the same moment.
                    let _ = kill_process(pid, Signal::KILL);
                    until = Instant::now() + STUCK;
                }
                Err(RecvTimeoutError::Disconnected) => return Err("python ended".into()),
            }
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
