//! The keys of the file itself, and of an agent that others in it call.

use super::limits::{BUDGET_TABLE, CONTEXT_TABLE, OUTPUT_TABLE};
use super::rules::POLICY_TABLE;
use super::tools::{MCP, TOOLS_TABLE};
use super::{Form, Key, Kind, LINE, MAX_PROMPT, PATH, SPEC, Table, key, needed, text};

/// The whole file.
pub(in crate::declared) static FILE: Table = Table {
    keys: &FILE_KEYS,
    one_of: &["prompt", "prompt_file"],
};

static FILE_KEYS: [Key; 22] = [
    needed(
        "name",
        text(64, Form::Name),
        "What the agent is called: in threads, runs and listings.",
    ),
    key("about", LINE, "What it does, in a sentence."),
    MODEL,
    FALLBACKS,
    TEMPERATURE,
    MAX_ANSWER_TOKENS,
    DIALECT,
    TOOL_MODE,
    PROMPT,
    PROMPT_FILE,
    TASK,
    LOOP,
    key(
        "variables",
        Kind::Map {
            most: 64,
            names: Form::Variable,
            of: &Kind::Text {
                most: MAX_PROMPT,
                form: Form::Any,
            },
        },
        "What stands for `{{name}}` in prompts, unless `--var name=value` says otherwise.",
    ),
    TOOL_TABLE,
    POLICY,
    BUDGET,
    CONTEXT,
    OUTPUT,
    key(
        "mcp",
        Kind::Map {
            most: 16,
            names: Form::Name,
            of: &Kind::Table(&MCP),
        },
        "MCP servers, by the name under which `tools.mcp` names them.",
    ),
    key(
        "agents",
        Kind::Map {
            most: 16,
            names: Form::Name,
            of: &Kind::Table(&AGENT),
        },
        "Agents that others of this file call as tools (`tools.agents`), by name.",
    ),
    key(
        "schema_version",
        Kind::Whole { least: 1, most: 1 },
        "The form of this file; 1 if left out.",
    ),
    key(
        "$schema",
        LINE,
        "Where editors find the JSON Schema of this file. Nothing reads it here.",
    ),
];

/// An agent that others call.
static AGENT: Table = Table {
    keys: &AGENT_KEYS,
    one_of: &["prompt", "prompt_file"],
};

static AGENT_KEYS: [Key; 15] = [
    needed(
        "about",
        LINE,
        "What it does and when to ask it: what the agents that call it read of it.",
    ),
    MODEL,
    FALLBACKS,
    TEMPERATURE,
    MAX_ANSWER_TOKENS,
    DIALECT,
    TOOL_MODE,
    PROMPT,
    PROMPT_FILE,
    LOOP,
    TOOL_TABLE,
    POLICY,
    BUDGET,
    CONTEXT,
    OUTPUT,
];

const MODEL: Key = key(
    "model",
    SPEC,
    "The model: provider:name, `rehearsal` (needs no key and no network), scripted:FILE, record:DIR,SPEC or \
     replay:DIR. Paths begin at this file's folder. `--model` and the configuration win over it.",
);
const FALLBACKS: Key = key(
    "fallbacks",
    Kind::List { most: 8, of: &SPEC },
    "Models that are asked, in this order, when the one before fails.",
);
const TEMPERATURE: Key = key(
    "temperature",
    Kind::Number {
        least: 0.0,
        most: 2.0,
    },
    "How much chance there is in answers; 0 if left out.",
);
const MAX_ANSWER_TOKENS: Key = key(
    "max_answer_tokens",
    Kind::Whole {
        least: 16,
        most: 1_000_000,
    },
    "The longest single answer, in tokens; the provider's own limit if left out.",
);
const DIALECT: Key = key(
    "dialect",
    Kind::Word(&["native", "strict"]),
    "`native`: the provider's tool calls, failures are read by the model. `strict`: one JSON action per decision, \
     and the first failed call ends the run. `native` if left out.",
);
const TOOL_MODE: Key = key(
    "tool_mode",
    Kind::Word(&["native", "schema"]),
    "`schema` lets a model without tool calls of its own make them, by JSON that a schema enforces. `native` if \
     left out.",
);
const PROMPT: Key = key(
    "prompt",
    text(MAX_PROMPT, Form::Filled),
    "The instructions. `{{name}}` is replaced by the variable of that name.",
);
const PROMPT_FILE: Key = key(
    "prompt_file",
    PATH,
    "A file with the instructions; the path begins at this file's folder.",
);
const TASK: Key = key(
    "task",
    text(64 * 1024, Form::Filled),
    "What the agent does when `paraph run` is given no task.",
);
const LOOP: Key = key(
    "loop",
    Kind::Word(&["exact", "soft", "cycle", "off"]),
    "Which repeated calls are a loop; `exact` if left out.",
);
const TOOL_TABLE: Key = key(
    "tools",
    Kind::Table(&TOOLS_TABLE),
    "What the agent can call.",
);
const POLICY: Key = key(
    "policy",
    Kind::Table(&POLICY_TABLE),
    "What it may call. Without this table: every tool that only reads; those of an MCP server only read if its `levels` say so.",
);
const BUDGET: Key = key("budget", Kind::Table(&BUDGET_TABLE), "What a run may use.");
const CONTEXT: Key = key(
    "context",
    Kind::Table(&CONTEXT_TABLE),
    "How much of a conversation the model is shown. A call and its results are never parted.",
);
const OUTPUT: Key = key(
    "output",
    Kind::Table(&OUTPUT_TABLE),
    "The form of the answer: JSON that is checked, and asked for again if it does not fit.",
);
