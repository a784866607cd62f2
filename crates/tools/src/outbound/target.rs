//! What an address must look like before anything is looked up: from a model, and from configuration.
//!
//! Pure. The parser is the one browsers use, so that `0x7f.1`, `2130706433` and `①②⑦.0.0.1` are read as the address
//! they stand for before they are judged.

use reqwest::Url;

use super::address::{Reach, reach};
use crate::error::Error;

/// Longest address that is taken, in bytes.
const MAX_URL: usize = 4_096;

/// Ends of names that never belong to a server on the internet.
const OWN_NAMES: [&str; 11] = [
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "onion",
];

/// A server that configuration names: it may be on this machine or in a private network, and it may be sent secrets.
///
/// ```
/// use paraph_tools::Base;
/// assert_eq!(Base::new("https://api.tavily.com")?.to_string(), "https://api.tavily.com");
/// assert!(Base::new("http://127.0.0.1:8080/v1").is_ok());
/// let error = Base::new("http://intranet.example/").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "http://intranet.example: plain http is for this machine only, unless it is allowed for this address"
/// );
/// # Ok::<(), paraph_tools::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    url: Url,
}

impl Base {
    /// A base URL: `https`, or `http` on this machine. A path is kept, a query or a fragment is not.
    ///
    /// # Errors
    /// [`Error::Config`] for anything else, and for addresses with credentials.
    pub fn new(text: &str) -> Result<Base, Error> {
        Base::read(text, false)
    }

    /// A base URL that may be plain `http` anywhere: whoever is on the way can read and change what is said.
    ///
    /// # Errors
    /// As [`Base::new`], but for `http`.
    pub fn plain_http(text: &str) -> Result<Base, Error> {
        Base::read(text, true)
    }

    fn read(text: &str, plain: bool) -> Result<Base, Error> {
        let text = text.trim();
        let mut url = Url::parse(text).map_err(|error| {
            // The text is not shown: what is no address may be a key in the wrong place.
            Error::config("base URL", format!("not an address: {error}"))
        })?;
        let refuse = |problem: &str| Err(Error::config(shown(&url), problem));
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("credentials do not belong into an address");
        }
        match url.scheme() {
            "https" => {}
            "http" if plain || is_own_machine(&url) => {}
            "http" => {
                return refuse(
                    "plain http is for this machine only, unless it is allowed for this address",
                );
            }
            _ => return refuse("only https can be used"),
        }
        if let Some(Reach::Never(why)) = literal(&url).map(reach) {
            return refuse(why);
        }
        url.set_query(None);
        url.set_fragment(None);
        Ok(Base { url })
    }

    /// The address itself.
    pub(crate) fn address(&self) -> Url {
        self.url.clone()
    }

    /// The whole address, as it was given.
    pub(crate) fn whole(&self) -> &str {
        self.url.as_str()
    }

    /// Scheme, host and port, for people.
    pub(crate) fn host(&self) -> String {
        shown(&self.url)
    }

    /// Whether an address lies below it: the same scheme, host and port, and a path that goes on from its own.
    pub(crate) fn covers(&self, url: &Url) -> bool {
        let path = self.url.path().trim_end_matches('/');
        let below = url.path().strip_prefix(path);
        url.origin() == self.url.origin()
            && url.username().is_empty()
            && url.password().is_none()
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The address of something below it: `path` has no leading slash, and is taken as it stands.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        url
    }
}

/// As it was given, without a closing slash.
impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

/// An address as a model wrote it.
pub(crate) fn parse(text: &str) -> Result<Url, Error> {
    if text.len() > MAX_URL {
        return Err(Error::Url {
            problem: format!("it is longer than {MAX_URL} bytes"),
        });
    }
    Url::parse(text.trim()).map_err(|error| Error::Url {
        problem: format!("{error}; write a whole address such as https://example.org/page"),
    })
}

/// That an address which others named is one of the internet: `https`, the usual port, a name or address that is
/// public, no credentials. What a name stands for is judged when it is looked up. A fragment and the dot at the end
/// of a name are taken off.
pub(crate) fn check_public(url: &mut Url) -> Result<(), Error> {
    let refuse = |problem: &str| {
        Err(Error::Url {
            problem: problem.to_owned(),
        })
    };
    match url.scheme() {
        "https" => {}
        "http" => return refuse("plain http is not used; try the same address with https"),
        _ => return refuse("only https can be used"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("it contains credentials");
    }
    if url.port().is_some() {
        return refuse("only the usual port of https can be used");
    }
    url.set_fragment(None);
    let name = without_final_dot(url)?;
    if let Some(address) = literal(url) {
        return match reach(address) {
            Reach::Public => Ok(()),
            Reach::Own(why) | Reach::Never(why) => Err(Error::forbidden(url, why)),
        };
    }
    let own = OWN_NAMES.iter().any(|end| {
        name.strip_suffix(end)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if own || !name.contains('.') {
        return Err(Error::forbidden(url, "a name of a private network"));
    }
    Ok(())
}

/// `example.org.` is `example.org`, also to whoever compares names later.
fn without_final_dot(url: &mut Url) -> Result<String, Error> {
    let name = url.host_str().unwrap_or_default().to_owned();
    let Some(short) = name.strip_suffix('.') else {
        return Ok(name);
    };
    if short.is_empty() || short.ends_with('.') || url.set_host(Some(short)).is_err() {
        return Err(Error::Url {
            problem: "its host name is none".to_owned(),
        });
    }
    Ok(url.host_str().unwrap_or_default().to_owned())
}

/// The address that a host is, if it is one and no name.
pub(crate) fn literal(url: &Url) -> Option<std::net::IpAddr> {
    let host = url.host_str()?;
    host.trim_matches(['[', ']']).parse().ok()
}

/// Whether an address is one of this machine.
pub(crate) fn is_own_machine(url: &Url) -> bool {
    match literal(url) {
        Some(address) => address.is_loopback(),
        None => url.host_str().is_some_and(|name| name == "localhost"),
    }
}

/// Scheme, host and port: what may be said of an address. A path or a query may contain a secret.
pub(crate) fn shown(url: &Url) -> String {
    match url.port() {
        Some(port) => format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or("")),
        None => format!("{}://{}", url.scheme(), url.host_str().unwrap_or("")),
    }
}
