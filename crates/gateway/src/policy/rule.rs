//! A rule: for which calls it speaks, what it says, and the examples that prove it.
//!
//! The engine asks compiled rules; `check` runs their examples. A rule that cannot be read as a whole is
//! never half used: what it is about is denied.

use super::condition::{self, Condition};
use super::engine::Request;
use super::fault::RuleFault;
use super::{Ask, fits, time};
use crate::json::View;
use crate::tool::Level;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// One rule of a policy. It speaks about a call if all its parts fit; a part that is left out fits always.
///
/// ```
/// use paraph_gateway::{Condition, Operator, Rule, Then};
/// let rule = Rule {
///     when: vec![Condition::new("/amount_cents", Operator::Above(50_000.into()))],
///     because: "large refunds go through the back office".into(),
///     ..Rule::new("no large refunds", Then::Deny, ["issue_refund"])
/// };
/// # let _ = rule;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What it is called in decisions and logs; no two rules have one name.
    pub name: String,
    /// What it says.
    pub then: Then,
    /// Names and patterns of tools. At least one.
    pub tools: Vec<String>,
    /// What the tool may do to the world.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// Names and patterns of agents.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Names and patterns of the users for whom the agent acts.
    #[serde(default)]
    pub users: Vec<String>,
    /// Names and patterns of the tenants whose data it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// Names and patterns of untrusted sources: the run has to have read from one of them.
    #[serde(default)]
    pub origin: Vec<String>,
    /// The time of the day.
    #[serde(default)]
    pub hours: Option<Hours>,
    /// Conditions on the arguments, all of which have to hold. What cannot be told, because the argument
    /// is missing or of another kind, holds for a rule that asks or denies and not for one that allows.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// Why there is the rule, for whoever meets it. The model may read it.
    #[serde(default)]
    pub because: String,
    /// Calls that the rule has to speak about, and calls that it must not.
    #[serde(default)]
    pub examples: Examples,
}

impl Rule {
    /// A rule about all calls of these tools.
    pub fn new(
        name: impl Into<String>,
        then: Then,
        tools: impl IntoIterator<Item = impl Into<String>>,
    ) -> Rule {
        Rule {
            name: name.into(),
            then,
            tools: tools.into_iter().map(Into::into).collect(),
            levels: Vec::new(),
            agents: Vec::new(),
            users: Vec::new(),
            tenants: Vec::new(),
            origin: Vec::new(),
            hours: None,
            when: Vec::new(),
            because: String::new(),
            examples: Examples::default(),
        }
    }

    /// Whether it can speak about a call of the tool; nothing is known of a level that is not given.
    pub(super) fn may_speak(&self, tool: &str, level: Option<Level>) -> bool {
        let levels =
            self.levels.is_empty() || level.is_none_or(|level| self.levels.contains(&level));
        levels && self.tools.iter().any(|pattern| fits(pattern, tool))
    }

    /// Whether it speaks about every call of the tool.
    pub(super) fn always_speaks(&self, tool: &str, level: Option<Level>) -> bool {
        let anyway = self.agents.is_empty()
            && self.users.is_empty()
            && self.tenants.is_empty()
            && self.origin.is_empty()
            && self.hours.is_none()
            && self.when.is_empty();
        let told = self.levels.is_empty() || level.is_some();
        anyway && told && self.may_speak(tool, level)
    }
}

/// What a rule says about the calls it speaks of.
///
/// In configuration `"allow"`, `"ask"`, `"deny"`, or `{ ask = { expires = 600, quorum = 2 } }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// They may run, if they only read. For an effect this is never enough: a person is asked.
    Allow,
    /// A person has to approve each of them.
    Ask(Ask),
    /// They may not run.
    Deny,
}

impl<'de> Deserialize<'de> for Then {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Then, D::Error> {
        deserializer.deserialize_any(ThenReader)
    }
}

struct ThenReader;

impl<'de> de::Visitor<'de> for ThenReader {
    type Value = Then;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"allow\", \"ask\", \"deny\" or `{ ask = { … } }`")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Then, E> {
        match word {
            "allow" => Ok(Then::Allow),
            "ask" => Ok(Then::Ask(Ask::default())),
            "deny" => Ok(Then::Deny),
            _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Then, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asking {
            ask: Ask,
        }
        let read = Asking::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Then::Ask(read.ask))
    }
}

/// Hours of the day, in UTC: from one time on, until just before the other. If the second is the earlier
/// one, they go over midnight.
///
/// In configuration `{ from = "22:00", to = "06:00" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenHours", into = "WrittenHours")]
pub struct Hours {
    /// The first minute of the day that belongs to them, from 0.
    pub from: u16,
    /// The first minute that does not, up to 1440.
    pub to: u16,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHours {
    from: String,
    to: String,
}

impl TryFrom<WrittenHours> for Hours {
    type Error = String;

    fn try_from(written: WrittenHours) -> Result<Hours, String> {
        let read = |text: &str| {
            time::time_of_day(text)
                .ok_or_else(|| format!("`{text}` is no time of the day such as `08:30`"))
        };
        Ok(Hours {
            from: read(&written.from)?,
            to: read(&written.to)?,
        })
    }
}

impl From<Hours> for WrittenHours {
    fn from(hours: Hours) -> WrittenHours {
        let write = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        WrittenHours {
            from: write(hours.from),
            to: write(hours.to),
        }
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = WrittenHours::from(*self);
        write!(f, "{} to {} UTC", written.from, written.to)
    }
}

impl Hours {
    fn are_fine(self) -> bool {
        self.from < time::DAY && self.to <= time::DAY && self.from != self.to
    }

    fn include(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

/// Calls that show what a rule means. They are tried when a gateway is built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Examples {
    /// Calls that the rule speaks about.
    pub matching: Vec<Example>,
    /// Calls that it does not speak about.
    pub not_matching: Vec<Example>,
}

/// An example of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Example {
    /// The tool; if it is left out, the first one that the rule names.
    pub tool: String,
    /// The level of a tool that is not registered.
    pub level: Option<Level>,
    /// The arguments as JSON text; in configuration they may be a table as well. Nothing is `{}`.
    #[serde(deserialize_with = "read_args")]
    pub args: String,
    /// The agent.
    pub agent: String,
    /// The user.
    pub user: String,
    /// The tenant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
    /// The untrusted sources that the run has read.
    pub origin: Vec<String>,
    /// The time, in milliseconds since 1970 or as RFC 3339. Without one, hours are taken as fitting.
    #[serde(deserialize_with = "time::read_some_instant")]
    pub at: Option<u64>,
}

fn read_args<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(text),
        value => Ok(value.to_string()),
    }
}

/// What rules look at, beside the tool.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) agent: &'a str,
    pub(super) user: &'a str,
    pub(super) tenant: &'a str,
    pub(super) tainted: &'a [String],
    /// Of the day; nothing if it does not matter.
    pub(super) minute: Option<u16>,
    pub(super) args: View<'a>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(request: &Request<'a>) -> Facts<'a> {
        Facts {
            agent: request.agent,
            user: request.user,
            tenant: request.tenant,
            tainted: request.tainted,
            minute: Some(time::minute_of_day(request.now_ms)),
            args: request.args.view(),
        }
    }
}

/// A rule, read once.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub(super) name: String,
    pub(super) then: Then,
    pub(super) because: String,
    tools: Vec<String>,
    levels: Vec<Level>,
    agents: Vec<String>,
    users: Vec<String>,
    tenants: Vec<String>,
    origin: Vec<String>,
    hours: Option<Hours>,
    when: Vec<condition::Compiled>,
    /// The conditions as they were written, for whoever asks why one does not hold.
    written: Vec<Condition>,
}

impl Compiled {
    /// Reads a rule, or says the first thing that is wrong with it.
    pub(super) fn of(rule: &Rule) -> Result<Compiled, RuleFault> {
        if rule.tools.is_empty() {
            return Err(RuleFault::NoTools);
        }
        let lists = [
            ("tools", &rule.tools),
            ("agents", &rule.agents),
            ("users", &rule.users),
            ("tenants", &rule.tenants),
            ("origin", &rule.origin),
        ];
        for (list, patterns) in lists {
            if patterns.iter().any(String::is_empty) {
                return Err(RuleFault::EmptyPattern(list));
            }
        }
        if rule.hours.is_some_and(|hours| !hours.are_fine()) {
            return Err(RuleFault::BadHours);
        }
        if matches!(rule.then, Then::Ask(ask) if ask.quorum == 0) {
            return Err(RuleFault::NoQuorum);
        }
        let when: Result<Vec<_>, _> = rule.when.iter().map(condition::Compiled::of).collect();
        Ok(Compiled {
            name: rule.name.clone(),
            then: rule.then,
            because: rule.because.clone(),
            tools: rule.tools.clone(),
            levels: rule.levels.clone(),
            agents: rule.agents.clone(),
            users: rule.users.clone(),
            tenants: rule.tenants.clone(),
            origin: rule.origin.clone(),
            hours: rule.hours,
            when: when?,
            written: rule.when.clone(),
        })
    }

    /// Whether it is about this tool at all.
    pub(super) fn is_about(&self, tool: &str, level: Level) -> bool {
        let levels = self.levels.is_empty() || self.levels.contains(&level);
        levels && self.names(tool)
    }

    /// Whether it names this tool, whatever else it asks for.
    pub(super) fn names(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| fits(pattern, tool))
    }

    /// Whether it speaks about every call of this tool, of whatever level that is.
    pub(super) fn always_speaks(&self, tool: &str) -> bool {
        let narrowed = [&self.agents, &self.users, &self.tenants, &self.origin];
        self.names(tool)
            && self.levels.is_empty()
            && self.hours.is_none()
            && self.when.is_empty()
            && narrowed.iter().all(|patterns| patterns.is_empty())
    }

    /// Whether it speaks about a call of a tool that it is about.
    pub(super) fn speaks(&self, facts: &Facts<'_>) -> bool {
        self.misfit(facts).is_none()
    }

    /// The first of its parts that does not fit a call of a tool that it is about.
    pub(super) fn misfit(&self, facts: &Facts<'_>) -> Option<Misfit> {
        if !one_fits(&self.agents, facts.agent) {
            return Some(Misfit::Agent);
        }
        if !one_fits(&self.users, facts.user) {
            return Some(Misfit::User);
        }
        if !one_fits(&self.tenants, facts.tenant) {
            return Some(Misfit::Tenant);
        }
        let from = |source: &String| one_fits(&self.origin, source);
        if !self.origin.is_empty() && !facts.tainted.iter().any(from) {
            return Some(Misfit::Origin);
        }
        if let (Some(hours), Some(minute)) = (self.hours, facts.minute)
            && !hours.include(minute)
        {
            return Some(Misfit::Hours);
        }
        let narrows = self.then != Then::Allow;
        let fails = |one: &condition::Compiled| !one.truth(facts.args).holds(narrows);
        self.when.iter().position(fails).map(Misfit::Condition)
    }

    /// The first of its parts that does not fit a call, the tool among them.
    pub(super) fn silence(&self, tool: &str, level: Level, facts: &Facts<'_>) -> Option<Misfit> {
        match self.is_about(tool, level) {
            true => self.misfit(facts),
            false => Some(Misfit::Tool),
        }
    }

    /// A misfit in words.
    pub(super) fn words(&self, misfit: Misfit, tool: &str) -> String {
        match misfit {
            Misfit::Tool => format!("the rule is not about `{tool}`"),
            Misfit::Agent => "the agent is another".to_owned(),
            Misfit::User => "the user is another".to_owned(),
            Misfit::Tenant => "the tenant is another".to_owned(),
            Misfit::Origin => "the run has read nothing of that origin".to_owned(),
            Misfit::Hours => "it is at another time".to_owned(),
            Misfit::Condition(index) => match self.written.get(index) {
                Some(condition) => format!("it does not hold that {condition}"),
                None => "a condition does not hold".to_owned(),
            },
        }
    }
}

/// The part of a rule that does not fit a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    Tool,
    Agent,
    User,
    Tenant,
    Origin,
    Hours,
    /// The place of the condition.
    Condition(usize),
}

/// Whether a list of patterns fits: an empty one always does.
pub(super) fn one_fits(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, name))
}
