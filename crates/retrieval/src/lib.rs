//! Related issues: a corpus of them in chunks, ranked by words and by meaning, and floors from which on they count.
//!
//! This crate knows no graph, no tool, no database and no tracker: a [`Corpus`] keeps the rows, an [`Embedder`] of
//! `paraph-models` makes the vectors. All ranking is done here, in process and over whatever database: BM25 by words of
//! our own and not the database's, so that the same corpus gives the same answer in SQLite, in Postgres and in memory,
//! that floors mean the same there, and that documents can be kept sealed.
//!
//! # Layout
//! - `document`: issues ([`Document`]). `chunk`: their texts in pieces ([`chunks`], [`Chunk`]).
//! - `words`, `marks`: texts in words, and in identifiers. `bm25`: ranking by words ([`Bm25`]). `vectors`: vectors as they
//!   are kept and compared ([`Vectors`]).
//! - `corpus`: where it is kept ([`Corpus`]); `memory`: in memory ([`MemoryCorpus`]); `conformance`: what all
//!   implementations pass.
//! - `stats`: how much there is ([`CorpusStats`]).
//! - `hit`: [`Query`] and [`Hit`]. `index`: the corpus in memory. `retriever`: [`Retriever`].
//! - `ingest`: from an [`IssueSource`] into a corpus ([`Ingestion`]); `embedding`: the vectors. `list`: issues as lines of
//!   JSON ([`IssueList`]).
//! - `floor`: from what relevance on ([`Floors`]). `calibrate`: fitting that ([`calibrate`]) on [`Pools`], with the bounds
//!   of `interval`; `plot`: what came of it as a picture.
//!
//! [`Embedder`]: paraph_models::Embedder

mod error;

mod document;
mod words;

mod chunk;
mod marks;

mod bm25;
mod vectors;

mod corpus;
mod hit;

mod calibrate;
mod embedding;
mod floor;
mod index;
mod ingest;
mod interval;
mod list;
mod memory;
mod plot;
mod retriever;
mod stats;

pub mod conformance;

pub use bm25::Bm25;
pub use calibrate::{
    Calibration, Distribution, Labelled, Pool, Pools, Targets, calibrate, duplicate_of,
};
pub use chunk::{CHUNK_CHARS, Chunk, TEXT_FORM, chunks};
pub use corpus::{
    Batch, Corpus, CorpusState, Cursor, Identity, Kept, Known, MAX_BATCH, check_batch,
};
pub use document::{Document, IssueRef, IssueState, check_repo};
pub use embedding::identity_of;
pub use error::Error;
pub use floor::{CALIBRATION_MINIMUM, Floor, FloorKind, Floors, Gate};
pub use hit::{DEFAULT_K, Hit, MAX_K, Query};
pub use ingest::{Ingest, Ingestion, IssueSource, Page, PageRequest, Progress, embed_again};
pub use interval::{CONFIDENCE, interval, lower_bound, upper_bound};
pub use list::IssueList;
pub use memory::MemoryCorpus;
pub use plot::plot;
pub use retriever::Retriever;
pub use stats::{CorpusStats, RepoStats};
pub use vectors::Vectors;
pub use words::{wanted, words};
