//! The policy engine from outside: its tables, its properties, and a naive evaluator that has to agree.
#![allow(
    clippy::unwrap_used,
    reason = "a test says by panicking what went wrong"
)]

mod differential;
mod names;
mod properties;
mod random;
mod reference;
mod tables;

use paraph_gateway::{Level, ToolSpec};

/// A tool as a gateway registers it, which takes any arguments.
fn tool(name: &str, level: Level) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        about: "about".to_owned(),
        schema: serde_json::json!({"type": "object"}),
        level,
    }
}
