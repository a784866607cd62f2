//! HTTP tools that change something: the key that each call carries, which answers say that nothing was done, and how
//! it is found out what came of a call whose answer nobody saw.
//!
//! Called by `http.rs` for tools whose level is not `read`. The gateway hands a call over once; whatever is not certain
//! here is unknown there, and then `lookup_url` or a person has to find out.

use std::time::Duration;

use paraph_gateway::{Bounds, Found, Json, LookUp, ToolError};
use reqwest::header::HeaderName;
use serde_json::{Value, json};

use super::settings::HttpTool;
use super::template::{Address, Template};
use crate::error::Error;
use crate::outbound::Fetched;

/// The argument of a `lookup_url` that stands for the key of a call.
pub(super) const KEY: &str = "idempotency_key";

/// The header that carries the key unless another is named.
pub(super) const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// How long after its own time a request may still arrive.
const GRACE: Duration = Duration::from_secs(60);

/// How often a server is asked in that time.
const PAUSE: Duration = Duration::from_secs(10);

/// What only a call with an effect needs.
pub(super) struct Deed {
    pub(super) header: HeaderName,
    nothing: Vec<u16>,
    pub(super) lookup: Option<Address>,
}

impl Deed {
    /// # Errors
    /// What [`HttpTool::mistakes`] has told already.
    pub(super) fn new(settings: &HttpTool) -> Result<Option<Deed>, String> {
        if !settings.level().is_effect() {
            return Ok(None);
        }
        let header = match &settings.idempotency_header {
            None => KEY_HEADER,
            Some(name) => {
                HeaderName::try_from(name.as_str()).map_err(|_| "`idempotency_header`: no name")?
            }
        };
        let lookup = settings.lookup_url.as_deref();
        let lookup = lookup.map(|url| Address::read(url, settings.plain_http));
        Ok(Some(Deed {
            header,
            nothing: settings.nothing_happened.clone(),
            lookup: lookup.transpose()?,
        }))
    }

    /// What a request means that did not succeed. That nothing happened is said only where it is certain: nothing was
    /// sent, or the server answered with a status that stands for it.
    pub(super) fn failed(&self, error: Error) -> ToolError {
        let nothing = match &error {
            Error::Config { .. }
            | Error::Url { .. }
            | Error::Forbidden { .. }
            | Error::Unresolved { .. }
            | Error::Connect { sent: false, .. } => true,
            Error::Status { status, .. } => self.nothing.contains(status),
            _ => false,
        };
        match nothing {
            true => ToolError::nothing_happened(error.to_string()),
            false => ToolError::new(error.to_string()),
        }
    }
}

/// The receipt of a call that succeeded. What the answer lacks does not undo it.
pub(super) fn receipt(answer: &Fetched, read: Result<Value, Error>) -> Value {
    match read {
        Ok(value) => value,
        Err(_) if answer.body.trim_ascii().is_empty() => json!({ "status": answer.status }),
        Err(error) => json!({ "status": answer.status, "note": error.to_string() }),
    }
}

/// What it means that a server knows nothing of a call.
pub(super) fn not_found(since: Duration, total: Duration) -> Found<Value> {
    match total.saturating_add(GRACE).checked_sub(since) {
        Some(left) if !left.is_zero() => Found::NotYet(left.min(PAUSE)),
        _ => Found::SendAgain,
    }
}

/// The arguments of a call, and its key.
pub(super) fn with_key(args: &Json, call: &LookUp) -> Result<Json, Error> {
    let text = args.to_string();
    let rest = text.trim_start().strip_prefix('{').unwrap_or("}");
    let comma = match rest.trim_start().starts_with('}') {
        true => "",
        false => ",",
    };
    let text = format!(
        "{{\"{KEY}\":{}{comma}{rest}",
        Value::from(call.key.as_str())
    );
    Json::read(&text, Bounds::default())
        .map_err(|error| Error::config("the look-up", error.to_string()))
}

/// Every mistake in the keys that are about effects.
pub(super) fn mistakes(settings: &HttpTool) -> Vec<String> {
    let mut mistakes = Vec::new();
    let said = [
        ("subject", settings.subject.is_some()),
        ("idempotency_header", settings.idempotency_header.is_some()),
        ("recognises_key", settings.recognises_key),
        ("nothing_happened", !settings.nothing_happened.is_empty()),
        ("lookup_url", settings.lookup_url.is_some()),
    ];
    if !settings.level().is_effect() {
        let said = said.into_iter().filter(|(_, said)| *said);
        mistakes.extend(said.map(|(key, _)| {
            format!("`{key}`: it is about tools that change something, and this one reads")
        }));
        return mistakes;
    }
    if let Some(name) = &settings.idempotency_header {
        let mut own = settings.headers.keys();
        if own.any(|own| own.eq_ignore_ascii_case(name)) {
            mistakes.push(format!(
                "`idempotency_header`: `{name}` is in `headers` too"
            ));
        }
    }
    for status in &settings.nothing_happened {
        match status {
            408 | 409 | 425 => mistakes.push(format!(
                "`nothing_happened`: {status} may mean that the same request is still under way"
            )),
            400..500 => {}
            _ => mistakes.push(format!(
                "`nothing_happened`: only statuses from 400 to 499 can say that; {status} cannot"
            )),
        }
    }
    if let Some(text) = &settings.subject {
        mistakes.extend(subject_mistakes(settings, text));
    }
    if let Some(url) = &settings.lookup_url {
        mistakes.extend(lookup_mistakes(settings, url));
    }
    mistakes
}

fn subject_mistakes(settings: &HttpTool, text: &str) -> Vec<String> {
    let template = match Template::read(text) {
        Ok(template) => template,
        Err(problem) => return vec![format!("`subject`: {problem}")],
    };
    let used: Vec<&str> = template.arguments().collect();
    let mut mistakes = Vec::new();
    if used.is_empty() {
        let why = "`subject`: without an argument in braces all calls are about the same";
        mistakes.push(why.to_owned());
    }
    for name in used {
        match settings.arguments.get(name) {
            None => mistakes.push(format!(
                "`subject`: `{{{name}}}` is used, and `arguments` has no `{name}`"
            )),
            Some(schema) if schema.get("optional") == Some(&Value::Bool(true)) => mistakes.push(
                format!("`subject`: `{name}` may be left out, and then nobody knows what a call is about"),
            ),
            Some(_) => {}
        }
    }
    mistakes
}

fn lookup_mistakes(settings: &HttpTool, url: &str) -> Vec<String> {
    let address = match Address::read(url, settings.plain_http) {
        Ok(address) => address,
        Err(problem) => return vec![format!("`lookup_url`: {problem}")],
    };
    let in_query = address.query.iter().map(|(_, template)| template);
    let in_query = in_query.flat_map(Template::arguments);
    let used: Vec<&str> = address.in_path().chain(in_query).collect();
    let mut mistakes = Vec::new();
    if !used.contains(&KEY) {
        mistakes.push(format!(
            "`lookup_url`: it has to say which call it is about, by {{{KEY}}}"
        ));
    }
    if settings.arguments.contains_key(KEY) {
        mistakes.push(format!(
            "`arguments`, `{KEY}`: in `lookup_url` this stands for the key of the call"
        ));
    }
    for name in used.into_iter().filter(|name| *name != KEY) {
        match settings.arguments.get(name) {
            None => mistakes.push(format!(
                "`lookup_url`: `{{{name}}}` is used, and `arguments` has no `{name}`"
            )),
            Some(schema) if schema.get("optional") == Some(&Value::Bool(true)) => mistakes.push(
                format!("`lookup_url`: `{name}` may be left out, and then there is no address"),
            ),
            Some(_) => {}
        }
    }
    mistakes
}
