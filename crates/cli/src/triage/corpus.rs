//! The corpus that triage looks for related issues in: that of the store, or that of the rehearsal, which is made of the
//! stand-in's closed issues.

use super::NoCorpus;
use super::forge::Place;
use crate::config::Config;
use crate::failure::Failure;
use crate::stores::Kept;
use futures::future::BoxFuture;
use paraph_agents::{
    Retrieved, SampleIssue, SampleSnippets, Snippet, SnippetQuery, Snippets, TriageTarget,
};
use paraph_retrieval::{Error, FloorKind, IssueRef, Query, Retriever};
use serde_json::Value;
use std::sync::Arc;

/// The last number that a closed issue of the rehearsal has.
const LAST: u64 = 60;

/// Where snippets come from.
pub(super) async fn snippets(
    config: &Config,
    kept: Option<&Kept>,
    (place, target): (&Place, &TriageTarget),
) -> Result<Arc<dyn Snippets>, Failure> {
    if place.is_rehearsal() {
        return Ok(Arc::new(SampleSnippets::new(closed(place, target).await)));
    }
    Ok(match kept {
        Some(kept) => Arc::new(Stored(crate::corpus::retriever(config, kept)?)),
        None => Arc::new(NoCorpus("no corpus is open".to_owned())),
    })
}

/// The corpus of the store.
struct Stored(Retriever);

impl Snippets for Stored {
    fn search<'a>(&'a self, query: &'a SnippetQuery) -> BoxFuture<'a, Result<Retrieved, String>> {
        Box::pin(async move { self.found(query).await.map_err(|error| error.to_string()) })
    }
}

impl Stored {
    async fn found(&self, asked: &SnippetQuery) -> Result<Retrieved, Error> {
        let repo = format!("{}/{}", asked.target.owner, asked.target.repo);
        let query = Query {
            k: usize::try_from(asked.count).unwrap_or(usize::MAX),
            exclude: vec![IssueRef::new(&repo, asked.target.number)],
            ..Query::new(asked.text.clone())
        };
        let hits = self.0.search(&query).await?;
        let floors = self.0.floors().await?;
        let lexical = match hits.first() {
            Some(hit) => hit.cosine.is_none(),
            None => self.0.embedder().is_none(),
        };
        // A floor that was fitted for something else is none.
        let no_floor = match floors.floor(FloorKind::Topical, lexical) {
            Ok(Ok(floor)) if floor.value.is_some() => None,
            Ok(Ok(floor)) => Some(floor.why.clone().unwrap_or_default()),
            Ok(Err(why)) => Some(why),
            Err(error) => Some(error.to_string()),
        };
        let snippets = hits.into_iter().map(|hit| {
            let gate = floors.gate(FloorKind::Topical, &hit);
            Snippet {
                score: hit.relevance(),
                above_floor: gate.is_ok_and(|gate| gate.passes()),
                id: hit.chunk.id,
                repo: hit.chunk.repo,
                number: hit.chunk.number,
                title: hit.chunk.title,
                url: hit.chunk.url,
                text: hit.chunk.text,
            }
        });
        Ok(Retrieved {
            snippets: snippets.collect(),
            no_floor,
        })
    }
}

/// The closed issues of the rehearsal's repository, with what its maintainers wrote on them.
async fn closed(place: &Place, target: &TriageTarget) -> Vec<SampleIssue> {
    let mut all = Vec::new();
    for number in 1..=LAST {
        let one = TriageTarget {
            number,
            ..target.clone()
        };
        if let Ok(bundle) = place.bundle(&one).await {
            all.extend(issue(&one, &bundle));
        }
    }
    all
}

fn issue(target: &TriageTarget, bundle: &Value) -> Option<SampleIssue> {
    let issue = &bundle["issue"];
    if issue["state"] != "closed" || issue["pull_request"].is_object() {
        return None;
    }
    let mut text = issue["body"].as_str().unwrap_or_default().to_owned();
    for comment in bundle["comments"].as_array().into_iter().flatten() {
        let by = comment["author_association"].as_str();
        if matches!(by, Some("OWNER" | "MEMBER" | "COLLABORATOR")) {
            text.push_str("\n\n");
            text.push_str(comment["body"].as_str().unwrap_or_default());
        }
    }
    Some(SampleIssue {
        repo: format!("{}/{}", target.owner, target.repo),
        number: target.number,
        title: issue["title"].as_str()?.to_owned(),
        text,
        url: target.url(),
    })
}
