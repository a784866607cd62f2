//! What the nodes of a triage run share, and the tools that they call: two that read, made over the program's doors, and
//! the program's own that posts. Every call passes the gateway, so that a run which goes on repeats nothing.

use std::sync::Arc;

use super::day;
use super::doors::{Forge, Retrieved, SnippetQuery, Snippets};
use super::settings::{TriageSettings, TriageTarget};
use crate::AgentEventData;
use crate::asking::{Asking, Early, Unfinished};
use crate::calling::Called;
use crate::outcome::TraceRow;
use crate::research::short;
use crate::teller::Teller;
use crate::waits::Waits;
use futures::future::BoxFuture;
use paraph_gateway::{
    ActionRow, DynTool, Find, Injections, Json, Observation, Stop, ToolCall, ToolError, ToolOutput,
};
use paraph_graph::{Ctx, NodeError};
use serde_json::{Value, json};

/// The tool that reads everything about the issue.
pub(super) const FETCH: &str = "fetch_issue";
/// The tool that looks for related issues.
pub(super) const SEARCH: &str = "find_related_issues";
/// The tool that posts; the program brings it.
pub(super) const POST: &str = "post_triage";

/// How long reading an issue with all its pages may take.
const FETCH_TIME: std::time::Duration = std::time::Duration::from_secs(180);

/// The longest text of a snippet, in characters.
const LONGEST_SNIPPET: usize = 4_000;

/// What the nodes share.
pub(super) struct Desk {
    pub(super) settings: TriageSettings,
    /// The one issue; nothing for an agent that is only looked at.
    pub(super) target: Option<TriageTarget>,
    pub(super) records: Arc<dyn paraph_gateway::Store>,
}

impl Desk {
    /// The issue of this run, if it is the one that the agent was opened for.
    pub(super) fn target(&self, url: &str) -> Result<&TriageTarget, Stop> {
        let target = self.target.as_ref().filter(|target| target.url() == url);
        target.ok_or_else(|| {
            Stop::Internal(format!(
                "the agent was not opened for the issue of its run: {url}"
            ))
        })
    }

    /// Counts the analysis against its user's day, once for each run.
    pub(super) async fn count(&self, asking: &Asking<'_>) -> Result<(), Stop> {
        let Some(limit) = self.settings.per_user_day else {
            return Ok(());
        };
        day::count(&*self.records, asking.session.scope(), limit).await
    }

    /// The action that was made of the call of this key, in its newest form.
    pub(super) async fn action(
        &self,
        asking: &Asking<'_>,
        key: &str,
    ) -> Result<Option<ActionRow>, NodeError> {
        let run = asking.session.scope().run_ref();
        let rows = self.records.actions(Find::Run(&run)).await;
        let rows =
            rows.map_err(|error| NodeError::from(Unfinished(Stop::StoreError(error.to_string()))))?;
        let of_key = rows.into_iter().filter(|row| row.action.said.key == key);
        Ok(of_key.filter(|row| row.replaced_by.is_none()).last())
    }
}

/// Makes one call at the gateway.
pub(super) async fn call(
    asking: &Asking<'_>,
    (ctx, key): (&Ctx, Option<&str>),
    (tool, args): (&str, &Value),
) -> Result<(TraceRow, Result<Observation, Stop>), NodeError> {
    let call = ToolCall::native(tool, &args.to_string());
    let keyed = Keyed {
        ctx,
        key: key.map_or_else(|| ctx.key("call"), str::to_owned),
    };
    let calling = asking.calling(asking.session.budget().used().steps);
    let injections = Injections::new().with(ctx);
    Ok(
        match calling.make(&keyed, (&call, tool), injections).await? {
            Called::Seen(row, seen) => match &seen.failure {
                None => (row, Ok(seen)),
                Some(failure) => {
                    let stop = Stop::Failed(failure.clone());
                    (row, Err(stop))
                }
            },
            Called::Stopped(row, stop) => (row, Err(stop)),
        },
    )
}

/// A node's context whose call has a key of another node's: the call is proposed in one and done in another.
struct Keyed<'c> {
    ctx: &'c Ctx,
    key: String,
}

impl Teller for Keyed<'_> {
    fn emit(&self, data: AgentEventData) -> BoxFuture<'_, Result<(), NodeError>> {
        Teller::emit(self.ctx, data)
    }

    fn chunk<'a>(&'a self, id: &'a str, shown: Value) -> BoxFuture<'a, ()> {
        Teller::chunk(self.ctx, id, shown)
    }

    fn call_key(&self) -> String {
        self.key.clone()
    }

    fn wait(&self, waits: &Waits) -> NodeError {
        Teller::wait(self.ctx, waits)
    }
}

/// Why a reading call failed, in words, if that is no end of the run by itself.
pub(super) fn unread(stop: Stop) -> Result<String, Early> {
    match stop {
        Stop::Failed(failure) => Ok(failure.tell()),
        stop => Err(stop.into()),
    }
}

/// The tool that reads the issue. Which one it is, it knows from the program alone; there is nothing to say to it.
pub(super) fn fetch_tool(forge: Arc<dyn Forge>, target: Option<TriageTarget>) -> DynTool {
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let about = "Reads the issue, its comments, checks, labels and owners";
    let mut tool = DynTool::new(FETCH, about, nothing, move |_: Json| {
        let (forge, target) = (forge.clone(), target.clone());
        async move {
            let target = target.ok_or_else(|| ToolError::new("no issue was named"))?;
            let bundle = forge.evidence(&target).await.map_err(ToolError::new)?;
            let said = format!("read {}", target.short());
            ToolOutput::text(&said).artifact(&bundle)
        }
    });
    tool.timeout = FETCH_TIME;
    tool
}

/// The tool that looks for related issues. The query is the program's.
pub(super) fn search_tool(
    snippets: Arc<dyn Snippets>,
    target: Option<TriageTarget>,
    count: u64,
) -> DynTool {
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 1}},
        "required": ["query"],
        "additionalProperties": false,
    });
    let about = "Finds passages of older issues that fit a text";
    DynTool::new(SEARCH, about, schema, move |args: Json| {
        let (snippets, target) = (snippets.clone(), target.clone());
        async move {
            let target = target.ok_or_else(|| ToolError::new("no issue was named"))?;
            let args: Value = serde_json::from_str(&args.to_string())?;
            let query = SnippetQuery {
                text: args["query"].as_str().unwrap_or_default().to_owned(),
                count,
                target: target.clone(),
            };
            let found = snippets.search(&query).await.map_err(ToolError::new)?;
            let found = bounded(found, &target, count);
            let said = format!("{} snippets", found.snippets.len());
            ToolOutput::text(&said).artifact(&found)
        }
    })
}

/// What a search found, without the analysed issue, without a second piece of one name, and not more than was wanted.
fn bounded(found: Retrieved, target: &TriageTarget, count: u64) -> Retrieved {
    let mut kept = Retrieved {
        snippets: Vec::new(),
        no_floor: found.no_floor,
    };
    for mut snippet in found.snippets {
        let full = kept.snippets.len() as u64 >= count;
        let known = kept.get(&snippet.id).is_some();
        if full || known || target.is_itself(&snippet.repo, snippet.number) {
            continue;
        }
        let mut unseen = Vec::new();
        let text = super::hidden::visible("snippet", &snippet.text, &mut unseen);
        snippet.text = short(&text, LONGEST_SNIPPET);
        snippet.title = super::hidden::visible_line("snippet", &snippet.title, &mut unseen);
        kept.snippets.push(snippet);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::doors::Snippet;
    use super::*;

    #[test]
    fn what_is_found_is_bounded_and_never_the_issue_itself() {
        let snippet = |id: &str, number| Snippet {
            id: id.into(),
            repo: "Harbor/Ferry".into(),
            number,
            title: "a\nb".into(),
            url: "u".into(),
            text: "seen <!-- hidden -->".into(),
            score: 0.9,
            above_floor: true,
        };
        let target = TriageTarget {
            host: "h".into(),
            owner: "harbor".into(),
            repo: "ferry".into(),
            number: 7,
        };
        let found = Retrieved {
            snippets: vec![
                snippet("self", 7),
                snippet("a", 1),
                snippet("a", 1),
                snippet("b", 2),
                snippet("c", 3),
            ],
            no_floor: None,
        };
        let kept = bounded(found, &target, 2);
        assert_eq!(kept.ids(), ["a", "b"]);
        let first = kept.get("a").unwrap();
        assert_eq!((first.title.as_str(), first.text.trim()), ("a b", "seen"));
    }
}
