//! Grants: standing signatures, scoped, capped and expiring.
//!
//! The engine says which grants could sign a call and what they would have to count; counting is the
//! store's, in the same transaction as the signature. A grant that cannot be read signs nothing.

use super::condition::{self, Condition};
use super::decimal::Exact;
use super::engine::Request;
use super::fault::RuleFault;
use super::pointer::Pointer;
use super::rule::one_fits;
use super::time;
use crate::json::{Shape, View};
use crate::record::RunRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A standing signature: it approves calls of one tool that would be asked otherwise, within its caps and
/// until it expires. It never overrides a denial.
///
/// ```
/// use paraph_gateway::Grant;
/// let grant = Grant {
///     at_most: vec![("/amount_cents".into(), 500)],
///     per_thread: Some(1),
///     sum_per_day: Some(("/amount_cents".into(), 10_000)),
///     ..Grant::new("small refunds", "issue_refund", 1_798_761_600_000)
/// };
/// # let _ = grant;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What it is called in decisions, logs and counters; no two grants have one name.
    pub name: String,
    /// The tool's name. Patterns are none.
    pub tool: String,
    /// When it ends, in milliseconds since 1970; in configuration also as RFC 3339.
    #[serde(deserialize_with = "time::read_instant")]
    pub until: u64,
    /// Pointers to numbers, and how large they may be. A negative number is never within a cap.
    #[serde(default)]
    pub at_most: Vec<(String, u64)>,
    /// Conditions on the arguments, all of which have to hold. What cannot be told does not hold.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// Names and patterns of agents; none is all.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Names and patterns of the users for whom the agent acts; none is all.
    #[serde(default)]
    pub users: Vec<String>,
    /// Names and patterns of the tenants whose data it is; none is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// How many calls it signs on one thread.
    #[serde(default)]
    pub per_thread: Option<u64>,
    /// How many calls it signs on one day, in UTC, for one tenant.
    #[serde(default)]
    pub per_day: Option<u64>,
    /// A pointer to a number from 0 on without a fraction, and how much the calls of one day, in UTC, for
    /// one tenant may add up to.
    #[serde(default)]
    pub sum_per_day: Option<(String, u64)>,
    /// Whether it signs also in a run that has read untrusted text. Its targets have to be bound all the
    /// same.
    #[serde(default)]
    pub after_untrusted: bool,
}

impl Grant {
    /// A grant without scope and caps, which signs nothing before it has some of each.
    pub fn new(name: impl Into<String>, tool: impl Into<String>, until: u64) -> Grant {
        Grant {
            name: name.into(),
            tool: tool.into(),
            until,
            at_most: Vec::new(),
            when: Vec::new(),
            agents: Vec::new(),
            users: Vec::new(),
            tenants: Vec::new(),
            per_thread: None,
            per_day: None,
            sum_per_day: None,
            after_untrusted: false,
        }
    }
}

/// Whose counters the grants of a tenant are counted by: they outlive runs and threads.
pub(crate) fn grants_of(tenant: &str) -> RunRef {
    RunRef {
        tenant: tenant.to_owned(),
        agent: String::new(),
        thread: String::new(),
        run: "grants".to_owned(),
    }
}

/// How much of a grant is used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GrantUse {
    /// How many calls it has signed today, in UTC, if it counts them.
    pub today: u64,
    /// What the calls that it has signed today add up to, if it adds them up.
    pub sum_today: u64,
    /// How many calls it has signed on each thread, if it counts them.
    pub threads: BTreeMap<String, u64>,
}

impl GrantUse {
    /// What the counters of a tenant's grants say of one of them.
    pub(crate) fn read(
        counters: &BTreeMap<String, u64>,
        (tenant, grant): (&str, &str),
        now_ms: u64,
    ) -> GrantUse {
        let of = |kind: &str, of: &str| counter(grant, tenant, kind, of);
        let count = |name: String| counters.get(&name).copied().unwrap_or(0);
        let today = time::day(now_ms);
        let on = of("thread", "");
        let threads = counters.iter().filter_map(|(name, count)| {
            let thread = name.strip_prefix(&on)?;
            Some((thread.replace("%2F", "/").replace("%25", "%"), *count))
        });
        GrantUse {
            today: count(of("day", &today)),
            sum_today: count(of("sum", &today)),
            threads: threads.collect(),
        }
    }
}

/// The name of one of a grant's counters. Names from outside cannot reach into another part of it.
fn counter(grant: &str, tenant: &str, kind: &str, of: &str) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('/', "%2F");
    let (grant, tenant, of) = (escaped(grant), escaped(tenant), escaped(of));
    format!("grant/{grant}/{tenant}/{kind}/{of}")
}

/// A grant that could sign a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fit<'p> {
    /// The grant's name.
    pub grant: &'p str,
    /// When it ends, in milliseconds since 1970: the signature has to be made before.
    pub until: u64,
    /// What has to be counted with the signature. If one of the counters has no room, it does not sign.
    pub takes: Vec<Take>,
}

/// Something that a signature uses up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Take {
    /// The counter's name, which holds the grant, the tenant, and the thread or the day.
    pub counter: String,
    /// By how much it rises.
    pub by: u64,
    /// What it may be afterwards at most.
    pub max: u64,
}

/// A grant, read once.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    name: String,
    pub(super) tool: String,
    until: u64,
    caps: Vec<(Pointer, Exact)>,
    when: Vec<condition::Compiled>,
    /// The caps and conditions as they were written, for whoever asks why one does not hold.
    written: (Vec<(String, u64)>, Vec<Condition>),
    agents: Vec<String>,
    users: Vec<String>,
    tenants: Vec<String>,
    per_thread: Option<u64>,
    per_day: Option<u64>,
    sum_per_day: Option<(Pointer, u64)>,
    after_untrusted: bool,
}

impl Compiled {
    /// Reads a grant, or says the first thing that is wrong with it.
    pub(super) fn of(grant: &Grant) -> Result<Compiled, RuleFault> {
        if grant.tool.is_empty() {
            return Err(RuleFault::NoTools);
        }
        if grant.tool.contains('*') {
            return Err(RuleFault::GrantForPattern(grant.tool.clone()));
        }
        for (list, patterns) in [
            ("agents", &grant.agents),
            ("users", &grant.users),
            ("tenants", &grant.tenants),
        ] {
            if patterns.iter().any(String::is_empty) {
                return Err(RuleFault::EmptyPattern(list));
            }
        }
        let sum = grant.sum_per_day.is_some();
        if grant.per_thread.is_none() && grant.per_day.is_none() && !sum {
            return Err(RuleFault::NoLimit);
        }
        if grant.at_most.is_empty() && grant.when.is_empty() && !sum {
            return Err(RuleFault::NoScope);
        }
        let read = |pointer: &String| {
            Pointer::read(pointer).ok_or_else(|| RuleFault::BadPointer(pointer.clone()))
        };
        let mut caps = Vec::new();
        for (pointer, cap) in &grant.at_most {
            caps.push((read(pointer)?, Exact::from(*cap)));
        }
        let when: Result<Vec<_>, _> = grant.when.iter().map(condition::Compiled::of).collect();
        let sum_per_day = match &grant.sum_per_day {
            Some((pointer, cap)) => Some((read(pointer)?, *cap)),
            None => None,
        };
        Ok(Compiled {
            name: grant.name.clone(),
            tool: grant.tool.clone(),
            until: grant.until,
            caps,
            when: when?,
            written: (grant.at_most.clone(), grant.when.clone()),
            agents: grant.agents.clone(),
            users: grant.users.clone(),
            tenants: grant.tenants.clone(),
            per_thread: grant.per_thread,
            per_day: grant.per_day,
            sum_per_day,
            after_untrusted: grant.after_untrusted,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What it would sign with, if it could sign this call of its tool.
    pub(super) fn fit(&self, request: &Request<'_>) -> Option<Fit<'_>> {
        match self.misfit(request) {
            None => self.takes(request).ok(),
            Some(_) => None,
        }
    }

    /// The same, or in words why it could not.
    pub(super) fn account(&self, request: &Request<'_>) -> Result<Fit<'_>, String> {
        if request.tool != self.tool {
            return Err(format!("it is for `{}`", self.tool));
        }
        match self.misfit(request) {
            None => self.takes(request),
            Some(misfit) => Err(self.words(misfit)),
        }
    }

    /// The first of its parts that does not fit a call of its tool.
    fn misfit(&self, request: &Request<'_>) -> Option<Misfit> {
        let args = request.args.view();
        let beyond = |(pointer, cap): &(Pointer, Exact)| {
            let found = number(pointer, args);
            !found.is_some_and(|found| found >= Exact::default() && found <= *cap)
        };
        if request.now_ms >= self.until {
            Some(Misfit::Over)
        } else if !request.tainted.is_empty() && !self.after_untrusted {
            Some(Misfit::Untrusted)
        } else if !one_fits(&self.agents, request.agent) {
            Some(Misfit::Agent)
        } else if !one_fits(&self.users, request.user) {
            Some(Misfit::User)
        } else if !one_fits(&self.tenants, request.tenant) {
            Some(Misfit::Tenant)
        } else if let Some(index) = self.caps.iter().position(beyond) {
            Some(Misfit::Cap(index))
        } else {
            let fails = |one: &condition::Compiled| !one.truth(args).holds(false);
            self.when.iter().position(fails).map(Misfit::Condition)
        }
    }

    fn words(&self, misfit: Misfit) -> String {
        let (caps, when) = &self.written;
        match misfit {
            Misfit::Over => format!("it is over since {}", time::instant_text(self.until)),
            Misfit::Untrusted => {
                "the run has read untrusted text, and it does not say `after_untrusted`".to_owned()
            }
            Misfit::Agent => "the agent is another".to_owned(),
            Misfit::User => "the user is another".to_owned(),
            Misfit::Tenant => "the tenant is another".to_owned(),
            Misfit::Cap(index) => match caps.get(index) {
                Some((pointer, cap)) => format!("`{pointer}` is no number from 0 to {cap}"),
                None => "a cap does not hold".to_owned(),
            },
            Misfit::Condition(index) => match when.get(index) {
                Some(condition) => format!("it does not hold that {condition}"),
                None => "a condition does not hold".to_owned(),
            },
        }
    }

    /// What a signature for a call that fits has to count, or why even the first would be too much.
    fn takes(&self, request: &Request<'_>) -> Result<Fit<'_>, String> {
        let mut takes = Vec::new();
        let mut full = None;
        let mut take = |kind: &str, of: &str, by: u64, max: u64| {
            let counter = counter(&self.name, request.tenant, kind, of);
            if by > max && full.is_none() {
                full = Some(format!("it would take {by} of at most {max} (`{counter}`)"));
            }
            takes.push(Take { counter, by, max });
        };
        let day = || time::day(request.now_ms);
        if let Some(max) = self.per_thread {
            take("thread", request.thread, 1, max);
        }
        if let Some(max) = self.per_day {
            take("day", &day(), 1, max);
        }
        if let Some((pointer, max)) = &self.sum_per_day {
            let found = number(pointer, request.args.view());
            let Some(by) = found.and_then(|found| found.to_u64()) else {
                return Err("what it adds up is no whole number from 0 on".to_owned());
            };
            take("sum", &day(), by, *max);
        }
        match full {
            Some(why) => Err(why),
            None => Ok(Fit {
                grant: &self.name,
                until: self.until,
                takes,
            }),
        }
    }
}

/// The part of a grant that does not fit a call.
#[derive(Clone, Copy)]
enum Misfit {
    Over,
    Untrusted,
    Agent,
    User,
    Tenant,
    /// The place of the cap.
    Cap(usize),
    /// The place of the condition.
    Condition(usize),
}

/// The number that a pointer finds.
fn number(pointer: &Pointer, args: View<'_>) -> Option<Exact> {
    match pointer.find(args)?.shape() {
        Shape::Number(digits) => Exact::read(digits),
        _ => None,
    }
}
