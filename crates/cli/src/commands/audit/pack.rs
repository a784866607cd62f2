//! `paraph audit pack` and `paraph audit verify --pack`: the evidence of one action in one file, made and checked.

use super::export::create;
use super::verify::anchors;
use super::{PAGE, page};
use crate::args::AuditPackArgs;
use crate::cells::{count, time, word};
use crate::failure::{BROKEN, FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::patience::{patiently, too_slow};
use crate::stores::Kept;
use crate::terminal::printable;
use crate::writing::refuse_own;
use paraph_gateway::{ActionId, Anchor, ApprovalError, Pack, PackReport, PackStep};
use serde::Serialize;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The largest pack that is read, in bytes.
const LARGEST: u64 = 64 << 20;

pub(super) async fn pack(kept: &Kept, args: &AuditPackArgs) -> Result<u8, Failure> {
    let id: ActionId = args.id.trim().parse().map_err(Failure::usage)?;
    let kept_elsewhere = anchors(&args.anchors)?;
    if let Some(path) = &args.output {
        refuse_own("--output", path, kept.file.as_deref())?;
    }
    let row = kept.desk().show(id).await;
    let row = row.map_err(|error| match error {
        ApprovalError::NoAction(_) => Failure::usage(error),
        error => Failure::Broken(error.to_string()),
    })?;
    let broken = |error: paraph_gateway::PackError| Failure::Broken(error.to_string());
    let mut pack = Pack::of(&row.action.bytes, &row.digest).map_err(broken)?;
    let mut last = 0;
    loop {
        let entries = page(kept, &row.action.said.run.tenant, (last, PAGE)).await?;
        let is_last = entries.len() < PAGE;
        for entry in entries {
            last = entry.seq;
            pack.see(entry).map_err(broken)?;
        }
        if is_last {
            break;
        }
    }
    let text = pack.close(&kept_elsewhere).to_string();
    let Some(path) = &args.output else {
        print(&text)?;
        return Ok(FINISHED);
    };
    let wrong = |error: std::io::Error| Failure::Broken(format!("{}: {error}", path.display()));
    let mut file = create(path)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    file.write_all(b"\n").map_err(wrong)?;
    note(&format!("the evidence of {id} is in {}", path.display()));
    Ok(FINISHED)
}

#[derive(Serialize)]
struct Report<'a> {
    whole: bool,
    why: Option<String>,
    #[serde(flatten)]
    found: Option<Found<'a>>,
}

#[derive(Serialize)]
struct Found<'a> {
    action: String,
    tenant: &'a str,
    digest: &'a str,
    bytes: &'a str,
    state: Option<&'a str>,
    attempts: u64,
    entries: (u64, u64),
    anchor_seq: Option<u64>,
    trusted: bool,
    steps: Vec<StepJson>,
}

#[derive(Serialize)]
struct StepJson {
    seq: u64,
    at: String,
    what: String,
    state: Option<String>,
    erased: bool,
}

/// Checks a pack. No store is needed, nor opened.
pub(super) fn verify(file: &Path, kept_elsewhere: &[PathBuf], json: bool) -> Result<u8, Failure> {
    let trusted: Vec<Anchor> = anchors(kept_elsewhere)?;
    let wrong =
        |error: std::io::Error| Failure::Usage(format!("--pack: {}: {error}", file.display()));
    let named = file.to_owned();
    let read = move || {
        let mut text = String::new();
        let opened = std::fs::File::open(named)?;
        let read = opened.take(LARGEST + 1).read_to_string(&mut text);
        read.map(|_| text)
    };
    let read = patiently(file, read).unwrap_or_else(|| Err(std::io::Error::other(too_slow())));
    let text = read.map_err(wrong)?;
    let checked = Pack::check(text.trim_end(), &trusted);
    match (&checked, json) {
        (_, true) => print_json(&Report {
            whole: checked.is_ok(),
            why: checked.as_ref().err().map(ToString::to_string),
            found: checked.as_ref().ok().map(in_json),
        })?,
        (Ok(report), false) => print(&printable(&in_words(report)))?,
        (Err(error), false) => print(&printable(&format!("BROKEN  {error}")))?,
    }
    Ok(match checked {
        Ok(_) => FINISHED,
        Err(_) => BROKEN,
    })
}

fn in_json(report: &PackReport) -> Found<'_> {
    let step = |step: &PackStep| StepJson {
        seq: step.seq,
        at: time(step.event.at_ms),
        what: word(step.event.kind),
        state: step.event.state.clone(),
        erased: step.erased,
    };
    Found {
        action: report.action.clone(),
        tenant: &report.tenant,
        digest: &report.digest,
        bytes: &report.bytes,
        state: report.state.as_deref(),
        attempts: report.attempts,
        entries: report.entries,
        anchor_seq: report.anchor.as_ref().map(|anchor| anchor.seq),
        trusted: report.trusted,
        steps: report.steps.iter().map(step).collect(),
    }
}

fn in_words(report: &PackReport) -> String {
    let (first, last) = report.entries;
    let mut text = format!(
        "whole: action {} ({}), entries {first} to {last} of the chain of `{}`, {} under approvals of this digest\n\
         digest  {}\nbytes   {}\n",
        report.action,
        report.state.as_deref().unwrap_or("-"),
        report.tenant,
        count(report.attempts, "attempt"),
        report.digest,
        report.bytes,
    );
    for step in &report.steps {
        let state = step.event.state.as_deref().unwrap_or("-");
        let (at, what) = (time(step.event.at_ms), word(step.event.kind));
        let gone = match step.erased {
            true => "  (who and why: erased)",
            false => "",
        };
        text.push_str(&format!("{:>6}  {at}  {what}  {state}{gone}\n", step.seq));
    }
    text.push_str(match (&report.anchor, report.trusted) {
        (Some(_), true) => "it fits an anchor that you have from elsewhere",
        (Some(_), false) => {
            "it fits an anchor that only the pack has, which proves nothing against whoever made the pack (--anchor FILE)"
        }
        (None, _) => "no anchor fits: that the entries are those of the time is not shown (--anchor FILE)",
    });
    text
}
