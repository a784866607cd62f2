//! Standard output, where only results go, single lines on standard error, and a question there.
//!
//! `println!` would panic when a reader goes away; here that is [`Failure::ClosedPipe`].

use crate::failure::Failure;
use crate::terminal::printable_json;
use serde::Serialize;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

/// Prints a text and a line break.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Writes what is no text, as it is.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Prints a value as JSON, indented by two spaces.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&printable_json(serde_json::to_string_pretty(value)?))
}

/// Says something on standard error. If nobody can read it, nobody is told.
pub(crate) fn note(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
}

/// Rows in columns as wide as their widest cell; the last column is left as it is.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Asks on the terminal, and takes nothing but yes for it. Without a terminal nobody can be asked, and nothing is taken
/// for granted: `what` says what is to be done.
pub(crate) fn confirmed(question: &str, what: &str) -> Result<bool, Failure> {
    let input = io::stdin();
    if !input.is_terminal() {
        return Err(Failure::Usage(format!(
            "there is nobody to ask whether {what}: use --yes"
        )));
    }
    let mut out = io::stderr().lock();
    let _ = write!(out, "{question} [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    input
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::Usage(format!("standard input: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "bb", "c"]), row(["aaaa", "", "a longer text"])];
        assert_eq!(table(&rows), "a     bb  c\naaaa      a longer text\n");
    }
}
