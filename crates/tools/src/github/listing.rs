//! Issues of a repository, page by page, for corpora and batches; and what maintainers said when one was closed.
//!
//! Pull requests, which GitHub lists among issues, are left out. Whoever reads a whole repository keeps the address of
//! the next page, or the time of the last issue, and goes on from there another day.

use serde_json::Value;

use super::client::{PER_PAGE, unreadable};
use super::evidence::comments;
use super::{GitHub, Target, target};
use crate::error::Error;

/// Who speaks for a repository, in GitHub's words.
const MAINTAINERS: [&str; 3] = ["OWNER", "MEMBER", "COLLABORATOR"];

/// How many of their comments explain a closing at most.
const CLOSING: usize = 3;

/// Which issues are listed, the ones that were changed longest ago first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IssueQuery {
    /// `open`, `closed` or `all`; nothing means `all`.
    pub state: Option<String>,
    /// Only those that were changed then or later, as RFC 3339.
    pub since: Option<String>,
    /// Only those with this label.
    pub label: Option<String>,
    /// The page to go on with, as [`IssuePage::next`] gave it; the rest is not looked at then.
    pub page: Option<String>,
}

/// A page of issues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IssuePage {
    /// The issues, as GitHub gives them.
    pub issues: Vec<Value>,
    /// The page after it, if there is one.
    pub next: Option<String>,
}

impl GitHub {
    /// One page of the issues of `owner/repo`.
    ///
    /// # Errors
    /// [`Error::GitHub`], also for a limit that lasts too long, and for names and pages that are none; and what keeps
    /// GitHub from being reached.
    pub async fn issues(&self, repository: &str, query: &IssueQuery) -> Result<IssuePage, Error> {
        let what = format!("the issues of {repository}");
        let wrong = |problem: &str| unreadable(&what, problem.to_owned());
        let (owner, repo) = named(repository)?;
        let url = match &query.page {
            Some(page) => {
                let url = self.client.page(page);
                url.ok_or_else(|| wrong("the page is not one of this server"))?
            }
            None => {
                let mut url = self.client.address(&format!("repos/{owner}/{repo}/issues"));
                let mut pairs = url.query_pairs_mut();
                pairs
                    .append_pair("state", query.state.as_deref().unwrap_or("all"))
                    .append_pair("sort", "updated")
                    .append_pair("direction", "asc")
                    .append_pair("per_page", &PER_PAGE.to_string());
                if let Some(since) = &query.since {
                    pairs.append_pair("since", since);
                }
                if let Some(label) = &query.label {
                    pairs.append_pair("labels", label);
                }
                drop(pairs);
                url
            }
        };
        let (mut issues, next) = self.client.one_page(url, &what).await?;
        issues.retain(|issue| issue.get("pull_request").is_none());
        if next
            .as_deref()
            .is_some_and(|next| self.client.page(next).is_none())
        {
            return Err(wrong("the next page is said to be on another server"));
        }
        Ok(IssuePage { issues, next })
    }

    /// What a repository is called now, as `owner/repo`: it may have been renamed since its name was written down.
    ///
    /// # Errors
    /// As [`GitHub::issues`].
    pub async fn full_name(&self, repository: &str) -> Result<String, Error> {
        let (owner, repo) = named(repository)?;
        let path = format!("repos/{owner}/{repo}");
        let got = self.client.get(&path, repository).await?.value;
        let name = got.get("full_name").and_then(Value::as_str);
        let name = name.ok_or_else(|| unreadable(repository, "it has no name".to_owned()));
        name.map(str::to_owned)
    }

    /// What maintainers said about an issue of a listing until it was closed: their last comments, at most three. Of
    /// an issue that is open, or that nobody commented on, nothing; then GitHub is not asked.
    ///
    /// # Errors
    /// As [`GitHub::issues`].
    pub async fn closing_comments(
        &self,
        repository: &str,
        issue: &Value,
    ) -> Result<Vec<String>, Error> {
        let (owner, repo) = named(repository)?;
        let number = issue.get("number").and_then(Value::as_u64);
        let closed = issue.get("closed_at").and_then(Value::as_str);
        let spoken = issue.get("comments").and_then(Value::as_u64) != Some(0);
        let (Some(number), Some(closed), true) = (number, closed, spoken) else {
            return Ok(Vec::new());
        };
        let target = Target {
            host: self.host.clone(),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            number,
        };
        let all = comments(&self.client, &target).await?;
        Ok(closing(&all.items, closed))
    }
}

/// The two halves of a repository's name.
fn named(repository: &str) -> Result<(&str, &str), Error> {
    let (owner, repo) = repository.split_once('/').unwrap_or((repository, ""));
    match target::is_owner(owner) && target::is_repository(repo) {
        true => Ok((owner, repo)),
        false => Err(Error::config(
            "the repository",
            format!(
                "`{}` is none: write owner/repo",
                crate::said::short(repository)
            ),
        )),
    }
}

/// Of comments, those that close: by maintainers, not after the day on which it was closed.
fn closing(comments: &[Value], closed: &str) -> Vec<String> {
    let text = |comment: &Value, key: &str| {
        let value = comment.get(key).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let day = closed.get(..10).unwrap_or(closed);
    let said = comments.iter().filter(|comment| {
        let by = text(comment, "author_association");
        let at = text(comment, "created_at");
        MAINTAINERS.contains(&by.as_str()) && at.get(..10).is_some_and(|at| at <= day)
    });
    let mut said: Vec<String> = said.map(|comment| text(comment, "body")).collect();
    said.retain(|body| !body.trim().is_empty());
    said.split_off(said.len().saturating_sub(CLOSING))
}
