//! [`ModelSpec`]: which model to use, as people write it. Pure.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;
use crate::http::base_url;
use crate::providers::find_provider;

/// Which model to use, as people write it.
///
/// ```
/// use paraph_models::ModelSpec;
/// let spec: ModelSpec = "openai:gpt-4.1-mini".parse()?;
/// assert_eq!(spec, ModelSpec::Provider { provider: "openai".into(), model: Some("gpt-4.1-mini".into()) });
/// assert_eq!(spec.to_string(), "openai:gpt-4.1-mini");
/// # Ok::<(), paraph_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSpec {
    /// `provider:model`, or `provider` alone for [`Settings::default_model`](crate::Settings::default_model).
    Provider {
        /// The provider's name, one of [`providers`](crate::providers).
        provider: String,
        /// The model as the provider names it.
        model: Option<String>,
    },
    /// `http://host:port/v1#model`: a server that speaks OpenAI's protocol, by its address. No key is sent: whoever
    /// writes a spec must not be able to have somebody else's key sent anywhere. A server that wants one is
    /// `compatible:model` with its address and key in the settings.
    Server {
        /// The base URL.
        base_url: String,
        /// The model as the server names it.
        model: String,
    },
    /// `rehearsal`: the rule-based model that each agent brings.
    Rehearsal,
    /// `scripted:FILE`.
    Scripted(PathBuf),
    /// `record:DIR,SPEC`: another model, with all it says written down.
    Record {
        /// Where.
        dir: PathBuf,
        /// The model.
        spec: Box<ModelSpec>,
    },
    /// `replay:DIR`: what was recorded.
    Replay(PathBuf),
}

impl FromStr for ModelSpec {
    type Err = Error;

    /// # Errors
    /// [`Error::Spec`] if a part is missing, [`Error::UnknownProvider`] with the names there are.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let refuse = |problem: &str| Error::Spec {
            spec: shown(text),
            problem: problem.to_owned(),
        };
        let (head, tail) = match text.split_once(':') {
            Some((head, tail)) => (head, Some(tail.trim())),
            None => (text, None),
        };
        let file = |word: &str| {
            tail.filter(|tail| !tail.is_empty())
                .map(PathBuf::from)
                .ok_or_else(|| refuse(&format!("write {head}:{word}")))
        };
        match head {
            "" => Err(refuse(
                "write provider:model, http://host:port/v1#model, rehearsal or scripted:FILE",
            )),
            "http" | "https" => {
                let (address, model) = text.split_once('#').unwrap_or((text, ""));
                if model.is_empty() {
                    return Err(refuse("write the model behind the address: http://…#MODEL"));
                }
                let url = base_url(address).map_err(|error| refuse(&error.to_string()))?;
                if url.query().is_some() {
                    return Err(refuse(
                        "a spec is shown and stored, so it must not have a query, which may be secret; give the \
                         address in the settings of `compatible`",
                    ));
                }
                Ok(Self::Server {
                    base_url: address.to_owned(),
                    model: model.to_owned(),
                })
            }
            "rehearsal" if tail.is_none() => Ok(Self::Rehearsal),
            "rehearsal" => Err(refuse("rehearsal stands alone")),
            "scripted" => file("FILE").map(Self::Scripted),
            "replay" => file("DIR").map(Self::Replay),
            "record" => {
                let parts = tail.and_then(|tail| tail.split_once(','));
                let parts = parts.filter(|(dir, _)| !dir.is_empty());
                let (dir, spec) = parts.ok_or_else(|| refuse("write record:DIR,SPEC"))?;
                Ok(Self::Record {
                    dir: dir.into(),
                    spec: Box::new(spec.parse()?),
                })
            }
            provider => {
                find_provider(provider)?;
                if tail == Some("") {
                    return Err(refuse("no model stands behind the colon"));
                }
                Ok(Self::Provider {
                    provider: provider.to_owned(),
                    model: tail.map(str::to_owned),
                })
            }
        }
    }
}

/// A spec as an error may repeat it: without what stands before the host of an address, and behind its path.
fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => authority.to_owned(),
    };
    let (path, model) = path.split_once('#').unwrap_or((path, ""));
    let path = match path.split_once('?') {
        Some((path, _)) => format!("{path}?…"),
        None => path.to_owned(),
    };
    let hash = if model.is_empty() { "" } else { "#" };
    format!("{scheme}://{host}{path}{hash}{model}")
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider {
                provider,
                model: Some(model),
            } => write!(f, "{provider}:{model}"),
            Self::Provider { provider, .. } => f.write_str(provider),
            Self::Server { base_url, model } => write!(f, "{base_url}#{model}"),
            Self::Rehearsal => f.write_str("rehearsal"),
            Self::Scripted(file) => write!(f, "scripted:{}", file.display()),
            Self::Record { dir, spec } => write!(f, "record:{},{spec}", dir.display()),
            Self::Replay(dir) => write!(f, "replay:{}", dir.display()),
        }
    }
}
