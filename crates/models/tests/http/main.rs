//! Providers over real sockets, against servers that misbehave in every way.
//!
//! `dialects` runs one table of cases on every protocol; `openai` has what is that protocol's alone; `unknown_model`,
//! what is said of a model that is not there. Time limits are tested on a paused clock beside the retry layer; the few
//! real ones here are far shorter than what they interrupt, which never ends.

#![expect(
    clippy::unwrap_used,
    reason = "a stand-in that cannot serve fails its test"
)]

mod dialects;
mod embeddings;
mod openai;
mod protocol;
mod stand_in;
mod unknown_model;
