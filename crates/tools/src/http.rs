//! HTTP tools from configuration: any API that answers `GET` or `POST` with JSON or text, without Rust.
//!
//! [`HttpTool`] is what stands in a file; [`http_tool`] makes a tool of it. A person chose the server, so it may be a
//! private one and may be sent secrets; a model chooses arguments, and they fill the places they were given. A method
//! that changes something is declared as an effect, which a person has to approve; what only such a call needs is in
//! `effect.rs`.

mod body;
mod effect;
mod result;
mod settings;
mod template;

use paraph_gateway::{DynTool, Found, IntoOutput as _, Json, LookUp, Resolved, Retry, ToolError};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::time::Duration;

use crate::error::Error;
use crate::outbound::{Outbound, Request};
use crate::setting::{Known, Secrets, Setting};
use effect::Deed;
use result::Wanted;
pub use settings::{HttpFormat, HttpMethod, HttpTool};
pub(crate) use template::Template;
use template::{Address, add_parameter};

/// How much of an address is signed, in bytes; the arguments in it are signed in full.
const MAX_PLACE: usize = 900;

/// The gateway's own deadline comes this much later, so that the model reads what was slow.
const GRACE: Duration = Duration::from_secs(1);

/// The tool that a configuration describes. `secrets` gives a secret by the name under which it is referred to.
///
/// # Errors
/// [`Error::Config`] with every mistake at once.
///
/// ```
/// use paraph_tools::{HttpTool, Outbound, OutboundSettings, http_tool};
/// let settings: HttpTool = serde_json::from_value(serde_json::json!({
///     "name": "order_status",
///     "description": "Where an order is. Takes its number.",
///     "url": "https://shop.example.com/api/orders/{number}",
///     "headers": {"Authorization": {"env": "SHOP_TOKEN", "prefix": "Bearer "}},
///     "arguments": {"number": {"type": "integer", "minimum": 1, "description": "The order's number"}},
///     "result": "$.status",
/// }))?;
/// let outbound = Outbound::new(&OutboundSettings::default())?;
/// let tool = http_tool(&outbound, &settings, &|name| (name == "SHOP_TOKEN").then(|| "t0ken".into()))?;
/// assert_eq!(tool.name, "order_status");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn http_tool(
    outbound: &Outbound,
    settings: &HttpTool,
    secrets: Secrets<'_>,
) -> Result<DynTool, Error> {
    let mut mistakes = settings.mistakes();
    let (known, missing) = Known::look_up(settings.settings(), secrets);
    mistakes.extend(missing);
    let refuse = |mistakes: Vec<String>| {
        Error::config(
            format!("the tool `{}`", crate::said::short(&settings.name)),
            mistakes.join("; "),
        )
    };
    if !mistakes.is_empty() {
        return Err(refuse(mistakes));
    }
    let calling = Calling::new(outbound, settings, known);
    let calling = std::sync::Arc::new(calling.map_err(|problem| refuse(vec![problem]))?);
    let total = calling.total;
    let caller = calling.clone();
    let mut tool = DynTool::in_context(
        settings.name.clone(),
        settings.description.clone(),
        settings.schema(),
        move |args, context| {
            let (calling, key) = (caller.clone(), context.key().to_owned());
            Box::pin(async move { calling.answer(&args, &key).await?.into_output() })
        },
    );
    tool.level = settings.level();
    if tool.level.is_effect() {
        let told = calling.clone();
        tool = tool.with_targets(move |args| told.goes_to(args));
    }
    if let Some(text) = &settings.subject {
        let subject = Template::read(text).map_err(|problem| refuse(vec![problem]))?;
        tool = tool.with_subject(move |args| {
            let filled = subject.fill(args);
            filled.map_err(|error| ToolError::bad_args(error.to_string()))
        });
    }
    if settings.recognises_key {
        tool.retry = Retry::SameKey;
    }
    if settings.lookup_url.is_some() {
        tool = tool.looked_up(move |args: Json, call: LookUp| {
            let calling = calling.clone();
            async move {
                let found = calling.look_up(&args, &call).await;
                found.map_err(|error| ToolError::new(error.to_string()))
            }
        });
    }
    tool.timeout = total + GRACE;
    tool.output_cap = settings.max_output.unwrap_or(tool.output_cap);
    Ok(tool)
}

/// All that a call needs, made once.
struct Calling {
    outbound: Outbound,
    method: Method,
    address: Address,
    headers: HeaderMap,
    /// Parameters with arguments in them, then those with a secret.
    query: Vec<(String, Template)>,
    secret_query: Vec<(String, SecretString)>,
    body: Option<Value>,
    /// What only a call with an effect needs.
    deed: Option<Deed>,
    wanted: Wanted,
    total: Duration,
    secrets: Known,
}

impl Calling {
    fn new(outbound: &Outbound, settings: &HttpTool, known: Known) -> Result<Calling, String> {
        let mut calling = Calling {
            outbound: outbound.clone(),
            method: settings.method.as_http(),
            address: Address::read(&settings.url, settings.plain_http)?,
            headers: HeaderMap::new(),
            query: Vec::new(),
            secret_query: Vec::new(),
            body: settings.body.clone(),
            deed: Deed::new(settings)?,
            wanted: Wanted::new(settings)?,
            total: settings.total(),
            secrets: Known::default(),
        };
        for (name, setting) in &settings.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|_| "a header has no name")?;
            let value = HeaderValue::from_str(known.value(setting).expose_secret());
            let mut value = value
                .map_err(|_| format!("the header `{name}` has a value that no header can carry"))?;
            value.set_sensitive(matches!(setting, Setting::Secret(_)));
            calling.headers.insert(name, value);
        }
        for (name, setting) in &settings.query {
            match setting {
                Setting::Text(text) => {
                    let template = Template::read(text)?;
                    calling.query.push((name.clone(), template));
                }
                Setting::Secret(_) => {
                    calling
                        .secret_query
                        .push((name.clone(), known.value(setting)));
                }
            }
        }
        calling.secrets = known;
        Ok(calling)
    }

    /// What the model reads of a call with this key.
    async fn answer(&self, args: &Json, key: &str) -> Result<Value, ToolError> {
        let called = self.call(args, key).await;
        called.map_err(|error| match (&self.deed, error) {
            (Some(deed), error) => deed.failed(error),
            // The server redirects there; the model chose no address.
            (None, error @ Error::Forbidden { .. }) => ToolError::new(error.to_string()),
            (None, other) => other.for_model(),
        })
    }

    async fn call(&self, args: &Json, key: &str) -> Result<Value, Error> {
        let mut url = self.address.fill(args)?;
        for (name, template) in &self.query {
            add_parameter(&mut url, name, template, args)?;
        }
        let mut request = self.request(self.method.clone(), url);
        let headers = &mut request.headers;
        if let Some(deed) = &self.deed {
            let key = HeaderValue::try_from(key);
            let key = key.map_err(|error| Error::config("the key", error.to_string()))?;
            headers.insert(deed.header.clone(), key);
        }
        if let Some(body) = &self.body {
            let json = HeaderValue::from_static("application/json");
            headers.entry(CONTENT_TYPE).or_insert(json);
            request.body = Some(body::fill(body, args)?.into_bytes());
        }
        let fetched = self.outbound.send(request).await?;
        let fetched = fetched.success(|said| self.hide(said))?;
        let read = self.wanted.of(&fetched);
        let read = read.and_then(|value| self.secrets.hide_in(value));
        match &self.deed {
            Some(_) => Ok(effect::receipt(&fetched, read)),
            None => read,
        }
    }

    /// Where a call goes, for whoever signs it: the method and the address, without what may be secret.
    fn goes_to(&self, args: &Json) -> Result<Resolved, ToolError> {
        let url = self.address.fill(args);
        let url = url.map_err(|error| ToolError::bad_args(error.to_string()))?;
        let mut place = format!(
            "{} {}{}",
            self.method,
            url.origin().ascii_serialization(),
            url.path()
        );
        if place.len() > MAX_PLACE {
            place.truncate(place.floor_char_boundary(MAX_PLACE));
            place.push('…');
        }
        Ok(Resolved::new().target("sent to", self.hide(&place)))
    }

    /// What came of a call, as far as its server can say.
    async fn look_up(&self, args: &Json, call: &LookUp) -> Result<Found<Value>, Error> {
        let lookup = self.deed.as_ref().and_then(|deed| deed.lookup.as_ref());
        let Some(address) = lookup else {
            return Ok(Found::CannotTell);
        };
        let url = address.fill(&effect::with_key(args, call)?)?;
        let fetched = self.outbound.send(self.request(Method::GET, url)).await?;
        if fetched.status == 404 {
            return Ok(effect::not_found(call.since, self.total));
        }
        let fetched = fetched.success(|said| self.hide(said))?;
        let read = self.wanted.of(&fetched);
        let read = read.and_then(|value| self.secrets.hide_in(value));
        Ok(Found::Done(effect::receipt(&fetched, read)))
    }

    /// A request with all that stands in every one: headers and secrets.
    fn request(&self, method: Method, mut url: Url) -> Request {
        for (name, secret) in &self.secret_query {
            url.query_pairs_mut()
                .append_pair(name, secret.expose_secret());
        }
        let mut request = Request::new(method, url);
        request.total = self.total;
        request.headers = self.headers.clone();
        let accept = self.wanted.accept();
        request.headers.entry(ACCEPT).or_insert(accept);
        request
    }

    fn hide(&self, text: &str) -> String {
        self.secrets.hide(text)
    }
}

#[cfg(test)]
mod tests;
