//! What only a fresh process can tell: its peak of memory, and what it allocated in a build that counts.
//!
//! Called by `paraph-bench`, which starts itself or `paraph-bench-count`, both from the folder it lies in.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::ground::{POSTGRES, postgres};
use crate::{Fault, Setting};

/// What `paraph-bench-count` reports of one run.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Counts {
    /// Allocations and reallocations of the engine's run.
    pub allocations: usize,
    /// The same of the floor's run.
    pub floor_allocations: usize,
    /// Bytes that the store held after the run.
    pub held: usize,
    /// The final state as JSON, in bytes.
    pub state: usize,
}

/// Counts the allocations of one run.
///
/// # Errors
/// When the counting binary is missing, fails, or says something else.
pub fn count(shape: &str, setting: Setting) -> Result<Counts, Fault> {
    let binary = beside("paraph-bench-count")?;
    Ok(serde_json::from_str(&run(
        binary,
        &[shape, &setting.to_string()],
    )?)?)
}

/// The peak of resident memory of a fresh process that runs the shape once, in bytes.
///
/// # Errors
/// When the process fails, or the system does not tell.
pub fn measure_peak(shape: &str, setting: Setting) -> Result<usize, Fault> {
    Ok(
        run(env::current_exe()?, &["once", shape, &setting.to_string()])?
            .trim()
            .parse()?,
    )
}

/// The peak of this process so far, in bytes.
///
/// # Errors
/// Where there is no `/proc`.
pub fn peak_of_this_process() -> Result<usize, Fault> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    let kibibytes: usize = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kibibytes * 1024)
}

/// A binary of this package.
pub(crate) fn beside(name: &str) -> Result<PathBuf, Fault> {
    Ok(env::current_exe()?.with_file_name(name))
}

fn run(binary: PathBuf, arguments: &[&str]) -> Result<String, Fault> {
    let output = Command::new(&binary)
        .args(arguments)
        .envs(postgres().map(|url| (POSTGRES, url)))
        .output()
        .map_err(|fault| format!("{}: {fault}", binary.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{} {}: {said}", binary.display(), arguments.join(" ")).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
