//! `paraph runs events`: the log of a run or a thread, as lines of JSON.

use super::by_id;
use crate::args::EventsArgs;
use crate::cells::time;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print};
use crate::pieces::{Raw, raw};
use crate::stores::Kept;
use crate::terminal::printable_json;
use paraph_graph::{LogQuery, Logged, RunId};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a run whose log does not grow is looked at.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn events(kept: &Kept, args: &EventsArgs) -> Result<u8, Failure> {
    let (thread, run) = match (&args.which.run, &args.which.thread) {
        (Some(id), _) => {
            let row = by_id(kept, id).await?;
            (row.thread, Some(row.id))
        }
        (None, Some(thread)) => (
            crate::commands::threads::row(kept, thread).await?.name,
            None,
        ),
        (None, None) => return Err(Failure::usage("a run's id, or --thread NAME")),
    };
    let mut query = LogQuery {
        after: args.after,
        run,
        ..LogQuery::default()
    };
    let mut any = false;
    loop {
        // Looked at first: what the run logged before it came to rest is read after that.
        let rests = rests(kept, run).await?;
        let page = kept.threads.events(&thread, &query).await?;
        for entry in &page {
            print(&line(entry)?)?;
        }
        any |= !page.is_empty();
        match page.last() {
            Some(last) => query.after = last.seq,
            None if !args.follow || rests => break,
            None => {
                // A dead process logs nothing more, and nobody says so.
                let grown = kept.threads.grown(&thread, query.after);
                if let Ok(grown) = tokio::time::timeout(LOOK, grown).await {
                    grown?;
                }
            }
        }
    }
    if !any {
        note("nothing was logged");
    }
    Ok(FINISHED)
}

/// Whether nothing more is to come; never, of a whole thread.
async fn rests(kept: &Kept, run: Option<RunId>) -> Result<bool, Failure> {
    let Some(run) = run else { return Ok(false) };
    let row = kept.threads.run(run).await?;
    Ok(row.is_none_or(|row| row.status.rests() || !row.live))
}

/// The event as it was logged, with its place and its time.
fn line(entry: &Logged) -> Result<String, Failure> {
    let damaged = |why: String| Failure::Broken(format!("event {}: {why}", entry.seq));
    let event: BTreeMap<String, Raw> = serde_json::from_str(&entry.json)
        .map_err(|error| damaged(format!("it is no object: {error}")))?;
    let mut parts = vec![
        format!("\"seq\":{}", entry.seq),
        format!("\"time\":\"{}\"", time(entry.created_ms)),
        format!("\"run_id\":\"{}\"", entry.run),
    ];
    for (key, value) in &event {
        if !["seq", "time", "run_id"].contains(&key.as_str()) {
            parts.push(format!("{}:{}", serde_json::to_string(key)?, value.get()));
        }
    }
    let line = format!("{{{}}}", parts.join(","));
    // Line breaks may stand between the tokens of a text that others wrote.
    raw(line.as_bytes()).map_err(damaged)?;
    Ok(printable_json(line.replace(['\n', '\r'], " ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;

    #[test]
    fn a_line_begins_with_place_and_time_and_keeps_every_digit() {
        let entry = Logged {
            seq: 7,
            run: "01920000-0000-7000-8000-000000000000".parse().unwrap(),
            created_ms: 0,
            json: "{\"type\":\"custom\",\n\"data\":12345678901234567890.50,\"run_id\":\"x\"}"
                .to_owned(),
        };
        assert_eq!(
            line(&entry).unwrap(),
            concat!(
                r#"{"seq":7,"time":"1970-01-01T00:00:00.000Z","#,
                r#""run_id":"01920000-0000-7000-8000-000000000000","#,
                r#""data":12345678901234567890.50,"type":"custom"}"#
            )
        );
        let broken = Logged {
            json: "[".to_owned(),
            ..entry
        };
        assert!(line(&broken).is_err());
    }
}
