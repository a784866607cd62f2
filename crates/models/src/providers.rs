//! The providers there are: names, variables, addresses. Pure data; `init` makes their models, and whoever reads
//! settings finds here what they are usually called.

use crate::error::Error;
use crate::suggest::closest;

/// A model provider, with what the caller needs to find its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name in a [`ModelSpec`](crate::ModelSpec).
    pub name: &'static str,
    /// The environment variables that usually hold its key, the most usual first.
    pub key_variables: &'static [&'static str],
    /// The environment variables that usually hold another base URL.
    pub base_url_variables: &'static [&'static str],
    /// Its own base URL; none if there is no server of that name.
    pub base_url: Option<&'static str>,
    /// Whether its own server wants a key. A server at another base URL may not.
    pub needs_key: bool,
    /// The protocol its server speaks.
    pub speaks: Speaks,
}

/// How to talk to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// OpenAI's chat completions.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent` (Gemini).
    Google,
}

/// The providers there are, in the order in which a configured one is looked for.
pub fn providers() -> &'static [Provider] {
    const OPENAI: Provider = Provider {
        name: "openai",
        key_variables: &["OPENAI_API_KEY"],
        base_url_variables: &["OPENAI_BASE_URL"],
        base_url: Some("https://api.openai.com/v1"),
        needs_key: true,
        speaks: Speaks::OpenAi,
    };
    const PROVIDERS: [Provider; 8] = [
        OPENAI,
        Provider {
            name: "anthropic",
            key_variables: &["ANTHROPIC_API_KEY"],
            base_url_variables: &["ANTHROPIC_BASE_URL"],
            base_url: Some("https://api.anthropic.com"),
            speaks: Speaks::Anthropic,
            ..OPENAI
        },
        Provider {
            name: "google",
            key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            base_url_variables: &["GOOGLE_BASE_URL", "GEMINI_BASE_URL"],
            base_url: Some("https://generativelanguage.googleapis.com"),
            speaks: Speaks::Google,
            ..OPENAI
        },
        Provider {
            name: "openrouter",
            key_variables: &["OPENROUTER_API_KEY"],
            base_url_variables: &["OPENROUTER_BASE_URL"],
            base_url: Some("https://openrouter.ai/api/v1"),
            ..OPENAI
        },
        Provider {
            name: "groq",
            key_variables: &["GROQ_API_KEY"],
            base_url_variables: &["GROQ_BASE_URL"],
            base_url: Some("https://api.groq.com/openai/v1"),
            ..OPENAI
        },
        Provider {
            name: "mistral",
            key_variables: &["MISTRAL_API_KEY"],
            base_url_variables: &["MISTRAL_BASE_URL"],
            base_url: Some("https://api.mistral.ai/v1"),
            ..OPENAI
        },
        Provider {
            name: "ollama",
            key_variables: &["OLLAMA_API_KEY"],
            base_url_variables: &["OLLAMA_BASE_URL"],
            base_url: Some("http://127.0.0.1:11434/v1"),
            needs_key: false,
            ..OPENAI
        },
        // Any other server that speaks OpenAI's protocol.
        Provider {
            name: "compatible",
            key_variables: &["COMPATIBLE_API_KEY"],
            base_url_variables: &["COMPATIBLE_BASE_URL"],
            base_url: None,
            needs_key: false,
            ..OPENAI
        },
    ];
    &PROVIDERS
}

/// The provider of this name.
pub(crate) fn find_provider(name: &str) -> Result<&'static Provider, Error> {
    let found = providers().iter().find(|provider| provider.name == name);
    found.ok_or_else(|| {
        let names = || providers().iter().map(|provider| provider.name);
        let mut known: Vec<&str> = names().collect();
        known.extend(["http://…#MODEL", "rehearsal", "scripted:FILE"]);
        let words = names().chain(["rehearsal", "scripted", "record", "replay"]);
        Error::UnknownProvider {
            name: name.to_owned(),
            known: known.join(", "),
            suggestion: provider_of_model(name).or(closest(name, words).map(str::to_owned)),
        }
    })
}

/// What somebody meant who wrote a model, or another program's name for a provider.
fn provider_of_model(name: &str) -> Option<String> {
    const ELSEWHERE: [(&str, &str); 6] = [
        ("google_genai", "google"),
        ("google_vertexai", "google"),
        ("gemini", "google"),
        ("claude", "anthropic"),
        ("azure_openai", "compatible"),
        ("mistralai", "mistral"),
    ];
    const MODELS: [(&str, &str); 6] = [
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("claude-", "anthropic"),
        ("gemini-", "google"),
    ];
    let provider = ELSEWHERE.iter().find(|(word, _)| *word == name);
    if let Some((_, provider)) = provider {
        return Some((*provider).to_owned());
    }
    let model = MODELS.iter().find(|(start, _)| name.starts_with(start));
    model.map(|(_, provider)| format!("{provider}:{name}"))
}
