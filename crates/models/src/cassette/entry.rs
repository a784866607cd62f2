//! One file of a cassette: a request with what was said to it. Reads and writes; called by [`super`] only.
//!
//! The form is versioned and data only. A file that is not exactly of this form is an error that names it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{ChatModel, Chunk, FinishReason, ReasoningDelta, ToolCallDelta};
use crate::error::{Error, ModelError};
use crate::message::Usage;

/// The version of the form that is written and read.
const VERSION: u32 = 1;

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Largest cassette, in bytes: all of it is held in memory.
const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// Most files of a cassette.
const MAX_FILES: usize = 100_000;

/// Most pieces that an answer is kept in; what comes later is joined to the last one that takes it.
const MAX_PIECES: usize = 4096;

/// One request with what was said to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    version: u32,
    /// The model's name.
    pub(super) model: String,
    /// Whether its server enforces schemas, which decides how it is asked.
    pub(super) enforces_schemas: bool,
    /// What was asked, as [`asked`](super::asked::asked) says it.
    pub(super) request: Value,
    /// The attempts that the answer took; 0 where none was given.
    pub(super) attempts: u32,
    pieces: Vec<Piece>,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ModelError>,
}

/// A [`Chunk`] without what is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Piece {
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallPiece>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    unknown_events: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning: Vec<Thought>,
}

/// A [`ReasoningDelta`] without what is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Thought {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redacted: Option<String>,
}

/// A [`ToolCallDelta`] without what is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CallPiece {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    arguments: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Piece {
    /// Every field by name, so that a new one is not forgotten here.
    fn of(chunk: Chunk) -> Self {
        let Chunk {
            text,
            reasoning,
            tool_calls,
            usage,
            finish_reason,
            model,
            provider,
            attempt: _,
            unknown_events,
        } = chunk;
        let thoughts = reasoning.into_iter().map(|delta| {
            let ReasoningDelta {
                index,
                text,
                signature,
                redacted,
            } = delta;
            Thought {
                index,
                text,
                signature,
                redacted,
            }
        });
        let calls = tool_calls.into_iter().map(|delta| {
            let ToolCallDelta {
                index,
                id,
                name,
                arguments,
                signature,
            } = delta;
            CallPiece {
                index,
                id,
                name,
                arguments,
                signature,
            }
        });
        Self {
            text,
            tool_calls: calls.collect(),
            usage,
            finish_reason: finish_reason.map(|reason| reason.as_str().to_owned()),
            model,
            provider,
            unknown_events,
            reasoning: thoughts.collect(),
        }
    }

    fn chunk(self) -> Chunk {
        let calls = self.tool_calls.into_iter().map(|call| ToolCallDelta {
            index: call.index,
            id: call.id,
            name: call.name,
            arguments: call.arguments,
            signature: call.signature,
        });
        let thoughts = self.reasoning.into_iter().map(|thought| ReasoningDelta {
            index: thought.index,
            text: thought.text,
            signature: thought.signature,
            redacted: thought.redacted,
        });
        Chunk {
            text: self.text,
            reasoning: thoughts.collect(),
            tool_calls: calls.collect(),
            usage: self.usage,
            finish_reason: self.finish_reason.as_deref().map(FinishReason::from),
            model: self.model,
            provider: self.provider,
            attempt: 0,
            unknown_events: self.unknown_events,
        }
    }

    /// Whether it is text and nothing else.
    fn is_text(&self) -> bool {
        let text = self.text.clone();
        *self
            == Self {
                text,
                ..Self::default()
            }
    }
}

impl Entry {
    /// A request to which nothing has been said yet.
    pub(super) fn new(model: &impl ChatModel, request: Value) -> Self {
        Self {
            version: VERSION,
            model: model.name().to_owned(),
            enforces_schemas: model.enforces_schemas(),
            request,
            attempts: 0,
            pieces: Vec::new(),
            error: None,
        }
    }

    /// Adds the next piece of the answer.
    pub(super) fn push(&mut self, chunk: &Chunk) {
        self.attempts = self.attempts.max(chunk.attempt).max(1);
        let piece = Piece::of(chunk.clone());
        let full = self.pieces.len() >= MAX_PIECES;
        match self.pieces.last_mut() {
            Some(last) if full && last.is_text() && piece.is_text() => {
                last.text.push_str(&piece.text)
            }
            _ => self.pieces.push(piece),
        }
    }

    /// Ends the answer with a failure. Its attempts count for nothing, as they do where a run keeps count.
    pub(super) fn fail(&mut self, error: &ModelError) {
        self.attempts = 0;
        self.error = Some(error.clone());
    }

    /// The answer as it came, in pieces; the first says how many attempts there were.
    pub(super) fn chunks(&self) -> Vec<Chunk> {
        let mut chunks: Vec<Chunk> = self.pieces.iter().cloned().map(Piece::chunk).collect();
        if let Some(first) = chunks.first_mut() {
            first.attempt = self.attempts;
        }
        chunks
    }

    /// Writes the file of this number, whole or not at all.
    pub(super) fn write(&self, dir: &Path, number: usize) -> Result<(), ModelError> {
        let path = dir.join(file_name(number));
        let refuse = |problem: String| ModelError::Recording {
            message: format!("{}: {problem}", path.display()),
        };
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| refuse(error.to_string()))?;
        text.push(b'\n');
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(refuse(format!("more than {MAX_FILE_BYTES} bytes")));
        }
        let half = path.with_extension("half");
        let written = create(&half)
            .and_then(|mut file| file.write_all(&text))
            .and_then(|()| fs::rename(&half, &path));
        written.map_err(|error| refuse(error.to_string()))
    }
}

/// A new file that only its owner can read: conversations are nobody else's business.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// `0001.json`, so that the order of the names is the order of the requests for a long while.
fn file_name(number: usize) -> String {
    format!("{number:04}.json")
}

/// The files of a cassette by number; other files in its folder are no business of ours.
pub(super) fn files(dir: &Path) -> Result<Vec<(usize, PathBuf)>, Error> {
    let refuse = |error: io::Error| wrong(dir, error.to_string());
    let mut found = Vec::new();
    for file in fs::read_dir(dir).map_err(refuse)? {
        let path = file.map_err(refuse)?.path();
        let number = path.file_name().and_then(|name| name.to_str());
        let number = number.and_then(|name| name.strip_suffix(".json"));
        let digits = |stem: &&str| stem.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = number.filter(digits).and_then(|stem| stem.parse().ok()) else {
            continue;
        };
        if found.len() >= MAX_FILES {
            return Err(wrong(dir, format!("more than {MAX_FILES} requests")));
        }
        found.push((number, path));
    }
    found.sort();
    Ok(found)
}

/// Reads the files of a cassette, in order.
pub(super) fn read_all(files: &[(usize, PathBuf)]) -> Result<Vec<Entry>, Error> {
    let mut bytes = 0_u64;
    let mut entries = Vec::new();
    for (_, path) in files {
        let text = read(path)?;
        bytes = bytes.saturating_add(text.len() as u64);
        if bytes > MAX_BYTES {
            return Err(wrong(
                path,
                format!("the recording is larger than {MAX_BYTES} bytes"),
            ));
        }
        entries.push(parse(&text).map_err(|problem| wrong(path, problem))?);
    }
    Ok(entries)
}

fn read(path: &Path) -> Result<String, Error> {
    let refuse = |error: io::Error| wrong(path, error.to_string());
    if !fs::metadata(path).map_err(refuse)?.is_file() {
        return Err(wrong(path, "no ordinary file".to_owned()));
    }
    let mut text = String::new();
    let mut limited = File::open(path).map_err(refuse)?.take(MAX_FILE_BYTES + 1);
    limited.read_to_string(&mut text).map_err(refuse)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(wrong(path, format!("larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Entry, String> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    // The version first: a later form would be called wrong for the wrong reason.
    let head: Head = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if head.version != VERSION {
        let found = head.version;
        return Err(format!(
            "recorded in version {found}, and version {VERSION} is what can be read"
        ));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(super) fn wrong(path: &Path, problem: impl Into<String>) -> Error {
    Error::Cassette {
        path: path.to_owned(),
        problem: problem.into(),
    }
}

/// How many entries an earlier process of a run had used when so many attempts had been answered.
pub(super) fn place(entries: impl IntoIterator<Item = u32>, attempts: u64) -> usize {
    let mut left = attempts;
    let mut place = 0;
    for (n, took) in entries.into_iter().enumerate() {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(u64::from(took));
        place = n + 1;
    }
    place
}
