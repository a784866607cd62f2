//! A whole account of one decision: which rules spoke, which decided, and why the others did not.
//!
//! `paraph policy explain` prints it. It asks the same rules as [`PolicyEngine::decide`] and decides nothing itself.

use super::engine::{Decision, FLOW, PolicyEngine, Request};
use super::grant::Fit;
use super::rule::{self, Facts, Then};
use crate::tool::Level;
use serde::Serialize;

/// All that a policy has to say about one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account<'p> {
    /// What holds.
    pub decision: Decision<'p>,
    /// What the tool does to the world; nothing if no tool is registered under exactly this name.
    pub level: Option<Level>,
    /// Every rule, those that deny first, then those that ask and those that allow; each of these by name. The entries
    /// of the lists are among them.
    pub rules: Vec<Heard<'p>>,
    /// What the flow rules say of an effect; nothing of a tool that only reads.
    pub flow: Option<String>,
    /// Every grant, by name.
    pub grants: Vec<GrantHeard<'p>>,
}

/// What became of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heard<'p> {
    /// Its name.
    pub rule: &'p str,
    /// What it says.
    pub says: Then,
    /// Whether it decided, spoke and was overruled, or said nothing.
    pub part: Part,
    /// In words: its own reason if it decided, what overruled it, or which of its parts does not fit the call.
    pub why: String,
}

/// The part that a rule had in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It decided.
    Decides,
    /// It spoke about the call, and something else decided.
    Overruled,
    /// It did not speak about the call.
    Silent,
}

/// What became of one grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrantHeard<'p> {
    /// Its name.
    pub grant: &'p str,
    /// What it would sign with; nothing if it cannot sign this call.
    pub fit: Option<Fit<'p>>,
    /// Why it cannot sign, or need not; empty if it can.
    pub why: String,
}

impl PolicyEngine {
    /// What [`PolicyEngine::decide`] says about a call, with what every rule and every grant had to do with it.
    pub fn account(&self, request: &Request<'_>) -> Account<'_> {
        let decision = self.decide(request);
        let level = self.level(request.tool);
        let facts = Facts::of(request);
        let mut rules: Vec<_> = self
            .rules()
            .iter()
            .map(|rule| heard(rule, level, (request, &facts), &decision))
            .collect();
        rules.sort_by_key(|heard| order(heard.says));
        let asked = matches!(decision.verdict, super::Verdict::Ask(_));
        let grants = self.grants().iter().map(|grant| {
            let (fit, why) = match grant.account(request) {
                Ok(fit) if asked => (Some(fit), String::new()),
                Ok(_) => (None, "nobody is asked about this call".to_owned()),
                Err(why) => (None, why),
            };
            GrantHeard {
                grant: grant.name(),
                fit,
                why,
            }
        });
        Account {
            grants: grants.collect(),
            flow: self.flow_account(request),
            level,
            rules,
            decision,
        }
    }

    /// What flow rules have to do with a call.
    fn flow_account(&self, request: &Request<'_>) -> Option<String> {
        let level = self.level(request.tool)?;
        if !level.is_effect() {
            return None;
        }
        Some(match (request.tainted.first(), self.breach(request)) {
            (None, _) => "the run has read no untrusted text".to_owned(),
            (Some(_), Some(breach)) => breach,
            (Some(source), None) => format!(
                "the run has read untrusted text (`{source}`), and the targets are as the program bound them"
            ),
        })
    }
}

fn order(says: Then) -> u8 {
    match says {
        Then::Deny => 0,
        Then::Ask(_) => 1,
        Then::Allow => 2,
    }
}

fn heard<'p>(
    rule: &'p rule::Compiled,
    level: Option<Level>,
    (request, facts): (&Request<'_>, &Facts<'_>),
    decision: &Decision<'p>,
) -> Heard<'p> {
    let tool = request.tool;
    let misfit = match level {
        Some(level) => rule.silence(tool, level, facts),
        None => Some(rule::Misfit::Tool),
    };
    let (part, why) = match misfit {
        Some(misfit) => (Part::Silent, rule.words(misfit, tool)),
        None if decides(rule, decision) => (Part::Decides, rule.because.clone()),
        None => (Part::Overruled, overruled(rule, decision)),
    };
    Heard {
        rule: &rule.name,
        says: rule.then,
        part,
        why,
    }
}

/// Two rules of a policy that was never checked may have one name: what they say tells them apart as far as it matters.
fn decides(rule: &rule::Compiled, decision: &Decision<'_>) -> bool {
    use super::Verdict;
    let same = match decision.verdict {
        Verdict::Denied { .. } => rule.then == Then::Deny,
        Verdict::Ask(_) | Verdict::Allowed => rule.then != Then::Deny,
    };
    same && !decision.error && decision.rule == Some(&rule.name)
}

fn overruled(rule: &rule::Compiled, decision: &Decision<'_>) -> String {
    let Some(name) = decision.rule else {
        return "nothing was decided by a rule".to_owned();
    };
    if name == FLOW {
        return "the flow rules deny it".to_owned();
    }
    match (decision.verdict, rule.then) {
        _ if decision.error => format!("`{name}` cannot be read, and that denies"),
        (super::Verdict::Ask(_), Then::Ask(_)) => {
            format!("`{name}` asks too and is the first by name; the strictest of each counts")
        }
        (super::Verdict::Ask(_), _) => format!("`{name}` asks, and a question wins"),
        (super::Verdict::Denied { .. }, Then::Deny) => {
            format!("`{name}` denies it too and is the first by name")
        }
        (super::Verdict::Denied { .. }, _) => format!("`{name}` denies it, and a denial wins"),
        (super::Verdict::Allowed, _) => format!("`{name}` allows it too and is the first by name"),
    }
}
