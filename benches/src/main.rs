//! `paraph-bench [--python PATH] [SHAPE[@SETTING]…]`: measures the shapes and prints one table. `benches/run` starts it.
//!
//! `paraph-bench once SHAPE SETTING` runs one shape once and prints the process's peak of memory; the harness starts
//! itself like that. `paraph-bench mcp-server` is the server of the shape `mcp_N`. It judges nothing: a slow run is a row
//! of the table, not a failure.

use std::path::{Path, PathBuf};

use bench::{
    Fault, MCP_SERVER, POSTGRES, Peer, Row, Saver, Setting, Table, count, measure, measure_peak,
    peak_of_this_process, serve_mcp, set_postgres, shapes,
};

#[path = "../../crates/store/tests/cluster/mod.rs"]
mod cluster;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    if let Ok(url) = std::env::var(POSTGRES) {
        set_postgres(url);
    }
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [once, shape, setting] = arguments.as_slice()
        && once == "once"
    {
        return run_once(shape, setting).await;
    }
    if let [mode] = arguments.as_slice()
        && mode == MCP_SERVER
    {
        return serve_mcp();
    }
    let python = take_python(&mut arguments)?;
    let mut wanted = Vec::new();
    if arguments.is_empty() {
        for name in shapes::NAMES {
            wanted.extend(
                shapes::build(name)?
                    .settings()
                    .into_iter()
                    .map(|setting| (name.to_owned(), setting)),
            );
        }
    }
    for argument in &arguments {
        match argument.split_once('@') {
            Some((name, setting)) => {
                let setting = Setting::parse(setting).ok_or("no such setting")?;
                wanted.push((name.to_owned(), setting));
            }
            None => {
                let settings = shapes::build(argument)?.settings();
                wanted.extend(
                    settings
                        .into_iter()
                        .map(|setting| (argument.clone(), setting)),
                );
            }
        }
    }
    let server = serve(&mut wanted);
    let done = bench(&wanted, python).await;
    drop(server);
    done
}

/// Starts a Postgres that syncs what it says it has, where some setting needs one; without one those are left out.
fn serve(wanted: &mut Vec<(String, Setting)>) -> Option<cluster::Cluster> {
    if !wanted.iter().any(|(_, setting)| setting.needs_postgres()) {
        return None;
    }
    let server = cluster::Cluster::durable();
    match &server {
        Some(server) => set_postgres(server.url().trim_end_matches("/postgres").to_owned()),
        None => {
            wanted.retain(|(_, setting)| !setting.needs_postgres());
            println!("Postgres: not measured: there is none here");
        }
    }
    server
}

async fn run_once(shape: &str, setting: &str) -> Result<(), Fault> {
    let setting = Setting::parse(setting).ok_or("no such setting")?;
    let run = shapes::build(shape)?.engine(setting).await?;
    println!("{}", peak_of_this_process()?);
    drop(run);
    Ok(())
}

fn take_python(arguments: &mut Vec<String>) -> Result<Option<PathBuf>, Fault> {
    let Some(at) = arguments.iter().position(|argument| argument == "--python") else {
        return Ok(None);
    };
    arguments.remove(at);
    if at == arguments.len() {
        return Err("--python needs a path".into());
    }
    Ok(Some(arguments.remove(at).into()))
}

async fn bench(wanted: &[(String, Setting)], python: Option<PathBuf>) -> Result<(), Fault> {
    let peer = python.as_deref().map_or(
        Err("no Python with LangGraph was given".into()),
        Peer::start,
    );
    let missing = peer
        .as_ref()
        .err()
        .map(|reason| format!("LangGraph: not measured: {reason}"));
    let mut peer = peer.ok();
    let mut table = Table::default();
    print!("{}", Table::head());
    for (name, setting) in wanted {
        let row = row(name, *setting, peer.as_mut(), python.as_deref()).await?;
        print!("{row}");
        table.0.push(row);
    }
    println!("\n{}", bench::LEGEND);
    for line in table.gaps().into_iter().chain(missing) {
        println!("{line}");
    }
    Ok(())
}

async fn row(
    name: &str,
    setting: Setting,
    peer: Option<&mut Peer>,
    python: Option<&Path>,
) -> Result<Row, Fault> {
    let shape = shapes::build(name)?;
    let times = measure(shape.as_ref(), setting, peer).await?;
    Ok(Row {
        shape: name.to_owned(),
        setting,
        node_runs: shape.node_runs(),
        times,
        counts: count(name, setting)?,
        peak: measure_peak(name, setting)?,
        peer_peak: python.and_then(|python| peer_peak(python, name, setting)),
    })
}

/// The peak of a fresh Python process that runs the shape once; nothing where it was left out or failed.
fn peer_peak(python: &Path, name: &str, setting: Setting) -> Option<usize> {
    let saver = Saver::beside(setting).into_iter().next()?;
    let run = Peer::start(python)
        .ok()?
        .run(name, saver, setting.updates)
        .ok()?;
    Some(run.rss)
}
