//! Random policies and calls, from a seed. They are drawn from small pools, so that rules and calls meet.

use crate::tool;
use paraph_gateway::{
    Ask, Binding, Bounds, Condition, Decimal, Flow, Grant, Hours, Json, Level, Operator, Policy,
    Request, Rule, Scalar, Targets, Then, ToolSpec,
};
use std::time::Duration;

/// SplitMix64, and whether what it makes may be such that it cannot be read.
pub(crate) struct Random {
    state: u64,
    faulty: bool,
}

pub(crate) const TOOLS: [(&str, Level); 5] = [
    ("search", Level::Read),
    ("fetch_page", Level::Read),
    ("pay", Level::Write),
    ("run_code", Level::Execute),
    ("drop_table", Level::Delete),
];

const PATTERNS: [&str; 12] = [
    "search",
    "fetch_page",
    "pay",
    "run_code",
    "drop_table",
    "*",
    "*e*",
    "p*",
    "*_*",
    "dr*p*le",
    "Pay",
    "nothing",
];
const PEOPLE: [&str; 5] = ["ann", "bob", "support", "weather", "a/b"];
const PEOPLE_PATTERNS: [&str; 6] = ["ann", "b*", "support", "*", "we*her", "*/*"];
const DAYS: [u64; 3] = [0, 11_016, 20_787];
const POINTERS: [&str; 12] = [
    "/a", "/a", "/b", "/b", "/c", "/l/0", "/l/1", "/o/a", "/x~1y", "/t~0", "/l/00", "",
];
const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "5",
    "-5",
    "5.0",
    "0.5e1",
    "500",
    "5e2",
    "499.99999999999999999999",
    "500.5",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "-18446744073709551616",
    "123456789012345678901234567890",
    "1e400",
    "-1E+400",
    "1e-400",
    "0.1",
    "0.10000000000000001",
    "1e99999999999999999999",
    "0e0",
    "5E-0001",
];
const TEXTS: [&str; 12] = [
    "",
    "a",
    "ab",
    "A",
    "é",
    "ann@example.com",
    "eve@evil.example,ann@example.com",
    "5",
    "true",
    "/etc/passwd",
    "aaaaaaaa",
    "a*b",
];
const GLOBS: [&str; 9] = [
    "*",
    "a*",
    "*@example.com",
    "*a*a*",
    "a",
    "é",
    "/etc/*",
    "a*b",
    "*,*",
];

impl Random {
    /// One round of a test, by itself. One in ten makes faults.
    pub(crate) fn of(seed: u64, round: u64) -> Random {
        let state = seed.wrapping_add(round.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let faulty = round % 10 == 9;
        Random { state, faulty }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Now and then yes, if it makes faults.
    fn slips(&mut self) -> bool {
        self.faulty && self.chance(4)
    }

    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn some<T>(
        &mut self,
        percent: usize,
        most: usize,
        mut one: impl FnMut(&mut Random) -> T,
    ) -> Vec<T> {
        let count = match self.chance(percent) {
            true => 1 + self.below(most),
            false => 0,
        };
        (0..count).map(|_| one(self)).collect()
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for end in (1..all.len()).rev() {
            all.swap(end, self.below(end + 1));
        }
    }
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    TOOLS
        .iter()
        .map(|(name, level)| tool(name, *level))
        .collect()
}

/// A policy.
pub(crate) fn policy(random: &mut Random) -> Policy {
    let pattern = |random: &mut Random| random.pick(&PATTERNS).to_owned();
    let mut policy = Policy {
        allow: random.some(60, 3, pattern),
        allow_unregistered: random.some(5, 1, pattern),
        ask: random.some(40, 2, |random| {
            (random.pick(&PATTERNS).to_owned(), ask(random))
        }),
        deny: random.some(15, 1, pattern),
        rules: Vec::new(),
        grants: Vec::new(),
        flow: Flow::default(),
    };
    for index in 0..random.below(9) {
        let rule = rule(random, &format!("rule {index}"));
        policy.rules.push(rule);
    }
    for index in 0..random.below(9) {
        policy.grants.push(grant(random, &format!("grant {index}")));
    }
    if random.chance(30) {
        // Few calls get as far as to a grant by chance.
        policy.deny.clear();
        policy.rules.truncate(2);
        policy.ask.push(("*".to_owned(), ask(random)));
    }
    policy.flow.untrusted = random.some(70, 2, pattern);
    policy.flow.bound = random.some(80, 3, binding);
    policy
}

fn tool_patterns(random: &mut Random) -> Vec<String> {
    if random.slips() {
        return Vec::new();
    }
    let count = 1 + random.below(3);
    (0..count)
        .map(|_| match random.slips() {
            true => String::new(),
            false => random.pick(&PATTERNS).to_owned(),
        })
        .collect()
}

fn people(random: &mut Random) -> Vec<String> {
    random.some(20, 2, |random| random.pick(&PEOPLE_PATTERNS).to_owned())
}

fn ask(random: &mut Random) -> Ask {
    Ask {
        expires: Duration::from_secs(60 * (1 + random.below(90) as u64)),
        not_by_requester: random.chance(30),
        quorum: u32::from(!random.slips()) * (1 + random.below(3) as u32),
        verified: random.chance(20),
    }
}

pub(crate) fn rule(random: &mut Random, name: &str) -> Rule {
    let then = match random.below(10) {
        0..5 => Then::Allow,
        5..8 => Then::Ask(ask(random)),
        _ => Then::Deny,
    };
    let levels = [Level::Read, Level::Write, Level::Execute, Level::Delete];
    let hours = random.chance(20).then(|| {
        let from = random.below(1440) as u16;
        let to = match random.slips() {
            true => from,
            false => (from + 1 + random.below(1439) as u16) % 1440,
        };
        Hours { from, to }
    });
    Rule {
        levels: random.some(20, 2, |random| random.pick(&levels)),
        agents: people(random),
        users: people(random),
        tenants: people(random),
        origin: random.some(15, 2, |random| random.pick(&PATTERNS).to_owned()),
        hours,
        when: random.some(75, 2, condition),
        because: "it is a test".to_owned(),
        ..Rule::new(name, then, tool_patterns(random))
    }
}

fn grant(random: &mut Random, name: &str) -> Grant {
    let cap = |random: &mut Random| {
        let at = match random.chance(60) {
            true => "/a".to_owned(),
            false => pointer(random),
        };
        (
            at,
            random.pick(&[0_u64, 5, 500, u64::MAX, u64::MAX, u64::MAX]),
        )
    };
    let count = |random: &mut Random| random.chance(50).then(|| random.below(6) as u64);
    let tool = match random.slips() {
        true => random.pick(&PATTERNS),
        false if random.chance(50) => "pay",
        false => random.pick(&TOOLS).0,
    };
    let (agents, users, tenants) = match random.chance(20) {
        true => (people(random), people(random), people(random)),
        false => (Vec::new(), Vec::new(), Vec::new()),
    };
    Grant {
        at_most: random.some(80, 1, cap),
        when: random.some(20, 1, condition),
        agents,
        users,
        tenants,
        per_thread: count(random),
        per_day: count(random),
        sum_per_day: random.chance(30).then(|| cap(random)),
        after_untrusted: random.chance(40),
        ..Grant::new(name, tool, random.next() % 16_000_000_000_000)
    }
}

fn binding(random: &mut Random) -> Binding {
    Binding {
        tools: tool_patterns(random),
        pointer: pointer(random),
        target: random.pick(&["user", "issue"]).to_owned(),
    }
}

fn pointer(random: &mut Random) -> String {
    match random.slips() {
        true => random.pick(&["a", "/a~", "/~2"]).to_owned(),
        false => random.pick(&POINTERS).to_owned(),
    }
}

pub(crate) fn condition(random: &mut Random) -> Condition {
    let values = |random: &mut Random| match random.slips() {
        true => Vec::new(),
        false => (0..=random.below(4)).map(|_| scalar(random)).collect(),
    };
    let glob = |random: &mut Random| match random.slips() {
        true => random.pick(&[String::new(), "*".repeat(17)]),
        false => random.pick(&GLOBS).to_owned(),
    };
    let is = match random.below(14) {
        0 => Operator::Equals(scalar(random)),
        1 => Operator::NotEquals(scalar(random)),
        2 => Operator::OneOf(values(random)),
        3 => Operator::NoneOf(values(random)),
        4 => Operator::Glob(glob(random)),
        5 => Operator::NotGlob(glob(random)),
        6 => Operator::AtMost(decimal(random)),
        7 => Operator::AtLeast(decimal(random)),
        8 => Operator::Below(decimal(random)),
        9 => Operator::Above(decimal(random)),
        10 => Operator::LengthAtMost(random.below(4) as u64),
        11 => Operator::LengthAtLeast(random.below(9) as u64),
        12 => Operator::Present,
        _ => Operator::Absent,
    };
    Condition::new(pointer(random), is)
}

/// A number of the pools, or one beside it.
fn decimal(random: &mut Random) -> Decimal {
    loop {
        if let Some(number) = Decimal::read(random.pick(&NUMBERS)) {
            return number;
        }
    }
}

fn scalar(random: &mut Random) -> Scalar {
    match random.below(4) {
        0 => Scalar::Bool(random.chance(50)),
        1 => Scalar::Text(random.pick(&TEXTS).to_owned()),
        _ => Scalar::Number(decimal(random)),
    }
}

fn value(random: &mut Random) -> String {
    match random.below(12) {
        0 => "null".to_owned(),
        1 => random.chance(50).to_string(),
        2..7 => random.pick(&NUMBERS).to_owned(),
        7..11 => serde_json::to_string(random.pick(&TEXTS)).unwrap(),
        _ => "{}".to_owned(),
    }
}

fn args(random: &mut Random) -> Json {
    let mut entries = Vec::new();
    for key in ["a", "b", "c", "x/y", "t~"] {
        if key == "a" && random.chance(40) {
            entries.push(format!("\"a\":{}", random.pick(&NUMBERS)));
        } else if random.chance(70) {
            entries.push(format!("{key:?}:{}", value(random)));
        }
    }
    if random.chance(60) {
        let items: Vec<_> = (0..random.below(4)).map(|_| value(random)).collect();
        entries.push(format!("\"l\":[{}]", items.join(",")));
    }
    if random.chance(60) {
        entries.push(format!("\"o\":{{\"a\":{}}}", value(random)));
    }
    Json::read(&format!("{{{}}}", entries.join(",")), Bounds::default()).unwrap()
}

/// A call, with all that it borrows.
pub(crate) struct Call {
    pub(crate) tool: String,
    args: Json,
    names: [&'static str; 4],
    tainted: Vec<String>,
    targets: Targets,
    now_ms: u64,
}

pub(crate) fn call(random: &mut Random) -> Call {
    let tool = match random.below(100) {
        0..3 => random
            .pick(&["Pay", "pay ", "nothing", "", "p\u{430}y"])
            .to_owned(),
        3..6 => {
            let name = random.pick(&TOOLS).0;
            crate::names::variant(random, name)
        }
        6..35 => "pay".to_owned(),
        _ => random.pick(&TOOLS).0.to_owned(),
    };
    let now_ms = match random.chance(60) {
        // Few days, so that what is counted by the day adds up.
        true => random.pick(&DAYS) * 86_400_000 + random.next() % 86_400_000,
        false => random.next() % 4_000_000_000_000,
    };
    let source = |random: &mut Random| random.pick(&["search", "fetch_page", "mail"]).to_owned();
    let args = args(random);
    let mut targets = Targets::new();
    for name in ["user", "issue"] {
        if random.chance(70) {
            targets.insert(name.to_owned(), scalar(random));
        }
    }
    let mut names = [0; 4].map(|_| random.pick(&PEOPLE));
    for place in [0, 3] {
        // Mostly one tenant and one thread, so that grants are used up.
        if random.chance(70) {
            names[place] = "a/b";
        }
    }
    Call {
        tool,
        args,
        names,
        tainted: random.some(40, 2, source),
        targets,
        now_ms,
    }
}

impl Call {
    pub(crate) fn read(mut self, sources: &[&str]) -> Call {
        self.tainted = sources.iter().map(|source| (*source).to_owned()).collect();
        self
    }

    pub(crate) fn bind(mut self, name: &str, target: Scalar) -> Call {
        self.targets.insert(name.to_owned(), target);
        self
    }

    /// A call in the morning, of a run that has read and bound nothing.
    pub(crate) fn plain(tool: &str, args: &str) -> Call {
        Call {
            tool: tool.to_owned(),
            args: Json::read(args, Bounds::default()).unwrap(),
            names: ["local", "support", "ann", "case-7"],
            tainted: Vec::new(),
            targets: Targets::new(),
            now_ms: 1_796_029_200_000,
        }
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            tenant: self.names[0],
            agent: self.names[1],
            user: self.names[2],
            thread: self.names[3],
            tool: &self.tool,
            args: &self.args,
            tainted: &self.tainted,
            targets: &self.targets,
            now_ms: self.now_ms,
        }
    }
}
