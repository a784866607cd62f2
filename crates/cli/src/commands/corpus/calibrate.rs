//! `paraph corpus calibrate`: fits floors, keeps them, and draws what they were fitted on.

use super::describe;
use super::ingest::read;
use crate::args::CorpusCalibrateArgs;
use crate::cells::{now_ms, time};
use crate::config::Config;
use crate::corpus::retriever;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::stores::Kept;
use crate::terminal::{Screen, printable};
use paraph_retrieval::{Calibration, IssueList, IssueRef, Pools, Query, Targets, check_repo, plot};
use std::io::Write as _;
use std::path::Path;

pub(super) async fn calibrate(
    kept: &Kept,
    config: &Config,
    args: &CorpusCalibrateArgs,
) -> Result<u8, Failure> {
    if let Some(path) = &args.output {
        check_output(kept, path)?;
    }
    let foreign = args
        .out_of_corpus
        .as_deref()
        .map(foreign)
        .transpose()?
        .unwrap_or_default();
    let pairs = args
        .pairs
        .as_deref()
        .map(pairs)
        .transpose()?
        .unwrap_or_default();
    let retriever = retriever(config, kept)?;
    let pools = Pools::of(&retriever, &pairs, &foreign, args.most.max(1)).await?;
    let live = Screen::of_stderr(&config.environment).live;
    let told = |done: usize, all: usize| {
        if live && (done.is_multiple_of(10) || done == all) {
            let mut out = std::io::stderr().lock();
            let end = if done == all { "\r\u{1b}[K" } else { "" };
            let _ = write!(out, "\r{done} of {all} queries{end}");
            let _ = out.flush();
        }
    };
    let now = time(now_ms());
    let calibration = paraph_retrieval::calibrate(
        &retriever,
        &pools,
        Targets::default(),
        (now.as_str(), &told),
    )
    .await?;
    kept.opened
        .corpus
        .keep_floors(calibration.floors.clone())
        .await?;
    if let Some(path) = &args.output {
        std::fs::write(path, plot(&calibration)).map_err(|error| super::wrote(path, &error))?;
        note(&printable(&format!("drawn: {}", path.display())));
    }
    match args.json {
        true => print_json(&calibration)?,
        false => print(&printable(&for_people(&calibration)))?,
    }
    Ok(FINISHED)
}

fn check_output(kept: &Kept, path: &Path) -> Result<(), Failure> {
    crate::writing::refuse_own("--output", path, kept.file.as_deref())?;
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    match ending.eq_ignore_ascii_case("svg") {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "--output: {} is no SVG: name a file that ends in .svg",
            path.display()
        ))),
    }
}

fn for_people(calibration: &Calibration) -> String {
    let mut text = String::new();
    for floor in &calibration.floors {
        let how = if floor.lexical {
            "by words"
        } else {
            "by meaning"
        };
        text.push_str(&describe(floor, how));
        text.push('\n');
    }
    for one in &calibration.distributions {
        let at = |share: f64| {
            let place = (share * one.values.len() as f64) as usize;
            let value = one
                .values
                .get(place.min(one.values.len().saturating_sub(1)));
            value.map_or("-".to_owned(), |value| format!("{value:.3}"))
        };
        let how = if one.lexical {
            "by words"
        } else {
            "by meaning"
        };
        text.push_str(&format!(
            "{how}, {}: {} queries, median {}, 90 % below {}, 99 % below {}\n",
            one.pool.words(),
            one.values.len(),
            at(0.5),
            at(0.9),
            at(0.99)
        ));
    }
    for said in &calibration.notes {
        text.push_str(&format!("note: {said}\n"));
    }
    text
}

/// Queries that the corpus has nothing about: issues as lines of JSON, or a text in each line.
fn foreign(path: &Path) -> Result<Vec<String>, Failure> {
    let text = read(path)?;
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.first().is_none_or(|line| !line.starts_with('{')) {
        return Ok(lines.into_iter().map(str::to_owned).collect());
    }
    let list = IssueList::parse(&text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    Ok(list
        .documents()
        .map(|document| Query::of(document).text)
        .collect())
}

/// Two issues in each line.
fn pairs(path: &Path) -> Result<Vec<(IssueRef, IssueRef)>, Failure> {
    let text = read(path)?;
    let mut pairs = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let names: Vec<&str> = line
            .split([' ', ',', '\t'])
            .filter(|name| !name.is_empty())
            .collect();
        match names.as_slice() {
            [] => {}
            [one, other] if issue(one).is_some() && issue(other).is_some() => {
                pairs.extend(issue(one).zip(issue(other)));
            }
            _ => {
                return Err(Failure::Usage(format!(
                    "{}: line {}: write two issues, such as acme/boats#7 acme/boats#9",
                    path.display(),
                    place + 1
                )));
            }
        }
    }
    Ok(pairs)
}

fn issue(name: &str) -> Option<IssueRef> {
    let (repo, number) = name.split_once('#')?;
    check_repo(repo).ok()?;
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    Some(IssueRef::new(repo, number))
}
