//! The research agent: what its researchers have read, and reports that cite nothing else.
//!
//! # Layout
//! - `source`: what was fetched, with where and when and the hash of its text.

mod source;

pub use source::{
    Added, Library, Source, SourceKind, SourceVersion, add_sources, annotated, sources_of,
};
