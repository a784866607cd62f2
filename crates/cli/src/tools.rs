//! The tools that agents in files can be given, and what those need from the configuration.
//!
//! The only place that names concrete tools. A secret is looked up here and handed on; it is shown nowhere.

use crate::choice::ca_certificates;
use crate::config::Config;
use crate::failure::Failure;
use crate::mcp::Servers;
use paraph_agents::{AgentFile, AgentSpec, ToolInfo};
use paraph_gateway::{DynTool, Level};
use paraph_models::SecretString;
use paraph_tools::{
    Base, HttpTool, Outbound, OutboundSettings, Proxies, Refunds, Weather, WebSearch, fetch_page,
    get_weather, http_tool, issue_refund, search_corpus, think, web_search,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

const SEARCH: &str = "web_search";
const PAGE: &str = "fetch_page";
const WEATHER: &str = "get_weather";
const THINK: &str = "think";
const REFUND: &str = "issue_refund";
const CORPUS: &str = "search_corpus";

/// What this program brings, as listings show it.
pub(crate) fn builtin() -> Vec<ToolInfo> {
    const ABOUT: [(&str, Level, &str); 6] = [
        (
            SEARCH,
            Level::Read,
            "Searches the web by Tavily (needs TAVILY_API_KEY)",
        ),
        (PAGE, Level::Read, "Reads a public page as text"),
        (
            WEATHER,
            Level::Read,
            "Tells the temperature at a place by Open-Meteo",
        ),
        (
            THINK,
            Level::Read,
            "Takes a note that is read back; needs nothing from outside",
        ),
        (
            CORPUS,
            Level::Read,
            "Searches the corpus of issues (`paraph corpus ingest` fills it)",
        ),
        (
            REFUND,
            Level::Write,
            "Gives a user money back once a person approves (a ledger file, or REFUND_BASE_URL)",
        ),
    ];
    let tool = |(name, level, about): (&str, Level, &str)| ToolInfo {
        name: name.to_owned(),
        level,
        about: about.to_owned(),
    };
    ABOUT.into_iter().map(tool).collect()
}

/// What an HTTP tool does to the world. (Its settings were checked before.)
pub(crate) fn level(settings: &Value) -> Level {
    let tool = serde_json::from_value::<HttpTool>(settings.clone());
    tool.map(|tool| tool.level()).unwrap_or_default()
}

/// The tools of each agent of a file, by the agent's name; of MCP servers those of these.
pub(crate) fn of_file(
    config: &Config,
    file: &AgentFile,
    servers: &Servers,
) -> Result<BTreeMap<String, Vec<DynTool>>, Failure> {
    let outside = file.all().any(|(_, spec)| reaches_outside(spec));
    let outbound = match outside {
        true => Some(outbound(config)?),
        false => None,
    };
    let mut all = BTreeMap::new();
    for (name, spec) in file.all() {
        let mut tools = Vec::new();
        for tool in &spec.tools.builtin {
            tools.extend(made(config, outbound.as_ref(), tool)?);
        }
        for settings in &spec.tools.http {
            if let Some(outbound) = &outbound {
                tools.push(http(config, outbound, settings)?);
            }
        }
        tools.extend(servers.tools(file, name));
        all.insert(name.to_owned(), tools);
    }
    Ok(all)
}

/// All that this program brings, as its own agents are given them.
pub(crate) fn all(config: &Config) -> Result<Vec<DynTool>, Failure> {
    let outbound = outbound(config)?;
    let mut tools = Vec::new();
    for name in [SEARCH, WEATHER, PAGE, THINK] {
        tools.extend(made(config, Some(&outbound), name)?);
    }
    Ok(tools)
}

/// Whether there is nothing to search the web with.
pub(crate) fn lacks_search(config: &Config) -> Result<bool, Failure> {
    let is_set = |key: &str| Ok::<_, Failure>(config.get(key)?.is_some());
    Ok(!is_set("tavily.api_key")? && !is_set("tavily.base_url")?)
}

/// What researchers are given: the web.
pub(crate) fn of_research(config: &Config) -> Result<Vec<DynTool>, Failure> {
    let outbound = outbound(config)?;
    let mut tools = Vec::new();
    for name in [SEARCH, PAGE, THINK] {
        tools.extend(made(config, Some(&outbound), name)?);
    }
    Ok(tools)
}

/// The tool that gives money back, as the support agent is given it.
pub(crate) fn refund(config: &Config) -> Result<DynTool, Failure> {
    issue_refund(&outbound(config)?, refunds(config)?).map_err(|error| wrong_refunds(config, error))
}

/// Where refunds go, for people.
pub(crate) fn tell_of_refunds(config: &Config) -> Result<String, Failure> {
    let refunds = refunds(config)?;
    let place = refunds.place();
    Ok(match refunds {
        Refunds::Ledger(_) => format!(
            "refunds: written into the ledger {place} (REFUND_BASE_URL names a service instead)"
        ),
        Refunds::Service { .. } => format!("refunds: sent to {place}"),
    })
}

/// Whether these agents may give money back.
pub(crate) fn may_refund(file: &AgentFile) -> bool {
    let mut specs = file.all();
    specs.any(|(_, spec)| spec.tools.builtin.iter().any(|name| name == REFUND))
}

fn refunds(config: &Config) -> Result<Refunds, Failure> {
    if let Some(base) = base(config, "refund.base_url")? {
        let token = config.get("refund.token")?;
        let token = token.map(|found| found.text.into());
        return Ok(Refunds::Service { base, token });
    }
    let found = config.get("refund.ledger")?.ok_or_else(|| {
        Failure::usage(
            "this platform names no directory for data: set REFUND_LEDGER or PARAPH_DATA_DIR",
        )
    })?;
    Ok(Refunds::Ledger(PathBuf::from(found.text)))
}

/// Names the setting that is at fault.
fn wrong_refunds(config: &Config, error: paraph_tools::Error) -> Failure {
    let key = match config.get("refund.base_url") {
        Ok(Some(_)) => "refund.token",
        _ => "refund.ledger",
    };
    match config.get(key) {
        Ok(Some(found)) => found.wrong(key, error),
        _ => Failure::usage(error),
    }
}

fn reaches_outside(spec: &AgentSpec) -> bool {
    let tools = &spec.tools;
    !tools.http.is_empty()
        || tools
            .builtin
            .iter()
            .any(|name| ![THINK, CORPUS].contains(&name.as_str()))
}

fn made(
    config: &Config,
    outbound: Option<&Outbound>,
    name: &str,
) -> Result<Option<DynTool>, Failure> {
    Ok(match (name, outbound) {
        (THINK, _) => Some(think()),
        (CORPUS, _) => Some(search_corpus(crate::corpus::opener(config)?)),
        (PAGE, Some(outbound)) => Some(fetch_page(outbound)),
        (SEARCH, Some(outbound)) => {
            let key = config.get("tavily.api_key")?.map(|found| found.text.into());
            let mut settings = WebSearch::tavily(key).map_err(Failure::usage)?;
            if let Some(base) = base(config, "tavily.base_url")? {
                settings.base = base;
            }
            Some(web_search(outbound, settings).map_err(Failure::usage)?)
        }
        (WEATHER, Some(outbound)) => {
            let mut settings = Weather::open_meteo().map_err(Failure::usage)?;
            if let Some(base) = base(config, "open_meteo.base_url")? {
                settings.forecast = base;
            }
            if let Some(base) = base(config, "open_meteo.geocoding_url")? {
                settings.geocoding = base;
            }
            Some(get_weather(outbound, settings))
        }
        (REFUND, Some(_)) => Some(refund(config)?),
        _ => None,
    })
}

fn base(config: &Config, key: &str) -> Result<Option<Base>, Failure> {
    let Some(found) = config.get(key)? else {
        return Ok(None);
    };
    let base = Base::new(&found.text);
    base.map(Some).map_err(|error| found.wrong(key, error))
}

fn http(config: &Config, outbound: &Outbound, settings: &Value) -> Result<DynTool, Failure> {
    let settings: HttpTool = serde_json::from_value(settings.clone()).map_err(Failure::usage)?;
    let secret = |name: &str| secret(config, name);
    http_tool(outbound, &settings, &secret).map_err(Failure::usage)
}

/// A secret by its name, if it is set.
pub(crate) fn secret(config: &Config, name: &str) -> Option<SecretString> {
    let found = config.environment.secret(name).ok().flatten()?;
    Some(found.text.into())
}

/// The guard through which everything reaches outside.
pub(crate) fn outbound(config: &Config) -> Result<Outbound, Failure> {
    let text = |key: &str| Ok::<_, Failure>(config.get(key)?.map(|found| found.text));
    let settings = OutboundSettings {
        proxies: Proxies {
            http: text("http_proxy")?,
            https: text("https_proxy")?,
            no_proxy: text("no_proxy")?,
        },
        ca_certificates: ca_certificates(config)?,
        ..OutboundSettings::default()
    };
    Outbound::new(&settings).map_err(Failure::usage)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;

    #[test]
    fn every_tool_that_is_listed_is_made_as_it_is_listed() {
        let config = Config::empty();
        let outbound = outbound(&config).unwrap();
        for listed in builtin() {
            let tool = made(&config, Some(&outbound), &listed.name)
                .unwrap()
                .unwrap();
            assert_eq!((tool.name, tool.level), (listed.name, listed.level));
        }
    }
}
