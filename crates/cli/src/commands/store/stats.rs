//! `paraph store stats`: how much is stored, per thread and channel.

use crate::args::StatsArgs;
use crate::cells::{bytes, count};
use crate::failure::{FINISHED, Failure};
use crate::output::{note, print, print_json, table};
use crate::stores::{Kept, free_space};
use crate::terminal::printable_line;
use paraph_graph::ThreadStats;
use paraph_store::GatewayCounts;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The longest name that is shown in a column, in characters.
const NAME: usize = 60;
/// How many threads are listed for people; JSON has all.
const SHOWN: usize = 50;

#[derive(Serialize)]
struct Stats<'a> {
    store: &'a str,
    /// Of the file and what belongs to it; nothing on a server.
    file_bytes: Option<u64>,
    disk_free_bytes: Option<u64>,
    /// Stored for all threads.
    bytes: u64,
    /// What the gateway keeps, for all threads; nothing for one of them, and in memory.
    gateway: Option<GatewayJson>,
    threads: Vec<ThreadJson<'a>>,
}

#[derive(Serialize)]
struct GatewayJson {
    calls: u64,
    /// By state.
    actions: BTreeMap<String, u64>,
    wakes: u64,
    kills: u64,
    /// Entries, by tenant.
    audit: BTreeMap<String, u64>,
    bytes: u64,
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    thread: &'a str,
    checkpoints: u64,
    notes: u64,
    events: u64,
    bytes: u64,
    channels: Vec<ChannelJson<'a>>,
}

#[derive(Serialize)]
struct ChannelJson<'a> {
    channel: &'a str,
    bytes: u64,
}

pub(super) async fn stats(kept: &Kept, args: &StatsArgs) -> Result<u8, Failure> {
    if let Some(name) = &args.thread {
        crate::commands::threads::row(kept, name).await?;
    }
    let threads = kept.threads.stats(args.thread.as_deref()).await?;
    let gateway = match (&kept.opened.verify, &args.thread) {
        (Some(verify), None) => Some(gateway(verify.gateway_counts().await?)),
        _ => None,
    };
    let stats = Stats {
        store: &kept.shown,
        file_bytes: kept.file.as_deref().map(file_bytes),
        disk_free_bytes: kept.file.as_deref().and_then(free_space),
        bytes: threads.iter().map(|thread| thread.bytes).sum(),
        gateway,
        threads: threads.iter().map(json).collect(),
    };
    if args.json {
        print_json(&stats)?;
        return Ok(FINISHED);
    }
    kept.warn_of_short_disk();
    print(&in_words(&stats, args.thread.is_some()))?;
    if stats.threads.len() > SHOWN && args.thread.is_none() {
        note(&format!(
            "the {SHOWN} largest of {}; --json has all",
            stats.threads.len()
        ));
    }
    Ok(FINISHED)
}

fn gateway(counts: GatewayCounts) -> GatewayJson {
    GatewayJson {
        calls: counts.calls,
        actions: counts.actions,
        wakes: counts.wakes,
        kills: counts.kills,
        audit: counts.audit,
        bytes: counts.bytes,
    }
}

/// One line about it; none if there is nothing.
fn gateway_in_words(gateway: &GatewayJson) -> String {
    let actions = gateway.actions.values().sum::<u64>();
    let entries = gateway.audit.values().sum::<u64>();
    if gateway.calls + actions + entries == 0 {
        return String::new();
    }
    let states = gateway.actions.iter();
    let states: Vec<_> = states
        .map(|(state, n)| format!("{n} {}", printable_line(state, NAME)))
        .collect();
    let states = match states.is_empty() {
        true => String::new(),
        false => format!(" ({})", states.join(", ")),
    };
    let kills = match gateway.kills {
        0 => String::new(),
        1 => "; 1 kill switch is on".to_owned(),
        n => format!("; {n} kill switches are on"),
    };
    format!(
        "gate   {}, {}{states}, {} of the audit: {}{kills}\n",
        count(gateway.calls, "call"),
        count(actions, "action"),
        count(entries, "row"),
        bytes(gateway.bytes),
    )
}

fn json(stats: &ThreadStats) -> ThreadJson<'_> {
    ThreadJson {
        thread: &stats.thread,
        checkpoints: stats.checkpoints,
        notes: stats.notes,
        events: stats.events,
        bytes: stats.bytes,
        channels: stats
            .channels
            .iter()
            .map(|(channel, bytes)| ChannelJson {
                channel,
                bytes: *bytes,
            })
            .collect(),
    }
}

/// The file, with what of it is not yet written to its place.
fn file_bytes(file: &Path) -> u64 {
    let with = |end: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        std::fs::metadata(name).map_or(0, |found| found.len())
    };
    with("") + with("-wal")
}

fn in_words(stats: &Stats<'_>, one: bool) -> String {
    let mut text = format!("store  {}\n", printable_line(stats.store, 400));
    if let Some(size) = stats.file_bytes {
        let free = stats.disk_free_bytes.map_or_else(String::new, |free| {
            format!(", {} left on its disk", bytes(free))
        });
        text.push_str(&format!("file   {}{free}\n", bytes(size)));
    }
    let threads = count(stats.threads.len() as u64, "thread");
    text.push_str(&format!("data   {} in {threads}\n", bytes(stats.bytes)));
    if let Some(gateway) = &stats.gateway {
        text.push_str(&gateway_in_words(gateway));
    }
    if stats.threads.is_empty() {
        return text;
    }
    let head = ["THREAD", "CHECKPOINTS", "NOTES", "EVENTS", "SIZE"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(stats.threads.iter().take(SHOWN).map(|thread| {
        vec![
            printable_line(thread.thread, NAME),
            thread.checkpoints.to_string(),
            thread.notes.to_string(),
            thread.events.to_string(),
            bytes(thread.bytes),
        ]
    }));
    text.push_str(&table(&lines));
    if let (true, Some(thread)) = (one, stats.threads.first()) {
        let head = ["CHANNEL", "SIZE"].map(str::to_owned).to_vec();
        let channels = thread
            .channels
            .iter()
            .map(|channel| vec![printable_line(channel.channel, NAME), bytes(channel.bytes)]);
        text.push_str(&table(
            &[head].into_iter().chain(channels).collect::<Vec<_>>(),
        ));
    }
    text
}
