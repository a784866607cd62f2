//! What ends the program before or beside a run, with the exit code that scripts rely on.

use std::process::ExitCode;

/// Exit code: finished.
pub(crate) const FINISHED: u8 = 0;
/// Exit code: wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// Exit code: a rule forbids it.
pub(crate) const REFUSED: u8 = 3;
/// Exit code: waiting for a person.
pub(crate) const WAITING: u8 = 5;
/// Exit code: store, conflict or internal failure.
pub(crate) const BROKEN: u8 = 6;
/// Exit code: interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why the program ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user or the configuration has to put something right.
    Usage(String),
    /// A rule forbids it, whatever anybody puts right.
    Refused(String),
    /// Something that is nobody's input failed.
    Broken(String),
    /// Whoever read our output has gone; that is no mistake, and there is nobody to tell.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn usage(text: impl std::fmt::Display) -> Failure {
        Failure::Usage(text.to_string())
    }

    /// Says what happened, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::Usage(text) => {
                say(&text);
                ExitCode::from(USAGE)
            }
            Failure::Refused(text) => {
                say(&text);
                ExitCode::from(REFUSED)
            }
            Failure::Broken(text) => {
                say(&text);
                ExitCode::from(BROKEN)
            }
            Failure::ClosedPipe => ExitCode::from(FINISHED),
        }
    }
}

/// The text may quote a file or a server, and must not disturb the terminal.
fn say(text: &str) {
    crate::output::note(&crate::terminal::printable(&format!("error: {text}")));
}

impl From<std::io::Error> for Failure {
    /// For writing to standard output.
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
            _ => Failure::Broken(format!("standard output: {error}")),
        }
    }
}

impl From<paraph_graph::Error> for Failure {
    /// Whoever asks for what is not there made a mistake; the rest is the store's, or somebody else's run.
    fn from(error: paraph_graph::Error) -> Failure {
        use paraph_graph::Error as Engine;
        match error {
            Engine::UnknownThread(_)
            | Engine::UnknownRun(_)
            | Engine::RunOver(_)
            | Engine::UnknownCheckpoint { .. }
            | Engine::BadThread(_) => Failure::Usage(error.to_string()),
            // The engine's words are about a step of a run, and this is about a whole thread.
            Engine::Conflict { thread, holder } => Failure::Broken(match holder {
                Some(run) => format!(
                    "thread `{thread}` is driven by run {run}; nothing was changed (`paraph runs cancel {run}` ends it)"
                ),
                None => format!("thread `{thread}` is driven by another run; nothing was changed"),
            }),
            error => Failure::Broken(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Broken(format!("a result cannot be written as JSON: {error}"))
    }
}
