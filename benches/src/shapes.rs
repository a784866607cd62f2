//! All shapes by name. The binaries pick from here.

use std::num::NonZeroUsize;

use self::governed::Governed;
use self::react::Script;
use self::talk::Talk;
use crate::{Fault, Shape};

mod active;
mod fanout;
mod governed;
mod load;
mod mcp;
mod parallel;
mod paused;
mod react;
mod research;
mod sequential;
mod talk;
mod threads;
mod wide;

/// The names of all shapes, in the order of the table.
pub const NAMES: [&str; 27] = [
    "sequential_10",
    "sequential_1000",
    "sequential_10000",
    "react_10",
    "react_100",
    "react_300",
    "react_1000",
    "noise_100",
    "fanout_10",
    "fanout_100",
    "wide_25x300",
    "wide_15x600",
    "wide_9x1200",
    "parallel_10",
    "cpu_2",
    "threads_100x10",
    "active_1000",
    "load_1000",
    "paused_10000",
    "calls_1000",
    "tokens_10000",
    "mcp_1000",
    "allowed_1000",
    "approved_100",
    "rules_1000",
    "digest_4096",
    "research_50",
];

/// Builds the shape with that name.
///
/// # Errors
/// When there is no such shape, or its graph does not build.
pub fn build(name: &str) -> Result<Box<dyn Shape>, Fault> {
    let (kind, size) = name.split_once('_').unwrap_or((name, ""));
    let number = || -> Result<usize, Fault> { Ok(size.parse::<NonZeroUsize>()?.get()) };
    Ok(match kind {
        "sequential" => sequential::case(number()?)?,
        "react" | "noise" => react::case(Script {
            turns: number()?,
            noise: kind == "noise",
        })?,
        "fanout" => fanout::case(number()?)?,
        "wide" => {
            let (lists, letters) = size.split_once('x').ok_or("wide_LISTSxLETTERS")?;
            wide::case(lists.parse()?, letters.parse()?)?
        }
        "threads" => {
            let (threads, turns) = size.split_once('x').ok_or("threads_COUNTxTURNS")?;
            threads::shape(threads.parse()?, turns.parse()?)?
        }
        "active" => active::shape(number()?)?,
        "load" => load::shape(number()?)?,
        "calls" => talk::shape(Talk::Calls(number()?)),
        "tokens" => talk::shape(Talk::Tokens(number()?)),
        "mcp" => mcp::shape(number()?),
        "allowed" => governed::shape(Governed::Allowed(number()?)),
        "approved" => governed::shape(Governed::Approved(number()?)),
        "rules" => governed::shape(Governed::Rules(number()?)),
        "digest" => governed::shape(Governed::Digest(number()?)),
        "research" => research::shape(number()?),
        "paused" => paused::shape(number()?)?,
        "parallel" => parallel::waiting(number()?)?,
        "cpu" => parallel::spinning(number()?)?,
        _ => {
            return Err(format!(
                "no shape is called `{name}`; there are: {}",
                NAMES.join(", ")
            )
            .into());
        }
    })
}
