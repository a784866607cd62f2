//! `paraph threads show`: how a thread stands, and its state, whatever graph it is of.

use super::{ThreadJson, checkpoint, names, row};
use crate::args::ThreadsShowArgs;
use crate::cells::{short_time, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json, table};
use crate::pieces::{Raw, state};
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use paraph_graph::{CheckpointId, Loaded, Metadata, Scope, ThreadRow};
use serde::Serialize;
use std::collections::BTreeMap;

/// The longest value of a channel that is shown on a line, in characters; JSON has all of it.
const VALUE: usize = 400;

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    thread: ThreadJson<'a>,
    /// The checkpoint that the state is of.
    at: Option<At<'a>>,
    values: BTreeMap<String, Raw>,
}

#[derive(Serialize)]
struct At<'a> {
    checkpoint: CheckpointId,
    parent: Option<CheckpointId>,
    created_at: String,
    metadata: &'a Metadata,
}

pub(super) async fn show(kept: &Kept, args: &ThreadsShowArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.name).await?;
    let at = args
        .at
        .as_deref()
        .map(|id| checkpoint(id, "--at"))
        .transpose()?;
    let scope = Scope {
        thread: row.name.as_str().into(),
        namespace: "".into(),
    };
    let loaded = kept.threads.load(&scope, at).await?;
    if let (None, Some(at)) = (&loaded, at) {
        return Err(paraph_graph::Error::UnknownCheckpoint {
            thread: row.name,
            checkpoint: at,
        }
        .into());
    }
    let values = match &loaded {
        None => BTreeMap::new(),
        Some(loaded) => state(loaded).map_err(|why| {
            Failure::Broken(format!(
                "checkpoint {} of thread `{}` cannot be read: {why}",
                loaded.id, row.name
            ))
        })?,
    };
    if args.json {
        let shown = Shown {
            thread: ThreadJson::of(&row),
            at: loaded.as_ref().map(|loaded| At {
                checkpoint: loaded.id,
                parent: loaded.parent,
                created_at: crate::cells::time(loaded.metadata.created_ms),
                metadata: &loaded.metadata,
            }),
            values,
        };
        print_json(&shown)?;
        return Ok(FINISHED);
    }
    print(&in_words(&row, loaded.as_ref(), &values))?;
    Ok(FINISHED)
}

fn in_words(row: &ThreadRow, loaded: Option<&Loaded>, values: &BTreeMap<String, Raw>) -> String {
    let mut lines = vec![
        ("thread", row.name.clone()),
        ("id", row.uuid.to_string()),
        ("status", word(row.status)),
        ("graph", row.graph.clone().unwrap_or_else(|| "-".to_owned())),
        ("created", short_time(row.created_ms)),
        ("updated", short_time(row.updated_ms)),
    ];
    if let Some(holder) = row.holder {
        lines.push(("held by run", holder.to_string()));
    }
    if !row.metadata.is_empty() {
        lines.push((
            "metadata",
            serde_json::Value::Object(row.metadata.clone()).to_string(),
        ));
    }
    if let Some(loaded) = loaded {
        lines.push(("checkpoint", loaded.id.to_string()));
        lines.push(("superstep", loaded.metadata.superstep.to_string()));
        lines.push(("by run", loaded.metadata.run.to_string()));
    }
    if !row.next.is_empty() {
        lines.push(("next", names(&row.next)));
    }
    for question in &row.interrupts {
        lines.push(("asks", format!("{} {}", question.id, question.question)));
    }
    let lines: Vec<_> = lines
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), printable_line(&value, VALUE)])
        .collect();
    let mut text = table(&lines);
    if !values.is_empty() {
        text.push_str("state\n");
    }
    let values: Vec<_> = values
        .iter()
        .map(|(channel, value)| {
            vec![
                format!("  {}", printable(channel)),
                printable_line(value.get(), VALUE),
            ]
        })
        .collect();
    text + &table(&values)
}
