//! `paraph approvals edit`: other arguments, read as the tool will read them, in the place of an action's.

use super::lineage::waiting_run;
use super::{Listed, flag, looked_at, refused};
use crate::application::{Described, Said};
use crate::args::EditArgs;
use crate::config::{Config, Environment, read_text};
use crate::failure::{FINISHED, Failure, WAITING};
use crate::output::{note, print, print_json};
use crate::person::local;
use crate::started::Started;
use crate::stores::Kept;
use crate::terminal::printable;
use paraph_gateway::{ActionRow, Gateway, Shape};
use std::fs::OpenOptions;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) async fn edit(kept: &Kept, config: &Config, args: &EditArgs) -> Result<u8, Failure> {
    let row = looked_at(kept, &args.which).await?;
    if !row.state.is_undecided() {
        return Err(Failure::Broken(super::conflict(kept, &row)));
    }
    let text = match args.args.as_deref() {
        Some(given) => Some(arguments(given)?),
        None => in_editor(&config.environment, &row)?,
    };
    let Some(text) = text else {
        note("nothing was changed, and the action waits as before");
        return Ok(WAITING);
    };
    let run = waiting_run(kept, &row.action.said.run).await?;
    let started = Started::of(&run)?;
    let opened = Described::started(&started)?
        .open(config, kept.stores(), Said::of(&started))
        .await?;
    let by = local(&config.environment);
    let new = match opened.agent.gateway_of(&row.action.said.run.agent) {
        Some(gateway) => edited(kept, gateway, (&row, &by), &text).await,
        None => Err(Failure::Usage(format!(
            "the run's agents have none called `{}` any more",
            printable(&row.action.said.run.agent)
        ))),
    };
    opened.close().await;
    let new = new?;
    note(&format!(
        "edited by {by} (unverified): action {} stands in the place of {}, and waits for a decision of its own",
        new.id(),
        row.id()
    ));
    match args.out.json {
        true => print_json(&Listed::of(&new))?,
        false => print(&format!("paraph approvals show {}{}", new.id(), flag(kept)))?,
    }
    Ok(FINISHED)
}

/// Puts other arguments in the place of an action's.
pub(super) async fn edited(
    kept: &Kept,
    gateway: &Gateway,
    (row, by): (&ActionRow, &str),
    arguments: &str,
) -> Result<ActionRow, Failure> {
    let new = gateway.edit(row, &row.digest, by, arguments).await;
    new.map_err(|error| refused(kept, error))
}

/// The arguments as they were given, or the file that was.
fn arguments(given: &str) -> Result<String, Failure> {
    let Some(file) = given.strip_prefix('@') else {
        return Ok(given.to_owned());
    };
    read_text(Path::new(file)).map_err(|error| Failure::Usage(format!("--args: {file}: {error}")))
}

/// The arguments as somebody left them in their editor; nothing if they changed nothing.
pub(super) fn in_editor(
    environment: &Environment,
    row: &ActionRow,
) -> Result<Option<String>, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "--args is missing, and there is no terminal to open an editor on",
        ));
    }
    let named = ["VISUAL", "EDITOR"].map(|variable| environment.real(variable));
    let editor = named
        .into_iter()
        .flatten()
        .find(|editor| !editor.trim().is_empty());
    let before = laid_out(row);
    let scratch = Scratch::with(&row.id().to_string(), &before)?;
    open(editor.unwrap_or("vi"), &scratch.0)?;
    let wrong = |error: std::io::Error| Failure::Usage(format!("{}: {error}", scratch.0.display()));
    let after = read_text(&scratch.0).map_err(wrong)?;
    Ok((after.trim() != before.trim()).then_some(after))
}

/// Runs an editor on a file, and waits until it ends.
fn open(editor: &str, file: &Path) -> Result<(), Failure> {
    // The variable may bring options of its own, which a shell takes apart.
    let status = match cfg!(unix) {
        true => Command::new("sh")
            .args(["-c", &format!("{editor} \"$1\""), "sh"])
            .arg(file)
            .status(),
        false => Command::new(editor).arg(file).status(),
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Usage(format!(
            "{editor} ended with {status}; nothing was changed"
        ))),
        Err(error) => Err(Failure::Usage(format!("{editor}: {error}"))),
    }
}

/// The arguments with one on each line, digit by digit.
fn laid_out(row: &ActionRow) -> String {
    let args = &row.action.said.args;
    let Shape::Object(entries) = args.view().shape() else {
        return format!("{args}\n");
    };
    let lines: Vec<_> = entries
        .map(|(name, value)| format!("  {}: {value}", serde_json::Value::from(name)))
        .collect();
    match lines.is_empty() {
        true => "{}\n".to_owned(),
        false => format!("{{\n{}\n}}\n", lines.join(",\n")),
    }
}

/// A file for one edit, for its owner only, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn with(name: &str, text: &str) -> Result<Scratch, Failure> {
        let name = format!("paraph-{name}-{}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        let wrong = |error| Failure::Broken(format!("{}: {error}", path.display()));
        let mut options = OpenOptions::new();
        // Whatever has that name already is somebody else's.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(wrong)?;
        let scratch = Scratch(path.clone());
        file.write_all(text.as_bytes()).map_err(wrong)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
