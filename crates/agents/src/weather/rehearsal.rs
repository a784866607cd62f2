//! How the rehearsal model plays the weather agent's part: it reads the question and the observations, as a model
//! does, and knows nothing that it was not told.

use paraph_models::{Body, ChatRequest, Chunk, FinishReason, Message, ToolCallDelta};
use serde_json::{Value, json};

const SEARCH: &str = "web_search";
const WEATHER: &str = "get_weather";

/// What the traveller wants to know.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) city: Option<String>,
    /// Whether a hotel is to be found, and not only the weather.
    pub(super) hotel: bool,
    pub(super) fahrenheit: bool,
    pub(super) limit: Option<Limit>,
}

/// What the temperature is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) degrees: f64,
    /// Or higher.
    pub(super) lower: bool,
}

/// What it says to a request.
pub(crate) fn rehearse(request: &ChatRequest) -> Chunk {
    let messages = &request.messages;
    let begin = messages.iter().rposition(|m| m.body == Body::Human);
    let (text, since) = match begin {
        Some(at) => (messages[at].text().into_owned(), &messages[at + 1..]),
        None => (String::new(), &messages[..0]),
    };
    let question = read(&text);
    match next(&question, &|tool| seen(since, tool)) {
        Move::Answer(text) => Chunk {
            text,
            finish_reason: Some(FinishReason::Stop),
            ..Chunk::default()
        },
        Move::Call(tool, args) => Chunk {
            tool_calls: vec![ToolCallDelta {
                index: Some(0),
                id: None,
                name: Some(tool.to_owned()),
                arguments: args.to_string(),
                ..ToolCallDelta::default()
            }],
            finish_reason: Some(FinishReason::ToolCalls),
            ..Chunk::default()
        },
    }
}

enum Move {
    Call(&'static str, Value),
    Answer(String),
}

/// What a tool said last.
enum Seen {
    Facts(Value),
    Failure(String),
}

fn seen(messages: &[Message], tool: &str) -> Option<Seen> {
    let calls = messages.iter().flat_map(Message::tool_calls);
    let ids: Vec<&str> = calls
        .filter(|call| call.name == tool)
        .map(|call| &*call.id)
        .collect();
    let of_tool = |m: &&Message| m.tool_call_id().is_some_and(|id| ids.contains(&id));
    let text = messages.iter().rfind(of_tool)?.text().into_owned();
    let facts: Value = serde_json::from_str(&text).unwrap_or_default();
    let word = |key: &str| facts.get(key).and_then(Value::as_str);
    Some(match word("message").or(word("error")) {
        Some(why) => {
            let why = why.split_once("failed: ").map_or(why, |(_, why)| why);
            Seen::Failure(why.trim_end_matches('.').to_owned())
        }
        None if facts.is_object() => Seen::Facts(facts),
        None => Seen::Failure(text),
    })
}

fn next(question: &Question, seen: &dyn Fn(&str) -> Option<Seen>) -> Move {
    let Some(city) = &question.city else {
        return Move::Answer(
            "Which city do you mean? In a rehearsal I look for the word after \"in\".".to_owned(),
        );
    };
    let mut hotel = None;
    let mut place = city.clone();
    if question.hotel {
        match seen(SEARCH) {
            None => {
                let query = format!("hotel in {city}");
                return Move::Call(SEARCH, json!({"query": query}));
            }
            Some(Seen::Failure(why)) => {
                return Move::Answer(format!("I found no hotel in {city}: {why}."));
            }
            Some(Seen::Facts(facts)) => {
                let first = &facts["results"][0];
                let Some(title) = first["title"].as_str() else {
                    return Move::Answer(format!("I found no hotel in {city}."));
                };
                hotel = Some(title.to_owned());
                // The weather is that of the place which was found.
                let content = first["content"].as_str().unwrap_or_default();
                place = located(content).unwrap_or(place);
            }
        }
    }
    match seen(WEATHER) {
        None => {
            let mut args = json!({"place": place});
            if question.fahrenheit {
                args["unit"] = json!("fahrenheit");
            }
            Move::Call(WEATHER, args)
        }
        Some(Seen::Failure(why)) => {
            let found = hotel.map_or(String::new(), |hotel| format!("I found {hotel}. "));
            Move::Answer(format!(
                "{found}I do not know the temperature in {city}: {why}."
            ))
        }
        Some(Seen::Facts(facts)) => Move::Answer(conclude(question, hotel.as_deref(), &facts)),
    }
}

fn conclude(question: &Question, hotel: Option<&str>, facts: &Value) -> String {
    let place = facts["place"].as_str().unwrap_or("there");
    let Some(degrees) = facts["temperature"].as_f64() else {
        return format!("I do not know the temperature in {place}.");
    };
    let unit = facts["unit"].as_str().unwrap_or("°C");
    let now = format!("it is {degrees} {unit} in {place} now");
    let Some(limit) = question.limit else {
        return match hotel {
            Some(hotel) => format!("The first hotel I found is {hotel}; {now}."),
            None => format!("Right: {now}."),
        };
    };
    let word = if limit.lower { "lower" } else { "higher" };
    let holds = match limit.lower {
        true => degrees < limit.degrees,
        false => degrees > limit.degrees,
    };
    let not = if holds { "" } else { "not " };
    let verdict = format!("{now}, which is {not}{word} than {}", limit.degrees);
    match (hotel, holds) {
        (Some(hotel), true) => format!("The first hotel I found is {hotel}. There {verdict}."),
        (Some(hotel), false) => {
            format!("I would not send you to {hotel}, the first hotel I found: {verdict}.")
        }
        (None, true) => format!("Yes: {verdict}."),
        (None, false) => format!("No: {verdict}."),
    }
}

/// The place in "Location: Boston, Massachusetts, United States. …".
fn located(content: &str) -> Option<String> {
    let (_, rest) = content.split_once("Location: ")?;
    let place = rest.split('.').next()?.trim();
    (!place.is_empty()).then(|| place.to_owned())
}

/// Reads a question.
pub(super) fn read(text: &str) -> Question {
    let lower = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let degrees = number(&lower);
    Question {
        city: city(text),
        hotel: has(&["hotel", "stay", "sleep", "room"]),
        fahrenheit: has(&["fahrenheit", "°f"]),
        limit: degrees.map(|degrees| Limit {
            degrees,
            lower: !has(&["higher", "above", "over", "warmer", "more than", "at least"]),
        }),
    }
}

/// The words with a capital behind the first "in".
fn city(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = |word: &&str| word.eq_ignore_ascii_case("in");
    let starts = (0..words.len()).filter(|i| words.get(*i).is_some_and(at));
    for start in starts {
        let mut name = Vec::new();
        for word in words.iter().skip(start + 1) {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            if !bare.starts_with(char::is_uppercase) {
                break;
            }
            name.push(bare);
            // A mark behind a word ends the name.
            if word.ends_with(|c: char| ".,;:?!".contains(c)) {
                break;
            }
        }
        if !name.is_empty() {
            return Some(name.join(" "));
        }
    }
    None
}

/// The first number.
fn number(text: &str) -> Option<f64> {
    let token = |c: char| !(c.is_ascii_digit() || c == '.' || c == '-');
    text.split(token)
        .map(|part| part.trim_end_matches(['.', '-']))
        .find_map(|part| part.parse().ok())
}
