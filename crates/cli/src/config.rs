//! Settings with their sources: flags > environment > `.env` > `paraph.toml` > defaults.
//!
//! Every value remembers where it came from, so that a mistake can name the place to correct. Commands
//! ask for values by key; nobody else reads the environment or a configuration file.

mod environment;
mod file;
mod setting;
#[cfg(test)]
mod tests;

pub(crate) use environment::{Environment, read_text};
pub(crate) use file::micro_dollars;
pub(crate) use setting::{Kind, Setting, settings};

use crate::args::SourceArgs;
use crate::failure::Failure;
use file::ConfigFile;
use paraph_gateway::Price;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The name of the configuration file.
pub(crate) const FILE_NAME: &str = "paraph.toml";

/// The file of the store that nobody named, in the directory for data.
const STORE_FILE: &str = "paraph.db";

/// The refund ledger that nobody named, in the same directory.
const LEDGER_FILE: &str = "refunds.jsonl";

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A flag of the command.
    Flag(&'static str),
    /// A variable of the real environment.
    Variable(String),
    /// A variable in an `.env` file.
    DotEnv { path: PathBuf, variable: String },
    /// The file that a `NAME_FILE` variable names.
    SecretFile { variable: String, path: PathBuf },
    /// A line of a configuration file.
    File { path: PathBuf, line: usize },
    /// Nobody said anything else.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Flag(flag) => f.write_str(flag),
            Source::Variable(name) => write!(f, "environment variable {name}"),
            Source::DotEnv { path, variable } => write!(f, "{} ({variable})", path.display()),
            Source::SecretFile { variable, path } => write!(f, "{variable} ({})", path.display()),
            Source::File { path, line } => write!(f, "{}:{line}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// All sources, in the order in which they count.
pub(crate) struct Config {
    flags: Vec<(&'static str, Found)>,
    pub(crate) environment: Environment,
    files: Vec<ConfigFile>,
}

impl Config {
    /// Reads everything. `flags` are pairs of a setting's key, the flag, and its value.
    pub(crate) fn load(
        sources: &SourceArgs,
        flags: Vec<(&'static str, &'static str, Option<&str>)>,
    ) -> Result<Config, Failure> {
        let environment = Environment::read(sources.env_file.as_deref())?;
        for variable in settings().iter().flat_map(|setting| &setting.variables) {
            // A key that is not seen would mean another model than the one that was asked for.
            let both = [variable.clone(), format!("{variable}_FILE")];
            if let Some(name) = both.iter().find(|name| environment.is_unreadable(name)) {
                return Err(Failure::usage(format_args!(
                    "{name}: its value is not UTF-8"
                )));
            }
        }
        let log = sources.log.as_deref();
        let flags = flags.into_iter().chain([("log", "--log", log)]);
        let mut files = Vec::new();
        for path in file_places(&environment) {
            files.extend(ConfigFile::read(&path)?);
        }
        Ok(Config {
            flags: flags
                .filter_map(|(key, flag, text)| {
                    let text = text?.to_owned();
                    let source = Source::Flag(flag);
                    Some((key, Found { text, source }))
                })
                .collect(),
            environment,
            files,
        })
    }

    /// Nothing but defaults.
    #[cfg(test)]
    pub(crate) fn empty() -> Config {
        Config {
            flags: Vec::new(),
            environment: Environment::default(),
            files: Vec::new(),
        }
    }

    /// A setting's value, if anybody gave one. An empty variable gives none.
    pub(crate) fn find(&self, setting: &Setting) -> Result<Option<Found>, Failure> {
        if let Some((_, found)) = self.flags.iter().find(|(key, _)| *key == setting.key) {
            return Ok(Some(found.clone()));
        }
        for variable in &setting.variables {
            let found = match setting.kind {
                Kind::Secret => self.environment.secret(variable)?,
                _ => self.environment.get(variable),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        let found = self.files.iter().find_map(|file| file.value(&setting.key));
        if found.is_some() {
            return Ok(found);
        }
        let default = match setting.key.as_str() {
            "store" => self.default_store()?,
            "refund.ledger" => self.default_ledger()?,
            _ => setting.default.clone(),
        };
        Ok(default.map(|text| Found {
            text,
            source: Source::Default,
        }))
    }

    /// The directory for data: the one that is named, or the platform's.
    pub(crate) fn data_dir(&self) -> Result<Option<PathBuf>, Failure> {
        let named = self.get("data_dir")?.map(|found| PathBuf::from(found.text));
        Ok(named.or_else(|| self.environment.data_dir()))
    }

    fn default_store(&self) -> Result<Option<String>, Failure> {
        let dir = self.data_dir()?;
        Ok(dir.map(|dir| format!("sqlite://{}", dir.join(STORE_FILE).display())))
    }

    fn default_ledger(&self) -> Result<Option<String>, Failure> {
        let dir = self.data_dir()?;
        // The directory may be named as it is seen from here; a ledger has to be the same from everywhere.
        let file = dir.map(|dir| std::path::absolute(dir.join(LEDGER_FILE)));
        let file = file.transpose().map_err(Failure::usage)?;
        Ok(file.map(|file| file.display().to_string()))
    }

    /// The store's address.
    pub(crate) fn store(&self) -> Result<Found, Failure> {
        self.get("store")?.ok_or_else(|| {
            Failure::usage(
                "this platform names no directory for data: set PARAPH_DATA_DIR, or use --store",
            )
        })
    }

    /// A setting's value by its key.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Found>, Failure> {
        match settings().iter().find(|setting| setting.key == key) {
            Some(setting) => self.find(setting),
            None => Err(Failure::Broken(format!("there is no setting `{key}`"))),
        }
    }

    /// A setting's value, read as `T`; a mistake names its source.
    pub(crate) fn parse<T: FromStr>(&self, key: &str) -> Result<Option<T>, Failure>
    where
        T::Err: fmt::Display,
    {
        let Some(found) = self.get(key)? else {
            return Ok(None);
        };
        match found.text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(found.wrong(key, error)),
        }
    }

    /// The price of a model: by its whole name, else by its provider's.
    pub(crate) fn price(&self, model: &str) -> Option<Price> {
        let provider = model.split(':').next().unwrap_or(model);
        let of = |name: &str| self.files.iter().find_map(|file| file.prices.get(name));
        of(model).or_else(|| of(provider)).cloned()
    }

    /// The configuration files that were found.
    pub(crate) fn file_paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }
}

impl Found {
    /// The failure of a value that cannot be used.
    pub(crate) fn wrong(&self, key: &str, why: impl fmt::Display) -> Failure {
        let what = match &self.source {
            Source::Flag(flag) => (*flag).to_owned(),
            Source::Variable(name) => name.clone(),
            other => format!("{other}: `{key}`"),
        };
        Failure::Usage(format!("{what}: {why}"))
    }
}

/// The working directory's file, then the platform's.
fn file_places(environment: &Environment) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(FILE_NAME)];
    places.extend(environment.config_dir().map(|dir| dir.join(FILE_NAME)));
    places
}
