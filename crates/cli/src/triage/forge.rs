//! Where issues are read and comments posted: GitHub as configured, or the stand-in of the rehearsal.

use crate::config::Config;
use crate::failure::Failure;
use futures::future::BoxFuture;
use paraph_agents::{Forge, TriageTarget};
use paraph_gateway::DynTool;
use paraph_tools::{
    Base, GITHUB_API_URL, GitHub, GitHubSettings, IssueQuery, REHEARSAL_ISSUE, Target, post_triage,
};
use serde_json::Value;
use std::path::PathBuf;

/// The file of what a rehearsal posts, in the data directory.
const POSTS: &str = "triage-rehearsal.jsonl";

/// A forge, opened.
pub(crate) struct Place {
    github: GitHub,
    /// The file of a rehearsal's posts.
    file: Option<PathBuf>,
}

impl Place {
    /// The effect that posts there.
    pub(crate) fn post(&self) -> DynTool {
        post_triage(&self.github)
    }

    /// Whether it is the rehearsal's.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.file.is_some()
    }

    /// Where posts go, for people.
    pub(crate) fn posts(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => self.github.host().to_owned(),
        }
    }

    /// The open issues of a repository, those with this label alone if one is named, and not more than wanted.
    pub(crate) async fn open_issues(
        &self,
        repository: &str,
        (label, limit): (Option<&str>, usize),
    ) -> Result<Vec<TriageTarget>, Failure> {
        let (owner, repo) = repository.split_once('/').unwrap_or_default();
        let mut query = IssueQuery {
            state: Some("open".to_owned()),
            label: label.map(str::to_owned),
            ..IssueQuery::default()
        };
        let mut found = Vec::new();
        loop {
            let page = self.github.issues(repository, &query).await;
            let page = page.map_err(|error| Failure::Broken(error.to_string()))?;
            let numbers = page
                .issues
                .iter()
                .filter_map(|issue| issue["number"].as_u64());
            found.extend(numbers.map(|number| TriageTarget {
                host: self.github.host().to_owned(),
                owner: owner.to_owned(),
                repo: repo.to_owned(),
                number,
            }));
            if found.len() >= limit || page.next.is_none() {
                found.truncate(limit);
                return Ok(found);
            }
            query.page = page.next;
        }
    }

    /// Everything about an issue.
    pub(crate) async fn bundle(&self, target: &TriageTarget) -> Result<Value, String> {
        let read = self.github.evidence(&to_tools(target)).await;
        read.map_err(|error| error.to_string())
    }
}

impl Forge for Place {
    fn evidence<'a>(&'a self, target: &'a TriageTarget) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(self.bundle(target))
    }
}

/// No forge: for an agent that is only looked at.
pub(crate) struct Nowhere;

impl Forge for Nowhere {
    fn evidence<'a>(&'a self, _: &'a TriageTarget) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(Err("no forge is open".to_owned())))
    }
}

/// The forge of the settings, or that of the rehearsal.
pub(crate) fn place(config: &Config, rehearsed: bool) -> Result<Place, Failure> {
    if rehearsed {
        let file = posts_file(config)?;
        let github = GitHub::rehearsal(file.clone()).map_err(Failure::usage)?;
        return Ok(Place {
            github,
            file: Some(file),
        });
    }
    let outbound = crate::tools::outbound(config)?;
    let token = config.get("github.token")?.map(|found| found.text.into());
    let github = GitHub::new(&outbound, GitHubSettings::new(api(config)?, token));
    Ok(Place {
        github: github.map_err(|error| match config.get("github.token") {
            Ok(Some(found)) => found.wrong("github.token", error),
            _ => Failure::usage(error),
        })?,
        file: None,
    })
}

fn api(config: &Config) -> Result<Base, Failure> {
    const KEY: &str = "github.api_url";
    match config.get(KEY)? {
        Some(found) => Base::new(&found.text).map_err(|error| found.wrong(KEY, error)),
        None => Base::new(GITHUB_API_URL).map_err(Failure::usage),
    }
}

/// The issue of this address, and whether it is one of the rehearsal's; otherwise it is of the configured host alone.
/// Without an address it is the issue that is rehearsed on.
pub(crate) fn target(
    config: &Config,
    address: Option<&str>,
) -> Result<(TriageTarget, bool), Failure> {
    let host = REHEARSAL_ISSUE.split('/').nth(2).unwrap_or_default();
    let of_rehearsal = Target::parse(address.unwrap_or(REHEARSAL_ISSUE), &[host]);
    match (of_rehearsal, address) {
        (Ok(target), _) => Ok((of_tools(target), true)),
        (Err(error), None) => Err(Failure::usage(error)),
        (Err(_), Some(address)) => {
            let place = place(config, false)?;
            let target = Target::parse(address, &[place.github.host()]).map_err(Failure::usage)?;
            Ok((of_tools(target), false))
        }
    }
}

/// Whether a repository is the rehearsal's.
pub(crate) fn is_of_rehearsal(repository: &str) -> bool {
    let mut parts = REHEARSAL_ISSUE.split('/').skip(3);
    let own = parts.next().zip(parts.next());
    own.is_some_and(|(owner, repo)| repository.eq_ignore_ascii_case(&format!("{owner}/{repo}")))
}

fn of_tools(target: Target) -> TriageTarget {
    TriageTarget {
        host: target.host,
        owner: target.owner,
        repo: target.repo,
        number: target.number,
    }
}

fn to_tools(target: &TriageTarget) -> Target {
    Target {
        host: target.host.clone(),
        owner: target.owner.clone(),
        repo: target.repo.clone(),
        number: target.number,
    }
}

/// The file of a rehearsal's posts, in the data directory.
fn posts_file(config: &Config) -> Result<PathBuf, Failure> {
    let directory = config.data_dir()?.ok_or_else(|| {
        Failure::usage("this platform names no directory for data: set PARAPH_DATA_DIR")
    })?;
    let directory = std::path::absolute(&directory)
        .map_err(|error| Failure::Usage(format!("{}: {error}", directory.display())))?;
    Ok(directory.join(POSTS))
}
