//! The engine: a policy, read once for the tools that there are, asked for every call.
//!
//! The gateway builds one and its sessions ask it, with the arguments as the tool will get them. It is
//! pure: time, and what a run has read, are arguments. The module's manual is the crate's page `policies`.
//!
//! Every rule that fits is heard, in whatever order the rules were written. A denial wins, then a question,
//! then an allowance; nothing at all is a denial. What is wrong with a rule denies what the rule is about.

use super::flow::{self, Targets};
use super::grant::{self, Fit};
use super::rule::{self, Facts, Rule, Then};
use super::{Ask, Policy, Verdict, fits, hash};
use crate::json::Json;
use crate::record::Ruling;
use crate::tool::{Level, ToolSpec};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// The name under which flow rules decide.
pub(super) const FLOW: &str = "flow:untrusted";

/// One call, as it is judged.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Whose data it is. Grants count by it.
    pub tenant: &'a str,
    /// The agent that wants it.
    pub agent: &'a str,
    /// For whom the agent acts.
    pub user: &'a str,
    /// The thread it is on. Grants count by it.
    pub thread: &'a str,
    /// The tool's name as it was given. Only the very spelling of a registered name is that tool.
    pub tool: &'a str,
    /// The arguments as the tool will get them, defaults filled in.
    pub args: &'a Json,
    /// The untrusted sources that the run has read from.
    pub tainted: &'a [String],
    /// What the program bound for the run.
    pub targets: &'a Targets,
    /// The time in milliseconds since 1970.
    pub now_ms: u64,
}

/// What the policy says about a call, and why. As text it is one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision<'p> {
    /// What may happen.
    pub verdict: Verdict,
    /// Which rule decided: a rule's name; `allow:`, `ask:` or `deny:` with the entry of that list; or
    /// `flow:untrusted`. Of several that say the same, the first by name. Nothing if no rule spoke.
    pub rule: Option<&'p str>,
    /// Why, in words.
    pub because: Cow<'p, str>,
    /// Grants that could sign instead of a person, by name. Only where a person would be asked.
    pub grants: Vec<Fit<'p>>,
    /// What whoever wrote the policy might want to know.
    pub warnings: Vec<Cow<'static, str>>,
    /// Whether it is denied because a rule could not be read.
    pub error: bool,
    /// The hash of the policy that decided.
    pub policy: &'p str,
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Allowed => f.write_str("it is allowed")?,
            Verdict::Ask(ask) => write!(f, "{ask} to approve it")?,
            Verdict::Denied { .. } => f.write_str("it is denied")?,
        }
        match (self.rule, self.verdict) {
            (Some(rule), Verdict::Ask(_)) => write!(f, ", as `{rule}` says")?,
            (Some(rule), _) => write!(f, " by `{rule}`")?,
            (None, _) => {}
        }
        if !self.because.is_empty() {
            write!(f, ": {}", self.because)?;
        }
        if let Some(fit) = self.grants.first() {
            write!(f, "; the grant `{}` can sign it", fit.grant)?;
        }
        Ok(())
    }
}

/// A policy with the tools it is about.
///
/// ```
/// use paraph_gateway::{Json, Level, Policy, PolicyEngine, Request, Targets, ToolSpec, Verdict};
/// let search = ToolSpec {
///     name: "search".into(),
///     about: "Searches".into(),
///     schema: serde_json::json!({}),
///     level: Level::Read,
/// };
/// let engine = PolicyEngine::new(Policy::new().allow(["search"]), &[search]);
/// let args = Json::read(r#"{"query":"refund"}"#, Default::default())?;
/// let request = Request {
///     tenant: "local",
///     agent: "support",
///     user: "ann",
///     thread: "case-7",
///     tool: "search",
///     args: &args,
///     tainted: &[],
///     targets: &Targets::new(),
///     now_ms: 0,
/// };
/// assert_eq!(engine.decide(&request).to_string(), "it is allowed by `allow:search`");
/// let other = Request { tool: "Search", ..request };
/// assert_eq!(engine.decide(&other).verdict, Verdict::Denied { named: false });
/// # Ok::<(), paraph_gateway::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicyEngine {
    policy: Policy,
    hash: String,
    rules: Vec<rule::Compiled>,
    bindings: Vec<flow::Compiled>,
    grants: Vec<grant::Compiled>,
    tools: HashMap<String, Place>,
    /// A pattern that could not be read may have been meant for any tool.
    all_untrusted: bool,
}

/// What there is to ask about one tool. Indexes, sorted by the name of what they stand for.
#[derive(Clone, Debug, Default)]
struct Place {
    level: Level,
    /// Rules that cannot be read: their names, and what is wrong.
    broken: Vec<(String, String)>,
    deny: Vec<usize>,
    ask: Vec<usize>,
    allow: Vec<usize>,
    bindings: Vec<usize>,
    grants: Vec<usize>,
}

impl PolicyEngine {
    /// Reads a policy for these tools. It never fails: what [`Policy::check`] would find wrong denies.
    pub fn new(policy: Policy, tools: &[ToolSpec]) -> PolicyEngine {
        let (rules, broken) = read_rules(&policy);
        let (bindings, loose) = read_bindings(&policy);
        let mut grants: Vec<_> = policy
            .grants
            .iter()
            .filter_map(|grant| grant::Compiled::of(grant).ok())
            .collect();
        grants.sort_by(|one, other| one.name().cmp(other.name()));
        let place = |tool: &ToolSpec| {
            let (name, level) = (tool.name.as_str(), tool.level);
            let said = |wanted: fn(Then) -> bool| {
                indexes(&rules, |rule| {
                    wanted(rule.then) && rule.is_about(name, level)
                })
            };
            let of_rules = broken.iter().filter(|one| one.is_about(name));
            let of_flow = loose
                .iter()
                .filter(|one| level.is_effect() && one.is_about(name));
            let place = Place {
                level,
                broken: of_rules.chain(of_flow).map(Broken::said).collect(),
                deny: said(|then| then == Then::Deny),
                ask: said(|then| matches!(then, Then::Ask(_))),
                allow: said(|then| then == Then::Allow),
                bindings: indexes(&bindings, |one: &flow::Compiled| one.is_about(name)),
                grants: indexes(&grants, |one: &grant::Compiled| one.tool == name),
            };
            (name.to_owned(), place)
        };
        PolicyEngine {
            tools: tools.iter().map(place).collect(),
            hash: hash::of(&policy),
            all_untrusted: policy.flow.untrusted.iter().any(String::is_empty),
            policy,
            rules,
            bindings,
            grants,
        }
    }

    /// The rules.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What [`Policy::hash`] says of them.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Whether a run that has read this tool's output has read untrusted text.
    pub fn is_untrusted(&self, tool: &str) -> bool {
        let patterns = &self.policy.flow.untrusted;
        self.all_untrusted || patterns.iter().any(|pattern| fits(pattern, tool))
    }

    /// Judges a call.
    pub fn decide(&self, request: &Request<'_>) -> Decision<'_> {
        let Some(place) = self.tools.get(request.tool) else {
            let because = "no tool is registered under exactly this name";
            return self.denied(None, because.into());
        };
        if let Some((rule, why)) = place.broken.first() {
            return Decision {
                error: true,
                ..self.denied(Some(rule), format!("it cannot be read: {why}").into())
            };
        }
        let facts = Facts::of(request);
        if let Some(rule) = self.spoken(&place.deny, &facts).next() {
            return self.denied(Some(&rule.name), Cow::Borrowed(&rule.because));
        }
        let (asking, mut ask) = self.asking(place, &facts).unzip();
        let Some(deciding) = asking.or_else(|| self.spoken(&place.allow, &facts).next()) else {
            return self.denied(None, "no rule allows it".into());
        };
        if let Some(breach) = self.breach_at(place, request) {
            return self.denied(Some(FLOW), breach.into());
        }
        let mut warnings = Vec::new();
        if ask.is_none() && place.level.is_effect() {
            ask = Some(Ask::default());
            warnings.push("an allowance is not enough for an effect: a person is asked".into());
        }
        Decision {
            verdict: ask.map_or(Verdict::Allowed, Verdict::Ask),
            rule: Some(&deciding.name),
            because: Cow::Borrowed(&deciding.because),
            grants: match ask {
                Some(_) => self.fitting(place, request),
                None => Vec::new(),
            },
            warnings,
            error: false,
            policy: &self.hash,
        }
    }

    /// The first rule by name that asks, and what satisfies all that do.
    fn asking(&self, place: &Place, facts: &Facts<'_>) -> Option<(&rule::Compiled, Ask)> {
        let rules = place.ask.iter().filter_map(|index| self.rules.get(*index));
        let asks = rules.filter_map(|rule| match rule.then {
            Then::Ask(ask) => rule.speaks(facts).then_some((rule, ask)),
            Then::Allow | Then::Deny => None,
        });
        asks.reduce(|(first, all), (_, ask)| (first, all.stricter(ask)))
    }

    /// Rules that speak about a call, by name.
    fn spoken<'p, 'f>(
        &'p self,
        indexes: &'p [usize],
        facts: &'f Facts<'f>,
    ) -> impl Iterator<Item = &'p rule::Compiled> + use<'p, 'f> {
        let rules = indexes.iter().filter_map(|index| self.rules.get(*index));
        rules.filter(|rule| rule.speaks(facts))
    }

    fn denied<'p>(&'p self, rule: Option<&'p str>, because: Cow<'p, str>) -> Decision<'p> {
        Decision {
            verdict: Verdict::Denied {
                named: rule.is_some(),
            },
            rule,
            because,
            grants: Vec::new(),
            warnings: Vec::new(),
            error: false,
            policy: &self.hash,
        }
    }

    /// Why an effect would leave what was bound for a run that has read untrusted text.
    pub(super) fn breach(&self, request: &Request<'_>) -> Option<String> {
        self.breach_at(self.tools.get(request.tool)?, request)
    }

    fn breach_at(&self, place: &Place, request: &Request<'_>) -> Option<String> {
        let source = request.tainted.first()?;
        if !place.level.is_effect() {
            return None;
        }
        let why = match place.bindings.is_empty() {
            true => Some("nothing says which argument is the target".to_owned()),
            false => place
                .bindings
                .iter()
                .filter_map(|index| self.bindings.get(*index))
                .find_map(|binding| binding.breach(request.args.view(), request.targets)),
        };
        why.map(|why| format!("the run has read untrusted text (`{source}`), and {why}"))
    }

    fn fitting(&self, place: &Place, request: &Request<'_>) -> Vec<Fit<'_>> {
        let grants = place
            .grants
            .iter()
            .filter_map(|index| self.grants.get(*index));
        grants.filter_map(|grant| grant.fit(request)).collect()
    }

    /// What [`Policy::verdict`] said of a name, with the first rule by name that says so.
    pub(crate) fn by_name(&self, name: &str, verdict: Verdict) -> Ruling {
        let says = |rule: &&rule::Compiled| match (verdict, rule.then) {
            (Verdict::Denied { .. }, Then::Deny) => rule.always_speaks(name),
            (Verdict::Ask(_), Then::Ask(_)) | (Verdict::Allowed, Then::Allow) => rule.names(name),
            _ => false,
        };
        let rule = self.rules.iter().find(says);
        Ruling::of(&Decision {
            verdict,
            ..self.denied(rule.map(|rule| &*rule.name), "".into())
        })
    }

    /// The rules that can be read, by name, the entries of the lists among them.
    pub(super) fn rules(&self) -> &[rule::Compiled] {
        &self.rules
    }

    /// The grants that can be read, by name.
    pub(super) fn grants(&self) -> &[grant::Compiled] {
        &self.grants
    }

    pub(super) fn level(&self, tool: &str) -> Option<Level> {
        self.tools.get(tool).map(|place| place.level)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

/// A rule or a binding that cannot be read.
struct Broken {
    name: String,
    why: String,
    /// What it is about, as far as that can be read; otherwise everything.
    tools: Vec<String>,
}

impl Broken {
    fn is_about(&self, tool: &str) -> bool {
        let unclear = self.tools.is_empty() || self.tools.iter().any(String::is_empty);
        unclear || self.tools.iter().any(|pattern| fits(pattern, tool))
    }

    fn said(&self) -> (String, String) {
        (self.name.clone(), self.why.clone())
    }
}

/// All rules, sorted by name, the entries of the lists among them.
fn read_rules(policy: &Policy) -> (Vec<rule::Compiled>, Vec<Broken>) {
    let listed = |list: &'static str, then: Then, pattern: &String| {
        Rule::new(format!("{list}:{pattern}"), then, [pattern])
    };
    let deny = policy
        .deny
        .iter()
        .map(|pattern| listed("deny", Then::Deny, pattern));
    let ask = policy
        .ask
        .iter()
        .map(|(pattern, ask)| listed("ask", Then::Ask(*ask), pattern));
    let allow = policy
        .allow
        .iter()
        .map(|pattern| listed("allow", Then::Allow, pattern));
    let odd = policy.allow_unregistered.iter();
    let odd = odd.map(|pattern| listed("allow_unregistered", Then::Allow, pattern));
    let lists: Vec<_> = deny.chain(ask).chain(allow).chain(odd).collect();
    let (mut rules, mut broken) = (Vec::new(), Vec::new());
    for rule in lists.iter().chain(&policy.rules) {
        match rule::Compiled::of(rule) {
            Ok(compiled) => rules.push(compiled),
            Err(fault) => broken.push(Broken {
                name: rule.name.clone(),
                why: fault.to_string(),
                tools: rule.tools.clone(),
            }),
        }
    }
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    broken.sort_by(|one, other| one.name.cmp(&other.name));
    (rules, broken)
}

fn read_bindings(policy: &Policy) -> (Vec<flow::Compiled>, Vec<Broken>) {
    let (mut bindings, mut broken) = (Vec::new(), Vec::new());
    for binding in &policy.flow.bound {
        match flow::Compiled::of(binding) {
            Ok(compiled) => bindings.push(compiled),
            Err(fault) => broken.push(Broken {
                name: FLOW.to_owned(),
                why: fault.to_string(),
                tools: binding.tools.clone(),
            }),
        }
    }
    (bindings, broken)
}

fn indexes<T>(all: &[T], wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    let found = all.iter().enumerate().filter(|(_, one)| wanted(one));
    found.map(|(index, _)| index).collect()
}
