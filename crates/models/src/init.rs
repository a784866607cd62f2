//! From a [`ModelSpec`] and [`Settings`] to a model that is ready to use.
//!
//! The command line reads flags and environment into [`Settings`] and calls [`init_chat_model`]; agents get the model.
//! This module must not read the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use crate::anthropic::{self, Anthropic};
use crate::cassette::{Recorder, Replay};
use crate::chat::ChatModel;
use crate::error::Error;
use crate::fallback::Fallback;
use crate::google::{self, Google};
use crate::http::{Auth, Protocol, Remote, Server, http_client};
use crate::limits::Limiter;
use crate::openai::{self, OpenAi};
use crate::providers::{Provider, Speaks, find_provider};
use crate::retry::{RetryPolicy, Retrying};
use crate::schema_mode::{SchemaMode, ToolMode};
use crate::scripted::ScriptedModel;
use crate::spec::ModelSpec;

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
    /// How much of it may be used; one for all models of the provider. None sets no limit.
    pub limiter: Option<Arc<Limiter>>,
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
            provided(find_provider(provider)?, model, settings)
        }
        ModelSpec::Server { base_url, model } => {
            let making = Making {
                provider: "compatible",
                model,
                name: spec.to_string(),
                key: None,
                settings,
            };
            making.make(
                Auth::Bearer,
                OpenAi::new(model, openai::endpoint(base_url)?),
            )
        }
    }
}

/// As [`init_chat_model`], with other models that stand in where the wanted one cannot answer; see [`Fallback`].
///
/// # Errors
/// Those of [`init_chat_model`], for any of the models: one that can never be used is no fallback.
pub fn init_with_fallbacks(
    spec: &ModelSpec,
    fallbacks: &[ModelSpec],
    settings: &Settings,
) -> Result<Arc<dyn ChatModel>, Error> {
    let wanted = init_chat_model(spec, settings)?;
    if fallbacks.is_empty() {
        return Ok(wanted);
    }
    let others = fallbacks.iter();
    let others = others.map(|spec| init_chat_model(spec, settings));
    Ok(Arc::new(Fallback::new(
        wanted,
        others.collect::<Result<_, _>>()?,
    )))
}

/// The model with its way of calling tools.
fn in_mode(model: impl ChatModel + 'static, settings: &Settings) -> Arc<dyn ChatModel> {
    match settings.tool_mode {
        ToolMode::Native => Arc::new(model),
        ToolMode::Schema => Arc::new(SchemaMode::new(model)),
    }
}

/// A model behind a server, in the layer that bounds and retries its calls.
struct Making<'a> {
    provider: &'static str,
    model: &'a str,
    /// The spec that makes the model.
    name: String,
    key: Option<SecretString>,
    settings: &'a Settings,
}

impl Making<'_> {
    fn make(self, auth: Auth, protocol: impl Protocol) -> Result<Arc<dyn ChatModel>, Error> {
        let settings = self.settings;
        let client = http_client(settings)?;
        let server = Server::new(client, settings.connect_timeout, self.key, auth);
        let remote = Remote::new(self.provider, self.model, self.name, server, protocol);
        let bounded = Retrying::new(remote, settings.retry);
        let own = settings.providers.get(self.provider);
        Ok(match own.and_then(|own| own.limiter.clone()) {
            Some(limiter) => in_mode(bounded.within(limiter), settings),
            None => in_mode(bounded, settings),
        })
    }
}

/// The model of a provider.
fn provided(
    provider: &'static Provider,
    model: &str,
    settings: &Settings,
) -> Result<Arc<dyn ChatModel>, Error> {
    let own = settings.providers.get(provider.name);
    let key = own.and_then(|own| own.api_key.clone());
    let base = own.and_then(|own| own.base_url.as_deref());
    let missing = |variables: &[&'static str]| variables.first().copied().unwrap_or_default();
    if provider.needs_key && key.is_none() && base.is_none() {
        return Err(Error::MissingKey {
            provider: provider.name.to_owned(),
            variable: missing(provider.key_variables),
        });
    }
    let base = base.or(provider.base_url);
    let base = base.ok_or_else(|| Error::MissingBaseUrl {
        provider: provider.name.to_owned(),
        variable: missing(provider.base_url_variables),
    })?;
    let making = Making {
        provider: provider.name,
        model,
        name: format!("{}:{model}", provider.name),
        key,
        settings,
    };
    match provider.speaks {
        Speaks::OpenAi => making.make(Auth::Bearer, OpenAi::new(model, openai::endpoint(base)?)),
        Speaks::Anthropic => {
            let protocol = Anthropic::new(model, anthropic::endpoint(base)?);
            making.make(Auth::Header("x-api-key"), protocol)
        }
        Speaks::Google => {
            let protocol = Google::new(model, google::base(base)?);
            making.make(Auth::Header("x-goog-api-key"), protocol)
        }
    }
}

#[cfg(test)]
mod tests;
