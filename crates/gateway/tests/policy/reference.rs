//! The same rules, told naively: no index, no order of evaluation, no early end.
//!
//! It reads the policy's JSON, not its types; it flattens the arguments and looks pointers up in the list;
//! its numbers are big integers, its patterns a table, its hours a list of minutes. It shares with the
//! engine only the reader of JSON and the sentences of the manual. It notes what it saw for the coverage.

use num_bigint::BigInt;
use paraph_gateway::{Json, Request, Shape, ToolSpec, View};
use serde_json::Value;
use std::collections::BTreeMap;

/// What the call is, in the manual's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Is {
    Denied,
    Asked,
    Allowed,
}

/// A grant's name, with counters, amounts and maxima.
pub(crate) type Signature = (String, Vec<(String, u64, u64)>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) is: Is,
    pub(crate) rule: Option<String>,
    /// Seconds, requester excluded, quorum, verified.
    pub(crate) ask: Option<(u64, bool, u64, bool)>,
    /// By name.
    pub(crate) grants: Vec<Signature>,
    pub(crate) error: bool,
}

/// How often each operator said yes, no and nothing.
#[derive(Default)]
pub(crate) struct Coverage(pub(crate) BTreeMap<String, [u64; 3]>);

type Flat<'a> = BTreeMap<String, View<'a>>;

/// Signatures as somebody would note them by hand: nothing is added up before it is asked for.
#[derive(Default)]
pub(crate) struct Notes(Vec<Note>);

struct Note {
    grant: String,
    tenant: String,
    thread: String,
    day: String,
    amount: u128,
}

impl Notes {
    /// Which of the grants that fit a call signs it: the first by name that has room. It is noted.
    pub(crate) fn sign(
        &mut self,
        naive: &Naive,
        request: &Request<'_>,
        fits: &[Signature],
    ) -> Option<String> {
        for (name, takes) in fits {
            let grant = naive.grants.iter().find(|grant| grant["name"] == **name)?;
            let note = Note {
                grant: name.clone(),
                tenant: request.tenant.to_owned(),
                thread: request.thread.to_owned(),
                day: calendar(request.now_ms),
                // Where a grant has a sum, that is the last thing it takes.
                amount: takes.last().map_or(0, |(_, by, _)| u128::from(*by)),
            };
            if self.has_room(grant, &note) {
                self.0.push(note);
                return Some(name.clone());
            }
        }
        None
    }

    fn has_room(&self, grant: &Value, new: &Note) -> bool {
        let own = || {
            let notes = self.0.iter();
            notes.filter(|note| note.grant == new.grant && note.tenant == new.tenant)
        };
        let on_day = || own().filter(|note| note.day == new.day);
        let on_thread = own().filter(|note| note.thread == new.thread).count() as u64;
        let sum: u128 = on_day().map(|note| note.amount).sum();
        grant["per_thread"]
            .as_u64()
            .is_none_or(|most| on_thread < most)
            && grant["per_day"]
                .as_u64()
                .is_none_or(|most| (on_day().count() as u64) < most)
            && grant["sum_per_day"][1]
                .as_u64()
                .is_none_or(|most| sum + new.amount <= most.into())
    }
}

/// A policy as JSON, with the entries of its lists written as rules.
pub(crate) struct Naive {
    rules: Vec<Value>,
    bindings: Vec<Value>,
    grants: Vec<Value>,
}

impl Naive {
    pub(crate) fn new(policy: &Value) -> Naive {
        Naive {
            rules: all_rules(policy),
            bindings: list(&policy["flow"]["bound"]).to_vec(),
            grants: list(&policy["grants"]).to_vec(),
        }
    }

    pub(crate) fn judge(
        &self,
        tools: &[ToolSpec],
        request: &Request<'_>,
        coverage: &mut Coverage,
    ) -> Judgement {
        judge(self, tools, request, coverage)
    }
}

fn judge(
    naive: &Naive,
    tools: &[ToolSpec],
    request: &Request<'_>,
    coverage: &mut Coverage,
) -> Judgement {
    let (rules, bindings) = (&naive.rules, &naive.bindings);
    let denied = |rule: Option<String>, error: bool| Judgement {
        is: Is::Denied,
        rule,
        ask: None,
        grants: Vec::new(),
        error,
    };
    let Some(tool) = tools.iter().find(|tool| tool.name == request.tool) else {
        return denied(None, false);
    };
    let level = tool.level.to_string();
    let args = flatten(request.args);
    let broken_rules = rules
        .iter()
        .filter(|rule| broken(rule) && touches(rule, request.tool))
        .map(|rule| text(&rule["name"]));
    let broken_flow = bindings
        .iter()
        .filter(|one| level != "read" && broken_binding(one) && touches(one, request.tool))
        .map(|_| "flow:untrusted".to_owned());
    // Rules come before the flow rules; among themselves they go by name.
    if let Some(name) = broken_rules.min().or_else(|| broken_flow.min()) {
        return denied(Some(name), true);
    }
    let spoken: Vec<_> = rules
        .iter()
        .filter(|rule| !broken(rule) && speaks(rule, &level, request, &args, coverage))
        .collect();
    let names = |wanted: &str| {
        let said = spoken.iter().filter(|rule| says(rule) == wanted);
        said.map(|rule| text(&rule["name"])).min()
    };
    if let Some(name) = names("deny") {
        return denied(Some(name), false);
    }
    let Some(name) = names("ask").or_else(|| names("allow")) else {
        return denied(None, false);
    };
    let effect = level != "read";
    if effect && !request.tainted.is_empty() && !keeps(bindings, request, &args) {
        return denied(Some("flow:untrusted".to_owned()), false);
    }
    let asks: Vec<_> = spoken.iter().filter(|rule| says(rule) == "ask").collect();
    let ask = match (asks.is_empty(), effect) {
        (true, false) => {
            return Judgement {
                is: Is::Allowed,
                ..denied(Some(name), false)
            };
        }
        (true, true) => (3600, false, 1, false),
        (false, _) => strictest(&asks),
    };
    let mut grants: Vec<_> = naive
        .grants
        .iter()
        .filter(|grant| text(&grant["tool"]) == request.tool)
        .filter_map(|grant| signature(grant, request, &args, coverage))
        .collect();
    grants.sort();
    Judgement {
        is: Is::Asked,
        rule: Some(name),
        ask: Some(ask),
        grants,
        error: false,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The rules, and the entries of the lists written as rules.
fn all_rules(policy: &Value) -> Vec<Value> {
    let mut rules = list(&policy["rules"]).to_vec();
    for (name, then) in [
        ("allow", "allow"),
        ("allow_unregistered", "allow"),
        ("deny", "deny"),
    ] {
        for pattern in list(&policy[name]) {
            let named = format!("{name}:{}", text(pattern));
            rules.push(serde_json::json!({"name": named, "then": then, "tools": [pattern]}));
        }
    }
    for entry in list(&policy["ask"]) {
        let named = format!("ask:{}", text(&entry[0]));
        let then = serde_json::json!({"ask": entry[1]});
        rules.push(serde_json::json!({"name": named, "then": then, "tools": [entry[0]]}));
    }
    rules
}

fn says(rule: &Value) -> String {
    match rule["then"].as_str() {
        Some(word) => word.to_owned(),
        None => "ask".to_owned(),
    }
}

fn strictest(asks: &[&&Value]) -> (u64, bool, u64, bool) {
    let of = |rule: &Value| rule["then"]["ask"].clone();
    let numbers = |key: &str| {
        let all: Vec<_> = asks
            .iter()
            .map(|rule| of(rule)[key].as_u64().unwrap())
            .collect();
        (
            all.iter().copied().min().unwrap(),
            all.iter().copied().max().unwrap(),
        )
    };
    let any = |key: &str| asks.iter().any(|rule| of(rule)[key] == true);
    (
        numbers("expires").0,
        any("not_by_requester"),
        numbers("quorum").1,
        any("verified"),
    )
}

/// Whether a rule is about a tool, as far as it can be read.
fn touches(rule: &Value, tool: &str) -> bool {
    let tools = list(&rule["tools"]);
    let unclear = tools.is_empty() || tools.iter().any(|one| one == "");
    unclear || tools.iter().any(|one| like(&text(one), tool))
}

fn broken(rule: &Value) -> bool {
    let empty_pattern = ["tools", "agents", "users", "tenants", "origin"]
        .iter()
        .any(|key| list(&rule[key]).iter().any(|one| one == ""));
    let hours = &rule["hours"];
    let bad_hours = hours.is_object() && minutes(hours).is_none();
    let no_quorum = rule["then"]["ask"]["quorum"] == 0;
    let bad_condition = list(&rule["when"]).iter().any(broken_condition);
    list(&rule["tools"]).is_empty() || empty_pattern || bad_hours || no_quorum || bad_condition
}

fn broken_binding(binding: &Value) -> bool {
    let tools = list(&binding["tools"]);
    tools.is_empty() || tools.iter().any(|one| one == "") || bad_pointer(&text(&binding["pointer"]))
}

fn broken_condition(condition: &Value) -> bool {
    let bad_pattern = |key: &str| {
        condition[key].as_str().is_some_and(|pattern| {
            let stars = pattern.matches('*').count();
            pattern.is_empty() || pattern.len() > 1024 || stars > 16
        })
    };
    let no_values = |key: &str| condition[key].as_array().is_some_and(Vec::is_empty);
    bad_pointer(&text(&condition["pointer"]))
        || bad_pattern("glob")
        || bad_pattern("not_glob")
        || no_values("one_of")
        || no_values("none_of")
}

fn bad_pointer(pointer: &str) -> bool {
    let plain = pointer.replace("~0", "").replace("~1", "");
    let shape = pointer.is_empty() || pointer.starts_with('/');
    !shape || plain.contains('~') || pointer.len() > 1024
}

fn speaks(
    rule: &Value,
    level: &str,
    request: &Request<'_>,
    args: &Flat<'_>,
    coverage: &mut Coverage,
) -> bool {
    let any = |key: &str, name: &str| {
        let patterns = list(&rule[key]);
        patterns.is_empty() || patterns.iter().any(|one| like(&text(one), name))
    };
    let levels = list(&rule["levels"]);
    let origins = list(&rule["origin"]);
    let minute = request.now_ms / 60_000 % 1440;
    let narrows = says(rule) != "allow";
    let mut parts = vec![
        any("tools", request.tool),
        any("agents", request.agent),
        any("users", request.user),
        any("tenants", request.tenant),
        levels.is_empty() || levels.iter().any(|one| one == level),
        origins.is_empty()
            || request
                .tainted
                .iter()
                .any(|source| origins.iter().any(|one| like(&text(one), source))),
        minutes(&rule["hours"]).is_none_or(|all| all.contains(&minute)),
    ];
    for condition in list(&rule["when"]) {
        parts.push(truth(condition, args, coverage).unwrap_or(narrows));
    }
    parts.iter().all(|part| *part)
}

/// The minutes of the day that belong to hours.
fn minutes(hours: &Value) -> Option<Vec<u64>> {
    let read = |key: &str| -> Option<u64> {
        let text = hours[key].as_str()?;
        let (hour, minute) = text.split_once(':')?;
        Some(hour.parse::<u64>().ok()? * 60 + minute.parse::<u64>().ok()?)
    };
    let (from, to) = (read("from")?, read("to")?);
    if from == to || from >= 1440 || to > 1440 {
        return None;
    }
    let mut all = vec![from];
    let mut next = (from + 1) % 1440;
    while next != to % 1440 {
        all.push(next);
        next = (next + 1) % 1440;
    }
    Some(all)
}

/// All that can be pointed to.
fn flatten(args: &Json) -> Flat<'_> {
    let mut flat = Flat::new();
    let mut open = vec![(String::new(), args.view())];
    while let Some((pointer, value)) = open.pop() {
        match value.shape() {
            Shape::Object(entries) => {
                for (key, inner) in entries {
                    let step = key.replace('~', "~0").replace('/', "~1");
                    open.push((format!("{pointer}/{step}"), inner));
                }
            }
            Shape::Array(items) => {
                for (index, inner) in items.enumerate() {
                    open.push((format!("{pointer}/{index}"), inner));
                }
            }
            _ => {}
        }
        flat.insert(pointer, value);
    }
    flat
}

fn truth(condition: &Value, args: &Flat<'_>, coverage: &mut Coverage) -> Option<bool> {
    let found = args.get(&text(&condition["pointer"])).copied();
    let (operator, operand) = condition
        .as_object()
        .unwrap()
        .iter()
        .find(|(key, _)| *key != "pointer")
        .unwrap();
    let said = said(operator, operand, found);
    let name = match (operator.as_str(), operand) {
        ("present", Value::Bool(false)) => "absent",
        (name, _) => name,
    };
    let counts = coverage.0.entry(name.to_owned()).or_default();
    counts[match said {
        Some(true) => 0,
        Some(false) => 1,
        None => 2,
    }] += 1;
    said
}

fn said(operator: &str, operand: &Value, found: Option<View<'_>>) -> Option<bool> {
    if operator == "present" {
        return Some(found.is_some() == operand.as_bool().unwrap());
    }
    let found = found?;
    let is_one_of = |values: &[Value]| {
        let all: Vec<_> = values.iter().filter_map(|one| same(one, found)).collect();
        (!all.is_empty()).then(|| all.contains(&true))
    };
    let glob = || Some(like(operand.as_str().unwrap(), found.as_str()?));
    let order = || {
        let Shape::Number(digits) = found.shape() else {
            return None;
        };
        Some(compare(
            &number(digits)?,
            &number(operand.as_str().unwrap())?,
        ))
    };
    let length = || {
        let length = match found.shape() {
            Shape::String(text) => text.chars().count(),
            Shape::Array(items) => items.count(),
            Shape::Object(entries) => entries.count(),
            _ => return None,
        };
        Some(length as u64)
    };
    match operator {
        "equals" => is_one_of(std::slice::from_ref(operand)),
        "not_equals" => is_one_of(std::slice::from_ref(operand)).map(|yes| !yes),
        "one_of" => is_one_of(list(operand)),
        "none_of" => is_one_of(list(operand)).map(|yes| !yes),
        "glob" => glob(),
        "not_glob" => glob().map(|yes| !yes),
        "at_most" => order().map(|order| order <= 0),
        "at_least" => order().map(|order| order >= 0),
        "below" => order().map(|order| order < 0),
        "above" => order().map(|order| order > 0),
        "length_at_most" => length().map(|length| length <= operand.as_u64().unwrap()),
        "length_at_least" => length().map(|length| length >= operand.as_u64().unwrap()),
        other => panic!("no such operator: {other}"),
    }
}

fn same(wanted: &Value, found: View<'_>) -> Option<bool> {
    let wanted_number = match wanted {
        Value::Number(number) => Some(number.to_string()),
        Value::Object(map) => Some(text(&map["number"])),
        _ => None,
    };
    match (wanted, wanted_number, found.shape()) {
        (_, Some(wanted), Shape::Number(digits)) => {
            Some(compare(&number(&wanted)?, &number(digits)?) == 0)
        }
        (Value::String(wanted), _, Shape::String(found)) => Some(wanted == found),
        (Value::Bool(wanted), _, Shape::Bool(found)) => Some(*wanted == found),
        _ => None,
    }
}

/// An integer, and the power of ten that it is multiplied by.
fn number(text: &str) -> Option<(BigInt, i64)> {
    let lower = text.to_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let magnitude = exponent
        .trim_start_matches(['+', '-'])
        .trim_start_matches('0');
    if magnitude.len() > 18 {
        return None;
    }
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap();
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let integer: BigInt = format!("{whole}{fraction}").parse().unwrap();
    Some((integer, exponent - fraction.len() as i64))
}

fn compare(one: &(BigInt, i64), other: &(BigInt, i64)) -> i8 {
    let common = one.1.min(other.1);
    let scaled = |(integer, exponent): &(BigInt, i64)| {
        integer * BigInt::from(10).pow(u32::try_from(exponent - common).unwrap())
    };
    scaled(one).cmp(&scaled(other)) as i8
}

/// A table of which beginnings of the pattern fit which beginnings of the name.
fn like(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let mut row = vec![false; name.len() + 1];
    row[0] = true;
    for letter in pattern {
        let mut next = vec![false; name.len() + 1];
        for end in 0..=name.len() {
            next[end] = match letter {
                '*' => row[..=end].contains(&true),
                _ => end > 0 && row[end - 1] && name[end - 1] == letter,
            };
        }
        row = next;
    }
    row[name.len()]
}

/// Whether each target is there, was bound, and is what was bound. A tool without targets keeps nothing.
fn keeps(bindings: &[Value], request: &Request<'_>, args: &Flat<'_>) -> bool {
    let mut own = bindings
        .iter()
        .filter(|one| touches(one, request.tool))
        .peekable();
    own.peek().is_some()
        && own.all(|one| {
            let bound = request.targets.get(&text(&one["target"]));
            let found = args.get(&text(&one["pointer"]));
            match (bound, found) {
                (Some(bound), Some(found)) => {
                    same(&serde_json::to_value(bound).unwrap(), *found) == Some(true)
                }
                _ => false,
            }
        })
}

fn signature(
    grant: &Value,
    request: &Request<'_>,
    args: &Flat<'_>,
    coverage: &mut Coverage,
) -> Option<Signature> {
    let caps = list(&grant["at_most"]);
    let conditions = list(&grant["when"]);
    let sum = &grant["sum_per_day"];
    let limits = [&grant["per_thread"], &grant["per_day"], sum];
    let useless = limits.iter().all(|limit| limit.is_null())
        || (caps.is_empty() && conditions.is_empty() && sum.is_null());
    let pointers = caps.iter().chain(sum.is_array().then_some(sum));
    let empty = ["agents", "users", "tenants"]
        .iter()
        .any(|key| list(&grant[key]).iter().any(|one| one == ""));
    let bad = useless
        || empty
        || pointers
            .map(|cap| text(&cap[0]))
            .any(|one| bad_pointer(&one))
        || conditions.iter().any(broken_condition);
    let any = |key: &str, name: &str| {
        let patterns = list(&grant[key]);
        patterns.is_empty() || patterns.iter().any(|one| like(&text(one), name))
    };
    let zero = (BigInt::ZERO, 0);
    let found = |pointer: &Value| match args.get(&text(pointer))?.shape() {
        Shape::Number(digits) => number(digits),
        _ => None,
    };
    let capped = caps.iter().all(|cap| {
        found(&cap[0]).is_some_and(|given| {
            let most = number(&cap[1].to_string()).unwrap();
            compare(&given, &zero) >= 0 && compare(&given, &most) <= 0
        })
    });
    let all: Vec<_> = match bad {
        true => Vec::new(),
        false => conditions
            .iter()
            .map(|one| truth(one, args, coverage))
            .collect(),
    };
    let fits = !bad
        && request.now_ms < grant["until"].as_u64().unwrap()
        && (request.tainted.is_empty() || grant["after_untrusted"] == true)
        && any("agents", request.agent)
        && any("users", request.user)
        && any("tenants", request.tenant)
        && capped
        && all.iter().all(|one| *one == Some(true));
    if !fits {
        return None;
    }
    let name = text(&grant["name"]);
    let escaped = |text: &str| text.replace('%', "%25").replace('/', "%2F");
    let counter = |kind: &str, of: &str| {
        let (tenant, of) = (escaped(request.tenant), escaped(of));
        format!("grant/{name}/{tenant}/{kind}/{of}")
    };
    let day = calendar(request.now_ms);
    let mut takes = Vec::new();
    if let Some(most) = grant["per_thread"].as_u64() {
        takes.push((counter("thread", request.thread), 1, most));
    }
    if let Some(most) = grant["per_day"].as_u64() {
        takes.push((counter("day", &day), 1, most));
    }
    if sum.is_array() {
        let (integer, exponent) = found(&sum[0])?;
        let ten = BigInt::from(10).pow(u32::try_from(exponent.abs()).unwrap());
        let whole = match exponent < 0 {
            true if &integer % &ten != BigInt::ZERO => return None,
            true => integer / ten,
            false => integer * ten,
        };
        let amount: u64 = whole.to_string().parse().ok()?;
        takes.push((counter("sum", &day), amount, sum[1].as_u64().unwrap()));
    }
    let room = takes.iter().all(|(_, by, most)| by <= most);
    room.then_some((name, takes))
}

/// The date, found by walking from 1970.
fn calendar(now_ms: u64) -> String {
    let mut days = now_ms / 86_400_000;
    let mut year = 1970;
    loop {
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let february = if leap { 29 } else { 28 };
        let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in lengths.into_iter().enumerate() {
            if days < length {
                return format!("{year:04}-{:02}-{:02}", month + 1, days + 1);
            }
            days -= length;
        }
        year += 1;
    }
}
