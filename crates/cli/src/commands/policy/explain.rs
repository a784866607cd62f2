//! `paraph policy explain`: what the rules decide about one call, which of them decided, and why not the others.

use crate::agent_file::policies;
use crate::args::PolicyExplainArgs;
use crate::cells::{now_ms, time};
use crate::commands::{config_of, opened};
use crate::config::Environment;
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::person::local;
use crate::pieces::{Raw, raw};
use crate::stores::missing;
use crate::suggest::hint;
use crate::terminal::{printable, printable_line};
use paraph_agents::DeclaredPolicy;
use paraph_gateway::{
    Account, Bounds, Json, JsonError, Part, PolicyEngine, Request, Revocation, Shape, Then,
    ToolSpec, Verdict,
};
use serde::Serialize;
use std::io::Read as _;

/// The longest text of a cell, in characters.
const CELL: usize = 300;
/// The longest call that is read, in bytes.
const MAX_CALL: u64 = 1 << 20;

/// A call as it is asked about.
struct Call {
    tool: String,
    args: Json,
}

/// An account in JSON.
#[derive(Serialize)]
struct Report<'a> {
    agent: &'a str,
    tool: &'a str,
    args: Raw,
    user: &'a str,
    tenant: &'a str,
    thread: &'a str,
    at_ms: u64,
    read: &'a [String],
    /// The agent's grants that people have revoked in the store: they sign nothing, whatever the account says of them.
    revoked: Vec<&'a str>,
    #[serde(flatten)]
    account: &'a Account<'a>,
}

pub(super) fn explain(args: &PolicyExplainArgs) -> Result<u8, Failure> {
    let found = policies(&args.file)?;
    let declared = agent_of(&found, args.agent.as_deref())?;
    let text = match args.call.as_str() {
        "-" => from_input()?,
        text => text.to_owned(),
    };
    // A name has no brace in it, and a call begins with one.
    if is_name(&text) {
        let tools = with(declared, &text)?;
        let engine = PolicyEngine::new(declared.policy(&tools), &tools);
        return about_tool(&engine, &text, args.out.json);
    }
    let call = read(&text)?;
    let mut tools = with(declared, &call.tool)?;
    let mut known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    known.sort_unstable();
    if let Some(unknown) = args.read.iter().find(|name| declared.tool(name).is_none()) {
        let hint = hint(unknown, known.iter().copied());
        return Err(Failure::Usage(format!(
            "--read: the agent `{}` has no tool `{}`{hint}",
            declared.agent,
            printable_line(unknown, CELL)
        )));
    }
    // What was read from may be a tool that only an MCP server has: the rules about it count all the same.
    for name in &args.read {
        if !tools.iter().any(|tool| tool.name == *name) {
            tools.extend(declared.tool(name));
        }
    }
    let engine = PolicyEngine::new(declared.policy(&tools), &tools);
    let (tainted, trusted): (Vec<String>, Vec<String>) = args
        .read
        .iter()
        .cloned()
        .partition(|tool| engine.is_untrusted(tool));
    for tool in trusted {
        note(&format!(
            "note: what `{tool}` gives is trusted: `policy.flow.untrusted` does not name it"
        ));
    }
    let mut targets = declared.targets().map_err(Failure::usage)?;
    targets.extend(args.bound.iter().cloned());
    let user = match &args.user {
        Some(user) => user.clone(),
        None => local(&Environment::read(None)?),
    };
    let request = Request {
        tenant: &args.tenant,
        agent: &declared.agent,
        user: &user,
        thread: &args.thread,
        tool: &call.tool,
        args: &call.args,
        tainted: &tainted,
        targets: &targets,
        now_ms: args.at.unwrap_or_else(now_ms),
    };
    let account = engine.account(&request);
    let revoked = revoked(args, &declared.agent)?;
    if args.out.json {
        print_json(&Report {
            agent: &declared.agent,
            tool: &call.tool,
            args: raw(call.args.to_string().as_bytes()).map_err(Failure::Broken)?,
            user: &user,
            tenant: &args.tenant,
            thread: &args.thread,
            at_ms: request.now_ms,
            read: &tainted,
            revoked: revoked.iter().map(|one| one.grant.as_str()).collect(),
            account: &account,
        })?;
    } else {
        print(&printable(&in_words(&call.tool, &account, &revoked)))?;
    }
    Ok(FINISHED)
}

/// The agent that is asked about: the main one, or that of the name.
pub(super) fn agent_of<'p>(
    found: &'p [DeclaredPolicy],
    name: Option<&str>,
) -> Result<&'p DeclaredPolicy, Failure> {
    let chosen = match name {
        None => found.first(),
        Some(name) => found.iter().find(|one| one.agent == name),
    };
    chosen.ok_or_else(|| {
        let name = name.unwrap_or_default();
        let known: Vec<&str> = found.iter().map(|one| one.agent.as_str()).collect();
        let hint = hint(name, known.iter().copied());
        Failure::Usage(format!(
            "--agent: the file has no agent `{}`{hint}\nthere are: {}",
            printable_line(name, CELL),
            known.join(", ")
        ))
    })
}

fn from_input() -> Result<String, Failure> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(MAX_CALL + 1);
    let read = input.read_to_string(&mut text);
    read.map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
    match text.len() as u64 > MAX_CALL {
        true => Err(Failure::Usage(format!(
            "standard input: a call has at most {MAX_CALL} bytes"
        ))),
        false => Ok(text.trim().to_owned()),
    }
}

fn is_name(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !text.is_empty() && text.bytes().all(fine)
}

/// The agent's tools, this one among them.
fn with(declared: &DeclaredPolicy, name: &str) -> Result<Vec<ToolSpec>, Failure> {
    let mut tools = declared.tools.clone();
    let Some(tool) = declared.tool(name) else {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let hint = hint(name, known.iter().copied());
        let there = match known.is_empty() {
            true => "it has none".to_owned(),
            false => format!("there are: {}", known.join(", ")),
        };
        return Err(Failure::Usage(format!(
            "the agent `{}` has no tool `{}`{hint}\n{there}",
            declared.agent,
            printable_line(name, CELL)
        )));
    };
    if !tools.iter().any(|known| known.name == name) {
        note(&format!(
            "note: only its server knows whether there is a tool `{name}`; its level is taken from `levels`"
        ));
        tools.push(tool);
    }
    Ok(tools)
}

/// Reads a call: an object with `tool` and, if there are any, `args`.
fn read(text: &str) -> Result<Call, Failure> {
    const SHAPE: &str = "write {\"tool\": \"NAME\", \"args\": {…}}";
    let bad = |error: JsonError| Failure::Usage(format!("the call is no JSON: {error}; {SHAPE}"));
    let wrong = |what: &str| Failure::Usage(format!("the call {what}; {SHAPE}"));
    let call = Json::read(text, Bounds::default()).map_err(bad)?;
    let Shape::Object(entries) = call.view().shape() else {
        return Err(wrong("is no object"));
    };
    for (key, _) in entries {
        if !["tool", "args"].contains(&key) {
            let key = printable_line(key, CELL);
            return Err(wrong(&format!("has a key `{key}`")));
        }
    }
    let tool = call.view().get("tool").and_then(|tool| tool.as_str());
    let tool = tool.ok_or_else(|| wrong("has no `tool`, or one that is no text"))?;
    let args = match call.view().get("args") {
        None => "{}".to_owned(),
        Some(args) if matches!(args.shape(), Shape::Object(_)) => args.to_string(),
        Some(_) => return Err(wrong("has `args` that are no object")),
    };
    Ok(Call {
        tool: tool.to_owned(),
        args: Json::read(&args, Bounds::default()).map_err(bad)?,
    })
}

fn about_tool(engine: &PolicyEngine, tool: &str, json: bool) -> Result<u8, Failure> {
    #[derive(Serialize)]
    struct About<'a> {
        tool: &'a str,
        says: Vec<String>,
        policy: &'a str,
    }
    let says = engine.explain(tool);
    let policy = engine.hash();
    match json {
        true => print_json(&About { tool, says, policy })?,
        false => {
            let text = format!("{}\npolicy {policy}", says.join("\n"));
            print(&printable(&text))?;
        }
    }
    Ok(FINISHED)
}

/// The grants of an agent that are revoked in the store. Where there is none, nothing is.
fn revoked(args: &PolicyExplainArgs, agent: &str) -> Result<Vec<Revocation>, Failure> {
    let config = config_of(&args.out.store)?;
    if missing(&config)?.is_some() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    opened(config, async |kept, _| {
        let revoked = kept.desk().revocations().await;
        found = revoked.map_err(|error| Failure::Broken(error.to_string()))?;
        Ok(FINISHED)
    })?;
    found.retain(|revoked| revoked.agent == agent);
    Ok(found)
}

fn in_words(tool: &str, account: &Account<'_>, revoked: &[Revocation]) -> String {
    let decision = &account.decision;
    let kind = match account.level {
        Some(level) if level.is_effect() => format!("an effect ({level})"),
        Some(_) => "a tool that only reads".to_owned(),
        None => "not registered".to_owned(),
    };
    let mut text = format!("`{tool}` is {kind}.\n{}\n", sentence(&decision.to_string()));
    if let Verdict::Ask(ask) = decision.verdict {
        let seconds = ask.expires.as_secs();
        text.push_str(&format!("The question stands for {seconds} seconds.\n"));
    }
    for warning in &decision.warnings {
        text.push_str(&sentence(warning));
        text.push('\n');
    }
    text.push_str("\nRules\n");
    let rules: Vec<_> = account
        .rules
        .iter()
        .map(|heard| {
            let part = match heard.part {
                Part::Decides => "decides",
                Part::Overruled => "overruled",
                Part::Silent => "silent",
            };
            let says = match heard.says {
                Then::Allow => "allow",
                Then::Ask(_) => "ask",
                Then::Deny => "deny",
            };
            let cells = [part, says, heard.rule, &printable_line(&heard.why, CELL)];
            row(&cells)
        })
        .collect();
    text.push_str(&listed(&rules));
    if let Some(flow) = &account.flow {
        text.push_str(&format!("\nFlow\n  {flow}\n"));
    }
    if !account.grants.is_empty() {
        text.push_str("\nGrants\n");
        let grants: Vec<_> = account
            .grants
            .iter()
            .map(|heard| match &heard.fit {
                _ if let Some(one) = revoked.iter().find(|one| one.grant == heard.grant) => {
                    let why = format!("by {}, {}: {}", one.by, time(one.at_ms), one.reason);
                    row(&["revoked", heard.grant, &printable_line(&why, CELL)])
                }
                Some(fit) => {
                    let takes = fit.takes.iter();
                    let takes =
                        takes.map(|take| format!("{} of {} ({})", take.by, take.max, take.counter));
                    let takes: Vec<_> = takes.collect();
                    let takes = format!("if there is room: {}", takes.join(", "));
                    row(&["can sign", heard.grant, &printable_line(&takes, CELL)])
                }
                None => row(&["cannot", heard.grant, &printable_line(&heard.why, CELL)]),
            })
            .collect();
        text.push_str(&listed(&grants));
    }
    text.push_str(&format!("\npolicy {}", decision.policy));
    text
}

fn row(cells: &[&str]) -> Vec<String> {
    let first = cells.iter().enumerate().map(|(n, cell)| match n {
        0 => format!("  {cell}"),
        _ => (*cell).to_owned(),
    });
    first.collect()
}

fn listed(rows: &[Vec<String>]) -> String {
    match rows.is_empty() {
        true => "  there is none\n".to_owned(),
        false => table(rows),
    }
}

/// A part of a sentence as a whole one.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}
