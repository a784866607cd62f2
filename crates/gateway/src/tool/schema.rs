//! JSON Schemas: made from types, compiled once, and asked whether arguments fit.
//!
//! The schema decides: nothing is coerced before it is asked. It never fetches anything.

use super::effort;
use crate::json::{Json, Shape, Style, write};
use crate::policy::closest;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// A schema from outside may not be deeper than this, so that compiling it cannot exhaust the stack.
const MAX_DEPTH: usize = 64;
/// Nor have more values than this.
const MAX_VALUES: u64 = 20_000;
/// How many mistakes the model is told of at once.
const MAX_TOLD: usize = 3;
/// How many names are listed.
const MAX_NAMES: usize = 20;
/// How many bytes of one mistake: a message may quote the argument.
const MAX_MESSAGE: usize = 300;

/// A compiled schema.
pub(crate) struct Schema {
    validator: Validator,
    source: Value,
    /// How many values the source has.
    values: u64,
    /// Whether any part of it refers to another.
    refers: bool,
}

impl Schema {
    pub(crate) fn compile(schema: &Value) -> Result<Schema, String> {
        let (values, refers) = within_bounds(schema)?;
        if let Some(kind) = schema.get("type")
            && kind != "object"
            && !kind
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
        {
            return Err(format!("arguments are an object, and it wants {kind}"));
        }
        jsonschema::options()
            // A pattern may come from a stranger; backtracking would let it stop the process.
            .with_pattern_options(PatternOptions::regex())
            .build(schema)
            .map(|validator| Schema {
                validator,
                source: schema.clone(),
                values,
                refers,
            })
            .map_err(|error| cut(error.to_string()))
    }

    pub(crate) fn check(&self, args: &Json) -> Result<(), String> {
        self.check_text(&args.to_string())
    }

    /// The same for arguments whose text is there already.
    pub(crate) fn check_text(&self, text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        // Without references no part of the schema sees a value twice, and no value is shorter than a
        // character.
        let few = !self.refers && self.values.saturating_mul(text.len() as u64) <= effort::MOST;
        if !few && !effort::is_reasonable(&self.source, &value) {
            return Err("they are nested too deeply, or too many, for this schema".to_owned());
        }
        // Most fit, and what is wrong with the others costs more to find out.
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let mut told = Vec::new();
        for error in self.validator.iter_errors(&value).take(MAX_TOLD) {
            let place = error.instance_path().to_string();
            told.push(match place.as_str() {
                "" => cut(self.at_top(&error, &value)),
                place => format!("at {place}: {}", cut(error.to_string())),
            });
        }
        match told.is_empty() {
            true => Err("they do not fit".to_owned()),
            false => Err(told.join("; ")),
        }
    }
}

impl Schema {
    /// A mistake in the arguments as a whole, said so that a model can mend it.
    fn at_top(&self, error: &ValidationError<'_>, args: &Value) -> String {
        let known = self.source.get("properties").and_then(Value::as_object);
        let known = |name: &str| known?.get(name);
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let close = unexpected
                    .iter()
                    .find_map(|name| closest(name, self.names()));
                let close = close.map_or(String::new(), |it| format!("; the closest is `{it}`"));
                let unexpected = list(unexpected.iter().map(String::as_str));
                match list(self.names()).as_str() {
                    "" => format!("there is no argument {unexpected}; it takes none"),
                    names => format!("there is no argument {unexpected}; there are {names}{close}"),
                }
            }
            ValidationErrorKind::FalseSchema => {
                let given = args.as_object().into_iter().flat_map(|args| args.keys());
                let given = list(given.map(String::as_str));
                format!("there is no argument {given}; it takes none")
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let says = |key| known(name)?.get(key)?.as_str();
                let kind = says("type").map_or(String::new(), |kind| format!(" ({kind})"));
                let about = says("description").map_or(String::new(), |it| format!(": {it}"));
                format!("the argument `{name}` is missing{kind}{about}")
            }
            _ => error.to_string(),
        }
    }

    /// The names of the arguments there are.
    fn names(&self) -> impl Iterator<Item = &str> {
        let known = self.source.get("properties").and_then(Value::as_object);
        known
            .into_iter()
            .flat_map(|known| known.keys().map(String::as_str))
    }
}

fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let quoted: Vec<_> = names
        .take(MAX_NAMES)
        .map(|name| format!("`{name}`"))
        .collect();
    quoted.join(", ")
}

/// The schema of a type, closed at its top level if the type did not say anything else: a model's
/// invented argument must not be dropped in silence.
pub(crate) fn of_type<A: schemars::JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(A).to_value();
    const OPEN: [&str; 7] = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    ];
    if let Some(object) = schema.as_object_mut()
        && object.get("type").is_some_and(|kind| kind == "object")
        && !OPEN.iter().any(|key| object.contains_key(*key))
    {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    schema
}

/// How many values the schema has, and whether it refers to parts of itself.
fn within_bounds(schema: &Value) -> Result<(u64, bool), String> {
    let mut todo = vec![(schema, 1)];
    let mut seen = 0_u64;
    let mut refers = false;
    while let Some((value, depth)) = todo.pop() {
        seen += 1;
        if depth > MAX_DEPTH || seen > MAX_VALUES {
            return Err("it is too large".to_owned());
        }
        if depth > 1 && value.get("$id").is_some_and(Value::is_string) {
            return Err("a part of it has an `$id` of its own".to_owned());
        }
        refers |= effort::REFERENCES
            .iter()
            .any(|word| value.get(word).is_some());
        match value {
            Value::Array(items) => todo.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => {
                todo.extend(entries.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    Ok((seen, refers))
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push('…');
    }
    message
}

/// The text of the arguments with `42.0`, `1e2` and `-0` as `42`, `100` and `0`; nothing if there are
/// none such.
pub(crate) fn with_whole_floats_as_integers(args: &Json) -> Option<String> {
    let mut any = false;
    let text = write(args.view(), Style::Exact, |_, value| {
        let Shape::Number(digits) = value.shape() else {
            return None;
        };
        let number: f64 = digits.parse().ok()?;
        // Up to 2^53 every whole number is a float of its own.
        let whole = (digits == "-0" || digits.contains(['.', 'e', 'E']))
            && number.fract() == 0.0
            && number.abs() <= 9_007_199_254_740_992.0;
        any |= whole;
        // Adding a positive zero takes the sign off a negative one.
        whole.then(|| format!("{:.0}", number + 0.0))
    });
    any.then_some(text)
}
