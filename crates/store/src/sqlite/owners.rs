//! By which processes see whether one that held a thread is still alive: each opened store keeps a lock on a
//! file of its own for as long as it is open, and the system drops the lock when the process is no more.

use super::connection::cannot_open;
use crate::error::Error;
use std::{
    fs::{File, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};
use uuid::Uuid;

/// The folder of locks, and our own.
#[derive(Debug)]
pub(super) struct Owners {
    folder: PathBuf,
    own: Arc<str>,
    /// Locked until it is dropped; nothing for one who only looks on, and never has a lease.
    lock: Option<File>,
}

impl Owners {
    /// Takes a place among the owners, and clears away the dead.
    pub(super) fn join(folder: &Path) -> Result<Self, Error> {
        let failed =
            |e: std::io::Error| cannot_open(folder, format!("no lock can be had there ({e})"));
        let mut how = std::fs::DirBuilder::new();
        how.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut how, 0o700);
        how.create(folder).map_err(failed)?;
        let own = fresh().map_err(failed)?.to_string();
        // Under its name only when it is locked, so that nobody takes it for a dead one's.
        let (unborn, born) = (folder.join(format!("{own}.new")), folder.join(&own));
        let lock = File::create(&unborn).map_err(failed)?;
        lock.try_lock().map_err(|e| failed(e.into()))?;
        std::fs::rename(&unborn, &born).map_err(failed)?;
        let owners = Owners {
            folder: folder.to_owned(),
            own: own.into(),
            lock: Some(lock),
        };
        owners.sweep();
        Ok(owners)
    }

    /// Takes no place among them, and writes nothing.
    pub(super) fn look_on(folder: &Path) -> Self {
        Owners {
            folder: folder.to_owned(),
            own: fresh().unwrap_or_default().to_string().into(),
            lock: None,
        }
    }

    pub(super) fn own(&self) -> Arc<str> {
        self.own.clone()
    }

    /// Whether this owner's lock is free for certain.
    pub(super) fn is_gone(&self, owner: &str) -> bool {
        // It comes out of the database, and becomes part of a path.
        let Ok(owner) = Uuid::parse_str(owner) else {
            return false;
        };
        let name = owner.to_string();
        if *name == *self.own {
            return false;
        }
        // Shared, so that two who look at once do not take each other for the owner.
        match File::open(self.folder.join(name)) {
            Ok(file) => file.try_lock_shared().is_ok(),
            Err(e) => e.kind() == ErrorKind::NotFound,
        }
    }

    /// Removes the files of those who are no more.
    fn sweep(&self) {
        for entry in std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let is_owner = name.to_str().is_some_and(|n| Uuid::parse_str(n).is_ok());
            if !is_owner || name.to_str() == Some(&self.own) {
                continue;
            }
            let Ok(file) = File::options().write(true).open(entry.path()) else {
                continue;
            };
            match file.try_lock() {
                // What cannot be removed is in nobody's way.
                Ok(()) => drop(std::fs::remove_file(entry.path())),
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
            }
        }
    }
}

/// A name for an owner. It is made of the time of day, which has to be one that there can be.
fn fresh() -> std::io::Result<Uuid> {
    match std::time::SystemTime::now() >= std::time::UNIX_EPOCH {
        true => Ok(Uuid::now_v7()),
        false => Err(std::io::Error::other("this machine's clock is before 1970")),
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = std::fs::remove_file(self.folder.join(&*self.own));
        }
    }
}
