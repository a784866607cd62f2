//! A stand-in for Tavily's search, with the fields and statuses it documents.

use super::{Answer, Seen, StandIn};
use serde_json::{Value, json};

/// One search result.
pub fn hit(title: &str, url: &str, content: &str) -> Value {
    json!({"title": title, "url": url, "content": content, "score": 0.87, "raw_content": null})
}

/// A server that gives these results for every query whose words all stand in one of them, and nothing for others.
pub fn start(hits: Vec<Value>) -> StandIn {
    StandIn::start(move |seen| search(seen, &hits))
}

/// A server that answers every search with this status and reason.
pub fn refusing(status: u16, reason: &str) -> StandIn {
    let body = json!({"detail": {"error": reason}});
    StandIn::start(move |_| Answer::json(status, &body).with("Retry-After", "17"))
}

fn search(seen: &Seen, hits: &[Value]) -> Answer {
    let error = |status, reason: &str| Answer::json(status, &json!({"detail": {"error": reason}}));
    if seen.method != "POST" || seen.path() != "/search" {
        return error(404, "Not Found");
    }
    let key = seen.header("authorization");
    if !key.is_some_and(|key| key.starts_with("Bearer tvly-")) {
        return error(401, "Unauthorized: missing or invalid API key.");
    }
    let body = seen.json().unwrap_or_default();
    let Some(query) = body["query"].as_str().filter(|query| !query.is_empty()) else {
        return error(400, "Query is missing.");
    };
    let most = body["max_results"].as_u64().unwrap_or(5);
    if most > 20 {
        return error(400, "max_results must be between 0 and 20.");
    }
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let fits = |hit: &&Value| {
        let text = hit.to_string().to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let most = usize::try_from(most).unwrap();
    let found: Vec<&Value> = hits.iter().filter(fits).take(most).collect();
    let body = json!({
        "query": query, "answer": null, "images": [], "follow_up_questions": null, "results": found,
        "response_time": 0.42, "request_id": "00000000-0000-0000-0000-000000000001",
    });
    Answer::json(200, &body)
}
