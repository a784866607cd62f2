//! Standard output, where only results go, and single lines on standard error.
//!
//! `println!` would panic when a reader goes away; here that is [`Failure::ClosedPipe`].

use crate::failure::Failure;
use crate::terminal::printable_json;
use serde::Serialize;
use std::io::Write as _;

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
