//! `paraph completions`: what a shell needs to complete our commands.

use crate::args::{Args, CompletionsArgs};
use crate::failure::{FINISHED, Failure};
use clap::CommandFactory as _;

pub(super) fn write(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "paraph", &mut script);
    crate::output::print(&String::from_utf8_lossy(&script))?;
    Ok(FINISHED)
}
