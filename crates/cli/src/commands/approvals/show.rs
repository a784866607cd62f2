//! `paraph approvals show`: an action before somebody decides about it, to the byte.

use super::differences::{self, Difference, differences};
use super::triaged::{Triaged, triaged};
use super::{as_json, by_whom, desk, flag, refused, row, signer, sweep, tell_of_switches};
use crate::args::ApprovalShowArgs;
use crate::cells::{count, now_ms, time};
use crate::config::Config;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json};
use crate::person::local;
use crate::pieces::Raw;
use crate::stores::Kept;
use crate::terminal::{printable, printable_json, printable_line};
use paraph_gateway::{ActionId, ActionRow, Approvals, Changed, Shape, Shown, State, View};
use serde::Serialize;
use std::collections::BTreeMap;

/// The longest text on a line, in characters; JSON has all of it.
const LINE: usize = 2_000;

/// What shows it, as the audit names it.
const PROGRAM: &str = concat!("paraph ", env!("CARGO_PKG_VERSION"));

/// The longest text of several lines, in characters.
const BLOCK: usize = 20_000;

#[derive(Serialize)]
struct ActionJson<'a> {
    #[serde(flatten)]
    listed: super::Listed<'a>,
    level: String,
    subject: &'a str,
    arguments: Raw,
    targets: &'a BTreeMap<String, String>,
    preconditions: &'a BTreeMap<String, String>,
    /// The text that the digest is of, behind `paraph/action/v1`.
    bytes: &'a str,
    requester: &'a str,
    acts: String,
    policy: &'a str,
    /// What the run had read when it asked.
    evidence: Option<EvidenceJson<'a>>,
    quorum: u32,
    not_by_requester: bool,
    verified: bool,
    proposed_at: String,
    again: Option<ActionId>,
    edited_from: Option<ActionId>,
    edited_by: Option<&'a str>,
    /// By what it differs from the action that it stands in the place of.
    diff: &'a [Difference],
    replaced_by: Option<ActionId>,
    votes: Vec<Voted>,
    attempts: u64,
    receipt: Option<Raw>,
    ended: Option<End<'a>>,
    due_at: Option<String>,
    closes: bool,
    changed: &'a [Changed],
    approve: Option<String>,
    /// What triage knows of it, if it is triage's.
    #[serde(skip_serializing_if = "Option::is_none")]
    triage: Option<&'a Triaged>,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    calls: u64,
    hash: &'a str,
    /// Whether all of it is still recorded as it was.
    holds: bool,
}

#[derive(Serialize)]
struct Voted {
    by: String,
    at: String,
}

#[derive(Serialize)]
struct End<'a> {
    by: String,
    why: &'a str,
    at: String,
}

pub(super) async fn show(
    kept: &Kept,
    config: &Config,
    args: &ApprovalShowArgs,
) -> Result<u8, Failure> {
    let desk = desk(kept);
    sweep(&desk).await;
    let row = row(kept, &args.id).await?;
    let acts = acts(config);
    let changes = differences(kept, &row).await?;
    let holds = desk.evidence_holds(&row).await;
    let holds = holds.map_err(|error| refused(kept, error))?;
    let triage = triaged(kept, &row).await;
    match args.out.json {
        true => print_json(&ActionJson {
            triage: triage.as_ref(),
            ..in_json(kept, &row, (acts, holds, &changes))?
        })?,
        false => {
            if holds == Some(false) {
                note(
                    "careful: what the run had read when it asked is not recorded any more as it was",
                );
            }
            let words = in_words(&row, (&acts, &changes), Some(flag(kept)));
            let triage = triage.as_ref().map(Triaged::in_words);
            print(&format!("{words}{}", triage.unwrap_or_default()))?;
        }
    }
    if !row.state.is_final() {
        tell_of_switches(kept, std::iter::once(row.id())).await;
    }
    was_shown(&desk, &row, &local(&config.environment)).await;
    Ok(FINISHED)
}

/// Writes down who has seen it, if it is not decided about yet. A store that cannot be written to is looked at all the
/// same.
pub(super) async fn was_shown(desk: &Approvals, row: &ActionRow, to: &str) {
    if !row.state.is_undecided() {
        return;
    }
    if let Err(error) = desk.shown(row, to, PROGRAM).await {
        note(&printable(&format!(
            "warning: that it was shown could not be written down: {error}"
        )));
    }
}

/// As whom it would be done.
fn acts(config: &Config) -> String {
    format!(
        "the process that goes on with the run: this one as local user {}, with the tokens of its environment",
        local(&config.environment)
    )
}

fn in_json<'a>(
    kept: &Kept,
    row: &'a ActionRow,
    (acts, holds, diff): (String, Option<bool>, &'a [Difference]),
) -> Result<ActionJson<'a>, Failure> {
    let said = &row.action.said;
    let edited = said.edited.as_ref();
    let vote = |vote: &paraph_gateway::Vote| Voted {
        by: signer(&vote.by),
        at: time(vote.at_ms),
    };
    Ok(ActionJson {
        listed: super::Listed::exact(row),
        level: said.level.to_string(),
        subject: &said.subject,
        arguments: as_json(&said.args.to_string())?,
        targets: &said.resolved.targets,
        preconditions: &said.resolved.preconditions,
        bytes: &row.action.bytes,
        requester: &said.requester,
        acts,
        policy: &said.policy,
        evidence: said.evidence.as_ref().map(|evidence| EvidenceJson {
            calls: evidence.calls,
            hash: &evidence.hash,
            holds: holds.unwrap_or_default(),
        }),
        quorum: said.quorum,
        not_by_requester: said.not_by_requester,
        verified: said.verified,
        proposed_at: time(said.created_ms),
        again: said.again,
        edited_from: edited.map(|(from, _)| *from),
        edited_by: edited.map(|(_, by)| by.as_str()),
        diff,
        replaced_by: row.replaced_by,
        votes: row.votes.iter().map(vote).collect(),
        attempts: row.sending.times,
        receipt: row.receipt.as_deref().map(as_json).transpose()?,
        ended: row.ended.as_ref().map(|ended| End {
            by: signer(&ended.by),
            why: &ended.why,
            at: time(ended.at_ms),
        }),
        due_at: row.due_ms.map(time),
        closes: row.closes,
        changed: &row.changed,
        approve: row
            .state
            .is_undecided()
            .then(|| approve_command(row, flag(kept))),
        triage: None,
    })
}

/// The command that approves exactly this.
fn approve_command(row: &ActionRow, flag: &str) -> String {
    format!(
        "paraph approvals approve {} --digest {}{flag}",
        row.id(),
        row.digest
    )
}

/// All of it for somebody who decides at a terminal, with the commands that are left unless they are asked at once.
pub(super) fn in_words(
    row: &ActionRow,
    (acts, changes): (&str, &[Difference]),
    flag: Option<&str>,
) -> String {
    let said = &row.action.said;
    let mut odd = Vec::new();
    let mut shown = |text: &str| {
        let shown = Shown::field(text, LINE);
        odd.extend(shown.warnings.iter().map(ToString::to_string));
        shown.text
    };
    let mut facts = vec![
        ("action", row.id().to_string()),
        ("state", state(row)),
        ("effect", shown(&said.says)),
        ("tool", format!("{} ({})", shown(&said.tool), said.level)),
        ("about", shown(&said.subject)),
        (
            "asked by",
            format!(
                "agent {} for {}, thread {}, run {}",
                shown(&said.run.agent),
                shown(&said.requester),
                shown(&said.run.thread),
                shown(&said.run.run)
            ),
        ),
        ("done by", acts.to_owned()),
        ("proposed", time(said.created_ms)),
        ("expires", expires(row)),
        ("needs", needs(row)),
    ];
    if !said.policy.is_empty() {
        facts.push(("policy", shown(&said.policy)));
    }
    if let Some(evidence) = &said.evidence {
        let results = count(evidence.calls, "result");
        let hash = shown(&evidence.hash);
        facts.push((
            "rests on",
            format!("{results} that the run had read, {hash}"),
        ));
    }
    facts.extend(history(row));
    let mut text = String::new();
    for (name, value) in &facts {
        text.push_str(&format!("{name:<9} {value}\n"));
    }
    if let Some(earlier) = said.again {
        text.push_str(&format!(
            "\nCareful: something about the same was signed before: {earlier}\n"
        ));
    }
    let looked_at = looked_at(row, &mut shown);
    let (readable, warnings) = readable(said.args.view());
    odd.extend(warnings);
    let changed = differences::in_words(changes, &mut odd);
    odd.dedup();
    for warning in odd {
        text.push_str(&format!("\nCareful: {warning}\n"));
    }
    text.push_str(&changed);
    text.push_str(&looked_at);
    text.push_str(&format!(
        "\narguments, to the byte\n  {}\narguments, as they read\n{}",
        printable_json(said.args.to_string()),
        readable
    ));
    text.push_str(&format!(
        "\nbytes that are signed (digest = SHA-256 of paraph/action/v1 and these)\n  {}\ndigest    {}\n",
        printable_json(row.action.bytes.clone()),
        row.digest
    ));
    if let Some(flag) = flag {
        text.push_str(&what_now(row, flag));
    }
    text
}

/// What the arguments stand for, what has to be so still when it is done, and what of it is not any more.
fn looked_at(row: &ActionRow, shown: &mut impl FnMut(&str) -> String) -> String {
    let resolved = &row.action.said.resolved;
    let mut text = String::new();
    let parts = [
        ("what it is done to", &resolved.targets),
        (
            "what has to be so still when it is done",
            &resolved.preconditions,
        ),
    ];
    for (title, entries) in parts.into_iter().filter(|(_, entries)| !entries.is_empty()) {
        text.push_str(&format!("\n{title}\n"));
        for (name, value) in entries {
            text.push_str(&format!("  {} = {}\n", shown(name), shown(value)));
        }
    }
    if !row.changed.is_empty() {
        text.push_str("\nwhat is not so any more\n");
    }
    for changed in &row.changed {
        text.push_str(&format!("  {}\n", shown(&changed.name)));
        for (sign, value) in [('-', &changed.seen), ('+', &changed.now)] {
            if let Some(value) = value {
                text.push_str(&format!("    {sign} {}\n", shown(value)));
            }
        }
    }
    text
}

fn state(row: &ActionRow) -> String {
    let means = match row.state {
        State::Pending => "people have to decide",
        State::Approved => "it was signed, and is done when the run goes on",
        State::Held => "it was signed, and held before it was done: people have to decide anew",
        State::Executing => "it was handed over",
        State::Unknown => "it was handed over, and nobody saw what came of it",
        State::Succeeded => "it happened",
        State::Failed => "it did not happen, and will not",
        State::Rejected => "a person said no",
        State::Expired => "nobody decided, or nobody started it, in time",
        State::Edited => "another action stands in its place",
        State::Drifted => "what was signed is no longer what would happen",
        State::Cancelled => "its run was ended first",
        State::Superseded if row.wants_change() => "a person asked for a change first",
        State::Superseded => "a later run on its thread asked about the same",
        State::Answered => "a person answered in words, and nothing was done",
    };
    format!("{}: {means}{}", row.state, by_whom(row))
}

fn expires(row: &ActionRow) -> String {
    let at = row.action.said.expires_ms;
    let shown = time(at);
    match at.checked_sub(now_ms()) {
        Some(left) if row.state.is_undecided() || row.state == State::Approved => {
            format!("{shown} ({} left)", duration(left / 1_000))
        }
        _ => shown,
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn needs(row: &ActionRow) -> String {
    let said = &row.action.said;
    let mut text = count(u64::from(said.quorum), "approval");
    if said.quorum > 1 {
        text.push_str(&format!(
            " of different people ({} so far)",
            row.votes.len()
        ));
    }
    if said.not_by_requester {
        text.push_str(", not of whoever asked for it");
    }
    if said.verified {
        text.push_str(", of people whose identity was verified");
    }
    text
}

/// What became of it so far.
fn history(row: &ActionRow) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some((from, by)) = &row.action.said.edited {
        let by = printable_line(by, LINE);
        facts.push(("edited", format!("by {by}, in place of {from}")));
    }
    for vote in &row.votes {
        let by = printable(&signer(&vote.by));
        facts.push(("approved", format!("by {by}, {}", time(vote.at_ms))));
    }
    if row.sending.times > 0 {
        let (times, at) = (row.sending.times, time(row.sending.at_ms));
        let times = count(times, "time");
        facts.push(("sent", format!("{times}, last {at}")));
    }
    if let Some(ended) = row.ended.as_ref().filter(|ended| !ended.why.is_empty()) {
        facts.push(("why", printable_line(&ended.why, LINE)));
    }
    if let Some(receipt) = &row.receipt {
        let receipt = printable_json(receipt.clone());
        facts.push(("receipt", printable_line(&receipt, LINE)));
    }
    if let Some(due_ms) = row.due_ms {
        facts.push(("look at", time(due_ms)));
    }
    if let Some(next) = row.replaced_by {
        facts.push(("became", next.to_string()));
    }
    if row.closes {
        let closed = "what it is about is closed for the thread until somebody reopens it";
        facts.push(("closes", closed.to_owned()));
    }
    facts
}

/// The arguments one by one, texts as they read with their line breaks, and what is odd about them.
fn readable(args: View<'_>) -> (String, Vec<String>) {
    let mut odd = Vec::new();
    let mut shown = |shown: Shown| {
        odd.extend(shown.warnings.iter().map(ToString::to_string));
        shown.text
    };
    let Shape::Object(entries) = args.shape() else {
        let text = shown(Shown::block(&args.to_string(), BLOCK));
        return (format!("  {text}\n"), odd);
    };
    let mut text = String::new();
    for (name, value) in entries {
        let name = shown(Shown::field(name, LINE));
        let value = match value.as_str() {
            Some(value) => shown(Shown::block(value, BLOCK)).replace('\n', "\n    "),
            None => shown(Shown::block(&value.to_string(), BLOCK)),
        };
        text.push_str(&format!("  {name} = {value}\n"));
    }
    match text.is_empty() {
        true => ("  none\n".to_owned(), odd),
        false => (text, odd),
    }
}

/// The commands that are left.
fn what_now(row: &ActionRow, flag: &str) -> String {
    let (id, digest) = (row.id(), &row.digest);
    let run = printable_line(&row.action.said.run.run, LINE);
    match row.state {
        State::Pending | State::Held => format!(
            "\nto approve  {}\nto refuse   paraph approvals reject {id} --digest {digest}{flag} --reason \"…\"\n\
             to change   paraph approvals edit {id} --digest {digest}{flag}\n\
             to ask for a change   paraph approvals ask-change {id} --digest {digest}{flag} --reason \"…\"\n\
             to answer in words    paraph approvals respond {id} --digest {digest}{flag} --answer \"…\"\n",
            approve_command(row, flag)
        ),
        State::Unknown | State::Executing => format!(
            "\nto look     paraph runs resume {run}{flag}   (asks the tool, if it can tell)\n\
             to settle   paraph approvals settle {id} --digest {digest}{flag} --happened RECEIPT --reason \"…\"\n\
             \x20           paraph approvals settle {id} --digest {digest}{flag} --did-not-happen --reason \"…\"\n{}",
            match row.state {
                State::Executing => "            (once the process that handed it over is gone)\n",
                _ => "",
            }
        ),
        State::Approved => format!("\nto go on    paraph runs resume {run}{flag}\n"),
        State::Rejected | State::Expired if row.closes => {
            format!("\nto reopen   paraph approvals reopen {id}{flag}\n")
        }
        _ => String::new(),
    }
}
