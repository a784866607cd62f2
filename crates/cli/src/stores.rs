//! The store that the settings name, opened: threads, runs and the gateway's records in one database.
//!
//! The only place that names concrete stores. Nothing here shows a password or a key.

mod anchoring;
mod unasking;

use crate::anchors::Anchors;
use crate::config::{Config, Found};
use crate::failure::Failure;
use crate::output::note;
use crate::terminal::printable;
use anchoring::Anchoring;
use paraph_agents::Stores;
use paraph_gateway::{Approvals, BadSealKey, Redaction, Redactor, SealKey};
use paraph_graph::Threads;
use paraph_store::{Error, Opened, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub(crate) use unasking::FORGETS;
use unasking::Unasking;

/// Below so much free space we say that the disk gets short.
pub(crate) const LOW_DISK_MIB: u64 = 1_024;

/// The longest lease that can be asked for, in seconds.
const LONGEST_LEASE: u64 = 3_600;

/// An opened store.
pub(crate) struct Kept {
    pub(crate) threads: Arc<dyn Threads>,
    pub(crate) opened: Opened,
    /// Where it is, as people may see it.
    pub(crate) shown: String,
    /// The flag that has to be repeated to come here again, if one does.
    pub(crate) flag: Option<String>,
    /// The file, if it is one.
    pub(crate) file: Option<PathBuf>,
    /// Below how many free bytes we say that the disk gets short.
    low_disk: u64,
    /// The key under which approvals are proved.
    seal: Option<SealKey>,
    /// What anchors the audit, if the settings name a place.
    anchoring: Option<Arc<Anchoring>>,
}

/// Where it is, without a password.
impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kept").field(&self.shown).finish()
    }
}

impl Kept {
    /// Opens the store of the settings, and makes it if it is not there.
    pub(crate) async fn open(config: &Config) -> Result<Kept, Failure> {
        let found = address(config)?;
        let shown = shown(&found.text);
        let file = file_of(&found.text);
        if let (Some(file), crate::config::Source::Default) = (&file, &found.source) {
            make_data_dir(file)?;
        }
        let low_disk = low_disk(config)?;
        let options = Options {
            key: key(config)?,
            lease: lease(config)?,
            ..Options::default()
        };
        let (seal, anchors) = (seal(config)?, Anchors::of(config)?);
        let mut opened = paraph_store::open(&found.text, options)
            .await
            .map_err(|error| not_opened(config, &found, &error))?;
        let anchoring = anchors.map(|anchors| Anchoring::over(opened.gateway.clone(), anchors));
        if let Some(anchoring) = &anchoring {
            opened.gateway = anchoring.clone();
        }
        if let Some(mode) = file
            .as_deref()
            .and_then(paraph_store::Sqlite::open_to_others)
        {
            note(&printable(&format!(
                "warning: others than its owner may read or write the store's file (mode {mode:04o}); \
                 chmod 600 {} makes it private",
                quoted(&file.as_deref().unwrap_or(Path::new("")).to_string_lossy())
            )));
        }
        Ok(Kept {
            threads: opened.threads.clone(),
            opened,
            flag: flag(&found, &shown),
            shown,
            file,
            low_disk,
            seal,
            anchoring,
        })
    }

    /// Where people decide.
    pub(crate) fn desk(&self) -> Approvals {
        let desk = Approvals::new(self.opened.gateway.clone());
        match &self.seal {
            Some(key) => desk.sealed(key.clone()),
            None => desk,
        }
    }

    /// Waits until an anchor that is due is kept, or could not be: called before the program ends.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + use<> {
        let anchoring = self.anchoring.clone();
        async move {
            if let Some(anchoring) = anchoring {
                anchoring.settled().await;
            }
        }
    }

    /// As agents take it. Where nothing is left when the program has ended, nobody is asked.
    pub(crate) fn stores(&self) -> Stores {
        Stores {
            threads: self.threads.clone(),
            records: match self.lasts() {
                true => self.opened.gateway.clone(),
                false => Arc::new(Unasking(self.opened.gateway.clone())),
            },
            seal: self.seal.clone(),
        }
    }

    /// Whether anything is left when the program has ended.
    pub(crate) fn lasts(&self) -> bool {
        self.shown != "memory:"
    }

    /// Says so if the disk gets short.
    pub(crate) fn warn_of_short_disk(&self) {
        let free = self.file.as_deref().and_then(free_space);
        if let Some(free) = free.filter(|free| *free < self.low_disk) {
            note(&format!(
                "warning: only {} are left on the disk of {}; `paraph threads prune` and `paraph store stats` help",
                crate::cells::bytes(free),
                printable(&self.shown)
            ));
        }
    }
}

/// The address of the settings, if it is of a kind that there is.
pub(crate) fn address(config: &Config) -> Result<Found, Failure> {
    let found = config.store()?;
    match mistaken(&found.text) {
        None => Ok(found),
        Some(why) => Err(found.wrong("store", why)),
    }
}

/// What to say where the settings name a file that is not there.
pub(crate) fn missing(config: &Config) -> Result<Option<String>, Failure> {
    let url = address(config)?.text;
    let missing = file_of(&url).is_some_and(|file| matches!(file.try_exists(), Ok(false)));
    Ok(missing.then(|| format!("there is no store at {} yet", shown(&url))))
}

/// What is wrong with an address, before anybody goes there.
fn mistaken(url: &str) -> Option<String> {
    const KINDS: &str = "there are sqlite://PATH, postgres://… and memory:";
    match url.split_once(':') {
        Some(("memory", "")) | Some(("postgres" | "postgresql", _)) => None,
        Some(("sqlite", path)) => not_a_path(path).map(str::to_owned),
        // Words of other programs for a server may have a password among them.
        _ if url
            .split(':')
            .next()
            .is_some_and(|head| head.contains(['=', '@'])) =>
        {
            Some(format!("that is no address of a store; {KINDS}"))
        }
        // Whatever stands behind the colon may be secret.
        Some((scheme, rest)) if rest.starts_with("//") || !scheme.contains(['/', '.']) => {
            Some(format!("`{scheme}:` is no kind of store; {KINDS}"))
        }
        _ if url.contains(['/', '\\', '.']) => {
            Some(format!("`{url}` is a path; did you mean sqlite://{url}?"))
        }
        _ => Some(format!("`{url}` is no kind of store; {KINDS}")),
    }
}

/// What other programs would understand, and what would be a file of a strange name here.
fn not_a_path(path: &str) -> Option<&'static str> {
    let path = path.strip_prefix("//").unwrap_or(path);
    match path {
        _ if path.trim_start_matches('/').is_empty() => Some("a path stands behind sqlite://"),
        _ if path.starts_with(":memory:") => Some("a store in memory is called memory:"),
        _ if path.starts_with('~') => {
            Some("`~` is not replaced here: write the folder in full, as in sqlite:///home/me/x.db")
        }
        _ if path.contains('?') => Some("a path takes no options behind a `?`"),
        _ => None,
    }
}

/// The bytes that are left on the disk of this file; nothing if the system does not say.
pub(crate) fn free_space(file: &Path) -> Option<u64> {
    let dir = file.ancestors().skip(1).find(|dir| dir.is_dir());
    fs4::available_space(dir.unwrap_or(Path::new("."))).ok()
}

/// Below how many free bytes we say that the disk gets short.
fn low_disk(config: &Config) -> Result<u64, Failure> {
    const KEY: &str = "low_disk_mib";
    let Some(found) = config.get(KEY)? else {
        return Ok(LOW_DISK_MIB << 20);
    };
    match found.text.parse::<u64>() {
        Ok(mib) => Ok(mib.saturating_mul(1 << 20)),
        Err(_) => Err(found.wrong(
            KEY,
            format!("`{}` is no number of mebibytes; 0 never warns", found.text),
        )),
    }
}

/// The key of the settings, if there is one. No mistake repeats any of it.
pub(crate) fn key(config: &Config) -> Result<Option<paraph_store::Seal>, Failure> {
    let Some(found) = config.get("encryption_key")? else {
        return Ok(None);
    };
    let key = found.text.parse();
    key.map(Some)
        .map_err(|error: paraph_store::BadKey| found.wrong("encryption_key", error))
}

/// The key under which approvals are proved, if there is one. No mistake repeats any of it.
pub(crate) fn seal(config: &Config) -> Result<Option<SealKey>, Failure> {
    const KEY: &str = "seal_key";
    const OLD: &str = "seal_key_old";
    let old = config.get(OLD)?;
    let Some(found) = config.get(KEY)? else {
        // To prove nothing any more is another thing than to prove by a new key.
        return match old {
            Some(old) => Err(old.wrong(
                OLD,
                "it stands beside a new key, and PARAPH_SEAL_KEY is not set",
            )),
            None => Ok(None),
        };
    };
    let read = |found: &Found, name: &str| {
        let key = found.text.parse::<SealKey>();
        key.map_err(|error: BadSealKey| found.wrong(name, error))
    };
    let key = read(&found, KEY)?;
    Ok(Some(match old {
        Some(old) => key.after(read(&old, OLD)?),
        None => key,
    }))
}

/// How long a thread stays a process's own after the last sign of it.
pub(crate) fn lease(config: &Config) -> Result<Duration, Failure> {
    const KEY: &str = "lease_seconds";
    let Some(found) = config.get(KEY)? else {
        return Ok(Options::default().lease);
    };
    match found.text.parse() {
        Ok(seconds @ 1..=LONGEST_LEASE) => Ok(Duration::from_secs(seconds)),
        _ => {
            let why = format!(
                "`{}` is no number of seconds from 1 to {LONGEST_LEASE}",
                found.text
            );
            Err(found.wrong(KEY, why))
        }
    }
}

fn not_opened(config: &Config, found: &Found, error: &Error) -> Failure {
    match error {
        Error::Url { .. } => found.wrong("store", error),
        Error::Key(_) => match config.get("encryption_key") {
            Ok(Some(key)) => key.wrong(
                "encryption_key",
                format!("{error} ({})", shown(&found.text)),
            ),
            _ => Failure::Usage(format!("{error} ({})", shown(&found.text))),
        },
        _ => Failure::Broken(error.to_string()),
    }
}

/// An address without a password in it.
pub(crate) fn shown(url: &str) -> String {
    Redactor::new(&Redaction::default()).text(url)
}

/// The file of a store in one.
pub(crate) fn file_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// What a later command needs to find the same store. What variables and files say, it finds by itself.
fn flag(found: &Found, shown: &str) -> Option<String> {
    let named = matches!(found.source, crate::config::Source::Flag(_));
    named.then(|| format!(" --store {}", quoted(shown)))
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The folder of the default store, for its owner only.
fn make_data_dir(file: &Path) -> Result<(), Failure> {
    let Some(dir) = file.parent().filter(|dir| !dir.exists()) else {
        return Ok(());
    };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(dir)
        .map_err(|error| Failure::Broken(format!("{}: {error}", dir.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        let table = [
            ("sqlite:///a b/c.db", "sqlite:///a b/c.db"),
            ("memory:", "memory:"),
        ];
        for (url, expected) in table {
            assert_eq!(shown(url), expected);
        }
        for url in [
            "postgres://me:hunter2@db/x",
            "postgres://db/x?user=me&password=hunter2",
        ] {
            assert!(!shown(url).contains("hunter2"), "{}", shown(url));
        }
    }

    #[test]
    fn addresses_that_are_none_are_explained_without_a_secret() {
        let table = [
            ("memory:", None),
            ("sqlite://x.db", None),
            ("sqlite:///a/x.db", None),
            ("postgres://me:pw@h/d", None),
            ("sqlite://", Some("a path stands behind")),
            ("sqlite://:memory:", Some("is called memory:")),
            ("sqlite://~/x.db", Some("`~` is not replaced")),
            ("sqlite://x.db?mode=ro", Some("no options behind a `?`")),
            (
                "host=127.0.0.1 password=hunter2 port=1",
                Some("that is no address of a store"),
            ),
            ("password=hunter2", Some("that is no address of a store")),
            ("host=h password=hunter2:x", Some("that is no address")),
            ("me@hunter2/x", Some("that is no address of a store")),
            ("./x.db", Some("did you mean sqlite://./x.db?")),
            ("floppy", Some("`floppy` is no kind of store")),
            (
                "mysql://me:hunter2@h/d",
                Some("`mysql:` is no kind of store"),
            ),
            ("memory:x", Some("`memory:` is no kind of store")),
            ("", Some("`` is no kind")),
        ];
        for (url, expected) in table {
            let why = mistaken(url);
            let fits = match (&why, expected) {
                (Some(why), Some(expected)) => why.contains(expected) && !why.contains("hunter2"),
                (why, expected) => why.is_none() && expected.is_none(),
            };
            assert!(fits, "{url}: {why:?}");
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_part_them() {
        let table = [
            ("case-7", "case-7"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ];
        for (word, expected) in table {
            assert_eq!(quoted(word), expected);
        }
    }
}
