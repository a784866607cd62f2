//! `paraph approvals list`.

use super::{Listed, desk, flag, refused, sweep, without_secrets};
use crate::args::ApprovalsListArgs;
use crate::cells::{count, time};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::Kept;
use crate::suggest::hint;
use crate::terminal::printable_line;
use paraph_gateway::{ActionRow, Approvals, State};

/// The longest name and text that are shown in a column, in characters.
const NAME: usize = 40;
const SAYS: usize = 100;

/// What waits for people.
pub(super) const WAITING: [State; 3] = [State::Pending, State::Held, State::Unknown];

pub(super) async fn list(kept: &Kept, args: &ApprovalsListArgs) -> Result<u8, Failure> {
    let one = args.state.as_deref().map(wanted).transpose()?;
    let states: Vec<State> = match (args.all, one) {
        (true, _) => State::ALL.to_vec(),
        (false, Some(state)) => vec![state],
        (false, None) => WAITING.to_vec(),
    };
    let desk = desk(kept);
    sweep(&desk).await;
    let rows = desk.list(&states).await;
    let rows = rows.map_err(|error| refused(kept, error))?;
    if args.out.json {
        print_json(&rows.iter().map(Listed::of).collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    if rows.is_empty() {
        note(match (args.all, one) {
            (true, _) => "no agent has asked for anything yet",
            (false, Some(_)) => "no action is in this state",
            (false, None) => "nothing waits (--all lists what was decided)",
        });
    } else {
        listed(kept, &rows)?;
    }
    if !args.all && one.is_none() {
        tell_of_others(kept, &desk).await?;
    }
    Ok(FINISHED)
}

fn listed(kept: &Kept, rows: &[ActionRow]) -> Result<(), Failure> {
    let head = [
        "ID", "DIGEST", "STATE", "AGENT", "TOOL", "EXPIRES", "THREAD", "WHAT",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(line));
    print(&table(&lines))?;
    if let Some(row) = rows.iter().find(|row| WAITING.contains(&row.state)) {
        note(&format!(
            "look at one: paraph approvals show {}{}",
            row.id(),
            flag(kept)
        ));
    }
    Ok(())
}

/// Says how many actions are on their way though nobody has to decide about them: a run that went away leaves them there.
async fn tell_of_others(kept: &Kept, desk: &Approvals) -> Result<(), Failure> {
    for (state, what) in [
        (State::Approved, "approved and not started"),
        (
            State::Executing,
            "under way, or left so by a process that died",
        ),
    ] {
        let rows = desk.list(&[state]).await;
        let rows = rows.map_err(|error| refused(kept, error))?;
        if !rows.is_empty() {
            note(&format!(
                "{} {what}: paraph approvals list --state {state}{}",
                count(rows.len() as u64, "action"),
                flag(kept)
            ));
        }
    }
    Ok(())
}

fn wanted(text: &str) -> Result<State, Failure> {
    let found = State::ALL.into_iter().find(|state| state.name() == text);
    found.ok_or_else(|| {
        let known = State::ALL.map(State::name);
        let hint = hint(text, known);
        Failure::Usage(format!(
            "--state: `{text}` is no state of an action{hint} (known: {})",
            known.join(", ")
        ))
    })
}

/// A row of the table.
pub(super) fn line(row: &ActionRow) -> Vec<String> {
    let said = &row.action.said;
    vec![
        row.id().to_string(),
        row.digest.chars().take(super::DIGITS).collect(),
        row.state.to_string(),
        printable_line(&said.run.agent, NAME),
        printable_line(&said.tool, NAME),
        time(said.expires_ms),
        printable_line(&said.run.thread, NAME),
        printable_line(&without_secrets(&said.says), SAYS),
    ]
}
