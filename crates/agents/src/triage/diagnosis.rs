//! What a model may say of an issue: the form of a diagnosis, its JSON Schema, and how it is read. Pure.
//!
//! The form says nothing about whether a diagnosis may be used; that is for `gates`.

use crate::research::without_thoughts;
use paraph_models::json_in;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most entries of a list that are taken.
const MOST_ENTRIES: usize = 10;

/// The longest texts that are taken, in characters.
const LONGEST_CAUSE: usize = 4_000;
const LONGEST_LINE: usize = 600;

/// How grave an issue is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A nuisance: cosmetic, rare, or easily avoided.
    Low,
    /// Something does not work for some users.
    Medium,
    /// Data is lost, security is broken, or nothing works.
    High,
}

impl Severity {
    /// All of them.
    pub const ALL: [Severity; 3] = [Severity::Low, Severity::Medium, Severity::High];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

impl std::str::FromStr for Severity {
    type Err = String;

    fn from_str(name: &str) -> Result<Severity, String> {
        let known = Severity::ALL.into_iter().find(|one| one.name() == name);
        known.ok_or_else(|| format!("`{name}` is no severity; there are low, medium, high"))
    }
}

/// What a model says of an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// The most likely cause, in a few sentences, resting on the cited snippets alone.
    pub root_cause: String,
    /// How grave it is.
    pub severity: Severity,
    /// What the reporter would have to say for more certainty; empty if nothing.
    pub missing_info: Vec<String>,
    /// What a maintainer should do next, in order.
    pub recommended_next_steps: Vec<String>,
    /// What each statement rests on.
    pub citations: Vec<Citation>,
}

/// A snippet that a diagnosis rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// The snippet's id, as it was given.
    pub id: String,
    /// The words of the snippet that support the statement, copied letter by letter.
    pub quote: String,
}

impl Diagnosis {
    /// The JSON Schema of a diagnosis.
    pub fn schema() -> Value {
        schemars::schema_for!(Diagnosis).to_value()
    }

    /// Reads what a model wrote: JSON alone, in a fence, or inside prose.
    ///
    /// # Errors
    /// A sentence that says what is wrong, fit to be told to the model.
    pub fn read(text: &str) -> Result<Diagnosis, String> {
        let (_, json) = json_in(without_thoughts(text))?;
        let diagnosis: Diagnosis = serde_json::from_value(json)
            .map_err(|error| format!("it does not have the form that was asked for: {error}"))?;
        diagnosis.check()?;
        Ok(diagnosis)
    }

    fn check(&self) -> Result<(), String> {
        if self.root_cause.trim().is_empty() {
            return Err("`root_cause` is empty".to_owned());
        }
        let lists = [
            ("missing_info", self.missing_info.len()),
            ("recommended_next_steps", self.recommended_next_steps.len()),
            ("citations", self.citations.len()),
        ];
        for (name, length) in lists {
            if length > MOST_ENTRIES {
                return Err(format!(
                    "`{name}` has {length} entries; {MOST_ENTRIES} are taken"
                ));
            }
        }
        let lines = self
            .missing_info
            .iter()
            .chain(&self.recommended_next_steps)
            .chain(
                self.citations
                    .iter()
                    .flat_map(|cited| [&cited.id, &cited.quote]),
            );
        let longest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
        if self.root_cause.chars().count() > LONGEST_CAUSE || longest > LONGEST_LINE {
            return Err(format!(
                "a text is too long: `root_cause` has up to {LONGEST_CAUSE} characters, each other entry up to {LONGEST_LINE}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written() -> Value {
        json!({
            "root_cause": "The cache key leaves out the locale.",
            "severity": "medium",
            "missing_info": [],
            "recommended_next_steps": ["Add the locale to the key."],
            "citations": [{"id": "a#0", "quote": "the locale was not part of the key"}],
        })
    }

    #[test]
    fn a_diagnosis_is_read_alone_fenced_and_behind_thoughts() {
        let text = written().to_string();
        let plain = Diagnosis::read(&text).unwrap();
        assert_eq!(plain.severity, Severity::Medium);
        for wrapped in [
            format!("```json\n{text}\n```"),
            format!("<think>it may be {{high}}</think>\n{text}"),
            format!("Here it is: {text}"),
        ] {
            assert_eq!(Diagnosis::read(&wrapped), Ok(plain.clone()), "{wrapped}");
        }
    }

    #[test]
    fn what_is_no_diagnosis_is_refused_and_said() {
        let change = |change: fn(&mut Value)| {
            let mut value = written();
            change(&mut value);
            value.to_string()
        };
        let table = [
            ("I do not know.".to_owned(), "there is no JSON in it"),
            (
                change(|v| v["severity"] = json!("dire")),
                "unknown variant `dire`",
            ),
            (
                change(|v| v["approved"] = json!(true)),
                "unknown field `approved`",
            ),
            (
                change(|v| v["root_cause"] = json!(" \n")),
                "`root_cause` is empty",
            ),
            (
                change(|v| v["citations"] = json!(["a#0"])),
                "it does not have the form",
            ),
            (
                change(|v| v["missing_info"] = json!(vec!["x"; 11])),
                "`missing_info` has 11 entries; 10 are taken",
            ),
            (
                change(|v| v["recommended_next_steps"] = json!(["x".repeat(601)])),
                "a text is too long",
            ),
        ];
        for (text, expected) in table {
            let error = Diagnosis::read(&text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn the_schema_names_every_field_and_allows_no_other() {
        let schema = Diagnosis::schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        let required = [
            "root_cause",
            "severity",
            "missing_info",
            "recommended_next_steps",
            "citations",
        ];
        assert_eq!(schema["required"], json!(required));
    }
}
