//! [`Recorder`]: another model, with all it says written down. It must not change what is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, StreamExt};

use super::asked::asked;
use super::entry::{Entry, files, place, read_all, wrong};
use crate::chat::{ChatModel, ChatRequest, ChunkStream};
use crate::error::{Error, ModelError};

/// A model whose answers and failures are written into a folder, one file a request, in the order of asking.
///
/// The files are what [`Replay`](crate::Replay) plays. Whole answers are asked for in pieces too, so that there is
/// one form. A request that is dropped before its answer ended leaves no file. If a file cannot be written the call
/// fails with [`ModelError::Recording`]: a recording with a hole would be of no use.
pub struct Recorder<M> {
    model: M,
    dir: PathBuf,
    desk: Arc<Mutex<Desk>>,
}

/// Where the recording stands.
#[derive(Debug)]
struct Desk {
    /// The number of the next request.
    next: usize,
    /// What is in the folder: number, attempts, file.
    kept: Vec<(usize, u32, PathBuf)>,
}

impl<M: ChatModel> Recorder<M> {
    /// Begins a recording in a folder, which is made if there is none.
    ///
    /// # Errors
    /// [`Error::Cassette`] if the folder cannot be used or holds a recording already.
    pub fn begin(dir: impl Into<PathBuf>, model: M) -> Result<Self, Error> {
        let recorder = Self::go_on(dir, model)?;
        let kept = recorder.desk().kept.len();
        match kept {
            0 => Ok(recorder),
            n => Err(wrong(
                &recorder.dir,
                format!(
                    "there is a recording of {n} requests already; name another folder, or remove it"
                ),
            )),
        }
    }

    /// Goes on with the recording of a run that goes on itself: [`ChatModel::go_on_after`] says where. What was
    /// recorded after that place, which the run never saved, is replaced. Without that word it begins anew.
    ///
    /// # Errors
    /// [`Error::Cassette`] if the folder cannot be used, or has a file that is none of a recording.
    pub fn go_on(dir: impl Into<PathBuf>, model: M) -> Result<Self, Error> {
        let dir = dir.into();
        fs::create_dir_all(&dir).map_err(|error| wrong(&dir, error.to_string()))?;
        let files = files(&dir)?;
        let entries = read_all(&files)?;
        let kept = files.into_iter().zip(entries);
        let kept = kept.map(|((number, path), entry)| (number, entry.attempts, path));
        let desk = Desk {
            next: 1,
            kept: kept.collect(),
        };
        Ok(Self {
            model,
            dir,
            desk: Arc::new(Mutex::new(desk)),
        })
    }

    fn desk(&self) -> std::sync::MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a request that is being made, after what stood from there on is gone.
    fn number(&self) -> Result<usize, ModelError> {
        let mut desk = self.desk();
        let next = desk.next;
        while let Some((number, _, path)) = desk.kept.last() {
            if *number >= next {
                fs::remove_file(path).map_err(|error| unwritten(path, &error))?;
            }
            desk.kept.pop();
        }
        desk.next += 1;
        Ok(next)
    }
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> ModelError {
    ModelError::Recording {
        message: format!("{}: {error}", path.display()),
    }
}

/// An answer that is being recorded.
struct Recording<'a> {
    rest: ChunkStream<'a>,
    entry: Entry,
    number: usize,
    dir: PathBuf,
}

impl<'a> Recording<'a> {
    /// The next piece; the file is there before whoever listens hears of the end.
    async fn next(mut self) -> Option<(Result<crate::chat::Chunk, ModelError>, Option<Self>)> {
        match self.rest.next().await {
            Some(Ok(chunk)) => {
                self.entry.push(&chunk);
                Some((Ok(chunk), Some(self)))
            }
            Some(Err(error)) => {
                self.entry.fail(&error);
                let error = self.write().await.err().unwrap_or(error);
                Some((Err(error), None))
            }
            None => {
                let written = self.write().await;
                written.err().map(|error| (Err(error), None))
            }
        }
    }

    async fn write(self) -> Result<(), ModelError> {
        let (entry, dir, number) = (self.entry, self.dir, self.number);
        let path = dir.clone();
        let written = tokio::task::spawn_blocking(move || entry.write(&dir, number)).await;
        written.unwrap_or_else(|error| Err(unwritten(&path, &error)))
    }
}

impl<M: ChatModel> ChatModel for Recorder<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let begun = async move {
            let recording = self.number().map(|number| Recording {
                rest: self.model.stream(request),
                entry: Entry::new(&self.model, asked(request)),
                number,
                dir: self.dir.clone(),
            });
            match recording {
                Ok(recording) => stream::unfold(Some(recording), |recording| async {
                    recording?.next().await
                })
                .boxed(),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(begun).flatten().boxed()
    }

    fn enforces_schemas(&self) -> bool {
        self.model.enforces_schemas()
    }

    fn go_on_after(&self, attempts: u64) {
        self.model.go_on_after(attempts);
        let mut desk = self.desk();
        let took = desk.kept.iter().map(|(_, attempts, _)| *attempts);
        let place = place(took, attempts);
        let last = place.checked_sub(1).and_then(|at| desk.kept.get(at));
        desk.next = last.map_or(1, |(number, ..)| number + 1);
    }
}
