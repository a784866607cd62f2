//! `paraph eval …`: `gates` is the regression of triage, `diagnosis` its capability; each has its file.
//!
//! Here is `research`: the research agent on questions whose answers are known, and what its reports are worth.
//!
//! Everything that is counted is counted by code. What a model thinks of a report is asked for apart, and said to be an
//! opinion.

mod diagnosis;
mod gates;

use crate::args::{EvalArgs, EvalCommand};
use crate::choice::{check_price, choose, chosen, limits};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::suggest::hint;
use crate::terminal::{printable, printable_line};
use paraph_agents::{
    AgentInfo, Cited, Judgement, Report, ReportScore, ResearchQuestion, RunFigures, RunResult,
    ScoreTotal, Stores, Terms, research, research_questions, sample_documents, score_report,
};
use paraph_gateway::Limits;
use paraph_models::{ChatModel, ChatRequest, Message, ModelSpec};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The exit code if a report holds what nobody fetched.
const FABRICATED: u8 = 3;

/// The longest name of a missed fact that is shown.
const SHOWN: usize = 60;

/// One question, as it is printed.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    score: ReportScore,
    stop_reason: String,
    /// What a model thinks; never part of the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    judgement: Option<Judgement>,
}

#[derive(Serialize)]
struct Measured {
    model: String,
    questions: Vec<Row>,
    total: ScoreTotal,
}

pub(super) fn run(command: &EvalCommand) -> Result<u8, Failure> {
    match command {
        EvalCommand::Research(args) => research_reports(args),
        EvalCommand::Gates(args) => gates::run(args),
        EvalCommand::Diagnosis(args) => diagnosis::run(args),
    }
}

fn research_reports(args: &EvalArgs) -> Result<u8, Failure> {
    let mut flags = vec![("model", "--model", args.model.as_deref())];
    flags.extend(args.budget.flags());
    let config = Config::load(&args.sources, flags)?;
    super::start_log(&config)?;
    let info = super::agent(crate::application::RESEARCH)?;
    let questions = asked(&args.questions)?;
    if let Some(folder) = &args.reports {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::Usage(format!("--reports: {}: {error}", folder.display())))?;
    }
    let eval = Eval::of(&config, info, args)?;
    super::block_on(eval.all(&questions, args))
}

/// The questions of these ids, or all.
fn asked(ids: &[String]) -> Result<Vec<ResearchQuestion>, Failure> {
    let all = research_questions();
    for id in ids {
        if !all.iter().any(|question| question.id == *id) {
            let known: Vec<_> = all.iter().map(|question| question.id.as_str()).collect();
            return Err(Failure::Usage(format!(
                "--question: there is no `{id}`{} (known: {})",
                hint(id, known.iter().copied()),
                known.join(", ")
            )));
        }
    }
    let wanted = |question: &ResearchQuestion| ids.is_empty() || ids.contains(&question.id);
    Ok(all.into_iter().filter(wanted).collect())
}

/// What questions are asked with.
struct Eval {
    model: Arc<dyn ChatModel>,
    price: Option<paraph_gateway::Price>,
    limits: Limits,
    judge: Option<Arc<dyn ChatModel>>,
    rehearsed: bool,
}

impl Eval {
    fn of(config: &Config, info: AgentInfo, args: &EvalArgs) -> Result<Eval, Failure> {
        let limits = limits(config, &info)?;
        let choice = choose(config, &info, None)?;
        check_price(config, &choice, &limits)?;
        if let Some(remark) = &choice.note {
            note(remark);
        }
        let judge = args.judge.as_deref().map(|spec| {
            let spec: ModelSpec = spec
                .parse()
                .map_err(|error| Failure::Usage(format!("--judge: {error}")))?;
            Ok::<_, Failure>(chosen(config, &info, spec, false)?.model)
        });
        Ok(Eval {
            rehearsed: choice.model.name() == "rehearsal",
            model: choice.model,
            price: choice.price,
            limits,
            judge: judge.transpose()?,
        })
    }

    async fn all(&self, questions: &[ResearchQuestion], args: &EvalArgs) -> Result<u8, Failure> {
        let mut rows = Vec::new();
        let mut code = FINISHED;
        for (n, question) in questions.iter().enumerate() {
            note(&printable(&format!(
                "{}/{} {}: {}",
                n + 1,
                questions.len(),
                question.id,
                question.question
            )));
            let (row, exit) = self.one(question, args).await?;
            code = if code == FINISHED { exit } else { code };
            rows.push(row);
        }
        let scores: Vec<_> = rows.iter().map(|row| row.score.clone()).collect();
        let total = ScoreTotal::of(&scores);
        if total.fabricated > 0 && code == FINISHED {
            code = FABRICATED;
        }
        let measured = Measured {
            model: self.model.name().to_owned(),
            questions: rows,
            total,
        };
        match args.json {
            true => print_json(&measured)?,
            false => print(&in_words(&measured))?,
        }
        Ok(code)
    }

    /// One question: a run of its own, on a store that dies with it.
    async fn one(
        &self,
        question: &ResearchQuestion,
        args: &EvalArgs,
    ) -> Result<(Row, u8), Failure> {
        let settings = crate::research::measured(self.rehearsed, (args.breadth, args.depth))?;
        let stores = Stores::in_memory();
        let tools = crate::research::built_in();
        let agent = research(&stores, tools, settings, (&[], &[])).map_err(Failure::usage)?;
        let terms = Terms {
            limits: self.limits.clone(),
            price: self.price.clone(),
            ..Terms::new(self.model.clone(), question.id.clone())
        };
        let began = Instant::now();
        let run = agent.start(question.question.as_str(), &terms).await;
        let result = run.map_err(super::not_started)?.result().await;
        let seconds = began.elapsed().as_secs_f64();
        let score = self.score(question, &result, seconds);
        if let (Some(folder), Some(report)) = (&args.reports, result.report()) {
            write(folder, &question.id, report)?;
        }
        let judgement = match (&self.judge, result.answer()) {
            (Some(judge), Some(answer)) => judged(&**judge, question, answer).await,
            _ => None,
        };
        let row = Row {
            score,
            stop_reason: result.stop().to_string(),
            judgement,
        };
        Ok((row, result.stop().exit_code()))
    }

    fn score(&self, question: &ResearchQuestion, result: &RunResult, seconds: f64) -> ReportScore {
        let report = result.report();
        let references = report.map_or(Vec::new(), |report| {
            let pairs = report.references.iter();
            pairs
                .map(|reference| (reference.n as u64, reference.url.clone()))
                .collect()
        });
        let cited = Cited {
            references: &references,
            documents: sample_documents(),
        };
        let figures = RunFigures {
            seconds,
            tokens: report.map_or(0, |report| report.figures.tokens),
            micro_dollars: report.and_then(|report| report.figures.micro_dollars),
        };
        score_report(
            question,
            result.answer().unwrap_or_default(),
            cited,
            figures,
        )
    }
}

/// What a model thinks of a report; nothing if it says nothing usable.
async fn judged(
    judge: &dyn ChatModel,
    question: &ResearchQuestion,
    report: &str,
) -> Option<Judgement> {
    let (system, asked) = Judgement::request(question, sample_documents(), report);
    let request = ChatRequest::new([Message::system(system), Message::human(asked)]);
    let answer = match judge.complete(&request).await {
        Ok(reply) => reply.message.text().into_owned(),
        Err(error) => {
            note(&printable(&format!(
                "warning: no opinion on {}: {error}",
                question.id
            )));
            return None;
        }
    };
    match Judgement::read(judge.name(), &answer) {
        Ok(judgement) => Some(judgement),
        Err(error) => {
            note(&printable(&format!(
                "warning: no opinion on {}: {error}",
                question.id
            )));
            None
        }
    }
}

fn write(folder: &Path, id: &str, report: &Report) -> Result<(), Failure> {
    let path = folder.join(format!("{id}.md"));
    std::fs::write(&path, report.to_markdown())
        .map_err(|error| Failure::Usage(format!("--reports: {}: {error}", path.display())))
}

fn in_words(measured: &Measured) -> String {
    let head = [
        "QUESTION",
        "FACTS",
        "PRECISE",
        "DOCUMENTS",
        "FABRICATED",
        "UNCITED",
        "SECONDS",
        "STOP",
        "MISSED",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(measured.questions.iter().map(|row| {
        let score = &row.score;
        vec![
            score.id.clone(),
            format!("{}/{}", score.covered, score.facts),
            format!("{}/{}", score.precise, score.citations),
            format!("{}/{}", score.recalled, score.gold_documents),
            score.fabricated.to_string(),
            score.uncited.to_string(),
            format!("{:.1}", score.run.seconds),
            row.stop_reason.clone(),
            printable_line(&score.missed.join("; "), SHOWN),
        ]
    }));
    let total = &measured.total;
    let share = |share: Option<f64>| {
        share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let cost = match total.run.micro_dollars {
        Some(micro) => format!("{:.4} USD", micro as f64 / 1e6),
        None => "unknown".to_owned(),
    };
    let mut text = format!(
        "{}\nmodel: {}\ncoverage of known facts: {} ({}/{})\ncitation precision: {} ({}/{})\ncitation recall: {} \
         ({}/{})\nfabricated: {}\nuncited sentences: {}\ntime: {:.1} s, tokens: {}, cost: {cost}\n",
        table(&rows),
        printable_line(&measured.model, SHOWN),
        share(total.coverage),
        total.covered,
        total.facts,
        share(total.precision),
        total.precise,
        total.citations,
        share(total.recall),
        total.recalled,
        total.gold_documents,
        total.fabricated,
        total.uncited,
        total.run.seconds,
        total.run.tokens,
    );
    let opinions: Vec<_> = measured
        .questions
        .iter()
        .filter_map(|row| row.judgement.as_ref())
        .collect();
    if let Some(first) = opinions.first() {
        let mean = |grade: fn(&Judgement) -> u8| {
            opinions
                .iter()
                .map(|one| f64::from(grade(one)))
                .sum::<f64>()
                / opinions.len() as f64
        };
        text.push_str(&format!(
            "\nopinion of {} on {} reports (1 to 5; a model's view, no part of the figures above):\n  overall {:.1}, \
             groundedness {:.1}, completeness {:.1}, clarity {:.1}\n",
            printable_line(&first.model, SHOWN),
            opinions.len(),
            mean(|one| one.overall),
            mean(|one| one.groundedness),
            mean(|one| one.completeness),
            mean(|one| one.clarity),
        ));
    }
    text
}
