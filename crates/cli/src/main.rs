//! The command `paraph`: parse, wire, call, print.
//!
//! The composition root: only this crate names concrete models and stores, and only it reads the
//! environment (`config/environment.rs`). It decides nothing that a library could decide.
//!
//! # Layout
//! - `args`: the command line. `commands`: one file for each command.
//! - `config`: settings with their sources: flags, environment, `.env`, `paraph.toml`, defaults.
//! - `stores`: the store that the settings name. `started`: with what a run was started, as it is stored
//!   with the run. `pieces`: a state from what is stored of it. `portable`: a thread as one JSON document.
//! - `cells`: what listings show in a cell.
//! - `choice`: which model runs, and what it costs.
//! - `application`: an agent that can be run, whichever it is; `agent_file`: one that stands in a TOML file, read and
//!   checked. `tools`: what such agents can be given, made from the configuration. `mcp`: the servers that they use.
//! - `output`, `terminal`, `trace`, `lines`: standard output, what a terminal can show, the live trace
//!   on standard error, and events as JSON lines.
//! - `corpus`: the issues that agents may cite, ready to be searched; `tracker`: where they come from.
//! - `patience`: opening files that may keep a reader waiting. `writing`: where files for output really are.
//! - `signals`, `logging`: interrupts, and the log of the libraries.
//! - `person`, `hook`: who decides here, and whom the settings want told when something waits. `anchors`: where those
//!   of the audit are kept.
//! - `failure`: what ends the program, with its exit code. `suggest`: "did you mean".

mod agent_file;
mod anchors;
mod application;
mod args;
mod cells;
mod choice;
mod commands;
mod config;
mod corpus;
mod failure;
mod hook;
mod lines;
mod logging;
mod mcp;
mod output;
mod patience;
mod person;
mod pieces;
mod portable;
mod research;
mod signals;
mod started;
mod stores;
mod suggest;
mod terminal;
mod tools;
mod trace;
mod tracker;
mod triage;
mod writing;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        // Help and version are no mistakes: clap knows where to print what, and the exit code.
        Err(error) => {
            let _ = error.print();
            if let Some(hint) = args::hint(&error) {
                output::note(&hint);
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(failure::USAGE));
        }
    };
    match commands::dispatch(args) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
