//! The research agent: what its researchers have read, and reports that cite nothing else.
//!
//! # Layout
//! - `citation`: the gate: a citation of what was not read does not pass.
//! - `report`: a checked text with its sources and figures, as Markdown, as a page, as JSON.
//! - `source`: what was fetched, with where and when and the hash of its text.

mod citation;
mod report;
mod source;

pub use citation::{
    Checked as CheckedCitations, CitationFigures, Reference, Refused, RefusedKind,
    check as check_citations,
};
pub use report::{Report, ReportFigures, ReportFrame};
pub use source::{
    Added, Library, Source, SourceKind, SourceVersion, add_sources, annotated, sources_of,
};
