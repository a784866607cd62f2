//! Refunds in a file of this machine: one line of JSON for each, appended under a lock, on the disk before it counts.
//!
//! Only [`IssueRefund`] uses it. Processes that write at the same time wait for one another at a lock file beside the
//! ledger, and a key that is there is not written again. A line that a crash cut off at the end is no refund and is
//! taken away before the next one; anything else that is no refund stops all writing until a person has looked.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use paraph_gateway::{Attempt, EffectError, ToolError, Warrant};
use serde::{Deserialize, Serialize};

use super::{CURRENCY, IssueRefund, Receipt, Refund};
use crate::error::Error;

/// How long is waited for other processes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the lock is tried.
const LOOK: Duration = Duration::from_millis(5);

/// The longest line, in bytes: four times what the longest reason can take.
const MAX_LINE: u64 = 16 << 10;

/// The largest ledger that is read, in bytes.
const MAX_LEDGER: u64 = 256 << 20;

/// A ledger, which need not be there yet.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    path: PathBuf,
}

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The idempotency key: there is one line for each.
    pub(super) key: String,
    /// What the refund is called.
    pub(super) refund: String,
    pub(super) user_id: u64,
    pub(super) amount_cents: u64,
    pub(super) currency: String,
    pub(super) reason: String,
    /// The action that was signed, and the digest of its bytes.
    pub(super) action: String,
    pub(super) digest: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
}

/// Why a line was not written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// It is not there and will not be.
    Nothing(String),
    /// It may be there.
    Unknown(String),
}

impl Ledger {
    /// # Errors
    /// [`Error::Config`] for a path that leads elsewhere when the program is started elsewhere: what was sent once
    /// would not be found again. And for a pipe, a device or a folder, which keeps nothing or keeps its reader waiting.
    pub(super) fn at(path: PathBuf) -> Result<Ledger, Error> {
        let wrong = |why| {
            let why = format!("`{}` {why}", path.display());
            Err(Error::config("the refund ledger", why))
        };
        if !path.is_absolute() || path.file_name().is_none() {
            return wrong("is no whole path of a file: write it from the root on");
        }
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() => wrong("is there and is no ordinary file"),
            // What cannot be looked at is told when there is something to write.
            _ => Ok(Ledger { path }),
        }
    }

    /// Writes the refund that was signed, unless it is there.
    pub(super) async fn write(
        &self,
        warrant: &Warrant<'_, IssueRefund>,
    ) -> Result<Receipt, EffectError> {
        let key = warrant.key();
        let refund = warrant.args.clone();
        let entry = Entry {
            refund: name_of(&key),
            key,
            user_id: refund.user_id,
            amount_cents: refund.amount_cents,
            currency: CURRENCY.to_owned(),
            reason: refund.reason.clone(),
            action: warrant.action().to_string(),
            digest: warrant.digest().to_owned(),
            at_ms: now_ms(),
        };
        let path = self.path.clone();
        let signed = warrant.precondition(super::EARLIER).map(str::to_owned);
        let work = move || append(&path, &entry, signed.as_deref());
        let written = tokio::task::spawn_blocking(work).await?;
        match written {
            Ok(entry) => Ok(refund.receipt(entry.refund)),
            Err(Unwritten::Nothing(why)) => Err(EffectError::nothing_happened(why)),
            Err(Unwritten::Unknown(why)) => Err(EffectError::unknown(why)),
        }
    }

    /// What a user was given back so far, for whoever decides about more.
    pub(super) async fn given(&self, user_id: u64) -> Result<Given, ToolError> {
        let path = self.path.clone();
        Ok(tokio::task::spawn_blocking(move || given(&path, user_id)).await??)
    }

    /// Where it is.
    pub(super) fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// The receipt of an attempt, if it has arrived.
    pub(super) async fn look(
        &self,
        attempt: &Attempt<'_, IssueRefund>,
    ) -> Result<Option<Receipt>, ToolError> {
        let (path, key) = (self.path.clone(), attempt.key());
        let found = tokio::task::spawn_blocking(move || find(&path, &key)).await?;
        let refund = &attempt.args;
        match found? {
            Some(entry) if entry.is(refund) => Ok(Some(refund.receipt(entry.refund))),
            Some(entry) => Err(ToolError::new(entry.differs(&self.path))),
            None => Ok(None),
        }
    }
}

impl Entry {
    fn is(&self, refund: &Refund) -> bool {
        self.currency == CURRENCY
            && (self.user_id, self.amount_cents) == (refund.user_id, refund.amount_cents)
            && self.reason == refund.reason
    }

    /// Whether two lines say the same of the world, whenever they were written.
    fn says_what(&self, other: &Entry) -> bool {
        let own = Entry {
            at_ms: other.at_ms,
            ..self.clone()
        };
        own == *other
    }

    fn differs(&self, ledger: &Path) -> String {
        format!(
            "{} has another refund under this key: {} cents to user {}",
            ledger.display(),
            self.amount_cents,
            self.user_id
        )
    }
}

/// What a refund with this key is called.
pub(super) fn name_of(key: &str) -> String {
    format!("R-{}", key.get(..16).unwrap_or(key))
}

/// Appends a line, unless there is one with its key, and gives the line that is there in the end. `signed` is what the
/// user had been given back when the refund was signed: under the ledger's lock it can still be held to that.
pub(super) fn append(path: &Path, entry: &Entry, signed: Option<&str>) -> Result<Entry, Unwritten> {
    let nothing = |error: io::Error| Unwritten::Nothing(format!("{}: {error}", path.display()));
    let unknown = |error: io::Error| Unwritten::Unknown(format!("{}: {error}", path.display()));
    let line = serde_json::to_string(entry).map_err(|error| nothing(error.into()))?;
    let mut opened = Opened::open(path).map_err(nothing)?;
    let read = opened
        .read((Some(&entry.key), Some(entry.user_id)))
        .map_err(nothing)?;
    if let Some(found) = read.found {
        // Whoever wrote it may have died before it was on the disk.
        opened.file.sync_all().map_err(unknown)?;
        return match found.says_what(entry) {
            true => Ok(found),
            false => Err(Unwritten::Nothing(found.differs(path))),
        };
    }
    let given = read.given.to_string();
    if let Some(signed) = signed.filter(|signed| *signed != given) {
        return Err(Unwritten::Nothing(format!(
            "user {} had {signed} when the refund was signed, and has {given} now",
            entry.user_id
        )));
    }
    let mut text = match read.open_end {
        true => "\n".to_owned(),
        false => String::new(),
    };
    text.push_str(&line);
    text.push('\n');
    if read.good + text.len() as u64 > MAX_LEDGER {
        return Err(nothing(too_large()));
    }
    opened.file.set_len(read.good).map_err(nothing)?;
    if let Err(error) = opened.file.write_all(text.as_bytes()) {
        return Err(match opened.file.set_len(read.good) {
            Ok(()) => nothing(error),
            Err(_) => unknown(error),
        });
    }
    opened.file.sync_all().map_err(unknown)?;
    if read.good == 0 {
        sync_folder(&opened.path).map_err(unknown)?;
    }
    Ok(entry.clone())
}

/// The line with this key, if there is one.
fn find(path: &Path, key: &str) -> io::Result<Option<Entry>> {
    match path.try_exists()? {
        true => Ok(Opened::open(path)?.read((Some(key), None))?.found),
        false => Ok(None),
    }
}

/// What a user was given back by the refunds that are there. Nobody is waited for: a line that is just being written is
/// not there yet, and whoever writes looks again under the lock.
pub(super) fn given(path: &Path, user_id: u64) -> io::Result<Given> {
    is_a_file(path)?;
    match File::open(path) {
        Ok(file) => Ok(scan(&file, (None, Some(user_id)))?.given),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Given::default()),
        Err(error) => Err(error),
    }
}

/// What a user was given back so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    refunds: u64,
    cents: u64,
}

impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.refunds {
            1 => write!(f, "1 refund, {}", super::money(self.cents)),
            refunds => write!(f, "{refunds} refunds, {}", super::money(self.cents)),
        }
    }
}

/// A ledger that this process has to itself.
struct Opened {
    file: File,
    /// Where it really is.
    path: PathBuf,
    /// Given back when it is closed, also by a crash.
    _lock: File,
}

/// What is in a ledger.
struct ReadLedger {
    found: Option<Entry>,
    /// To the user that was asked for.
    given: Given,
    /// How many bytes hold whole refunds.
    good: u64,
    /// Whether the last of these has no end of line.
    open_end: bool,
}

impl Opened {
    fn open(path: &Path) -> io::Result<Opened> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let file = private_file(path, true)?;
        // By whatever links it was named, all processes meet at one lock.
        let path = std::fs::canonicalize(path)?;
        let mut lock = path.clone().into_os_string();
        lock.push(".lock");
        let lock = private_file(Path::new(&lock), false)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(LOOK);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process keeps the ledger locked"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(Opened {
            file,
            path,
            _lock: lock,
        })
    }

    /// Reads all of it, looks for a key, and adds up what a user was given.
    fn read(&self, of: (Option<&str>, Option<u64>)) -> io::Result<ReadLedger> {
        scan(&self.file, of)
    }
}

/// Reads all of a ledger, looks for a key, and adds up what a user was given.
fn scan(mut file: &File, (key, user): (Option<&str>, Option<u64>)) -> io::Result<ReadLedger> {
    file.seek(SeekFrom::Start(0))?;
    if file.metadata()?.len() > MAX_LEDGER {
        return Err(too_large());
    }
    let mut reader = BufReader::new(file);
    let mut read = ReadLedger {
        found: None,
        given: Given::default(),
        good: 0,
        open_end: false,
    };
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let length = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)?;
        let whole = line.last() == Some(&b'\n');
        if length == 0 {
            break;
        }
        match serde_json::from_slice::<Entry>(&line) {
            Ok(entry) => {
                if user == Some(entry.user_id) {
                    let given = &mut read.given;
                    given.refunds = given.refunds.saturating_add(1);
                    given.cents = given.cents.saturating_add(entry.amount_cents);
                }
                if read.found.is_none() && key == Some(entry.key.as_str()) {
                    read.found = Some(entry);
                }
            }
            Err(_) if whole && line.trim_ascii().is_empty() => {}
            Err(_) if !whole && reader.fill_buf()?.is_empty() => break,
            Err(error) => {
                let why = format!("line {number} is no refund: {error}");
                return Err(io::Error::other(why));
            }
        }
        read.good += length as u64;
        read.open_end = !whole;
    }
    Ok(read)
}

fn too_large() -> io::Error {
    io::Error::other(format!(
        "the ledger is larger than {MAX_LEDGER} bytes: settle what waits, then begin another"
    ))
}

/// Refuses what is there and is no file: opening a pipe waits for its other end, and a device keeps nothing.
fn is_a_file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::Error::other(
            "no ordinary file is there, and a ledger is one",
        )),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn private_file(path: &Path, append: bool) -> io::Result<File> {
    is_a_file(path)?;
    let mut options = OpenOptions::new();
    options.read(true).create(true);
    match append {
        true => options.append(true),
        false => options.write(true).truncate(false),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Puts the name of a new file on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        #[cfg(unix)]
        Some(folder) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
