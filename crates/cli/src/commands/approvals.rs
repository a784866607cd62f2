//! `paraph approvals …`: what waits for people, and what they decide about it.
//!
//! A decision is written down first; what follows from it is the run's, which this process then drives on. Everything
//! that is shown comes from a model, and is made safe to show.

mod asking;
mod decide;
mod differences;
mod edit;
mod handoffs;
mod lineage;
mod list;
mod settle;
mod show;
mod triaged;
mod watch;

pub(super) use asking::{Asked, answer, ask};
pub(crate) use lineage::lineage;

use super::{on_listed, on_store};
use crate::args::{ApprovalsCommand, WhichAction};
use crate::cells::{count, time};
use crate::failure::Failure;
use crate::output::note;
use crate::pieces::{Raw, raw};
use crate::stores::Kept;
use crate::terminal::{printable, printable_line};
use paraph_gateway::{
    ActionId, ActionRow, ApprovalError, Approvals, Ended, Kill, Redaction, Redactor, Signer, State,
    StoreError,
};
use paraph_graph::RunId;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The longest text of a kill switch, in characters.
const SWITCH: usize = 500;

/// How many digits of a digest have to be named at least.
const DIGITS: usize = 12;

pub(super) fn run(command: &ApprovalsCommand) -> Result<u8, Failure> {
    match command {
        ApprovalsCommand::List(args) => on_listed(
            &args.out.store,
            ("actions", args.out.json),
            async |kept, _| match args.handoffs {
                true => handoffs::list(&kept, args).await,
                false => list::list(&kept, args).await,
            },
        ),
        ApprovalsCommand::Show(args) => on_store(&args.out.store, async |kept, config| {
            show::show(&kept, &config, args).await
        }),
        ApprovalsCommand::Approve(args) => on_store(&args.then.store, async |kept, config| {
            decide::approve(&kept, &config, args).await
        }),
        ApprovalsCommand::Reject(args) => on_store(&args.then.store, async |kept, config| {
            decide::reject(&kept, &config, args).await
        }),
        ApprovalsCommand::AskChange(args) => on_store(&args.then.store, async |kept, config| {
            decide::ask_change(&kept, &config, args).await
        }),
        ApprovalsCommand::Respond(args) => on_store(&args.then.store, async |kept, config| {
            decide::respond(&kept, &config, args).await
        }),
        ApprovalsCommand::Edit(args) => on_store(&args.out.store, async |kept, config| {
            edit::edit(&kept, &config, args).await
        }),
        ApprovalsCommand::Reopen(args) => on_store(&args.out.store, async |kept, config| {
            settle::reopen(&kept, &config, args).await
        }),
        ApprovalsCommand::Settle(args) => on_store(&args.then.store, async |kept, config| {
            settle::settle(&kept, &config, args).await
        }),
        ApprovalsCommand::Watch(args) => on_store(&args.out.store, async |kept, _| {
            watch::watch(&kept, args).await
        }),
    }
}

/// The desk at a store.
fn desk(kept: &Kept) -> Approvals {
    kept.desk()
}

/// The action of this id.
async fn row(kept: &Kept, id: &str) -> Result<ActionRow, Failure> {
    let parsed: Result<ActionId, _> = id.trim().parse();
    let id = parsed.map_err(|_| {
        let shown = printable(&id.chars().take(100).collect::<String>());
        Failure::Usage(format!(
            "`{shown}` is no action's id; `paraph approvals list` lists what waits"
        ))
    })?;
    desk(kept)
        .show(id)
        .await
        .map_err(|error| refused(kept, error))
}

/// The action, if its digest was named.
async fn looked_at(kept: &Kept, which: &WhichAction) -> Result<ActionRow, Failure> {
    let row = row(kept, &which.id).await?;
    let show = format!("paraph approvals show {}{}", row.id(), flag(kept));
    let Some(digest) = &which.digest else {
        return Err(Failure::Usage(format!(
            "--digest is missing: look at what would happen, and name the digest that is shown there: {show}"
        )));
    };
    let digest = digest.trim().to_ascii_lowercase();
    let hex = digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hex || !(DIGITS..=row.digest.len()).contains(&digest.len()) {
        return Err(Failure::Usage(format!(
            "--digest: {DIGITS} to {} hexadecimal digits, as they are shown by: {show}",
            row.digest.len()
        )));
    }
    if !row.digest.starts_with(&digest) {
        return Err(Failure::Usage(format!(
            "--digest: that is not the digest of action {}: nothing was decided. Look at it again: {show}",
            row.id()
        )));
    }
    Ok(row)
}

/// The flag that leads other commands to the same store.
fn flag(kept: &Kept) -> &str {
    kept.flag.as_deref().unwrap_or_default()
}

/// Why nothing was decided.
fn refused(kept: &Kept, error: ApprovalError) -> Failure {
    match error {
        ApprovalError::NoAction(id) => Failure::Usage(format!(
            "there is no action {id} in {}; `paraph approvals list --all` lists those there are",
            kept.shown
        )),
        ApprovalError::Conflict(row) => Failure::Broken(conflict(kept, &row)),
        ApprovalError::OwnRequest | ApprovalError::Unverified => {
            Failure::Refused(error.to_string())
        }
        ApprovalError::Store(StoreError::Refused(_)) => Failure::Broken(
            "others changed the action all the time, and nothing was decided; try again".to_owned(),
        ),
        ApprovalError::Store(error) => Failure::Broken(error.to_string()),
        error => Failure::usage(error),
    }
}

/// Who or what was quicker.
fn conflict(kept: &Kept, row: &ActionRow) -> String {
    let id = row.id();
    let mut text = format!(
        "action {id} is {} already{}; nothing was changed",
        row.state,
        by_whom(row)
    );
    if let Some(next) = row.replaced_by {
        text.push_str(&format!(
            ". In its place: paraph approvals show {next}{}",
            flag(kept)
        ));
    }
    text
}

/// Who brought an action to where it stands, and when.
fn by_whom(row: &ActionRow) -> String {
    let (by, at_ms) = match (&row.ended, row.votes.last()) {
        (Some(Ended { by, at_ms, .. }), _) => (by, *at_ms),
        (None, Some(vote)) => (&vote.by, vote.at_ms),
        (None, None) => return String::new(),
    };
    format!(" (by {}, {})", printable(&signer(by)), time(at_ms))
}

/// Who decided, for people.
fn signer(by: &Signer) -> String {
    match by {
        Signer::Person(person) if person.verified => person.id.clone(),
        Signer::Person(person) => format!("{}, unverified", person.id),
        Signer::Rule(name) => format!("the rule {name}"),
        Signer::Clock => "the clock".to_owned(),
        Signer::Gateway => "the gateway".to_owned(),
    }
}

/// What nobody decided about in time ends whenever somebody looks. A store that cannot be written to is looked at all
/// the same.
async fn sweep(desk: &Approvals) {
    if let Err(error) = desk.expire().await {
        note(&printable(&format!(
            "warning: what is overdue could not be ended: {error}"
        )));
    }
}

/// Says which kill switches keep these actions from being started, who put them on, and why.
pub(super) async fn tell_of_switches(kept: &Kept, ids: impl Iterator<Item = ActionId>) {
    let mut told = BTreeSet::new();
    for id in ids {
        match switches(kept, id).await {
            Ok(lines) => told.extend(lines),
            Err(error) => note(&printable(&format!(
                "warning: whether a kill switch is on cannot be said: {error}"
            ))),
        }
    }
    for line in told {
        note(&line);
    }
}

async fn switches(kept: &Kept, id: ActionId) -> Result<Vec<String>, ApprovalError> {
    let desk = desk(kept);
    let kills = desk.kills_of(&desk.show(id).await?).await?;
    Ok(kills.iter().map(|kill| switch(kept, kill)).collect())
}

/// A kill switch for whoever meets it.
pub(super) fn switch(kept: &Kept, kill: &Kill) -> String {
    let scope = printable_line(&kill.scope, SWITCH);
    format!(
        "the kill switch is on for {scope} (by {}, {}): {}\n  until: paraph kill off --scope {}{}",
        printable_line(&kill.by, SWITCH),
        time(kill.at_ms),
        printable_line(&kill.reason, SWITCH),
        crate::stores::quoted(&scope),
        flag(kept)
    )
}

/// Takes back what a run that goes no further has asked for and nobody has started, and what the agents which it called
/// have: to approve it would lead nowhere.
pub(super) async fn take_back(
    kept: &Kept,
    run: RunId,
    (by, why): (&str, &str),
) -> Result<(), Failure> {
    let desk = desk(kept);
    let open = [State::Pending, State::Held, State::Approved];
    let rows = desk.list(&open).await;
    let rows = rows.map_err(|error| refused(kept, error))?;
    let runs: BTreeSet<_> = rows.iter().map(|row| row.action.said.run.clone()).collect();
    for own in runs {
        let is_own = own.run == run.to_string();
        if !is_own
            && lineage(kept, &own.run)
                .await?
                .iter()
                .all(|row| row.id != run)
        {
            continue;
        }
        let taken = desk.cancel(&own, by, why).await;
        let taken = taken.map_err(|error| refused(kept, error))?;
        if taken > 0 {
            let actions = count(taken as u64, "action");
            note(&format!("{actions} that nobody had started: taken back"));
        }
    }
    Ok(())
}

/// An action as listings have it in JSON.
#[derive(Serialize)]
struct Listed<'a> {
    id: ActionId,
    digest: &'a str,
    state: State,
    agent: &'a str,
    tool: &'a str,
    expires_at: String,
    thread: &'a str,
    run_id: &'a str,
    /// Without secrets, but for whoever decides.
    says: Cow<'a, str>,
}

impl<'a> Listed<'a> {
    fn of(row: &'a ActionRow) -> Listed<'a> {
        let said = &row.action.said;
        Listed {
            id: row.id(),
            digest: &row.digest,
            state: row.state,
            agent: &said.run.agent,
            tool: &said.tool,
            expires_at: time(said.expires_ms),
            thread: &said.run.thread,
            run_id: &said.run.run,
            says: Cow::Owned(without_secrets(&said.says)),
        }
    }

    /// The same to the byte, for whoever decides.
    fn exact(row: &'a ActionRow) -> Listed<'a> {
        Listed {
            says: Cow::Borrowed(&row.action.said.says),
            ..Listed::of(row)
        }
    }
}

/// What an action says of itself, or what it is about, for everybody but whoever decides.
fn without_secrets(said: &str) -> String {
    Redactor::new(&Redaction::default()).said(said)
}

/// JSON text of the store's as it is.
fn as_json(text: &str) -> Result<Raw, Failure> {
    raw(text.as_bytes()).map_err(|error| Failure::Broken(format!("a stored text: {error}")))
}
