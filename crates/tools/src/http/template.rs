//! Texts with arguments in them, such as `/orders/{id}`, and the addresses made from them.
//!
//! Called by `http.rs`, and by `mcp.rs` for what calls are about. An argument fills exactly the place where it stands: it is encoded so that it cannot end its
//! path segment or its parameter, and what would still change the path (`..`, nothing at all) is refused.

use paraph_gateway::{Json, Shape, View};
use reqwest::Url;

use crate::error::Error;
use crate::outbound::Base;

/// A text with arguments in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Argument(String),
}

impl Template {
    /// Reads `{name}` as an argument, `{{` and `}}` as braces.
    pub(crate) fn read(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.push_str(from.get(..1).unwrap_or_default());
                rest = after;
                continue;
            }
            let inside = from.strip_prefix('{').and_then(|from| from.split_once('}'));
            let Some((name, after)) = inside else {
                return Err(format!(
                    "a brace in {text:?} has no partner; a brace itself is written twice"
                ));
            };
            if name.is_empty()
                || !name
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
            {
                return Err(format!(
                    "{{{name}}} in {text:?} names no argument; a brace itself is written twice"
                ));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Argument(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }

    /// The arguments in it.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Argument(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The argument, if it is nothing but one.
    pub(super) fn only(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The text with arguments filled in. An argument that was left out is nothing.
    pub(crate) fn fill(&self, args: &Json) -> Result<String, Error> {
        self.fill_with(args, str::to_owned)
    }

    /// The same, each argument encoded for a path.
    fn fill_segment(&self, args: &Json) -> Result<String, Error> {
        self.fill_with(args, encoded)
    }

    fn fill_with(&self, args: &Json, write: impl Fn(&str) -> String) -> Result<String, Error> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Argument(name) => {
                    let value = args.view().get(name).map(|value| scalar(name, value));
                    text.push_str(&write(&value.transpose()?.unwrap_or_default()));
                }
            }
        }
        Ok(text)
    }
}

/// An address with arguments in its path and its query.
#[derive(Clone, Debug)]
pub(super) struct Address {
    base: Base,
    segments: Vec<Template>,
    pub(super) query: Vec<(String, Template)>,
}

impl Address {
    /// Reads an address such as `https://api.example.com/v1/orders/{id}?full={full}`.
    pub(super) fn read(text: &str, plain_http: bool) -> Result<Address, String> {
        let start = text.find("://").map_or(0, |at| at + 3);
        let rest = text.get(start..).unwrap_or_default();
        let end = rest
            .find(['/', '?', '#'])
            .map_or(text.len(), |at| start + at);
        let (origin, rest) = text.split_at(end);
        if origin.contains(['{', '}']) {
            return Err("an argument cannot choose the server".to_owned());
        }
        if rest.contains('#') {
            return Err("a fragment (`#…`) is never sent".to_owned());
        }
        let base = match plain_http {
            true => Base::plain_http(origin),
            false => Base::new(origin),
        }
        .map_err(|error| error.to_string())?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let segments = path.strip_prefix('/').unwrap_or(path).split('/');
        let address = Address {
            base,
            segments: segments.map(Template::read).collect::<Result<_, _>>()?,
            query: parameters(query)?,
        };
        address.check_path()?;
        Ok(address)
    }

    /// The arguments in its path: without one of them there is no address.
    pub(super) fn in_path(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(Template::arguments)
    }

    /// The address for these arguments.
    pub(super) fn fill(&self, args: &Json) -> Result<Url, Error> {
        let mut path = String::new();
        for segment in &self.segments {
            let filled = segment.fill_segment(args)?;
            let name = segment.arguments().next();
            if let Some(name) = name
                && ["", ".", ".."]
                    .contains(&filled.to_ascii_lowercase().replace("%2e", ".").as_str())
            {
                return Err(Error::Url {
                    problem: format!("`{name}` is {filled:?}, which is no part of a path"),
                });
            }
            path.push('/');
            path.push_str(&filled);
        }
        let mut url = self.base.join("");
        url.set_path(&path);
        if url.path() != path {
            return Err(Error::Url {
                problem: "the arguments change its path".to_owned(),
            });
        }
        for (name, template) in &self.query {
            add_parameter(&mut url, name, template, args)?;
        }
        Ok(url)
    }

    /// That the path is one as it stands: what the parser would rewrite, nobody could compare later.
    fn check_path(&self) -> Result<(), String> {
        let plain = |segment: &Template| {
            let parts = segment.0.iter().map(|part| match part {
                Part::Text(text) => text.as_str(),
                Part::Argument(_) => "x",
            });
            parts.collect::<String>()
        };
        let segments: Vec<String> = self.segments.iter().map(plain).collect();
        let path = format!("/{}", segments.join("/"));
        let mut url = self.base.join("");
        url.set_path(&path);
        match url.path() == path {
            true => Ok(()),
            false => Err(format!("write its path as it is sent: {}", url.path())),
        }
    }
}

/// Adds a parameter, unless it is nothing but an argument that was left out.
pub(super) fn add_parameter(
    url: &mut Url,
    name: &str,
    template: &Template,
    args: &Json,
) -> Result<(), Error> {
    let left_out = template
        .only()
        .is_some_and(|argument| is_left_out(args, argument));
    if !left_out {
        url.query_pairs_mut()
            .append_pair(name, &template.fill(args)?);
    }
    Ok(())
}

/// Whether an argument is missing or `null`.
pub(super) fn is_left_out(args: &Json, name: &str) -> bool {
    let value = args.view().get(name);
    value.is_none_or(|value| value.shape() == Shape::Null)
}

fn parameters(query: &str) -> Result<Vec<(String, Template)>, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let read = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name.contains(['{', '}']) {
            return Err("an argument cannot name a parameter".to_owned());
        }
        Ok((decoded(name), Template::read(&decoded(value))?))
    });
    read.collect()
}

/// A name or value of a query as it is meant, so that it is encoded once only. Braces stay what they are.
fn decoded(text: &str) -> String {
    let pairs = format!("x:y?={text}");
    let url = Url::parse(&pairs).ok();
    let pair = url.as_ref().and_then(|url| url.query_pairs().next());
    pair.map_or_else(String::new, |(_, value)| value.into_owned())
}

/// A value as it stands in an address: every digit as the model wrote it.
fn scalar(name: &str, value: View<'_>) -> Result<String, Error> {
    match value.shape() {
        Shape::Null => Ok(String::new()),
        Shape::Bool(yes) => Ok(yes.to_string()),
        Shape::Number(digits) => Ok(digits.to_owned()),
        Shape::String(text) => Ok(text.to_owned()),
        Shape::Array(_) | Shape::Object(_) => Err(Error::Url {
            problem: format!("`{name}` is no single value"),
        }),
    }
}

/// Percent-encoded, but for what is never special.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
