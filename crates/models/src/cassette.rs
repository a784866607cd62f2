//! Cassettes: what a model said, written down request by request, and played again without the model.
//!
//! `record:DIR,SPEC` and `replay:DIR` on the command line, and for tests that should see a real model's words
//! without asking it each time. They stand at [`ChatModel`](crate::ChatModel), outside the layer that retries, so
//! that one file is one request with its final answer. A cassette is data only: requests as the model saw them,
//! pieces of answers, typed errors; no key is ever part of a request. The parts: `asked` (what of a request is
//! compared), `entry` (one file), `record`, `replay`.

mod asked;
mod entry;
mod record;
mod replay;

pub use record::Recorder;
pub use replay::Replay;

#[cfg(test)]
mod tests;
