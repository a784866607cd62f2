//! From a line like `openai:text-embedding-3-small` or `local:DIR` to an embedder. It must not read the environment.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use super::Embedder;
use super::openai::{OpenAiEmbedder, endpoint};
use crate::error::Error;
use crate::http::{Auth, Server, http_client};
use crate::init::Settings;
use crate::providers::{Speaks, find_provider};
use crate::retry::Bounds;

/// Which embedder to use, as people write it.
///
/// ```
/// use paraph_models::EmbedderSpec;
/// let spec: EmbedderSpec = "local:models/minilm".parse()?;
/// assert_eq!(spec, EmbedderSpec::Local("models/minilm".into()));
/// assert_eq!(spec.to_string(), "local:models/minilm");
/// # Ok::<(), paraph_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedderSpec {
    /// `provider:model`.
    Provider {
        /// The provider's name; one that speaks OpenAI's protocol.
        provider: String,
        /// The model as the provider names it.
        model: String,
    },
    /// `local:DIR`: a model from files, where this build has the feature `local-embeddings`.
    Local(PathBuf),
}

impl FromStr for EmbedderSpec {
    type Err = Error;

    /// # Errors
    /// [`Error::Spec`] if a part is missing or the provider has no embeddings that are known here,
    /// [`Error::UnknownProvider`] with the names there are.
    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let refuse = |problem: String| Error::Spec {
            spec: text.to_owned(),
            problem,
        };
        let parts = text.split_once(':').map(|(head, tail)| (head, tail.trim()));
        let parts = parts.filter(|(_, tail)| !tail.is_empty());
        let (head, tail) =
            parts.ok_or_else(|| refuse("write provider:model or local:DIR".to_owned()))?;
        if head == "local" {
            return Ok(Self::Local(tail.into()));
        }
        match find_provider(head)?.speaks {
            Speaks::OpenAi => Ok(Self::Provider {
                provider: head.to_owned(),
                model: tail.to_owned(),
            }),
            Speaks::Anthropic | Speaks::Google => Err(refuse(format!(
                "embeddings of {head} are not known here; take a provider that speaks OpenAI's protocol, or local:DIR"
            ))),
        }
    }
}

impl fmt::Display for EmbedderSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider { provider, model } => write!(f, "{provider}:{model}"),
            Self::Local(dir) => write!(f, "local:{}", dir.display()),
        }
    }
}

/// Makes an embedder ready to use: bounded in time, retried by the same rules as chat models.
///
/// # Errors
/// Settings that are missing or cannot be used; files that cannot be read; [`Error::Spec`] for a local model in a
/// build without it.
pub fn init_embedder(spec: &EmbedderSpec, settings: &Settings) -> Result<Arc<dyn Embedder>, Error> {
    match spec {
        EmbedderSpec::Provider { provider, model } => {
            let embedder = remote(provider, model, settings)?;
            Ok(Arc::new(embedder))
        }
        #[cfg(feature = "local-embeddings")]
        EmbedderSpec::Local(dir) => Ok(Arc::new(super::LocalEmbedder::open(dir)?)),
        #[cfg(not(feature = "local-embeddings"))]
        EmbedderSpec::Local(_) => Err(Error::Spec {
            spec: spec.to_string(),
            problem: "this build has no local models: build it with the feature `local-embeddings`"
                .to_owned(),
        }),
    }
}

fn remote(provider: &str, model: &str, settings: &Settings) -> Result<OpenAiEmbedder, Error> {
    let provider = find_provider(provider)?;
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
    let base = base
        .or(provider.base_url)
        .ok_or_else(|| Error::MissingBaseUrl {
            provider: provider.name.to_owned(),
            variable: missing(provider.base_url_variables),
        })?;
    let client = http_client(settings)?;
    Ok(OpenAiEmbedder {
        name: format!("{}:{model}", provider.name),
        model: model.to_owned(),
        url: endpoint(base)?,
        server: Server::new(client, settings.connect_timeout, key, Auth::Bearer),
        bounds: Bounds {
            policy: settings.retry,
            limiter: own.and_then(|own| own.limiter.clone()),
        },
        dimension: OnceLock::new(),
    })
}
