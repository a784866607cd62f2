//! `paraph eval diagnosis`: how good diagnoses are, on issues whose causes are known. It is no gate: shares with their
//! intervals, graded by code, and apart from them a model's opinion if one is asked.

use crate::args::EvalDiagnosisArgs;
use crate::choice::{choose, chosen};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::terminal::{printable, printable_line};
use paraph_agents::{
    DiagnosisScore, Rehearsal, Share, TriageRole, diagnose_known, known_issues, triage_info,
};
use paraph_models::{ChatModel, ModelSpec};
use serde::Serialize;
use std::sync::Arc;

/// The longest names that are shown.
const SHOWN: usize = 60;

#[derive(Serialize)]
struct Measured {
    model: String,
    issues: Vec<DiagnosisScore>,
    /// Graded by code.
    code: Graded,
    /// A model's view; nothing if none was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    opinion: Option<Opinion>,
}

#[derive(Serialize)]
struct Graded {
    valid: Share,
    sourced: Share,
    faithful: Share,
    found: Share,
    severity: Share,
}

#[derive(Serialize)]
struct Opinion {
    judge: String,
    graded: u64,
    mean: f64,
}

pub(super) fn run(args: &EvalDiagnosisArgs) -> Result<u8, Failure> {
    let flags = vec![("model", "--model", args.model.as_deref())];
    let config = Config::load(&args.sources, flags)?;
    crate::commands::start_log(&config)?;
    let info = triage_info();
    let choice = choose(&config, &info, None)?;
    if let Some(remark) = &choice.note {
        note(remark);
    }
    let judge = args.judge.as_deref().map(|spec| {
        let spec: ModelSpec = spec
            .parse()
            .map_err(|error| Failure::Usage(format!("--judge: {error}")))?;
        Ok::<_, Failure>(chosen(&config, &info, spec, false)?.model)
    });
    let model: Arc<dyn ChatModel> = match choice.model.name() {
        "rehearsal" => Arc::new(Rehearsal::Triage(TriageRole::Diagnosis)),
        _ => choice.model,
    };
    let measured = crate::commands::runtime()?.block_on(measure(&*model, judge.transpose()?))?;
    match args.json {
        true => print_json(&measured)?,
        false => print(&printable(&in_words(&measured)))?,
    }
    Ok(FINISHED)
}

async fn measure(
    model: &dyn ChatModel,
    judge: Option<Arc<dyn ChatModel>>,
) -> Result<Measured, Failure> {
    let issues = known_issues().map_err(Failure::Broken)?;
    let mut scores = Vec::new();
    for issue in &issues {
        let score = diagnose_known(issue, model, judge.as_ref()).await;
        scores.push(score.map_err(|why| Failure::Broken(format!("{}: {why}", issue.id)))?);
    }
    let share = |holds: fn(&DiagnosisScore) -> bool| {
        let hits = scores.iter().filter(|score| holds(score)).count();
        Share::of(hits as u64, scores.len() as u64)
    };
    let code = Graded {
        valid: share(|score| score.valid),
        sourced: share(|score| score.sourced),
        faithful: share(|score| score.faithful),
        found: share(|score| score.found),
        severity: share(|score| score.severity),
    };
    let grades: Vec<_> = scores.iter().filter_map(|score| score.opinion).collect();
    let opinion = judge.filter(|_| !grades.is_empty()).map(|judge| Opinion {
        judge: judge.name().to_owned(),
        graded: grades.len() as u64,
        mean: grades.iter().copied().map(f64::from).sum::<f64>() / grades.len() as f64,
    });
    Ok(Measured {
        model: model.name().to_owned(),
        issues: scores,
        code,
        opinion,
    })
}

fn in_words(measured: &Measured) -> String {
    let head = ["ISSUE", "FORM", "SOURCE", "QUOTES", "CAUSE", "SEVERITY"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mark = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    rows.extend(measured.issues.iter().map(|score| {
        let marks = [
            score.valid,
            score.sourced,
            score.faithful,
            score.found,
            score.severity,
        ];
        let mut row = vec![printable_line(&score.id, SHOWN)];
        row.extend(marks.map(mark));
        row
    }));
    let share = |name: &str, share: &Share| {
        format!(
            "{name}: {}/{}, 95 % interval {:.2} to {:.2}\n",
            share.hits, share.of, share.low, share.high
        )
    };
    let code = &measured.code;
    let mut text = format!(
        "{}\nmodel: {}\ngraded by code (a capability, and no gate)\n{}{}{}{}{}",
        table(&rows),
        printable_line(&measured.model, SHOWN),
        share("  has the form that was asked for", &code.valid),
        share(
            "  cites what shows the cause, or nothing where nothing does",
            &code.sourced
        ),
        share(
            "  quotes letter by letter from what is above the floor",
            &code.faithful
        ),
        share("  names the cause", &code.found),
        share("  severity that fits", &code.severity),
    );
    if let Some(opinion) = &measured.opinion {
        text.push_str(&format!(
            "\nopinion of {} on {} diagnoses (1 to 5; a model's view, apart from the figures above): {:.1}\n",
            printable_line(&opinion.judge, SHOWN),
            opinion.graded,
            opinion.mean
        ));
    }
    text
}
