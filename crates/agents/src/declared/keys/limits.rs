//! The keys of what an agent may use, of what it is shown, and of what it answers.

use super::{COUNT, Form, Kind, PATH, Table, key};

pub(super) static BUDGET_TABLE: Table = Table {
    keys: &[
        key(
            "max_steps",
            Kind::Whole {
                least: 1,
                most: 1_000_000,
            },
            "Decisions of the model; 8 if left out.",
        ),
        key(
            "max_tool_calls",
            COUNT,
            "Tool calls, denied ones too; 6 if left out.",
        ),
        key(
            "max_seconds",
            Kind::Whole {
                least: 1,
                most: 31_536_000,
            },
            "Seconds; 20 if left out.",
        ),
        key(
            "max_tokens",
            COUNT,
            "Tokens, in and out. Not limited if left out.",
        ),
        key(
            "max_cost",
            Kind::Number {
                least: 0.0,
                most: 1e9,
            },
            "US dollars; needs the model's price in paraph.toml. Not limited if left out.",
        ),
        key(
            "max_children",
            Kind::Whole {
                least: 0,
                most: 10_000,
            },
            "How often agents may be called, and by those they call; 4 if it has `tools.agents`.",
        ),
        key(
            "synthesis_reserve",
            Kind::Whole {
                least: 200,
                most: 10_000_000,
            },
            "Tokens, in and out, kept back for a last answer without tools when steps, calls, tokens or money are used up.",
        ),
        key(
            "per_tool",
            Kind::Map {
                most: 256,
                names: Form::Tool,
                of: &COUNT,
            },
            "Calls of single tools, within max_tool_calls.",
        ),
        key(
            "per_user_day",
            Kind::Table(&DAY_TABLE),
            "What the run's user may use on one day (in UTC) in all runs together.",
        ),
    ],
    one_of: &[],
};

static DAY_TABLE: Table = Table {
    keys: &[
        key(
            "max_tool_calls",
            COUNT,
            "Tool calls, denied ones too. Not limited if left out.",
        ),
        key(
            "max_tokens",
            COUNT,
            "Tokens, in and out. Not limited if left out.",
        ),
        key(
            "max_cost",
            Kind::Number {
                least: 0.0,
                most: 1e9,
            },
            "US dollars; needs the model's price in paraph.toml. Not limited if left out.",
        ),
    ],
    one_of: &[],
};

pub(super) static CONTEXT_TABLE: Table = Table {
    keys: &[
        key(
            "max_messages",
            Kind::Whole {
                least: 2,
                most: 100_000,
            },
            "The most messages that are shown, the instructions apart.",
        ),
        key(
            "max_tokens",
            Kind::Whole {
                least: 200,
                most: 10_000_000,
            },
            "The most tokens of a request, as we estimate them: instructions and tools count too, and are always sent.",
        ),
        key(
            "when_full",
            Kind::Word(&["trim", "summarise"]),
            "What becomes of older messages: left out, or summarised by the model. `trim` if left out.",
        ),
    ],
    one_of: &[],
};

pub(super) static OUTPUT_TABLE: Table = Table {
    keys: &[
        key("schema", Kind::Schema, "The JSON Schema of the answer."),
        key(
            "schema_file",
            PATH,
            "A JSON file with it; the path begins at this file's folder.",
        ),
        key(
            "repairs",
            Kind::Whole { least: 0, most: 10 },
            "How often the model is told what is wrong and asked again; 2 if left out.",
        ),
    ],
    one_of: &["schema", "schema_file"],
};
