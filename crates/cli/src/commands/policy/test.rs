//! `paraph policy test`: every example of every rule, one line for each rule, and what went wrong below it.

use crate::agent_file::policies;
use crate::args::PolicyTestArgs;
use crate::cells::count;
use crate::failure::{FINISHED, Failure, USAGE};
use crate::output::{note, print, print_json};
use crate::terminal::printable_line;
use paraph_agents::DeclaredPolicy;
use paraph_gateway::Tried;
use serde::Serialize;

/// The longest text of a line, in characters.
const LINE: usize = 400;

/// One rule, with its examples.
#[derive(Serialize)]
struct Row {
    agent: String,
    rule: String,
    passed: usize,
    failed: usize,
    examples: Vec<Tried>,
}

#[derive(Serialize)]
struct Report {
    file: String,
    ok: bool,
    rules: Vec<Row>,
    passed: usize,
    failed: usize,
    /// Rules without any example.
    without: usize,
}

pub(super) fn test(args: &PolicyTestArgs) -> Result<u8, Failure> {
    let found = policies(&args.file)?;
    let rules: Vec<Row> = found.iter().flat_map(rows).collect();
    let total = |of: fn(&Row) -> usize| rules.iter().map(of).sum();
    let report = Report {
        file: args.file.display().to_string(),
        passed: total(|row| row.passed),
        failed: total(|row| row.failed),
        without: total(|row| usize::from(row.examples.is_empty())),
        ok: rules.iter().all(|row| row.failed == 0),
        rules,
    };
    match args.json {
        true => print_json(&report)?,
        false => told(&report, found.len() > 1)?,
    }
    Ok(if report.ok { FINISHED } else { USAGE })
}

fn rows(declared: &DeclaredPolicy) -> Vec<Row> {
    let policy = declared.policy(&declared.tools);
    // The file's own rules, also those that are about tools of a server that nobody has asked.
    let written = paraph_gateway::Policy {
        rules: declared.spec.rules.clone(),
        ..policy
    };
    let tried = written.try_examples(&declared.tools);
    let of_rule = |rule: &paraph_gateway::Rule| {
        let own = tried.iter().filter(|one| one.rule == rule.name);
        let examples: Vec<Tried> = own.cloned().collect();
        let failed = examples.iter().filter(|one| one.fault.is_some()).count();
        Row {
            agent: declared.agent.clone(),
            rule: rule.name.clone(),
            passed: examples.len() - failed,
            failed,
            examples,
        }
    };
    written.rules.iter().map(of_rule).collect()
}

fn told(report: &Report, several: bool) -> Result<(), Failure> {
    for row in &report.rules {
        let of = match several {
            true => format!("{}: ", row.agent),
            false => String::new(),
        };
        let outcome = match (row.passed, row.failed) {
            (0, 0) => "none  ".to_owned(),
            (_, 0) => "pass  ".to_owned(),
            _ => "FAIL  ".to_owned(),
        };
        let counted = match row.examples.len() {
            0 => "no examples".to_owned(),
            all => format!("{} of {}", row.passed, count(all as u64, "example")),
        };
        print(&format!("{outcome}{of}{} ({counted})", row.rule))?;
        for failed in &row.examples {
            if let Some(fault) = &failed.fault {
                let (number, list) = (failed.number, failed.list);
                let text = format!("      example {number} of `{list}` {fault}");
                print(&printable_line(&text, LINE))?;
            }
        }
    }
    let examples = report.passed + report.failed;
    let mut total = format!(
        "{}, {}: {} passed, {} failed",
        count(report.rules.len() as u64, "rule"),
        count(examples as u64, "example"),
        report.passed,
        report.failed
    );
    if report.without > 0 {
        total.push_str(&format!("; {} without examples", report.without));
    }
    print(&total)?;
    if report.rules.is_empty() {
        note("note: rules stand in [[policy.rules]], each with `examples`");
    }
    Ok(())
}
