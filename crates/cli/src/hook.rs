//! Commands of the settings: one that is called when a run comes to wait, and one that keeps anchors of the audit. They
//! get what they are told on their input.
//!
//! Such a command is told, and asked nothing: what it prints goes to standard error. It sees nothing of the environment
//! that may be secret.

use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use crate::terminal::printable;
use paraph_agents::Approval;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The setting.
const KEY: &str = "approvals.hook";

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(30);

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
        let ran = tokio::task::spawn_blocking(move || run(command, &text)).await;
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
        command
    }
}

fn run(mut command: Command, text: &str) -> Result<(), String> {
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
            None if begun.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it took longer than {} s", PATIENCE.as_secs()));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}
