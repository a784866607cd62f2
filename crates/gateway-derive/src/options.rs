//! What stands in the brackets of `#[tool(…)]`.

use std::time::Duration;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, LitInt, LitStr, Token};

/// The longest timeout: a day. More is a mistake of units.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

const WORDS: &str = "write name = \"…\", about = \"…\", timeout = \"5s\", output_cap = 4000, level = \"read\" or blocking";

/// What the attribute says.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) about: Option<LitStr>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) output_cap: Option<LitInt>,
    /// The word itself, to point at.
    pub(crate) blocking: Option<Ident>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Options> {
        let mut options = Options::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let word: Ident = input.parse().map_err(|e| Error::new(e.span(), WORDS))?;
            if seen.contains(&word) {
                return Err(Error::new(word.span(), format!("`{word}` is said twice")));
            }
            options.word(&word, input)?;
            seen.push(word);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    fn word(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if word == "blocking" {
            self.blocking = Some(word.clone());
            return Ok(());
        }
        if !["name", "about", "timeout", "output_cap", "level"].contains(&word.to_string().as_str())
        {
            return Err(Error::new(word.span(), WORDS));
        }
        input.parse::<Token![=]>()?;
        if word == "name" {
            self.name = Some(tool_name(input.parse()?)?);
        } else if word == "about" {
            self.about = Some(input.parse()?);
        } else if word == "timeout" {
            self.timeout = Some(duration(&input.parse()?)?);
        } else if word == "output_cap" {
            let cap: LitInt = input.parse()?;
            cap.base10_parse::<usize>()?;
            self.output_cap = Some(cap);
        } else {
            level(&input.parse()?)?;
        }
        Ok(())
    }
}

/// A name that every provider takes, as the gateway asks for it too.
pub(crate) fn tool_name(name: LitStr) -> syn::Result<LitStr> {
    let text = name.value();
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    match (1..=128).contains(&text.len()) && text.bytes().all(fine) {
        true => Ok(name),
        false => Err(Error::new(
            name.span(),
            "a tool's name has 1 to 128 letters, digits, `_`, `-` or `.`",
        )),
    }
}

/// Effects need an approval of what they do, in words, and a way to find out whether it was done.
fn level(level: &LitStr) -> syn::Result<()> {
    match level.value().as_str() {
        "read" => Ok(()),
        "write" | "execute" | "delete" => Err(Error::new(
            level.span(),
            "a function with #[tool] reads and changes nothing: what changes something is an effect, \
             which a person has to approve. Implement `Tool` with its `LEVEL` for it",
        )),
        _ => Err(Error::new(
            level.span(),
            "the levels are read, write, execute and delete; #[tool] makes tools that read",
        )),
    }
}

fn duration(text: &LitStr) -> syn::Result<Duration> {
    let value = text.value();
    let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let count: Option<u64> = digits.parse().ok();
    let unit = value.strip_prefix(digits).unwrap_or_default().trim();
    let duration = count.and_then(|count| match unit {
        "ms" => Some(Duration::from_millis(count)),
        "s" => Some(Duration::from_secs(count)),
        "m" => count.checked_mul(60).map(Duration::from_secs),
        _ => None,
    });
    duration
        .filter(|duration| !duration.is_zero() && *duration <= MAX_TIMEOUT)
        .ok_or_else(|| {
            let why = "a timeout is a whole number of ms, s or m, up to a day: \"500ms\", \"5s\"";
            Error::new(text.span(), why)
        })
}
