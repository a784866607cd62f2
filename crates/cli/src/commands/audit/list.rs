//! `paraph audit list`.

use super::page;
use crate::args::AuditListArgs;
use crate::cells::{time, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::pieces::{Raw, raw};
use crate::stores::Kept;
use crate::terminal::printable_line;
use paraph_gateway::{AuditEntry, Event, Field};
use serde::Serialize;
use serde_json::Value;

/// The longest text in a column, in characters.
const CELL: usize = 60;
/// How much of a policy's hash is shown, in characters; `--json` has all of it.
const HASH: usize = 12;
/// The longest detail, in characters.
const DETAIL: usize = 160;

#[derive(Serialize)]
struct EntryJson<'a> {
    seq: u64,
    hash: &'a str,
    prev: &'a str,
    event: Raw,
    detail: Option<Raw>,
}

pub(super) async fn list(kept: &Kept, args: &AuditListArgs) -> Result<u8, Failure> {
    let entries = page(kept, &args.chain.tenant, (args.after, args.limit)).await?;
    if args.json {
        print_json(&entries.iter().map(in_json).collect::<Result<Vec<_>, _>>()?)?;
        return Ok(FINISHED);
    }
    if entries.is_empty() {
        note(match args.after {
            0 => "nothing was audited yet",
            _ => "nothing more",
        });
        return Ok(FINISHED);
    }
    let head = [
        "SEQ",
        "TIME",
        "WHAT",
        "STATE",
        "TOOL",
        "RULE",
        "POLICY",
        "ACTION",
        "WHO AND WHY",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(entries.iter().map(line));
    print(&table(&lines))?;
    if let (true, Some(last)) = (entries.len() == args.limit, entries.last()) {
        note(&format!("there may be more: --after {}", last.seq));
    }
    Ok(FINISHED)
}

fn in_json(entry: &AuditEntry) -> Result<EntryJson<'_>, Failure> {
    let read = |text: &str| {
        let wrong = |why: String| Failure::Broken(format!("audit entry {}: {why}", entry.seq));
        raw(text.as_bytes()).map_err(wrong)
    };
    Ok(EntryJson {
        seq: entry.seq,
        hash: &entry.hash,
        prev: &entry.prev,
        event: read(&entry.event)?,
        detail: entry.detail.as_deref().map(read).transpose()?,
    })
}

fn line(entry: &AuditEntry) -> Vec<String> {
    let seq = entry.seq.to_string();
    // A damaged entry is listed all the same: `verify` says what is wrong with it.
    let Ok(event) = Event::read(&entry.event) else {
        return vec![seq, "-".to_owned(), "unreadable".to_owned()];
    };
    let cell = |text: Option<&String>| match text {
        Some(text) => printable_line(text, CELL),
        None => "-".to_owned(),
    };
    vec![
        seq,
        time(event.at_ms),
        word(event.kind),
        cell(event.state.as_ref()),
        tool(&event, entry.detail.as_deref()),
        rule(&event),
        match event.fields.get("policy") {
            Some(Field::Text(hash)) => printable_line(hash, HASH),
            _ => "-".to_owned(),
        },
        cell(event.action.as_ref()),
        match (&event.detail, &entry.detail) {
            (Some(_), None) => "(erased)".to_owned(),
            (_, detail) => self::detail(detail.as_deref()),
        },
    ]
}

/// The tool, or what a kill switch stops. A name that no tool has stands beside the chain.
fn tool(event: &Event, detail: Option<&str>) -> String {
    let named = event.tool.clone().or(event.scope.clone());
    let named = named.or_else(|| said(detail)?.get("tool")?.as_str().map(str::to_owned));
    match named {
        Some(name) => printable_line(&name, CELL),
        None => "-".to_owned(),
    }
}

/// The rule that decided, and the grant that signed.
fn rule(event: &Event) -> String {
    let text = |name: &str| match event.fields.get(name) {
        Some(Field::Text(text)) => Some(printable_line(text, CELL)),
        _ => None,
    };
    match (text("rule"), text("grant")) {
        (Some(rule), Some(grant)) => format!("{rule}, grant {grant}"),
        (Some(rule), None) => rule,
        (None, Some(grant)) => format!("grant {grant}"),
        (None, None) => "-".to_owned(),
    }
}

/// What stands beside an entry, if it was not erased.
fn said(detail: Option<&str>) -> Option<Value> {
    let value: Value = serde_json::from_str(detail?).ok()?;
    value.get("said").cloned()
}

/// Who it was, and what they said, if that was not erased.
fn detail(detail: Option<&str>) -> String {
    let said = said(detail);
    let text = |name: &str| said.as_ref()?.get(name)?.as_str();
    let words: Vec<_> = ["by", "to", "why", "says"]
        .into_iter()
        .filter_map(text)
        .map(|text| printable_line(text, DETAIL))
        .collect();
    match words.is_empty() {
        true => "-".to_owned(),
        false => words.join(": "),
    }
}
