//! Where a server is and how it is reached, read from a URL.
//!
//! Called when a store is opened. What it says of an address never has the password.

use crate::error::Error;
use std::{path::PathBuf, time::Duration};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

/// A server and a database there.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) trust: Trust,
}

/// Which server is believed to be the right one, where TLS is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any: what is said is hidden from listeners, as with `sslmode=prefer` and `require` everywhere.
    Any,
    /// One whose certificate is good by the platform's authorities.
    Platform,
    /// One whose certificate is good by the authorities in a file of PEM.
    File(PathBuf),
}

impl Address {
    /// Reads `postgres://user:password@host:port/database?sslmode=…`, with the parameters that `libpq` knows.
    /// `sslmode` is `disable`, `prefer` (which is assumed), `require`, `verify-ca` or `verify-full`; the last
    /// two check certificate and host name, against `sslrootcert` or the platform's authorities.
    pub(super) fn read(url: &str) -> Result<Address, Error> {
        let wrong = |why: String| Error::Url {
            url: without_password(url),
            why,
        };
        let (plain, mode, roots) = take_tls(url).map_err(wrong)?;
        let mut config: Config = plain.parse().map_err(|e: tokio_postgres::Error| {
            wrong(std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        let (ssl, trust) = match (mode.as_deref(), roots) {
            (Some("disable"), _) => (SslMode::Disable, Trust::Any),
            (None | Some("prefer"), None) => (SslMode::Prefer, Trust::Any),
            (Some("require"), None) => (SslMode::Require, Trust::Any),
            (Some("verify-ca" | "verify-full"), None) => (SslMode::Require, Trust::Platform),
            // As in `libpq`: who names authorities wants them asked.
            (None | Some("prefer" | "require" | "verify-ca" | "verify-full"), Some(file)) => {
                (SslMode::Require, Trust::File(file))
            }
            (Some(other), _) => {
                return Err(wrong(format!(
                    "`sslmode` is `{other}`, and can be disable, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        config.ssl_mode(ssl);
        with_patience(&mut config);
        Ok(Address { config, trust })
    }

    /// In words, for errors: without the password.
    pub(super) fn place(&self) -> String {
        format!(
            "postgres://{}@{}/{}",
            self.user(),
            self.hosts(),
            self.database()
        )
    }

    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// The server takes the user's name where none is given.
    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or(self.user())
    }

    /// All hosts with their ports.
    pub(super) fn hosts(&self) -> String {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let names = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let mut names: Vec<String> = names.collect();
        if names.is_empty() {
            names = self
                .config
                .get_hostaddrs()
                .iter()
                .map(ToString::to_string)
                .collect();
        }
        let named = names
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{name}:{}", port(at)));
        named.collect::<Vec<_>>().join(",")
    }
}

/// A peer that is gone without a word is noticed within half a minute, whatever the system's settings are.
fn with_patience(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(30));
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config
            .keepalives_idle(Duration::from_secs(15))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
    }
    if config.get_application_name().is_none() {
        config.application_name("paraph");
    }
}

/// A URL without the parameters that are ours to read, and what these are.
fn take_tls(url: &str) -> Result<(String, Option<String>, Option<PathBuf>), String> {
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), None, None));
    };
    let (mut mode, mut roots) = (None, None);
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => roots = Some(decoded(value)?.into()),
            _ => rest.push(pair),
        }
    }
    let base = match rest.is_empty() {
        true => base.to_owned(),
        false => format!("{base}?{}", rest.join("&")),
    };
    Ok((base, mode, roots))
}

/// Percent signs and what follows them, read.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap_or(b' '), rest.next().unwrap_or(b' ')];
                std::str::from_utf8(&digits)
                    .ok()
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                    .ok_or_else(|| {
                        format!("`{text}` has a `%` that is followed by no two digits")
                    })?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is no UTF-8"))
}

/// A URL, be it well-formed or not, with dots where a password can be.
pub(super) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let hidden = match rest.rsplit_once('@') {
        Some((login, place)) => {
            let user = login.split(':').next().unwrap_or_default();
            let dots = if login.contains(':') { ":…" } else { "" };
            format!("{user}{dots}@{place}")
        }
        None => rest.to_owned(),
    };
    let shown = match hidden.find("password=") {
        Some(at) => format!("{}password=…", hidden.get(..at).unwrap_or_default()),
        None => hidden,
    };
    match scheme {
        "" => shown,
        scheme => format!("{scheme}://{shown}"),
    }
}

#[cfg(test)]
mod tests;
