//! The commands on files that people write: agents in TOML.

use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

#[derive(Group, Debug)]
pub(crate) struct CheckArgs {
    /// The agent's file
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Group, Debug)]
pub(crate) struct InitArgs {
    /// The folder; it is made if it is not there
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SchemaCommand {
    /// The JSON Schema of an agent's file
    Agent,
}

#[derive(Group, Debug)]
pub(crate) struct AgentsArgs {
    /// An agent's file to describe instead
    pub(crate) file: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A variable of a prompt and what stands for it.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
