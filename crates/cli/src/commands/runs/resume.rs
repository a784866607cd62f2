//! `paraph runs resume`: goes on with a run where it was cut off, cancelled or interrupted.

use super::row;
use crate::application::{Described, Said, reader};
use crate::args::{PrintingArgs, ResumeArgs};
use crate::choice::{check_price, chosen};
use crate::commands::drive::Driver;
use crate::commands::follow::{Printing, Told};
use crate::commands::not_started;
use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use crate::portable::elsewhere;
use crate::started::Started;
use crate::stores::{Kept, lease, quoted};
use crate::terminal::Screen;
use crate::trace::Trace;
use paraph_agents::{APPROVAL, Agent, AgentRun, Terms};
use paraph_graph::{Entry, HistoryQuery, RunRow, RunStatus, Scope};

pub(super) async fn resume(kept: &Kept, config: &Config, args: &ResumeArgs) -> Result<u8, Failure> {
    let row = row(kept, &args.which).await?;
    go_on(kept, config, row, (&args.printing, args.answer.as_deref())).await
}

/// Goes on with this run, to its next stop.
pub(crate) async fn go_on(
    kept: &Kept,
    config: &Config,
    row: RunRow,
    (args, answer): (&PrintingArgs, Option<&str>),
) -> Result<u8, Failure> {
    let started = Started::of(&row)?;
    let mut printing = Printing::of(args, kept.file.as_deref())?;
    if row.status == RunStatus::Success {
        let agent = reader(kept.stores(), &started)?;
        let result = agent.result(row.id, &row.thread).await;
        if let Some(result) = result.map_err(not_started)? {
            note(&format!(
                "run {} was over already; this is its result",
                row.id
            ));
            return printing.over(&result);
        }
        // What came out stood on its checkpoints. To begin it anew would do again what it did.
        return Err(Failure::Usage(format!(
            "run {} was over already, and is not run again; its checkpoints are no longer there, and its \
             result with them",
            row.id
        )));
    }
    is_here(kept, &row).await?;
    let mut described = Described::started(&started)?;
    let said = Said {
        kept: Some(kept),
        ..Said::of(&started)
    };
    if !said.own_models {
        described.info.fallbacks.clear();
    }
    let opened = described.open(config, kept.stores(), said).await?;
    opened.warn();
    let choice = chosen(config, &described.info, started.model()?, true)?;
    check_price(config, &choice, &started.limits)?;
    if !args.quiet {
        crate::commands::run::tell_of_refunds(&described, config)?;
        if let Some(triage) = &started.triage {
            crate::triage::tell(triage, config)?;
        }
        kept.warn_of_short_disk();
    }
    if row.live {
        note(&format!(
            "run {} is driven by another process, or was moments ago; if that one is dead, the thread is free \
             after {} seconds at the latest",
            row.id,
            lease(config)?.as_secs()
        ));
    }
    let terms = Terms {
        price: choice.price,
        limits: started.limits.clone(),
        loops: started.loops,
        tell_messages: args.verbose,
        run: Some(row.id),
        user: started.requester.clone(),
        ..Terms::new(described.tooled(choice.model), row.thread.clone())
    };
    let run = match answer {
        Some(answer) => answered(&opened.agent, &row, answer, &terms).await?,
        None => again(kept, &opened.agent, (&row, &started), &terms).await?,
    };
    let screen = Screen::of_stderr(&config.environment);
    let told = Told {
        printing,
        trace: Trace::new(screen, args.quiet),
        saved: true,
    };
    let driver = Driver {
        kept,
        config,
        agent: &opened.agent,
        terms: &terms,
    };
    let code = driver.drive(run, told).await;
    opened.close().await;
    code
}

/// Refuses a run that waits for what stayed in the store from which its thread was exported: whether that was done is
/// known there alone.
async fn is_here(kept: &Kept, row: &RunRow) -> Result<(), Failure> {
    let missing = elsewhere(kept, (&row.graph, &row.thread, row.id)).await?;
    match missing.first() {
        None => Ok(()),
        Some(id) => Err(Failure::Usage(format!(
            "run {} waits for action {id}, which is not in {}: it stayed in the store from which the thread was \
             exported, and is decided about there. A new run on the thread asks anew: paraph run … --thread {}",
            row.id,
            kept.shown,
            quoted(&row.thread)
        ))),
    }
}

/// The run with this answer to what it asks.
async fn answered(
    agent: &Agent,
    row: &RunRow,
    answer: &str,
    terms: &Terms,
) -> Result<AgentRun, Failure> {
    let open = agent.questions(&row.thread).await.map_err(not_started)?;
    let asks = open.iter().filter(|asked| asked.key != APPROVAL);
    let answers = asks.map(|asked| {
        let value = crate::research::answer(answer);
        if asked.question.is_object() {
            crate::research::check_direction(&value)?;
        }
        Ok((asked.id.clone(), value))
    });
    let answers = answers.collect::<Result<Vec<_>, Failure>>()?;
    if answers.is_empty() {
        return Err(Failure::Usage(format!(
            "--answer: run {} asks nothing that is answered like this (`paraph runs show {}` says how it stands)",
            row.id, row.id
        )));
    }
    agent
        .answer(row.id, answers, terms)
        .await
        .map_err(not_started)
}

/// The run under its own id: where it stands, or from its beginning if nothing of it was saved.
async fn again(
    kept: &Kept,
    agent: &Agent,
    (row, started): (&RunRow, &Started),
    terms: &Terms,
) -> Result<AgentRun, Failure> {
    let Some(own) = newest(kept, row, true).await? else {
        if row.attempts > 0
            && let Some(head) = newest(kept, row, false).await?
            && is_later(&head, row)
        {
            return Err(Failure::Usage(format!(
                "thread `{}` has gone on since, and stands at {}: of run {} there is no checkpoint left to go \
                 on from",
                row.thread, head.id, row.id
            )));
        }
        let case = started.case();
        let run = match started.from {
            Some(from) => agent.replay(from, case, terms).await,
            None => agent.start(case.unwrap_or_default(), terms).await,
        };
        return run.map_err(not_started);
    };
    if let Some(head) = newest(kept, row, false).await?
        && head.metadata.run != row.id
    {
        return Err(moved_on(row, started, &own, &head));
    }
    agent.resume(row.id, terms).await.map_err(not_started)
}

/// Whether a checkpoint of another run was made after this one was handed in. Ids of runs begin with the
/// time at which they were made; rows that were imported have the time of their import.
fn is_later(head: &Entry, row: &RunRow) -> bool {
    head.metadata.run > row.id || head.metadata.created_ms > row.created_ms
}

/// The newest checkpoint of the run, or of its thread.
async fn newest(kept: &Kept, row: &RunRow, own: bool) -> Result<Option<Entry>, Failure> {
    let scope = Scope {
        thread: row.thread.as_str().into(),
        namespace: "".into(),
    };
    let mut one = HistoryQuery {
        limit: Some(1),
        ..HistoryQuery::default()
    };
    if own {
        one.filter
            .insert("run".to_owned(), row.id.to_string().into());
    }
    Ok(kept.threads.history(&scope, &one).await?.pop())
}

fn moved_on(row: &RunRow, started: &Started, own: &Entry, head: &Entry) -> Failure {
    Failure::Usage(format!(
        "thread `{thread}` has gone on since: run {id} left checkpoint {own}, and the thread stands at {head}. \
         To run again from there, on a new branch: paraph run {agent} --thread {name} --from {own}",
        thread = row.thread,
        id = row.id,
        own = own.id,
        head = head.id,
        agent = started.named(),
        name = quoted(&row.thread),
    ))
}
