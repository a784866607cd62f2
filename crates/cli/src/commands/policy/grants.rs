//! `paraph policy grants`, `revoke` and `restore`: the standing grants of agents, how far they are used up, and how a
//! person takes one back without touching the policy.

use super::explain::agent_of;
use crate::agent_file::{is_file, policies};
use crate::args::{GrantsArgs, RevokeArgs, WhichGrant};
use crate::cells::{count, now_ms, time};
use crate::commands::{config_of, opened};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::person::local;
use crate::stores::{Kept, missing};
use crate::suggest::hint;
use crate::terminal::{printable, printable_line};
use paraph_agents::DeclaredPolicy;
use paraph_gateway::{ApprovalError, Grant, GrantUse, Revocation};
use serde::Serialize;
use std::path::Path;

/// The longest text of a cell, in characters.
const CELL: usize = 200;

/// How a grant stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    InForce,
    /// It signs nothing more today.
    UsedUp,
    Expired,
    Revoked,
}

impl Standing {
    fn of(grant: &Grant, used: &GrantUse, revoked: bool, now_ms: u64) -> Standing {
        let sum = grant.sum_per_day.as_ref();
        let is_used_up = grant.per_day.is_some_and(|most| used.today >= most)
            || sum.is_some_and(|(_, most)| used.sum_today >= *most);
        match (revoked, now_ms >= grant.until, is_used_up) {
            (true, _, _) => Standing::Revoked,
            (false, true, _) => Standing::Expired,
            (false, false, true) => Standing::UsedUp,
            (false, false, false) => Standing::InForce,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Standing::InForce => "in force",
            Standing::UsedUp => "used up today",
            Standing::Expired => "expired",
            Standing::Revoked => "revoked",
        }
    }
}

/// A grant as the listing has it in JSON.
#[derive(Serialize)]
struct Listed<'a> {
    agent: &'a str,
    state: Standing,
    until: String,
    used: GrantUse,
    revoked: Option<RevokedJson<'a>>,
    /// All that the policy says of it.
    grant: &'a Grant,
}

#[derive(Serialize)]
struct RevokedJson<'a> {
    by: &'a str,
    reason: &'a str,
    at: String,
}

pub(super) fn grants(args: &GrantsArgs) -> Result<u8, Failure> {
    let found = policies(&args.file)?;
    let chosen = match &args.agent {
        Some(name) => vec![agent_of(&found, Some(name))?],
        None => found.iter().collect(),
    };
    let config = config_of(&args.out.store)?;
    if missing(&config)?.is_some() {
        return told(args, listed(&chosen, &[], &[])?);
    }
    opened(config, async |kept, _| {
        let desk = kept.desk();
        let revocations = desk.revocations().await.map_err(refused)?;
        let mut uses = Vec::new();
        for grant in chosen.iter().flat_map(|one| &one.spec.grants) {
            let used = desk.grant_use(&args.tenant, &grant.name).await;
            uses.push(used.map_err(refused)?);
        }
        told(args, listed(&chosen, &uses, &revocations)?)
    })
}

/// The grants of these agents. `uses` has one for each, or none at all.
fn listed<'a>(
    chosen: &[&'a DeclaredPolicy],
    uses: &[GrantUse],
    revocations: &'a [Revocation],
) -> Result<Vec<Listed<'a>>, Failure> {
    let now_ms = now_ms();
    let grants = chosen.iter().flat_map(|one| {
        let grants = one.spec.grants.iter();
        grants.map(|grant| (one.agent.as_str(), grant))
    });
    let listed = grants.enumerate().map(|(index, (agent, grant))| {
        let used = uses.get(index).cloned().unwrap_or_default();
        let revoked = revocations
            .iter()
            .find(|revoked| revoked.agent == agent && revoked.grant == grant.name);
        Listed {
            agent,
            state: Standing::of(grant, &used, revoked.is_some(), now_ms),
            until: time(grant.until),
            used,
            revoked: revoked.map(|revoked| RevokedJson {
                by: &revoked.by,
                reason: &revoked.reason,
                at: time(revoked.at_ms),
            }),
            grant,
        }
    });
    Ok(listed.collect())
}

fn told(args: &GrantsArgs, listed: Vec<Listed<'_>>) -> Result<u8, Failure> {
    if args.out.json {
        print_json(&listed)?;
        return Ok(FINISHED);
    }
    if listed.is_empty() {
        note("no standing grants: whatever has to be approved, people approve");
        return Ok(FINISHED);
    }
    let head = ["AGENT", "GRANT", "TOOL", "STATE", "UNTIL", "USED", "SIGNS"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(listed.iter().map(line));
    print(&table(&lines))?;
    for one in &listed {
        if let Some(revoked) = &one.revoked {
            note(&printable(&format!(
                "`{}` of `{}` was revoked by {} ({}): {}",
                one.grant.name, one.agent, revoked.by, revoked.at, revoked.reason
            )));
        }
    }
    Ok(FINISHED)
}

fn line(one: &Listed<'_>) -> Vec<String> {
    let grant = one.grant;
    let cells = [
        one.agent,
        &grant.name,
        &grant.tool,
        one.state.words(),
        &one.until,
        &used(grant, &one.used),
        &scope(grant),
    ];
    cells.map(|cell| printable_line(cell, CELL)).to_vec()
}

/// How much of its caps is used.
fn used(grant: &Grant, used: &GrantUse) -> String {
    let mut parts = Vec::new();
    if let Some(most) = grant.per_day {
        parts.push(format!("{} of {most} today", used.today));
    }
    if let Some((pointer, most)) = &grant.sum_per_day {
        parts.push(format!("{pointer} {} of {most} today", used.sum_today));
    }
    if let Some(most) = grant.per_thread {
        let threads = count(used.threads.len() as u64, "thread");
        let full = used.threads.values().filter(|count| **count >= most);
        parts.push(format!(
            "{threads}, {} of them used up ({most} each)",
            full.count()
        ));
    }
    parts.join("; ")
}

/// What it signs.
fn scope(grant: &Grant) -> String {
    let caps = grant.at_most.iter();
    let mut parts: Vec<_> = caps
        .map(|(pointer, most)| format!("{pointer} from 0 to {most}"))
        .collect();
    parts.extend(grant.when.iter().map(ToString::to_string));
    let scopes = [
        ("agents", &grant.agents),
        ("users", &grant.users),
        ("tenants", &grant.tenants),
    ];
    for (what, names) in scopes {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    if grant.after_untrusted {
        parts.push("also after untrusted text was read".to_owned());
    }
    parts.join("; ")
}

pub(super) fn revoke(args: &RevokeArgs) -> Result<u8, Failure> {
    let agent = named(&args.which)?;
    // A grant may be revoked before anything has run.
    opened(config_of(&args.out.store)?, async |kept, config| {
        let by = local(&config.environment);
        let which = (agent.as_str(), args.which.grant.as_str());
        let held = kept.desk().revoke(which, &by, &args.reason).await;
        changed(&kept, args, which, (held.map_err(refused)?, true))
    })
}

pub(super) fn restore(args: &RevokeArgs) -> Result<u8, Failure> {
    let agent = named(&args.which)?;
    opened(config_of(&args.out.store)?, async |kept, config| {
        let by = local(&config.environment);
        let which = (agent.as_str(), args.which.grant.as_str());
        let desk = kept.desk();
        let revocations = desk.revocations().await.map_err(refused)?;
        if !revocations
            .iter()
            .any(|one| (one.agent.as_str(), one.grant.as_str()) == which)
        {
            return Err(Failure::Usage(format!(
                "the grant `{}` of the agent `{agent}` is not revoked",
                printable_line(&args.which.grant, CELL)
            )));
        }
        let held = desk.restore(which, &by, &args.reason).await;
        changed(&kept, args, which, (held.map_err(refused)?, false))
    })
}

#[derive(Serialize)]
struct Changed<'a> {
    agent: &'a str,
    grant: &'a str,
    revoked: bool,
    /// How many actions that it had signed and nobody had started are held now.
    held: usize,
}

fn changed(
    kept: &Kept,
    args: &RevokeArgs,
    (agent, grant): (&str, &str),
    (held, revoked): (usize, bool),
) -> Result<u8, Failure> {
    if args.out.json {
        print_json(&Changed {
            agent,
            grant,
            revoked,
            held,
        })?;
        return Ok(FINISHED);
    }
    let mut text = match revoked {
        true => format!(
            "the grant `{grant}` of the agent `{agent}` is revoked: it signs nothing any more"
        ),
        false => format!(
            "the grant `{grant}` of the agent `{agent}` is in force again, as far as its policy says"
        ),
    };
    if held > 0 {
        let held = count(held as u64, "action");
        text.push_str(&format!(
            "; {held} signed and not started: people decide anew"
        ));
    }
    if revoked {
        let flag = kept.flag.as_deref().unwrap_or_default();
        let agent = crate::stores::quoted(&args.which.agent.display().to_string());
        let grant = crate::stores::quoted(grant);
        text.push_str(&format!(
            "\nit stays so until: paraph policy restore {agent} {grant} --reason …{flag}"
        ));
    }
    print(&printable(&text))?;
    Ok(FINISHED)
}

/// The agent whose grant is meant. In a file it has to be there; of an agent that is only named nothing is looked up.
fn named(which: &WhichGrant) -> Result<String, Failure> {
    let path: &Path = &which.agent;
    let name = path.display().to_string();
    if !is_file(&name) {
        note(&format!(
            "note: whether the agent `{}` has such a grant was not looked up: only its file knows",
            printable_line(&name, CELL)
        ));
        return Ok(name);
    }
    let found = policies(path)?;
    let declared = match &which.of {
        Some(name) => agent_of(&found, Some(name))?,
        None => owner(&found, &which.grant)?,
    };
    let grants = &declared.spec.grants;
    match grants.iter().any(|grant| grant.name == which.grant) {
        true => Ok(declared.agent.clone()),
        false => Err(absent(std::slice::from_ref(declared), &which.grant)),
    }
}

/// The one agent of a file that has this grant.
fn owner<'p>(found: &'p [DeclaredPolicy], grant: &str) -> Result<&'p DeclaredPolicy, Failure> {
    let has = |one: &&DeclaredPolicy| one.spec.grants.iter().any(|own| own.name == grant);
    let mut owners = found.iter().filter(has);
    match (owners.next(), owners.next()) {
        (Some(owner), None) => Ok(owner),
        (None, _) => Err(absent(found, grant)),
        (Some(one), Some(other)) => Err(Failure::Usage(format!(
            "several agents of the file have a grant `{}`: say --agent {} or --agent {}",
            printable_line(grant, CELL),
            one.agent,
            other.agent
        ))),
    }
}

fn absent(looked_at: &[DeclaredPolicy], grant: &str) -> Failure {
    let known = looked_at.iter().flat_map(|one| &one.spec.grants);
    let known: Vec<&str> = known.map(|grant| grant.name.as_str()).collect();
    let hint = hint(grant, known.iter().copied());
    let there = match known.is_empty() {
        true => "there are none".to_owned(),
        false => format!("there are: {}", known.join(", ")),
    };
    Failure::Usage(format!(
        "there is no grant `{}`{hint}\n{there}",
        printable_line(grant, CELL)
    ))
}

fn refused(error: ApprovalError) -> Failure {
    match error {
        ApprovalError::NoReason => Failure::usage("--reason: say why, for the audit"),
        ApprovalError::TooLong { .. } => Failure::Usage(format!("--reason: {error}")),
        ApprovalError::BadName { .. } => Failure::usage(error),
        error => Failure::Broken(error.to_string()),
    }
}
