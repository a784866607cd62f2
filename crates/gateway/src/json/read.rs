//! The reader: one pass over the bytes, with a list of open containers instead of recursion.

use super::{Json, Node, View};

/// What the reader accepts at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of text.
    pub bytes: usize,
    /// Containers inside each other. More than [`Bounds::MAX_DEPTH`] is taken as that.
    pub depth: usize,
    /// Digits of one integer.
    pub digits: usize,
}

impl Bounds {
    /// The deepest value that any reader makes. `serde_json`, which reads our text for typed
    /// arguments, gives up at 128.
    pub const MAX_DEPTH: usize = 100;
}

impl Default for Bounds {
    /// One MiB, 64 levels, 4300 digits (the bound of Python's reader).
    fn default() -> Self {
        Bounds {
            bytes: 1 << 20,
            depth: 64,
            digits: 4300,
        }
    }
}

/// Why a text is not taken as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}")]
pub struct JsonError {
    /// Offset of the byte at which the reader gave up.
    pub at: usize,
    /// What it found there.
    pub fault: JsonFault,
}

/// What the reader found wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// More than [`Bounds::bytes`].
    #[error("the text is too large")]
    TooLarge,
    /// More than [`Bounds::depth`].
    #[error("too many containers inside each other")]
    TooDeep,
    /// An integer with more than [`Bounds::digits`].
    #[error("an integer with too many digits")]
    TooManyDigits,
    /// Half of a surrogate pair: no character.
    #[error("an unpaired surrogate")]
    Surrogate,
    /// `NaN` or `Infinity`: Python writes them, JSON does not have them.
    #[error("a number that JSON does not have")]
    NotFinite,
    /// A control character that should have been escaped.
    #[error("a raw control character in a string")]
    Control,
    /// Anything else that the grammar does not allow here; the text says what it does allow.
    #[error("expected {0}")]
    Expected(&'static str),
}

pub(super) fn read(text: &str, bounds: Bounds) -> Result<Json, JsonError> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: bounds.depth.min(Bounds::MAX_DEPTH),
        digits: bounds.digits,
        nodes: Vec::new(),
        open: Vec::new(),
        repeated: None,
    };
    if text.len() > bounds.bytes {
        return reader.fail(JsonFault::TooLarge);
    }
    reader.document()?;
    Ok(Json {
        nodes: reader.nodes.into_boxed_slice(),
        repeated: reader.repeated,
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    digits: usize,
    nodes: Vec<Node>,
    open: Vec<Open>,
    repeated: Option<Box<str>>,
}

/// A container that is not closed yet: what it is, and the index of its node.
struct Open {
    object: bool,
    start: usize,
}

impl<'t> Reader<'t> {
    fn fail<T>(&self, fault: JsonFault) -> Result<T, JsonError> {
        Err(JsonError { at: self.at, fault })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Whether the next byte after any space is this one; if so, it is taken.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn document(&mut self) -> Result<(), JsonError> {
        loop {
            if self.value()? && self.close_and_continue()? {
                self.skip_space();
                return match self.peek() {
                    None => Ok(()),
                    Some(_) => self.fail(JsonFault::Expected("the end of the text")),
                };
            }
        }
    }

    /// Reads a value, or the beginning of a container that is not empty. True if a value is complete.
    fn value(&mut self) -> Result<bool, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.begin(true),
            Some(b'[') => self.begin(false),
            Some(b'"') => {
                let text = self.string()?;
                self.nodes.push(Node::String(text));
                Ok(true)
            }
            Some(b'-' | b'0'..=b'9') => {
                let digits = self.number()?;
                self.nodes.push(Node::Number(digits));
                Ok(true)
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<bool, JsonError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let words = [
            ("null", Node::Null),
            ("true", Node::Bool(true)),
            ("false", Node::Bool(false)),
        ];
        for (word, node) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                self.nodes.push(node);
                return Ok(true);
            }
        }
        if rest.starts_with("NaN") || rest.starts_with("Infinity") {
            return self.fail(JsonFault::NotFinite);
        }
        self.fail(JsonFault::Expected("a value"))
    }

    fn begin(&mut self, object: bool) -> Result<bool, JsonError> {
        if self.open.len() >= self.depth {
            return self.fail(JsonFault::TooDeep);
        }
        self.at += 1;
        let start = self.nodes.len();
        // The span is known when the container closes; an empty one spans itself.
        let (node, end) = match object {
            true => (Node::Object(1), b'}'),
            false => (Node::Array(1), b']'),
        };
        self.nodes.push(node);
        if self.take(end) {
            return Ok(true);
        }
        self.open.push(Open { object, start });
        if object {
            self.key()?;
        }
        Ok(false)
    }

    fn key(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.fail(JsonFault::Expected("a key"));
        }
        let key = self.string()?;
        self.nodes.push(Node::String(key));
        if self.take(b':') {
            Ok(())
        } else {
            self.fail(JsonFault::Expected("`:`"))
        }
    }

    /// After a complete value: closes what ends here. True if the document is complete, false if
    /// another value has to follow.
    fn close_and_continue(&mut self) -> Result<bool, JsonError> {
        while let Some(Open { object, start }) = self.open.pop() {
            if self.take(b',') {
                self.open.push(Open { object, start });
                if object {
                    self.key()?;
                }
                return Ok(false);
            }
            match object {
                true if !self.take(b'}') => return self.fail(JsonFault::Expected("`,` or `}`")),
                false if !self.take(b']') => return self.fail(JsonFault::Expected("`,` or `]`")),
                true => {
                    self.drop_repeats(start);
                    self.span(start, Node::Object);
                }
                false => self.span(start, Node::Array),
            }
        }
        Ok(true)
    }

    fn span(&mut self, start: usize, container: fn(usize) -> Node) {
        let span = self.nodes.len().saturating_sub(start);
        if let Some(node) = self.nodes.get_mut(start) {
            *node = container(span);
        }
    }

    /// Keeps of each key the last value, in the place of the first: what Python's `dict` does.
    fn drop_repeats(&mut self, start: usize) {
        let entries = || {
            super::Entries(super::Items(
                self.nodes.get(start + 1..).unwrap_or_default(),
            ))
        };
        let mut keys: Vec<&str> = entries().map(|(key, _)| key).collect();
        keys.sort_unstable();
        let Some(twice) = keys.windows(2).find(|pair| pair.first() == pair.last()) else {
            return;
        };
        let twice: Option<Box<str>> = twice.first().map(|key| Box::from(*key));
        let mut kept: Vec<(&str, View<'_>)> = Vec::new();
        let mut place = std::collections::HashMap::new();
        for (key, value) in entries() {
            let at = *place.entry(key).or_insert(kept.len());
            match kept.get_mut(at) {
                Some(entry) => entry.1 = value,
                None => kept.push((key, value)),
            }
        }
        let mut nodes = Vec::new();
        for (key, value) in kept {
            nodes.push(Node::String(key.into()));
            nodes.extend_from_slice(value.0);
        }
        self.nodes.truncate(start + 1);
        self.nodes.append(&mut nodes);
        self.repeated = self.repeated.take().or(twice);
    }

    fn number(&mut self) -> Result<Box<str>, JsonError> {
        let from = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with("Infinity"))
        {
            return self.fail(JsonFault::NotFinite);
        }
        let first = self.peek();
        let whole = self.run_of_digits();
        if whole == 0 || (first == Some(b'0') && whole > 1) {
            return self.fail(JsonFault::Expected("a number without leading zeros"));
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            self.at += 1;
            integer = false;
            if self.run_of_digits() == 0 {
                return self.fail(JsonFault::Expected("a digit after the point"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            integer = false;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.run_of_digits() == 0 {
                return self.fail(JsonFault::Expected("a digit in the exponent"));
            }
        }
        if integer && whole > self.digits {
            return self.fail(JsonFault::TooManyDigits);
        }
        Ok(self.text.get(from..self.at).unwrap_or_default().into())
    }

    fn run_of_digits(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - from
    }

    fn string(&mut self) -> Result<Box<str>, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let from = self.at;
            while matches!(self.peek(), Some(byte) if byte != b'"' && byte != b'\\' && byte >= 0x20)
            {
                self.at += 1;
            }
            out.push_str(self.text.get(from..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out.into_boxed_str());
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                Some(_) => return self.fail(JsonFault::Control),
                None => return self.fail(JsonFault::Expected("the end of the string")),
            }
        }
    }

    /// The character after a backslash.
    fn escape(&mut self) -> Result<char, JsonError> {
        let escape = self.peek();
        let plain = match escape {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return self.fail(JsonFault::Expected("an escape that JSON has")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// The character of `\uXXXX`, or of two of them that form a pair.
    fn unicode(&mut self) -> Result<char, JsonError> {
        let high = self.hex4()?;
        let follows = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with("\\u"));
        let code = if (0xd800..0xdc00).contains(&high) && follows {
            self.at += 2;
            let low = self.hex4()?;
            if !(0xdc00..0xe000).contains(&low) {
                return self.fail(JsonFault::Surrogate);
            }
            0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        } else {
            high
        };
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => self.fail(JsonFault::Surrogate),
        }
    }

    fn hex4(&mut self) -> Result<u32, JsonError> {
        let code = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.fail(JsonFault::Expected("four hexadecimal digits")),
        }
    }
}
