//! The log of the libraries, on standard error: off unless asked for. The live trace is not part of it.

use crate::failure::Failure;
use crate::terminal::printable_json;
use std::io::{self, Write};
use std::str::FromStr;
use tracing_subscriber::filter::LevelFilter;

/// How much is logged, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    level: LevelFilter,
    json: bool,
}

impl FromStr for Log {
    type Err = String;

    fn from_str(text: &str) -> Result<Log, String> {
        let (level, form) = text.split_once(',').unwrap_or((text, ""));
        let level = match level {
            "off" => LevelFilter::OFF,
            "error" => LevelFilter::ERROR,
            "info" => LevelFilter::INFO,
            "debug" => LevelFilter::DEBUG,
            _ => return Err(format!("`{level}` is no level: off, error, info or debug")),
        };
        match form {
            "" => Ok(Log { level, json: false }),
            "json" => Ok(Log { level, json: true }),
            _ => Err(format!(
                "`{form}` is no form of a log: only `,json` may follow the level"
            )),
        }
    }
}

impl Log {
    /// Starts logging. The libraries' own rules keep secrets out of it.
    pub(crate) fn start(self, colour: bool) -> Result<(), Failure> {
        if self.level == LevelFilter::OFF {
            return Ok(());
        }
        let log = tracing_subscriber::fmt()
            .with_max_level(self.level)
            .with_writer(io::stderr)
            .with_ansi(colour && !self.json);
        let started = match self.json {
            true => log.json().with_writer(|| Escaped(io::stderr())).try_init(),
            false => log.try_init(),
        };
        started.map_err(|error| Failure::Broken(format!("the log cannot be started: {error}")))
    }
}

/// Writes lines of JSON without the characters that JSON leaves as they are and terminals obey.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    /// One line, whole, as the log writes them.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.0.write_all(printable_json(text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
