//! `paraph config show`: each setting with its value and where that came from. Secrets are masked.

use crate::args::ConfigShowArgs;
use crate::config::{Config, Kind, settings};
use crate::failure::{FINISHED, Failure};
use crate::output::{print, print_json, table};
use crate::terminal::printable_line;
use paraph_gateway::{Redaction, Redactor};
use serde::Serialize;

/// What stands in the place of a secret, whatever its length.
const MASK: &str = "********";

/// The longest cell of the table, in characters; JSON has all of it.
const CELL: usize = 200;

/// One setting in JSON.
#[derive(Serialize)]
struct Row {
    key: String,
    value: Option<String>,
    source: Option<String>,
}

pub(super) fn show(args: &ConfigShowArgs) -> Result<u8, Failure> {
    let config = Config::load(&args.sources, Vec::new())?;
    let redactor = Redactor::new(&Redaction::default());
    let mut rows = Vec::new();
    for setting in settings() {
        let found = config.find(&setting)?;
        let source = found.as_ref().map(|found| found.source.to_string());
        let value = found.map(|found| match setting.kind {
            Kind::Secret => MASK.to_owned(),
            Kind::Address => redactor.text(&found.text),
            Kind::Plain => found.text,
        });
        rows.push(Row {
            key: setting.key,
            value,
            source,
        });
    }
    if args.json {
        print_json(&rows)?;
        return Ok(FINISHED);
    }
    let lines: Vec<_> = rows
        .into_iter()
        .map(|row| {
            let value = row.value.unwrap_or_else(|| "-".to_owned());
            let source = row.source.unwrap_or_default();
            [row.key, value, source]
                .map(|cell| printable_line(&cell, CELL))
                .to_vec()
        })
        .collect();
    print(&table(&lines))?;
    Ok(FINISHED)
}
