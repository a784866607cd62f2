//! A rule-based model that plays the support agent's part, so that the agent runs without a key. For the
//! weather agent see `weather/rehearsal.rs`, for agents of files `declared/rehearsal.rs`.
//!
//! It is no script: it reads the task and the observations like any model, and speaks both dialects.
//! Other customers, prices and policies get other, right answers. It knows nothing that it was not told,
//! and never fails; what it cannot find out it says.

use crate::support::read_goal;
use crate::{Role, TriageRole};
use futures::StreamExt as _;
use paraph_models::{
    Body, ChatModel, ChatRequest, Chunk, ChunkStream, FinishReason, Message, ToolCallDelta, Usage,
};
use serde_json::{Value, json};

/// The rehearsal model, by the part that it plays. It uses no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// The support agent's.
    Support,
    /// The weather agent's.
    Weather,
    /// A part in a research run.
    Research(Role),
    /// A part in a triage run.
    Triage(TriageRole),
    /// That of an agent in a file, of which it has no facts to go by.
    Declared,
}

impl Rehearsal {
    /// The part of the agent of this name.
    pub fn of(agent: &str) -> Rehearsal {
        match agent {
            crate::support::NAME => Rehearsal::Support,
            crate::weather::NAME => Rehearsal::Weather,
            crate::research::NAME => Rehearsal::Research(Role::Supervisor),
            crate::triage::NAME => Rehearsal::Triage(TriageRole::Diagnosis),
            _ => Rehearsal::Declared,
        }
    }
}

impl ChatModel for Rehearsal {
    fn name(&self) -> &str {
        "rehearsal"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let chunk = match self {
            Rehearsal::Support if request.tools.is_empty() => {
                as_action(Brief::of_payload(&request.messages).next_move())
            }
            Rehearsal::Support => {
                let brief = Brief {
                    may_refund: request.tools.iter().any(|tool| tool.name == REFUND),
                    ..Brief::of_messages(&request.messages)
                };
                as_calls(brief.next_move())
            }
            Rehearsal::Weather => crate::weather::rehearse(request),
            Rehearsal::Research(role) => crate::research::rehearse(*role, request),
            Rehearsal::Triage(role) => crate::triage::rehearse(*role, request),
            Rehearsal::Declared => crate::declared::rehearse(request),
        };
        let chunk = Chunk {
            usage: Some(Usage::new(0, 0)),
            ..chunk
        };
        futures::stream::iter([Ok(chunk)]).boxed()
    }
}

const PROFILE: &str = "get_user_profile";
const BILLING: &str = "get_user_billing";
const POLICY: &str = "search_policy";
const REFUND: &str = crate::support::REFUND.0;

/// What it does next.
enum Move {
    /// Calls these tools, the most urgent first.
    Call(Vec<(&'static str, Value)>),
    Answer(String),
}

fn as_action(next: Move) -> Chunk {
    let action = match next {
        Move::Call(calls) => match calls.into_iter().next() {
            Some((name, args)) => json!({"kind": "tool", "name": name, "args": args}),
            None => json!({"kind": "final", "answer": "I have nothing to ask."}),
        },
        Move::Answer(answer) => json!({"kind": "final", "answer": answer}),
    };
    Chunk {
        text: action.to_string(),
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::default()
    }
}

fn as_calls(next: Move) -> Chunk {
    match next {
        Move::Answer(answer) => Chunk {
            text: answer,
            finish_reason: Some(FinishReason::Stop),
            ..Chunk::default()
        },
        Move::Call(calls) => Chunk {
            tool_calls: (0..)
                .zip(calls)
                .map(|(index, (name, args))| ToolCallDelta {
                    index: Some(index),
                    id: None,
                    name: Some(name.to_owned()),
                    arguments: args.to_string(),
                    signature: None,
                })
                .collect(),
            finish_reason: Some(FinishReason::ToolCalls),
            ..Chunk::default()
        },
    }
}

/// What it was told so far.
#[derive(Default)]
struct Brief {
    goal: String,
    profile: Option<Value>,
    billing: Option<Value>,
    policy: Option<Value>,
    /// What came of asking for the refund itself.
    refund: Option<Value>,
    /// Whether there is a tool for it.
    may_refund: bool,
}

impl Brief {
    /// From the support agent's prompt.
    fn of_payload(messages: &[Message]) -> Brief {
        let payload = messages.last().map(|message| message.text());
        let payload: Value = payload
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let mut brief = Brief {
            goal: payload["goal"].as_str().unwrap_or_default().to_owned(),
            may_refund: offers(&payload, REFUND),
            ..Brief::default()
        };
        for step in payload["recent_history"].as_array().into_iter().flatten() {
            if let Some(tool) = step["action"]["name"].as_str() {
                brief.learn(tool, step["observation"].clone());
            }
        }
        brief
    }

    /// From a conversation: its last question, and what was learned about that customer before.
    fn of_messages(messages: &[Message]) -> Brief {
        let is_task = |message: &&Message| message.body == Body::Human;
        let task = messages.iter().rfind(is_task);
        let mut brief = Brief {
            goal: task
                .map(|task| task.text().into_owned())
                .unwrap_or_default(),
            ..Brief::default()
        };
        let user = |goal: &str| read_goal(goal).map(|case| case.user);
        let asks = user(&brief.goal);
        let mut about = asks;
        let calls: Vec<_> = messages.iter().flat_map(Message::tool_calls).collect();
        for message in messages {
            if is_task(&message) {
                about = user(&message.text());
            }
            if about != asks {
                continue;
            }
            let Some(id) = message.tool_call_id() else {
                continue;
            };
            if let Some(call) = calls.iter().find(|call| call.id == id) {
                let seen = serde_json::from_str(&message.text()).unwrap_or_default();
                brief.learn(&call.name, seen);
            }
        }
        brief
    }

    fn learn(&mut self, tool: &str, seen: Value) {
        match tool {
            PROFILE => self.profile = Some(seen),
            BILLING => self.billing = Some(seen),
            POLICY => self.policy = Some(seen),
            REFUND => self.refund = Some(seen),
            _ => {}
        }
    }

    fn next_move(&self) -> Move {
        let Some(case) = read_goal(&self.goal) else {
            return Move::Answer(
                "The rehearsal model only knows the support agent's task.".to_owned(),
            );
        };
        let wants_it_made = wants_it_made(&case.question);
        if let (true, Some(seen)) = (wants_it_made, &self.refund) {
            return Move::Answer(told_of_refund(seen));
        }
        let user = json!({"user_id": case.user});
        let mut missing = Vec::new();
        if self.profile.is_none() {
            missing.push((PROFILE, user.clone()));
        }
        if self.billing.is_none() && !self.profile.as_ref().is_some_and(failed) {
            missing.push((BILLING, user));
        }
        let (Some(profile), true) = (&self.profile, missing.is_empty()) else {
            return Move::Call(missing);
        };
        for seen in [profile].into_iter().chain(&self.billing) {
            if let Some(why) = seen["error"].as_str() {
                return Move::Answer(format!(
                    "I cannot tell whether a refund is possible, so none is: {why}."
                ));
            }
        }
        let Some(billing) = self.billing.as_ref().map(|seen| &seen["billing"]) else {
            return Move::Answer("Without a billing record I cannot tell.".to_owned());
        };
        let account = Account::of(&profile["user"], billing);
        if is_about_the_account(&case.question) {
            return Move::Answer(account.describe());
        }
        match &self.policy {
            None => Move::Call(vec![(POLICY, json!({"query": account.query()}))]),
            Some(policy) => match account.due(policy) {
                Some(reason) if wants_it_made && self.may_refund => {
                    let args = json!({
                        "user_id": case.user,
                        "amount_cents": account.cents(),
                        "reason": reason,
                    });
                    Move::Call(vec![(REFUND, args)])
                }
                _ => Move::Answer(account.judge(policy)),
            },
        }
    }
}

/// Whether the payload of a prompt offers this tool.
fn offers(payload: &Value, name: &str) -> bool {
    let tools = payload["available_tools"].as_array();
    let mut tools = tools.into_iter().flatten();
    tools.any(|tool| tool["name"] == name)
}

/// Whether the customer wants the refund made, and not only to know about it.
fn wants_it_made(question: &str) -> bool {
    let question = question.to_lowercase().replace('\u{2019}', "'");
    let has = |words: &[&str]| words.iter().any(|word| question.contains(word));
    has(&[
        "refund me",
        "issue the refund",
        "issue a refund",
        "issue my refund",
        "make the refund",
    ]) && !has(&["n't ", "not ", "never ", "cannot "])
}

/// What came of asking for the refund.
fn told_of_refund(seen: &Value) -> String {
    let text = |key: &str| seen[key].as_str();
    match (text("refund"), text("amount"), text("error")) {
        (Some(name), Some(amount), None) => {
            format!("Done: {amount} are refunded to you (receipt {name}).")
        }
        (_, _, Some(why)) => format!(
            "The refund was not made. {}",
            text("message").unwrap_or(why)
        ),
        _ => "I asked for the refund and cannot tell what came of it.".to_owned(),
    }
}

fn failed(seen: &Value) -> bool {
    seen.get("error").is_some()
}

/// Whether the question is about the plan rather than about money back.
fn is_about_the_account(question: &str) -> bool {
    let question = question.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| question.contains(word));
    has(&["plan", "tier", "price", "cost", "subscrib"])
        && !has(&[
            "refund", "money", "back", "reimburs", "cancel", "return", "rembours",
        ])
}

/// The facts about a customer.
struct Account {
    name: String,
    plan: String,
    price: f64,
    days: Option<u64>,
}

impl Account {
    fn of(user: &Value, billing: &Value) -> Account {
        Account {
            name: user["name"].as_str().unwrap_or("the customer").to_owned(),
            plan: billing["plan"].as_str().unwrap_or("unknown").to_owned(),
            price: billing["price_usd"].as_f64().unwrap_or(0.0),
            days: billing["days_since_first_payment"].as_u64(),
        }
    }

    fn describe(&self) -> String {
        format!(
            "{}, you are on the {} plan, which costs {:.2} USD.",
            self.name, self.plan, self.price
        )
    }

    /// The words in which a policy for this plan is found.
    fn query(&self) -> String {
        format!("refund policy {}", self.plan.replace('_', " "))
    }

    /// The price in cents.
    fn cents(&self) -> u64 {
        (self.price * 100.0).round() as u64
    }

    /// Why the policy grants the refund, if it does.
    fn due(&self, policy: &Value) -> Option<String> {
        let (days, window) = (self.days?, window(policy)?);
        let granted = self.price > 0.0 && days <= window;
        granted.then(|| {
            let rule = cited(policy, |text| days_in(text).is_some());
            format!(
                "the first payment was {days} days ago, within the {window} days of the policy{rule}"
            )
        })
    }

    fn judge(&self, policy: &Value) -> String {
        if let Some(why) = policy["error"].as_str() {
            return format!("I cannot confirm a refund: the policy could not be read ({why}).");
        }
        if self.price <= 0.0 {
            let rule = cited(policy, |text| text.contains("cannot"));
            return format!(
                "There is nothing to refund (0.00 USD): the {} plan has no payments{rule}.",
                self.plan
            );
        }
        let Some(window) = window(policy) else {
            return "I cannot confirm a refund: the policy names no period.".to_owned();
        };
        let rule = cited(policy, |text| days_in(text).is_some());
        match self.days {
            Some(days) if days <= window => format!(
                "Yes, you can get a refund of {:.2} USD: your first payment was {days} days ago, \
                 within the {window} days of the policy{rule}.",
                self.price
            ),
            Some(days) => format!(
                "No, the {:.2} USD cannot be refunded: your first payment was {days} days ago, after \
                 the {window} days of the policy{rule}.",
                self.price
            ),
            None => {
                "I cannot confirm a refund: the day of the first payment is unknown.".to_owned()
            }
        }
    }
}

fn snippets(policy: &Value) -> impl Iterator<Item = (&str, &str)> {
    let matches = policy["matches"].as_array().into_iter().flatten();
    matches.filter_map(|found| Some((found["id"].as_str()?, found["snippet"].as_str()?)))
}

/// The document that says so, in brackets.
fn cited(policy: &Value, says: impl Fn(&str) -> bool) -> String {
    let found = snippets(policy).find(|(_, text)| says(&text.to_lowercase()));
    found.map_or(String::new(), |(id, _)| format!(" ({id})"))
}

/// How many days after the first payment the policy grants a refund.
fn window(policy: &Value) -> Option<u64> {
    snippets(policy).find_map(|(_, text)| days_in(text))
}

/// The number in "14 days".
fn days_in(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).find_map(|pair| match pair {
        [number, days] if days.starts_with("day") => number.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
