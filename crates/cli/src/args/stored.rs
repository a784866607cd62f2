//! The commands on what is stored: threads, runs, and the store itself.

use super::SourceArgs;
use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

/// Which store, and where its settings come from.
#[derive(Group, Debug, Clone, Default)]
pub(crate) struct StoreArgs {
    /// sqlite://PATH, postgres://… or memory:; by default a file in the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// A number of rows. None at all is no list.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a list has at least 1 row".to_owned()),
        Ok(n) => Ok(n),
        Err(error) => Err(format!("{error}")),
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum ThreadsCommand {
    /// List threads, those last written first
    #[command(after_help = "Example: paraph threads list --status interrupted --json")]
    List(ThreadsListArgs),
    /// Show a thread: how it stands, and its state
    #[command(after_help = "Example: paraph threads show case-7 --at 01920000-…")]
    Show(ThreadsShowArgs),
    /// List a thread's checkpoints, the newest first
    #[command(after_help = "Example: paraph threads history case-7 --limit 5")]
    History(HistoryArgs),
    /// Go back to a checkpoint on a new branch, or copy a thread under another name
    #[command(
        after_help = "Examples:\n  paraph threads fork case-7 01920000-…           a new branch of the thread\n  \
                      paraph threads fork case-7 --as case-7b         a copy of it\n  \
                      paraph threads fork case-7 01920000-… --as b    a copy that stands there"
    )]
    Fork(ForkArgs),
    /// Write a thread with all that belongs to it as one JSON file
    #[command(after_help = "Example: paraph threads export case-7 -o case-7.json")]
    Export(ExportArgs),
    /// Read an exported thread into a store
    #[command(
        after_help = "Example: paraph threads import case-7.json --as case-7b --store sqlite://other.db\n\n\
                      An imported thread is the exported one, also under another name: what is due on it goes on\n\
                      where it was, with the answers, results and keys that it had. Actions that wait for people stay where\n\
                      they were proposed: a run that waits for one does not go on elsewhere. (A copy made by `threads fork\n\
                      --as` is another thread: what is due on it begins anew, under keys of its own.)"
    )]
    Import(ImportArgs),
    /// Delete threads with all that belongs to them
    #[command(after_help = "Example: paraph threads delete case-7 case-8 --yes\n\n\
                      A file is cleared of what was deleted when the last program that uses it closes it.\n\
                      Backups, exports and copies keep theirs.")]
    Delete(DeleteArgs),
    /// Delete old checkpoints; a thread on which something is pending is left alone
    #[command(after_help = "Examples:\n  paraph threads prune case-7 --keep 10\n  \
                      paraph threads prune --all --older-than 30d --dry-run")]
    Prune(PruneArgs),
}

#[derive(Group, Debug)]
pub(crate) struct ThreadsListArgs {
    /// Only with this status: idle, busy, interrupted or error
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only those whose last run was of this graph
    #[arg(long, value_name = "NAME")]
    pub(crate) graph: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Leave out so many first
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ThreadsShowArgs {
    /// The thread's name
    pub(crate) name: String,
    /// As it was at this checkpoint
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) at: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct HistoryArgs {
    /// The thread's name
    pub(crate) name: String,
    /// Of this subgraph instead of the graph itself
    #[arg(long, value_name = "NAMESPACE", default_value = "")]
    pub(crate) namespace: String,
    /// Only those older than this checkpoint
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) before: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ForkArgs {
    /// The thread's name
    pub(crate) name: String,
    /// The checkpoint to go back to; `paraph threads history` lists them
    #[arg(required_unless_present = "to")]
    pub(crate) checkpoint: Option<String>,
    /// Copy the thread under this name first, and leave the old one as it is
    #[arg(long = "as", value_name = "NAME", id = "to")]
    pub(crate) to: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ExportArgs {
    /// The thread's name
    pub(crate) name: String,
    /// The file; without it, standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ImportArgs {
    /// The exported file; `-` is standard input
    pub(crate) file: PathBuf,
    /// Under this name instead of its own
    #[arg(long = "as", value_name = "NAME", id = "to")]
    pub(crate) to: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct DeleteArgs {
    /// The threads' names
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct PruneArgs {
    /// The thread's name
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,
    /// All threads
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep the newest N checkpoints of each graph and subgraph
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "older_than",
        conflicts_with = "older_than"
    )]
    pub(crate) keep: Option<usize>,
    /// Delete what is older: 90s, 45m, 12h, 30d or 8w. The newest checkpoint stays
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Only say what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum RunsCommand {
    /// List runs, the newest first
    #[command(after_help = "Example: paraph runs list --thread case-7 --json")]
    List(RunsListArgs),
    /// Show a run: how it stands, and with what it was started
    #[command(after_help = "Example: paraph runs show 01920000-…")]
    Show(RunShowArgs),
    /// Print what was logged, as lines of JSON
    #[command(
        after_help = "Examples:\n  paraph runs events 01920000-…\n  paraph runs events --thread case-7 --follow\n\n\
                      Lines are those of `paraph run --events`, with the place in the thread's log as `seq`. Between\n\
                      them stand the engine's own: `update`, `checkpoint`, `interrupt`. How a run began, was routed and\n\
                      ended is in those and in `paraph runs show`."
    )]
    Events(EventsArgs),
    /// Go on with a run that was interrupted, cancelled or killed
    #[command(
        after_help = "Examples:\n  paraph runs resume 01920000-…\n  paraph runs resume --thread case-7 --json"
    )]
    Resume(ResumeArgs),
    /// Cancel a run, in whatever process it goes on
    #[command(after_help = "Example: paraph runs cancel 01920000-…")]
    Cancel(CancelArgs),
}

#[derive(Group, Debug)]
pub(crate) struct RunsListArgs {
    /// Only on this thread
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Only with this status: pending, running, success, paused, stopped, error or cancelled
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
    pub(crate) limit: usize,
    /// Leave out so many first
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// One run: by its id, or as the newest of a thread.
#[derive(Group, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichRun {
    /// The run's id; `paraph runs list` lists them
    pub(crate) run: Option<String>,
    /// The newest run on this thread
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
}

#[derive(Group, Debug)]
pub(crate) struct RunShowArgs {
    #[command(flatten)]
    pub(crate) which: WhichRun,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// One log: of a run, or of a thread with all its runs.
#[derive(Group, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichLog {
    /// The run's id; `paraph runs list` lists them
    pub(crate) run: Option<String>,
    /// All runs of this thread
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
}

#[derive(Group, Debug)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) which: WhichLog,
    /// Only what comes after this place of the log
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// Go on as the log grows, until the run comes to rest (of a thread: until interrupted)
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Taken for the sake of scripts: there is no other form
    #[arg(long, hide = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) which: WhichRun,
    /// The answer to what the run asks: a text, or JSON. For research: continue, stop, or a new instruction
    #[arg(long, value_name = "TEXT")]
    pub(crate) answer: Option<String>,
    #[command(flatten)]
    pub(crate) printing: super::PrintingArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) which: WhichRun,
    /// Do not wait until the run has ended
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Wait no longer than this
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum StoreCommand {
    /// Bring the store to this version's format; an older one is copied first
    Migrate(StoreJsonArgs),
    /// Read everything and verify it: sums, and what refers to what
    #[command(
        after_help = "Exit code 6 if anything is damaged; each line names thread, checkpoint, channel and row."
    )]
    Check(StoreJsonArgs),
    /// Say how much is stored, per thread and channel
    #[command(after_help = "Example: paraph store stats --thread case-7")]
    Stats(StatsArgs),
    /// Copy the store into a file, while others go on using it
    #[command(after_help = "Example: paraph store backup paraph-monday.db")]
    Backup(BackupArgs),
}

#[derive(Group, Debug)]
pub(crate) struct StoreJsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct StatsArgs {
    /// Only of this thread, with its channels
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct BackupArgs {
    /// The file to write; it must not be there yet
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
