//! The one place where secrets are taken out of what is logged, traced or told.
//!
//! Agents and the command line send everything they show of a call through the gateway's redactor; the
//! gateway itself sends a tool's error texts through it. It works on copies: what tools get, and what
//! records keep, stays as it is.

use crate::call::ToolCall;
use crate::canonical;
use crate::display::is_hidden;
use crate::json::{Bounds, Json, Shape, Style, View, quote, write};
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::LazyLock;

const GONE: &str = "[redacted]";

/// What is taken out beside the shapes that are always secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redaction {
    /// Names of further keys whose values are secret, in any spelling (`apiKey`, `api_key`).
    pub keys: Vec<String>,
    /// Whether e-mail addresses are taken out.
    pub emails: bool,
}

/// Takes out secrets by the name of their key (`password`, `access_token`, …) and by their shape: bearer
/// and basic credentials, the tokens of well-known services, JSON web tokens, private keys, passwords in
/// URLs, and card numbers with a right check digit.
///
/// ```
/// use paraph_gateway::{Redaction, Redactor, ToolCall};
/// let redactor = Redactor::new(&Redaction::default());
/// let call = ToolCall::new("login", r#"{"user":"ann","password":"hunter2","card":"4111 1111 1111 1111"}"#)?;
/// assert_eq!(redactor.brief(&call, 80), r#"{"user":"ann","password":"[redacted]","card":"[redacted]"}"#);
/// # Ok::<(), paraph_gateway::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Redactor {
    keys: Vec<String>,
    emails: bool,
}

impl Redactor {
    /// A redactor with these additions.
    pub fn new(also: &Redaction) -> Redactor {
        Redactor {
            keys: also.keys.iter().map(|key| plain(key)).collect(),
            emails: also.emails,
        }
    }

    /// Compact JSON without secrets.
    pub fn json(&self, value: View<'_>) -> String {
        write(value, Style::Exact, |key, value| {
            self.replacement(key, value)
        })
    }

    /// Text without secrets.
    pub fn text(&self, text: &str) -> String {
        let mut out = Cow::Borrowed(text);
        for (shape, instead) in SHAPES.iter() {
            if let Cow::Owned(changed) = shape.replace_all(&out, *instead) {
                out = Cow::Owned(changed);
            }
        }
        if self.emails
            && let Cow::Owned(changed) = EMAIL.replace_all(&out, GONE)
        {
            out = Cow::Owned(changed);
        }
        DIGITS
            .replace_all(&out, |found: &Captures<'_>| without_cards(&found[0]))
            .into_owned()
    }

    /// What an effect says of itself, or what it is about, without secrets. Of a tool that says nothing of itself both
    /// end with its arguments as JSON, and secrets there go by the names of their keys too. Whoever decides about an
    /// action has to see its signed bytes; everybody else is shown this.
    ///
    /// ```
    /// use paraph_gateway::{Redaction, Redactor};
    /// let redactor = Redactor::new(&Redaction::default());
    /// let says = r#"Call `pay` with {"cents":1,"pin":"0000"}"#;
    /// assert_eq!(redactor.said(says), r#"Call `pay` with {"cents":1,"pin":"[redacted]"}"#);
    /// ```
    pub fn said(&self, text: &str) -> String {
        let args = text.find('{').map(|at| text.split_at(at));
        let read = args.and_then(|(before, args)| Some((before, canonical::read(args).ok()?)));
        match read {
            Some((before, args)) => format!("{}{}", self.text(before), self.json(args.view())),
            None => self.text(text),
        }
    }

    /// A call's arguments for one line of a trace: redacted, without characters that could disturb a
    /// terminal, and cut to so many characters.
    pub fn brief(&self, call: &ToolCall, characters: usize) -> String {
        let text = match call.fault() {
            Some(_) => quote(&self.text(&call.arguments()), Style::Exact),
            None => self.json(call.args().view()),
        };
        let mut brief = String::new();
        for (i, character) in text.chars().enumerate() {
            if i == characters {
                brief.push('…');
                break;
            }
            match is_hidden(character) {
                true => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        brief.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                false => brief.push(character),
            }
        }
        brief
    }

    fn replacement(&self, key: Option<&str>, value: View<'_>) -> Option<String> {
        let gone = || Some(quote(GONE, Style::Exact));
        let secret = key.is_some_and(|key| self.is_secret_key(key));
        match value.shape() {
            // Whether there is a secret is none.
            Shape::Null | Shape::Bool(_) => None,
            _ if secret => gone(),
            Shape::Number(digits) if is_card(digits) => gone(),
            Shape::String(text) => {
                let redacted = self.text(text);
                (redacted != text).then(|| quote(&redacted, Style::Exact))
            }
            _ => None,
        }
    }

    fn is_secret_key(&self, key: &str) -> bool {
        const WITHIN: [&str; 10] = [
            "password",
            "passwd",
            "passphrase",
            "secret",
            "apikey",
            "accesskey",
            "privatekey",
            "credential",
            "authorization",
            "cookie",
        ];
        const AT_END: [&str; 2] = ["token", "cardnumber"];
        const WHOLE: [&str; 5] = ["auth", "pin", "cvc", "cvv", "jwt"];
        let key = plain(key);
        WITHIN.iter().any(|word| key.contains(word))
            || AT_END.iter().any(|word| key.ends_with(word))
            || WHOLE.contains(&key.as_str())
            || self.keys.contains(&key)
    }
}

/// A key without the differences between styles of spelling.
fn plain(key: &str) -> String {
    key.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// A text of a call as `Debug` shows it: without the secrets that every redactor knows.
pub(crate) struct Redacted<'t>(pub(crate) &'t str);

impl std::fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        static ALWAYS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(&Redaction::default()));
        let text = match Json::read(self.0, Bounds::default()) {
            Ok(json) => ALWAYS.json(json.view()),
            Err(_) => ALWAYS.text(self.0),
        };
        write!(f, "{text:?}")
    }
}

fn regex(pattern: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants, and the tests below compile every one of them"
    )]
    Regex::new(pattern).expect("a constant pattern")
}

/// Shapes that are secret whatever their key is, and what stands instead.
static SHAPES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
            GONE,
        ),
        (r"(?i)\b(authorization\s*[:=]\s*)[^\r\n]+", "${1}[redacted]"),
        (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}", "${1}[redacted]"),
        (r"\b([Bb]asic\s+)[A-Za-z0-9+/]{6,}={1,2}", "${1}[redacted]"),
        (r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*", GONE),
        (
            r"(?x)\b(?:
                sk-[A-Za-z0-9_-]{16,} | (?:sk|rk|pk|whsec)_[A-Za-z0-9_]{16,} | tvly-[A-Za-z0-9_-]{10,}
                | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
                | xox[abeprs]-[A-Za-z0-9-]{10,} | AKIA[0-9A-Z]{16} | AIza[0-9A-Za-z_-]{30,}
                | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{16,}
            )",
            GONE,
        ),
        (r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@]*:[^/\s@]+@", "${1}[redacted]@"),
        (
            r#"(?i)\b([a-z0-9_-]*(?:passw(?:or)?d|secret|api[_-]?key|access[_-]?key)"?\s*[:=]\s*"?)[^\s"&;,]+"#,
            "${1}[redacted]",
        ),
        (r#"(?i)\b([a-z0-9_-]*token=)[^\s"&;,]+"#, "${1}[redacted]"),
    ]
    .into_iter()
    .map(|(pattern, instead)| (regex(pattern), instead))
    .collect()
});

static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"));

/// Groups of digits that may hold a card number.
static DIGITS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b[0-9](?:[ -]?[0-9]){12,40}\b"));

/// How many digits a card number has at most.
const LONGEST_CARD: usize = 19;

/// A run of digit groups with the card numbers in it taken out. A card number is one or more whole
/// groups: parts of longer numbers are not taken for one.
fn without_cards(run: &str) -> String {
    let groups: Vec<(usize, &str)> = run
        .split([' ', '-'])
        .map(|group| (group.as_ptr().addr() - run.as_ptr().addr(), group))
        .collect();
    let mut out = String::new();
    let mut copied = 0;
    let mut first = 0;
    while let Some((start, _)) = groups.get(first) {
        let mut digits = String::new();
        let mut card_end = None;
        for (last, (_, group)) in groups.iter().enumerate().skip(first) {
            digits.push_str(group);
            if digits.len() > LONGEST_CARD {
                break;
            }
            if is_card(&digits) {
                card_end = Some(last);
            }
        }
        match card_end.and_then(|last| groups.get(last).map(|end| (last, end))) {
            Some((last, (end, group))) => {
                out.push_str(&run[copied..*start]);
                out.push_str(GONE);
                copied = end + group.len();
                first = last + 1;
            }
            None => first += 1,
        }
    }
    out.push_str(&run[copied..]);
    out
}

/// Whether these are the digits of a card: a known beginning of the right length, and a check digit
/// that is right by Luhn's rule.
fn is_card(digits: &str) -> bool {
    if !(13..=LONGEST_CARD).contains(&digits.len())
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return false;
    }
    let head = |length: usize| {
        digits
            .get(..length)
            .and_then(|head| head.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let known = match digits.len() {
        14 => matches!(head(2), 36 | 38 | 39) || matches!(head(3), 300..=305),
        15 => matches!(head(2), 34 | 37),
        16 if matches!(head(2), 51..=55) || matches!(head(4), 2221..=2720) => true,
        13 => head(1) == 4,
        _ => {
            head(1) == 4
                || matches!(head(2), 50 | 56..=65 | 67 | 81)
                || matches!(head(4), 3528..=3589)
        }
    };
    known && luhn(digits)
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, byte)| {
            let digit = u32::from(byte - b'0') << (i % 2);
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests;
