//! Files that people name for output: where they really are, and that they are none of the store's own.
//!
//! Whatever writes a file whose name somebody gave asks here first. Nothing here writes.

use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How many links are followed from one to the next.
const LINKS: usize = 40;

/// Where a file of this name is, with all links followed, also those that lead to what is not there yet.
pub(crate) fn place(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS {
        if let Ok(found) = std::fs::canonicalize(&path) {
            return Ok(found);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path);
        };
        let folder = std::fs::canonicalize(folder)?;
        match std::fs::read_link(&path) {
            Ok(to) => path = folder.join(to),
            Err(_) => return Ok(folder.join(name)),
        }
    }
    Err(std::io::Error::other("too many links, one after the other"))
}

/// Refuses a file that belongs to the store: the database, what stands beside it, and its owners' folder.
pub(crate) fn refuse_own(flag: &str, path: &Path, store: Option<&Path>) -> Result<(), Failure> {
    match store.is_some_and(|store| is_own(path, store)) {
        true => Err(Failure::Usage(format!(
            "{flag}: {} belongs to the store, and stays as it is",
            path.display()
        ))),
        false => Ok(()),
    }
}

fn is_own(path: &Path, store: &Path) -> bool {
    let (Ok(path), Ok(store)) = (place(path), place(store)) else {
        return false;
    };
    let beside = ["", "-wal", "-shm", "-journal"].map(|end| with(store.as_os_str(), end));
    let is_one = |own: &PathBuf| path == *own || is_same(&path, own);
    beside.iter().any(is_one) || path.starts_with(with(store.as_os_str(), "-owners"))
}

fn with(path: &OsStr, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

/// Whether two names are of one file.
#[cfg(unix)]
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_same(_one: &Path, _other: &Path) -> bool {
    false
}
