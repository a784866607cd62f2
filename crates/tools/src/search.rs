//! `web_search`: Tavily's search, a few results at a time.
//!
//! A search that was refused, went wrong or found nothing is an error that says so: from a bare empty list a model
//! would conclude that there is nothing, or make something up.

use paraph_gateway::DynTool;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Error;
use crate::outbound::{Base, Fetched, Outbound, Request};
use crate::said::cut;
use crate::typed::tool;

/// Tavily's own address.
pub const TAVILY_URL: &str = "https://api.tavily.com";

/// How many results a search gives unless it is told otherwise.
pub const DEFAULT_RESULTS: u8 = 3;

/// How many characters of one result's content are kept.
const MAX_CONTENT: usize = 2_000;

const ABOUT: &str = "Search the web. Gives the title, address and a passage of the pages that fit best. Ask for one \
    thing at a time, in a few words that would stand on the page.";

/// What the search needs. `Debug` does not show the key.
#[derive(Clone, Debug)]
pub struct WebSearch {
    /// The server: [`TAVILY_URL`], or another that speaks its protocol.
    pub base: Base,
    /// The key. Without one, Tavily itself is not asked.
    pub key: Option<SecretString>,
    /// How many results a call without `max_results` gets, 1 to 20.
    pub max_results: u8,
}

impl WebSearch {
    /// Tavily itself, with [`DEFAULT_RESULTS`].
    ///
    /// # Errors
    /// None for the address that is built in.
    pub fn tavily(key: Option<SecretString>) -> Result<WebSearch, Error> {
        Ok(WebSearch {
            base: Base::new(TAVILY_URL)?,
            key,
            max_results: DEFAULT_RESULTS,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    /// What to look for.
    #[schemars(length(min = 1, max = 400))]
    pub(crate) query: String,
    /// How many results; a few if left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20))]
    pub(crate) max_results: Option<u8>,
}

/// What the model reads.
#[derive(Serialize)]
pub(crate) struct Found {
    results: Vec<Hit>,
}

impl Found {
    /// Some results, which must not be none.
    pub(crate) fn some(results: Vec<Hit>) -> Result<Found, Error> {
        match results.is_empty() {
            false => Ok(Found { results }),
            true => Err(Error::Nothing {
                problem: "the search found nothing; try fewer or other words".to_owned(),
            }),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Hit {
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) score: Option<f64>,
}

impl Hit {
    fn is_useful(&self) -> bool {
        let says_something = !self.title.is_empty() || !self.content.is_empty();
        says_something && !self.url.is_empty()
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Hit>,
}

/// The tool `web_search`.
///
/// # Errors
/// [`Error::Config`] if the key cannot be sent.
pub fn web_search(outbound: &Outbound, settings: WebSearch) -> Result<DynTool, Error> {
    let authorization = settings.key.as_ref().map(bearer).transpose()?;
    let official = settings.base.to_string() == TAVILY_URL;
    let searching = Searching {
        outbound: outbound.clone(),
        missing_key: official && authorization.is_none(),
        authorization,
        settings,
    };
    Ok(tool("web_search", ABOUT, move |query: Query| {
        let searching = searching.clone();
        async move { searching.search(query).await }
    }))
}

fn bearer(key: &SecretString) -> Result<HeaderValue, Error> {
    let header = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()));
    let mut header = header.map_err(|_| {
        Error::config(
            "the key of web_search",
            "it has characters that no header can carry",
        )
    })?;
    header.set_sensitive(true);
    Ok(header)
}

#[derive(Clone)]
struct Searching {
    outbound: Outbound,
    settings: WebSearch,
    authorization: Option<HeaderValue>,
    missing_key: bool,
}

impl Searching {
    async fn search(&self, query: Query) -> Result<Found, Error> {
        if self.missing_key {
            return Err(Error::config(
                "web_search",
                "there is no key for the search service (TAVILY_API_KEY)",
            ));
        }
        let most = query.max_results.unwrap_or(self.settings.max_results);
        let body = json!({"query": query.query, "max_results": most});
        let mut request = Request::new(Method::POST, self.settings.base.join("search"));
        request.body = Some(body.to_string().into_bytes());
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(CONTENT_TYPE, json);
        if let Some(authorization) = &self.authorization {
            request.headers.insert(AUTHORIZATION, authorization.clone());
        }
        let fetched = self.outbound.send(request).await?;
        let fetched = fetched.success(|text| self.hide(text)).map_err(explain)?;
        let mut found = read(&fetched)?;
        found.truncate(usize::from(most));
        Found::some(found)
    }

    fn hide(&self, text: &str) -> String {
        match &self.settings.key {
            Some(key) => crate::said::without(text, [key.expose_secret()]),
            None => text.to_owned(),
        }
    }
}

/// Results without an address or without words help nobody.
fn read(fetched: &Fetched) -> Result<Vec<Hit>, Error> {
    let answer = fetched.json()?;
    let answer = Answer::deserialize(&answer).map_err(|error| Error::Broken {
        host: fetched.host(),
        problem: format!("it is no list of search results: {error}"),
    })?;
    let useful = answer.results.into_iter().filter(Hit::is_useful);
    let cut_short = useful.map(|hit| Hit {
        content: cut(hit.content, MAX_CONTENT),
        ..hit
    });
    Ok(cut_short.collect())
}

/// What Tavily's own statuses mean.
fn explain(error: Error) -> Error {
    let Error::Status {
        host,
        status,
        said,
        retry_after,
    } = error
    else {
        return error;
    };
    let meaning = match status {
        401 | 403 => "the key of the search service is not accepted",
        429 => "too many searches at a time; no search was made",
        432 | 433 => "the search plan is used up; no search was made",
        _ => "",
    };
    let said = match (meaning, said.as_str()) {
        ("", _) => said,
        (meaning, "") => meaning.to_owned(),
        (meaning, said) => format!("{meaning} ({said})"),
    };
    Error::Status {
        host,
        status,
        said,
        retry_after,
    }
}
