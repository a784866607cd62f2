//! `post_triage`: puts the comment that a person approved on an issue, and a label beside it. The one thing here that
//! writes.
//!
//! It is an [`Effect`]: it runs by a warrant, under the token of whoever acts, whose number is part of what is signed.
//! GitHub keeps no keys of requests, so the comment carries a mark, and is looked for among all comments before it is
//! sent and after a crash. There is one comment for each thread and user: a later one takes the place of the earlier.
//! Labels are added and never taken away, never made, and nothing is closed. The parts: `sight` (how an issue is just
//! now), `writing` (what is sent).

mod sight;
mod writing;

use std::time::Duration;

use paraph_gateway::{Attempt, DynTool, Effect, EffectError, Found, Resolved, ToolError, Warrant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GitHub, GitHubFault, Target, marker, target};
use crate::error::Error;
use sight::Sight;

/// The longest comment that GitHub takes, in characters.
pub(super) const MAX_COMMENT: usize = 65_536;

/// How long the whole may take: several requests, and a pause between them.
const TOTAL: Duration = Duration::from_secs(180);

/// How long after its own time an attempt may still arrive.
const GRACE: Duration = Duration::from_secs(60);

/// The names under which it is signed what an issue was when it was proposed.
const REPOSITORY: &str = "repository";
const ISSUE: &str = "issue";
const AS: &str = "posts as user";
const COMMENT: &str = "comment";
const STATE: &str = "issue state";
const SAID: &str = "title, text and comments";

/// The value of [`COMMENT`] where there is none of ours yet.
const NEW: &str = "a new one";

/// The tool `post_triage`, for a gateway whose policy asks a person about it.
///
/// ```
/// use paraph_gateway::Level;
/// use paraph_tools::{Base, GITHUB_API_URL, GitHub, GitHubSettings, Outbound, OutboundSettings, post_triage};
/// let outbound = Outbound::new(&OutboundSettings::default())?;
/// let github = GitHub::new(&outbound, GitHubSettings::new(Base::new(GITHUB_API_URL)?, None))?;
/// let tool = post_triage(&github);
/// assert_eq!((tool.name.as_str(), tool.level), ("post_triage", Level::Write));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn post_triage(github: &GitHub) -> DynTool {
    DynTool::effect(PostTriage {
        github: github.clone(),
    })
}

/// What is posted, and where. The target comes from the address that a person gave; no model writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Post {
    /// Who has the repository.
    owner: String,
    /// The repository.
    repo: String,
    /// The number of the issue.
    #[schemars(range(min = 1))]
    number: u64,
    /// The comment, in Markdown, exactly as it is posted. A line that GitHub does not show is put under it.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    comment: String,
    /// A label of the repository that is added; none if it is left out.
    #[serde(default)]
    label: Option<String>,
    /// What the comment belongs to: a later comment of the same takes its place. Left out, it is the issue.
    #[serde(default)]
    thread: Option<String>,
    /// The `etag` of the evidence that the comment was written from: if the issue says something else by now, nothing
    /// is proposed.
    #[serde(default)]
    etag: Option<String>,
}

/// What came of it, for the records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Posted {
    /// The comment.
    comment: PostedComment,
    /// The label, if one was asked for and is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// Why the label is not there, if it is not: the comment is, all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label_error: Option<String>,
}

/// A comment that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PostedComment {
    id: u64,
    url: String,
}

impl Post {
    fn target(&self, host: &str) -> Target {
        Target {
            host: host.to_owned(),
            owner: self.owner.clone(),
            repo: self.repo.clone(),
            number: self.number,
        }
    }

    /// What the comment belongs to.
    fn thread(&self) -> String {
        let issue = || format!("{}/{}#{}", self.owner, self.repo, self.number);
        self.thread
            .clone()
            .unwrap_or_else(issue)
            .to_ascii_lowercase()
    }

    /// Why it cannot be posted, whatever the issue is like.
    fn fault(&self) -> Option<String> {
        if !target::is_owner(&self.owner) || !target::is_repository(&self.repo) || self.number == 0
        {
            return Some("no issue has such an address".to_owned());
        }
        if self.comment.trim().is_empty() {
            return Some("there is nothing in the comment".to_owned());
        }
        // As GitHub may count them: characters beyond the first plane count twice.
        let length = self.comment.encode_utf16().count();
        let most = MAX_COMMENT - marker::ROOM;
        (length > most).then(|| {
            format!(
                "the comment has {length} characters; with the mark under it, GitHub takes {most}"
            )
        })
    }
}

/// The effect.
pub(crate) struct PostTriage {
    github: GitHub,
}

impl Effect for PostTriage {
    type Args = Post;
    type Receipt = Posted;
    const NAME: &'static str = "post_triage";
    const ABOUT: &'static str = "Posts a comment on a GitHub issue, and adds a label to it, once a person has approved both";

    fn describe(&self, post: &Post) -> String {
        let label = match &post.label {
            Some(label) => format!(" and add the label `{label}`"),
            None => String::new(),
        };
        format!(
            "Post a comment of {} characters on issue {}/{}#{} at {}{label}, with the token of the user who runs this. \
             A line that is not shown is put under it, so that it is found again. The comment:\n{}",
            post.comment.chars().count(),
            post.owner,
            post.repo,
            post.number,
            self.github.place(),
            post.comment
        )
    }

    fn subject(&self, post: &Post) -> String {
        format!("issue:{}/{}#{}", post.owner, post.repo, post.number).to_ascii_lowercase()
    }

    /// Where it goes by numbers that no renaming changes, in whose name, in the place of which comment; and how the
    /// issue is. The comment's own arrival changes none of it, so that an attempt that was done in part can be ended.
    async fn resolve(&self, post: &Post) -> Result<Resolved, ToolError> {
        if let Some(fault) = post.fault() {
            return Err(ToolError::bad_args(fault));
        }
        let sight = Sight::of(&self.github, post).await.map_err(unfit)?;
        if let Some(label) = &post.label
            && !sight.has_label(label)
        {
            return Err(ToolError::bad_args(format!(
                "the repository has no label `{label}`, and none is made"
            )));
        }
        if let Some(etag) = &post.etag
            && *etag != sight.etag
        {
            return Err(ToolError::bad_args(format!(
                "{} says something else than when it was read: read it again",
                sight.target
            )));
        }
        Ok(Resolved::new()
            .target(REPOSITORY, sight.repository.to_string())
            .target(ISSUE, sight.issue.to_string())
            .target(AS, sight.viewer.id.to_string())
            .target(COMMENT, sight.in_place_of(post))
            .precondition(STATE, sight.state())
            .precondition(SAID, &sight.etag))
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<Posted, EffectError> {
        if let Some(fault) = warrant.args.fault() {
            return Err(EffectError::nothing_happened(fault));
        }
        // Until something was sent, whatever goes wrong leaves nothing behind.
        let before = |error: Error| EffectError::nothing_happened(error.to_string());
        let sight = Sight::of(&self.github, &warrant.args)
            .await
            .map_err(before)?;
        let acts = sight.viewer.id.to_string();
        if warrant.target(AS) != Some(&acts) {
            return Err(EffectError::nothing_happened(format!(
                "it was approved to be posted by the user {}, and the token is that of the user {acts}",
                warrant.target(AS).unwrap_or("that nobody named")
            )));
        }
        let comment = self.comment(&warrant, &sight).await?;
        let (label, label_error) = match &warrant.args.label {
            None => (None, None),
            Some(label) => match self.label(&warrant, &sight).await {
                Ok(()) => (Some(label.clone()), None),
                Err(error) => (None, Some(error.to_string())),
            },
        };
        Ok(Posted {
            comment,
            label,
            label_error,
        })
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<Posted>, ToolError> {
        let by = attempt.target(AS).and_then(|id| id.parse().ok());
        let sight = match Sight::of(&self.github, &attempt.args).await {
            Ok(sight) => sight,
            // It was deleted, or moved away: what was done there, nobody sees from here.
            Err(Error::GitHub {
                fault: GitHubFault::Deleted | GitHubFault::Moved { .. } | GitHubFault::NotFound,
                ..
            }) => return Ok(Found::CannotTell),
            Err(error) => return Err(error.into()),
        };
        let Some(by) = by else {
            return Ok(Found::CannotTell);
        };
        let action = attempt.marker();
        let mut marked = sight.marked(&action, by);
        let Some(comment) = marked.next() else {
            return Ok(not_there(attempt.times(), attempt.since()));
        };
        // Somebody has changed the text since, or it is there twice: that is for people.
        if marked.next().is_some() || !sight::is_whole(comment) {
            return Ok(Found::CannotTell);
        }
        let Some(comment) = sight::posted(comment) else {
            return Ok(Found::CannotTell);
        };
        Ok(match &attempt.args.label {
            // The comment is found by whoever sends again, and only the label is sent.
            Some(label) if !sight.is_labelled(label) => match attempt.times() {
                ..3 => Found::SendAgain,
                _ => Found::Done(Posted {
                    comment,
                    label: None,
                    label_error: Some("it was not added, though it was tried again".to_owned()),
                }),
            },
            label => Found::Done(Posted {
                comment,
                label: label.clone(),
                label_error: None,
            }),
        })
    }

    fn timeout(&self) -> Duration {
        TOTAL
    }
}

/// That there is nothing there any more to post on is a mistake in what was asked for; anything else may pass.
fn unfit(error: Error) -> ToolError {
    match &error {
        Error::GitHub {
            fault:
                GitHubFault::NotFound
                | GitHubFault::Deleted
                | GitHubFault::IssuesDisabled
                | GitHubFault::Blocked
                | GitHubFault::Moved { .. },
            ..
        } => ToolError::bad_args(error.to_string()),
        _ => ToolError::new(error.to_string()),
    }
}

/// What it means that an attempt left no comment: for a while it may still arrive; then it is sent once more, and if
/// that has left nothing either, a person looks.
fn not_there(times: u64, since: Duration) -> Found<Posted> {
    const LOOK: Duration = Duration::from_secs(15);
    match (TOTAL + GRACE).checked_sub(since) {
        Some(left) if !left.is_zero() => Found::NotYet(left.min(LOOK)),
        _ if times < 3 => Found::SendAgain,
        _ => Found::CannotTell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_found_is_waited_for_sent_again_and_then_left_to_a_person() {
        let at = |times, seconds| not_there(times, Duration::from_secs(seconds));
        assert_eq!(at(1, 0), Found::NotYet(Duration::from_secs(15)));
        assert_eq!(at(1, 235), Found::NotYet(Duration::from_secs(5)));
        assert_eq!(at(1, 240), Found::SendAgain);
        assert_eq!(at(2, 240), Found::SendAgain);
        assert_eq!(at(3, 240), Found::CannotTell);
    }

    #[test]
    fn a_comment_that_is_too_long_with_its_mark_is_refused_before_anybody_is_asked() {
        let post = |comment: String| Post {
            owner: "acme".to_owned(),
            repo: "lamp".to_owned(),
            number: 7,
            comment,
            label: None,
            thread: None,
            etag: None,
        };
        assert_eq!(post("x".repeat(65_286)).fault(), None);
        assert_eq!(post("☀".repeat(65_286)).fault(), None);
        assert_eq!(
            post("😀".repeat(32_644)).fault().as_deref(),
            Some("the comment has 65288 characters; with the mark under it, GitHub takes 65286")
        );
        let elsewhere = Post {
            repo: "..".to_owned(),
            ..post("x".to_owned())
        };
        assert_eq!(
            elsewhere.fault().as_deref(),
            Some("no issue has such an address")
        );
    }
}
