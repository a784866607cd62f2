//! `paraph runs show`: how a run stands, with what it was started, and how it ended.

use super::{RunJson, row, standing};
use crate::application::reader;
use crate::args::RunShowArgs;
use crate::cells::{short_time, word};
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json, table};
use crate::started::Started;
use crate::stores::Kept;
use crate::terminal::printable_line;
use paraph_agents::RunResult;
use paraph_graph::RunRow;
use serde::Serialize;

/// The longest value that is shown on a line, in characters; JSON has all of it.
const VALUE: usize = 400;

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    run: RunJson<'a>,
    /// What came out, if the run is over and was one of this program's agents.
    result: Option<RunResult>,
}

pub(super) async fn show(kept: &Kept, args: &RunShowArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.which).await?;
    let result = result(kept, &row).await?;
    if args.json {
        print_json(&Shown {
            run: RunJson::of(&row, result.as_ref().map(RunResult::stop)),
            result,
        })?;
        return Ok(FINISHED);
    }
    print(&in_words(&row, result.as_ref()))?;
    Ok(FINISHED)
}

/// The result of a run that is over, as far as this program knows its agent.
pub(super) async fn result(kept: &Kept, row: &RunRow) -> Result<Option<RunResult>, Failure> {
    let Ok(started) = Started::of(row) else {
        return Ok(None);
    };
    let Ok(agent) = reader(kept.stores(), &started) else {
        return Ok(None);
    };
    let result = agent.result(row.id, &row.thread).await;
    result.map_err(crate::commands::not_started)
}

fn in_words(row: &RunRow, result: Option<&RunResult>) -> String {
    let mut lines = vec![
        ("run", row.id.to_string()),
        ("thread", row.thread.clone()),
        ("graph", row.graph.clone()),
        ("status", standing(row, result.map(RunResult::stop))),
        ("begun", short_time(row.created_ms)),
        ("updated", short_time(row.updated_ms)),
        ("attempts", row.attempts.to_string()),
    ];
    if let Some(error) = &row.error {
        lines.push(("error", error.clone()));
    }
    if let Some(cancel) = row.cancel {
        let done = match cancel.done_ms {
            Some(done) => format!("ended {}", short_time(done)),
            None => "has not ended yet".to_owned(),
        };
        let wished = short_time(cancel.wished_ms);
        lines.push((
            "cancel",
            format!("{}, wished {wished}, {done}", word(cancel.reason)),
        ));
    }
    if !row.arguments.is_null() {
        lines.push(("arguments", row.arguments.to_string()));
    }
    if let Some(result) = result {
        lines.push(("ended with", result.stop().to_string()));
        if let Some(answer) = result.answer() {
            lines.push(("answer", answer.to_owned()));
        }
    }
    let lines: Vec<_> = lines
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), printable_line(&value, VALUE)])
        .collect();
    table(&lines)
}
