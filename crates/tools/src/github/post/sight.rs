//! How an issue is just now, as far as posting depends on it.
//!
//! Read anew for every look: before anybody signs, before anything is sent, and when what came of it is looked up. All
//! comments are read, page by page; a search would not know the newest.

use serde_json::Value;

use super::{NEW, Post, PostedComment};
use crate::error::Error;
use crate::github::client::{Listing, unreadable};
use crate::github::evidence::{Of, comments, elsewhere, etag, labels};
use crate::github::marker::{self, Mark, short_hash};
use crate::github::{GitHub, GitHubFault, Target, Viewer};

/// What was seen.
pub(super) struct Sight {
    pub(super) target: Target,
    /// The number of the repository, and that of the issue in all of GitHub.
    pub(super) repository: u64,
    pub(super) issue: u64,
    pub(super) viewer: Viewer,
    pub(super) etag: String,
    open: String,
    locked: bool,
    /// The labels that the issue has.
    labelled: Vec<String>,
    /// The labels that the repository has.
    labels: Vec<String>,
    comments: Vec<Value>,
}

impl Sight {
    /// Looks at it. What was renamed or transferred, and what cannot be read whole, is an error.
    pub(super) async fn of(github: &GitHub, post: &Post) -> Result<Sight, Error> {
        let target = post.target(github.host());
        let (client, of) = (&*github.client, Of::new(&target));
        let viewer = github.viewer().await?;
        let what = target.to_string();
        let issue = client.get(&of.issue(""), &what).await?.value;
        let moved = |to: String| Error::GitHub {
            what: what.clone(),
            fault: GitHubFault::Moved { to },
        };
        if let Some(to) = elsewhere(&issue, &target) {
            return Err(moved(to));
        }
        let repository = client
            .get(&of.repository(""), "its repository")
            .await?
            .value;
        let name = repository.get("full_name").and_then(Value::as_str);
        if !name.is_some_and(|name| name.eq_ignore_ascii_case(&target.repository())) {
            return Err(moved(name.unwrap_or("another repository").to_owned()));
        }
        let (comments, labels) = futures::join!(comments(client, &target), labels(client, &target));
        let comments = whole(comments?, "the comments")?;
        let labels = whole(labels?, "the labels")?;
        let id = |of: &Value, what: &str| {
            let id = of.get("id").and_then(Value::as_u64);
            id.ok_or_else(|| unreadable(what, "it has no id".to_owned()))
        };
        Ok(Sight {
            repository: id(&repository, "its repository")?,
            issue: id(&issue, &what)?,
            etag: etag(&issue, &comments, Some(&viewer)),
            open: text(&issue, "state").to_owned(),
            locked: issue
                .get("locked")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            labelled: names(issue.get("labels")),
            labels: labels
                .iter()
                .map(|label| text(label, "name").to_owned())
                .collect(),
            comments,
            viewer,
            target,
        })
    }

    /// Whether it is open, and to whom.
    pub(super) fn state(&self) -> String {
        match self.locked {
            true => format!("{}, locked", self.open),
            false => self.open.clone(),
        }
    }

    /// Whether the repository has this label.
    pub(super) fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }

    /// Whether the issue has this label.
    pub(super) fn is_labelled(&self, label: &str) -> bool {
        self.labelled
            .iter()
            .any(|own| own.eq_ignore_ascii_case(label))
    }

    /// The viewer's own comment that belongs to the same, the oldest if there are several.
    pub(super) fn earlier(&self, post: &Post) -> Option<(&Value, Mark)> {
        let thread = short_hash(&post.thread());
        let mut own = self.comments.iter().filter_map(|comment| {
            let mark = Mark::of(marker::body(comment))?;
            let ours = marker::author(comment) == Some(self.viewer.id)
                && mark.by == self.viewer.id
                && mark.thread == thread;
            ours.then_some((comment, mark))
        });
        own.next()
    }

    /// In the place of which comment it would be posted: its number, or that it is a new one. The arrival of the very
    /// text that is asked for changes nothing about the answer.
    pub(super) fn in_place_of(&self, post: &Post) -> String {
        match self.earlier(post) {
            None => NEW.to_owned(),
            Some((_, mark)) if !mark.again && mark.text == short_hash(&post.comment) => {
                NEW.to_owned()
            }
            Some((comment, _)) => match id(comment) {
                Some(id) => id.to_string(),
                None => NEW.to_owned(),
            },
        }
    }

    /// The comments with the mark of an action, by this author: a mark that somebody else has copied is none.
    pub(super) fn marked<'s>(
        &'s self,
        action: &'s str,
        by: u64,
    ) -> impl Iterator<Item = &'s Value> {
        self.comments.iter().filter(move |comment| {
            let mark = Mark::of(marker::body(comment));
            marker::author(comment) == Some(by)
                && mark.is_some_and(|mark| mark.action == action && mark.by == by)
        })
    }
}

/// Whether a comment's text is still the one that its mark was made for.
pub(super) fn is_whole(comment: &Value) -> bool {
    let body = marker::body(comment);
    Mark::of(body).is_some_and(|mark| mark.fits(body))
}

/// A comment that is there, if it says which one it is.
pub(super) fn posted(comment: &Value) -> Option<PostedComment> {
    Some(PostedComment {
        id: id(comment)?,
        url: text(comment, "html_url").to_owned(),
    })
}

/// A listing of which nothing is missing.
fn whole(listing: Listing, what: &str) -> Result<Vec<Value>, Error> {
    match listing.cut {
        None => Ok(listing.items),
        Some(why) => Err(unreadable(what, why)),
    }
}

pub(super) fn id(of: &Value) -> Option<u64> {
    of.get("id")?.as_u64()
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn names(labels: Option<&Value>) -> Vec<String> {
    let labels = labels.and_then(Value::as_array).into_iter().flatten();
    let name = |label: &Value| label.as_str().unwrap_or(text(label, "name")).to_owned();
    labels.map(name).collect()
}
