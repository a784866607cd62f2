//! `paraph approvals list --handoffs`: issues that triage left to people, from the results of its runs.

use crate::application::{TRIAGE, reader};
use crate::args::ApprovalsListArgs;
use crate::cells::time;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::started::Started;
use crate::stores::Kept;
use crate::terminal::printable_line;
use paraph_agents::TriageResult;
use paraph_graph::{RunQuery, RunRow, RunStatus};
use serde::Serialize;

/// How many runs are looked at together.
const PAGE: usize = 200;

/// The most hand-overs that are listed, the newest.
const MOST: usize = 500;

/// The longest texts of a column, in characters.
const URL: usize = 80;
const WHY: usize = 160;

/// A hand-over, as it is printed.
#[derive(Serialize)]
struct Listed {
    run: String,
    thread: String,
    at: String,
    #[serde(flatten)]
    result: TriageResult,
}

pub(super) async fn list(kept: &Kept, args: &ApprovalsListArgs) -> Result<u8, Failure> {
    let all = all(kept).await?;
    if args.out.json {
        print_json(&all)?;
        return Ok(FINISHED);
    }
    if all.is_empty() {
        note("triage has handed nothing over yet");
        return Ok(FINISHED);
    }
    let head = ["RUN", "WHEN", "ENDED WITH", "ISSUE", "RELATED", "WHY"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(all.iter().map(|one| {
        let handoff = one.result.handoff.as_ref();
        let related = handoff.map_or(0, |handoff| handoff.related.len());
        let why = handoff.map_or(String::new(), |handoff| handoff.why.join("; "));
        vec![
            one.run.clone(),
            one.at.clone(),
            printable_line(&one.result.stop_reason.to_string(), WHY),
            printable_line(&one.result.issue_url, URL),
            related.to_string(),
            printable_line(&why, WHY),
        ]
    }));
    print(&table(&lines))?;
    note("all of one: paraph runs show RUN --json");
    Ok(FINISHED)
}

async fn all(kept: &Kept) -> Result<Vec<Listed>, Failure> {
    let mut query = RunQuery {
        status: Some(RunStatus::Success),
        limit: Some(PAGE),
        ..RunQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = kept.threads.runs(&query).await?;
        let is_last = page.len() < PAGE;
        query.offset += page.len();
        for row in page.into_iter().filter(|row| row.graph == TRIAGE) {
            if let Some(result) = handed_over(kept, &row).await {
                found.push(Listed {
                    run: row.id.to_string(),
                    thread: row.thread,
                    at: time(row.updated_ms),
                    result,
                });
            }
        }
        if is_last || found.len() >= MOST {
            return Ok(found);
        }
    }
}

/// What a run left to a person; nothing for one that ended otherwise, or whose checkpoints are gone.
async fn handed_over(kept: &Kept, row: &RunRow) -> Option<TriageResult> {
    let agent = reader(kept.stores(), &Started::of(row).ok()?).ok()?;
    let result = agent.result(row.id, &row.thread).await.ok()??;
    result
        .triage()
        .filter(|result| result.handoff.is_some())
        .cloned()
}
