//! How much work a schema makes of some arguments, counted before a validator does it.
//!
//! Called by `schema`. A validator follows a reference anew wherever it meets one, so that a schema of a
//! few lines (`allOf` of two references to itself) makes it visit a place 2^depth times. Here each pair of
//! a schema and a value is visited once, and its visits are added up. It decides nothing about validity.

use serde_json::Value;
use std::collections::HashMap;
use std::ptr::from_ref;

/// The most visits that a validator may make: well under a second.
pub(super) const MOST: u64 = 1_000_000;
/// The most pairs of a schema and a value that are looked at.
const MOST_PAIRS: usize = 100_000;
/// How deep references and values may lead; the validator recurses as deep.
const DEEPEST: usize = 300;

/// Keywords whose value is the path of another schema.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Whether a validator can check the value in reasonable work.
pub(super) fn is_reasonable(schema: &Value, value: &Value) -> bool {
    let mut count = Count {
        root: schema,
        known: HashMap::new(),
    };
    count.visits(schema, value, 0).is_some()
}

struct Count<'s> {
    root: &'s Value,
    /// Visits by the addresses of schema and value; a pair that is under way counts as one.
    known: HashMap<(usize, usize), u64>,
}

impl<'s> Count<'s> {
    /// The visits for a value at a schema; nothing if they are too many.
    fn visits(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<u64> {
        let Value::Object(keywords) = schema else {
            return Some(1);
        };
        let pair = (from_ref(schema).addr(), from_ref(value).addr());
        if let Some(visits) = self.known.get(&pair) {
            return Some(*visits);
        }
        if depth > DEEPEST || self.known.len() > MOST_PAIRS {
            return None;
        }
        self.known.insert(pair, 1);
        // To know what was not evaluated, a validator evaluates everything beside it once more.
        let again = keywords.keys().any(|key| key.starts_with("unevaluated"));
        let mut total = 1_u64;
        for (keyword, sub) in keywords {
            let visits = self.keyword(keyword, sub, value, depth + 1)?;
            total = total.saturating_add(visits.saturating_mul(1 + u64::from(again)));
            if total > MOST {
                return None;
            }
        }
        self.known.insert(pair, total);
        Some(total)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        sub: &'s Value,
        value: &Value,
        depth: usize,
    ) -> Option<u64> {
        match keyword {
            _ if REFERENCES.contains(&keyword) => self.visits(self.target(sub), value, depth),
            "allOf" | "anyOf" | "oneOf" => {
                let all = sub.as_array().into_iter().flatten();
                self.sum(all.map(|schema| (schema, value)), depth)
            }
            "not" | "if" | "then" | "else" => self.visits(sub, value, depth),
            "dependentSchemas" | "dependencies" => {
                let all = sub.as_object().into_iter().flatten();
                self.sum(all.map(|(_, schema)| (schema, value)), depth)
            }
            "properties" => {
                let all = sub.as_object().into_iter().flatten();
                let there = all.filter_map(|(name, schema)| Some((schema, value.get(name)?)));
                self.sum(there, depth)
            }
            "patternProperties" => {
                let all = sub.as_object().into_iter().flatten();
                self.sum(
                    all.flat_map(|(_, schema)| entries(value).map(move |v| (schema, v))),
                    depth,
                )
            }
            "additionalProperties" | "unevaluatedProperties" => {
                self.sum(entries(value).map(|value| (sub, value)), depth)
            }
            "propertyNames" => {
                // Names are short texts: no schema leads further down in them.
                let one = self.visits(sub, &Value::Null, depth)?;
                Some(one.saturating_mul(entries(value).count() as u64))
            }
            "items" | "prefixItems" if sub.is_array() => {
                let all = sub.as_array().into_iter().flatten();
                self.sum(all.zip(items(value)), depth)
            }
            "items" | "additionalItems" | "unevaluatedItems" | "contains" => {
                self.sum(items(value).map(|value| (sub, value)), depth)
            }
            _ => Some(0),
        }
    }

    fn sum<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'s Value, &'v Value)>,
        depth: usize,
    ) -> Option<u64> {
        let mut total = 0_u64;
        for (schema, value) in pairs {
            total = total.saturating_add(self.visits(schema, value, depth)?);
            if total > MOST {
                return None;
            }
        }
        Some(total)
    }

    /// The schema that a reference means. One that is not found here counts as the whole.
    fn target(&self, reference: &Value) -> &'s Value {
        let reference = reference.as_str().unwrap_or_default();
        let path = reference.strip_prefix('#').unwrap_or(reference);
        let found = match path.starts_with('/') {
            true => self.root.pointer(path),
            false => self.anchor(path),
        };
        found.unwrap_or(self.root)
    }

    fn anchor(&self, name: &str) -> Option<&'s Value> {
        let mut todo = vec![self.root];
        while let Some(value) = todo.pop() {
            let named = |key: &str| value.get(key).and_then(Value::as_str) == Some(name);
            if !name.is_empty() && (named("$anchor") || named("$dynamicAnchor")) {
                return Some(value);
            }
            todo.extend(entries(value).chain(items(value)));
        }
        None
    }
}

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(|all| all.values())
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
