//! The commands of triage.

use super::{SourceArgs, StoreArgs};
use clap::{Args as Group, Subcommand};

#[derive(Subcommand, Debug)]
pub(crate) enum TriageCommand {
    /// Say which way an issue would go, by which rule and why; nothing is asked of a model, and nothing posted
    #[command(
        after_help = "Example: paraph triage explain https://github.com/OWNER/REPO/issues/1\n\n\
                      Without an address it explains the issue of the rehearsal."
    )]
    Explain(TriageExplainArgs),
    /// Look at several issues, one after the other
    #[command(
        after_help = "Examples:\n  paraph triage batch issues.txt --dry-run\n  paraph triage batch OWNER/REPO --label bug --dry-run\n  \
                      paraph triage batch issues.txt\n\n\
                      A file has the address of an issue on each line; of a repository the open issues are taken. Without --dry-run each issue gets a run of its own, to the\n\
                      point where a person has to decide. Exit codes: 0 if all are done, 5 if any waits for a person, else that\n\
                      of the first that failed."
    )]
    Batch(TriageBatchArgs),
}

#[derive(Group, Debug)]
pub(crate) struct TriageExplainArgs {
    /// The issue's address
    pub(crate) issue: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

#[derive(Group, Debug)]
pub(crate) struct TriageBatchArgs {
    /// A file with the address of an issue on each line (`-` reads standard input), or a repository: OWNER/REPO
    pub(crate) from: String,
    /// Only those that have this label
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Only say which way each would go
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// At most so many issues
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,
    /// The model
    #[arg(long, value_name = "SPEC")]
    pub(crate) model: Option<String>,
    /// Print JSON; with --dry-run only
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
