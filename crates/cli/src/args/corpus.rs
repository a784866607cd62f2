//! The commands on the corpus: the issues that agents may cite.

use super::StoreArgs;
use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum CorpusCommand {
    /// Bring issues of repositories in, or go on where this was ended
    #[command(
        after_help = "Examples:\n  paraph corpus ingest facebook/react vercel/next.js --closed\n  \
                      paraph corpus ingest acme/boats --closed --since 2025-01-01 --limit 2000\n  \
                      paraph corpus ingest --from issues.jsonl\n\n\
                      Without names, those of the setting `corpus.repos`. A line of a file is an issue as JSON: repo,\n\
                      number, title, body, resolution, url, state, updated_at, labels (`paraph corpus export` writes them)."
    )]
    Ingest(CorpusIngestArgs),
    /// Bring in what changed since, in all repositories that are there; for a timer
    #[command(
        after_help = "Examples:\n  paraph corpus refresh\n  paraph corpus refresh --reembed     (after the embedding model was changed)\n\n\
                      Exit codes: 0 done, 2 something has to be put right, 6 GitHub or the store failed; what was brought in\n\
                      until then stays."
    )]
    Refresh(CorpusRefreshArgs),
    /// Find issues like a text
    #[command(after_help = "Example: paraph corpus search \"crash when a file is saved\" --k 5")]
    Search(CorpusSearchArgs),
    /// Show what is there: issues, chunks, ages, floors
    Stats(CorpusStatsArgs),
    /// Fit the floors from which on an issue may be cited, and draw what they were fitted on
    #[command(
        after_help = "Example: paraph corpus calibrate --out-of-corpus other.jsonl --pairs duplicates.txt -o floors.svg\n\n\
                      --out-of-corpus has queries that the corpus has nothing about: issues as lines of JSON, or a text in\n\
                      each line; at least 299 are needed. Without it, issues of each repository are asked of the others.\n\
                      --pairs has two issues in each line, owner/name#7 owner/name#9. Pairs that closing comments name are\n\
                      taken too."
    )]
    Calibrate(CorpusCalibrateArgs),
    /// Write all issues as lines of JSON
    #[command(after_help = "Example: paraph corpus export -o issues.jsonl")]
    Export(CorpusExportArgs),
}

#[derive(Group, Debug)]
pub(crate) struct CorpusIngestArgs {
    /// Repositories, owner/name
    pub(crate) repos: Vec<String>,
    /// Closed issues too, with what maintainers said when they were closed
    #[arg(long)]
    pub(crate) closed: bool,
    /// Only what changed since this day, the first time
    #[arg(long, value_name = "DATE")]
    pub(crate) since: Option<String>,
    /// At most about so many issues of each repository now; the next time goes on behind them
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// From the beginning: issues that are no more are removed
    #[arg(long)]
    pub(crate) anew: bool,
    /// Read them from a file of lines of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CorpusRefreshArgs {
    /// Embed everything again, with the embedding model of the settings
    #[arg(long)]
    pub(crate) reembed: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CorpusSearchArgs {
    /// A few words, or a whole issue with its title in the first line
    pub(crate) text: String,
    /// How many hits
    #[arg(long, value_name = "N", default_value_t = paraph_retrieval::DEFAULT_K)]
    pub(crate) k: usize,
    /// Only in this repository; may be repeated
    #[arg(long, value_name = "OWNER/NAME")]
    pub(crate) repo: Vec<String>,
    /// Only issues that are open
    #[arg(long)]
    pub(crate) open: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CorpusStatsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CorpusCalibrateArgs {
    /// Queries that the corpus has nothing about
    #[arg(long, value_name = "FILE")]
    pub(crate) out_of_corpus: Option<PathBuf>,
    /// Pairs of issues that are the same
    #[arg(long, value_name = "FILE", alias = "queries")]
    pub(crate) pairs: Option<PathBuf>,
    /// At most so many queries of each kind
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) most: usize,
    /// Draw the distributions and the floors here, as SVG
    #[arg(short = 'o', long = "output", value_name = "FILE.svg")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CorpusExportArgs {
    /// Write here instead of to standard output
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
