//! Whether what was said had been synced before: read from what `strace -f -y` saw of a process.
//!
//! Called by `tests/synced.rs`. A write to a write-ahead log is safe when a sync of that file began after the
//! write had returned, and has returned itself.

use std::collections::HashMap;

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// For each line that tells of a checkpoint: how many writes to logs there were since the one before, and
    /// how many syncs of logs had returned.
    pub saved: Vec<(usize, usize)>,
    /// What was told too early.
    pub early: Vec<Unsynced>,
}

/// A checkpoint that was told of while a write to a log was not on the disk yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsynced {
    /// The line of the trace in which it was told.
    pub line: usize,
    /// How many writes were not synced.
    pub writes: usize,
}

/// Reads a trace of `write`, `pwrite64`, `fsync` and `fdatasync`.
#[must_use]
pub fn read_trace(text: &str) -> Trace {
    let mut reader = Reader::default();
    for (number, line) in text.lines().enumerate() {
        reader.line(number + 1, line);
    }
    reader.trace
}

#[derive(Default)]
struct Reader {
    trace: Trace,
    /// By file: the writes that no sync covers yet; the lines in which they returned.
    pending: HashMap<String, Vec<usize>>,
    /// By process: the call that has not returned, with its file and the line in which it began.
    open: HashMap<String, (Call, String, usize)>,
    since: (usize, usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Write,
    Sync,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        let Some((process, rest)) = line.split_once(char::is_whitespace) else {
            return;
        };
        let rest = rest.trim_start();
        if rest.starts_with("<... ") {
            if let Some((call, file, began)) = self.open.remove(process) {
                self.returned(call, &file, (began, number));
            }
            return;
        }
        let Some((name, arguments)) = rest.split_once('(') else {
            return;
        };
        if name == "write" && arguments.contains(", \"saved ") {
            self.told(number);
        }
        let call = match name {
            "write" | "pwrite64" => Call::Write,
            "fsync" | "fdatasync" => Call::Sync,
            _ => return,
        };
        let file = arguments
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'));
        let Some((file, _)) = file.filter(|(file, _)| file.ends_with("-wal")) else {
            return;
        };
        if rest.ends_with("<unfinished ...>") {
            self.open
                .insert(process.to_owned(), (call, file.to_owned(), number));
        } else {
            self.returned(call, file, (number, number));
        }
    }

    fn returned(&mut self, call: Call, file: &str, (began, now): (usize, usize)) {
        let pending = self.pending.entry(file.to_owned()).or_default();
        match call {
            Call::Write => {
                self.since.0 += 1;
                pending.push(now);
            }
            Call::Sync => {
                self.since.1 += 1;
                pending.retain(|written| *written >= began);
            }
        }
    }

    fn told(&mut self, line: usize) {
        let begun = self
            .open
            .values()
            .filter(|(call, ..)| *call == Call::Write)
            .count();
        let writes = begun + self.pending.values().map(Vec::len).sum::<usize>();
        if writes > 0 {
            self.trace.early.push(Unsynced { line, writes });
        }
        self.trace.saved.push(std::mem::take(&mut self.since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str = "7 pwrite64(9</d/a.db-wal>, \"x\"..., 4096, 32) = 4096\n";
    const SYNC: &str = "7 fdatasync(9</d/a.db-wal>) = 0\n";
    const TOLD: &str = "5 write(1<pipe:[1]>, \"saved 0 0197\"..., 50) = 50\n";

    fn early(lines: &[&str]) -> usize {
        read_trace(&lines.concat()).early.len()
    }

    #[test]
    fn a_line_after_a_sync_is_in_order_and_both_are_counted() {
        let trace = read_trace(&[WRITE, WRITE, SYNC, TOLD, WRITE, SYNC, TOLD].concat());
        assert_eq!(
            trace,
            Trace {
                saved: vec![(2, 1), (1, 1)],
                early: Vec::new(),
            }
        );
    }

    #[test]
    fn a_line_before_its_sync_is_found() {
        assert_eq!(early(&[WRITE, TOLD, SYNC]), 1);
        assert_eq!(early(&[WRITE, SYNC, WRITE, TOLD]), 1);
    }

    #[test]
    fn a_sync_covers_only_what_was_written_before_it_began_and_only_when_it_has_returned() {
        let begins = "7 fdatasync(9</d/a.db-wal> <unfinished ...>\n";
        let returns = "7 <... fdatasync resumed>) = 0\n";
        let other = "8 pwrite64(9</d/a.db-wal>, \"y\"..., 4096, 64) = 4096\n";
        assert_eq!(early(&[WRITE, begins, returns, TOLD]), 0);
        assert_eq!(early(&[WRITE, begins, TOLD, returns]), 1);
        assert_eq!(early(&[WRITE, begins, other, returns, TOLD]), 1);
    }

    #[test]
    fn a_sync_of_another_file_covers_nothing() {
        assert_eq!(early(&[WRITE, "7 fdatasync(8</d/a.db>) = 0\n", TOLD]), 1);
    }
}
