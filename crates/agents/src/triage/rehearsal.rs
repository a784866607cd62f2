//! How the rehearsal model plays the parts of triage: by rules over what it is told, so that other issues and other
//! snippets get other answers. It knows nothing that it was not told.

use super::settings::TriageRole;
use crate::research::short;
use paraph_models::{Body, ChatRequest, Chunk, FinishReason};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Words that say what was the matter, in the reports of maintainers.
const CAUSES: [&str; 14] = [
    "because",
    "caused by",
    "cause is",
    "cause was",
    "root cause",
    "due to",
    "turned out",
    "the fix",
    "fixed by",
    "fixed in",
    "happens when",
    "comes from",
    "showed",
    "this is",
];

/// Words of grave issues, and of issues that keep somebody from working.
const GRAVE: [&str; 10] = [
    "data loss",
    "lost data",
    "loses data",
    "corrupt",
    "security",
    "vulnerab",
    "deleted",
    "leak of",
    "password",
    "outage",
];
const BROKEN: [&str; 12] = [
    "crash",
    "error",
    "fail",
    "exception",
    "broken",
    "panic",
    "hang",
    "freez",
    "wrong",
    "does not",
    "doesn't",
    "cannot",
];

/// The shortest sentence that is quoted, in characters.
const SHORTEST: usize = 24;

/// The longest quote, in characters.
const LONGEST: usize = 400;

/// What it says to a request, in this part.
pub(crate) fn rehearse(role: TriageRole, request: &ChatRequest) -> Chunk {
    let human = request.messages.iter().find(|m| m.body == Body::Human);
    let told: Value = human
        .and_then(|message| serde_json::from_str(&message.text()).ok())
        .unwrap_or_default();
    let text = match role {
        TriageRole::Diagnosis => diagnose(&told).to_string(),
        TriageRole::Reviewer => criticise(&told),
    };
    Chunk {
        text,
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::default()
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The words that a text is about.
fn keywords(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let long = words.filter(|word| word.chars().count() > 3);
    long.map(|word| word.to_lowercase().chars().take(6).collect())
        .collect()
}

/// The sentences of a text as they stand in it.
fn sentences(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some((at, _)) = rest.match_indices(['.', '!', '?']).find(|(at, mark)| {
            let next = rest.get(at + mark.len()..).unwrap_or_default();
            next.is_empty() || next.starts_with(' ')
        }) {
            let (sentence, tail) = rest.split_at(at + 1);
            all.push(sentence.trim());
            rest = tail;
        }
        all.push(rest.trim());
    }
    // What was asked then explains nothing now.
    let tells = |sentence: &str| {
        !sentence.ends_with('?') && (SHORTEST..=LONGEST).contains(&sentence.chars().count())
    };
    all.retain(|sentence| tells(sentence));
    all
}

/// How much a sentence has to say about the issue.
fn weight(sentence: &str, words: &BTreeSet<String>) -> usize {
    let lower = sentence.to_lowercase();
    let causes = CAUSES.iter().filter(|cause| lower.contains(*cause)).count();
    let shared = keywords(sentence).intersection(words).count();
    causes * 3 + shared
}

fn diagnose(told: &Value) -> Value {
    let issue = &told["issue"];
    let own = format!("{} {}", text(issue, "title"), text(issue, "text"));
    let words = keywords(&own);
    let snippets = told["snippets"].as_array().into_iter().flatten();
    let strong = snippets.filter(|snippet| snippet["above_floor"] == true);
    let mut best: Vec<(usize, &str, &str)> = Vec::new();
    for snippet in strong {
        let ranked = sentences(text(snippet, "text"));
        let ranked = ranked.into_iter().map(|one| (weight(one, &words), one));
        if let Some((weight, sentence)) = ranked.max_by_key(|(weight, _)| *weight)
            && weight > 0
        {
            best.push((weight, text(snippet, "id"), sentence));
        }
    }
    best.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
    best.truncate(2);
    let cited: Vec<_> = best
        .iter()
        .map(|(_, id, quote)| json!({"id": id, "quote": quote}))
        .collect();
    let all = best.iter().map(|(_, _, quote)| *quote).collect::<Vec<_>>();
    let (cause, missing, steps) = match best.first() {
        Some((_, _, quote)) => (
            format!("An older report of the same kind says: {quote}"),
            missing(&own),
            vec![
                "Compare with the older report that is cited, and try its remedy.".to_owned(),
                "Ask the reporter whether it still happens with the newest version.".to_owned(),
            ],
        ),
        None => (
            "What was found does not show a cause.".to_owned(),
            vec!["The steps that lead to it, the version, and the whole message.".to_owned()],
            vec!["Ask the reporter for what is missing.".to_owned()],
        ),
    };
    json!({
        "root_cause": cause,
        "severity": severity(&format!("{own} {}", all.join(" "))),
        "missing_info": missing,
        "recommended_next_steps": steps,
        "citations": cited,
    })
}

fn missing(own: &str) -> Vec<String> {
    let lower = own.to_lowercase();
    let mut missing = Vec::new();
    if !lower.contains("version") && !own.chars().any(|c| c.is_ascii_digit()) {
        missing.push("The version that it happens with.".to_owned());
    }
    if !lower.contains("step") {
        missing.push("The steps that lead to it.".to_owned());
    }
    missing
}

/// By words alone; what is denied with a `no` before it does not count.
fn severity(about: &str) -> &'static str {
    let lower = about.to_lowercase();
    let says = |words: &[&str]| {
        words.iter().any(|word| {
            let found = lower.match_indices(word);
            found.into_iter().any(|(at, _)| {
                let before = lower.get(..at).unwrap_or_default();
                !before.ends_with("no ") && !before.ends_with("without ")
            })
        })
    };
    if says(&GRAVE) {
        "high"
    } else if says(&BROKEN) {
        "medium"
    } else {
        "low"
    }
}

/// Looks whether the quotes stand in the sources and have words of the issue.
fn criticise(told: &Value) -> String {
    let issue = &told["issue"];
    let words = keywords(&format!("{} {}", text(issue, "title"), text(issue, "text")));
    let sources: Vec<&Value> = told["sources"].as_array().into_iter().flatten().collect();
    if sources.is_empty() {
        return "Nothing is cited, so the cause is a guess.".to_owned();
    }
    let mut said = Vec::new();
    for source in sources {
        let (id, quote) = (short(text(source, "id"), 80), text(source, "quote"));
        let shared = keywords(text(source, "text")).intersection(&words).count();
        said.push(match (text(source, "text").contains(quote), shared) {
            (false, _) => format!("The quote from {id} does not stand there."),
            (true, 0..2) => format!(
                "The source {id} shares {shared} of the issue's words: it may be about something else."
            ),
            (true, _) => format!("The source {id} shares {shared} of the issue's words and says what is quoted."),
        });
    }
    said.push("Whether the reporter has the same version is not known.".to_owned());
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(title: &str, body: &str, above_floor: bool) -> Value {
        json!({
            "issue": {"title": title, "text": body, "labels": []},
            "comments": [],
            "snippets": [{
                "id": "a#0", "title": "t", "relevance": 0.8, "above_floor": above_floor,
                "text": "Menus show the wrong language. This happens because the cache key leaves out the locale. Thanks!",
            }],
        })
    }

    #[test]
    fn it_cites_letter_by_letter_what_is_above_the_floor_and_nothing_else() {
        let said = diagnose(&told("Wrong language in menus", "", true));
        let quote = "This happens because the cache key leaves out the locale.";
        assert_eq!(said["citations"], json!([{"id": "a#0", "quote": quote}]));
        assert_eq!(said["severity"], "medium");
        let said = diagnose(&told("Wrong language in menus", "", false));
        assert_eq!(said["citations"], json!([]));
        assert_eq!(said["root_cause"], "What was found does not show a cause.");
        assert_eq!(diagnose(&Value::Null)["citations"], json!([]));
    }

    #[test]
    fn severity_goes_by_words() {
        let table = [
            ("the colour of the button", "low"),
            ("it crashes", "medium"),
            ("all entries are deleted", "high"),
            ("no data loss, but an error", "medium"),
        ];
        for (about, expected) in table {
            assert_eq!(severity(about), expected, "{about}");
        }
    }

    #[test]
    fn a_criticism_says_what_does_not_fit() {
        let source = |quote: &str| {
            json!({
                "issue": {"title": "Wrong language in menus", "text": ""},
                "sources": [{"id": "a#0", "quote": quote, "text": "Menus show the wrong language."}],
            })
        };
        assert!(criticise(&source("made up")).contains("does not stand there"));
        assert!(criticise(&source("the wrong language")).contains("says what is quoted"));
        assert_eq!(
            criticise(&json!({})),
            "Nothing is cited, so the cause is a guess."
        );
    }
}
