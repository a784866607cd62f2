//! The GitHub of the rehearsal: a world of our own writing, and a file of this machine for what is posted there.
//!
//! Behind the same client as the real one, so that a rehearsal goes the same way. The file has one line of JSON for
//! each thing that was written, in the order in which it was; every request reads it anew, and a write has it to
//! itself, so that several processes see one world. A line that a crash cut off is none, and is taken away before the
//! next one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::backend::{Answered, Asked};
use super::heads::Heads;
use super::moment;
use super::world::{Ask, World};
use crate::error::Error;

/// What there is before anything was posted.
const DESCRIBED: &str = include_str!("rehearsal.json");

/// The address of its interface, which nothing is sent to.
pub(super) const API: &str = "https://api.github.test";

/// The host of its issues' pages.
pub(super) const HOST: &str = "github.test";

/// In whose name things are posted.
const VIEWER: &str = "you";

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// It, with its file.
#[derive(Clone)]
pub(super) struct Local {
    path: Arc<PathBuf>,
    described: Arc<Value>,
}

impl Local {
    /// # Errors
    /// [`Error::Config`] for a path that depends on the working directory, and for what is there and no file.
    pub(super) fn new(path: PathBuf) -> Result<Local, Error> {
        let problem = |problem: &str| {
            Error::config(
                "the file of the rehearsal",
                format!("`{}` {problem}", path.display()),
            )
        };
        if !path.is_absolute() || path.file_name().is_none() {
            return Err(problem("is no whole path of a file"));
        }
        if std::fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
            return Err(problem("is no file"));
        }
        let described = serde_json::from_str(DESCRIBED)
            .map_err(|error| problem(&format!("has nothing to begin with: {error}")))?;
        Ok(Local {
            path: Arc::new(path),
            described: Arc::new(described),
        })
    }

    /// Where what is posted goes.
    pub(super) fn place(&self) -> String {
        format!("the rehearsal ({})", self.path.display())
    }

    pub(super) async fn answer(&self, asked: &Asked) -> Result<Answered, Error> {
        let (local, asked) = (self.clone(), asked.clone());
        let failed = |problem: String| Error::Broken {
            host: "the rehearsal".to_owned(),
            problem,
        };
        let answered = tokio::task::spawn_blocking(move || local.done(&asked)).await;
        let answered = answered.map_err(|error| failed(error.to_string()))?;
        answered.map_err(|error| failed(format!("{}: {error}", self.path.display())))
    }

    fn done(&self, asked: &Asked) -> io::Result<Answered> {
        if asked.method == Method::GET {
            let read = match File::open(self.path.as_path()) {
                Ok(mut file) => read(&mut file)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => Written::default(),
                Err(error) => return Err(error),
            };
            return Ok(self.asked(&mut self.world(&read)?, asked));
        }
        let mut file = open(&self.path)?;
        // Given back when it is closed, also by a crash.
        file.lock()?;
        let read = read(&mut file)?;
        let mut world = self.world(&read)?;
        let answered = self.asked(&mut world, asked);
        let new = world.posts().iter().skip(read.posts.len());
        let mut lines = String::new();
        for post in new {
            lines.push_str(&format!("{post}\n"));
        }
        if !lines.is_empty() {
            file.set_len(read.good)?;
            file.seek(SeekFrom::End(0))?;
            file.write_all(lines.as_bytes())?;
            file.sync_all()?;
        }
        Ok(answered)
    }

    fn world(&self, read: &Written) -> io::Result<World> {
        let mut world = World::new(Value::clone(&self.described), API);
        for (at, post) in read.posts.iter().enumerate() {
            if !world.again(post) {
                let why = format!("line {} is nothing that was posted", at + 1);
                return Err(io::Error::other(why));
            }
        }
        Ok(world)
    }

    fn asked(&self, world: &mut World, asked: &Asked) -> Answered {
        let query = asked.url.query().map(|query| format!("?{query}"));
        let target = format!("{}{}", asked.url.path(), query.unwrap_or_default());
        let reply = world.answer(&Ask {
            method: asked.method.as_str(),
            target: &target,
            viewer: Some(VIEWER),
            etag: asked.etag.as_deref(),
            body: asked.body.as_deref().unwrap_or_default(),
            now: &moment::stamp(moment::now()),
        });
        let mut headers = HeaderMap::new();
        for (name, value) in &reply.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.insert(name, value);
            }
        }
        Answered {
            status: reply.status,
            heads: Heads::of(&headers),
            body: match reply.body {
                Value::Null => Vec::new(),
                body => body.to_string().into_bytes(),
            },
        }
    }
}

/// What was posted so far, one object for each thing, the first one first: `kind` (`comment`, `edit` or `labels`) and
/// what was sent.
///
/// # Errors
/// [`Error::Config`] if the file is there and cannot be read.
pub(super) fn posts(path: &Path) -> Result<Vec<Value>, Error> {
    let read = match File::open(path) {
        Ok(mut file) => read(&mut file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Written::default()),
        Err(error) => Err(error),
    };
    let read = read.map_err(|error| {
        Error::config(
            "the file of the rehearsal",
            format!("{}: {error}", path.display()),
        )
    })?;
    Ok(read.posts)
}

/// What a file has.
#[derive(Default)]
struct Written {
    posts: Vec<Value>,
    /// How many bytes hold whole lines.
    good: u64,
}

fn read(file: &mut File) -> io::Result<Written> {
    file.seek(SeekFrom::Start(0))?;
    let mut text = Vec::new();
    let length = file.take(MAX_FILE + 1).read_to_end(&mut text)?;
    if length as u64 > MAX_FILE {
        let why = format!("it is larger than {MAX_FILE} bytes: begin another");
        return Err(io::Error::other(why));
    }
    let mut read = Written::default();
    for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        let post = serde_json::from_slice(line);
        let post = post.map_err(|error| io::Error::other(format!("line {}: {error}", at + 1)))?;
        read.posts.push(post);
        read.good += line.len() as u64;
    }
    Ok(read)
}

/// The file, made with its folder, both private to their owner.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
