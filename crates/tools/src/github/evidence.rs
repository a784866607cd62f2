//! The evidence about an issue, as one JSON object with GitHub's own field names.
//!
//! Called for a target that code has read from an address. Nothing is judged here, and nothing is left out in silence:
//! what could not be read, or only in part, is named under `incomplete`, with why.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::client::{Caps, Client, Listing, PER_PAGE};
use super::{GitHub, GitHubFault, Target, Viewer, marker, moment, owners, pulls};
use crate::error::Error;

/// How much of the comments is read: GitHub takes 2,500 for one issue.
pub(super) const COMMENTS: Caps = Caps {
    pages: 30,
    bytes: 32 << 20,
};

/// How much of the timeline is read.
const TIMELINE: Caps = Caps {
    pages: 30,
    bytes: 32 << 20,
};

/// How much of the repository's labels is read.
pub(super) const LABELS: Caps = Caps {
    pages: 20,
    bytes: 8 << 20,
};

/// What is missing of the evidence.
#[derive(Default)]
pub(super) struct Missing(Vec<Value>);

impl Missing {
    /// Says that `what` is missing or cut off, and why.
    pub(super) fn note(&mut self, what: &str, why: impl ToString) {
        self.0.push(json!({"what": what, "why": why.to_string()}));
    }

    /// A listing, or what there is of it.
    pub(super) fn listing(&mut self, what: &str, read: Result<Listing, Error>) -> Vec<Value> {
        match read {
            Ok(Listing { items, cut }) => {
                if let Some(why) = cut {
                    self.note(what, why);
                }
                items
            }
            Err(error) => {
                self.note(what, error);
                Vec::new()
            }
        }
    }

    /// Something, or its default where it could not be read.
    pub(super) fn or_default<T: Default>(&mut self, what: &str, read: Result<T, Error>) -> T {
        read.unwrap_or_else(|error| {
            self.note(what, error);
            T::default()
        })
    }
}

impl GitHub {
    /// What is known about an issue: the issue, its comments and timeline, the repository's labels, linked pull
    /// requests and commits of the same repository with their checks and statuses, the owners of the code, and in
    /// whose name it was read.
    ///
    /// ```text
    /// {"target": {"owner", "repo", "number", "host"}, "repository": {"id", "full_name", "has_issues", "archived"} | null,
    ///  "issue": {…}, "comments": […], "timeline": […], "labels": [{"name"}…],
    ///  "pulls": [{"number": n | null, "state", "head_sha", "check_runs": […], "statuses": […]}],
    ///  "codeowners": {"path", "text"} | null, "permissions": {"push", "triage", "pull"} | null,
    ///  "viewer": {"id", "login"} | null, "fetched_at", "etag", "incomplete": [{"what", "why"}]}
    /// ```
    /// A commit without a pull request has the state `commit` and no number. `etag` stands for what the issue and
    /// its comments say, but for our own; labels do not change it.
    ///
    /// # Errors
    /// [`Error::GitHub`] if the issue itself cannot be read: it is not there, was deleted, is blocked, its repository
    /// has no issues, the token is not valid, or a limit lasts too long; and what keeps GitHub from being reached.
    pub async fn evidence(&self, target: &Target) -> Result<Value, Error> {
        let (client, of) = (&*self.client, Of::new(target));
        let mut missing = Missing::default();
        let issue = client.get(&of.issue(""), &target.to_string()).await?.value;
        moved(&issue, target, &mut missing);
        if issue.get("pull_request").is_some() {
            missing.note("issue", "it is a pull request");
        }
        let viewer = match self.is_signed_in() {
            true => Some(self.viewer().await?),
            false => None,
        };
        let repository = client.get(&of.repository(""), "its repository").await;
        let repository = missing.or_default("repository", repository.map(|got| got.value));
        renamed(&repository, target, &mut missing);
        let path = format!("{}?per_page={PER_PAGE}", of.issue("/timeline"));
        let (comments, timeline, labels, owners) = futures::join!(
            comments(client, target),
            client.pages(&path, None, TIMELINE, "the timeline"),
            labels(client, target),
            owners::read(client, target),
        );
        let comments = missing.listing("comments", comments);
        let timeline = missing.listing("timeline", timeline);
        let labels = missing.listing("labels", labels);
        let owners = missing.or_default("codeowners", owners);
        let pulls = pulls::linked(client, target, &timeline, &mut missing).await;
        Ok(json!({
            "target": {
                "owner": target.owner, "repo": target.repo, "number": target.number, "host": target.host,
            },
            "etag": etag(&issue, &comments, viewer.as_ref()),
            "issue": issue,
            "repository": picked(&repository, &["id", "full_name", "has_issues", "archived"]),
            "comments": comments,
            "timeline": timeline,
            "labels": labels.iter().map(|label| json!({"name": label.get("name")})).collect::<Vec<_>>(),
            "pulls": pulls,
            "codeowners": owners,
            "permissions": repository.get("permissions").map(|of| picked(of, &["push", "triage", "pull"])),
            "viewer": viewer,
            "fetched_at": moment::stamp(moment::now()),
            "incomplete": missing.0,
        }))
    }
}

/// The paths of a target.
pub(super) struct Of<'t>(&'t Target);

impl Of<'_> {
    pub(super) fn new(target: &Target) -> Of<'_> {
        Of(target)
    }

    /// Something of its repository; `rest` begins with a slash.
    pub(super) fn repository(&self, rest: &str) -> String {
        format!("repos/{}/{}{rest}", self.0.owner, self.0.repo)
    }

    /// Something of the issue itself.
    pub(super) fn issue(&self, rest: &str) -> String {
        self.repository(&format!("/issues/{}{rest}", self.0.number))
    }
}

/// All comments of an issue, the oldest first.
pub(super) async fn comments(client: &Client, target: &Target) -> Result<Listing, Error> {
    let path = format!("{}?per_page={PER_PAGE}", Of(target).issue("/comments"));
    client.pages(&path, None, COMMENTS, "the comments").await
}

/// All labels that the repository has.
pub(super) async fn labels(client: &Client, target: &Target) -> Result<Listing, Error> {
    let path = format!("{}?per_page={PER_PAGE}", Of(target).repository("/labels"));
    client.pages(&path, None, LABELS, "the labels").await
}

/// These fields of an object; nothing if it is none.
fn picked(object: &Value, fields: &[&str]) -> Value {
    if !object.is_object() {
        return Value::Null;
    }
    let fields = fields.iter().map(|field| {
        let value = object.get(*field).cloned().unwrap_or_default();
        ((*field).to_owned(), value)
    });
    Value::Object(fields.collect())
}

/// Where an issue is that was transferred, as `owner/repo#number`.
pub(super) fn elsewhere(issue: &Value, target: &Target) -> Option<String> {
    let repository = issue.get("repository_url")?.as_str()?;
    let mut parts = repository.rsplit('/');
    let (repo, owner) = (parts.next()?, parts.next()?);
    let number = issue.get("number")?.as_u64()?;
    let here = owner.eq_ignore_ascii_case(&target.owner)
        && repo.eq_ignore_ascii_case(&target.repo)
        && number == target.number;
    (!here).then(|| format!("{owner}/{repo}#{number}"))
}

fn moved(issue: &Value, target: &Target, missing: &mut Missing) {
    if let Some(place) = elsewhere(issue, target) {
        let fault = GitHubFault::Moved { to: place };
        missing.note("issue", fault);
    }
}

fn renamed(repository: &Value, target: &Target, missing: &mut Missing) {
    let name = repository.get("full_name").and_then(Value::as_str);
    if let Some(name) = name
        && !name.eq_ignore_ascii_case(&target.repository())
    {
        let to = name.to_owned();
        missing.note("repository", GitHubFault::Moved { to });
    }
}

/// What an issue and its comments say, as one value: SHA-256 over title, text, and each comment's number, author, time
/// and text. The viewer's own marked comments do not count: an effect that was done in part has not changed what it
/// was about.
pub(super) fn etag(issue: &Value, comments: &[Value], viewer: Option<&Viewer>) -> String {
    let own = |comment: &&Value| {
        viewer.is_some_and(|viewer| {
            marker::author(comment) == Some(viewer.id)
                && marker::Mark::of(marker::body(comment)).is_some()
        })
    };
    let said = comments
        .iter()
        .filter(|comment| !own(comment))
        .map(|comment| {
            json!([
                comment.get("id"),
                marker::author(comment),
                comment.get("updated_at"),
                comment.get("body"),
            ])
        });
    let all = json!([
        issue.get("title"),
        issue.get("body"),
        said.collect::<Vec<_>>(),
    ]);
    let digest = Sha256::digest(all.to_string());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
