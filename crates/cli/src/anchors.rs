//! Where anchors of the audit are kept: a file, a command, or a server. Nothing here decides when one is due.

use crate::config::Config;
use crate::failure::Failure;
use crate::hook::CommandLine;
use crate::patience::{patiently, too_slow};
use crate::stores::file_of;
use crate::writing::refuse_own;
use paraph_gateway::Anchor;
use paraph_tools::{Base, Outbound, SecretString};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The setting that names the place.
const KEY: &str = "audit.anchor";

/// After how many entries one is made.
const EVERY: &str = "audit.anchor_every";

/// The longest way between two anchors, in entries.
const MOST: u64 = 1_000_000;

/// A place for anchors, and after how many entries one is due.
pub(crate) struct Anchors {
    place: Place,
    pub(crate) every: u64,
}

/// Where anchors go.
enum Place {
    /// A line is added to a file.
    File(PathBuf),
    /// A command gets the line on its input.
    Command(CommandLine),
    /// A server gets it as JSON.
    Server {
        base: Base,
        token: Option<SecretString>,
        outbound: Outbound,
    },
}

impl Anchors {
    /// The place of the settings, if they name one.
    pub(crate) fn of(config: &Config) -> Result<Option<Anchors>, Failure> {
        match config.get(KEY)? {
            None => Ok(None),
            Some(found) => Anchors::at(config, &found.text, |why| found.wrong(KEY, why)).map(Some),
        }
    }

    /// The place that a flag names.
    pub(crate) fn named(config: &Config, text: &str) -> Result<Anchors, Failure> {
        Anchors::at(config, text, |why| Failure::Usage(format!("--to: {why}")))
    }

    fn at(
        config: &Config,
        text: &str,
        wrong: impl Fn(String) -> Failure,
    ) -> Result<Anchors, Failure> {
        let place = match text.split_once(':') {
            Some(("file", path)) if !path.trim().is_empty() => {
                let path = PathBuf::from(path.strip_prefix("//").unwrap_or(path));
                let store = file_of(&config.store()?.text);
                refuse_own(KEY, &path, store.as_deref())?;
                Place::File(path)
            }
            Some(("command", line)) if !line.trim().is_empty() => {
                Place::Command(CommandLine::of(config, line))
            }
            Some(("https" | "http", _)) => Place::Server {
                base: Base::new(text).map_err(|error| wrong(error.to_string()))?,
                token: config
                    .get("audit.anchor_token")?
                    .map(|found| found.text.into()),
                outbound: crate::tools::outbound(config)?,
            },
            // Whatever it is, it may have something secret in it.
            _ => {
                let there_are =
                    "that is no place for anchors: there are file:PATH, command:LINE and https://…";
                return Err(wrong(there_are.to_owned()));
            }
        };
        Ok(Anchors {
            place,
            every: every(config)?,
        })
    }

    /// Keeps an anchor there.
    pub(crate) async fn keep(&self, anchor: &Anchor) -> Result<(), String> {
        let line = anchor.to_string();
        match &self.place {
            Place::File(path) => {
                let added = append(path, &line);
                added.map_err(|error| format!("{}: {error}", path.display()))
            }
            Place::Command(command) => command.tell(line).await,
            Place::Server {
                base,
                token,
                outbound,
            } => {
                let sent = outbound.post_json(base, token.as_ref(), &line).await;
                sent.map_err(|error| error.to_string())
            }
        }
    }

    /// The place for people, without what may be secret.
    pub(crate) fn shown(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Command(_) => "a command".to_owned(),
            Place::Server { base, .. } => base.to_string(),
        }
    }
}

fn every(config: &Config) -> Result<u64, Failure> {
    let Some(found) = config.get(EVERY)? else {
        return Ok(MOST);
    };
    match found.text.parse() {
        Ok(every @ 1..=MOST) => Ok(every),
        _ => {
            let why = format!("`{}` is no number of entries from 1 to {MOST}", found.text);
            Err(found.wrong(EVERY, why))
        }
    }
}

/// Adds a line, and waits until the disk has it, if it is on a disk.
pub(crate) fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let (place, line) = (path.to_owned(), format!("{line}\n"));
    let added = patiently(path, move || {
        let mut file = OpenOptions::new().append(true).create(true).open(place)?;
        file.write_all(line.as_bytes())?;
        match file.metadata()?.is_file() {
            true => file.sync_all(),
            false => Ok(()),
        }
    });
    added.unwrap_or_else(|| Err(std::io::Error::other(too_slow())))
}
