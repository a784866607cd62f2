//! Files that may keep a reader waiting: a named pipe that nobody writes into, a terminal, a device.
//!
//! Whatever opens a file that somebody named goes through here, so that the program never hangs before
//! its run has begun. Ordinary files are read on the spot.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long the other end of a pipe may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Does what opens `path`; nothing if the file keeps it waiting for too long.
pub(crate) fn patiently<T: Send + 'static>(
    path: &Path,
    open: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // Of what is no file at all the opening itself says what is wrong.
    if std::fs::metadata(path).map_or(true, |found| found.is_file() || found.is_dir()) {
        return Some(open());
    }
    let (sender, receiver) = mpsc::channel();
    // The thread may wait for ever; it ends with the program.
    std::thread::spawn(move || sender.send(open()));
    receiver.recv_timeout(PATIENCE).ok()
}

/// What is said of a file that kept us waiting.
pub(crate) fn too_slow() -> String {
    format!(
        "nothing came from the other end of this pipe for {} seconds",
        PATIENCE.as_secs()
    )
}
