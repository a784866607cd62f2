//! Which files of a folder are read, and what was left out and why.
//!
//! Called once for each folder. Every number is bounded, nothing outside of the folder is opened, and whatever is not
//! read is counted. Here are paths of the machine; none of them gets into a document or a note.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::said::short;

/// How files end that are read.
pub(super) const ENDINGS: [&str; 6] = ["md", "markdown", "txt", "rst", "html", "htm"];

/// The most files that are read.
const MAX_FILES: usize = 10_000;
/// The most bytes of a file.
const MAX_BYTES: u64 = 10_000_000;
/// The most bytes of all files.
const MAX_TOTAL: u64 = 1_000_000_000;
/// How deep folders are entered, the first one not counted.
const MAX_DEPTH: usize = 16;
/// The most entries of folders that are looked at.
const MAX_ENTRIES: usize = 200_000;
/// How many names a note gives.
const MAX_NAMES: usize = 5;

/// Why something was not read. In this order notes are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    Kind,
    Hidden,
    Link,
    Name,
    Path,
    Twice,
    Deep,
    Many,
    Large,
    Full,
    Unreadable,
    Encoding,
    Empty,
}

impl Reason {
    fn words(self) -> &'static str {
        match self {
            Reason::Kind => "files of other kinds",
            Reason::Hidden => "hidden files and folders",
            Reason::Link => "links that leave the folder or lead nowhere",
            Reason::Name => "names that are not UTF-8",
            Reason::Path => "documents without a relative path",
            Reason::Twice => "second documents of one path",
            Reason::Deep => "folders more than 16 deep",
            Reason::Many => "what is more than 10,000 documents or 200,000 entries",
            Reason::Large => "files of more than 10 MB",
            Reason::Full => "files beyond 1 GB in all",
            Reason::Unreadable => "files and folders that cannot be opened",
            Reason::Encoding => "files that are not UTF-8",
            Reason::Empty => "files without text",
        }
    }
}

/// What was left out: how often, and the first names.
#[derive(Debug, Default)]
pub(super) struct LeftOut(BTreeMap<Reason, (usize, Vec<String>)>);

impl LeftOut {
    pub(super) fn add(&mut self, reason: Reason, name: &str) {
        let (count, names) = self.0.entry(reason).or_default();
        *count += 1;
        if names.len() < MAX_NAMES {
            names.push(short(name));
        }
    }

    /// One line for each reason.
    pub(super) fn notes(&self) -> Vec<String> {
        let notes = self.0.iter().map(|(reason, (count, names))| {
            let more = match count - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("not read, {}: {}{more}", reason.words(), names.join(", "))
        });
        notes.collect()
    }
}

/// What is wrong with a folder, which is named as it was given.
pub(super) fn error(dir: &Path, problem: impl Into<String>) -> Error {
    Error::Folder {
        folder: dir.display().to_string(),
        problem: problem.into(),
    }
}

/// The documents of a folder by their paths inside of it, sorted, and what was left out.
pub(super) fn read(dir: &Path) -> Result<(Vec<(String, String)>, LeftOut), Error> {
    let root = fs::canonicalize(dir).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => error(dir, "there is no such folder"),
        _ => error(dir, format!("it cannot be read: {cause}")),
    })?;
    if !root.is_dir() {
        return Err(error(dir, "it is a file and no folder"));
    }
    fs::read_dir(&root).map_err(|cause| error(dir, format!("it cannot be read: {cause}")))?;
    let mut walk = Walk::new(root);
    walk.whole();
    Ok(walk.texts())
}

/// A place of the walk: where it really is, its path inside the folder, and how deep that is.
struct Place {
    real: PathBuf,
    path: String,
    depth: usize,
}

struct Walk {
    root: PathBuf,
    /// Folders that are still to be entered, the next one last.
    ahead: Vec<Place>,
    /// Links, which are followed when all else is known: most lead to what was read by its own name.
    links: Vec<Place>,
    files: Vec<Place>,
    seen: HashSet<PathBuf>,
    entries: usize,
    left_out: LeftOut,
}

impl Walk {
    fn new(root: PathBuf) -> Walk {
        let first = Place {
            real: root.clone(),
            path: String::new(),
            depth: 0,
        };
        Walk {
            seen: HashSet::from([root.clone()]),
            root,
            ahead: vec![first],
            links: Vec::new(),
            files: Vec::new(),
            entries: 0,
            left_out: LeftOut::default(),
        }
    }

    fn whole(&mut self) {
        loop {
            while let Some(place) = self.ahead.pop() {
                self.enter(&place);
            }
            let links = std::mem::take(&mut self.links);
            if links.is_empty() {
                return;
            }
            for link in links {
                self.follow(link);
            }
        }
    }

    fn enter(&mut self, folder: &Place) {
        let Ok(listed) = fs::read_dir(&folder.real) else {
            return self.left_out.add(Reason::Unreadable, &folder.path);
        };
        let room = MAX_ENTRIES.saturating_sub(self.entries);
        let mut entries: Vec<_> = listed.take(room + 1).filter_map(Result::ok).collect();
        if entries.len() > room {
            let name = if folder.path.is_empty() {
                "."
            } else {
                &folder.path
            };
            self.left_out.add(Reason::Many, name);
            entries.truncate(room);
        }
        self.entries += entries.len();
        entries.sort_by_key(fs::DirEntry::file_name);
        let folders_before = self.ahead.len();
        for entry in entries {
            let name = entry.file_name();
            let place = Place {
                real: entry.path(),
                path: joined(&folder.path, &name.to_string_lossy()),
                depth: folder.depth + 1,
            };
            match (name.to_str(), entry.file_type()) {
                (None, _) => self.left_out.add(Reason::Name, &place.path),
                (Some(name), _) if name.starts_with('.') => {
                    self.left_out.add(Reason::Hidden, &place.path)
                }
                (_, Ok(kind)) if kind.is_symlink() => self.links.push(place),
                (_, Ok(kind)) => self.take(place, kind),
                (_, Err(_)) => self.left_out.add(Reason::Unreadable, &place.path),
            }
        }
        // The last one is entered next, so that folders come by their names.
        if let Some(folders) = self.ahead.get_mut(folders_before..) {
            folders.reverse();
        }
    }

    fn follow(&mut self, link: Place) {
        let target = fs::canonicalize(&link.real).ok();
        let Some(target) = target.filter(|target| target.starts_with(&self.root)) else {
            return self.left_out.add(Reason::Link, &link.path);
        };
        match fs::symlink_metadata(&target) {
            Ok(known) if !self.seen.contains(&target) => {
                let real = target;
                self.take(Place { real, ..link }, known.file_type());
            }
            // What it leads to is read by its own name.
            Ok(_) => {}
            Err(_) => self.left_out.add(Reason::Unreadable, &link.path),
        }
    }

    fn take(&mut self, place: Place, kind: fs::FileType) {
        if kind.is_dir() {
            match place.depth > MAX_DEPTH {
                true => self.left_out.add(Reason::Deep, &place.path),
                false => {
                    self.seen.insert(place.real.clone());
                    self.ahead.push(place);
                }
            }
            return;
        }
        let reason = if !kind.is_file() || !is_document(&place.path) {
            Reason::Kind
        } else if self.files.len() >= MAX_FILES {
            Reason::Many
        } else {
            self.seen.insert(place.real.clone());
            return self.files.push(place);
        };
        self.left_out.add(reason, &place.path);
    }

    fn texts(mut self) -> (Vec<(String, String)>, LeftOut) {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut room = MAX_TOTAL;
        let mut texts = Vec::new();
        for Place { real, path, .. } in self.files {
            match text(&real, room) {
                Ok(text) => {
                    room = room.saturating_sub(text.len() as u64);
                    texts.push((path, text));
                }
                Err(reason) => self.left_out.add(reason, &path),
            }
        }
        (texts, self.left_out)
    }
}

/// A path inside the folder, with `/` on every system.
fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

fn is_document(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|own| ENDINGS.iter().any(|known| own.eq_ignore_ascii_case(known)))
}

/// Opens a file that was one a moment ago: not what a link in its place leads to, and without waiting for a writer where a
/// pipe stands in its place.
#[cfg(unix)]
fn open(file: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(file)
}

#[cfg(not(unix))]
fn open(file: &Path) -> io::Result<File> {
    File::open(file)
}

fn text(file: &Path, room: u64) -> Result<String, Reason> {
    let opened = open(file).map_err(|_| Reason::Unreadable)?;
    // It may be another one by now than when the folder was gone through.
    match opened.metadata() {
        Ok(known) if known.is_file() => {}
        _ => return Err(Reason::Kind),
    }
    let mut bytes = Vec::new();
    let mut bounded = opened.take(MAX_BYTES + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(|_| Reason::Unreadable)?;
    let length = bytes.len() as u64;
    if length > MAX_BYTES {
        return Err(Reason::Large);
    }
    if length > room {
        return Err(Reason::Full);
    }
    String::from_utf8(bytes).map_err(|_| Reason::Encoding)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    #[cfg(unix)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_was_put_in_a_document_s_place_is_neither_followed_nor_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let (outside, link, pipe) = (
            place.path().join("outside.md"),
            place.path().join("link.md"),
            place.path().join("pipe.md"),
        );
        fs::write(&outside, "a secret").unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert_eq!(text(&outside, 100).as_deref(), Ok("a secret"));
        assert_eq!(text(&link, 100), Err(Reason::Unreadable));
        assert_eq!(text(&pipe, 100), Err(Reason::Kind));
    }
}
