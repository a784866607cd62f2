//! The report: written by a model from facts, checked by code, and put together by code if no model writes it.
//!
//! What the model writes passes the check of citations before anybody sees it. If something did not hold, the model may
//! write once more; what still does not hold is out.

use super::citation::{Checked, check};
use super::crew::{Crew, phase};
use super::desk::way;
use super::prompt;
use super::reading::{short, without_thoughts};
use super::report::{Report, ReportFigures, ReportFrame};
use super::settings::Role;
use super::source::FENCE as MARK;
use super::state::{Critique, ResearchState, Standing};
use super::{COMPLETE, REPORT};
use crate::asking::{Asking, Early};
use crate::ending::Ending;
use paraph_gateway::Stop;
use paraph_graph::{Ctx, State, Update};
use paraph_models::{ChatRequest, FinishReason, Message, estimate_text};
use std::sync::Arc;

/// What a request needs beside the material, in tokens.
const BESIDE_MATERIAL: usize = 3_000;

/// How many lines of what did not hold a writer is told.
const TOLD_PROBLEMS: usize = 20;

/// Decides whether research may end. Grave points that a draft could still answer hold it up, each once.
pub(super) async fn research_complete(
    crew: &Arc<Crew>,
    state: &ResearchState,
    _: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let update = ResearchState::update();
    let rounds = crew
        .settings
        .depth
        .saturating_sub(state.research_iterations);
    let can_go_on = rounds > 0 && state.stopped_by.is_none() && state.cut_short.is_none();
    let is_grave = |critique: &&Critique| {
        critique.severity >= GRAVE
            && critique.can_be_answered()
            && !state.held_up.contains(&critique.id)
    };
    let grave: Vec<_> = state
        .open_critiques()
        .filter(is_grave)
        .filter(|_| can_go_on)
        .collect();
    if grave.is_empty() {
        return Ok(update
            .complete(true)
            .way(way(COMPLETE, "nothing more is to be found out")));
    }
    let points = prompt::critiques(grave.iter().copied());
    let told = format!(
        "Not yet: these points against the draft are open.\n{points}\nHave them looked into or the draft written \
         anew; if that is not possible, call `research_complete` again."
    );
    let ids = grave.iter().map(|critique| critique.id.clone());
    Ok(update
        .complete(false)
        .held_up(ids.collect::<Vec<_>>())
        .supervisor_messages([Message::human(told)])
        .way(way(
            COMPLETE,
            super::reading::counted(grave.len() as u64, "grave point", "", "open"),
        )))
}

/// From this severity on a point holds up the end.
const GRAVE: u64 = 8;

/// What is known, for a writer: facts first, then the newest findings, as much as fits.
pub(super) fn material(state: &ResearchState, room: usize) -> String {
    let mut left = room;
    let mut take = |line: String| {
        let tokens = estimate_text(&line);
        let fits = tokens <= left;
        left -= if fits { tokens } else { 0 };
        fits.then_some(line)
    };
    let facts: Vec<_> = state
        .knowledge_base
        .iter()
        .filter_map(|fact| take(prompt::facts(std::slice::from_ref(fact))))
        .collect();
    let mut findings: Vec<_> = state
        .findings
        .iter()
        .rev()
        .filter_map(|finding| take(prompt::finding(finding)))
        .collect();
    findings.reverse();
    let titles: Vec<_> = state
        .sources
        .iter()
        .filter_map(|source| take(format!("{}: {}", source.id, source.title)))
        .collect();
    format!(
        "Facts:\n{}\n\nFindings:\n{}\n\nSources:\n{MARK} titles of sources ]\n{}\n{MARK} end of the titles ]",
        facts.join("\n"),
        findings.join("\n\n"),
        titles.join("\n")
    )
}

/// Writes the report, and ends the run.
pub(super) async fn final_report(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    phase(ctx, "writing", &state.question).await?;
    let update = ResearchState::update();
    if let (Some(ending), false) = (&state.cut_short, state.found_something()) {
        // There is nothing to report.
        return Ok(update
            .ending(Some(ending.clone()))
            .way(way(REPORT, "nothing was found before the run had to end")));
    }
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return Ok(update.ending(Some(early.ending()?))),
    };
    asking.run.reserve.release();
    let (text, unwritten) = match written(crew, state, &asking, ctx).await {
        Ok(text) => (text, None),
        Err(early) => (Written::by_code(state), Some(early.ending()?)),
    };
    let checked = check(&text.text, &state.sources);
    let partial = partial(state, (unwritten.as_ref(), text.cut_off), &checked);
    let report = put_together(crew, state, (checked, partial), &asking);
    let answer = report.to_markdown();
    let ending = Ending {
        answer: Some(answer),
        ..ending_of(state, unwritten)
    };
    let step = state.step.max(asking.session.budget().used().steps);
    Ok(update
        .final_report(Some(report))
        .spent(Some(asking.spent(ctx)))
        .step(step)
        .ending(Some(ending))
        .way(way(REPORT, "the report is written")))
}

/// Why the run ends that has this report.
fn ending_of(state: &ResearchState, unwritten: Option<Ending>) -> Ending {
    if let Some(cut_short) = state.cut_short.clone() {
        return cut_short;
    }
    if let Some(ending) = unwritten {
        return ending;
    }
    if !state.sources.is_empty() {
        return Ending::from(Stop::Success);
    }
    Ending {
        detail: Some(nothing_read(state)),
        ..Ending::from(unreached(state).unwrap_or(Stop::NoProgress))
    }
}

/// The failure of their model, if that kept all researchers from reading anything.
fn unreached(state: &ResearchState) -> Option<Stop> {
    let mut stops = state.findings.iter().map(|finding| {
        let stopped = finding.stopped.as_deref()?;
        stopped.starts_with("llm_").then(|| stopped.parse().ok())?
    });
    let first: Stop = stops.next()??;
    stops.all(|stop| stop.is_some()).then_some(first)
}

/// Why there is no source, in a sentence.
fn nothing_read(state: &ResearchState) -> String {
    let mut failures = state
        .findings
        .iter()
        .filter_map(|finding| finding.unsearched.as_deref());
    match failures.next() {
        Some(why) => format!("no source could be read: {why}"),
        None => "no source could be read".to_owned(),
    }
}

/// What a report is made of.
struct Written {
    text: String,
    /// It ends where the model's longest answer ends.
    cut_off: bool,
}

/// What the model writes, at its second try if the first did not hold.
async fn written(
    crew: &Crew,
    state: &ResearchState,
    asking: &Asking<'_>,
    ctx: &Ctx,
) -> Result<Written, Early> {
    let first = ask(crew, state, asking, ctx, None).await?;
    let checked = check(&first.text, &state.sources);
    let silent = cites_nothing(state, &checked);
    if (checked.refused.is_empty() && !silent) || asking.running_out().is_some() {
        return Ok(first);
    }
    let (about, problems) = match checked.refused.len() {
        0 => ("nothing is cited".to_owned(), NOTHING_CITED.to_owned()),
        many => (format!("{many} citations did not hold"), problems(&checked)),
    };
    phase(ctx, "mending", &about).await?;
    match ask(crew, state, asking, ctx, Some((&first.text, &problems))).await {
        Ok(second)
            if (!second.cut_off || first.cut_off)
                && is_better(state, &check(&second.text, &state.sources), &checked) =>
        {
            Ok(second)
        }
        Ok(_) => Ok(first),
        // What was written first stands, without what did not hold.
        Err(Early::Ending(_)) => Ok(first),
        Err(early) => Err(early),
    }
}

/// What a writer is told that cites nothing.
const NOTHING_CITED: &str = "- The report cites no source, though sources were read. Answer the question from the material and \
    cite the ids that stand there; if the material answers nothing, say so and cite what was looked at.";

/// Whether a report rests on nothing that was read, though something was.
fn cites_nothing(state: &ResearchState, checked: &Checked) -> bool {
    !state.sources.is_empty() && checked.references.is_empty()
}

/// Whether more of a second try holds than of the first.
fn is_better(state: &ResearchState, second: &Checked, first: &Checked) -> bool {
    match (cites_nothing(state, second), cites_nothing(state, first)) {
        (false, true) => true,
        (true, false) => false,
        // A word of thanks, or only the part that was changed, has fewer faults as well, and is no report.
        _ => second.refused.len() < first.refused.len() && keeps_most(second, first),
    }
}

/// Whether nearly as much is shown by sources as before.
fn keeps_most(second: &Checked, first: &Checked) -> bool {
    second.figures.cited.saturating_mul(4) >= first.figures.cited.saturating_mul(3)
}

fn problems(checked: &Checked) -> String {
    let lines = checked.refused.iter().take(TOLD_PROBLEMS);
    let lines: Vec<_> = lines
        .map(|refused| format!("- {}: {}", short(&refused.what, 200), refused.why))
        .collect();
    lines.join("\n")
}

async fn ask(
    crew: &Crew,
    state: &ResearchState,
    asking: &Asking<'_>,
    ctx: &Ctx,
    again: Option<(&str, &str)>,
) -> Result<Written, Early> {
    let instructions = prompt::writer(state, &crew.date());
    let request = |room: usize| {
        let beside = again.map_or(0, |(first, _)| estimate_text(first)) + BESIDE_MATERIAL;
        let material = material(state, room.saturating_sub(beside));
        let task = format!("{}\n\n{material}", prompt::to_write(state));
        let mut messages = vec![Message::system(instructions.clone()), Message::human(task)];
        if let Some((first, problems)) = again {
            messages.push(Message::ai(first));
            messages.push(Message::human(prompt::to_mend(problems)));
        }
        ChatRequest::new(messages)
    };
    let (_, reply) = crew.ask(Role::Writer, asking.clone(), ctx, request).await?;
    if reply.finish_reason == Some(FinishReason::ContentFilter) {
        let held_back = Ending {
            detail: Some("the model's provider held the report back".to_owned()),
            ..Ending::from(Stop::LlmEmpty)
        };
        return Err(held_back.into());
    }
    let text = reply.message.text();
    match without_thoughts(&text) {
        "" => Err(Stop::LlmEmpty.into()),
        text => Ok(Written {
            text: text.to_owned(),
            cut_off: reply.finish_reason == Some(FinishReason::Length),
        }),
    }
}

impl Written {
    /// A report that no model wrote: what the researchers handed in, as they handed it in.
    fn by_code(state: &ResearchState) -> Written {
        let mut text = format!("# {}\n", short(&state.question, 200));
        for finding in state.findings.iter().filter(|finding| !finding.failed) {
            text.push_str(&format!(
                "\n## {}\n\n{}\n",
                short(&finding.topic, 200),
                finding.text
            ));
        }
        Written {
            text,
            cut_off: false,
        }
    }
}

fn put_together(
    crew: &Crew,
    state: &ResearchState,
    (checked, partial): (Checked, Option<String>),
    asking: &Asking<'_>,
) -> Report {
    let used = asking.session.budget().used();
    let searches = state.findings.iter().map(|finding| finding.searches).sum();
    let unreflected = state
        .findings
        .iter()
        .map(|f| f.searches_without_reflection)
        .sum();
    let figures = ReportFigures {
        citations: checked.figures,
        searches,
        searches_without_reflection: unreflected,
        sources: state.sources.len() as u64,
        rounds: state.research_iterations,
        researchers: state.researchers,
        failed_researchers: state
            .findings
            .iter()
            .filter(|finding| finding.failed)
            .count() as u64,
        tokens: used.tokens,
        micro_dollars: used.cost(),
    };
    let frame = ReportFrame {
        question: state.question.clone(),
        partial,
        missing: gaps(state),
        figures,
        generated_at: crew.now(),
        made_by: writer_of(crew, asking),
        run: asking.session.scope().run.clone(),
    };
    Report::of(checked, frame)
}

/// The model that writes, by its name; of the rehearsal, what it is.
fn writer_of(crew: &Crew, asking: &Asking<'_>) -> String {
    let voice = crew.settings.voices.get(&Role::Writer);
    let name = voice.map_or_else(|| asking.run.model.name(), |voice| voice.model.name());
    match name {
        "rehearsal" => "the rehearsal (rules, and no model)".to_owned(),
        name => name.to_owned(),
    }
}

/// Why a report is not whole, if it is not.
fn partial(
    state: &ResearchState,
    (unwritten, cut_off): (Option<&Ending>, bool),
    checked: &Checked,
) -> Option<String> {
    let cut_short = state.cut_short.as_ref().map(|ending| match &ending.detail {
        Some(detail) => format!("the research was cut short: {} ({detail})", ending.stop),
        None => format!("the research was cut short: {}", ending.stop),
    });
    let unread = (state.sources.is_empty() && cut_short.is_none()).then(|| nothing_read(state));
    let unwritten = unwritten.map(|ending| {
        let why = match &ending.detail {
            Some(detail) => format!("{} ({detail})", ending.stop),
            None => ending.stop.to_string(),
        };
        match state.findings.iter().any(|finding| !finding.failed) {
            true => {
                format!("no model wrote it: {why}; these are the researchers' own short reports")
            }
            false => format!("no model wrote it: {why}"),
        }
    });
    let silent = (unwritten.is_none() && cites_nothing(state, checked))
        .then(|| "it cites nothing of what was read".to_owned());
    let cut_off =
        cut_off.then(|| "its end is missing: the writer's answer was too long".to_owned());
    let reasons = [
        cut_short,
        state.stopped_by.clone(),
        unread,
        starved(state),
        unwritten,
        silent,
        cut_off,
    ];
    let reasons: Vec<_> = reasons.into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// How many researchers came back with nothing because the budget was used up.
fn starved(state: &ResearchState) -> Option<String> {
    let by_budget = |stopped: &&str| stopped.starts_with("max_");
    let failed = state.findings.iter().filter(|finding| finding.failed);
    let mut stopped = failed
        .filter_map(|finding| finding.stopped.as_deref())
        .filter(by_budget);
    let first = stopped.next()?;
    let count = stopped.count() + 1;
    let of = state.findings.len();
    Some(format!(
        "{count} of {of} researchers found nothing before their share of the budget was used up ({first})"
    ))
}

/// What is known to be missing, whatever the writer says.
fn gaps(state: &ResearchState) -> Vec<String> {
    let failed = state.findings.iter().filter(|finding| finding.failed);
    let failed = failed.map(|finding| {
        let reasons = [finding.stopped.as_deref(), finding.unsearched.as_deref()];
        let why = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let why = match why.is_empty() {
            true => "nothing was found",
            false => &why,
        };
        format!("Not found out ({why}): {}", short(&finding.topic, 300))
    });
    let is_open = |critique: &&Critique| critique.standing == Standing::Raised;
    let open = state.critiques.iter().filter(is_open);
    let open = open.map(|critique| format!("Open point: {}", critique.concern));
    failed.chain(open).collect()
}
