//! Tools that reach outside: search, pages, weather, any HTTP API, MCP servers. All of it through one guard.
//!
//! Each is a [`DynTool`](paraph_gateway::DynTool) of the gateway: the command line composes them into one, agents
//! are handed it. This crate knows no graph, no model and no policy, and reads no environment: whoever composes a
//! program hands it settings and secrets.
//!
//! # Layout
//! - `outbound`: [`Outbound`], the only HTTP client, and what it lets through.
//! - `search`, `page`, `weather`, `think`: the tools that every agent can be given.
//! - `github`: issues of GitHub: evidence about one, listings, and the comment that a person approved.
//! - `local`: search and pages over a folder of documents, without a network ([`local_sources`]).
//! - `corpus`: search in a corpus of issues ([`search_corpus`]).
//! - `refund`: the tool that gives money back, after a person has approved it.
//! - `http`: tools that are one HTTP request, from configuration.
//! - `post`: notices of the program itself, by [`Outbound::post_json`].
//! - `mcp`: the tools of MCP servers, and a server as the place that is searched ([`McpClient::sources`]).
//! - `arguments`: what the tools take, before they are made.
//! - `typed`: from a function with typed arguments to a tool.
//! - `setting`: values of configuration that may be secret.
//! - `said`: servers' own words, made fit for our errors.
#![cfg_attr(
    test,
    allow(
        clippy::duplicate_mod,
        reason = "the server that unit tests talk to has the world of the rehearsal behind it"
    )
)]

mod error;
mod said;
mod setting;

mod outbound;

mod arguments;
mod typed;

mod corpus;
mod github;
mod http;
mod local;
mod mcp;
mod page;
mod post;
mod refund;
mod search;
mod think;
mod weather;

// The server that unit tests talk to is the one of the tests beside `src`.
#[cfg(test)]
#[path = "../tests/stand_in/mod.rs"]
mod stand_in;

pub use arguments::arguments;
pub use corpus::{OpenCorpus, search_corpus};
pub use error::Error;
pub use github::{
    DeviceLogin, GITHUB_API_URL, GitHub, GitHubFault, GitHubProgress, GitHubSettings, IssuePage,
    IssueQuery, REHEARSAL_ISSUE, Target, Viewer, post_triage,
};
pub use http::{HttpFormat, HttpMethod, HttpTool, http_tool};
pub use local::{LocalSources, local_sources};
pub use mcp::{
    McpClient, McpOptions, McpPin, McpPins, McpProtocol, McpReview, McpServer, McpSources, McpTool,
};
pub use outbound::{Base, Fetched, Lookup, Outbound, OutboundSettings, Proxies};
pub use page::fetch_page;
pub use refund::{Refunds, issue_refund};
pub use search::{DEFAULT_RESULTS, TAVILY_URL, WebSearch, web_search};
pub use secrecy::SecretString;
pub use setting::{SecretRef, Secrets, Setting};
pub use think::think;
pub use weather::{OPEN_METEO_GEOCODING_URL, OPEN_METEO_URL, Weather, get_weather};

/// The README's examples, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
