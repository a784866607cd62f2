//! Which model runs, with which settings, and what it costs.

use crate::config::{Config, micro_dollars, read_text};
use crate::failure::Failure;
use crate::patience::{patiently, too_slow};
use crate::suggest::closest;
use paraph_agents::{AgentInfo, Rehearsal};
use paraph_gateway::{Limits, Price};
use paraph_models::{
    ChatModel, ModelSpec, ProviderSettings, Proxies, Recorder, RetryPolicy, Settings,
    init_chat_model, providers,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A model, ready to run.
pub(crate) struct Choice {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) price: Option<Price>,
    /// What makes the same model again.
    pub(crate) spec: ModelSpec,
    /// Why it is this one, if nobody asked for it.
    pub(crate) note: Option<String>,
}

/// The model that the configuration asks for, or the first provider's that is configured, or the
/// rehearsal.
pub(crate) fn choose(config: &Config, agent: &AgentInfo) -> Result<Choice, Failure> {
    let (spec, note) = spec(config, agent)?;
    Ok(Choice {
        note,
        ..chosen(config, agent, spec, false)?
    })
}

/// The model of this spec, for a run that begins or for one that was `resumed`.
pub(crate) fn chosen(
    config: &Config,
    agent: &AgentInfo,
    spec: ModelSpec,
    resumed: bool,
) -> Result<Choice, Failure> {
    let settings = Settings {
        resumed,
        ..model_settings(config, default_of(config, agent, &spec)?)?
    };
    let model = made(&spec, settings)?;
    let price = match spoken_by(&spec) {
        ModelSpec::Rehearsal => Some(Price {
            input: 0,
            output: 0,
            source: "the rehearsal model costs nothing".to_owned(),
        }),
        _ => config.price(model.name()),
    };
    Ok(Choice {
        spec: whole(spec, model.name()),
        model,
        price,
        note: None,
    })
}

/// The model that speaks, be it recorded or not.
pub(crate) fn spoken_by(spec: &ModelSpec) -> &ModelSpec {
    match spec {
        ModelSpec::Record { spec, .. } => spoken_by(spec),
        spec => spec,
    }
}

/// A spec with the model under its whole name, whatever the defaults are when it is made again.
fn whole(spec: ModelSpec, name: &str) -> ModelSpec {
    match spec {
        ModelSpec::Provider { .. } => name.parse().unwrap_or(spec),
        ModelSpec::Record { dir, spec } => ModelSpec::Record {
            dir,
            spec: Box::new(whole(*spec, name)),
        },
        spec => spec,
    }
}

/// The model of a spec.
pub(crate) fn made(spec: &ModelSpec, settings: Settings) -> Result<Arc<dyn ChatModel>, Failure> {
    match spec {
        ModelSpec::Rehearsal => Ok(Arc::new(Rehearsal)),
        ModelSpec::Scripted(path) => {
            let script = spec.clone();
            patiently(path, move || init_chat_model(&script, &settings))
                .ok_or_else(|| {
                    Failure::Usage(format!("script {}: {}", path.display(), too_slow()))
                })?
                .map_err(unusable)
        }
        ModelSpec::Record { dir, spec } => {
            let resumed = settings.resumed;
            let model = made(spec, settings)?;
            let recorder = match resumed {
                true => Recorder::go_on(dir, model),
                false => Recorder::begin(dir, model),
            };
            Ok(Arc::new(recorder.map_err(unusable)?))
        }
        spec => init_chat_model(spec, &settings).map_err(unusable),
    }
}

fn unusable(error: paraph_models::Error) -> Failure {
    match error {
        paraph_models::Error::MissingKey { .. } => Failure::Usage(format!(
            "{error} (or its _FILE), or use --model rehearsal, which needs none"
        )),
        error => Failure::usage(error),
    }
}

/// The spec alone, and a remark if it was not asked for.
pub(crate) fn spec(
    config: &Config,
    agent: &AgentInfo,
) -> Result<(ModelSpec, Option<String>), Failure> {
    if let Some(found) = config.get("model")? {
        let spec = found.text.parse();
        let wrong = |error| found.wrong("model", format!("{error}{}", meant(&found.text)));
        return Ok((spec.map_err(wrong)?, None));
    }
    let mut nameless = Vec::new();
    for provider in providers() {
        let has = |word: &str| config.get(&format!("providers.{}.{word}", provider.name));
        if has("api_key")?.is_none() && has("base_url")?.is_none() {
            continue;
        }
        let model = default_model(config, agent, provider.name)?;
        let Some(model) = model else {
            nameless.push(provider.name);
            continue;
        };
        let spec = ModelSpec::Provider {
            provider: provider.name.to_owned(),
            model: Some(model),
        };
        let note = format!("model: {spec}, since {} is configured", provider.name);
        return Ok((spec, Some(note)));
    }
    let why = match nameless.first() {
        Some(name) => {
            format!("{name} is configured, but no model of it is named: use --model {name}:NAME")
        }
        None => "no provider is configured: set OPENAI_API_KEY, or use --model".to_owned(),
    };
    Ok((
        ModelSpec::Rehearsal,
        Some(format!("model: rehearsal ({why})")),
    ))
}

/// What a spec without a colon was probably meant to be.
fn meant(spec: &str) -> String {
    let known = providers().iter().map(|provider| provider.name);
    if spec.is_empty() || spec.contains(':') {
        return String::new();
    }
    match closest(spec, known.chain(["rehearsal"])) {
        Some(close) => format!("; did you mean `{close}`?"),
        None => format!("; did you mean `openai:{spec}`?"),
    }
}

/// The model of a provider that is named alone.
fn default_model(
    config: &Config,
    agent: &AgentInfo,
    provider: &str,
) -> Result<Option<String>, Failure> {
    let named = config.get(&format!("providers.{provider}.model"))?;
    let own = (provider == "openai").then(|| agent.default_model.to_owned());
    Ok(named.map(|found| found.text).or(own))
}

fn default_of(
    config: &Config,
    agent: &AgentInfo,
    spec: &ModelSpec,
) -> Result<Option<String>, Failure> {
    match spoken_by(spec) {
        ModelSpec::Provider { provider, .. } => default_model(config, agent, provider),
        _ => Ok(None),
    }
}

/// What a model needs from outside.
pub(crate) fn model_settings(
    config: &Config,
    default_model: Option<String>,
) -> Result<Settings, Failure> {
    let text = |key: &str| Ok::<_, Failure>(config.get(key)?.map(|found| found.text));
    let mut by_name = BTreeMap::new();
    for provider in providers() {
        let of = |word: &str| text(&format!("providers.{}.{word}", provider.name));
        let settings = ProviderSettings {
            api_key: of("api_key")?.map(Into::into),
            base_url: of("base_url")?,
        };
        by_name.insert(provider.name.to_owned(), settings);
    }
    Ok(Settings {
        providers: by_name,
        default_model,
        retry: RetryPolicy {
            timeout: model_timeout(config)?,
            ..RetryPolicy::default()
        },
        proxies: Proxies {
            http: text("http_proxy")?,
            https: text("https_proxy")?,
            no_proxy: text("no_proxy")?,
        },
        ca_certificates: ca_certificates(config)?,
        ..Settings::default()
    })
}

fn model_timeout(config: &Config) -> Result<Duration, Failure> {
    const KEY: &str = "model_timeout_seconds";
    let Some(found) = config.get(KEY)? else {
        return Ok(RetryPolicy::default().timeout);
    };
    let seconds = found.text.parse().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.ok_or_else(|| found.wrong(KEY, format!("`{}` is no number of seconds", found.text)))
}

fn ca_certificates(config: &Config) -> Result<Option<String>, Failure> {
    let Some(found) = config.get("ca_file")? else {
        return Ok(None);
    };
    let text = read_text(Path::new(&found.text));
    text.map(Some)
        .map_err(|error| found.wrong("ca_file", format!("{}: {error}", found.text)))
}

/// The agent's limits with what the configuration says instead.
pub(crate) fn limits(config: &Config, agent: &AgentInfo) -> Result<Limits, Failure> {
    let whole = |key: &str, otherwise: u64| {
        let Some(found) = config.get(key)? else {
            return Ok(otherwise);
        };
        let number = found.text.parse();
        number.map_err(|_| found.wrong(key, format!("`{}` is no whole number", found.text)))
    };
    let own = agent.limits.clone();
    let micro_dollars = match config.get("max_cost")? {
        None => own.micro_dollars,
        Some(found) => micro_dollars(&found.text).map_err(|why| found.wrong("max_cost", why))?,
    };
    Ok(Limits {
        steps: whole("max_steps", own.steps)?,
        tool_calls: whole("max_tool_calls", own.tool_calls)?,
        seconds: whole("max_seconds", own.seconds)?,
        tokens: whole("max_tokens", own.tokens)?,
        micro_dollars,
        ..own
    })
}

/// A run with a cost limit needs to know what its model costs.
pub(crate) fn check_price(choice: &Choice, limits: &Limits) -> Result<(), Failure> {
    let capped = limits.micro_dollars != paraph_gateway::UNLIMITED;
    if !capped || choice.price.is_some() {
        return Ok(());
    }
    let model = choice.model.name();
    let unknown = paraph_gateway::Error::UnknownPrice {
        model: model.to_owned(),
    };
    Err(Failure::Usage(format!(
        "--max-cost: {unknown}. Put it into paraph.toml, in US dollars per million tokens:\n\
         \n  [prices.{model:?}]\n  input_per_million = 0.40\n  output_per_million = 1.60"
    )))
}
