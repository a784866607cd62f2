//! The keys of tools: by name, by HTTP, from MCP servers, and other agents.

use super::rules::LEVELS;
use super::{Form, Kind, NAMES, PATH, SETTINGS, TOOLS, Table, key, needed, text};

pub(super) static TOOLS_TABLE: Table = Table {
    keys: &[
        key(
            "builtin",
            TOOLS,
            "Tools that the program brings, such as web_search, fetch_page, get_weather and think.",
        ),
        key(
            "http",
            Kind::List {
                most: 64,
                of: &Kind::Table(&HTTP),
            },
            "Tools that are one HTTP request each.",
        ),
        key(
            "mcp",
            NAMES,
            "The MCP servers whose tools it has. All of the file for the main agent if left out.",
        ),
        key("agents", NAMES, "The agents of this file that it may call."),
    ],
    one_of: &[],
};

static HTTP: Table = Table {
    keys: &[
        needed("name", text(128, Form::Tool), "The tool's name."),
        needed(
            "description",
            text(4_000, Form::Filled),
            "What it does and when to use it, for the model.",
        ),
        key(
            "method",
            Kind::Word(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
            "The method; GET if left out.",
        ),
        needed(
            "url",
            text(4_000, Form::Filled),
            "The address, with arguments in braces: `https://shop.example.com/orders/{number}`.",
        ),
        key(
            "plain_http",
            Kind::Flag,
            "Whether the address may be plain `http` beyond this machine.",
        ),
        key(
            "headers",
            SETTINGS,
            "Headers: texts, or secrets as `{ env = \"NAME\", prefix = \"Bearer \" }`.",
        ),
        key(
            "query",
            SETTINGS,
            "More parameters of the query: texts with arguments in braces, or secrets.",
        ),
        key(
            "body",
            Kind::Json,
            "The JSON body; a text that is nothing but an argument becomes its value.",
        ),
        key(
            "arguments",
            Kind::Map {
                most: 64,
                names: Form::Variable,
                of: &Kind::Schema,
            },
            "The arguments, each by the JSON Schema of its value; `optional = true` for those that may be left out.",
        ),
        key(
            "format",
            Kind::Word(&["json", "text"]),
            "What the answer is; `json` if left out.",
        ),
        key(
            "result",
            text(1_000, Form::Filled),
            "Which part of a JSON answer the model reads, as JSONPath: `$.items[*].title`.",
        ),
        key(
            "level",
            Kind::Word(&LEVELS),
            "What the call does to the world. GET reads; a POST that only reads has to say so.",
        ),
        key(
            "subject",
            text(500, Form::Filled),
            "What a call that changes something is about, `order {number}`: a refusal closes all calls about the same.",
        ),
        key(
            "idempotency_header",
            text(128, Form::Filled),
            "The header that carries the key of a call which changes something; `Idempotency-Key` if left out.",
        ),
        key(
            "recognises_key",
            Kind::Flag,
            "Whether the server does what has the same key only once: a call whose answer nobody saw is then sent again.",
        ),
        key(
            "nothing_happened",
            Kind::List {
                most: 64,
                of: &Kind::Whole {
                    least: 400,
                    most: 499,
                },
            },
            "The statuses by which the server says that it did nothing; after any other failure nobody knows.",
        ),
        key(
            "lookup_url",
            text(4_000, Form::Filled),
            "Where a call is looked up whose answer nobody saw: `https://shop.example.com/refunds/{idempotency_key}`.",
        ),
        key(
            "timeout_seconds",
            Kind::Number {
                least: 0.001,
                most: 600.0,
            },
            "How long a call may take; 20 if left out.",
        ),
        key(
            "max_output",
            Kind::Whole {
                least: 1,
                most: 16 << 20,
            },
            "How many bytes of the result the model reads.",
        ),
    ],
    one_of: &[],
};

pub(super) static MCP: Table = Table {
    keys: &[
        key(
            "command",
            text(1_000, Form::Filled),
            "The program to start; it is spoken with over its standard input and output. A path begins at this file's folder.",
        ),
        key(
            "args",
            Kind::List {
                most: 64,
                of: &Kind::Text {
                    most: 4_000,
                    form: Form::Any,
                },
            },
            "Its arguments.",
        ),
        key(
            "env",
            SETTINGS,
            "Its environment: texts, or secrets as `{ env = \"NAME\" }`. It gets nothing else, not even PATH.",
        ),
        key(
            "dir",
            PATH,
            "The folder it runs in; this file's folder if left out.",
        ),
        key(
            "url",
            text(4_000, Form::Filled),
            "The address of a server that speaks streamable HTTP.",
        ),
        key(
            "plain_http",
            Kind::Flag,
            "Whether the address may be plain `http` beyond this machine.",
        ),
        key(
            "headers",
            SETTINGS,
            "Headers for that server: texts, or secrets.",
        ),
        key(
            "protocol",
            Kind::Word(&["auto", "2025-11-25", "2026-07-28"]),
            "Which protocol is spoken; found out if left out.",
        ),
        key(
            "only",
            Kind::List {
                most: 256,
                of: &Kind::Text {
                    most: 128,
                    form: Form::Filled,
                },
            },
            "Which of its tools are taken, by its own names; all if left out.",
        ),
        key(
            "levels",
            Kind::Map {
                most: 256,
                names: Form::Filled,
                of: &Kind::Word(&LEVELS),
            },
            "What its tools do to the world, by its own names, `*` for all others; `write` if nothing is said.",
        ),
        key(
            "subjects",
            Kind::Map {
                most: 256,
                names: Form::Filled,
                of: &Kind::Text {
                    most: 500,
                    form: Form::Filled,
                },
            },
            "What a call of its tools is about, by its own names: `{ create_issue = \"repository {owner}/{repo}\" }`.",
        ),
        key(
            "errors_are_refusals",
            Kind::List {
                most: 256,
                of: &Kind::Text {
                    most: 128,
                    form: Form::Filled,
                },
            },
            "Which of its tools, by its own names or `*`, changed nothing when they report an error; of others nobody knows.",
        ),
        key(
            "trust_first_sight",
            Kind::Flag,
            "Whether a tool that nobody has reviewed may be used as it is when it is seen first. A later change disables it.",
        ),
        key(
            "pins",
            Kind::Map {
                most: 256,
                names: Form::Tool,
                of: &Kind::Table(&PIN),
            },
            "What was reviewed of its tools, by the names that agents know (`server__tool`); `paraph doctor FILE --online` prints them.",
        ),
        key(
            "start_seconds",
            Kind::Number {
                least: 0.001,
                most: 3_600.0,
            },
            "How long starting or connecting may take; 30 if left out.",
        ),
        key(
            "timeout_seconds",
            Kind::Number {
                least: 0.001,
                most: 3_600.0,
            },
            "How long a call may take; 60 if left out.",
        ),
        key(
            "max_output",
            Kind::Whole {
                least: 1,
                most: 16 << 20,
            },
            "How many bytes of a result the model reads.",
        ),
        key(
            "sources",
            Kind::Table(&SOURCES),
            "How it is searched and read, where it takes the place of the web: `paraph run research --sources FILE#SERVER`.",
        ),
    ],
    one_of: &["command", "url"],
};

static SOURCES: Table = Table {
    keys: &[
        key(
            "search",
            text(128, Form::Filled),
            "Its tool that searches, by its own name; `search` if left out.",
        ),
        key(
            "search_args",
            Kind::Object,
            "That tool's arguments: `{query}` stands for the words, `{max_results}` for how many results are wanted; `{ query = \"{query}\" }` if left out.",
        ),
        key(
            "page",
            text(128, Form::Filled),
            "Its tool that reads a document, by its own name; `fetch` if left out, and if there is no such tool, none.",
        ),
        key(
            "page_args",
            Kind::Object,
            "That tool's arguments: `{id}` stands for the document; `{ id = \"{id}\" }` if left out.",
        ),
        key(
            "id",
            text(128, Form::Filled),
            "The field of a result by which a document is read; `id`, `url`, `uri`, `path` or `link` if left out.",
        ),
        key(
            "lines",
            Kind::Flag,
            "Whether a search answers with an id on each line.",
        ),
        key(
            "nothing",
            text(400, Form::Filled),
            "The words by which it says that it found nothing.",
        ),
    ],
    one_of: &[],
};

static PIN: Table = Table {
    keys: &[
        needed(
            "description",
            text(64, Form::Hash),
            "The hash of what it says of itself.",
        ),
        needed(
            "schema",
            text(64, Form::Hash),
            "The hash of its arguments' schema.",
        ),
        needed(
            "hints",
            text(64, Form::Hash),
            "The hash of its other hints.",
        ),
    ],
    one_of: &[],
};
