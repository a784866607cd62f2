//! The environment and the `.env` file: the only place of the project that reads either.
//!
//! The real environment wins over the file. Variables that nobody here knows are left alone. No text of
//! an error shows a value: it may be a secret.

use super::{Found, Source};
use crate::failure::Failure;
use crate::patience::{patiently, too_slow};
use directories::ProjectDirs;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The largest `.env` file, secret file or configuration file, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// What the environment said when the program began.
#[derive(Default)]
pub(crate) struct Environment {
    real: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
    path: PathBuf,
    /// Variables whose values are no UTF-8.
    unreadable: BTreeSet<String>,
    /// Whether that file is there.
    pub(crate) has_file: bool,
}

impl Environment {
    /// Reads the real environment, and `.env` in the working directory or the file that was named.
    pub(crate) fn read(named: Option<&Path>) -> Result<Environment, Failure> {
        let (mut real, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
        for (name, value) in std::env::vars_os() {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => drop(real.insert(name, value)),
                (Ok(name), Err(_)) => drop(unreadable.insert(name)),
                (Err(_), _) => {}
            }
        }
        let path = named.unwrap_or(Path::new(".env")).to_owned();
        let text = match read_text(&path) {
            Ok(text) => Some(text),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::Usage(format!("{}: {error}", path.display()))),
        };
        let read = Environment::of(real, path, text.as_deref())?;
        Ok(Environment { unreadable, ..read })
    }

    /// From what was read. Apart from substitutions in the file, which see the real environment, a
    /// function of its arguments.
    pub(crate) fn of(
        real: BTreeMap<String, String>,
        path: PathBuf,
        text: Option<&str>,
    ) -> Result<Environment, Failure> {
        let mut file = BTreeMap::new();
        let body = text.unwrap_or_default();
        let body = body.strip_prefix('\u{feff}').unwrap_or(body);
        for entry in dotenvy::from_read_iter(body.as_bytes()) {
            let (name, value) = entry.map_err(|error| {
                Failure::Usage(format!("{}{}", path.display(), place(body, &error)))
            })?;
            file.entry(name).or_insert(value);
        }
        Ok(Environment {
            real,
            file,
            path,
            unreadable: BTreeSet::new(),
            has_file: text.is_some(),
        })
    }

    /// A variable of the real environment, empty or not.
    pub(crate) fn real(&self, name: &str) -> Option<&str> {
        self.real.get(name).map(String::as_str)
    }

    /// Whether the real environment has a value for this variable that cannot be read.
    pub(crate) fn is_unreadable(&self, name: &str) -> bool {
        self.unreadable.contains(name)
    }

    /// The `.env` file's path, whether or not it is there.
    pub(crate) fn file_path(&self) -> &Path {
        &self.path
    }

    /// A variable; one that is empty is not set.
    pub(crate) fn get(&self, name: &str) -> Option<Found> {
        let real = self
            .real
            .get(name)
            .map(|text| (text, Source::Variable(name.to_owned())));
        let file = self.file.get(name).map(|text| {
            let (path, variable) = (self.path.clone(), name.to_owned());
            (text, Source::DotEnv { path, variable })
        });
        let found = [real, file].into_iter().flatten();
        let mut set = found.filter(|(text, _)| !text.trim().is_empty());
        set.next().map(|(text, source)| Found {
            text: text.trim().to_owned(),
            source,
        })
    }

    /// A secret: the variable, or the content of the file that `NAME_FILE` names. What the real
    /// environment says about either wins over what the `.env` file says about either.
    pub(crate) fn secret(&self, name: &str) -> Result<Option<Found>, Failure> {
        let pointer = format!("{name}_FILE");
        let is_real = |found: &Found| matches!(found.source, Source::Variable(_));
        let (value, file) = (self.get(name), self.get(&pointer));
        match (value, file) {
            (Some(value), Some(file)) if is_real(&value) || !is_real(&file) => Ok(Some(value)),
            (Some(value), None) => Ok(Some(value)),
            (_, Some(file)) => secret_file(pointer, &file).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The platform's directory for configuration.
    pub(crate) fn config_dir(&self) -> Option<PathBuf> {
        platform_dirs().map(|dirs| dirs.config_dir().to_owned())
    }

    /// The platform's directory for data.
    pub(crate) fn data_dir(&self) -> Option<PathBuf> {
        platform_dirs().map(|dirs| dirs.data_dir().to_owned())
    }
}

fn platform_dirs() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "paraph")
}

fn secret_file(variable: String, named: &Found) -> Result<Found, Failure> {
    let path = PathBuf::from(&named.text);
    let text = read_text(&path)
        .map_err(|error| Failure::Usage(format!("{variable}: {}: {error}", path.display())))?;
    match text.trim() {
        "" => Err(Failure::Usage(format!(
            "{variable}: {} is empty",
            path.display()
        ))),
        text => Ok(Found {
            text: text.to_owned(),
            source: Source::SecretFile { variable, path },
        }),
    }
}

/// Which line `dotenvy` could not read. Its own words would show the line, and with it a secret.
fn place(text: &str, error: &dotenvy::Error) -> String {
    let dotenvy::Error::LineParse(line, _) = error else {
        return ": it cannot be read as variables".to_owned();
    };
    let at = text.find(line.as_str()).unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    format!(":{number}: this line is not NAME=value")
}

/// The text of a small file.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    let named = path.to_owned();
    let read = move || {
        let mut text = String::new();
        let mut file = File::open(named)?.take(MAX_FILE + 1);
        file.read_to_string(&mut text).map(|_| text)
    };
    let text = patiently(path, read).unwrap_or_else(|| Err(std::io::Error::other(too_slow())))?;
    match text.len() as u64 > MAX_FILE {
        true => Err(std::io::Error::other(format!(
            "larger than {MAX_FILE} bytes"
        ))),
        false => Ok(text),
    }
}
