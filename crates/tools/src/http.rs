//! HTTP tools from configuration: any API that answers `GET` or `POST` with JSON or text, without Rust.
//!
//! [`HttpTool`] is what stands in a file; [`http_tool`] makes a tool of it. A person chose the server, so it may be a
//! private one and may be sent secrets; a model chooses arguments, and they fill the places they were given. A method
//! that changes something is declared as an effect, which a person has to approve.

mod body;
mod result;
mod settings;
mod template;

use paraph_gateway::{DynTool, Json, ToolError};
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::time::Duration;

use crate::error::Error;
use crate::outbound::{Outbound, Request};
use crate::setting::{Known, Secrets, Setting};
use result::Wanted;
pub use settings::{HttpFormat, HttpMethod, HttpTool};
use template::{Address, Template, add_parameter};

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
    let run = move |args: Json| {
        let calling = calling.clone();
        async move {
            calling.call(&args).await.map_err(|error| match error {
                // The server redirects there; the model chose no address.
                Error::Forbidden { .. } => ToolError::new(error.to_string()),
                other => other.for_model(),
            })
        }
    };
    let mut tool = DynTool::new(
        settings.name.clone(),
        settings.description.clone(),
        settings.schema(),
        run,
    );
    tool.level = settings.level();
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

    async fn call(&self, args: &Json) -> Result<Value, Error> {
        let mut url = self.address.fill(args)?;
        for (name, template) in &self.query {
            add_parameter(&mut url, name, template, args)?;
        }
        for (name, secret) in &self.secret_query {
            url.query_pairs_mut()
                .append_pair(name, secret.expose_secret());
        }
        let mut request = Request::new(self.method.clone(), url);
        request.total = self.total;
        request.headers = self.headers.clone();
        let headers = &mut request.headers;
        headers.entry(ACCEPT).or_insert(self.wanted.accept());
        if let Some(body) = &self.body {
            let json = HeaderValue::from_static("application/json");
            headers.entry(CONTENT_TYPE).or_insert(json);
            request.body = Some(body::fill(body, args)?.into_bytes());
        }
        let fetched = self.outbound.send(request).await?;
        let fetched = fetched.success(|said| self.hide(said))?;
        self.secrets.hide_in(self.wanted.of(&fetched)?)
    }

    fn hide(&self, text: &str) -> String {
        self.secrets.hide(text)
    }
}

#[cfg(test)]
mod tests;
