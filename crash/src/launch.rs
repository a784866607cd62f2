//! Starting a child, reading what it says, and killing it at a chosen moment.
//!
//! Called by `trial` and by tests. The lines of a child that was killed are still read to their end: what it
//! said before is what it has acknowledged.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Fault;

/// How long a child may take before it counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

/// How a child is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program, with the arguments before the order.
    pub words: Vec<String>,
}

/// One line that a child said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The store is open.
    Began,
    /// The step with this effect is saved.
    Memo(String),
    /// A checkpoint is saved.
    Saved {
        /// The checkpoint.
        checkpoint: String,
        /// The subgraph, or empty.
        namespace: String,
    },
    /// It has its thread's lease, and waits.
    Held,
    /// A write was done that had to be refused.
    Accepted(String),
    /// The store refused a write, as it must for one whose lease is gone.
    Refused(String),
    /// The durable writes that there were, in order.
    Writes(Vec<String>),
    /// All is done.
    Done,
    /// Something else.
    Other(String),
}

impl Line {
    pub(crate) fn read(line: &str) -> Line {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "began" => Line::Began,
            "memo" => Line::Memo(rest.to_owned()),
            "saved" => {
                let mut words = rest.splitn(3, ' ').skip(1);
                let mut next = || words.next().unwrap_or_default().to_owned();
                Line::Saved {
                    checkpoint: next(),
                    namespace: next(),
                }
            }
            "held" => Line::Held,
            "accepted" => Line::Accepted(rest.to_owned()),
            "refused" => Line::Refused(rest.to_owned()),
            "writes" => Line::Writes(rest.split_whitespace().map(str::to_owned).collect()),
            "done" => Line::Done,
            _ => Line::Other(line.to_owned()),
        }
    }
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with its work done.
    Done,
    /// By our signal, or at the place where it was to end.
    Cut,
    /// By itself, with an error.
    Failed {
        /// Its exit code; nothing if a signal ended it.
        code: Option<i32>,
        /// What it said on standard error.
        said: String,
    },
    /// It did not end in time.
    Stuck,
}

/// A child that has ended.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What it said.
    pub lines: Vec<Line>,
    /// How it ended.
    pub end: End,
    /// How long it lived.
    pub lived: Duration,
}

impl Attempt {
    /// The effects whose step it said was saved.
    pub fn memos(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Memo(effect) => Some(effect.as_str()),
            _ => None,
        })
    }

    /// The writes that the store refused.
    pub fn refused(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| matches!(line, Line::Refused(_)))
            .count()
    }
}

impl Launch {
    /// The binary of this package.
    pub fn of(program: impl Into<String>) -> Launch {
        Launch {
            words: vec![program.into(), "child".to_owned()],
        }
    }

    /// The same binary as another kind of child.
    #[must_use]
    pub fn mode(mut self, mode: &str) -> Launch {
        self.words.pop();
        self.words.push(mode.to_owned());
        self
    }

    /// The same through another program, which is given all words of this one after its own.
    #[must_use]
    pub fn under(mut self, words: impl IntoIterator<Item = String>) -> Launch {
        self.words.splice(0..0, words);
        self
    }

    /// Starts a child and leaves it running.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&self, order: &impl Serialize) -> Result<Running, Fault> {
        let (program, words) = self.words.split_first().ok_or("nothing to start")?;
        let mut child = Command::new(program)
            .args(words)
            .arg(serde_json::to_string(order)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let said = child.stdout.take().ok_or("no pipe from the child")?;
        let errors = child.stderr.take().ok_or("no pipe from the child")?;
        let (sender, lines) = channel();
        let out = thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if sender.send(Line::read(&line)).is_err() {
                    return;
                }
            }
        });
        let err = thread::spawn(move || {
            let mut text = String::new();
            let mut errors = errors;
            // Whatever is no text there is no message of ours.
            let _ = errors.read_to_string(&mut text);
            text
        });
        Ok(Running {
            child: Held(child),
            out,
            err,
            lines,
            read: Vec::new(),
            began: Instant::now(),
        })
    }
}

/// A process that does not outlive whoever has started it.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        // It may be over.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A child that is alive. It is killed when this is dropped.
pub struct Running {
    child: Held,
    out: JoinHandle<()>,
    err: JoinHandle<String>,
    lines: Receiver<Line>,
    read: Vec<Line>,
    began: Instant,
}

impl Running {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// How long it has lived so far.
    pub(crate) fn lived(&self) -> Duration {
        self.began.elapsed()
    }

    /// Reads on until it says a line that is wanted; says whether it did.
    pub fn read_until(&mut self, wanted: impl Fn(&Line) -> bool) -> bool {
        while let Ok(line) = self.lines.recv_timeout(STUCK) {
            let found = wanted(&line);
            self.read.push(line);
            if found {
                return true;
            }
        }
        false
    }

    /// Waits for its end, or kills it at that moment of its life.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn end(mut self, kill: Option<Duration>) -> Result<Attempt, Fault> {
        let until = self.began + kill.unwrap_or(STUCK);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.read.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.0.kill()?;
                    break;
                }
            }
        }
        let status = self.child.0.wait()?;
        let lived = self.began.elapsed();
        // The pipe is at its end now; what was in it is still read.
        let _ = self.out.join();
        self.read.extend(self.lines.try_iter());
        let said = self.err.join().unwrap_or_default();
        Ok(Attempt {
            lines: self.read,
            end: judge(status, said, kill.is_none()),
            lived,
        })
    }
}

fn judge(status: ExitStatus, said: String, was_to_end: bool) -> End {
    const KILL: i32 = 9;
    const ABORT: i32 = 6;
    match (status.signal(), status.code()) {
        (Some(KILL), _) if was_to_end => End::Stuck,
        (Some(KILL | ABORT), _) => End::Cut,
        (None, Some(0)) => End::Done,
        (_, code) => End::Failed { code, said },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_said() {
        let saved = |checkpoint: &str, namespace: &str| Line::Saved {
            checkpoint: checkpoint.to_owned(),
            namespace: namespace.to_owned(),
        };
        assert_eq!(Line::read("began"), Line::Began);
        assert_eq!(
            Line::read("memo item 1 in 0"),
            Line::Memo("item 1 in 0".to_owned())
        );
        assert_eq!(Line::read("saved 3 0197 "), saved("0197", ""));
        assert_eq!(Line::read("saved -1 0197 a:b|c"), saved("0197", "a:b|c"));
        assert_eq!(Line::read("refused put"), Line::Refused("put".to_owned()));
        assert_eq!(
            Line::read("writes lease put"),
            Line::Writes(vec!["lease".to_owned(), "put".to_owned()])
        );
        assert_eq!(Line::read("done"), Line::Done);
    }

    #[test]
    fn a_signal_is_a_cut_only_when_we_sent_it() {
        let by = |raw| ExitStatus::from_raw(raw);
        assert_eq!(judge(by(9), String::new(), false), End::Cut);
        assert_eq!(judge(by(9), String::new(), true), End::Stuck);
        assert_eq!(judge(by(6), String::new(), true), End::Cut);
        assert_eq!(judge(by(0), String::new(), true), End::Done);
        let failed = End::Failed {
            code: Some(2),
            said: "why".to_owned(),
        };
        assert_eq!(judge(by(2 << 8), "why".to_owned(), false), failed);
    }
}
