//! `paraph.toml`: read with line numbers; a key that nobody knows is a mistake and not a wish.

use super::{Found, Kind, Source, read_text, settings};
use crate::failure::Failure;
use crate::suggest::hint;
use paraph_gateway::Price;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The table of prices, which is keyed by model.
const PRICES: &str = "prices";
const INPUT: &str = "input_per_million";
const OUTPUT: &str = "output_per_million";
const ORIGIN: &str = "source";

/// One configuration file.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    values: BTreeMap<String, (String, usize)>,
    pub(super) prices: BTreeMap<String, Price>,
}

impl ConfigFile {
    /// Reads a file; none if it is not there.
    pub(super) fn read(path: &Path) -> Result<Option<ConfigFile>, Failure> {
        match read_text(path) {
            Ok(text) => ConfigFile::parse(path, &text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::Usage(format!("{}: {error}", path.display()))),
        }
    }

    /// Reads a file's text.
    pub(super) fn parse(path: &Path, text: &str) -> Result<ConfigFile, Failure> {
        let mut reader = Reader {
            path,
            text,
            known: settings()
                .into_iter()
                .map(|setting| (setting.key, setting.kind))
                .collect(),
            values: BTreeMap::new(),
            prices: BTreeMap::new(),
        };
        let table = DeTable::parse(text).map_err(|error| {
            let line = line_of(text, error.span().unwrap_or(0..0));
            Failure::Usage(format!("{}:{line}: {}", path.display(), error.message()))
        })?;
        reader.table("", table.get_ref())?;
        Ok(ConfigFile {
            path: path.to_owned(),
            values: reader.values,
            prices: reader.prices,
        })
    }

    /// The value of a key.
    pub(super) fn value(&self, key: &str) -> Option<Found> {
        let (text, line) = self.values.get(key)?;
        Some(Found {
            text: text.clone(),
            source: Source::File {
                path: self.path.clone(),
                line: *line,
            },
        })
    }
}

struct Reader<'t> {
    path: &'t Path,
    text: &'t str,
    known: BTreeMap<String, Kind>,
    values: BTreeMap<String, (String, usize)>,
    prices: BTreeMap<String, Price>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) -> Result<(), Failure> {
        for (name, value) in table {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            match (value.get_ref(), self.known.get(&key)) {
                (DeValue::Table(models), _) if key == PRICES => self.all_prices(models)?,
                (DeValue::Table(inner), None) if self.is_table(&key) => self.table(&key, inner)?,
                (_, Some(Kind::Secret)) => {
                    let why = "a secret does not belong into this file: set its variable, or the \
                               same with _FILE";
                    return Err(self.wrong(name.span(), &format!("`{key}`: {why}")));
                }
                (plain, Some(_)) => {
                    let text = self.plain(&key, plain, value.span())?;
                    self.values.insert(key, (text, self.line(name.span())));
                }
                (_, None) => return Err(self.unknown(&key, name.span())),
            }
        }
        Ok(())
    }

    fn is_table(&self, key: &str) -> bool {
        let prefix = format!("{key}.");
        self.known.keys().any(|known| known.starts_with(&prefix))
    }

    fn plain(&self, key: &str, value: &DeValue<'_>, at: Range<usize>) -> Result<String, Failure> {
        match value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.to_string()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong(at, &format!("`{key}` is a text or a number"))),
        }
    }

    fn all_prices(&mut self, models: &DeTable<'_>) -> Result<(), Failure> {
        for (model, price) in models {
            let name = model.get_ref().to_string();
            let DeValue::Table(fields) = price.get_ref() else {
                let why = format!("`{PRICES}.{name}` is a table with {INPUT} and {OUTPUT}");
                return Err(self.wrong(model.span(), &why));
            };
            let price = self.price(&name, fields, model.span())?;
            self.prices.insert(name, price);
        }
        Ok(())
    }

    fn price(&self, model: &str, fields: &DeTable<'_>, at: Range<usize>) -> Result<Price, Failure> {
        let (mut input, mut output, mut source) = (None, None, None);
        for (name, value) in fields {
            match name.get_ref().as_ref() {
                INPUT => input = Some(self.dollars(value)?),
                OUTPUT => output = Some(self.dollars(value)?),
                ORIGIN => source = Some(self.plain(ORIGIN, value.get_ref(), value.span())?),
                other => {
                    let hint = hint(other, [INPUT, OUTPUT, ORIGIN]);
                    let why = format!("unknown key `{other}` of a price{hint}");
                    return Err(self.wrong(name.span(), &why));
                }
            }
        }
        match (input, output) {
            (Some(input), Some(output)) => Ok(Price {
                input,
                output,
                source: source.unwrap_or_else(|| self.path.display().to_string()),
            }),
            _ => {
                let why =
                    format!("the price of `{model}` needs {INPUT} and {OUTPUT}, in US dollars");
                Err(self.wrong(at, &why))
            }
        }
    }

    /// US dollars as millionths.
    fn dollars(&self, value: &Spanned<DeValue<'_>>) -> Result<u64, Failure> {
        let text = self.plain("a price", value.get_ref(), value.span())?;
        micro_dollars(&text).map_err(|why| self.wrong(value.span(), &why))
    }

    fn unknown(&self, key: &str, at: Range<usize>) -> Failure {
        if key == PRICES {
            let why =
                format!("`{key}` is a table: [{key}.\"PROVIDER:MODEL\"] with {INPUT} and {OUTPUT}");
            return self.wrong(at, &why);
        }
        if self.is_table(key) {
            let within = self
                .known
                .keys()
                .filter_map(|known| known.strip_prefix(key)?.strip_prefix('.'));
            let within: Vec<&str> = within.collect();
            let why = format!("`{key}` is a table: [{key}] with {}", listed(&within));
            return self.wrong(at, &why);
        }
        let tables = ["providers", "retention", PRICES];
        let known = self.known.keys().map(String::as_str).chain(tables);
        self.wrong(at, &format!("unknown key `{key}`{}", hint(key, known)))
    }

    fn wrong(&self, at: Range<usize>, why: &str) -> Failure {
        Failure::Usage(format!("{}:{}: {why}", self.path.display(), self.line(at)))
    }

    fn line(&self, at: Range<usize>) -> usize {
        line_of(self.text, at)
    }
}

/// The first of these keys, and how many more there are.
fn listed(keys: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown = keys
        .iter()
        .take(SHOWN)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match keys.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The line of a place in a text, from 1.
fn line_of(text: &str, at: Range<usize>) -> usize {
    let before = text.as_bytes().get(..at.start).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A sum of US dollars in millionths, from its text.
pub(crate) fn micro_dollars(text: &str) -> Result<u64, String> {
    const MOST: f64 = 1e9;
    match text.trim().parse::<f64>() {
        Ok(dollars) if (0.0..=MOST).contains(&dollars) => Ok((dollars * 1e6).round() as u64),
        _ => Err(format!("`{text}` is no sum of US dollars, such as 0.25")),
    }
}
