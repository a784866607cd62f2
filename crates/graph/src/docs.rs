//! The manual: a guide by example, and where this engine differs from LangGraph on purpose.
//!
//! Nothing but text that rustdoc compiles; code must not live here.

#[doc = include_str!("docs/guide.md")]
pub mod guide {}

#[doc = include_str!("docs/differences.md")]
pub mod differences {}
