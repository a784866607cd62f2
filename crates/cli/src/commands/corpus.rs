//! `paraph corpus …`: the issues that agents may cite, brought in, searched, measured and written out.

mod calibrate;
mod ingest;

use super::{config_of, opened};
use crate::args::{CorpusCommand, CorpusExportArgs, CorpusSearchArgs, CorpusStatsArgs, StoreArgs};
use crate::config::Config;
use crate::corpus::retriever;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::{Kept, missing};
use crate::terminal::{printable, printable_line};
use paraph_retrieval::{
    Corpus, CorpusStats, Floor, FloorKind, Floors, Gate, Hit, MAX_BATCH, Query,
};
use serde::Serialize;
use std::path::Path;

/// How much of a hit's text is shown to people, in characters.
const SHOWN: usize = 240;

/// What to do where there is nothing.
const HINT: &str = "`paraph corpus ingest owner/name` brings issues in";

pub(super) fn run(command: &CorpusCommand) -> Result<u8, Failure> {
    match command {
        CorpusCommand::Ingest(args) => opened(config_of(&args.store)?, async |kept, config| {
            ingest::ingest(&kept, &config, args).await
        }),
        CorpusCommand::Refresh(args) => on_corpus(&args.store, async |kept, config| {
            ingest::refresh(&kept, &config, args).await
        }),
        CorpusCommand::Search(args) => on_corpus(&args.store, async |kept, config| {
            search(&kept, &config, args).await
        }),
        CorpusCommand::Stats(args) => on_corpus(&args.store, async |kept, config| {
            stats(&kept, &config, args).await
        }),
        CorpusCommand::Calibrate(args) => on_corpus(&args.store, async |kept, config| {
            calibrate::calibrate(&kept, &config, args).await
        }),
        CorpusCommand::Export(args) => {
            on_corpus(&args.store, async |kept, _| export(&kept, args).await)
        }
    }
}

/// Opens the store of the settings for a command that works on what is there: it makes none.
fn on_corpus(
    args: &StoreArgs,
    work: impl AsyncFnOnce(Kept, Config) -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    let config = config_of(args)?;
    match missing(&config)? {
        Some(missing) => Err(Failure::Usage(format!("{missing}; {HINT}"))),
        None => opened(config, work),
    }
}

#[derive(Serialize)]
struct HitJson<'a> {
    relevance: f64,
    #[serde(flatten)]
    hit: &'a Hit,
    /// Whether it lies above the floor from which on it may be cited; null if there is no floor that fits.
    citable: Option<bool>,
    /// What the gate says, in words.
    gate: String,
}

async fn search(kept: &Kept, config: &Config, args: &CorpusSearchArgs) -> Result<u8, Failure> {
    let retriever = retriever(config, kept)?;
    if kept.opened.corpus.state().await?.documents == 0 {
        return Err(Failure::Usage(format!("the corpus is empty; {HINT}")));
    }
    let query = Query {
        k: args.k,
        repos: (!args.repo.is_empty()).then(|| args.repo.clone()),
        open_only: args.open,
        ..Query::new(args.text.as_str())
    };
    let hits = retriever.search(&query).await?;
    let floors = retriever.floors().await?;
    let hits: Vec<HitJson<'_>> = hits
        .iter()
        .map(|hit| {
            let (citable, gate) = judged(&floors, hit);
            HitJson {
                relevance: hit.relevance(),
                hit,
                citable,
                gate,
            }
        })
        .collect();
    if args.json {
        print_json(&hits)?;
        return Ok(FINISHED);
    }
    if hits.is_empty() {
        note("nothing of the corpus shares a word with it");
    }
    for (place, shown) in hits.iter().enumerate() {
        print(&printable(&for_people(place + 1, shown)))?;
    }
    Ok(FINISHED)
}

fn for_people(place: usize, shown: &HitJson<'_>) -> String {
    let chunk = &shown.hit.chunk;
    let state = if chunk.closed { "closed" } else { "open" };
    format!(
        "{place}. {}#{} ({state})  {}\n   relevance {:.3}, {}\n   {}\n   {}\n",
        chunk.repo,
        chunk.number,
        chunk.title,
        shown.relevance,
        shown.gate,
        chunk.url,
        printable_line(&chunk.text, SHOWN)
    )
}

/// Whether a hit may be cited, and why or why not.
fn judged(floors: &Floors, hit: &Hit) -> (Option<bool>, String) {
    match floors.gate(FloorKind::Topical, hit) {
        Ok(Gate::Above { by }) => (Some(true), format!("above the topical floor by {by:.3}")),
        Ok(Gate::Below { by }) => (Some(false), format!("below the topical floor by {by:.3}")),
        Ok(Gate::Lacking { what }) => (Some(false), format!("lacks {what}")),
        Ok(Gate::NoFloor { why }) => (None, format!("no floor: {why}")),
        Err(error) => (None, error.to_string()),
    }
}

#[derive(Serialize)]
struct StatsJson<'a> {
    #[serde(flatten)]
    stats: &'a CorpusStats,
    floors: &'a [Floor],
}

async fn stats(kept: &Kept, config: &Config, args: &CorpusStatsArgs) -> Result<u8, Failure> {
    let stats = CorpusStats::of(&*kept.opened.corpus).await?;
    let floors = kept.opened.corpus.floors().await?;
    if args.json {
        print_json(&StatsJson {
            stats: &stats,
            floors: &floors,
        })?;
        return Ok(FINISHED);
    }
    if stats.issues() == 0 {
        note(&format!("the corpus is empty; {HINT}"));
        return Ok(FINISHED);
    }
    let head = ["REPOSITORY", "ISSUES", "CLOSED", "CHUNKS", "NEWEST", "READ"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for repo in &stats.repos {
        let read = match (&repo.read_at, repo.unfinished) {
            (_, true) => "unfinished: ingest again to go on".to_owned(),
            (Some(at), false) => age(at),
            (None, false) => "-".to_owned(),
        };
        rows.push(vec![
            repo.repo.clone(),
            repo.issues.to_string(),
            repo.closed.to_string(),
            repo.chunks.to_string(),
            repo.newest
                .as_deref()
                .and_then(|at| at.get(..10))
                .unwrap_or("-")
                .to_owned(),
            read,
        ]);
    }
    let mut text = table(&rows);
    if let Some(identity) = &stats.identity {
        text.push_str(&format!("made with {identity}\n"));
    }
    let bare: u64 = stats.repos.iter().map(|repo| repo.unembedded).sum();
    if bare > 0 {
        text.push_str(&format!(
            "{bare} issues are not embedded: `paraph corpus refresh --reembed` does it\n"
        ));
    }
    // An embedder that cannot be made must not hide what is there.
    let floors = match retriever(config, kept) {
        Ok(retriever) => retriever.floors().await?,
        Err(_) => {
            paraph_retrieval::Retriever::new(kept.opened.corpus.clone(), None)
                .floors()
                .await?
        }
    };
    for line in floor_lines(&floors) {
        text.push_str(&line);
        text.push('\n');
    }
    print(&printable(&text))?;
    Ok(FINISHED)
}

/// How long ago, in days.
fn age(at: &str) -> String {
    let day = at.get(..10).unwrap_or(at);
    let Ok(then) = at.parse::<jiff::Timestamp>() else {
        return day.to_owned();
    };
    let hours = jiff::Timestamp::now().duration_since(then).as_hours();
    match hours / 24 {
        days @ 2.. => format!("{day}, {days} days ago"),
        1 => format!("{day}, a day ago"),
        _ => format!("{day}, today"),
    }
}

/// One line for each floor.
fn floor_lines(floors: &Floors) -> Vec<String> {
    let mut lines = Vec::new();
    for lexical in [false, true] {
        for kind in [FloorKind::Topical, FloorKind::Duplicate] {
            let how = if lexical { "by words" } else { "by meaning" };
            let fitted = floors
                .floors
                .iter()
                .any(|floor| floor.kind == kind && floor.lexical == lexical);
            if !fitted {
                continue;
            }
            lines.push(match floors.floor(kind, lexical) {
                Ok(Ok(floor)) => describe(floor, how),
                Ok(Err(why)) => format!("{kind} floor {how}: none, {why}"),
                Err(error) => format!("{kind} floor {how}: {error}"),
            });
        }
    }
    if lines.is_empty() {
        lines.push(
            "no floors: `paraph corpus calibrate` fits them; without one nothing is cited"
                .to_owned(),
        );
    }
    lines
}

/// A floor as it was fitted.
pub(super) fn describe(floor: &Floor, how: &str) -> String {
    let Some(value) = floor.value else {
        let why = floor.why.as_deref().unwrap_or("no value keeps the target");
        return format!("{} floor {how}: none, {why}", floor.kind);
    };
    let kept = match floor.kind {
        FloorKind::Topical => format!(
            "{} of {} foreign queries pass (95 % bound {:.2} %), {:.0} % of known pairs or own issues lie above",
            floor.passed,
            floor.n,
            100.0 * floor.bound,
            100.0 * floor.coverage
        ),
        FloorKind::Duplicate => format!(
            "{} of {} pass, right with a 95 % bound of {:.0} %, {:.0} % of duplicates are found; margin {}",
            floor.passed,
            floor.n,
            100.0 * floor.bound,
            100.0 * floor.coverage,
            floor.margin
        ),
    };
    format!("{} floor {how}: {value:.4}; {kept}", floor.kind)
}

async fn export(kept: &Kept, args: &CorpusExportArgs) -> Result<u8, Failure> {
    let corpus = &*kept.opened.corpus;
    let Some(path) = &args.output else {
        let out = std::io::stdout();
        written(corpus, out.lock()).await??;
        return Ok(FINISHED);
    };
    crate::writing::refuse_own("--output", path, kept.file.as_deref())?;
    let wrong = |error: std::io::Error| wrote(path, &error);
    let file = std::fs::File::create(path).map_err(wrong)?;
    let count = written(corpus, std::io::BufWriter::new(file))
        .await?
        .map_err(wrong)?;
    note(&printable(&format!(
        "{count} issues were written to {}",
        path.display()
    )));
    Ok(FINISHED)
}

/// That a file cannot be written.
pub(super) fn wrote(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("--output: {}: {error}", path.display()))
}

async fn written(
    corpus: &dyn Corpus,
    mut out: impl std::io::Write,
) -> Result<std::io::Result<u64>, Failure> {
    let (mut count, mut after) = (0, None);
    loop {
        let page = corpus.page(after.as_ref(), MAX_BATCH).await?;
        let Some(last) = page.last() else {
            return Ok(out.flush().map(|()| count));
        };
        after = Some(last.document.id());
        for kept in page {
            let line = serde_json::to_string(&kept.document)?;
            if let Err(error) = writeln!(out, "{line}") {
                return Ok(Err(error));
            }
            count += 1;
        }
    }
}
