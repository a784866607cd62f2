//! `paraph threads list`.

use super::{ThreadJson, names};
use crate::args::ThreadsListArgs;
use crate::cells::{THREAD_STATUSES, short_time, status, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::Kept;
use crate::suggest::hint;
use crate::terminal::printable_line;
use paraph_graph::{ThreadQuery, ThreadRow};

/// The longest name that is shown in a column, in characters.
const NAME: usize = 60;

pub(super) async fn list(kept: &Kept, args: &ThreadsListArgs) -> Result<u8, Failure> {
    let query = ThreadQuery {
        status: args.status.as_deref().map(wanted).transpose()?,
        graph: args.graph.clone(),
        limit: Some(args.limit),
        offset: args.offset,
        ..ThreadQuery::default()
    };
    let rows = kept.threads.threads(&query).await?;
    if args.json {
        print_json(&rows.iter().map(ThreadJson::of).collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    if rows.is_empty() {
        let all = query
            == ThreadQuery {
                limit: query.limit,
                ..ThreadQuery::default()
            };
        note(match all {
            true => "no threads yet; `paraph run` makes one",
            false => "no thread fits",
        });
        return Ok(FINISHED);
    }
    let mut lines = vec![
        ["NAME", "STATUS", "GRAPH", "UPDATED", "NEXT"]
            .map(str::to_owned)
            .to_vec(),
    ];
    lines.extend(rows.iter().map(line));
    print(&table(&lines))?;
    if rows.len() == args.limit {
        note(&format!(
            "there may be more: --offset {}",
            args.offset + rows.len()
        ));
    }
    Ok(FINISHED)
}

fn wanted(text: &str) -> Result<paraph_graph::ThreadStatus, Failure> {
    status(text).ok_or_else(|| {
        let known = THREAD_STATUSES.map(word);
        let hint = hint(text, known.iter().map(String::as_str));
        Failure::Usage(format!(
            "--status: `{text}` is no status of a thread{hint} (known: {})",
            known.join(", ")
        ))
    })
}

fn line(row: &ThreadRow) -> Vec<String> {
    let graph = row.graph.as_deref().unwrap_or("-");
    vec![
        printable_line(&row.name, NAME),
        word(row.status),
        printable_line(graph, NAME),
        short_time(row.updated_ms),
        printable_line(&names(&row.next), NAME),
    ]
}
