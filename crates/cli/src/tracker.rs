//! GitHub as a source of issues for the corpus.
//!
//! The corpus's commands ask here. The client waits for GitHub's limits by itself; nothing but issues comes out.

use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use futures::future::BoxFuture;
use paraph_retrieval::{Document, Error, IssueSource, IssueState, Page, PageRequest};
use paraph_tools::{Base, GitHub, GitHubSettings, IssueQuery};
use serde_json::Value;

/// Reads issues in the name of the settings' token, if there is one.
pub(crate) fn source(config: &Config) -> Result<Box<dyn IssueSource>, Failure> {
    const API: &str = "github.api_url";
    let Some(api) = config.get(API)? else {
        return Err(Failure::usage(
            "there is no address of GitHub: set GITHUB_API_URL",
        ));
    };
    let base = Base::new(&api.text).map_err(|error| api.wrong(API, error))?;
    let token = config.get("github.token")?;
    if token.is_none() {
        note("without GITHUB_TOKEN, GitHub answers few requests an hour");
    }
    let settings = GitHubSettings::new(base, token.map(|found| found.text.into()));
    let github = GitHub::new(&crate::tools::outbound(config)?, settings);
    Ok(Box::new(Tracker(github.map_err(Failure::usage)?)))
}

struct Tracker(GitHub);

impl IssueSource for Tracker {
    fn page<'a>(&'a self, request: &'a PageRequest) -> BoxFuture<'a, Result<Page, Error>> {
        Box::pin(async move {
            let query = IssueQuery {
                // One that was closed since has to be seen, whatever is kept.
                state: match request.closed || request.since.is_some() {
                    true => None,
                    false => Some("open".to_owned()),
                },
                since: request.since.clone(),
                page: request.page.clone(),
                ..IssueQuery::default()
            };
            let page = self.0.issues(&request.repo, &query).await;
            let page = page.map_err(Error::source)?;
            let mut documents = Vec::new();
            for issue in &page.issues {
                let mut document = document(&request.repo, issue);
                if request.closed && document.state == IssueState::Closed {
                    let said = self.0.closing_comments(&request.repo, issue).await;
                    let said = said.map_err(Error::source)?.join("\n\n");
                    document.resolution = (!said.is_empty()).then_some(said);
                }
                documents.push(document);
            }
            Ok(Page {
                documents,
                gone: Vec::new(),
                next: page.next,
            })
        })
    }
}

/// An issue as GitHub gives it. What is missing stays empty, and is refused where it is needed.
fn document(repo: &str, issue: &Value) -> Document {
    let text = |key: &str| {
        let value = issue.get(key).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let labels = issue.get("labels").and_then(Value::as_array);
    let label = |label: &Value| label.get("name").and_then(Value::as_str).map(str::to_owned);
    Document {
        repo: repo.to_owned(),
        number: issue
            .get("number")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        title: text("title"),
        body: text("body"),
        resolution: None,
        url: text("html_url"),
        state: match text("state").as_str() {
            "closed" => IssueState::Closed,
            _ => IssueState::Open,
        },
        updated_at: text("updated_at"),
        labels: labels.into_iter().flatten().filter_map(label).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_issue_of_github_is_a_document_of_the_repository_that_was_asked_for() {
        let issue = json!({
            "number": 7,
            "title": "It sinks",
            "body": null,
            "html_url": "https://github.com/acme/boats/issues/7",
            "state": "closed",
            "updated_at": "2026-01-31T12:00:00Z",
            "labels": [{"name": "bug"}, {"id": 1}],
        });
        let expected = Document {
            repo: "Acme/Boats".into(),
            number: 7,
            title: "It sinks".into(),
            url: "https://github.com/acme/boats/issues/7".into(),
            state: IssueState::Closed,
            updated_at: "2026-01-31T12:00:00Z".into(),
            labels: vec!["bug".into()],
            ..Document::default()
        };
        assert_eq!(document("Acme/Boats", &issue), expected);
    }
}
