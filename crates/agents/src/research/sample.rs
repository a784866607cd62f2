//! Tools over a handful of documents that are built in, for examples and tests: they take the same arguments as the real
//! ones and fail as they do. The program has better ones, over folders.

use paraph_gateway::{DynTool, Json, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

/// How many results a search gives.
const RESULTS: usize = 3;

#[derive(Deserialize)]
struct Query {
    query: String,
}

#[derive(Deserialize)]
struct Address {
    url: String,
}

/// `web_search`, `fetch_page` and `think` over [`sample_documents`](super::sample_documents). Nothing leaves the process.
#[must_use]
pub fn sample_sources() -> Vec<DynTool> {
    sources_of(super::sample_documents())
}

/// The same over these documents: each a path and a text.
pub(crate) fn sources_of(documents: &'static [(&'static str, &'static str)]) -> Vec<DynTool> {
    let text = |what: &str, most: u64| json!({"type": "string", "description": what, "minLength": 1, "maxLength": most});
    let object = |name: &str, property: Value| json!({"type": "object", "properties": {name: property}, "required": [name], "additionalProperties": false});
    vec![
        DynTool::new(
            super::SEARCH,
            "Searches a few documents (a built-in sample)",
            object("query", text("What to look for", 400)),
            async move |args: Json| search(documents, &read::<Query>(&args)?.query),
        ),
        DynTool::new(
            "fetch_page",
            "Reads one of a few documents (a built-in sample)",
            object("url", text("The address, as a search gave it", 4_096)),
            async move |args: Json| page(documents, &read::<Address>(&args)?.url),
        ),
        super::desk::think(),
    ]
}

fn read<T: serde::de::DeserializeOwned>(args: &Json) -> Result<T, ToolError> {
    serde_json::from_str(&args.to_string()).map_err(|error| ToolError::new(error.to_string()))
}

pub(super) fn search(documents: &[(&str, &str)], query: &str) -> Result<Value, ToolError> {
    let words: Vec<_> = query
        .to_lowercase()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let hits = |text: &str| {
        let text = text.to_lowercase();
        words
            .iter()
            .filter(|word| text.contains(word.as_str()))
            .count()
    };
    let mut ranked: Vec<_> = documents
        .iter()
        .map(|(path, text)| (hits(text), *path, *text))
        .collect();
    ranked.sort_by_key(|(hits, _, _)| std::cmp::Reverse(*hits));
    let found: Vec<_> = ranked
        .into_iter()
        .filter(|(hits, _, _)| *hits > 0)
        .take(RESULTS)
        .map(|(_, path, text)| {
            let best = text
                .split("\n\n")
                .max_by_key(|paragraph| hits(paragraph))
                .unwrap_or_default();
            json!({"title": title(text), "url": format!("local:{path}"), "content": best})
        })
        .collect();
    match found.is_empty() {
        true => Err(ToolError::new(
            "the search found nothing; try fewer or other words",
        )),
        false => Ok(json!({"results": found})),
    }
}

fn page(documents: &[(&str, &str)], url: &str) -> Result<Value, ToolError> {
    let known = documents
        .iter()
        .find(|(path, _)| url.strip_prefix("local:") == Some(path));
    let (_, text) = known.ok_or_else(|| ToolError::new(format!("there is no document `{url}`")))?;
    Ok(json!({"title": title(text), "url": url, "text": text}))
}

fn title(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches(['#', ' '])
}
