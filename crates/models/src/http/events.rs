//! The chunks of an event stream, from the bytes of a response. Called by [`super`] only.

use std::collections::VecDeque;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use reqwest::Response;
use tokio::time::timeout;

use super::halves::Halves;
use super::server::{MAX_BODY_BYTES, broke, check_size};
use super::sse::SseDecoder;
use crate::chat::{Chunk, ChunkStream};
use crate::error::ModelError;

/// How long a whole answer waits for what it cost, from a server that neither says so nor ends the stream.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What the data of one event says.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    /// Pieces of the answer, in their order.
    Chunks(Vec<Chunk>),
    /// The answer is complete.
    Done,
}

impl Event {
    /// One piece.
    pub(crate) fn chunk(chunk: Chunk) -> Self {
        Self::Chunks(vec![chunk])
    }
}

/// Reads the events of one answer; may remember what came before.
pub(crate) trait EventReader: Send {
    /// Reads the data of the next event.
    fn read(&mut self, data: &str) -> Result<Event, ModelError>;
}

struct Reading {
    response: Response,
    decoder: SseDecoder,
    reader: Box<dyn EventReader>,
    ready: VecDeque<Result<Chunk, ModelError>>,
    halves: Halves,
    bytes: usize,
    /// The answer has said how it ended.
    finished: bool,
    closed: bool,
}

/// The chunks of an event stream. It must say how the answer ended: a stream that only breaks off is an error.
pub(super) fn read(response: Response, reader: Box<dyn EventReader>) -> ChunkStream<'static> {
    let reading = Reading {
        response,
        decoder: SseDecoder::default(),
        reader,
        ready: VecDeque::new(),
        halves: Halves::default(),
        bytes: 0,
        finished: false,
        closed: false,
    };
    let next = |mut reading: Reading| async move {
        loop {
            if let Some(chunk) = reading.ready.pop_front() {
                return Ok(Some((chunk?, reading)));
            }
            if reading.closed && !reading.finished {
                return Err(ModelError::Disconnected {
                    message: "the event stream ended before the answer did".to_owned(),
                });
            }
            if reading.closed {
                return Ok(None);
            }
            let bytes = if reading.finished {
                // The answer is whole; how and when its connection ends is no part of it.
                let last = timeout(LAST_WORDS, reading.response.chunk()).await;
                last.ok().and_then(Result::ok).flatten()
            } else {
                let bytes = reading.response.chunk().await;
                bytes.map_err(|error| broke(&error))?
            };
            let events = match bytes {
                Some(bytes) => {
                    reading.bytes = reading.bytes.saturating_add(bytes.len());
                    check_size(reading.bytes, MAX_BODY_BYTES)?;
                    reading.decoder.push(&bytes)
                }
                None => {
                    reading.closed = true;
                    reading.decoder.end()
                }
            };
            reading.take(events);
        }
    };
    stream::try_unfold(reading, next).boxed()
}

impl Reading {
    fn give(&mut self, mut chunk: Chunk) {
        self.halves.join(&mut chunk);
        self.finished |= chunk.finish_reason.is_some();
        self.ready.push_back(Ok(chunk));
    }

    fn take(&mut self, events: Vec<String>) {
        for data in events {
            let data = self.halves.mark(&data);
            match self.reader.read(&data) {
                Ok(Event::Chunks(chunks)) => chunks.into_iter().for_each(|chunk| self.give(chunk)),
                Ok(Event::Done) => {
                    self.finished = true;
                    self.closed = true;
                    return;
                }
                // After what came before it, however the network cut the two.
                Err(error) => {
                    self.ready.push_back(Err(error));
                    return;
                }
            }
        }
    }
}
