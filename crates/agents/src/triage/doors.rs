//! What triage needs from outside, as two narrow doors: the evidence about an issue, and snippets of a corpus. The
//! program implements them over its GitHub client and its corpus; tests over small fakes. Neither can write.

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::settings::TriageTarget;

/// Where the evidence about an issue comes from, read with the rights of the user for whom the run acts.
pub trait Forge: Send + Sync {
    /// Everything that is known about the issue, as one JSON object with GitHub's own field names. What is missing is
    /// named under `incomplete`.
    ///
    /// The error is a sentence for people: why nothing could be read. It holds no secret.
    fn evidence<'a>(&'a self, target: &'a TriageTarget) -> BoxFuture<'a, Result<Value, String>>;
}

/// What is looked for in a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnippetQuery {
    /// The title and text.
    pub text: String,
    /// How many snippets.
    pub count: u64,
    /// The analysed issue, which is never among them.
    pub target: TriageTarget,
}

/// Where snippets come from.
pub trait Snippets: Send + Sync {
    /// The snippets that fit best, the best first.
    ///
    /// The error is a sentence for people: why nothing could be looked for.
    fn search<'a>(&'a self, query: &'a SnippetQuery) -> BoxFuture<'a, Result<Retrieved, String>>;
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retrieved {
    /// The snippets, the best first.
    pub snippets: Vec<Snippet>,
    /// Why there is no floor that could be applied, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_floor: Option<String>,
}

/// A piece of an issue of the corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snippet {
    /// Its name, which citations use.
    pub id: String,
    /// `owner/repo` of its issue.
    pub repo: String,
    /// The number of its issue.
    pub number: u64,
    /// The title of its issue.
    pub title: String,
    /// The address of its issue.
    pub url: String,
    /// Its text.
    pub text: String,
    /// How relevant it is, on the scale that the floor is on.
    pub score: f64,
    /// Whether it is above the floor; never, if there is none.
    pub above_floor: bool,
}

impl Retrieved {
    /// The ids, the best first.
    pub(crate) fn ids(&self) -> Vec<String> {
        let ids = self.snippets.iter().map(|snippet| snippet.id.clone());
        ids.collect()
    }

    /// The scores by id.
    pub(crate) fn scores(&self) -> BTreeMap<String, f64> {
        let scores = self.snippets.iter();
        scores
            .map(|snippet| (snippet.id.clone(), snippet.score))
            .collect()
    }

    /// The snippet of this id.
    pub(crate) fn get(&self, id: &str) -> Option<&Snippet> {
        self.snippets.iter().find(|snippet| snippet.id == id)
    }
}
