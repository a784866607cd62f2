//! The keys of what an agent may call: lists of names, rules with their examples, grants, and flow rules.
//!
//! Below `rules`, `grants`, `flow` and `ask` they are those of the gateway's own types, which is tested.

use super::{COUNT, Form, Kind, LINE, PATTERNS, Table, key, needed, text};

/// The gateway's levels, as they are written.
pub(in crate::declared) const LEVELS: [&str; 4] = ["read", "write", "execute", "delete"];

/// The most conditions of a rule or a grant, and the most examples of one list.
const MOST: usize = 64;

pub(super) static POLICY_TABLE: Table = Table {
    keys: &[
        key(
            "allow",
            PATTERNS,
            "Tools that may run. What is not named anywhere is denied.",
        ),
        key(
            "deny",
            PATTERNS,
            "Tools that never run, whatever else allows them.",
        ),
        key(
            "approve",
            PATTERNS,
            "Tools that a person has to approve, each time: the run waits until somebody has decided.",
        ),
        key(
            "levels",
            Kind::Table(&LEVELS_TABLE),
            "What holds for tools that nothing else lets run, by what they do to the world.",
        ),
        key(
            "ask",
            Kind::Table(&ASK_TABLE),
            "How people are asked wherever a rule does not say it: by `approve`, by `levels`, and by `then = \"ask\"`.",
        ),
        key(
            "rules",
            Kind::List {
                most: 1_000,
                of: &Kind::Table(&RULE_TABLE),
            },
            "Rules that look further than at the name. A denial wins over a question, a question over an allowance.",
        ),
        key(
            "grants",
            Kind::List {
                most: 100,
                of: &Kind::Table(&GRANT_TABLE),
            },
            "Standing signatures: within their caps nobody is asked. They never override a denial.",
        ),
        key(
            "flow",
            Kind::Table(&FLOW_TABLE),
            "What holds after a run has read what strangers wrote.",
        ),
        key(
            "targets",
            Kind::Map {
                most: 64,
                names: Form::Filled,
                of: &TARGET,
            },
            "What its runs are about, by the names that `flow.bound` uses. `{{name}}` is replaced by the variable.",
        ),
    ],
    one_of: &[],
};

static LEVELS_TABLE: Table = Table {
    keys: &[
        key(
            "read",
            Kind::Word(&["allow", "approve", "deny"]),
            "Tools that only read. `deny` if there is an `allow` list, else `allow`.",
        ),
        key(
            "write",
            Kind::Word(&["approve", "deny"]),
            "Tools that change something; `approve` if left out.",
        ),
        key(
            "execute",
            Kind::Word(&["approve", "deny"]),
            "Tools that run code; `approve` if left out.",
        ),
        key(
            "delete",
            Kind::Word(&["approve", "deny"]),
            "Tools that destroy something; `approve` if left out.",
        ),
    ],
    one_of: &[],
};

static ASK_TABLE: Table = Table {
    keys: &[
        key(
            "expires",
            Kind::Whole {
                least: 1,
                most: 31_536_000,
            },
            "How many seconds the question stands; 3600 if left out.",
        ),
        key(
            "not_by_requester",
            Kind::Flag,
            "Whether whoever asked for the action may not approve it.",
        ),
        key(
            "quorum",
            Kind::Whole {
                least: 1,
                most: 100,
            },
            "How many different people have to approve it; 1 if left out.",
        ),
        key(
            "verified",
            Kind::Flag,
            "Whether only people count who have signed in. On the command line nobody has.",
        ),
    ],
    one_of: &[],
};

static RULE_TABLE: Table = Table {
    keys: &[
        needed(
            "name",
            text(64, Form::Rule),
            "What it is called in decisions and logs.",
        ),
        needed(
            "then",
            Kind::Either(&[
                Kind::Word(&["allow", "ask", "deny"]),
                Kind::Table(&THEN_TABLE),
            ]),
            "What it says of the calls it speaks about.",
        ),
        needed(
            "tools",
            PATTERNS,
            "The tools it is about; `\"*\"` is all of them.",
        ),
        key(
            "levels",
            Kind::List {
                most: 4,
                of: &Kind::Word(&LEVELS),
            },
            "What those tools do to the world; anything if left out.",
        ),
        key(
            "agents",
            PEOPLE,
            "The agents, with `*` for any text; all if left out.",
        ),
        key(
            "users",
            PEOPLE,
            "The users for whom the agent acts; all if left out.",
        ),
        key(
            "tenants",
            PEOPLE,
            "Whose data it is; anybody's if left out.",
        ),
        key(
            "origin",
            PATTERNS,
            "Untrusted tools (`flow.untrusted`) of which the run has to have read one; it does not matter if left out.",
        ),
        key(
            "hours",
            Kind::Table(&HOURS_TABLE),
            "The time of the day, in UTC; always if left out.",
        ),
        key(
            "when",
            CONDITIONS,
            "Conditions on the arguments, all of which have to hold.",
        ),
        key(
            "because",
            LINE,
            "Why there is the rule, for whoever meets it. The model may read it.",
        ),
        key(
            "examples",
            Kind::Table(&EXAMPLES_TABLE),
            "Calls that show what it means. They are tried whenever the file is read.",
        ),
    ],
    one_of: &[],
};

static THEN_TABLE: Table = Table {
    keys: &[needed(
        "ask",
        Kind::Table(&ASK_TABLE),
        "How a person is asked.",
    )],
    one_of: &[],
};

static HOURS_TABLE: Table = Table {
    keys: &[
        needed("from", text(5, Form::Clock), "The first minute."),
        needed(
            "to",
            text(5, Form::Clock),
            "The first minute after them. If it is earlier than `from`, they go over midnight.",
        ),
    ],
    one_of: &[],
};

static EXAMPLES_TABLE: Table = Table {
    keys: &[
        key("matching", EXAMPLES, "Calls that it speaks about."),
        key(
            "not_matching",
            EXAMPLES,
            "Calls that it does not speak about.",
        ),
    ],
    one_of: &[],
};

static EXAMPLE_TABLE: Table = Table {
    keys: &[
        key(
            "tool",
            text(128, Form::Tool),
            "The tool; if it is left out, the first one that the rule names.",
        ),
        key(
            "level",
            Kind::Word(&LEVELS),
            "What a tool does to the world that is not known here, such as one of an MCP server.",
        ),
        key(
            "args",
            Kind::Either(&[Kind::Object, text(64 * 1024, Form::Any)]),
            "Its arguments, as a table or as JSON text; none if left out.",
        ),
        key("agent", NAME, "The agent."),
        key("user", NAME, "The user."),
        key("tenant", NAME, "The tenant."),
        key(
            "origin",
            PATTERNS,
            "The untrusted tools that the run has read from.",
        ),
        key(
            "at",
            Kind::Moment,
            "The time. If it is left out, hours fit.",
        ),
    ],
    one_of: &[],
};

static CONDITION_TABLE: Table = Table {
    keys: &[
        needed(
            "pointer",
            POINTER,
            "Which argument is meant: a JSON pointer such as `/amount_cents`.",
        ),
        key("equals", SCALAR, "It is this value."),
        key(
            "not_equals",
            SCALAR,
            "It is another value of the same kind.",
        ),
        key("one_of", SCALARS, "It is one of these values."),
        key(
            "none_of",
            SCALARS,
            "It is none of these values, but of the kind of one of them.",
        ),
        key(
            "glob",
            GLOB,
            "It is a text that the whole pattern fits; `*` is any text.",
        ),
        key(
            "not_glob",
            GLOB,
            "It is a text that the pattern does not fit.",
        ),
        key("at_most", DECIMAL, "It is a number that is not larger."),
        key("at_least", DECIMAL, "It is a number that is not smaller."),
        key("below", DECIMAL, "It is a smaller number."),
        key("above", DECIMAL, "It is a larger number."),
        key(
            "length_at_most",
            COUNT,
            "It has so many characters, items or entries, or fewer.",
        ),
        key(
            "length_at_least",
            COUNT,
            "It has so many characters, items or entries, or more.",
        ),
        key(
            "present",
            Kind::Flag,
            "Whether there is a value, if only `null`.",
        ),
    ],
    one_of: &[
        "equals",
        "not_equals",
        "one_of",
        "none_of",
        "glob",
        "not_glob",
        "at_most",
        "at_least",
        "below",
        "above",
        "length_at_most",
        "length_at_least",
        "present",
    ],
};

static NUMBER_TABLE: Table = Table {
    keys: &[needed("number", DECIMAL, "The number.")],
    one_of: &[],
};

static TARGET_TABLE: Table = Table {
    keys: &[needed(
        "number",
        text(4_000, Form::Filled),
        "The number, as a text in which variables may stand.",
    )],
    one_of: &[],
};

static GRANT_TABLE: Table = Table {
    keys: &[
        needed(
            "name",
            text(64, Form::Rule),
            "What it is called in decisions, logs and counters.",
        ),
        needed(
            "tool",
            text(128, Form::Tool),
            "The one tool whose calls it signs.",
        ),
        needed("until", Kind::Moment, "When it ends."),
        key(
            "at_most",
            Kind::List {
                most: MOST,
                of: &CAP,
            },
            "Arguments that are numbers, and how large each may be.",
        ),
        key(
            "when",
            CONDITIONS,
            "Conditions on the arguments, all of which have to hold.",
        ),
        key("agents", PEOPLE, "The agents; all if left out."),
        key(
            "users",
            PEOPLE,
            "The users for whom the agent acts; all if left out.",
        ),
        key(
            "tenants",
            PEOPLE,
            "Whose data it is; anybody's if left out.",
        ),
        key(
            "per_thread",
            COUNT,
            "How many calls it signs on one thread.",
        ),
        key(
            "per_day",
            COUNT,
            "How many calls it signs on one day, in UTC.",
        ),
        key(
            "sum_per_day",
            CAP,
            "An argument that is a whole number, and how much those of one day, in UTC, may add up to.",
        ),
        key(
            "after_untrusted",
            Kind::Flag,
            "Whether it signs also in a run that has read what strangers wrote.",
        ),
    ],
    one_of: &[],
};

static FLOW_TABLE: Table = Table {
    keys: &[
        key(
            "untrusted",
            PATTERNS,
            "Tools whose output strangers may have written.",
        ),
        key(
            "bound",
            Kind::List {
                most: 256,
                of: &Kind::Table(&BINDING_TABLE),
            },
            "The targets of effects. An effect without one cannot happen in a run that has read untrusted text.",
        ),
    ],
    one_of: &[],
};

static BINDING_TABLE: Table = Table {
    keys: &[
        needed("tools", PATTERNS, "The tools whose target it is."),
        needed(
            "pointer",
            POINTER,
            "The argument: a JSON pointer such as `/user_id`.",
        ),
        needed("target", NAME, "The name under which the target is bound."),
    ],
    one_of: &[],
};

const NAME: Kind = text(200, Form::Filled);
const PEOPLE: Kind = Kind::List {
    most: 256,
    of: &NAME,
};
const POINTER: Kind = text(1_024, Form::Any);
const GLOB: Kind = text(1_024, Form::Filled);
const DECIMAL: Kind = Kind::Either(&[text(4_300, Form::Decimal), Kind::Integer]);
const SCALAR: Kind = Kind::Either(&[
    text(64 * 1024, Form::Any),
    Kind::Integer,
    Kind::Flag,
    Kind::Table(&NUMBER_TABLE),
]);
const TARGET: Kind = Kind::Either(&[
    text(4_000, Form::Any),
    Kind::Integer,
    Kind::Flag,
    Kind::Table(&TARGET_TABLE),
]);
const SCALARS: Kind = Kind::List {
    most: 1_000,
    of: &SCALAR,
};
const CAP: Kind = Kind::Tuple(&[POINTER, COUNT]);
const CONDITIONS: Kind = Kind::List {
    most: MOST,
    of: &Kind::Table(&CONDITION_TABLE),
};
const EXAMPLES: Kind = Kind::List {
    most: MOST,
    of: &Kind::Table(&EXAMPLE_TABLE),
};
