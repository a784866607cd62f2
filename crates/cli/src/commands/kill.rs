//! `paraph kill …`: the switches that stop agents, tools or everything, in all processes on a store.

use super::{config_of, opened};
use crate::args::{KillCommand, KillOffArgs, KillOnArgs};
use crate::cells::{count, time};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::person::local;
use crate::stores::{Kept, missing};
use crate::terminal::{printable, printable_line};
use paraph_agents::builtin;
use paraph_gateway::{ApprovalError, Approvals, Kill, State};
use paraph_graph::RunQuery;
use serde::Serialize;

/// How many runs are looked through for an agent's name.
const MOST_RUNS: usize = 10_000;

/// The longest reason in a column, in characters.
const REASON: usize = 200;

pub(super) fn run(command: &KillCommand) -> Result<u8, Failure> {
    match command {
        // A switch may be put on before anything has run.
        KillCommand::On(args) => {
            let config = config_of(&args.out.store)?;
            let was_missing = missing(&config)?;
            opened(config, async |kept, config| {
                let code = on(&kept, &local(&config.environment), args).await?;
                if let Some(missing) = was_missing {
                    note(&printable(&format!(
                        "careful: {missing}, and it was made for this switch: runs on other stores go on"
                    )));
                }
                Ok(code)
            })
        }
        KillCommand::Off(args) => opened(config_of(&args.out.store)?, async |kept, config| {
            off(&kept, &local(&config.environment), args).await
        }),
        KillCommand::Status(args) => {
            let config = config_of(&args.out.store)?;
            match missing(&config)? {
                Some(missing) => {
                    note(&printable(&missing));
                    told(&[], args.out.json)
                }
                None => opened(config, async |kept, _| {
                    told(&desk(&kept).kills().await.map_err(refused)?, args.out.json)
                }),
            }
        }
    }
}

#[derive(Serialize)]
struct Switched<'a> {
    scope: &'a str,
    on: bool,
    /// How many actions that were signed and not started are held now.
    held: usize,
}

async fn on(kept: &Kept, by: &str, args: &KillOnArgs) -> Result<u8, Failure> {
    let scope = args.scope.trim();
    warn_of_strangers(kept, scope).await;
    let held = desk(kept).kill(scope, by, &args.reason).await;
    let held = held.map_err(refused)?;
    if args.out.json {
        print_json(&Switched {
            scope,
            on: true,
            held,
        })?;
        return Ok(FINISHED);
    }
    let mut text =
        format!("the kill switch is on for {scope}: no effect within it starts any more");
    if held > 0 {
        let held = count(held as u64, "action");
        text.push_str(&format!(
            "; {held} approved and not started: people decide anew"
        ));
    }
    let flag = kept.flag.as_deref().unwrap_or_default();
    text.push_str(&format!(
        "\nit stays on until: paraph kill off --scope {}{flag}",
        crate::stores::quoted(scope)
    ));
    print(&printable(&text))?;
    Ok(FINISHED)
}

async fn off(kept: &Kept, by: &str, args: &KillOffArgs) -> Result<u8, Failure> {
    let scope = args.scope.trim();
    let desk = desk(kept);
    let was_on = desk.kills().await.map_err(refused)?;
    if !was_on.iter().any(|kill| kill.scope == scope) {
        // A mistyped scope must not look like a switch that was taken off.
        let known: Vec<_> = was_on.iter().map(|kill| kill.scope.as_str()).collect();
        let there_are = match known.is_empty() {
            true => "none is on".to_owned(),
            false => format!("on are: {}", known.join(", ")),
        };
        return Err(Failure::Usage(format!(
            "--scope: no kill switch is on for `{scope}` ({there_are})"
        )));
    }
    let held = desk.unkill(scope, by).await.map_err(refused)?;
    if args.out.json {
        print_json(&Switched {
            scope,
            on: false,
            held,
        })?;
        return Ok(FINISHED);
    }
    let left = desk.kills().await.map_err(refused)?;
    let mut text = format!("the kill switch is off for {scope}");
    if held > 0 {
        let held = count(held as u64, "action");
        text.push_str(&format!(
            "; {held} approved and not started: people decide anew"
        ));
    }
    if !left.is_empty() {
        let left: Vec<_> = left.iter().map(|kill| kill.scope.as_str()).collect();
        text.push_str(&format!("; still on: {}", left.join(", ")));
    }
    print(&printable(&text))?;
    Ok(FINISHED)
}

/// Says so if the store has seen nobody of a scope's name: a switch for a mistyped one stops nothing.
async fn warn_of_strangers(kept: &Kept, scope: &str) {
    let rows = desk(kept).list(&State::ALL).await.unwrap_or_default();
    let said = || rows.iter().map(|row| &row.action.said);
    let (what, name, seen) = match scope.split_once(':') {
        Some(("agent", name)) => {
            let newest = RunQuery {
                limit: Some(MOST_RUNS),
                ..RunQuery::default()
            };
            let runs = kept.threads.runs(&newest).await.unwrap_or_default();
            let seen = builtin().iter().any(|agent| agent.name == name)
                || runs.iter().any(|run| run.graph == name)
                || said().any(|said| said.run.agent == name);
            ("agent", name, seen)
        }
        Some(("tool", name)) => {
            let mut tools = builtin().into_iter().flat_map(|agent| agent.tools);
            let seen = tools.any(|tool| tool.name == name) || said().any(|said| said.tool == name);
            ("tool", name, seen)
        }
        _ => return,
    };
    if !seen {
        note(&printable(&format!(
            "warning: no {what} of the name `{name}` is known in {}; the switch is for exactly that name",
            kept.shown
        )));
    }
}

#[derive(Serialize)]
struct SwitchJson<'a> {
    scope: &'a str,
    by: &'a str,
    reason: &'a str,
    at: String,
}

/// The switches that are on.
fn told(kills: &[Kill], json: bool) -> Result<u8, Failure> {
    if json {
        let all = kills.iter().map(|kill| SwitchJson {
            scope: &kill.scope,
            by: &kill.by,
            reason: &kill.reason,
            at: time(kill.at_ms),
        });
        print_json(&all.collect::<Vec<_>>())?;
        return Ok(FINISHED);
    }
    if kills.is_empty() {
        note("no kill switch is on");
        return Ok(FINISHED);
    }
    let mut lines = vec![
        ["SCOPE", "BY", "SINCE", "REASON"]
            .map(str::to_owned)
            .to_vec(),
    ];
    lines.extend(kills.iter().map(line));
    print(&table(&lines))?;
    Ok(FINISHED)
}

fn line(kill: &Kill) -> Vec<String> {
    vec![
        printable_line(&kill.scope, REASON),
        printable_line(&kill.by, REASON),
        time(kill.at_ms),
        printable_line(&kill.reason, REASON),
    ]
}

fn desk(kept: &Kept) -> Approvals {
    kept.desk()
}

fn refused(error: ApprovalError) -> Failure {
    match error {
        ApprovalError::BadScope { .. } => Failure::Usage(format!("--scope: {error}")),
        ApprovalError::NoReason => {
            Failure::usage("--reason: say why, for whoever meets the switch")
        }
        error => Failure::Broken(error.to_string()),
    }
}
