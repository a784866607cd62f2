//! The house rules of this workspace, as functions over its text.
//!
//! `tests/house.rs` runs all of them over the checkout and prints every finding; each module's own tests show that
//! its rules catch a bad sample. Nothing here is shipped, and no other package may depend on it.
//!
//! In reading order:
//! - [`Finding`]: one broken rule, with its place and what to do;
//! - [`tree`]: which files there are, and what kind each one is;
//! - [`rust`]: a Rust file with its comments and strings blanked out, and where its test modules lie;
//! - [`sources`]: rules on one Rust file;
//! - [`pure`]: rules on the step machine, which must stay free of time, chance and input;
//! - [`manifests`]: crate arrows, inherited lints, forbidden dependencies;
//! - [`documents`]: rules on any text file, and on the two documents that must stay true;
//! - [`security`]: that SECURITY.md has each threat, and that the tests it names are there;
//! - [`doors`]: no flag, variable or kind of build that only tests use.

mod finding;

pub mod tree;

pub mod rust;

pub mod sources;

pub mod pure;

pub mod manifests;

pub mod documents;

pub mod security;

pub mod doors;

pub use finding::Finding;
