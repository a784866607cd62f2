//! GitHub: evidence about an issue, listings of issues, and the one comment that a person approved.
//!
//! [`GitHub`] is a client for the parts of the REST interface that triage needs, over the outbound guard. The command
//! line makes it with the token of whoever acts; it is in no error and no `Debug`. Reads follow redirects and say what
//! is missing; the only writes are those of the effect, by its warrant. The parts:
//! - `target`: the issue that a run is about.
//! - `client`, `backend`, `cache`, `heads`, `pause`, `fault`, `moment`: requests.
//! - `post`, `marker`: the comment, the label, and how they are found again.
//! - `listing`: the issues of a repository.
//! - `login`: signing in from a terminal.
//! - `local`, `world`: the GitHub of the rehearsal.
//! - `evidence`, `pulls`, `owners`: what is known about an issue, as one JSON object.

mod backend;
mod cache;
mod client;
mod evidence;
mod fault;
mod heads;
mod listing;
mod local;
mod login;
mod marker;
mod moment;
mod owners;
mod pause;
mod post;
mod pulls;
mod target;
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the server of the tests takes this module by its path, and uses what only tests need"
)]
mod world;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::outbound::{Base, Outbound, is_own_machine};
use backend::{Backend, Http};
use client::{Client, unreadable};
use local::Local;
use pause::Pause;

pub use fault::GitHubFault;
pub use listing::{IssuePage, IssueQuery};
pub use login::DeviceLogin;
pub use pause::GitHubProgress;
pub use post::post_triage;
pub use target::Target;

/// The interface of github.com.
pub const GITHUB_API_URL: &str = "https://api.github.com";

/// The issue that a rehearsal is about, unless another one is named: it says little, and others like it were closed.
/// Beside it there are 31 (a linked pull request whose checks fail), 34 (a detailed one), 35 (one that tries to give
/// orders) and 36 (lost data).
pub const REHEARSAL_ISSUE: &str = "https://github.test/harbour-works/tidewatch/issues/33";

/// The longest time that is waited for a limit at once, unless something else is said.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a client of GitHub needs. Plain data: whoever reads the configuration fills it in.
#[derive(Clone)]
pub struct GitHubSettings {
    /// The address of the interface: [`GITHUB_API_URL`], or that of another installation.
    pub api: Base,
    /// In whose name requests are made; without it only public things can be read, and few of them.
    pub token: Option<SecretString>,
    /// The longest time that is waited for a limit at once; what would take longer is an error that says until when.
    pub patience: Duration,
    /// Who is told what is waited for.
    pub progress: Option<GitHubProgress>,
}

impl GitHubSettings {
    /// For an interface at this address, with a token if there is one.
    pub fn new(api: Base, token: Option<SecretString>) -> GitHubSettings {
        GitHubSettings {
            api,
            token,
            patience: PATIENCE,
            progress: None,
        }
    }
}

/// Without the token.
impl fmt::Debug for GitHubSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitHubSettings")
            .field("api", &self.api)
            .field("token", &self.token.is_some())
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// A client of GitHub. Cloning it is cheap; the clones share what is kept of answers, and the pause that a limit puts
/// on.
///
/// ```no_run
/// # async fn read() -> Result<(), paraph_tools::Error> {
/// use paraph_tools::{Base, GITHUB_API_URL, GitHub, GitHubSettings, Outbound, OutboundSettings, Target};
/// let outbound = Outbound::new(&OutboundSettings::default())?;
/// let github = GitHub::new(&outbound, GitHubSettings::new(Base::new(GITHUB_API_URL)?, None))?;
/// let target = Target::parse("https://github.com/rust-lang/rust/issues/1", &[github.host()])?;
/// let evidence = github.evidence(&target).await?;
/// println!("{}", evidence["issue"]["title"]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct GitHub {
    client: Arc<Client>,
    host: String,
}

/// In whose name a client acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    /// The number that stays when the name changes.
    pub id: u64,
    /// The name.
    pub login: String,
}

impl GitHub {
    /// A client.
    ///
    /// # Errors
    /// [`Error::Config`] for a token that cannot be sent.
    pub fn new(outbound: &Outbound, settings: GitHubSettings) -> Result<GitHub, Error> {
        let GitHubSettings {
            api,
            token,
            patience,
            progress,
        } = settings;
        let host = page_host(&api);
        let backend = Backend::Http(Http::new(outbound, token)?);
        Ok(GitHub {
            client: Client::new(backend, api, Pause::new(patience, progress)),
            host,
        })
    }

    /// The GitHub of the rehearsal: a repository with a few issues of our own writing, offline. What is posted there
    /// goes into this file, as lines of JSON, which is made, private to its owner, when it is needed.
    ///
    /// # Errors
    /// [`Error::Config`] for a path that depends on the working directory, and for what is there and no file.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use paraph_tools::{GitHub, REHEARSAL_ISSUE, Target};
    /// let github = GitHub::rehearsal(std::env::current_dir()?.join("posts.jsonl"))?;
    /// let target = Target::parse(REHEARSAL_ISSUE, &[github.host()])?;
    /// let evidence = github.evidence(&target).await?;
    /// assert_eq!(evidence["issue"]["title"], "Crash on start");
    /// # Ok(()) }
    /// ```
    pub fn rehearsal(file: PathBuf) -> Result<GitHub, Error> {
        let local = Local::new(file)?;
        Ok(GitHub {
            client: Client::new(
                Backend::Local(local),
                Base::new(local::API)?,
                Pause::new(PATIENCE, None),
            ),
            host: local::HOST.to_owned(),
        })
    }

    /// What was posted at the rehearsal whose file this is, the first one first: objects with `kind` (`comment`,
    /// `edit` or `labels`), `number` or `id`, and what was sent.
    ///
    /// # Errors
    /// [`Error::Config`] if the file is there and cannot be read.
    pub fn rehearsed(file: &Path) -> Result<Vec<Value>, Error> {
        local::posts(file)
    }

    /// The host of its issues' pages, such as `github.com`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether requests are made in somebody's name.
    pub fn is_signed_in(&self) -> bool {
        self.client.backend.is_signed_in()
    }

    /// Where what is posted goes, for people.
    pub(crate) fn place(&self) -> String {
        match &self.client.backend {
            Backend::Local(local) => local.place(),
            _ => self.client.base.host(),
        }
    }

    /// Whose token it is.
    ///
    /// # Errors
    /// [`Error::GitHub`], [`GitHubFault::NoToken`] without one; and whatever keeps GitHub from being asked.
    pub async fn viewer(&self) -> Result<Viewer, Error> {
        const WHAT: &str = "the user of the token";
        if !self.is_signed_in() {
            return Err(Error::GitHub {
                what: WHAT.to_owned(),
                fault: GitHubFault::NoToken,
            });
        }
        let user = self.client.get("user", WHAT).await?.value;
        let (id, login) = (user.get("id"), user.get("login"));
        match (id.and_then(Value::as_u64), login.and_then(Value::as_str)) {
            (Some(id), Some(login)) => Ok(Viewer {
                id,
                login: login.to_owned(),
            }),
            _ => Err(unreadable(WHAT, "it has no id and no login".to_owned())),
        }
    }
}

impl fmt::Debug for GitHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitHub")
            .field("api", &self.client.base.to_string())
            .field("signed_in", &self.is_signed_in())
            .finish_non_exhaustive()
    }
}

/// Where the pages of an installation are whose interface is here. What runs on this machine stands in for github.com.
fn page_host(api: &Base) -> String {
    let url = api.address();
    let host = url.host_str().unwrap_or_default();
    match host.strip_prefix("api.") {
        _ if is_own_machine(&url) => "github.com".to_owned(),
        Some(rest) if rest.contains('.') => rest.to_owned(),
        _ => host.to_owned(),
    }
}

#[cfg(test)]
mod tests;
