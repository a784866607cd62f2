//! A run under way, followed to its end: its trace, its events, its result, and Ctrl-C.

use super::threads::after_run;
use crate::args::PrintingArgs;
use crate::config::Config;
use crate::failure::{BROKEN, FINISHED, Failure, INTERRUPTED, WAITING};
use crate::lines::{TraceFile, line};
use crate::output::{note, print};
use crate::research::ReportFile;
use crate::signals::Interrupt;
use crate::stores::{FORGETS, Kept};
use crate::terminal::{printable, printable_json, printable_line};
use crate::trace::{TICK, Trace};
use crate::writing::refuse_own;
use paraph_agents::{AgentEvent, AgentEventData, AgentRun, Approval, OpenQuestion, RunResult};
use paraph_gateway::{Stop, Why};
use paraph_graph::CancelReason;
use std::path::Path;

/// How the explanations call the command that goes on with a run.
const RESUME: &str = "paraph runs resume RUN";

/// The longest text of an action, in characters; `paraph approvals show` has all of it.
const SAYS: usize = 1_000;

/// The most further lines of it that are shown; `approvals show` has them all.
const MAX_LINES: usize = 60;

/// Where what a run tells goes.
pub(crate) struct Told {
    pub(crate) printing: Printing,
    pub(crate) trace: Trace,
    /// Whether the run is saved as it goes.
    pub(crate) saved: bool,
}

/// Where a run's events and its result go.
pub(crate) struct Printing {
    json: bool,
    events: bool,
    trace_file: Option<TraceFile>,
    report_file: Option<ReportFile>,
}

/// How a run came to rest.
pub(crate) struct Ended {
    pub(crate) code: u8,
    result: Option<RunResult>,
    detail: Option<String>,
    /// The command that goes on with it.
    again: Option<String>,
    thread: String,
}

impl Ended {
    /// Whether nothing of it goes on any more. One that was interrupted can be gone on with.
    pub(crate) fn is_over(&self) -> bool {
        let waits = self.code == WAITING || self.code == BROKEN || self.code == INTERRUPTED;
        self.result.is_some() && !waits
    }

    /// With what it ended.
    pub(crate) fn stop(&self) -> Option<&Stop> {
        self.result.as_ref().map(RunResult::stop)
    }

    /// Why it ended.
    pub(crate) fn reason(&self) -> String {
        let stop = self.result.as_ref().map(|result| result.stop().to_string());
        stop.unwrap_or_default()
    }

    /// What it asks.
    pub(crate) fn questions(&self) -> &[OpenQuestion] {
        match &self.result {
            Some(result) => result.questions(),
            None => &[],
        }
    }

    /// What it waits for.
    pub(crate) fn approvals(&self) -> &[Approval] {
        match &self.result {
            Some(result) => result.approvals(),
            None => &[],
        }
    }
}

/// Reads the run to its end. Its result is printed by [`finish`], once nothing more is done about it here.
pub(crate) async fn follow(
    mut run: AgentRun,
    kept: &Kept,
    told: &mut Told,
    interrupt: &mut Interrupt,
) -> Result<Ended, Failure> {
    let (control, id) = (run.control(), run.run_id());
    let mut ended = Ended {
        code: FINISHED,
        result: None,
        detail: None,
        again: told.saved.then(|| resume_command(&run, kept)).flatten(),
        thread: run.thread().to_owned(),
    };
    let mut interrupted = false;
    let mut ticks = tokio::time::interval(TICK);
    loop {
        let event = tokio::select! {
            event = run.next() => event,
            () = interrupt.wait(), if !interrupted => {
                told.trace.clear();
                interrupted = true;
                note("interrupted: the run is being stopped; once more stops it at once");
                control.request_cancel(CancelReason::User);
                continue;
            }
            _ = ticks.tick(), if told.trace.spins() => {
                told.trace.tick();
                continue;
            }
        };
        let Some(event) = event else { break };
        told.trace.show(&event);
        told.printing.event(&event)?;
        if let AgentEventData::RunEnded {
            exit_code,
            detail,
            result,
        } = event.data
        {
            ended.code = exit_code;
            ended.detail = detail;
            ended.result = Some(result);
        }
    }
    // A store that could not be written may have nothing of the run.
    if ended.code == BROKEN && !matches!(kept.threads.run(id).await, Ok(Some(_))) {
        ended.again = None;
    }
    Ok(ended)
}

/// Prints what came out of a run, or what it waits for; gives the exit code.
pub(crate) async fn finish(
    ended: Ended,
    (kept, config): (&Kept, &Config),
    told: &mut Told,
) -> Result<u8, Failure> {
    // Nothing is broken then: whoever began the run named a store on which nobody can be asked.
    if let Some(detail) = ended
        .detail
        .as_deref()
        .filter(|said| said.contains(FORGETS))
        && !kept.lasts()
    {
        return Err(Failure::Usage(format!("store: {detail}")));
    }
    if let Some(result) = &ended.result {
        let flag = kept.flag.as_deref().unwrap_or_default();
        let file = told.printing.report_file.as_ref().map(ReportFile::flag);
        let again = ended.again.map(|again| again + &file.unwrap_or_default());
        let again = again.as_deref();
        told.printing
            .result(result, ended.detail.as_deref(), (again, flag))?;
        if let (Stop::Cancelled, Some(again)) = (result.stop(), again) {
            note(&printable(&format!("saved; go on with: {again}")));
        }
    }
    // A thread that is somebody else's, or a store that is broken, is left alone.
    if told.saved && ended.code != BROKEN {
        after_run(kept, config, &ended.thread).await?;
    }
    Ok(ended.code)
}

/// The command that goes on with this run, if anything of it is left when the program has ended.
fn resume_command(run: &AgentRun, kept: &Kept) -> Option<String> {
    let flag = kept.flag.as_deref().unwrap_or_default();
    kept.lasts()
        .then(|| format!("paraph runs resume {}{flag}", run.run_id()))
}

impl Printing {
    /// What the arguments ask for. The trace may be no file of the store's.
    pub(crate) fn of(args: &PrintingArgs, store: Option<&Path>) -> Result<Printing, Failure> {
        for (flag, path) in [("--trace", &args.trace), ("--output", &args.output)] {
            if let Some(path) = path {
                refuse_own(flag, path, store)?;
            }
        }
        Ok(Printing {
            json: args.json,
            events: args.events,
            report_file: args.output.as_deref().map(ReportFile::of).transpose()?,
            trace_file: args.trace.as_deref().map(TraceFile::create).transpose()?,
        })
    }

    /// Prints the result of a run that was over before; gives the exit code.
    pub(crate) fn over(&mut self, result: &RunResult) -> Result<u8, Failure> {
        self.result(result, None, (None, ""))?;
        Ok(result.stop().exit_code())
    }

    /// Whether people read standard output, and no program.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.json && !self.events
    }

    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        if !self.events && self.trace_file.is_none() {
            return Ok(());
        }
        let line = line(event)?;
        if let Some(file) = &mut self.trace_file {
            file.write(&line);
        }
        match self.events {
            true => print(&line),
            false => Ok(()),
        }
    }

    fn result(
        &self,
        result: &RunResult,
        detail: Option<&str>,
        again: (Option<&str>, &str),
    ) -> Result<(), Failure> {
        let written = match (&self.report_file, result.report()) {
            (Some(file), Some(report)) => file.write(report),
            _ => Ok(()),
        };
        match (self.events, self.json) {
            (true, _) => {}
            (false, true) => print(&printable_json(result.to_json()?))?,
            (false, false) => print(&in_words(result, detail, again))?,
        }
        written
    }
}

/// A result for people: the answer, or what stopped the run and what to do.
fn in_words(
    result: &RunResult,
    detail: Option<&str>,
    (again, flag): (Option<&str>, &str),
) -> String {
    if let Some(triage) = result.triage()
        && let Some(text) = triage.handed_over().or_else(|| triage.posted())
    {
        return printable(&text);
    }
    if let Some(answer) = result.answer() {
        if *result.stop() != Stop::Success {
            let reason = printable_line(&result.stop().explain().reason, SAYS);
            note(&format!(
                "stopped: {reason}; this is what could be said until then"
            ));
        }
        return printable(answer);
    }
    if !result.questions().is_empty() {
        return asking(result.questions(), again);
    }
    if !result.approvals().is_empty() {
        return waiting(result.approvals(), (again, flag));
    }
    let explanation = result.stop().explain();
    // A name or a text that a model wrote stays on its line: what follows on the next ones is ours.
    let reason = printable_line(&explanation.reason, SAYS);
    let mut text = format!("Stopped: {reason}\n{}", explanation.happened);
    if let Some(detail) = detail {
        let detail = detail.replace('\n', "\n  ");
        text.push_str(&format!("\nIn its own words: {detail}"));
    }
    let remedy = match (result.stop(), again) {
        (Stop::Cancelled, Some(again)) => format!("Go on with it: {again}"),
        (_, Some(again)) => explanation.remedy.replace(RESUME, again),
        (Stop::Cancelled, None) => {
            "Nothing was stored, so there is nothing to resume; run it again.".to_owned()
        }
        // What was not stored cannot be gone on with.
        (_, None) => explanation
            .remedy
            .replace(&format!("go on by `{RESUME}`"), "run it again"),
    };
    text.push_str(&format!("\nWhat to do: {remedy}"));
    printable(&text)
}

/// What a run asks, and the command that answers.
fn asking(questions: &[OpenQuestion], again: Option<&str>) -> String {
    let mut text = "Waiting for an answer: everything so far is saved.".to_owned();
    for asked in questions {
        text.push_str(&format!("\n\n{}", crate::research::in_words(asked)));
    }
    // What is asked back is answered in words; whoever is asked for a direction has three.
    let directs = questions.iter().any(|asked| asked.question.is_object());
    if let (Some(again), false) = (again, directs) {
        text.push_str(&format!(
            "\n\n  answer it           {again} --answer \"the answer\""
        ));
    }
    if let (Some(again), true) = (again, directs) {
        text.push_str(&format!(
            "\n\n  go on               {again} --answer continue\n  report what there is {again} --answer stop\n  \
             something else      {again} --answer \"a new instruction\""
        ));
    }
    printable(&text)
}

/// What an effect says of itself, its further lines behind a mark, so that they are not taken for words of the program.
fn in_lines(says: &str) -> String {
    let mut lines = says.trim_end().lines();
    let mut text = printable_line(lines.next().unwrap_or_default(), SAYS);
    let rest: Vec<&str> = lines.collect();
    for line in rest.iter().take(MAX_LINES) {
        text.push_str(&format!("\n  | {}", printable_line(line, SAYS)));
    }
    if rest.len() > MAX_LINES {
        text.push_str(&format!("\n  | ({} more lines)", rest.len() - MAX_LINES));
    }
    text
}

/// What a run waits for, and the commands that help.
fn waiting(approvals: &[Approval], (again, flag): (Option<&str>, &str)) -> String {
    let mut text = "Waiting: everything so far is saved.".to_owned();
    for approval in approvals {
        let (id, says) = (approval.id, in_lines(&approval.says));
        let digest = &approval.digest;
        text.push_str(&match approval.why {
            Why::Approval => format!("\n\nA person has to approve: {says}"),
            Why::Held => {
                format!("\n\nIt was approved, then held before it was done; to be decided anew: {says}")
            }
            Why::Unchecked => {
                format!("\n\nIt was approved, and cannot be looked at again yet; nothing was done: {says}")
            }
            Why::Unknown => format!("\n\nNobody saw what came of it: {says}"),
            Why::Killed => format!("\n\nA kill switch is on, and nothing is done meanwhile: {says}"),
        });
        if let Some(because) = approval
            .because
            .as_deref()
            .filter(|_| approval.why != Why::Approval)
        {
            let because = printable_line(because, SAYS);
            text.push_str(&format!("\n  why         {because}"));
        }
        text.push_str(&format!("\n  look at it  paraph approvals show {id}{flag}"));
        match (approval.why, approval.due_ms, again) {
            (Why::Unknown | Why::Unchecked, Some(due_ms), Some(again)) => text.push_str(&format!(
                "\n  from {}  {again}",
                crate::cells::time(due_ms)
            )),
            (Why::Unknown, ..) => {
                text.push_str(&format!("\n  settle it   paraph approvals settle {id} --digest {digest}{flag} --happened RECEIPT --reason TEXT   (or --did-not-happen)"));
            }
            (Why::Killed, _, Some(again)) => {
                text.push_str(&format!("\n  once it is off  {again}"));
            }
            (Why::Unchecked | Why::Killed, ..) => {}
            _ => text.push_str(&format!(
                "\n  approve it  paraph approvals approve {id} --digest {digest}{flag}\n  until       {}",
                crate::cells::time(approval.expires_ms)
            )),
        }
    }
    printable(&text)
}
