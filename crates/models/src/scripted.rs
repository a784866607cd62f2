//! [`ScriptedModel`]: a model whose attempts are the lines of a file.
//!
//! `scripted:FILE` on the command line, and a real model for tests. It must not retry or bound its time:
//! [`Retrying`](crate::Retrying) does, as for every model. The lines themselves are read by `scripted/line.rs`.

mod line;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::chat::{ChatModel, ChatRequest, ChunkStream};
use crate::error::{Error, ModelError};
use line::Line;

/// Largest script, in bytes.
const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Largest line of a script, in bytes.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// A model that answers its n-th attempt with the n-th line of a script.
///
/// A line is a JSON object: `{"content": "…" or null, "tool_calls": [{"id", "name", "arguments"}], "usage":
/// {"input_tokens", "output_tokens"}, "delay_ms": n}` or `{"error": {"kind": "timeout"|"connection"|"http",
/// "status": n, "retry_after": s, "message": "…"}, "delay_ms": n}`. `arguments` is an object, or the raw text a model might write.
/// A retry is an attempt too. Parallel callers take lines in the order in which they ask.
///
/// ```
/// use paraph_models::{ChatModel, ChatRequest, Message, ScriptedModel};
/// let model = ScriptedModel::parse("{\"content\": \"one\"}\n{\"content\": \"two\"}\n", "hello.jsonl")?;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let request = ChatRequest::new([Message::human("Count")]);
/// assert_eq!(model.complete(&request).await.unwrap().message.text(), "one");
/// assert_eq!(model.complete(&request).await.unwrap().message.text(), "two");
/// assert_eq!(model.complete(&request).await.unwrap_err().reason(), "llm_error:script_exhausted");
/// # });
/// # Ok::<(), paraph_models::Error>(())
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    lines: Vec<Line>,
    /// Attempts so far, of this process and of those before it.
    attempts: AtomicUsize,
}

impl ScriptedModel {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// [`Error::ScriptFile`] if the file cannot be read, [`Error::ScriptLine`] with the number of the first wrong line.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let refuse = |problem: String| Error::ScriptFile {
            path: path.to_owned(),
            problem,
        };
        let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
        let mut text = String::new();
        let mut limited = file.take(MAX_FILE_BYTES as u64 + 1);
        limited
            .read_to_string(&mut text)
            .map_err(|error| refuse(error.to_string()))?;
        if text.len() > MAX_FILE_BYTES {
            return Err(refuse(format!("larger than {MAX_FILE_BYTES} bytes")));
        }
        Self::parse(&text, path)
    }

    /// Reads a script from text; `path` is what errors and the model's name call it.
    ///
    /// # Errors
    /// [`Error::ScriptLine`] with the number of the first wrong line. Blank lines are wrong except at the end.
    pub fn parse(text: &str, path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
        let lines = text.lines().enumerate().map(|(at, line)| {
            let parsed = if line.len() > MAX_LINE_BYTES {
                Err(format!("longer than {MAX_LINE_BYTES} bytes"))
            } else {
                Line::parse(line)
            };
            parsed.map_err(|problem| Error::ScriptLine {
                path: path.clone(),
                line: at + 1,
                problem,
            })
        });
        Ok(Self {
            lines: lines.collect::<Result<_, _>>()?,
            name: format!("scripted:{}", path.display()),
            attempts: AtomicUsize::new(0),
        })
    }

    /// The same script for a run that has made `attempts` attempts already, perhaps in another process:
    /// the next one takes the line after them.
    #[must_use]
    pub fn start_at(self, attempts: usize) -> Self {
        Self {
            attempts: AtomicUsize::new(attempts),
            ..self
        }
    }

    /// Attempts made so far, [`ScriptedModel::start_at`] included.
    pub fn attempts(&self) -> usize {
        self.attempts.load(Ordering::Relaxed)
    }
}

impl ChatModel for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, _: &'a ChatRequest) -> ChunkStream<'a> {
        let played = async move {
            let at = self.attempts.fetch_add(1, Ordering::Relaxed);
            let line = self.lines.get(at);
            let line = line.ok_or(ModelError::ScriptExhausted { attempt: at + 1 })?;
            if !line.delay.is_zero() {
                tokio::time::sleep(line.delay).await;
            }
            let chunks = line.outcome.clone()?;
            Ok(stream::iter(chunks.into_iter().map(Ok)))
        };
        stream::once(played).try_flatten().boxed()
    }

    fn go_on_after(&self, attempts: u64) {
        // Not so many that counting on would overflow.
        let attempts = usize::try_from(attempts)
            .unwrap_or(usize::MAX)
            .min(usize::MAX / 2);
        self.attempts.store(attempts, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
