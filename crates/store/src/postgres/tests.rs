//! The two schemas are one.

use std::collections::BTreeMap;

/// Tables with their columns, read from statements as they are written in this crate.
fn tables(sql: &str) -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut open = None;
    for line in sql.lines() {
        if let Some(name) = line.strip_prefix("CREATE TABLE ") {
            open = name.split(' ').next().map(str::to_owned);
        } else if line.starts_with(')') {
            open = None;
        } else if let (Some(table), Some(column)) = (&open, line.trim().split(' ').next())
            && column.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        {
            tables
                .entry(table.clone())
                .or_default()
                .push(column.to_owned());
        }
    }
    tables
}

#[test]
fn both_databases_have_the_same_tables_and_columns() {
    let mut postgres = tables(include_str!("v1.sql"));
    let own = ["mark", "paraph_format"].map(|table| postgres.remove(table).is_some());
    assert_eq!(own, [true, true]);
    let sqlite = tables(include_str!("../sqlite/v1.sql"));
    assert_eq!(postgres, sqlite);
    assert!(sqlite.len() >= 12, "{sqlite:?}");
}
