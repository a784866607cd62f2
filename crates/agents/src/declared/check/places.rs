//! Where keys, entries and pointers of a file stand in its text.
//!
//! The checks ask for the place of what they find wrong. Nothing is judged here.

use super::Whose;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Where keys and entries stand in the text.
pub(super) struct Places<'t>(pub(super) &'t DeTable<'t>);

impl Places<'_> {
    /// Where a key's value stands, or as much of the way there as there is.
    pub(super) fn of(&self, whose: Whose<'_>, path: &[&str]) -> Range<usize> {
        self.find(whose, path).0
    }

    /// Where an entry of a list stands: a text, or a table of that name.
    pub(super) fn entry(&self, whose: Whose<'_>, path: &[&str], entry: &str) -> Range<usize> {
        let (at, value) = self.find(whose, path);
        let Some(DeValue::Array(items)) = value else {
            return at;
        };
        let is = |item: &DeValue<'_>| match item {
            DeValue::String(text) => text == entry,
            DeValue::Table(table) => table
                .get("name")
                .is_some_and(|name| name.get_ref().as_str() == Some(entry)),
            _ => false,
        };
        let found = items.iter().find(|item| is(item.get_ref()));
        found.map_or(at, |item| item.span())
    }

    fn find(&self, whose: Whose<'_>, path: &[&str]) -> (Range<usize>, Option<&DeValue<'_>>) {
        let above = whose.0.map(|name| ["agents", name]);
        let way = above.iter().flatten().chain(path);
        let (mut table, mut items, mut at, mut value) = (Some(self.0), None, 0..0, None);
        for name in way {
            let (named, found) = match (table, items) {
                (Some(table), _) => match table.get_key_value(*name) {
                    Some((key, found)) => (Some(key.span()), found),
                    None => return (at, None),
                },
                (None, Some(items)) => match place_in(items, name) {
                    Some(found) => (None, found),
                    None => return (at, None),
                },
                (None, None) => return (at, None),
            };
            table = found.get_ref().as_table();
            items = found.get_ref().as_array();
            // A table is shown by its name: where it begins may be far above what is wrong.
            at = match named {
                Some(named) if table.is_some() => named,
                _ => found.span(),
            };
            value = Some(found.get_ref());
        }
        (at, value)
    }

    /// Where in a rule, a grant or a binding a pointer is written: the first such place, from there on.
    pub(super) fn pointing(&self, whose: Whose<'_>, path: &[&str], pointer: &str) -> Vec<String> {
        let Some(DeValue::Table(part)) = self.find(whose, path).1 else {
            return Vec::new();
        };
        let written = |table: &DeTable<'_>| {
            let found = table.get("pointer");
            found.is_some_and(|found| found.get_ref().as_str() == Some(pointer))
        };
        let items = |key: &str| match part.get(key).map(Spanned::get_ref) {
            Some(DeValue::Array(items)) => items.iter().map(Spanned::get_ref).collect(),
            _ => Vec::new(),
        };
        let condition = |item: &&DeValue<'_>| item.as_table().is_some_and(written);
        if let Some(place) = items("when").iter().position(condition) {
            return vec![
                "when".to_owned(),
                format!("[{place}]"),
                "pointer".to_owned(),
            ];
        }
        let cap = |item: &&DeValue<'_>| first_text(item) == Some(pointer);
        if let Some(place) = items("at_most").iter().position(cap) {
            return vec!["at_most".to_owned(), format!("[{place}]")];
        }
        let sum = part.get("sum_per_day").map(Spanned::get_ref);
        match sum.and_then(first_text) == Some(pointer) {
            true => vec!["sum_per_day".to_owned()],
            false if written(part) => vec!["pointer".to_owned()],
            false => Vec::new(),
        }
    }

    /// The places in a list at which tables stand.
    pub(super) fn tables(&self, whose: Whose<'_>, path: &[&str]) -> Vec<usize> {
        let Some(DeValue::Array(items)) = self.find(whose, path).1 else {
            return Vec::new();
        };
        let all = items.iter().enumerate();
        let tables = all.filter(|(_, item)| item.get_ref().is_table());
        tables.map(|(index, _)| index).collect()
    }
}

/// The text with which a list begins, as a cap does with its pointer.
fn first_text<'t>(value: &'t DeValue<'_>) -> Option<&'t str> {
    value.as_array()?.first()?.get_ref().as_str()
}

/// The item of a list that `[n]` means.
fn place_in<'t>(items: &'t DeArray<'_>, step: &str) -> Option<&'t Spanned<DeValue<'t>>> {
    let place = step.strip_prefix('[')?.strip_suffix(']')?;
    items.get(place.parse::<usize>().ok()?)
}
