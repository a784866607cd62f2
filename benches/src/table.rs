//! The result as one table of text. Called by `paraph-bench`; measures nothing.

use std::fmt;

use crate::{Counts, Saver, Setting, Times};

/// All that is known of one shape in one setting.
pub struct Row {
    /// The shape's name.
    pub shape: String,
    /// What was switched on.
    pub setting: Setting,
    /// How many times a node runs.
    pub node_runs: usize,
    /// Medians.
    pub times: Times,
    /// Allocations and bytes.
    pub counts: Counts,
    /// The peak of memory of a process that runs it once, in bytes.
    pub peak: usize,
    /// The same of LangGraph in its default way of saving, where it was measured.
    pub peer_peak: Option<usize>,
}

/// Rows in the order in which they were measured.
#[derive(Default)]
pub struct Table(pub Vec<Row>);

const HEAD: [&str; 12] = [
    "shape",
    "setting",
    "ms",
    "floor",
    "x floor",
    "LangGraph",
    "x ours",
    "its exit",
    "allocs/node",
    "held",
    "peak MB",
    "its peak",
];
const WIDTHS: [usize; 12] = [17, 15, 9, 9, 8, 10, 7, 9, 13, 16, 8, 8];

/// What the columns mean, for below the table.
pub const LEGEND: &str = "\
Milliseconds are medians of five interleaved rounds after one to warm up; ratios only compare columns of one row.
setting     none: no checkpoints; memory: every superstep saved; +updates: each node's update streamed as JSON and read
floor       a plain loop that awaits boxed async functions, moves the same data, and builds the JSON of each change
            once where somebody asks for it
LangGraph   on uvloop: ainvoke, or astream in updates mode, whose updates are Python objects and no JSON; with `memory`
            its default (async) durability, beside it `exit`
allocs/node allocations of a run per node run, in brackets the floor's
held        what the store holds after the run, in brackets how many times the final state's JSON that is
peak        resident memory of a fresh process that runs the shape once";

impl Row {
    fn cells(&self) -> [String; 12] {
        let times = &self.times;
        let peer = |wanted: &[Saver]| {
            let found = times.peer.iter().find(|(saver, _)| wanted.contains(saver));
            found.and_then(|(_, time)| time.as_ref().ok().copied())
        };
        let default = peer(&[Saver::None, Saver::Async]);
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), milliseconds);
        [
            self.shape.clone(),
            self.setting.to_string(),
            milliseconds(times.engine),
            milliseconds(times.floor),
            format!("{:.1}", times.engine / times.floor),
            number(default),
            default.map_or_else(
                || "-".to_owned(),
                |peer| format!("{:.1}", peer / times.engine),
            ),
            number(peer(&[Saver::Exit])),
            self.allocations(),
            self.held(),
            megabytes(self.peak),
            self.peer_peak.map_or_else(|| "-".to_owned(), megabytes),
        ]
    }

    fn allocations(&self) -> String {
        let per_node = |count: usize| count as f64 / self.node_runs.max(1) as f64;
        format!(
            "{:.1} ({:.1})",
            per_node(self.counts.allocations),
            per_node(self.counts.floor_allocations)
        )
    }

    fn held(&self) -> String {
        if !self.setting.memory {
            return "-".to_owned();
        }
        let held = self.counts.held as f64 / 1024.0;
        // Where the state is next to nothing, what each superstep costs is all that is held.
        if self.counts.state < 1024 {
            return format!("{held:.0} kB");
        }
        format!(
            "{held:.0} kB ({:.1}x)",
            self.counts.held as f64 / self.counts.state as f64
        )
    }
}

/// Three digits are all that a median of five tells.
fn milliseconds(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / 1_048_576.0)
}

/// The first two columns are words and stand left, the others are numbers and stand right.
fn line(f: &mut fmt::Formatter<'_>, cells: impl IntoIterator<Item = String>) -> fmt::Result {
    for (at, (cell, width)) in cells.into_iter().zip(WIDTHS).enumerate() {
        match at {
            0 | 1 => write!(f, "{cell:width$}")?,
            _ => write!(f, " {cell:>width$}")?,
        }
    }
    writeln!(f)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, self.cells())
    }
}

impl Table {
    /// The line above the rows.
    pub fn head() -> String {
        struct Head;
        impl fmt::Display for Head {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                line(f, HEAD.map(str::to_owned))
            }
        }
        Head.to_string()
    }

    /// What LangGraph was not measured on, and why; one line each.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps: Vec<String> = Vec::new();
        for row in &self.0 {
            for (saver, time) in &row.times.peer {
                let Err(reason) = time else { continue };
                let gap = format!("LangGraph: {} ({saver}) not measured: {reason}", row.shape);
                if !gaps.contains(&gap) {
                    gaps.push(gap);
                }
            }
        }
        gaps
    }
}
