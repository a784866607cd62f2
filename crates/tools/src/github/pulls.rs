//! The pull requests and commits that an issue is linked with, and what CI says about them.
//!
//! Only those of the same repository count: what somebody else's fork says of itself is no signal. Check runs and
//! statuses are two things of GitHub, and both are read, all pages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Target;
use super::client::{Caps, Client, Listing, PER_PAGE};
use super::evidence::{Missing, Of};
use crate::error::Error;

/// How many pull requests and commits are looked at: the ones that were linked last.
const MOST: usize = 10;

/// How much of the checks of one commit is read.
const CHECKS: Caps = Caps {
    pages: 10,
    bytes: 16 << 20,
};

/// What the timeline links to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Links {
    /// Numbers of pull requests, in the order in which they were linked.
    pulls: Vec<u64>,
    /// Commits, in the order in which they were linked.
    commits: Vec<String>,
    /// How many were linked by hand and are not named.
    unnamed: u64,
}

/// What CI says about everything that the timeline links to.
pub(super) async fn linked(
    client: &Client,
    target: &Target,
    timeline: &[Value],
    missing: &mut Missing,
) -> Vec<Value> {
    let links = links(timeline, target);
    if links.unnamed > 0 {
        let why = "a pull request is linked by hand, and GitHub does not say here which one";
        missing.note("pulls", why);
    }
    let mut numbers = links.pulls;
    let mut alone = Vec::new();
    for sha in last(links.commits, "commits", missing) {
        match pulls_of(client, target, &sha).await {
            Ok(of) if of.is_empty() => alone.push(sha),
            Ok(of) => numbers.extend(of),
            Err(error) => missing.note(&format!("commit {sha}"), error),
        }
    }
    let mut seen = BTreeSet::new();
    numbers.retain(|number| seen.insert(*number));
    let mut pulls = Vec::new();
    for number in last(numbers, "pulls", missing) {
        let path = Of::new(target).repository(&format!("/pulls/{number}"));
        let what = format!("pull request #{number}");
        match client.get(&path, &what).await {
            Ok(got) => pulls.push(checked(client, target, &got.value, missing).await),
            Err(error) => missing.note(&what, error),
        }
    }
    for sha in alone {
        let commit = json!({"state": "commit", "head": {"sha": sha}});
        pulls.push(checked(client, target, &commit, missing).await);
    }
    pulls
}

/// The last of them; that there are more is told.
fn last<T>(mut all: Vec<T>, what: &str, missing: &mut Missing) -> Vec<T> {
    let more = all.len().saturating_sub(MOST);
    if more > 0 {
        let why = format!("{more} that were linked earlier than the last {MOST} are not read");
        missing.note(what, why);
    }
    all.split_off(more)
}

/// What CI says about the head of a pull request.
async fn checked(client: &Client, target: &Target, pull: &Value, missing: &mut Missing) -> Value {
    let sha = pull.pointer("/head/sha").and_then(Value::as_str);
    let sha = sha.filter(|sha| is_sha(sha)).map(str::to_owned);
    let (mut runs, mut statuses) = (Vec::new(), Vec::new());
    match &sha {
        Some(sha) => {
            let short = sha.get(..7).unwrap_or(sha);
            let read = all(client, target, &format!("{sha}/check-runs"), "check_runs").await;
            runs = missing.listing(&format!("check runs of {short}"), read);
            let read = all(client, target, &format!("{sha}/status"), "statuses").await;
            statuses = missing.listing(&format!("statuses of {short}"), read);
        }
        None => missing.note("pulls", "one has no head commit"),
    }
    json!({
        "number": pull.get("number"),
        "state": pull.get("state"),
        "head_sha": sha,
        "check_runs": runs,
        "statuses": statuses,
    })
}

async fn all(client: &Client, target: &Target, path: &str, key: &str) -> Result<Listing, Error> {
    let path = Of::new(target).repository(&format!("/commits/{path}?per_page={PER_PAGE}"));
    client.pages(&path, Some(key), CHECKS, key).await
}

/// The pull requests that a commit belongs to.
async fn pulls_of(client: &Client, target: &Target, sha: &str) -> Result<Vec<u64>, Error> {
    let path = Of::new(target).repository(&format!("/commits/{sha}/pulls"));
    let Some(got) = client.find(&path, "the commit").await? else {
        return Ok(Vec::new());
    };
    let pulls = got.value.as_array().cloned().unwrap_or_default();
    let own = pulls.iter().filter(|pull| {
        let repository = pull.pointer("/base/repo/full_name").and_then(Value::as_str);
        repository.is_none_or(|name| name.eq_ignore_ascii_case(&target.repository()))
    });
    Ok(own
        .filter_map(|pull| pull.get("number")?.as_u64())
        .collect())
}

fn links(timeline: &[Value], target: &Target) -> Links {
    let mut links = Links::default();
    for event in timeline {
        let kind = event.get("event").and_then(Value::as_str);
        let kind = kind.unwrap_or_default();
        match kind {
            "cross-referenced" | "connected" => match pull(event, target) {
                Source::Own(number) => links.pulls.push(number),
                Source::Other => {}
                Source::Unnamed => links.unnamed += u64::from(kind == "connected"),
            },
            "disconnected" => links.unnamed = links.unnamed.saturating_sub(1),
            "referenced" | "closed" => links.commits.extend(commit(event, target)),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    links.commits.retain(|sha| seen.insert(sha.clone()));
    links
}

/// What an event was caused by.
enum Source {
    /// A pull request of the same repository.
    Own(u64),
    /// An issue, or something of another repository.
    Other,
    /// It is not said.
    Unnamed,
}

fn pull(event: &Value, target: &Target) -> Source {
    let Some(issue) = event.pointer("/source/issue") else {
        return Source::Unnamed;
    };
    let number = issue.get("number").and_then(Value::as_u64);
    let named = issue
        .pointer("/repository/full_name")
        .or(issue.get("repository_url"));
    let own = named
        .and_then(Value::as_str)
        .is_some_and(|name| ends_with(name, target));
    match (number, issue.get("pull_request")) {
        (Some(number), Some(pull)) if own && pull.is_object() => Source::Own(number),
        _ => Source::Other,
    }
}

/// The commit of an event, if it is one of the same repository.
fn commit(event: &Value, target: &Target) -> Option<String> {
    let sha = event.get("commit_id")?.as_str().filter(|sha| is_sha(sha))?;
    let address = event.get("commit_url")?.as_str()?;
    let repository = address.strip_suffix(sha)?.strip_suffix("/commits/")?;
    ends_with(repository, target).then(|| sha.to_owned())
}

/// Whether a name or an address ends with the repository.
fn ends_with(name: &str, target: &Target) -> bool {
    let mut parts = name.rsplit('/');
    let (repo, owner) = (parts.next(), parts.next());
    repo.is_some_and(|repo| repo.eq_ignore_ascii_case(&target.repo))
        && owner.is_some_and(|owner| owner.eq_ignore_ascii_case(&target.owner))
}

fn is_sha(text: &str) -> bool {
    (40..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn only_what_is_of_the_same_repository_is_linked() {
        let target =
            Target::parse("https://github.com/acme/lamp/issues/7", &["github.com"]).unwrap();
        let from = |event: &str, repository: &str, number: u64, pull: Value| {
            let issue = json!({
                "number": number,
                "repository": {"full_name": repository},
                "pull_request": pull,
            });
            json!({"event": event, "source": {"type": "issue", "issue": issue}})
        };
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let commit = |event: &str, repository: &str, sha: &str| {
            let url = format!("https://api.github.com/repos/{repository}/commits/{sha}");
            json!({"event": event, "commit_id": sha, "commit_url": url})
        };
        let timeline = [
            from("cross-referenced", "Acme/Lamp", 3, json!({"url": "x"})),
            from("cross-referenced", "evil/lamp", 4, json!({"url": "x"})),
            from("cross-referenced", "acme/lamp", 5, Value::Null),
            from("connected", "acme/lamp", 6, json!({"url": "x"})),
            json!({"event": "connected"}),
            json!({"event": "connected"}),
            json!({"event": "disconnected"}),
            commit("referenced", "acme/lamp", &one),
            commit("referenced", "mallory/lamp", &two),
            commit("closed", "acme/lamp", &one),
            json!({"event": "closed", "commit_id": null, "commit_url": null}),
            json!({"event": "referenced", "commit_id": "../../x", "commit_url": "x"}),
            json!(null),
        ];
        assert_eq!(
            links(&timeline, &target),
            Links {
                pulls: vec![3, 6],
                commits: vec![one],
                unnamed: 1,
            }
        );
    }
}
