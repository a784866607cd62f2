//! The result as one table of text. Called by `paraph-bench`; measures nothing.

use std::fmt;

use crate::{Counts, Kept, Saver, Setting, Times};

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

const HEAD: [&str; 13] = [
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
    "its held",
    "peak MB",
    "its peak",
];
const WIDTHS: [usize; 13] = [17, 15, 9, 9, 8, 10, 7, 9, 13, 17, 11, 8, 8];

/// What the columns mean, for below the table.
pub const LEGEND: &str = "\
Milliseconds are medians of five interleaved rounds after one to warm up; ratios only compare columns of one row.
setting     none: no checkpoints; memory: every superstep saved in the process; sqlite-, postgres-: in a fresh store
            on disk, in that durability; +updates: each node's update streamed as JSON and read
floor       a plain loop that awaits boxed async functions, moves the same data, and builds the JSON of each change
            once where somebody asks for it; for a store on disk it then commits the same bytes in as many
            transactions, with the same settings, into a table without meaning
LangGraph   on uvloop: ainvoke, or astream in updates mode, whose updates are Python objects and no JSON; with `memory`
            its default (async) durability, beside it `exit`; for a store on disk `invoke` with its SqliteSaver (WAL,
            synchronous=FULL) or PostgresSaver in the same durability
allocs/node allocations of a run per node run, in brackets the floor's
held        what the store holds after the run, on disk or in memory, in brackets how many times the final state's
            JSON that is; `its held`: LangGraph's on disk
peak        resident memory of a fresh process that runs the shape once";

impl Row {
    fn cells(&self) -> [String; 13] {
        let times = &self.times;
        let peer = |wanted: fn(&Saver) -> bool| {
            let found = times.peer.iter().find(|(saver, _)| wanted(saver));
            found.and_then(|(_, time)| time.as_ref().ok().copied())
        };
        let default = peer(|saver| *saver != Saver::Exit);
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
            number(peer(|saver| *saver == Saver::Exit)),
            self.allocations(),
            self.held(),
            times
                .peer_disk
                .map_or_else(|| "-".to_owned(), |bytes| kilobytes(bytes as f64)),
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
        let (held, state) = match (self.times.disk, self.setting.kept) {
            (Some((bytes, state)), _) => (bytes as f64, state),
            (None, Kept::Memory) => (self.counts.held as f64, self.counts.state),
            (None, _) => return "-".to_owned(),
        };
        // Where the state is next to nothing, what each superstep costs is all that is held.
        if state < 1024 {
            return kilobytes(held);
        }
        format!("{} ({:.1}x)", kilobytes(held), held / state as f64)
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

fn kilobytes(value: f64) -> String {
    format!("{:.0} kB", value / 1024.0)
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
