//! Rules, grants and flow rules in a file: what they become, every mistake in them, and their keys beside the gateway's
//! types.

use super::*;
use paraph_gateway::{
    Ask, Binding, Condition, Example, Examples, Flow, Grant, Hours, Operator, PolicyEngine, Rule,
    Scalar, Then, instant,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// A file with the tools `think`, `web_search` and `pay`, and these lines.
fn desk(lines: &str) -> String {
    with(&format!(
        "[tools]\nbuiltin = [\"think\", \"web_search\", \"pay\"]\n{lines}"
    ))
}

/// Everything that a policy can say.
const ALL: &str = r#"
[policy]
approve = ["pay"]
ask = { expires = 600, quorum = 2 }

[[policy.rules]]
name = "no large payments"
then = "deny"
tools = ["pay"]
levels = ["write"]
agents = ["clerk"]
users = ["a*"]
tenants = ["local"]
origin = ["web_search"]
hours = { from = "22:00", to = "06:00" }
when = [
    { pointer = "/amount_cents", above = 50000 },
    { pointer = "/user_id", none_of = [1, "x", true, { number = "1e30" }] },
]
because = "they go through the back office"

[[policy.rules.examples.matching]]
args = { amount_cents = 50001 }
agent = "clerk"
user = "ann"
tenant = "local"
origin = ["web_search"]
at = 2026-11-30T23:15:00Z

[[policy.rules.examples.not_matching]]
tool = "pay"
level = "write"
args = '{"amount_cents": 50000.0}'

[[policy.rules]]
name = "the files way of asking"
then = "ask"
tools = ["web_*"]

[[policy.rules]]
name = "of its own"
then = { ask = { verified = true, not_by_requester = true } }
tools = ["pay"]

[[policy.grants]]
name = "small"
tool = "pay"
until = "2027-06-30T00:00:00Z"
at_most = [["/amount_cents", 500]]
when = [{ pointer = "/user_id", present = true }]
agents = ["clerk"]
users = ["*"]
tenants = ["local"]
per_thread = 1
per_day = 10
sum_per_day = ["/amount_cents", 10000]
after_untrusted = true

[policy.flow]
untrusted = ["web_search"]
bound = [{ tools = ["pay"], pointer = "/user_id", target = "user" }]
"#;

#[test]
#[expect(clippy::too_many_lines, reason = "all that a policy can say, once")]
fn a_file_can_say_all_that_a_policy_can() {
    let spec = read(&desk(ALL)).unwrap().file.main.policy;
    let asked = Ask {
        expires: Duration::from_secs(600),
        quorum: 2,
        ..Ask::default()
    };
    let large = Rule {
        levels: vec![Level::Write],
        agents: vec!["clerk".into()],
        users: vec!["a*".into()],
        tenants: vec!["local".into()],
        origin: vec!["web_search".into()],
        hours: Some(Hours {
            from: 22 * 60,
            to: 6 * 60,
        }),
        when: vec![
            Condition::new("/amount_cents", Operator::Above(50_000.into())),
            Condition::new(
                "/user_id",
                Operator::NoneOf(vec![
                    1.into(),
                    "x".into(),
                    true.into(),
                    Scalar::Number(paraph_gateway::Decimal::read("1e30").unwrap()),
                ]),
            ),
        ],
        because: "they go through the back office".into(),
        examples: Examples {
            matching: vec![Example {
                args: r#"{"amount_cents":50001}"#.into(),
                agent: "clerk".into(),
                user: "ann".into(),
                tenant: "local".into(),
                origin: vec!["web_search".into()],
                at: instant("2026-11-30T23:15:00Z"),
                ..Example::default()
            }],
            not_matching: vec![Example {
                tool: "pay".into(),
                level: Some(Level::Write),
                args: r#"{"amount_cents": 50000.0}"#.into(),
                ..Example::default()
            }],
        },
        ..Rule::new("no large payments", Then::Deny, ["pay"])
    };
    let own = Ask {
        verified: true,
        not_by_requester: true,
        ..Ask::default()
    };
    assert_eq!(
        spec.rules,
        [
            large,
            Rule::new("the files way of asking", Then::Ask(asked), ["web_*"]),
            Rule::new("of its own", Then::Ask(own), ["pay"]),
        ]
    );
    let until = instant("2027-06-30T00:00:00Z").unwrap();
    assert_eq!(
        spec.grants,
        [Grant {
            at_most: vec![("/amount_cents".into(), 500)],
            when: vec![Condition::new("/user_id", Operator::Present)],
            agents: vec!["clerk".into()],
            users: vec!["*".into()],
            tenants: vec!["local".into()],
            per_thread: Some(1),
            per_day: Some(10),
            sum_per_day: Some(("/amount_cents".into(), 10_000)),
            after_untrusted: true,
            ..Grant::new("small", "pay", until)
        }]
    );
    assert_eq!(
        spec.flow,
        Flow {
            untrusted: vec!["web_search".into()],
            bound: vec![Binding {
                tools: vec!["pay".into()],
                pointer: "/user_id".into(),
                target: "user".into(),
            }],
        }
    );
    assert_eq!(spec.ask, Some(asked));
}

#[test]
fn targets_are_what_a_file_and_its_variables_say() {
    let targets = |lines: &str| {
        let text = desk(&format!(
            "[policy]\napprove = [\"pay\"]\n{lines}\n[policy.flow]\nuntrusted = [\"web_search\"]\nbound = [{{ tools = [\"pay\"], pointer = \"/user_id\", target = \"user\" }}]\n"
        ));
        let found = policies(&format!("variables = {{ customer = \"42\" }}\n{text}"));
        found[0].targets()
    };
    let number = |text: &str| Scalar::Number(paraph_gateway::Decimal::read(text).unwrap());
    let table = [
        ("user = 42", Scalar::from(42)),
        ("user = \"{{customer}}\"", Scalar::from("42")),
        ("user = { number = \"{{customer}}\" }", number("42")),
        ("user = { number = \"1e30\" }", number("1e30")),
        ("user = true", Scalar::from(true)),
    ];
    for (line, expected) in table {
        let found = targets(&format!("[policy.targets]\n{line}")).unwrap();
        assert_eq!(found.get("user"), Some(&expected), "{line}");
    }
    let wrong = targets("[policy.targets]\nuser = { number = \"no {{customer}}\" }");
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "`policy.targets.user` is to be a number, and what its variables make of it is none"
    );
    assert_eq!(targets("").unwrap(), Default::default());
    let remarks = read(&desk(ALL)).unwrap().remarks;
    let told = remarks.iter().map(ToString::to_string);
    let told: Vec<_> = told.filter(|remark| remark.contains("binds")).collect();
    let lines = desk(ALL).lines().count();
    assert_eq!(
        told,
        [format!(
            "{lines}:9: nothing binds `user`: once a run has read untrusted text, pay never runs; write into `policy.targets` what it is about: `user = \"…\"`"
        )]
    );
}

/// Lines of a policy, and what is said of them.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"allow\"",
        &[
            "5:1: `policy.rules[0]` has no `tools`; write `tools = [\"a_name\"]`: the tools it is about; `\"*\"` is all of them",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"a/b\"\nthen = \"forbid\"\ntools = [\"pay\"]",
        &[
            "6:8: `policy.rules[0].name` cannot be `a/b`; write 1 to 64 letters, digits, spaces, `_`, `-` or `.`",
            "7:8: `forbid` is no value of `policy.rules[0].then`; there are allow, ask, deny",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = 5\ntools = [\"pay\"]",
        &[
            "7:8: `policy.rules[0].then` is one of allow, ask, deny or a table, not a whole number; write \"allow\"",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = { ask = { quorum = 0, expire = 5 } }\ntools = [\"pay\"]",
        &[
            "7:27: `policy.rules[0].then.ask.quorum` is a whole number from 1 to 100, not 0; write 8",
            "7:30: `policy.rules[0].then.ask` has no key `expire`; did you mean `expires`?",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pya\"]",
        &["8:9: the rule `r`: this agent has no tool `pya`; did you mean `pay`?"],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nwhen = [{ pointer = \"/amount\", above = 5 }]",
        &["9:21: the rule `r`: `/amount` points to an argument that its tools do not take"],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nwhen = [{ pointer = \"/amount_cents\" }]",
        &[
            "9:9: `policy.rules[0].when[0]` has neither `equals` nor `not_equals` nor `one_of` nor `none_of` nor `glob` nor `not_glob` nor `at_most` nor `at_least` nor `below` nor `above` nor `length_at_most` nor `length_at_least` nor `present`; write one of them",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nwhen = [{ pointer = \"/amount_cents\", above = 5, below = 9 }]",
        &["9:49: `below` and `above` exclude each other; keep one of them"],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nwhen = [{ pointer = \"/amount_cents\", above = 0.5 }]",
        &[
            "9:46: `policy.rules[0].when[0].above` is a text or a whole number, not a number with a fraction; write \"0.5\"",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nwhen = [{ pointer = \"amount_cents\", above = \"0.5\" }]",
        &[
            "9:21: the rule `r`: `amount_cents` is no JSON pointer: it begins with `/`, and in it `~1` is `/` and `~0` is `~`",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nhours = { from = \"8:30\", to = \"24:01\" }",
        &[
            "9:18: `policy.rules[0].hours.from` cannot be `8:30`; write a time of the day, `00:00` to `24:00`",
            "9:31: `policy.rules[0].hours.to` cannot be `24:01`; write a time of the day, `00:00` to `24:00`",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nhours = { from = \"08:30\", to = \"08:30\" }",
        &[
            "9:1: the rule `r`: its hours are to be two different times of the day, `00:00` to `24:00`",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\norigin = [\"web_search\"]",
        &[
            "9:10: the rule `r`: its origin `web_search` is no tool that `flow.untrusted` names, and so it would never speak",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nwhen = [{ pointer = \"/amount_cents\", above = 5 }]\nexamples.matching = [{ args = { amount_cents = 6 } }, { args = { amount_cents = 5 } }]",
        &[
            "10:55: the rule `r`: example 2 of `matching` is not spoken about: it does not hold that `/amount_cents` is above 5; change the example, or what the rule says",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"allow\"\ntools = [\"pay\"]",
        &[
            "7:8: the rule `r` allows `pay`, which changes something (write): to be allowed is not enough; name it in `policy.approve`: `approve = [\"pay\"]`; for what nobody is to be asked about, write a grant",
        ],
    ),
    (
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\n[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"think\"]\n[[policy.rules]]\nname = \"levels.read\"\nthen = \"deny\"\ntools = [\"think\"]",
        &[
            "10:8: there is another rule `r`; choose another name",
            "14:8: the rule `levels.read`: `policy.levels` makes a rule of this name; choose another name",
        ],
    ),
    (
        "[[policy.grants]]\nname = \"g\"\ntool = \"pya\"\nuntil = 2027-06-30\nat_most = [[\"/amount_cents\", 5], [\"/user_id\"]]",
        &[
            "8:9: `policy.grants[0].until` cannot be `2027-06-30`: a moment has a date, a time and a zone; write 2027-06-30T00:00:00Z",
            "9:34: `policy.grants[0].at_most[1]` is a list of a text and a whole number from 0, not one of 1; write [\"…\", 8]",
        ],
    ),
    (
        "[[policy.grants]]\nname = \"g\"\ntool = \"pya\"\nuntil = 2027-06-30T00:00:00Z\nat_most = [[\"/amount_cents\", 5]]",
        &[
            "5:1: the grant `g`: it signs without end: say `per_thread`, `per_day` or `sum_per_day`",
            "7:8: the grant `g`: this agent has no tool `pya`; did you mean `pay`?",
        ],
    ),
    (
        "[[policy.grants]]\nname = \"g\"\ntool = \"pay\"\nuntil = 0\nat_most = [[\"/user\", 5]]\nsum_per_day = [\"/amount\", 5]",
        &[
            "9:12: the grant `g`: `/user` points to an argument that its tools do not take",
            "10:15: the grant `g`: `/amount` points to an argument that its tools do not take",
        ],
    ),
    (
        "[policy.targets]\nuser = { number = \"4Z\" }\nissue = \"{{isue}}\"\nodd = [1]",
        &[
            "6:19: `policy.targets.user.number` is no number; write one as JSON does, such as \"0.5\"",
            "7:9: a target uses `{{isue}}`, and `variables` has no `isue`; there is none",
            "8:7: `policy.targets.odd` is a text, a whole number, true or false or a table, not a list; write \"…\"",
        ],
    ),
    (
        "[policy.flow]\nuntrusted = [\"web_serch\"]\nbound = [{ tools = [\"pay\"], pointer = \"/usr_id\", target = \"user\" }, 5]",
        &[
            "6:13: the flow rules: this agent has no tool `web_serch`; did you mean `web_search`?",
            "7:39: the flow rules: `/usr_id` points to an argument that its tools do not take; did you mean `/user_id`?",
            "7:69: `policy.flow.bound[1]` is a table, not a whole number; write { tools = [\"a_name\"] }",
        ],
    ),
];

#[test]
fn each_mistake_in_a_rule_says_where_what_and_what_instead() {
    let wrong: Vec<_> = MISTAKES
        .iter()
        .map(|(lines, expected)| (lines, mistakes(&desk(lines)), expected))
        .filter(|(_, told, expected)| told != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_faulty_rule_costs_no_other_part_of_the_file() {
    let text = desk(
        "[policy]\nallow = [\"thnik\"]\n[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [7]\n[[policy.rules]]\nname = \"s\"\nthen = \"deny\"\ntools = [\"pya\"]\n[agents.helper]\nprompt = \"x\"\nabout = \"y\"\ntools = { builtin = [\"think\"] }\n[[agents.helper.policy.rules]]\nname = \"t\"\nthen = \"deny\"\ntools = [\"thnk\"]\n",
    );
    assert_eq!(
        mistakes(&text),
        [
            "6:10: `policy.allow` names `thnik`, and this agent has no such tool; did you mean `think`?",
            "10:10: `policy.rules[0].tools[0]` is a text, not a whole number; write \"a_name\"",
            "14:9: the rule `s`: this agent has no tool `pya`; did you mean `pay`?",
            "15:9: no agent calls `helper`; name it in the `tools.agents` of another: `agents = [\"helper\"]`",
            "22:9: the rule `t`: this agent has no tool `thnk`; did you mean `think`?",
        ]
    );
}

#[test]
fn whoever_is_not_asked_because_of_a_grant_is_told_so() {
    let waits = |when: &str| {
        format!(
            "3:2: a person has to approve `pay` {when}: the run waits until somebody does (`paraph approvals list`)"
        )
    };
    let over = "5:1: the grant `small` signs nothing any more: its `until` is past".to_owned();
    for (until, expected) in [
        (
            "2099-06-30T00:00:00Z",
            vec![waits("unless a grant signs it")],
        ),
        ("2020-01-01T00:00:00Z", vec![waits("each time"), over]),
    ] {
        let text = desk(&format!(
            "[[policy.grants]]\nname = \"small\"\ntool = \"pay\"\nuntil = {until}\nat_most = [[\"/amount_cents\", 500]]\nper_day = 1\n",
        ));
        let remarks = read(&text).unwrap().remarks;
        let remarks: Vec<_> = remarks.iter().map(ToString::to_string).collect();
        assert_eq!(remarks, expected);
    }
}

/// The policies of a file without mistakes.
fn policies(text: &str) -> Vec<DeclaredPolicy> {
    supplied(|supply| read_policies(text, supply)).unwrap()
}

#[test]
fn policies_can_be_asked_of_a_file_whose_examples_fail() {
    let text = desk(
        "[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nexamples.not_matching = [{}]\n",
    );
    assert_eq!(
        mistakes(&text),
        [
            "9:26: the rule `r`: example 1 of `not_matching` is spoken about, and is not to be; change the example, or what the rule says"
        ]
    );
    let found = policies(&text);
    let [only] = found.as_slice() else {
        panic!("{found:?}")
    };
    let tried = only.policy(&only.tools).try_examples(&only.tools);
    let faults: Vec<_> = tried.iter().map(|one| one.fault.as_deref()).collect();
    assert_eq!(faults, [Some("is spoken about, and is not to be")]);
    let wrong = supplied(|supply| read_policies(&desk("zebra = 1"), supply)).unwrap_err();
    assert_eq!(wrong.len(), 1);
}

#[test]
fn what_allows_takes_a_tool_out_of_its_level_and_what_narrows_does_not() {
    let rule = |then: &str| {
        format!(
            "[[policy.rules]]\nname = \"r\"\nthen = \"{then}\"\ntools = [\"web_search\"]\nwhen = [{{ pointer = \"/query\", glob = \"a*\" }}]\n"
        )
    };
    let table = [
        ("allow", "{\"query\":\"ab\"}", "it is allowed by `r`"),
        (
            "allow",
            "{\"query\":\"b\"}",
            "it is denied: no rule allows it",
        ),
        (
            "ask",
            "{\"query\":\"ab\"}",
            "a person has to approve it, as `r` says",
        ),
        ("ask", "{\"query\":\"b\"}", "it is allowed by `levels.read`"),
        ("deny", "{\"query\":\"ab\"}", "it is denied by `r`"),
        (
            "deny",
            "{\"query\":\"b\"}",
            "it is allowed by `levels.read`",
        ),
    ];
    for (then, args, expected) in table {
        let found = policies(&desk(&rule(then)));
        let policy = found[0].policy(&found[0].tools);
        assert_eq!(policy.check(&found[0].tools), [], "{then}");
        let engine = PolicyEngine::new(policy, &found[0].tools);
        let args = paraph_gateway::Json::read(args, Default::default()).unwrap();
        let decision = engine.decide(&paraph_gateway::Request {
            tenant: "local",
            agent: "clerk",
            user: "local",
            thread: "t",
            tool: "web_search",
            args: &args,
            tainted: &[],
            targets: &Default::default(),
            now_ms: 0,
        });
        assert_eq!(decision.to_string(), expected, "{then} {args}");
    }
}

#[test]
fn what_is_meant_for_tools_that_are_not_there_is_left_out() {
    let text = desk(
        "[mcp.files]\ncommand = \"a\"\nlevels = { read = \"read\" }\n[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"files__*\", \"pay\"]\n[[policy.rules]]\nname = \"s\"\nthen = \"deny\"\ntools = [\"pay\"]\norigin = [\"files__read\"]\n[[policy.rules]]\nname = \"t\"\nthen = \"ask\"\ntools = [\"files__write\"]\n[[policy.grants]]\nname = \"g\"\ntool = \"files__write\"\nuntil = 2027-06-30T00:00:00Z\nper_day = 1\nat_most = [[\"/n\", 1]]\n[policy.flow]\nuntrusted = [\"files__read\"]\nbound = [{ tools = [\"files__write\"], pointer = \"/to\", target = \"to\" }]\n",
    );
    assert_eq!(mistakes(&text), Vec::<String>::new());
    let found = policies(&text);
    assert_eq!(keys(&json!(found[0].servers)), ["files".to_owned()].into());
    let levels = ["files__read", "other__read", "think"].map(|name| found[0].tool(name));
    let levels = levels.map(|tool| tool.map(|tool| tool.level));
    assert_eq!(levels, [Some(Level::Read), None, Some(Level::Read)]);
    let without = found[0].policy(&found[0].tools);
    let names: Vec<_> = without
        .rules
        .iter()
        .map(|rule| rule.name.as_str())
        .collect();
    assert_eq!(names, ["r", "levels.read", "levels.write"]);
    assert_eq!(without.rules[0].tools, ["pay"]);
    assert_eq!((without.grants.len(), without.flow), (0, Flow::default()));
    let served = ["read", "write"].map(|name| ToolSpec {
        name: format!("files__{name}"),
        level: Level::Write,
        ..found[0].tools[0].clone()
    });
    let tools: Vec<_> = found[0].tools.iter().cloned().chain(served).collect();
    let with = found[0].policy(&tools);
    let names: Vec<_> = with.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["r", "s", "t", "levels.read", "levels.write"]);
    assert_eq!(with.check(&tools), []);
    assert_eq!((with.grants.len(), with.flow.bound.len()), (1, 1));
}

fn written_as(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// The keys of a JSON object.
fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The keys that a part of the schema has properties for.
fn described(schema: &Value) -> BTreeSet<String> {
    keys(&schema["properties"])
}

#[test]
fn the_keys_of_rules_and_grants_are_those_of_the_gateways_types() {
    let schema = agent_schema();
    let policy = &schema["properties"]["policy"]["properties"];
    let rule = &policy["rules"]["items"];
    let own = Rule {
        when: vec![Condition::new("/a", Operator::Present)],
        hours: Some(Hours { from: 1, to: 2 }),
        tenants: vec!["t".into()],
        ..Rule::new("r", Then::Ask(Ask::default()), ["pay"])
    };
    assert_eq!(described(rule), keys(&written_as(&own)));
    let properties = &rule["properties"];
    assert_eq!(
        described(&properties["hours"]),
        keys(&written_as(&own)["hours"])
    );
    let asked = &properties["then"]["anyOf"][1];
    assert_eq!(described(asked), keys(&written_as(&own)["then"]));
    for ask in [&asked["properties"]["ask"], &policy["ask"]] {
        assert_eq!(described(ask), keys(&written_as(&Ask::default())));
    }
    let examples = &properties["examples"];
    assert_eq!(described(examples), keys(&written_as(&Examples::default())));
    for list in ["matching", "not_matching"] {
        let example = &examples["properties"][list]["items"];
        let own = Example {
            tenant: "t".into(),
            ..Example::default()
        };
        assert_eq!(described(example), keys(&written_as(&own)));
    }
    let grant = &policy["grants"]["items"];
    let own = Grant {
        tenants: vec!["t".into()],
        ..Grant::new("g", "pay", 0)
    };
    assert_eq!(described(grant), keys(&written_as(&own)));
    let flow = Flow {
        bound: vec![Binding {
            tools: Vec::new(),
            pointer: String::new(),
            target: String::new(),
        }],
        ..Flow::default()
    };
    assert_eq!(described(&policy["flow"]), keys(&written_as(&flow)));
    let binding = &policy["flow"]["properties"]["bound"]["items"];
    assert_eq!(described(binding), keys(&written_as(&flow)["bound"][0]));
    let (word, number) = (|| "a".to_owned(), || 5.into());
    let scalar = || Scalar::from("a");
    let operators = [
        Operator::Equals(scalar()),
        Operator::NotEquals(scalar()),
        Operator::OneOf(vec![scalar()]),
        Operator::NoneOf(vec![scalar()]),
        Operator::Glob(word()),
        Operator::NotGlob(word()),
        Operator::AtMost(number()),
        Operator::AtLeast(number()),
        Operator::Below(number()),
        Operator::Above(number()),
        Operator::LengthAtMost(1),
        Operator::LengthAtLeast(1),
        Operator::Present,
        Operator::Absent,
    ];
    let written = operators.map(|is| keys(&written_as(&Condition::new("/a", is))));
    let written: BTreeSet<_> = written.into_iter().flatten().collect();
    for conditions in [&properties["when"], &grant["properties"]["when"]] {
        assert_eq!(described(&conditions["items"]), written);
    }
}

#[test]
fn the_schema_and_the_reader_take_and_refuse_the_same_rules() {
    let schema = jsonschema::validator_for(&agent_schema()).unwrap();
    // What TOML writes as a date is a text in JSON.
    let fine = ALL.replace("at = 2026-11-30T23:15:00Z", "at = \"2026-11-30T23:15:00Z\"");
    let text = desk(&fine);
    assert_eq!(mistakes(&text), Vec::<String>::new());
    assert!(schema.is_valid(&as_json(&text)));
    let faulty = [
        ("then = \"deny\"", "then = \"forbid\""),
        ("tools = [\"pay\"]", "tools = [\"p y\"]"),
        ("quorum = 2", "quorum = 0"),
        ("from = \"22:00\"", "from = \"24:30\""),
        ("above = 50000", "above = 0.5"),
        ("above = 50000", "above = \"5O\""),
        ("above = 50000", "above = 5, below = 9"),
        ("above = 50000", ""),
        ("number = \"1e30\"", "number = \"1e\""),
        ("at = \"2026-11-30T23:15:00Z\"", "at = \"2026-11-30\""),
        ("[\"/amount_cents\", 500]", "[\"/amount_cents\"]"),
        ("[\"/amount_cents\", 10000]", "[10000, \"/amount_cents\"]"),
        ("until = \"2027-06-30T00:00:00Z\"", "until = -1"),
        ("per_day = 10", "per_day = \"10\""),
        ("target = \"user\"", "target = \"\""),
        ("name = \"small\"", "name = \"sm/all\""),
    ];
    for (from, to) in faulty {
        assert!(fine.contains(from), "{from}");
        let text = desk(&fine.replacen(from, to, 1));
        assert!(!mistakes(&text).is_empty(), "{to}");
        assert!(!schema.is_valid(&as_json(&text)), "{to}");
    }
}

/// What looks like a secret is found after the rules were read: it must not move the places of those behind it.
#[test]
fn a_mistake_found_later_moves_no_other() {
    let text = desk(
        "[policy]\napprove = [\"pay\"]\n[[policy.rules]]\nname = \"r\"\nthen = \"deny\"\ntools = [\"pay\"]\nbecause = \"sk-proj-0123456789abcdef\"\n[[policy.rules]]\nname = \"s\"\nthen = \"deny\"\ntools = [\"pya\"]\n",
    );
    assert_eq!(
        mistakes(&text),
        [
            "11:11: `policy.rules[0].because` holds what looks like a key or a password; put it into the environment or into a file, and write { env = \"NAME\" }: NAME, or NAME_FILE with the file's path",
            "15:9: the rule `s`: this agent has no tool `pya`; did you mean `pay`?",
        ]
    );
}
