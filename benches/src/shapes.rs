//! All shapes by name. The binaries pick from here.

use std::num::NonZeroUsize;

use crate::{Fault, Shape};

mod fanout;
mod parallel;
mod react;
mod sequential;
mod wide;

/// The names of all shapes, in the order of the table.
pub const NAMES: [&str; 14] = [
    "sequential_10",
    "sequential_1000",
    "sequential_10000",
    "react_10",
    "react_100",
    "react_300",
    "react_1000",
    "fanout_10",
    "fanout_100",
    "wide_25x300",
    "wide_15x600",
    "wide_9x1200",
    "parallel_10",
    "cpu_2",
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
        "react" => react::case(number()?)?,
        "fanout" => fanout::case(number()?)?,
        "wide" => {
            let (lists, letters) = size.split_once('x').ok_or("wide_LISTSxLETTERS")?;
            wide::case(lists.parse()?, letters.parse()?)?
        }
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
