//! Processes that a server started and took out of its group, found by a mark in their environment.
//!
//! `process.rs` marks a server when it starts it, and ends what carries the mark when the server has ended: a process in a
//! session of its own is in no group that could be ended. Only Linux shows the environment of processes; elsewhere, and
//! where a process has cleared its environment, or this program was killed, such a process stays.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::process::Command;

/// The variable that carries the mark.
const NAME: &str = "MCP_SERVER_MARK";

/// How often what carries the mark is looked for: what was found may have started more before it ended.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 4;

/// How much of a process's environment is read; the mark stands wherever the process put it.
#[cfg(target_os = "linux")]
const MAX_ENVIRONMENT: u64 = 1 << 20;

/// What one server and all that it starts have in their environment, and nothing else has.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// A new one, put into the environment of what is about to be started.
    pub(super) fn put(command: &mut Command) -> Mark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let value = format!(
            "{}-{}-{}",
            std::process::id(),
            since.unwrap_or_default().as_nanos(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        command.env(NAME, &value);
        Mark(format!("{NAME}={value}"))
    }

    /// Ends what carries the mark.
    #[cfg(target_os = "linux")]
    pub(super) fn end_all(&self) {
        for _ in 0..ROUNDS {
            if linux::end(self.0.as_bytes()) == 0 {
                return;
            }
        }
    }

    /// Nobody can tell here what carries the mark.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn end_all(&self) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::io::Read as _;

    /// Ends the processes with this line in their environment, and says how many were told to.
    pub(super) fn end(line: &[u8]) -> usize {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return 0;
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let ids = names.filter_map(|name| name.parse().ok());
        ids.filter(|&id| end_one(id, line)).count()
    }

    /// The process is taken hold of before it is looked at, so that no other one can have got its number meanwhile.
    fn end_one(id: i32, line: &[u8]) -> bool {
        let Some(pid) = Pid::from_raw(id) else {
            return false;
        };
        if !has(id, line) {
            return false;
        }
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        has(id, line) && pidfd_send_signal(held, Signal::KILL).is_ok()
    }

    fn has(id: i32, line: &[u8]) -> bool {
        let mut environment = Vec::new();
        let read = std::fs::File::open(format!("/proc/{id}/environ")).and_then(|file| {
            file.take(super::MAX_ENVIRONMENT)
                .read_to_end(&mut environment)
        });
        read.is_ok()
            && environment
                .split(|&byte| byte == 0)
                .any(|found| found == line)
    }
}
