//! A condition on one argument of a call: a pointer, and what is asked of the value there.
//!
//! Rules and grants hold them. What a condition says is one of three things, and whose condition it is
//! decides about the third: what cannot be told is never a reason to allow, and always one to ask or deny.

use super::decimal::{Decimal, Exact};
use super::fault::RuleFault;
use super::fits;
use super::pointer::Pointer;
use super::scalar::{Scalar, Value};
use crate::json::{Shape, View};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// The longest pattern for a text, in bytes, and the most `*` in it.
const MAX_PATTERN: (usize, usize) = (1024, 16);

/// What is asked of one argument.
///
/// In configuration a condition is a pointer and exactly one operator:
///
/// ```
/// use paraph_gateway::{Condition, Operator};
/// let read: Condition = serde_json::from_str(r#"{"pointer":"/amount_cents","at_most":500}"#)?;
/// assert_eq!(read, Condition::new("/amount_cents", Operator::AtMost(500.into())));
/// assert_eq!(read.to_string(), "`/amount_cents` is at most 500");
/// let two = serde_json::from_str::<Condition>(r#"{"pointer":"/n","at_most":5,"at_least":1}"#);
/// assert_eq!(two.unwrap_err().to_string(), "a condition has exactly one operator, and `/n` has 2");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Condition {
    /// A JSON pointer into the arguments: `/amount_cents`, `/labels/0`, or the empty text for all of them.
    pub pointer: String,
    /// What is asked of the value there.
    pub is: Operator,
}

/// What a condition asks of a value. Numbers are compared exactly, whatever their size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// It is this value.
    Equals(Scalar),
    /// It is another value of the same kind.
    NotEquals(Scalar),
    /// It is one of these values.
    OneOf(Vec<Scalar>),
    /// It is none of these values, but of the kind of one of them.
    NoneOf(Vec<Scalar>),
    /// It is a text that the whole pattern fits; `*` stands for any text, also for none.
    Glob(String),
    /// It is a text that the pattern does not fit.
    NotGlob(String),
    /// It is a number that is not larger.
    AtMost(Decimal),
    /// It is a number that is not smaller.
    AtLeast(Decimal),
    /// It is a smaller number.
    Below(Decimal),
    /// It is a larger number.
    Above(Decimal),
    /// It has so many characters, items or entries, or fewer.
    LengthAtMost(u64),
    /// It has so many characters, items or entries, or more.
    LengthAtLeast(u64),
    /// There is a value, if only `null`.
    Present,
    /// There is none.
    Absent,
}

/// A condition as it stands in configuration.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    equals: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_equals: Option<Scalar>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_of: Option<Vec<Scalar>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    none_of: Option<Vec<Scalar>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_glob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    above: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length_at_most: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length_at_least: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<bool>,
}

impl TryFrom<Written> for Condition {
    type Error = String;

    fn try_from(written: Written) -> Result<Condition, String> {
        let pointer = written
            .pointer
            .ok_or("a condition has no `pointer`: it says which argument is meant")?;
        let presence = |yes| {
            if yes {
                Operator::Present
            } else {
                Operator::Absent
            }
        };
        let found = [
            written.equals.map(Operator::Equals),
            written.not_equals.map(Operator::NotEquals),
            written.one_of.map(Operator::OneOf),
            written.none_of.map(Operator::NoneOf),
            written.glob.map(Operator::Glob),
            written.not_glob.map(Operator::NotGlob),
            written.at_most.map(Operator::AtMost),
            written.at_least.map(Operator::AtLeast),
            written.below.map(Operator::Below),
            written.above.map(Operator::Above),
            written.length_at_most.map(Operator::LengthAtMost),
            written.length_at_least.map(Operator::LengthAtLeast),
            written.present.map(presence),
        ];
        let mut found: Vec<_> = found.into_iter().flatten().collect();
        match (found.len(), found.pop()) {
            (1, Some(is)) => Ok(Condition { pointer, is }),
            (count, _) => Err(format!(
                "a condition has exactly one operator, and `{pointer}` has {count}"
            )),
        }
    }
}

impl From<Condition> for Written {
    fn from(condition: Condition) -> Written {
        let mut written = Written {
            pointer: Some(condition.pointer),
            ..Written::default()
        };
        match condition.is {
            Operator::Equals(value) => written.equals = Some(value),
            Operator::NotEquals(value) => written.not_equals = Some(value),
            Operator::OneOf(values) => written.one_of = Some(values),
            Operator::NoneOf(values) => written.none_of = Some(values),
            Operator::Glob(pattern) => written.glob = Some(pattern),
            Operator::NotGlob(pattern) => written.not_glob = Some(pattern),
            Operator::AtMost(bound) => written.at_most = Some(bound),
            Operator::AtLeast(bound) => written.at_least = Some(bound),
            Operator::Below(bound) => written.below = Some(bound),
            Operator::Above(bound) => written.above = Some(bound),
            Operator::LengthAtMost(bound) => written.length_at_most = Some(bound),
            Operator::LengthAtLeast(bound) => written.length_at_least = Some(bound),
            Operator::Present => written.present = Some(true),
            Operator::Absent => written.present = Some(false),
        }
        written
    }
}

impl Condition {
    /// A condition on the value that the pointer finds.
    pub fn new(pointer: impl Into<String>, is: Operator) -> Condition {
        Condition {
            pointer: pointer.into(),
            is,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.is_empty() {
            true => write!(f, "the whole of the arguments {}", self.is),
            false => write!(f, "`{}` {}", self.pointer, self.is),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[Scalar]| {
            let texts: Vec<_> = values.iter().map(ToString::to_string).collect();
            texts.join(", ")
        };
        match self {
            Operator::Equals(value) => write!(f, "is {value}"),
            Operator::NotEquals(value) => write!(f, "is not {value}"),
            Operator::OneOf(values) => write!(f, "is one of {}", list(values)),
            Operator::NoneOf(values) => write!(f, "is none of {}", list(values)),
            Operator::Glob(pattern) => write!(f, "fits {pattern:?}"),
            Operator::NotGlob(pattern) => write!(f, "does not fit {pattern:?}"),
            Operator::AtMost(bound) => write!(f, "is at most {bound}"),
            Operator::AtLeast(bound) => write!(f, "is at least {bound}"),
            Operator::Below(bound) => write!(f, "is below {bound}"),
            Operator::Above(bound) => write!(f, "is above {bound}"),
            Operator::LengthAtMost(bound) => write!(f, "has a length of at most {bound}"),
            Operator::LengthAtLeast(bound) => write!(f, "has a length of at least {bound}"),
            Operator::Present => f.write_str("is there"),
            Operator::Absent => f.write_str("is not there"),
        }
    }
}

/// What a condition says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    Yes,
    No,
    /// There is no such argument, or it is of another kind than the condition is about.
    Undefined,
}

impl Truth {
    fn of(yes: bool) -> Truth {
        if yes { Truth::Yes } else { Truth::No }
    }

    fn negated(self) -> Truth {
        match self {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Undefined => Truth::Undefined,
        }
    }

    /// What counts: for whoever widens, the undefined is no; for whoever narrows, it is yes.
    pub(super) fn holds(self, narrows: bool) -> bool {
        match self {
            Truth::Yes => true,
            Truth::No => false,
            Truth::Undefined => narrows,
        }
    }
}

/// A condition, read once.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pointer: Pointer,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Among(Vec<Value>),
    Glob(String),
    /// The order of the argument and the bound that says yes, and whether being equal does too.
    Ordered(Exact, Ordering, bool),
    Length(u64, Ordering),
    Present,
    Not(Box<Test>),
}

impl Compiled {
    /// Reads a condition, or says why it cannot be one.
    pub(super) fn of(condition: &Condition) -> Result<Compiled, RuleFault> {
        let pointer = Pointer::read(&condition.pointer)
            .ok_or_else(|| RuleFault::BadPointer(condition.pointer.clone()))?;
        let among = |values: &[Scalar]| match values.is_empty() {
            true => Err(RuleFault::NoValues(condition.pointer.clone())),
            false => Ok(Test::Among(values.iter().map(Value::of).collect())),
        };
        let glob = |pattern: &String| match is_text_pattern(pattern) {
            true => Ok(Test::Glob(pattern.clone())),
            false => Err(RuleFault::BadGlob(condition.pointer.clone())),
        };
        let ordered =
            |bound: &Decimal, order, or_equal| Test::Ordered(bound.exact(), order, or_equal);
        let not = |test| Test::Not(Box::new(test));
        let test = match &condition.is {
            Operator::Equals(value) => among(std::slice::from_ref(value))?,
            Operator::NotEquals(value) => not(among(std::slice::from_ref(value))?),
            Operator::OneOf(values) => among(values)?,
            Operator::NoneOf(values) => not(among(values)?),
            Operator::Glob(pattern) => glob(pattern)?,
            Operator::NotGlob(pattern) => not(glob(pattern)?),
            Operator::AtMost(bound) => ordered(bound, Ordering::Less, true),
            Operator::AtLeast(bound) => ordered(bound, Ordering::Greater, true),
            Operator::Below(bound) => ordered(bound, Ordering::Less, false),
            Operator::Above(bound) => ordered(bound, Ordering::Greater, false),
            Operator::LengthAtMost(bound) => Test::Length(*bound, Ordering::Less),
            Operator::LengthAtLeast(bound) => Test::Length(*bound, Ordering::Greater),
            Operator::Present => Test::Present,
            Operator::Absent => not(Test::Present),
        };
        Ok(Compiled { pointer, test })
    }

    /// What it says of these arguments.
    pub(super) fn truth(&self, args: View<'_>) -> Truth {
        truth(&self.test, self.pointer.find(args))
    }
}

fn truth(test: &Test, found: Option<View<'_>>) -> Truth {
    match (test, found) {
        (Test::Not(inner), found) => truth(inner, found).negated(),
        (Test::Present, found) => Truth::of(found.is_some()),
        (_, None) => Truth::Undefined,
        (Test::Among(values), Some(value)) => among(values, &value.shape()),
        (Test::Glob(pattern), Some(value)) => match value.as_str() {
            Some(text) => Truth::of(fits(pattern, text)),
            None => Truth::Undefined,
        },
        (Test::Ordered(bound, order, or_equal), Some(value)) => match value.shape() {
            Shape::Number(digits) => match Exact::read(digits) {
                Some(number) => {
                    let found = number.cmp(bound);
                    Truth::of(found == *order || (found.is_eq() && *or_equal))
                }
                None => Truth::Undefined,
            },
            _ => Truth::Undefined,
        },
        (Test::Length(bound, order), Some(value)) => match length(value) {
            Some(length) => {
                let found = length.cmp(bound);
                Truth::of(found == *order || found.is_eq())
            }
            None => Truth::Undefined,
        },
    }
}

fn among(values: &[Value], shape: &Shape<'_>) -> Truth {
    let mut said = Truth::Undefined;
    for value in values {
        match value.equals(shape) {
            Some(true) => return Truth::Yes,
            Some(false) => said = Truth::No,
            None => {}
        }
    }
    said
}

/// Characters of a text, items of an array, entries of an object.
fn length(value: View<'_>) -> Option<u64> {
    let count = match value.shape() {
        Shape::String(text) => text.chars().count(),
        Shape::Array(items) => items.count(),
        Shape::Object(entries) => entries.count(),
        Shape::Null | Shape::Bool(_) | Shape::Number(_) => return None,
    };
    u64::try_from(count).ok()
}

fn is_text_pattern(pattern: &str) -> bool {
    let stars = pattern.bytes().filter(|byte| *byte == b'*').count();
    !pattern.is_empty() && pattern.len() <= MAX_PATTERN.0 && stars <= MAX_PATTERN.1
}
