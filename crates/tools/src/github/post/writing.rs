//! The two things that are sent: the comment and the label. Only a warrant leads here.

use paraph_gateway::{EffectError, Warrant};
use reqwest::Method;
use serde_json::{Value, json};

use super::sight::{Sight, id, posted};
use super::{COMMENT, NEW, PostTriage, PostedComment};
use crate::error::Error;
use crate::github::GitHubFault;
use crate::github::backend::Answered;
use crate::github::client::unreadable;
use crate::github::evidence::Of;
use crate::github::marker::{self, Mark};

impl PostTriage {
    /// Sees to it that the comment is there: found, put in the place of an earlier one, or posted.
    pub(super) async fn comment(
        &self,
        warrant: &Warrant<'_, Self>,
        sight: &Sight,
    ) -> Result<PostedComment, EffectError> {
        let post = &warrant.args;
        let action = warrant.marker();
        if let Some(there) = sight.marked(&action, sight.viewer.id).next() {
            let there = posted(there);
            return there
                .ok_or_else(|| EffectError::unknown("the comment that is there has no id"));
        }
        let earlier = sight.earlier(post);
        let again = warrant.target(COMMENT) != Some(NEW);
        let mark = Mark::new(
            action,
            sight.viewer.id,
            &post.thread(),
            &post.comment,
            again,
        );
        let body = json!({"body": mark.under(&post.comment)});
        let of = Of::new(&sight.target);
        let (method, path) = match earlier.and_then(|(comment, _)| id(comment)) {
            Some(id) => (
                Method::PATCH,
                of.repository(&format!("/issues/comments/{id}")),
            ),
            None => (Method::POST, of.issue("/comments")),
        };
        let sent = self.github.client.send(method, &path, &body).await;
        let answered = sent.and_then(|answered| self.done(&sight.target.to_string(), answered));
        let comment = answered.map_err(|error| what_it_means(&error))?;
        // It is the one that was sent, or nobody knows what happened.
        let own = marker::author(&comment) == Some(sight.viewer.id)
            && Mark::of(marker::body(&comment)).as_ref() == Some(&mark);
        match posted(&comment).filter(|_| own) {
            Some(posted) => Ok(posted),
            None => Err(EffectError::unknown(
                "GitHub answered with another comment than the one that it was sent",
            )),
        }
    }

    /// Sees to it that the label is there. Whatever goes wrong, the comment is there already.
    pub(super) async fn label(
        &self,
        warrant: &Warrant<'_, Self>,
        sight: &Sight,
    ) -> Result<(), Error> {
        let Some(label) = &warrant.args.label else {
            return Ok(());
        };
        if sight.is_labelled(label) {
            return Ok(());
        }
        let what = format!("the label `{label}`");
        if !sight.has_label(label) {
            return Err(Error::GitHub {
                what,
                fault: GitHubFault::NotFound,
            });
        }
        let path = Of::new(&sight.target).issue("/labels");
        let body = json!({"labels": [label]});
        let sent = self.github.client.send(Method::POST, &path, &body).await?;
        let labels = self.done(&what, sent)?;
        let is_there = |labels: &Value| {
            let mut labels = labels.as_array()?.iter();
            let named = |one: &Value| {
                let name = one.get("name").and_then(Value::as_str);
                name.is_some_and(|name| name.eq_ignore_ascii_case(label))
            };
            labels.any(named).then_some(())
        };
        is_there(&labels).ok_or_else(|| unreadable(&what, "it is not among the issue's".to_owned()))
    }

    /// What a successful answer holds.
    fn done(&self, what: &str, answered: Answered) -> Result<Value, Error> {
        if !(200..300).contains(&answered.status) {
            return Err(self.github.client.fault(what, &answered));
        }
        serde_json::from_slice(&answered.body)
            .map_err(|error| unreadable(what, format!("it is no JSON: {error}")))
    }
}

/// Whether a comment that was not confirmed may be there all the same.
fn what_it_means(error: &Error) -> EffectError {
    let nothing = match error {
        Error::Config { .. }
        | Error::Url { .. }
        | Error::Forbidden { .. }
        | Error::Unresolved { .. }
        | Error::Connect { sent: false, .. } => true,
        Error::GitHub { fault, .. } => fault.proves_nothing_done(),
        _ => false,
    };
    match nothing {
        true => EffectError::nothing_happened(error.to_string()),
        false => EffectError::unknown(error.to_string()),
    }
}
