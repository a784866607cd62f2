//! From a line like `openai:gpt-4.1-mini` to a model.
//!
//! The command line reads flags and environment into [`Settings`] and calls [`init_chat_model`]; agents get the model.
//! This module must not read the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Certificate, Client, NoProxy, Proxy, redirect};
use secrecy::SecretString;

use crate::cassette::{Recorder, Replay};
use crate::chat::ChatModel;
use crate::error::Error;
use crate::openai::{OpenAi, endpoint};
use crate::retry::{RetryPolicy, Retrying};
use crate::schema_mode::{SchemaMode, ToolMode};
use crate::scripted::ScriptedModel;

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
    /// `provider:model`, or `provider` alone for [`Settings::default_model`].
    Provider {
        /// The provider's name, one of [`providers`].
        provider: String,
        /// The model as the provider names it.
        model: Option<String>,
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
            spec: text.to_owned(),
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
            "" => Err(refuse("write provider:model, rehearsal or scripted:FILE")),
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

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider {
                provider,
                model: Some(model),
            } => write!(f, "{provider}:{model}"),
            Self::Provider { provider, .. } => f.write_str(provider),
            Self::Rehearsal => f.write_str("rehearsal"),
            Self::Scripted(file) => write!(f, "scripted:{}", file.display()),
            Self::Record { dir, spec } => write!(f, "record:{},{spec}", dir.display()),
            Self::Replay(dir) => write!(f, "replay:{}", dir.display()),
        }
    }
}

/// A model provider, with what the caller needs to find its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name in a [`ModelSpec`].
    pub name: &'static str,
    /// The environment variable that usually holds its key.
    pub key_variable: &'static str,
    /// The environment variable that usually holds another base URL.
    pub base_url_variable: &'static str,
    /// Its own base URL.
    pub base_url: &'static str,
    /// Whether its own server wants a key. A server at another base URL may not.
    pub needs_key: bool,
}

/// The providers there are. All of them speak OpenAI's protocol.
pub fn providers() -> &'static [Provider] {
    const fn provider(
        name: &'static str,
        variables: (&'static str, &'static str),
        base_url: &'static str,
        needs_key: bool,
    ) -> Provider {
        Provider {
            name,
            key_variable: variables.0,
            base_url_variable: variables.1,
            base_url,
            needs_key,
        }
    }
    const PROVIDERS: [Provider; 5] = [
        provider(
            "openai",
            ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
            "https://api.openai.com/v1",
            true,
        ),
        provider(
            "openrouter",
            ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
            "https://openrouter.ai/api/v1",
            true,
        ),
        provider(
            "groq",
            ("GROQ_API_KEY", "GROQ_BASE_URL"),
            "https://api.groq.com/openai/v1",
            true,
        ),
        provider(
            "mistral",
            ("MISTRAL_API_KEY", "MISTRAL_BASE_URL"),
            "https://api.mistral.ai/v1",
            true,
        ),
        provider(
            "ollama",
            ("OLLAMA_API_KEY", "OLLAMA_BASE_URL"),
            "http://127.0.0.1:11434/v1",
            false,
        ),
    ];
    &PROVIDERS
}

fn find_provider(name: &str) -> Result<&'static Provider, Error> {
    let found = providers().iter().find(|provider| provider.name == name);
    found.ok_or_else(|| match name {
        "anthropic" | "google" => Error::Later {
            what: format!("the model provider `{name}`"),
        },
        _ => {
            let mut known: Vec<&str> = providers().iter().map(|p| p.name).collect();
            known.extend(["rehearsal", "scripted:FILE"]);
            Error::UnknownProvider {
                name: name.to_owned(),
                known: known.join(", "),
            }
        }
    })
}

/// Everything a model may need from outside. Plain data: whoever reads flags and environment fills it in.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Keys and base URLs by provider name.
    pub providers: BTreeMap<String, ProviderSettings>,
    /// The model of a spec that names a provider alone; each agent has its own.
    pub default_model: Option<String>,
    /// Time limit and retries of a call, for every model.
    pub retry: RetryPolicy,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// Proxies; none is found by itself.
    pub proxies: Proxies,
    /// Certificate authorities to trust beside the system's, as PEM text.
    pub ca_certificates: Option<String>,
    /// Attempts that the run of a scripted model has made before; see [`ScriptedModel::start_at`].
    pub attempts_made: usize,
    /// Whether the run was begun before, perhaps by another process: its recording is gone on with then, where
    /// one that begins takes an empty folder.
    pub resumed: bool,
    /// How the model calls tools.
    pub tool_mode: ToolMode,
}

impl Default for Settings {
    /// No keys, no proxies, ten seconds to connect, the default [`RetryPolicy`].
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            default_model: None,
            retry: RetryPolicy::default(),
            connect_timeout: Duration::from_secs(10),
            proxies: Proxies::default(),
            ca_certificates: None,
            attempts_made: 0,
            resumed: false,
            tool_mode: ToolMode::default(),
        }
    }
}

/// What one provider needs. `Debug` does not show the key.
#[derive(Clone, Debug, Default)]
pub struct ProviderSettings {
    /// The key.
    pub api_key: Option<SecretString>,
    /// Another server: used as it stands, with `/chat/completions` behind it; without a path `/v1` is added.
    pub base_url: Option<String>,
}

/// Proxies by the scheme of the address they serve. They may contain credentials; `Debug` shows only which are set.
#[derive(Clone, Default)]
pub struct Proxies {
    /// For `http` addresses.
    pub http: Option<String>,
    /// For `https` addresses.
    pub https: Option<String>,
    /// Hosts to reach directly, with commas, as in `NO_PROXY`.
    pub no_proxy: Option<String>,
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies")
            .field("http", &self.http.is_some())
            .field("https", &self.https.is_some())
            .field("no_proxy", &self.no_proxy)
            .finish()
    }
}

/// Makes a model ready to use: bounded in time, retried in exactly one layer.
///
/// # Errors
/// [`Error::Rehearsal`] (agents bring that one; record it with [`Recorder::begin`]), scripts and recordings that
/// cannot be used, and settings that are missing or cannot be used.
pub fn init_chat_model(spec: &ModelSpec, settings: &Settings) -> Result<Arc<dyn ChatModel>, Error> {
    match spec {
        ModelSpec::Rehearsal => Err(Error::Rehearsal),
        ModelSpec::Scripted(path) => {
            let model = ScriptedModel::open(path)?.start_at(settings.attempts_made);
            Ok(in_mode(Retrying::new(model, settings.retry), settings))
        }
        ModelSpec::Record { dir, spec } => {
            let model = init_chat_model(spec, settings)?;
            Ok(Arc::new(match settings.resumed {
                true => Recorder::go_on(dir, model)?,
                false => Recorder::begin(dir, model)?,
            }))
        }
        ModelSpec::Replay(dir) => Ok(Arc::new(Replay::open(dir)?)),
        ModelSpec::Provider { provider, model } => {
            let model = model.as_ref().or(settings.default_model.as_ref());
            let model = model.ok_or_else(|| Error::Spec {
                spec: provider.clone(),
                problem: "no model is named and there is no default".to_owned(),
            })?;
            let model = openai(find_provider(provider)?, model, settings)?;
            Ok(in_mode(Retrying::new(model, settings.retry), settings))
        }
    }
}

/// The model with its way of calling tools.
fn in_mode(model: impl ChatModel + 'static, settings: &Settings) -> Arc<dyn ChatModel> {
    match settings.tool_mode {
        ToolMode::Native => Arc::new(model),
        ToolMode::Schema => Arc::new(SchemaMode::new(model)),
    }
}

fn openai(provider: &Provider, model: &str, settings: &Settings) -> Result<OpenAi, Error> {
    let own = settings.providers.get(provider.name);
    let key = own.and_then(|own| own.api_key.clone());
    let base = own.and_then(|own| own.base_url.as_deref());
    if provider.needs_key && key.is_none() && base.is_none() {
        return Err(Error::MissingKey {
            provider: provider.name.to_owned(),
            variable: provider.key_variable,
        });
    }
    let url = endpoint(base.unwrap_or(provider.base_url))?;
    let client = http_client(settings)?;
    Ok(OpenAi::new(provider.name, model, url, key, client))
}

/// A client that follows no redirect (the key would go along) and uses only the proxies it is told.
fn http_client(settings: &Settings) -> Result<Client, Error> {
    let refuse = |what: &str, error: &reqwest::Error| Error::Http {
        what: what.to_owned(),
        problem: error.to_string(),
    };
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(settings.connect_timeout)
        .user_agent(concat!("paraph/", env!("CARGO_PKG_VERSION")));
    let direct = settings.proxies.no_proxy.as_deref();
    let direct = direct.and_then(NoProxy::from_string);
    if let Some(address) = &settings.proxies.http {
        let proxy = proxy("HTTP_PROXY", address, Proxy::http)?;
        builder = builder.proxy(proxy.no_proxy(direct.clone()));
    }
    if let Some(address) = &settings.proxies.https {
        let proxy = proxy("HTTPS_PROXY", address, Proxy::https)?;
        builder = builder.proxy(proxy.no_proxy(direct));
    }
    if let Some(pem) = &settings.ca_certificates {
        let certificates = Certificate::from_pem_bundle(pem.as_bytes())
            .map_err(|error| refuse("CA certificates", &error))?;
        if certificates.is_empty() {
            return Err(Error::Http {
                what: "CA certificates".to_owned(),
                problem: "there is none in the file".to_owned(),
            });
        }
        builder = builder.tls_certs_merge(certificates);
    }
    builder
        .build()
        .map_err(|error| refuse("HTTP client", &error))
}

/// A proxy over HTTP. An error says nothing of the address, which may contain a password.
fn proxy(
    variable: &str,
    address: &str,
    of: impl Fn(String) -> reqwest::Result<Proxy>,
) -> Result<Proxy, Error> {
    let refuse = |problem: &str| Error::Http {
        what: variable.to_owned(),
        problem: problem.to_owned(),
    };
    if let Some((scheme, _)) = address.trim().split_once("://")
        && !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str())
    {
        return Err(refuse("only http and https proxies can be used"));
    }
    of(address.to_owned()).map_err(|_| refuse("not the address of a proxy"))
}

#[cfg(test)]
mod tests;
