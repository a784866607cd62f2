//! The command of the settings that is called when a run comes to wait: it gets what waits as JSON on its input.
//!
//! It is told, and asked nothing: what it prints goes to standard error, and its failure is a warning.

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

/// How long it may take.
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

/// Tells the command of the settings, if there is one.
pub(crate) async fn tell(config: &Config, waits: &[Approval]) -> Result<(), Failure> {
    let Some(found) = config.get(KEY)? else {
        return Ok(());
    };
    let json = serde_json::to_string(waits)?;
    let command = command(config, &found.text);
    let ran = tokio::task::spawn_blocking(move || run(command, &json)).await;
    let failed = match ran {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(why)) => why,
        Err(error) => error.to_string(),
    };
    note(&printable(&format!(
        "warning: {KEY} ({}): {failed}",
        found.source
    )));
    Ok(())
}

fn command(config: &Config, line: &str) -> Command {
    let (shell, flag) = match cfg!(windows) {
        true => ("cmd", "/C"),
        false => ("sh", "-c"),
    };
    let mut command = Command::new(shell);
    command.args([flag, line]).env_clear();
    for name in SEEN {
        if let Some(value) = config.environment.real(name) {
            command.env(name, value);
        }
    }
    command
}

/// Runs it, and ends it if it takes too long. Its own output is for whoever reads ours.
fn run(mut command: Command, json: &str) -> Result<(), String> {
    let words = |error: std::io::Error| error.to_string();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(words)?;
    if let Some(mut input) = child.stdin.take() {
        // It need not read what it is told.
        let _ = input.write_all(json.as_bytes());
        let _ = input.write_all(b"\n");
    }
    let begun = Instant::now();
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
