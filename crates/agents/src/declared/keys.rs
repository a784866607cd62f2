//! The keys of an agent file, in one table: what each is called, what may stand there, and what it is for.
//!
//! The reader (`shape`) and the JSON Schema (`schema`) are both made from it, so that they cannot differ. What a
//! table cannot say, because it concerns several keys or the program, `check` says.

mod agent;
mod limits;
mod rules;
mod tools;

pub(super) use agent::FILE;
pub(super) use rules::LEVELS;

use paraph_gateway::Decimal;

/// The largest file, in bytes.
pub(super) const MAX_FILE: usize = 256 * 1024;
/// The longest prompt, in bytes.
pub(super) const MAX_PROMPT: usize = 128 * 1024;
/// The largest JSON value in the file, and how deep it may be.
pub(super) const MAX_JSON_DEPTH: usize = 32;

/// One key of a table.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// A table: its keys, and those of which exactly one is needed.
pub(super) struct Table {
    pub(super) keys: &'static [Key],
    pub(super) one_of: &'static [&'static str],
}

/// What may stand behind a key.
pub(super) enum Kind {
    Text {
        most: usize,
        form: Form,
    },
    Word(&'static [&'static str]),
    Whole {
        least: u64,
        most: u64,
    },
    Number {
        least: f64,
        most: f64,
    },
    Flag,
    List {
        most: usize,
        of: &'static Kind,
    },
    Table(&'static Table),
    /// A table whose keys are names.
    Map {
        most: usize,
        names: Form,
        of: &'static Kind,
    },
    /// A text, or a secret by its name.
    Setting,
    /// A whole number of 64 bits, also below 0.
    Integer,
    /// A moment: a date with its time and zone, or milliseconds since 1970.
    Moment,
    /// One of several kinds, which are told apart by what stands there: a text, a list, a table.
    Either(&'static [Kind]),
    /// A list of exactly these.
    Tuple(&'static [Kind]),
    /// A table whose keys are nobody's business here.
    Object,
    /// Any JSON value.
    Json,
    /// A JSON Schema.
    Schema,
}

/// How a text has to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Not empty.
    Filled,
    /// The name of an agent, or of an MCP server.
    Name,
    /// The name of a tool.
    Tool,
    /// The name of a tool, with `*` for any text.
    Pattern,
    /// The name of a variable.
    Variable,
    /// The name of a rule or a grant.
    Rule,
    /// A time of the day.
    Clock,
    /// A number as JSON writes it.
    Decimal,
    /// A SHA-256 as hexadecimal digits.
    Hash,
    /// Anything.
    Any,
}

/// Whether a character may stand in a name.
type Letter = fn(char) -> bool;

impl Form {
    /// The characters that may stand first, those that may follow, and how many there may be.
    fn letters(self) -> Option<(Letter, Letter, usize)> {
        let tool = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let pattern = |c: char| c.is_ascii_alphanumeric() || "_.*-".contains(c);
        let rule = |c: char| c.is_ascii_alphanumeric() || "_ -.".contains(c);
        match self {
            Form::Name => Some((
                |c| c.is_ascii_lowercase(),
                |c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c),
                64,
            )),
            Form::Tool => Some((tool, tool, 128)),
            Form::Pattern => Some((pattern, pattern, 128)),
            Form::Variable => Some((
                |c| c.is_ascii_alphabetic() || c == '_',
                |c| c.is_ascii_alphanumeric() || c == '_',
                64,
            )),
            Form::Rule => Some((rule, rule, 64)),
            Form::Filled | Form::Any | Form::Clock | Form::Decimal | Form::Hash => None,
        }
    }

    /// Whether a text looks like this.
    pub(super) fn fits(self, text: &str) -> bool {
        let Some((first, rest, most)) = self.letters() else {
            return match self {
                Form::Filled => text.chars().any(|c| !c.is_whitespace()),
                Form::Clock => is_clock(text),
                Form::Decimal => Decimal::read(text).is_some(),
                Form::Hash => {
                    let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
                    text.len() == 64 && text.bytes().all(digit)
                }
                _ => true,
            };
        };
        let mut letters = text.chars();
        letters.next().is_some_and(first) && letters.all(rest) && text.len() <= most
    }

    /// The same as a pattern of JSON Schema.
    pub(super) fn pattern(self) -> Option<&'static str> {
        match self {
            Form::Filled => Some(r"\S"),
            Form::Name => Some("^[a-z][a-z0-9_-]{0,63}$"),
            Form::Tool => Some("^[A-Za-z0-9_.-]{1,128}$"),
            Form::Pattern => Some("^[A-Za-z0-9_.*-]{1,128}$"),
            Form::Variable => Some("^[A-Za-z_][A-Za-z0-9_]{0,63}$"),
            Form::Rule => Some("^[A-Za-z0-9_ .-]{1,64}$"),
            Form::Clock => Some("^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"),
            Form::Decimal => Some(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?0*[0-9]{1,18})?$"),
            Form::Hash => Some("^[0-9a-f]{64}$"),
            Form::Any => None,
        }
    }

    /// The same in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Form::Filled => "a text that is not empty",
            Form::Name => "a small letter, then at most 63 small letters, digits, `_` or `-`",
            Form::Tool => "1 to 128 letters, digits, `_`, `-` or `.`",
            Form::Pattern => "a tool's name, in which `*` stands for any text",
            Form::Variable => "a letter or `_`, then at most 63 letters, digits or `_`",
            Form::Rule => "1 to 64 letters, digits, spaces, `_`, `-` or `.`",
            Form::Clock => "a time of the day, `00:00` to `24:00`",
            Form::Decimal => "a number as a text, such as `0.5`",
            Form::Hash => {
                "64 digits of `0` to `9` and `a` to `f`, as `paraph doctor FILE --online` prints them"
            }
            Form::Any => "a text",
        }
    }
}

/// Whether a text is a time of the day.
fn is_clock(text: &str) -> bool {
    let number = |text: &str| match text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse::<u32>().ok(),
        false => None,
    };
    let Some((hours, minutes)) = text.split_once(':') else {
        return false;
    };
    match (number(hours), number(minutes)) {
        (Some(24), Some(0)) => true,
        (Some(hours), Some(minutes)) => hours < 24 && minutes < 60,
        _ => false,
    }
}

/// A moment as a pattern of JSON Schema.
pub(super) const MOMENT: &str =
    r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$";

const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        about,
        required: false,
        kind,
    }
}

const fn needed(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key {
        name,
        about,
        required: true,
        kind,
    }
}

const fn text(most: usize, form: Form) -> Kind {
    Kind::Text { most, form }
}

const LINE: Kind = text(1_000, Form::Filled);
const SPEC: Kind = text(500, Form::Filled);
const PATH: Kind = text(1_000, Form::Filled);
const NAMES: Kind = Kind::List {
    most: 64,
    of: &Kind::Text {
        most: 64,
        form: Form::Name,
    },
};
const TOOLS: Kind = Kind::List {
    most: 64,
    of: &Kind::Text {
        most: 128,
        form: Form::Tool,
    },
};
const PATTERNS: Kind = Kind::List {
    most: 256,
    of: &Kind::Text {
        most: 128,
        form: Form::Pattern,
    },
};
const SETTINGS: Kind = Kind::Map {
    most: 64,
    names: Form::Filled,
    of: &Kind::Setting,
};
/// The most that a budget can say: what a signed number of 64 bits holds.
const COUNT: Kind = Kind::Whole {
    least: 0,
    most: i64::MAX as u64,
};

/// A secret by its name.
pub(super) static SECRET: Table = Table {
    keys: &[
        needed(
            "env",
            text(64, Form::Variable),
            "The variable that holds it. `NAME_FILE` may hold the path of a file with it instead.",
        ),
        key(
            "prefix",
            text(100, Form::Any),
            "What stands before it, such as `Bearer `.",
        ),
    ],
    one_of: &[],
};
