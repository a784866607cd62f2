//! Prompts, schemas of answers, and secrets that stand where they should not.

use super::{Checker, Whose};
use crate::declared::file::AgentSpec;
use crate::declared::keys::MAX_PROMPT;
use crate::declared::mistake::did_you_mean;
use crate::declared::output::Output;
use crate::declared::policy::target_texts;
use crate::declared::prompt::placeholders;
use paraph_gateway::{Dialect, Redaction, Redactor, ToolCall};
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl Checker<'_> {
    /// Reads a prompt that stands in a file of its own, and looks for variables that are not there.
    pub(super) fn prompt(&mut self, whose: Whose<'_>, spec: &AgentSpec) {
        let (text, path): (String, &[&str]) = match &spec.prompt_file {
            None => (spec.prompt.clone(), &["prompt"]),
            Some(file) => {
                let path: &[&str] = &["prompt_file"];
                let Some(text) = self.beside(whose, path, file) else {
                    return;
                };
                self.spec_mut(whose).prompt = text.clone();
                (text, path)
            }
        };
        for name in placeholders(&text) {
            if self.file.variables.contains_key(name) {
                continue;
            }
            let what = format!("the prompt uses `{{{{{name}}}}}`, and `variables` has no `{name}`");
            let names = self.file.variables.keys().map(String::as_str);
            let instead = match crate::declared::mistake::closest(name, names) {
                Some(close) => format!("did you mean `{{{{{close}}}}}`?"),
                None => format!("write it below [variables]: `{name} = \"…\"`"),
            };
            let whole = self.places().of(whose, path);
            // Where the variable itself stands, in a prompt of many lines.
            let written = self.text.get(whole.clone()).unwrap_or_default();
            let offset = written.find(&format!("{{{{{name}")).unwrap_or(0);
            let at = whole.start + offset..whole.end;
            self.mistakes.add(at, &whose.key(path), what, instead);
        }
    }

    /// The text of a file beside this one.
    fn beside(&mut self, whose: Whose<'_>, path: &[&str], file: &str) -> Option<String> {
        let what = match (self.supply.read)(file) {
            Ok(text) if text.len() > MAX_PROMPT => {
                format!("{file} has {} bytes; it may have {MAX_PROMPT}", text.len())
            }
            Ok(text) if text.trim().is_empty() => format!("{file} is empty"),
            Ok(text) if text.contains('\0') => format!("{file} is no text"),
            Ok(text) if looks_secret(&text) => {
                format!("{file} holds what looks like a key or a password")
            }
            Ok(text) => return Some(text),
            Err(why) => format!("{file} cannot be read: {why}"),
        };
        self.wrong((whose, path), what, "the path begins at this file's folder");
        None
    }

    fn spec_mut(&mut self, whose: Whose<'_>) -> &mut AgentSpec {
        match whose.0 {
            None => &mut self.file.main,
            Some(name) => self.file.agents.entry(name.to_owned()).or_default(),
        }
    }

    pub(super) fn output(&mut self, whose: Whose<'_>, spec: &AgentSpec) {
        let Some(output) = &spec.output else {
            return;
        };
        let path: &[&str] = &["output"];
        if spec.dialect == Dialect::Strict {
            let what = "`output` needs the provider's tool calls: with dialect = \"strict\" an answer is a text";
            self.wrong((whose, path), what, "leave `output` out, or `dialect`");
        }
        let (schema, path): (_, &[&str]) = match &output.schema_file {
            // What is missing or no schema was said already.
            None if output.schema.is_null() => return,
            None => (output.schema.clone(), &["output", "schema"]),
            Some(file) => {
                let path: &[&str] = &["output", "schema_file"];
                let Some(text) = self.beside(whose, path, file) else {
                    return;
                };
                let schema = match serde_json::from_str::<Value>(&text) {
                    Ok(schema) => schema,
                    Err(error) => {
                        self.wrong(
                            (whose, path),
                            format!("{file} is no JSON: {error}"),
                            "write a JSON Schema",
                        );
                        return;
                    }
                };
                if let Some(output) = &mut self.spec_mut(whose).output {
                    output.schema = schema.clone();
                }
                (schema, path)
            }
        };
        if let Err(why) = Output::new(&schema, 0) {
            self.wrong(
                (whose, path),
                format!("this schema cannot be used: {why}"),
                "write a JSON Schema",
            );
        }
    }

    pub(super) fn context(&mut self, whose: Whose<'_>, spec: &AgentSpec) {
        let Some(context) = &spec.context else {
            return;
        };
        let place: (_, &[&str]) = (whose, &["context"]);
        if context.max_messages.is_none() && context.max_tokens.is_none() {
            let instead = "write `max_messages` or `max_tokens`, or leave `context` out";
            self.wrong(place, "`context` limits nothing", instead);
        }
        if spec.dialect == Dialect::Strict {
            let what =
                "with dialect = \"strict\" a prompt shows a summary and the last steps in any case";
            self.wrong(place, what, "leave `context` out");
        }
    }

    pub(super) fn unused_variables(&mut self) {
        let prompts = self.file.all().map(|(_, spec)| spec.prompt.as_str());
        let specs = self.file.all().map(|(_, spec)| &spec.policy);
        let targets = specs.flat_map(target_texts).map(|(_, text)| text);
        let texts: Vec<&str> = prompts.chain(targets).collect();
        let used: Vec<&str> = texts.iter().flat_map(|text| placeholders(text)).collect();
        let names = self.file.variables.keys();
        let unused: Vec<String> = names
            .filter(|name| !used.contains(&name.as_str()))
            .cloned()
            .collect();
        for name in unused {
            let at = self.places().of(Whose(None), &["variables", &name]);
            let what = format!("no prompt uses `{{{{{name}}}}}`");
            let advice = did_you_mean(&name, used.iter().copied());
            let advice = if used.is_empty() {
                String::new()
            } else {
                advice
            };
            self.remarks
                .add(at, &format!("variables.{name}"), what, advice);
        }
    }

    /// Looks at every text of the file for what could be a secret.
    pub(super) fn secrets(&mut self) {
        let root = self.root.get_ref();
        let mut found = Vec::new();
        search(root, "", &mut found);
        for (at, key) in found {
            let what = format!("`{key}` holds what looks like a key or a password");
            let instead = "put it into the environment or into a file, and write { env = \"NAME\" }: \
                           NAME, or NAME_FILE with the file's path";
            self.mistakes.add(at, &key, what, instead);
        }
    }
}

type Found = Vec<(std::ops::Range<usize>, String)>;

fn search(table: &DeTable<'_>, above: &str, found: &mut Found) {
    for (name, value) in table {
        let name = name.get_ref().as_ref();
        let key = match above {
            "" => name.to_owned(),
            above => format!("{above}.{name}"),
        };
        // In these tables the name alone may say that a value is secret.
        let named = ["headers", "env", "query"]
            .iter()
            .any(|table| above.ends_with(table));
        look(value, &key, named && is_secret_name(name), found);
    }
}

fn look(value: &Spanned<DeValue<'_>>, key: &str, named: bool, found: &mut Found) {
    match value.get_ref() {
        DeValue::String(text) if looks_secret(text) || (named && is_literal(text)) => {
            found.push((value.span(), key.to_owned()));
        }
        DeValue::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                look(item, &format!("{key}[{n}]"), named, found);
            }
        }
        DeValue::Table(table) => search(table, key, found),
        _ => {}
    }
}

/// A text that is neither empty nor made of an argument.
fn is_literal(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('{')
}

/// Whether a key of this name is secret, as the gateway's redactor sees it.
fn is_secret_name(name: &str) -> bool {
    let args = serde_json::json!({ name: "x" }).to_string();
    let redactor = Redactor::new(&Redaction::default());
    ToolCall::new("look", &args)
        .is_ok_and(|call| redactor.brief(&call, 1_000).contains("[redacted]"))
}

/// How keys of well-known services begin.
const KEYS_BEGIN: [&str; 22] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "whsec_",
    "tvly-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "gsk_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
    "pypi-",
    "eyJ",
];

/// Whether any word of a text has the shape of a key. Words by themselves: "password: ask for it" has none.
fn looks_secret(text: &str) -> bool {
    let between = |c: char| c.is_whitespace() || "\"'`,;=()<>".contains(c);
    let is_key = |word: &str| {
        let body = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        word.len() >= 16
            && word.chars().all(body)
            && KEYS_BEGIN.iter().any(|begin| word.starts_with(begin))
    };
    let has_password = |word: &str| {
        let redactor = Redactor::new(&Redaction::default());
        word.contains("://") && word.contains('@') && redactor.text(word) != word
    };
    let bearer = |word: &str| word.eq_ignore_ascii_case("bearer");
    let words: Vec<&str> = text
        .split(between)
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().any(|word| is_key(word) || has_password(word))
        || matches!(words.as_slice(), [first, token] if bearer(first) && token.len() >= 8 && !token.contains('{'))
        || (text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----"))
}
