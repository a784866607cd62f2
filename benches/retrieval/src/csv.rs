//! Compressed tables of the data, as rows by the names of their columns.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::Failure;

/// Reads a file that `gzip` has packed.
pub(crate) fn read(path: &Path) -> Result<Vec<BTreeMap<String, String>>, Failure> {
    let unpacked = Command::new("gzip").arg("-dc").arg(path).output()?;
    if !unpacked.status.success() {
        return Err(format!(
            "{}: {}",
            path.display(),
            String::from_utf8_lossy(&unpacked.stderr)
        )
        .into());
    }
    let text = String::from_utf8_lossy(&unpacked.stdout);
    let mut rows = rows(&text).into_iter();
    let names = rows.next().ok_or("a table without a head")?;
    Ok(rows
        .map(|row| names.iter().cloned().zip(row).collect())
        .collect())
}

fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !quoted => {}
            c => field.push(c),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows
}
