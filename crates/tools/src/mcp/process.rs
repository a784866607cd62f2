//! A server's process: started with what is configured and nothing else, ended for certain.
//!
//! Called by `connection.rs`. The process leads a group of its own, so that what it starts ends with it. A small shell
//! beside it waits for this process to go away: when it does, be it by SIGKILL, the shell ends the group. What left the
//! group is ended by its mark (`strays.rs`).

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::ExposeSecret;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::settings::McpServer;
use super::strays::Mark;
use crate::setting::Known;

/// How long a server may take to end by itself after its input was closed, and again after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many bytes of what it says on standard error are remembered.
const MAX_STDERR: usize = 4_096;

/// A running server. Dropped, it and all it started is killed; [`Process::end`] gives it time.
pub(super) struct Process {
    child: Child,
    group: Group,
    mark: Mark,
    stderr: Arc<Mutex<VecDeque<u8>>>,
}

impl Process {
    /// Starts the server; the pipes are the caller's.
    pub(super) fn start(
        settings: &McpServer,
        known: &Known,
    ) -> Result<(Process, ChildStdout, ChildStdin), String> {
        let program = settings.command.as_deref().unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(&settings.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (name, setting) in &settings.env {
            command.env(name, known.value(setting).expose_secret());
        }
        if let Some(dir) = &settings.dir {
            command.current_dir(dir);
        }
        let mark = Mark::put(&mut command);
        Group::lead(&mut command);
        let child = command.spawn();
        let mut child = child.map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let group = Group::of(&child);
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(format!("`{program}` has no pipes"));
        };
        let said: Arc<Mutex<VecDeque<u8>>> = Arc::default();
        tokio::spawn(listen(stderr, Arc::clone(&said)));
        let process = Process {
            child,
            group,
            mark,
            stderr: said,
        };
        Ok((process, stdout, stdin))
    }

    /// The last that the server said on standard error.
    pub(super) fn said(&self) -> String {
        let said = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = said.iter().copied().collect();
        crate::said::short(&String::from_utf8_lossy(&bytes))
    }

    /// Waits for the server to end after its input was closed, asks it to end, kills it.
    pub(super) async fn end(mut self) {
        if tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .is_err()
        {
            self.group.ask();
            let asked = tokio::time::timeout(PATIENCE, self.child.wait()).await;
            if asked.is_err() {
                self.group.kill();
                // A killed process ends; if the system does not say so, there is nothing more to do.
                let _ = self.child.start_kill();
                let _ = tokio::time::timeout(PATIENCE, self.child.wait()).await;
            }
        }
        // Dropping it kills what is left of the group.
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
        self.mark.end_all();
    }
}

/// Reads standard error to its end, so that the server never waits for it, and remembers the last of it.
async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 1_024];
    while let Ok(length @ 1..) = stderr.read(&mut piece).await {
        let piece = piece.get(..length).unwrap_or_default();
        tracing::debug!(bytes = length, "an MCP server wrote to its standard error");
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(piece);
        let over = said.len().saturating_sub(MAX_STDERR);
        said.drain(..over);
    }
}

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group};
    use std::process::{Child, Stdio};

    /// Ends the group when standard input closes: this process closes it only by going away.
    const WATCH: &str = r#"read -r _; kill -TERM "-$1"; sleep 2; kill -KILL "-$1""#;

    /// The group of a server and all it starts.
    pub(crate) struct Group {
        leader: Option<Pid>,
        watch: Option<Child>,
    }

    impl Group {
        pub(crate) fn lead(command: &mut tokio::process::Command) {
            command.process_group(0);
        }

        pub(crate) fn of(child: &tokio::process::Child) -> Group {
            let id = child.id().and_then(|id| i32::try_from(id).ok());
            let leader = id.and_then(Pid::from_raw);
            let watch = id.and_then(|id| {
                use std::os::unix::process::CommandExt as _;
                std::process::Command::new("/bin/sh")
                    .args(["-c", WATCH, "sh", &id.to_string()])
                    .env_clear()
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .process_group(0)
                    .spawn()
                    .ok()
            });
            Group { leader, watch }
        }

        /// Asks all of the group to end.
        pub(crate) fn ask(&self) {
            self.signal(Signal::TERM);
        }

        /// Ends all of the group, and who watches over it.
        pub(crate) fn kill(&mut self) {
            self.signal(Signal::KILL);
            self.leader = None;
            if let Some(mut watch) = self.watch.take() {
                let _ = watch.kill();
                let _ = watch.wait();
            }
        }

        fn signal(&self, signal: Signal) {
            if let Some(leader) = self.leader {
                // The group may be gone already.
                let _ = kill_process_group(leader, signal);
            }
        }
    }
}
#[cfg(unix)]
use unix::Group;

/// Without process groups the child alone is ended, when its handle is dropped.
#[cfg(not(unix))]
struct Group;

#[cfg(not(unix))]
impl Group {
    fn lead(_: &mut Command) {}

    fn of(_: &Child) -> Group {
        Group
    }

    fn ask(&self) {}

    fn kill(&mut self) {}
}
