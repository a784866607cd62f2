//! [`Replay`]: what was recorded, played again. It asks nobody, waits for nothing and changes nothing.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use futures::stream::{self, StreamExt};

use super::asked::{asked, difference};
use super::entry::{Entry, files, place, read_all, wrong};
use crate::chat::{ChatModel, ChatRequest, ChunkStream};
use crate::error::{Error, ModelError};

/// A model that answers as another did when a [`Recorder`](crate::Recorder) wrote it down.
///
/// A request is answered by the first unused file with the same request; so callers beside each other may ask in
/// any order. It counts as the same if the provider would have seen the same: ids of messages, which are drawn anew
/// in each run, do not matter. An error is an error again, without waits. A request that was not recorded is
/// [`ModelError::NotRecorded`], which says what changed, or how many there were.
///
/// It goes by the recorded model's name, so that what depends on a name, such as prices, is the same.
pub struct Replay {
    name: String,
    dir: PathBuf,
    entries: Vec<Entry>,
    used: Mutex<Vec<bool>>,
}

impl Replay {
    /// Reads a recording.
    ///
    /// # Errors
    /// [`Error::Cassette`] if there is none in the folder, or a file of it is not of a form that is known.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let dir = dir.into();
        let files = files(&dir)?;
        let entries = read_all(&files)?;
        let Some(first) = entries.first() else {
            return Err(wrong(
                &dir,
                "there is no recording in it (0001.json, 0002.json, …)",
            ));
        };
        Ok(Self {
            name: first.model.clone(),
            used: Mutex::new(vec![false; entries.len()]),
            dir,
            entries,
        })
    }

    /// The entry that answers; it is used from now on.
    fn take(&self, request: &ChatRequest) -> Result<&Entry, ModelError> {
        let asked = asked(request);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unused = self.entries.iter().enumerate().zip(used.iter_mut());
        let mut expected = None;
        let found = unused.find_map(|((n, entry), used)| {
            if *used {
                return None;
            }
            if entry.request != asked {
                expected.get_or_insert((n, entry));
                return None;
            }
            *used = true;
            Some(entry)
        });
        found.ok_or_else(|| ModelError::NotRecorded {
            message: match expected {
                Some((n, entry)) => format!(
                    "request {} of {} in {} was another: {}",
                    n + 1,
                    self.entries.len(),
                    self.dir.display(),
                    difference(&entry.request, &asked)
                ),
                None => format!(
                    "{} has {} requests, and this is one more",
                    self.dir.display(),
                    self.entries.len()
                ),
            },
        })
    }
}

impl ChatModel for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let played = async move {
            let items: Vec<_> = match self.take(request) {
                Ok(entry) => {
                    let error = entry.error.clone().map(Err);
                    entry.chunks().into_iter().map(Ok).chain(error).collect()
                }
                Err(error) => vec![Err(error)],
            };
            stream::iter(items)
        };
        stream::once(played).flatten().boxed()
    }

    fn enforces_schemas(&self) -> bool {
        self.entries.iter().any(|entry| entry.enforces_schemas)
    }

    fn go_on_after(&self, attempts: u64) {
        let place = place(self.entries.iter().map(|entry| entry.attempts), attempts);
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        for (n, used) in used.iter_mut().enumerate() {
            *used = n < place;
        }
    }
}
