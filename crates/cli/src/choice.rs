//! Which model runs, with which settings, and what it costs.

use crate::config::{Config, Found, Source, micro_dollars, read_text};
use crate::failure::Failure;
use crate::patience::{patiently, too_slow};
use paraph_agents::{AgentInfo, Rehearsal};
use paraph_gateway::{DayLimits, Limits, Price};
use paraph_models::{
    ChatModel, Fallback, Limiter, ModelSpec, ProviderSettings, Proxies, RateLimits, Recorder,
    RetryPolicy, Settings, ToolMode, init_chat_model, providers,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// A model, ready to run.
pub(crate) struct Choice {
    pub(crate) model: Arc<dyn ChatModel>,
    /// The price that no answer exceeds; none if a model's price is not known.
    pub(crate) price: Option<Price>,
    /// A model of which no price is known.
    unpriced: Option<String>,
    /// What makes the same model again.
    pub(crate) spec: ModelSpec,
    /// Why it is this one, if nobody asked for it.
    pub(crate) note: Option<String>,
}

/// The model that the configuration asks for, or the agent's `own`, or the first provider's that is configured, or the
/// rehearsal.
pub(crate) fn choose(
    config: &Config,
    agent: &AgentInfo,
    own: Option<ModelSpec>,
) -> Result<Choice, Failure> {
    let (spec, note) = spec(config, agent, own)?;
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
    let making = Making {
        config,
        agent,
        settings: Settings {
            resumed,
            ..model_settings(config)?
        },
    };
    let mut names = Vec::new();
    let model = making.make(&spec, &mut names)?;
    let price = match spoken_by(&spec) {
        ModelSpec::Rehearsal => Ok(Price {
            input: 0,
            output: 0,
            source: "the rehearsal model costs nothing".to_owned(),
        }),
        _ => dearest(config, &names),
    };
    let (price, unpriced) = match price {
        Ok(price) => (Some(price), None),
        Err(unpriced) => (None, Some(unpriced)),
    };
    let wanted = names.first().map_or_else(|| model.name(), String::as_str);
    Ok(Choice {
        spec: whole(spec, wanted),
        model,
        price,
        unpriced,
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

/// What models are made with.
struct Making<'a> {
    config: &'a Config,
    agent: &'a AgentInfo,
    settings: Settings,
}

impl Making<'_> {
    /// The model of a spec, with those that stand in for it. `names` gets the names of all that may answer.
    fn make(
        &self,
        spec: &ModelSpec,
        names: &mut Vec<String>,
    ) -> Result<Arc<dyn ChatModel>, Failure> {
        let model = match spec {
            ModelSpec::Rehearsal => Arc::new(Rehearsal::of(&self.agent.name)),
            ModelSpec::Record { dir, spec } => {
                let model = self.make(spec, names)?;
                let recorder = match self.settings.resumed {
                    true => Recorder::go_on(dir, model),
                    false => Recorder::begin(dir, model),
                };
                return Ok(Arc::new(recorder.map_err(unusable)?));
            }
            ModelSpec::Scripted(path) => {
                let (script, settings) = (spec.clone(), self.settings.clone());
                patiently(path, move || init_chat_model(&script, &settings))
                    .ok_or_else(|| {
                        Failure::Usage(format!("script {}: {}", path.display(), too_slow()))
                    })?
                    .map_err(unusable)?
            }
            spec => self.alone(spec)?,
        };
        names.push(model.name().to_owned());
        let (others, said) = stand_ins(self.config, self.agent, spec)?;
        if others.is_empty() {
            return Ok(model);
        }
        let others = others.iter().map(|spec| {
            let made = self.alone(spec);
            made.map_err(|failure| match (failure, &said) {
                (Failure::Usage(why), Some(said)) => said.wrong(FALLBACK, why),
                (Failure::Usage(why), None) => {
                    Failure::Usage(format!("{}: `fallbacks`: {why}", self.agent.name))
                }
                (failure, _) => failure,
            })
        });
        let others: Vec<Arc<dyn ChatModel>> = others.collect::<Result<_, _>>()?;
        names.extend(others.iter().map(|other| other.name().to_owned()));
        Ok(Arc::new(Fallback::new(model, others)))
    }

    /// The model of a spec that needs no file.
    fn alone(&self, spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, Failure> {
        let settings = Settings {
            default_model: default_of(self.config, self.agent, spec)?,
            ..self.settings.clone()
        };
        init_chat_model(spec, &settings).map_err(unusable)
    }
}

/// The setting that names them.
const FALLBACK: &str = "fallback";

/// The models that stand in for one that cannot answer, and the setting that says so if it is not the agent's file. One
/// that plays a script answers by itself.
fn stand_ins(
    config: &Config,
    agent: &AgentInfo,
    spec: &ModelSpec,
) -> Result<(Vec<ModelSpec>, Option<Found>), Failure> {
    let live = matches!(spec, ModelSpec::Provider { .. } | ModelSpec::Server { .. });
    if !live {
        return Ok((Vec::new(), None));
    }
    let said = config.get(FALLBACK)?;
    let mut specs: Vec<ModelSpec> = match &said {
        Some(found) => {
            let specs = found.text.split(',').filter(|text| !text.trim().is_empty());
            let specs: Result<_, _> = specs.map(str::parse).collect();
            specs.map_err(|error| found.wrong(FALLBACK, error))?
        }
        None => {
            let specs: Result<_, _> = agent.fallbacks.iter().map(|text| text.parse()).collect();
            specs.map_err(Failure::usage)?
        }
    };
    specs.retain(|other| other != spec);
    Ok((specs, said))
}

/// The price that no answer of these models exceeds, or a model whose price is not known.
fn dearest(config: &Config, models: &[String]) -> Result<Price, String> {
    let mut most: Option<Price> = None;
    for name in models {
        let price = config.price(name).ok_or_else(|| name.clone())?;
        most = Some(match most {
            Some(most) => Price {
                input: most.input.max(price.input),
                output: most.output.max(price.output),
                source: most.source,
            },
            None => price,
        });
    }
    most.ok_or_else(String::new)
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
    own: Option<ModelSpec>,
) -> Result<(ModelSpec, Option<String>), Failure> {
    if let Some(found) = config.get("model")? {
        let spec = found.text.parse();
        let wrong = |error| found.wrong("model", error);
        let flag = matches!(found.source, Source::Flag(_));
        let note = own.filter(|_| !flag).map(|own| {
            format!(
                "model: {} by {}, instead of the file's {own}",
                found.text, found.source
            )
        });
        return Ok((spec.map_err(wrong)?, note));
    }
    if let Some(own) = own {
        return Ok((own, None));
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

/// The model of a provider that is named alone.
fn default_model(
    config: &Config,
    agent: &AgentInfo,
    provider: &str,
) -> Result<Option<String>, Failure> {
    let named = config.get(&format!("providers.{provider}.model"))?;
    let own = (provider == "openai").then(|| agent.default_model.clone());
    Ok(named.map(|found| found.text).or(own))
}

fn default_of(
    config: &Config,
    agent: &AgentInfo,
    spec: &ModelSpec,
) -> Result<Option<String>, Failure> {
    match spec {
        ModelSpec::Provider { provider, .. } => default_model(config, agent, provider),
        _ => Ok(None),
    }
}

/// What a model needs from outside.
pub(crate) fn model_settings(config: &Config) -> Result<Settings, Failure> {
    let text = |key: &str| Ok::<_, Failure>(config.get(key)?.map(|found| found.text));
    let mut by_name = BTreeMap::new();
    for provider in providers() {
        let of = |word: &str| text(&format!("providers.{}.{word}", provider.name));
        let settings = ProviderSettings {
            api_key: of("api_key")?.map(Into::into),
            base_url: of("base_url")?,
            limiter: limiter(config, provider.name)?,
        };
        by_name.insert(provider.name.to_owned(), settings);
    }
    Ok(Settings {
        providers: by_name,
        retry: retry_policy(config)?,
        connect_timeout: seconds(config, "model_connect_seconds")?
            .unwrap_or_else(|| Settings::default().connect_timeout),
        proxies: Proxies {
            http: text("http_proxy")?,
            https: text("https_proxy")?,
            no_proxy: text("no_proxy")?,
        },
        ca_certificates: ca_certificates(config)?,
        tool_mode: tool_mode(config)?,
        ..Settings::default()
    })
}

/// How models call tools.
fn tool_mode(config: &Config) -> Result<ToolMode, Failure> {
    const KEY: &str = "tool_mode";
    let Some(found) = config.get(KEY)? else {
        return Ok(ToolMode::default());
    };
    let mode = found.text.parse();
    mode.map_err(|error| found.wrong(KEY, error))
}

/// The limits on a model's time.
fn retry_policy(config: &Config) -> Result<RetryPolicy, Failure> {
    let default = RetryPolicy::default();
    Ok(RetryPolicy {
        timeout: seconds(config, "model_timeout_seconds")?.unwrap_or(default.timeout),
        first_token: seconds(config, "model_first_token_seconds")?,
        idle: seconds(config, "model_idle_seconds")?,
        ..default
    })
}

fn seconds(config: &Config, key: &str) -> Result<Option<Duration>, Failure> {
    let Some(found) = config.get(key)? else {
        return Ok(None);
    };
    let seconds = found.text.parse().ok().filter(|seconds| *seconds > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.map(Some)
        .ok_or_else(|| found.wrong(key, format!("`{}` is no number of seconds", found.text)))
}

/// What may be used of a provider, if anything limits it.
fn limiter(config: &Config, provider: &str) -> Result<Option<Arc<Limiter>>, Failure> {
    let limits = RateLimits {
        in_flight: amount(config, provider, "max_in_flight")?,
        requests_per_minute: amount(config, provider, "requests_per_minute")?,
        tokens_per_minute: amount(config, provider, "tokens_per_minute")?,
    };
    let limited = limits != RateLimits::default();
    Ok(limited.then(|| Arc::new(Limiter::new(limits))))
}

fn amount<T: FromStr>(config: &Config, provider: &str, word: &str) -> Result<Option<T>, Failure> {
    let key = format!("providers.{provider}.{word}");
    let Some(found) = config.get(&key)? else {
        return Ok(None);
    };
    let amount = found.text.parse().map(Some);
    amount.map_err(|_| {
        let why = format!("`{}` is no whole number above zero", found.text);
        found.wrong(&key, why)
    })
}

pub(crate) fn ca_certificates(config: &Config) -> Result<Option<String>, Failure> {
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
    let money = |key: &str, otherwise: u64| match config.get(key)? {
        None => Ok(otherwise),
        Some(found) => micro_dollars(&found.text).map_err(|why| found.wrong(key, why)),
    };
    let day = own.per_user_day;
    Ok(Limits {
        steps: whole("max_steps", own.steps)?,
        tool_calls: whole("max_tool_calls", own.tool_calls)?,
        seconds: whole("max_seconds", own.seconds)?,
        tokens: whole("max_tokens", own.tokens)?,
        micro_dollars: money("max_cost", own.micro_dollars)?,
        per_user_day: DayLimits {
            tool_calls: whole("per_user_day.max_tool_calls", day.tool_calls)?,
            tokens: whole("per_user_day.max_tokens", day.tokens)?,
            micro_dollars: money("per_user_day.max_cost", day.micro_dollars)?,
        },
        ..own
    })
}

/// A run with a cost limit needs to know what its model costs. The limit is said to be where it is: in the settings,
/// or else with the agent.
pub(crate) fn check_price(
    config: &Config,
    choice: &Choice,
    limits: &Limits,
) -> Result<(), Failure> {
    let money = [limits.micro_dollars, limits.per_user_day.micro_dollars];
    let capped = money != [paraph_gateway::UNLIMITED; 2];
    let Some(model) = choice.unpriced.as_deref().filter(|_| capped) else {
        return Ok(());
    };
    let unknown = paraph_gateway::Error::UnknownPrice {
        model: model.to_owned(),
    };
    let why = format!(
        "{unknown}. Put it into paraph.toml, in US dollars per million tokens:\n\
         \n  [prices.{model:?}]\n  input_per_million = 0.40\n  output_per_million = 1.60"
    );
    let key = match limits.micro_dollars {
        paraph_gateway::UNLIMITED => "per_user_day.max_cost",
        _ => "max_cost",
    };
    Err(match config.get(key)? {
        Some(found) => found.wrong(key, why),
        None => Failure::Usage(format!("the agent's `{key}`: {why}")),
    })
}
