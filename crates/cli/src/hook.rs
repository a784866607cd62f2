//! Commands of the settings: one that is called when a run comes to wait, and one that keeps anchors of the audit. They
//! get what they are told on their input.
//!
//! Such a command is told, and asked nothing: what it writes to its standard error is seen, the rest of what it prints is
//! not. It sees nothing of the environment that may be secret. It leads a process group of its own, which is ended with
//! it when it takes too long; what it leaves running when it has ended in time is its own business.

use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use crate::terminal::printable;
use paraph_agents::Approval;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The setting.
const KEY: &str = "approvals.hook";

/// How long a command may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What it sees of the environment: nothing that may be secret.
const SEEN: [&str; 8] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "TZ",
    "SYSTEMROOT",
    "DISPLAY",
];

/// Tells the command of the settings what waits, if there is one. Its failure is a warning.
pub(crate) async fn tell(config: &Config, waits: &[Approval]) -> Result<(), Failure> {
    let Some(found) = config.get(KEY)? else {
        return Ok(());
    };
    let json = serde_json::to_string(waits)?;
    let told = CommandLine::of(config, &found.text).tell(json).await;
    if let Err(why) = told {
        note(&printable(&format!(
            "warning: {KEY} ({}): {why}",
            found.source
        )));
    }
    Ok(())
}

/// A line for the shell, and what the command may see of the environment.
#[derive(Clone)]
pub(crate) struct CommandLine {
    line: String,
    sees: Vec<(&'static str, String)>,
}

impl CommandLine {
    pub(crate) fn of(config: &Config, line: &str) -> CommandLine {
        let value = |name| Some((name, config.environment.real(name)?.to_owned()));
        CommandLine {
            line: line.to_owned(),
            sees: SEEN.into_iter().filter_map(value).collect(),
        }
    }

    /// Runs it with a line of text on its input, and ends it if it takes too long.
    pub(crate) async fn tell(&self, text: String) -> Result<(), String> {
        let command = self.command();
        let ran = tokio::task::spawn_blocking(move || run(command, &text, PATIENCE)).await;
        ran.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn command(&self) -> Command {
        let (shell, flag) = match cfg!(windows) {
            true => ("cmd", "/C"),
            false => ("sh", "-c"),
        };
        let mut command = Command::new(shell);
        command.args([flag, &self.line]).env_clear();
        command.envs(self.sees.iter().map(|(name, value)| (name, value)));
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

fn run(mut command: Command, text: &str, patience: Duration) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(words)?;
    let begun = Instant::now();
    if let Some(mut input) = child.stdin.take() {
        let line = format!("{text}\n");
        // It need not read what it is told, so nobody waits for that; the thread ends with the program at the latest.
        std::thread::spawn(move || {
            let _ = input.write_all(line.as_bytes());
        });
    }
    loop {
        match child.try_wait().map_err(words)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("it ended with {status}")),
            None if begun.elapsed() > patience => {
                end_group(&child);
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it took longer than {} s", patience.as_secs()));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Ends all that a command has started. It has not been waited for, so that its number is still its own.
fn end_group(child: &Child) {
    #[cfg(unix)]
    if let Some(leader) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // The group may be gone already.
        let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = child;
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::sync::mpsc;

    fn command(line: &str) -> Command {
        CommandLine {
            line: line.to_owned(),
            sees: vec![("PATH", std::env::var("PATH").unwrap_or_default())],
        }
        .command()
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut slow = command("while :; do sleep 1; done & while :; do sleep 1; done; :");
        slow.stderr(writer);
        let ended = run(slow, "{}", Duration::from_millis(100));
        assert_eq!(ended, Err("it took longer than 0 s".to_owned()));
        // The pipe is at its end when nobody is left who could write into it.
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(reader.read_to_end(&mut Vec::new()).is_ok()));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(true));
    }

    #[test]
    fn how_a_command_ended_is_told() {
        let patience = Duration::from_secs(30);
        assert_eq!(run(command("cat > /dev/null"), "{}", patience), Ok(()));
        let ended = run(command("exit 3"), "{}", patience);
        assert_eq!(ended, Err("it ended with exit status: 3".to_owned()));
    }
}
