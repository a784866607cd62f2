//! Values of configuration that may be secret: written as they are, or by the name of a secret.
//!
//! Used by HTTP tools and MCP servers. The secrets themselves come from whoever makes the tool, so that this crate
//! reads no environment and no configuration file contains them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;

/// A text, or a secret by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write a text, or a secret as { env = \"NAME\", prefix = \"Bearer \" }"
)]
pub enum Setting {
    /// As it stands.
    Text(String),
    /// A secret that whoever makes the tool brings.
    Secret(SecretRef),
}

/// A secret by its name, so that it stands in no configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretRef {
    /// The environment variable that holds it.
    pub env: String,
    /// What stands before it, such as `Bearer `.
    #[serde(default)]
    pub prefix: String,
}

/// The names of the gateway's levels, for the schema of configuration files.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "its schema is what is used")]
pub(crate) enum LevelName {
    Read,
    Write,
    Execute,
    Delete,
}

/// What gives a secret by its name, if it is set.
pub type Secrets<'a> = &'a dyn Fn(&str) -> Option<SecretString>;

/// The secrets that some settings refer to, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeMap<String, SecretString>);

impl Known {
    /// Looks all of them up; those that are not set are mistakes.
    pub(crate) fn look_up<'a>(
        settings: impl Iterator<Item = &'a Setting>,
        secrets: Secrets<'_>,
    ) -> (Known, Vec<String>) {
        let mut known = BTreeMap::new();
        let mut mistakes = Vec::new();
        for setting in settings {
            let Setting::Secret(reference) = setting else {
                continue;
            };
            match secrets(&reference.env) {
                Some(secret) if !secret.expose_secret().is_empty() => {
                    known.insert(reference.env.clone(), secret);
                }
                _ => mistakes.push(format!("the secret {} is not set", reference.env)),
            }
        }
        (Known(known), mistakes)
    }

    /// What a setting stands for.
    pub(crate) fn value(&self, setting: &Setting) -> SecretString {
        match setting {
            Setting::Text(text) => text.as_str().into(),
            Setting::Secret(reference) => {
                let secret = self.0.get(&reference.env).map(ExposeSecret::expose_secret);
                format!("{}{}", reference.prefix, secret.unwrap_or_default()).into()
            }
        }
    }

    /// A value without any of the secrets: a server may repeat what it was sent, and the model must not read it.
    pub(crate) fn hide_in(&self, value: Value) -> Result<Value, Error> {
        if self.0.is_empty() {
            return Ok(value);
        }
        let text = value.to_string();
        let hidden = self.hide(&text);
        if hidden == text {
            return Ok(value);
        }
        serde_json::from_str(&hidden).map_err(|_| Error::Nothing {
            problem: "the answer repeats a secret and cannot be shown".to_owned(),
        })
    }

    /// A text without any of the secrets.
    pub(crate) fn hide(&self, text: &str) -> String {
        crate::said::without(text, self.0.values().map(ExposeSecret::expose_secret))
    }
}
