//! How the rehearsal model plays the parts of a research run: it reads what it is told and what was found, as models
//! do, and knows nothing that it was not told. Other questions and other documents get other, right reports.
//!
//! Its plan goes every way that the graph has: it plans, sends researchers, is held up by the red team, has the draft
//! written anew, and ends.

use super::prompt::{BRIEFER, CLARIFIER, DRAFTER, EXTRACTOR};
use super::reading::{ids_in, short};
use super::settings::Role;
use super::tally::{SEARCH, THINK};
use paraph_models::{Body, ChatRequest, Chunk, FinishReason, Message, ToolCallDelta};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Words that say nothing of what a text is about.
const EMPTY_WORDS: [&str; 81] = [
    "about", "after", "against", "also", "and", "are", "been", "being", "between", "both", "bring",
    "brings", "but", "can", "come", "comes", "could", "did", "does", "each", "for", "from", "get",
    "gets", "had", "has", "have", "how", "into", "its", "keep", "keeps", "kept", "long", "made",
    "main", "make", "makes", "making", "many", "more", "most", "much", "not", "one", "only",
    "other", "out", "over", "said", "say", "should", "some", "such", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "thing", "things", "this", "those", "was",
    "way", "ways", "well", "were", "what", "when", "where", "which", "who", "why", "with", "work",
    "works",
];

/// The most sentences that it takes from one text.
const TAKEN: usize = 4;

/// What it says to a request, in this part.
pub(crate) fn rehearse(role: Role, request: &ChatRequest) -> Chunk {
    let system = request
        .messages
        .first()
        .map(|m| m.text().into_owned())
        .unwrap_or_default();
    let human = request.messages.iter().find(|m| m.body == Body::Human);
    let human = human.map(|m| m.text().into_owned()).unwrap_or_default();
    match role {
        Role::Writer if system == CLARIFIER => said(asks_back(&human).to_string()),
        Role::Writer if system.starts_with(BRIEFER) => said(brief(&human).to_string()),
        Role::Writer if system.starts_with(DRAFTER) => said(draft(&human)),
        Role::Writer => said(report(&human)),
        Role::RedTeam => said(attack(&human).to_string()),
        Role::Compressor if system.starts_with(EXTRACTOR) => said(facts(&human).to_string()),
        Role::Compressor => said(in_short(&human)),
        Role::Supervisor => supervise(&system, request),
        Role::Researcher => look_up(&human, request),
    }
}

fn said(text: String) -> Chunk {
    Chunk {
        text,
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::default()
    }
}

fn calls(wanted: Vec<(&str, Value)>) -> Chunk {
    let call = |(index, (name, args)): (u32, (&str, Value))| ToolCallDelta {
        index: Some(index),
        id: None,
        name: Some(name.to_owned()),
        arguments: args.to_string(),
        ..ToolCallDelta::default()
    };
    Chunk {
        tool_calls: (0..).zip(wanted).map(call).collect(),
        finish_reason: Some(FinishReason::ToolCalls),
        ..Chunk::default()
    }
}

/// The words that a text is about, each once, in order.
fn keywords(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        if word.chars().count() > 2
            && !EMPTY_WORDS.contains(&word)
            && !all.iter().any(|old| old == word)
        {
            all.push(word.to_owned());
        }
    }
    all
}

/// How many of these words a sentence has, also in another form.
fn overlap(sentence: &str, words: &[String]) -> usize {
    let own = keywords(sentence);
    let stem = |word: &str| word.chars().take(6).collect::<String>();
    let own: BTreeSet<_> = own.iter().map(|word| stem(word)).collect();
    words
        .iter()
        .filter(|word| own.contains(&stem(word)))
        .count()
}

/// The sentences of a text, without headings and list marks.
fn sentences(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines = paragraph
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#'));
        lines.collect::<Vec<_>>().join(" ")
    });
    for paragraph in paragraphs {
        let mut rest = paragraph.trim().trim_start_matches(['-', '*', '>', ' ']);
        while let Some(end) = rest.match_indices(['.', '!', '?']).find_map(|(at, mark)| {
            let next = rest.get(at + mark.len()..)?;
            (next.is_empty() || next.starts_with(' ')).then_some(at + mark.len())
        }) {
            let (sentence, tail) = rest.split_at(end);
            all.push(sentence.trim().to_owned());
            rest = tail.trim_start();
        }
    }
    all.retain(|sentence| sentence.split_whitespace().count() >= 5);
    all
}

/// The sentences that have most to do with these words, in their order.
fn best(text: &str, words: &[String], most: usize) -> Vec<String> {
    let all = sentences(text);
    let mut ranked: Vec<(usize, usize)> = all
        .iter()
        .enumerate()
        .map(|(at, sentence)| (overlap(sentence, words), at))
        .filter(|(hits, _)| *hits > 0)
        .collect();
    ranked.sort_by_key(|(hits, at)| (std::cmp::Reverse(*hits), *at));
    ranked.truncate(most);
    ranked.sort_by_key(|(_, at)| *at);
    ranked
        .into_iter()
        .filter_map(|(_, at)| all.get(at).cloned())
        .collect()
}

/// The texts of sources in notes, with their ids: what stands between the marks.
fn source_texts(notes: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in notes.lines() {
        if line.starts_with("=====[") {
            all.extend(open.take());
            if line.contains(" begins: ") {
                open = ids_in(line).pop().map(|id| (id, String::new()));
            }
        } else if let Some((_, text)) = &mut open {
            text.push_str(line);
            text.push('\n');
        }
    }
    all.extend(open);
    all
}

/// What stands behind a label at the beginning of a line.
fn labelled<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix(label))
        .map(str::trim)
}

/// The lines behind one that is this heading, up to the next blank line.
fn section<'t>(text: &'t str, heading: &str) -> Vec<&'t str> {
    let lines = text.lines().skip_while(|line| *line != heading).skip(1);
    lines.take_while(|line| !line.trim().is_empty()).collect()
}

fn asks_back(question: &str) -> Value {
    match keywords(question).len() {
        0..2 => json!({"question": "What about it would you like to know, and what for?"}),
        _ => json!({"question": null}),
    }
}

fn brief(question: &str) -> Value {
    let question = question.lines().next().unwrap_or_default().trim();
    let about = keywords(question).join(" ");
    let questions = [
        question.to_owned(),
        format!("Figures and measurements about {about}"),
        format!("Limits and open problems of {about}"),
    ];
    json!({
        "brief": format!("Find out what the sources say about this, with figures and disagreements: {question}"),
        "questions": questions,
        "complexity": "simple",
    })
}

/// Facts as lines `- text [ids]`.
fn fact_lines(text: &str) -> Vec<&str> {
    let facts = section(text, "Facts:");
    facts
        .into_iter()
        .filter_map(|line| line.strip_prefix("- "))
        .collect()
}

/// Sentences with their sources, from findings, when no facts were made of them yet.
fn finding_lines(text: &str) -> Vec<&str> {
    let (_, findings) = text.split_once("Findings:\n").unwrap_or_default();
    let findings = findings.split("\n\nSources:\n").next().unwrap_or_default();
    let cited = findings.lines().filter_map(|line| line.strip_prefix("- "));
    cited.filter(|line| !ids_in(line).is_empty()).collect()
}

fn known_lines(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let lines = [fact_lines(text), finding_lines(text)].concat();
    let new = lines
        .into_iter()
        .filter(|line| seen.insert(line.to_lowercase()));
    new.map(str::to_owned).collect()
}

fn draft(task: &str) -> String {
    let question = labelled(task, "Question: ").unwrap_or_default();
    let known = known_lines(task);
    if known.is_empty() {
        return format!("Nothing was looked up yet about: {question} (unverified)");
    }
    let lines: Vec<_> = known
        .iter()
        .take(2 * TAKEN)
        .map(|line| placed(line))
        .collect();
    lines.join("\n\n")
}

/// `Text. [ids]` as a sentence with its sources before the full stop.
fn placed(line: &str) -> String {
    match line.rsplit_once(" [") {
        Some((text, ids)) => {
            let ids = ids.trim_end_matches(['.', ']']);
            format!("{} [{ids}].", text.trim_end_matches('.'))
        }
        None => line.to_owned(),
    }
}

fn attack(task: &str) -> Value {
    let (_, draft) = task.rsplit_once("Draft:\n").unwrap_or_default();
    match draft.contains("(unverified)") {
        true => json!({"still_open": [], "new": [{
            "concern": "The draft rests on nothing that was read.",
            "severity": 9,
        }]}),
        false => json!({"still_open": [], "new": []}),
    }
}

fn facts(task: &str) -> Value {
    let words = keywords(labelled(task, "Question: ").unwrap_or_default());
    let texts = source_texts(task);
    let facts = texts.iter().flat_map(|(id, text)| {
        let best = best(text, &words, TAKEN);
        best.into_iter()
            .map(move |fact| json!({"fact": fact, "sources": [id]}))
    });
    json!({"facts": facts.collect::<Vec<_>>()})
}

fn in_short(task: &str) -> String {
    let topic = labelled(task, "Topic: ").unwrap_or_default();
    let words = keywords(topic);
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    for (id, text) in source_texts(task) {
        for sentence in best(&text, &words, TAKEN) {
            if seen.insert(sentence.clone()) {
                lines.push(format!("- {sentence} [{id}]"));
            }
        }
    }
    match lines.is_empty() {
        true => format!("Missing: nothing was found about {}", short(topic, 200)),
        false => lines.join("\n"),
    }
}

fn report(task: &str) -> String {
    let question = labelled(task, "Question: ").unwrap_or_default();
    let words = keywords(question);
    let mut known = known_lines(task);
    known.sort_by_key(|line| std::cmp::Reverse(overlap(line, &words)));
    let mut text = format!("# {}\n", short(question, 160));
    let (first, rest) = known.split_at(known.len().min(2));
    for line in first {
        text.push_str(&format!("\n{}\n", placed(line)));
    }
    if !rest.is_empty() {
        text.push_str("\n## What the sources say\n");
        for line in rest.iter().take(6 * TAKEN) {
            text.push_str(&format!("\n- {}", placed(line)));
        }
        text.push('\n');
    }
    let missing: Vec<_> = task
        .lines()
        .filter_map(|line| line.strip_prefix("Missing: "))
        .collect();
    if known.is_empty() || !missing.is_empty() {
        text.push_str("\n## What is missing\n");
        let missing = match missing.is_empty() {
            true => vec!["Nothing that answers the question was found."],
            false => missing,
        };
        for line in missing {
            text.push_str(&format!("\n- {line}"));
        }
        text.push('\n');
    }
    text
}

fn supervise(system: &str, request: &ChatRequest) -> Chunk {
    let made: Vec<&str> = request
        .messages
        .iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.name.as_str())
        .collect();
    let has = |name: &str| made.contains(&name);
    let planned = made.iter().filter(|name| **name == THINK).count();
    let think = |text: String| (THINK, json!({"reflection": text}));
    if !has(super::desk::CONDUCT) {
        let begin = request.messages.iter().find(|m| m.body == Body::Human);
        let begin = begin.map(|m| m.text().into_owned()).unwrap_or_default();
        let topics: Vec<_> = begin
            .lines()
            .filter_map(|line| line.strip_prefix("- "))
            .collect();
        let mut wanted = vec![think(format!(
            "{} questions, none depends on another: all at once.",
            topics.len()
        ))];
        wanted.extend(topics.iter().map(|topic| {
            let args = json!({"topic": topic, "complexity": "simple"});
            (super::desk::CONDUCT, args)
        }));
        return calls(wanted);
    }
    if planned < 2 {
        return calls(vec![think(
            "The reports are there. Is the question answered?".to_owned(),
        )]);
    }
    let grave = system.contains("(severity 9)");
    match (has(super::desk::FINISH), has(super::desk::REFINE), grave) {
        (true, false, true) => {
            let args = json!({"instructions": "Rest each sentence on what was read."});
            calls(vec![(super::desk::REFINE, args)])
        }
        _ => calls(vec![(
            super::desk::FINISH,
            json!({"reason": "The reports answer the question."}),
        )]),
    }
}

/// A researcher: searches, thinks, reads the best page, thinks, searches for the rest, thinks, and says what it found.
fn look_up(topic: &str, request: &ChatRequest) -> Chunk {
    let messages = &request.messages;
    let results: Vec<&Message> = messages
        .iter()
        .filter(|m| m.tool_call_id().is_some())
        .collect();
    let made: Vec<_> = messages.iter().flat_map(Message::tool_calls).collect();
    let count = |name: &str| made.iter().filter(|call| call.name == name).count();
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let words = keywords(topic);
    let last = made.last().map(|call| call.name.as_str());
    if last.is_some_and(|name| name != THINK) && offered(THINK) {
        let read: Vec<_> = results.iter().flat_map(|m| ids_in(&m.text())).collect();
        let seen: BTreeSet<_> = read.iter().collect();
        let text = format!(
            "After {} calls there are {} sources. What do they say about {}?",
            results.len(),
            seen.len(),
            words.join(" ")
        );
        return calls(vec![(THINK, json!({"reflection": text}))]);
    }
    if count(SEARCH) == 0 && offered(SEARCH) {
        return calls(vec![(SEARCH, json!({"query": query(&words, 0)}))]);
    }
    if count("fetch_page") == 0
        && offered("fetch_page")
        && let Some(url) = results.iter().find_map(|m| address(&m.text()))
    {
        return calls(vec![("fetch_page", json!({"url": url}))]);
    }
    if count(SEARCH) == 1 && offered(SEARCH) && words.len() > 3 {
        return calls(vec![(
            SEARCH,
            json!({"query": query(&words, words.len() / 2)}),
        )]);
    }
    let notes: Vec<_> = results.iter().map(|m| m.text().into_owned()).collect();
    said(in_short(&format!("Topic: {topic}\n{}", notes.join("\n\n"))))
}

fn query(words: &[String], from: usize) -> String {
    let words = words.get(from..).unwrap_or_default();
    let some: Vec<_> = words.iter().take(8).map(String::as_str).collect();
    match some.is_empty() {
        true => "overview".to_owned(),
        false => some.join(" "),
    }
}

/// The address of the first source in a result.
fn address(text: &str) -> Option<String> {
    labelled(text, "address: ").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_ranked_by_the_words_of_the_question_and_kept_in_order() {
        let text = "# Heading\n\nCats sleep for most of the day. Dogs run in the park every day.\nNobody knows why.\n\n- Cats hunt mice at night, mostly. e.g. 3.5 hours of it.";
        let words = keywords("Why do cats sleep so much?");
        assert_eq!(words, ["cats", "sleep"]);
        let best = best(text, &words, 2);
        assert_eq!(
            best,
            [
                "Cats sleep for most of the day.",
                "Cats hunt mice at night, mostly."
            ]
        );
    }

    #[test]
    fn sources_stand_in_a_sentence_before_its_end() {
        assert_eq!(
            placed("It is so. [src-0011aabb]"),
            "It is so [src-0011aabb]."
        );
        assert_eq!(placed("It is so"), "It is so");
    }

    #[test]
    fn texts_between_marks_are_found_with_their_ids() {
        let notes = "words\n=====[ title of src-0011aabb ]\nTwo words.\n=====[ text of src-0011aabb begins: page ]\nOne.\nTwo.\n=====[ text of src-0011aabb ends ]\n=====[ output ]";
        assert_eq!(
            source_texts(notes),
            [("src-0011aabb".to_owned(), "One.\nTwo.\n".to_owned())]
        );
    }
}
