//! `paraph corpus ingest|refresh`: bringing issues in, with a line of progress, from where it was ended.

use crate::args::{CorpusIngestArgs, CorpusRefreshArgs};
use crate::cells::{count, now_ms, time};
use crate::config::Config;
use crate::corpus::{embedder, repos};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::stores::Kept;
use crate::terminal::{Screen, printable};
use paraph_retrieval::{Ingest, Ingestion, IssueList, IssueSource, Progress, embed_again};
use serde::Serialize;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// The largest file of issues, in bytes.
const MAX_FILE: u64 = 1 << 30;

/// What came of a repository.
#[derive(Serialize)]
struct Done {
    repo: String,
    issues: usize,
    changed: usize,
    removed: usize,
    refused: usize,
    chunks: usize,
    complete: bool,
}

impl Done {
    fn of(repo: &str, progress: &Progress) -> Done {
        Done {
            repo: repo.to_owned(),
            issues: progress.issues,
            changed: progress.changed,
            removed: progress.removed,
            refused: progress.refused,
            chunks: progress.chunks,
            complete: progress.complete,
        }
    }

    fn words(&self) -> String {
        let mut text = format!(
            "{}: {} seen, {} new or changed, {} removed, {}",
            self.repo,
            count(self.issues as u64, "issue"),
            self.changed,
            self.removed,
            count(self.chunks as u64, "chunk")
        );
        if self.refused > 0 {
            text.push_str(&format!(
                "; {} cannot be kept (no title, no time or of another repository)",
                self.refused
            ));
        }
        if !self.complete {
            text.push_str("; there is more: the same command goes on");
        }
        text
    }
}

pub(super) async fn ingest(
    kept: &Kept,
    config: &Config,
    args: &CorpusIngestArgs,
) -> Result<u8, Failure> {
    let since = args.since.as_deref().map(day).transpose()?;
    let (source, known): (Box<dyn IssueSource>, Vec<String>) = match &args.from {
        Some(path) => {
            let list = read_list(path)?;
            let known = list.repos().map(str::to_owned).collect();
            (Box::new(list), known)
        }
        None => (crate::tracker::source(config)?, repos(config)?),
    };
    let wanted = if args.repos.is_empty() {
        known
    } else {
        args.repos.clone()
    };
    if wanted.is_empty() {
        return Err(Failure::Usage(
            "name repositories (owner/name), or set `corpus.repos` in paraph.toml".to_owned(),
        ));
    }
    let tasks = wanted.into_iter().map(|repo| Ingest {
        repo,
        // What a file has is what is wanted.
        closed: args.closed || args.from.is_some(),
        since: since.clone(),
        limit: args.limit,
        anew: args.anew,
    });
    let done = bring_in(kept, config, (&*source, tasks.collect())).await?;
    told(kept, (done.as_slice(), args.json)).await
}

pub(super) async fn refresh(
    kept: &Kept,
    config: &Config,
    args: &CorpusRefreshArgs,
) -> Result<u8, Failure> {
    if args.reembed {
        let line = Line::new(config, "embedding");
        let embedder = embedder(config)?;
        let done = embed_again(&*kept.opened.corpus, embedder.as_deref(), &|progress| {
            line.tell(progress)
        })
        .await?;
        line.end();
        let done = [Done::of("all", &done)];
        return told(kept, (done.as_slice(), args.json)).await;
    }
    let cursors = kept.opened.corpus.cursors().await?;
    if cursors.is_empty() {
        return Err(Failure::Usage(
            "no repository was brought in yet: `paraph corpus ingest owner/name` does it"
                .to_owned(),
        ));
    }
    let tasks = cursors.into_iter().map(|cursor| Ingest {
        closed: cursor.scope == "all",
        repo: cursor.repo,
        since: None,
        limit: None,
        anew: false,
    });
    let source = crate::tracker::source(config)?;
    let done = bring_in(kept, config, (&*source, tasks.collect())).await?;
    told(kept, (done.as_slice(), args.json)).await
}

async fn bring_in(
    kept: &Kept,
    config: &Config,
    (source, tasks): (&dyn IssueSource, Vec<Ingest>),
) -> Result<Vec<Done>, Failure> {
    let embedder = embedder(config)?;
    let mut all = Vec::new();
    for task in tasks {
        let line = Line::new(config, &task.repo);
        let ingestion = Ingestion {
            corpus: &*kept.opened.corpus,
            embedder: embedder.as_deref(),
            source,
            now: &|| time(now_ms()),
            progress: &|progress| line.tell(progress),
        };
        let done = ingestion.run(&task).await;
        line.end();
        all.push(Done::of(&task.repo, &done?));
    }
    Ok(all)
}

/// Says what was done, and whether floors have to be fitted anew.
async fn told(kept: &Kept, (done, json): (&[Done], bool)) -> Result<u8, Failure> {
    match json {
        true => print_json(&done)?,
        false => {
            for done in done {
                print(&printable(&done.words()))?;
            }
        }
    }
    let changed = done.iter().any(|done| done.changed + done.removed > 0);
    if changed && !kept.opened.corpus.floors().await?.is_empty() {
        note(
            "the floors were fitted before this: `paraph corpus calibrate` fits them again, until then nothing passes",
        );
    }
    Ok(FINISHED)
}

/// A line that is written over and over, on a terminal only.
struct Line {
    live: bool,
    name: String,
}

impl Line {
    fn new(config: &Config, name: &str) -> Line {
        Line {
            live: Screen::of_stderr(&config.environment).live,
            name: name.to_owned(),
        }
    }

    fn tell(&self, progress: &Progress) {
        if !self.live {
            return;
        }
        let text = format!(
            "{}: {} issues, {} new or changed, {} chunks",
            self.name, progress.issues, progress.changed, progress.chunks
        );
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r{}\u{1b}[K", printable(&text));
        let _ = out.flush();
    }

    fn end(&self) {
        if self.live {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

/// A day, or a moment, as RFC 3339.
fn day(text: &str) -> Result<String, Failure> {
    let moment = match text.parse::<jiff::civil::Date>() {
        Ok(day) if text.len() == 10 => format!("{day}T00:00:00Z"),
        _ => match text.parse::<jiff::Timestamp>() {
            Ok(moment) => format!("{moment:.0}"),
            Err(_) => {
                return Err(Failure::Usage(format!(
                    "--since: `{text}` is no day like 2026-01-31, and no time like 2026-01-31T12:00:00Z"
                )));
            }
        },
    };
    Ok(moment)
}

/// The issues of a file of lines of JSON.
fn read_list(path: &Path) -> Result<IssueList, Failure> {
    let text = read(path)?;
    IssueList::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// A file's text.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let wrong = |problem: String| Failure::Usage(format!("{}: {problem}", path.display()));
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let mut text = String::new();
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(|error| wrong(error.to_string()))?;
    match text.len() as u64 > MAX_FILE {
        true => Err(wrong(format!("larger than {MAX_FILE} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]
    use super::*;

    #[test]
    fn days_and_times_are_read_and_nothing_else() {
        for (text, read) in [
            ("2026-01-31", Some("2026-01-31T00:00:00Z")),
            ("2026-01-31T12:30:00Z", Some("2026-01-31T12:30:00Z")),
            ("2026-01-31T12:30:00+02:00", Some("2026-01-31T10:30:00Z")),
            ("2026-02-30", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(day(text).ok().as_deref(), read, "{text}");
        }
    }
}
