//! `paraph eval gates`: the gates of triage on cases with one right outcome each. All of them hold, or the command fails.

use crate::args::EvalGatesArgs;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::terminal::{printable, printable_line};
use paraph_agents::{GateReport, gate_cases, run_gates};

/// The exit code if a gate did not hold.
const BROKEN_GATE: u8 = 1;

/// The longest reason that is shown, in characters.
const SHOWN: usize = 200;

pub(super) fn run(args: &EvalGatesArgs) -> Result<u8, Failure> {
    let all = gate_cases().map_err(Failure::Broken)?;
    let wanted =
        |id: &str| args.cases.is_empty() || args.cases.iter().any(|start| id.starts_with(start));
    let cases: Vec<_> = all.into_iter().filter(|case| wanted(&case.id)).collect();
    if cases.is_empty() {
        return Err(Failure::Usage(format!(
            "--case: no case begins with {}",
            args.cases.join(" or ")
        )));
    }
    let report = crate::commands::runtime()?.block_on(run_gates(&cases, args.trials.into()));
    match args.json {
        true => print_json(&report)?,
        false => in_words(&report)?,
    }
    Ok(match report.holds() {
        true => FINISHED,
        false => BROKEN_GATE,
    })
}

fn in_words(report: &GateReport) -> Result<(), Failure> {
    if !report.failures.is_empty() {
        let head = ["CASE", "TRIAL", "WHY"].map(str::to_owned).to_vec();
        let mut rows = vec![head];
        rows.extend(report.failures.iter().map(|failure| {
            vec![
                printable_line(&failure.id, SHOWN),
                failure.trial.to_string(),
                printable_line(&failure.why, SHOWN),
            ]
        }));
        print(&table(&rows))?;
        note("a gate that fails once has failed: nothing here is an average");
    }
    print(&printable(&format!(
        "gates: {} of {} cases passed each of {} trials ({} of the cases are of the kinds of the system we follow)",
        report.passed, report.cases, report.trials, report.original
    )))
}
