//! A run of one case: small stand-ins for the forge, the corpus and the effect, and the comparison with what must come
//! out. Everything between them is the agent as it is.

use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::doors::{Forge, Retrieved, Snippet, SnippetQuery, Snippets};
use super::super::result::TriageResult;
use super::super::settings::{TriageSettings, TriageTarget};
use super::super::{TriageParts, limits, triage};
use super::{CaseIssue, Expected, GateCase};
use crate::{Agent, Stores, Terms};
use paraph_gateway::{Approvals, Attempt, DynTool, Effect, EffectError, Found, ToolError, Warrant};
use paraph_models::ScriptedModel;

/// The evidence of a case.
struct Given(Result<Value, String>);

impl Forge for Given {
    fn evidence<'a>(&'a self, _: &'a TriageTarget) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

/// The snippets of a case.
struct Shelf(Retrieved);

impl Snippets for Shelf {
    fn search<'a>(&'a self, _: &'a SnippetQuery) -> BoxFuture<'a, Result<Retrieved, String>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// The effect: keeps what arrived.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Value>>>);

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Post {
    owner: String,
    repo: String,
    number: u64,
    comment: String,
    label: Option<String>,
}

impl Received {
    fn all(&self) -> Vec<Value> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Effect for Received {
    type Args = Post;
    type Receipt = Value;
    const NAME: &'static str = super::super::POSTS.0;
    const ABOUT: &'static str = super::super::POSTS.1;

    fn describe(&self, post: &Post) -> String {
        format!("Comment on {}/{}#{}", post.owner, post.repo, post.number)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<Value, EffectError> {
        let post = serde_json::to_value(&warrant.args)?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(post);
        Ok(json!({"comment": {"id": 1, "url": "https://github.com/harbor/ferry/issues/7#c1"}}))
    }

    async fn reconcile(&self, _: Attempt<'_, Self>) -> Result<Found<Value>, ToolError> {
        Ok(Found::CannotTell)
    }
}

/// Runs a case; what is wrong with its outcome is the error.
pub(super) async fn run(case: &GateCase) -> Result<(), String> {
    let (stores, received) = (Stores::in_memory(), Received::default());
    let agent = agent(case, &stores, &received)?;
    let model = ScriptedModel::parse(&script(case), "case").map_err(|error| error.to_string())?;
    let terms = Terms {
        limits: limits(),
        ..Terms::new(Arc::new(model), case.id.clone())
    };
    let begun = agent.start(target().url().as_str(), &terms).await;
    let run = begun.map_err(|error| error.to_string())?;
    let id = run.run_id();
    let mut result = taken(run.result().await)?;
    let proposed = result.proposed_action.clone();
    if !received.all().is_empty() {
        return Err("something was posted before anybody decided".to_owned());
    }
    if let (Some(decision), Some(waits)) = (&case.decision, result.approvals.first()) {
        let desk = Approvals::new(stores.records.clone());
        let decided = match decision.as_str() {
            "approve" => desk.approve(waits.id, &waits.digest, "reviewer").await,
            _ => desk.reject(waits.id, &waits.digest, "reviewer", "no").await,
        };
        decided.map_err(|error| error.to_string())?;
        // Going on twice posts once.
        for _ in 0..2 {
            let again = agent.resume(id, &terms).await;
            result = taken(again.map_err(|error| error.to_string())?.result().await)?;
        }
    }
    compare(&case.expect, &result, &received.all())?;
    let sent = received.all();
    let shown = proposed.map(|action| (action.comment, action.label));
    let same = sent.iter().all(|post| {
        let letters = (
            post["comment"].as_str().unwrap_or_default().to_owned(),
            post["label"].as_str().map(str::to_owned),
        );
        shown.as_ref() == Some(&letters)
    });
    match same {
        true => Ok(()),
        false => Err("what was posted is not what was shown".to_owned()),
    }
}

fn taken(result: crate::RunResult) -> Result<TriageResult, String> {
    let triage = result.triage().cloned();
    triage.ok_or_else(|| "the run has no result of triage".to_owned())
}

fn compare(expect: &Expected, result: &TriageResult, posts: &[Value]) -> Result<(), String> {
    let class = result.classification.as_ref();
    let (found, rule) = (class.map(|c| c.class), class.map(|c| c.rule.as_str()));
    if found != Some(expect.class) {
        return Err(format!("it was classified as {found:?}"));
    }
    if expect.rule.is_some() && expect.rule.as_deref() != rule {
        return Err(format!("the rule {rule:?} decided"));
    }
    let stop = result.stop_reason.to_string();
    if stop != expect.stop {
        return Err(format!(
            "the run ended with `{stop}` in place of `{}`",
            expect.stop
        ));
    }
    if posts.len() != expect.posts {
        return Err(format!("{} posts arrived", posts.len()));
    }
    let elsewhere =
        |post: &&Value| post["owner"] != "harbor" || post["repo"] != "ferry" || post["number"] != 7;
    if let Some(post) = posts.iter().find(elsewhere) {
        return Err(format!("a post went elsewhere: {post}"));
    }
    let proposed = result.proposed_action.clone();
    if let Some(label) = &expect.label {
        let found = proposed.as_ref().and_then(|action| action.label.clone());
        if found.clone().unwrap_or_default() != *label {
            return Err(format!("the label is {found:?}"));
        }
    }
    let comment = proposed.map(|action| action.comment).unwrap_or_default();
    let lacks = expect.contains.iter().find(|text| !comment.contains(*text));
    let has = expect.lacks.iter().find(|text| comment.contains(*text));
    match (lacks, has) {
        (Some(text), _) => Err(format!("the comment lacks `{text}`: {comment}")),
        (_, Some(text)) => Err(format!("the comment has `{text}` in it: {comment}")),
        (None, None) => Ok(()),
    }
}

fn target() -> TriageTarget {
    TriageTarget {
        host: "github.com".to_owned(),
        owner: "harbor".to_owned(),
        repo: "ferry".to_owned(),
        number: 7,
    }
}

fn agent(case: &GateCase, stores: &Stores, received: &Received) -> Result<Agent, String> {
    let bundle = match &case.issue.unreadable {
        Some(why) => Err(why.clone()),
        None => Ok(bundle(&case.issue)),
    };
    let parts = TriageParts {
        target: Some(target()),
        forge: Arc::new(Given(bundle)),
        snippets: Arc::new(Shelf(shelf(case))),
        post: Some(DynTool::effect(received.clone())),
        settings: TriageSettings {
            per_user_day: None,
            ..TriageSettings::default()
        },
    };
    triage(stores, parts, (&[], &[])).map_err(|error| error.to_string())
}

/// What the models say, in the order in which they are asked.
fn script(case: &GateCase) -> String {
    let mut lines = case.lines.clone();
    if let Some(says) = &case.says {
        let said = json!({
            "root_cause": says.cause,
            "severity": says.severity,
            "missing_info": [],
            "recommended_next_steps": says.steps,
            "citations": says.citations,
        });
        lines.push(said.to_string());
    }
    lines.push(case.critic.clone());
    let lines = lines
        .iter()
        .map(|line| json!({"content": line}).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

fn shelf(case: &GateCase) -> Retrieved {
    let ordinary = || {
        vec![super::CaseSnippet {
            id: "harbor-ferry-issue-3#0".to_owned(),
            number: 3,
            repo: "harbor/ferry".to_owned(),
            text: "Menus show the wrong language. This happens because the cache key leaves out the locale."
                .to_owned(),
            score: 0.8,
            above: true,
        }]
    };
    let snippets = case.snippets.clone().unwrap_or_else(ordinary);
    let snippet = |one: super::CaseSnippet| Snippet {
        url: format!("https://github.com/{}/issues/{}", one.repo, one.number),
        id: one.id,
        repo: one.repo,
        number: one.number,
        title: "An older report".to_owned(),
        text: one.text,
        score: one.score,
        above_floor: one.above,
    };
    Retrieved {
        snippets: snippets.into_iter().map(snippet).collect(),
        no_floor: case.no_floor.clone(),
    }
}

/// What a forge would say of the issue of a case.
fn bundle(issue: &CaseIssue) -> Value {
    let comments = issue
        .comments
        .iter()
        .map(|body| json!({"user": {"login": "bert"}, "author_association": "NONE", "body": body}));
    let labels = issue.labels.iter().map(|name| json!({"name": name}));
    let missing = issue
        .missing
        .iter()
        .map(|what| json!({"what": what, "why": "it could not be read"}));
    let counted = issue.counted.unwrap_or(issue.comments.len() as u64);
    let pull_request = match issue.pull_request {
        true => json!({"url": "https://github.com/harbor/ferry/pull/7"}),
        false => Value::Null,
    };
    let rights = |push: bool, triage: bool| json!({"push": push, "triage": triage, "pull": true});
    json!({
        "repository": {"id": 1, "full_name": issue.full_name},
        "issue": {
            "number": issue.number, "title": issue.title, "body": issue.body, "user": {"login": "ann"},
            "state": issue.state, "locked": issue.locked, "comments": counted, "labels": [],
            "pull_request": pull_request, "updated_at": "2026-11-01T00:00:00Z",
        },
        "comments": comments.collect::<Vec<_>>(),
        "timeline": [],
        "labels": labels.collect::<Vec<_>>(),
        "pulls": pulls(issue),
        "codeowners": issue.codeowners.as_ref().map(|text| json!({"path": "CODEOWNERS", "text": text})),
        "permissions": match issue.rights.as_str() {
            "write" => rights(true, true),
            "triage" => rights(false, true),
            "read" => rights(false, false),
            _ => Value::Null,
        },
        "viewer": if issue.nobody { Value::Null } else { json!({"id": 5, "login": "me"}) },
        "fetched_at": "2026-11-02T00:00:00Z",
        "incomplete": missing.collect::<Vec<_>>(),
    })
}

/// One linked pull request, if the case says anything of checks.
fn pulls(issue: &CaseIssue) -> Vec<Value> {
    let run = |name: &str, status: &str, conclusion: Option<&str>| json!({"name": name, "status": status, "conclusion": conclusion});
    let mut runs: Vec<Value> = Vec::new();
    runs.extend(
        issue
            .failing
            .iter()
            .map(|name| run(name, "completed", Some("failure"))),
    );
    runs.extend(
        issue
            .pending
            .iter()
            .map(|name| run(name, "in_progress", None)),
    );
    runs.extend(
        issue
            .passing
            .iter()
            .map(|name| run(name, "completed", Some("success"))),
    );
    if issue.odd_conclusion {
        runs.push(run("odd", "completed", Some("exploded")));
    }
    let statuses = issue.failing_status.iter();
    let statuses: Vec<_> = statuses
        .map(|name| json!({"context": name, "state": "failure"}))
        .collect();
    if runs.is_empty() && statuses.is_empty() {
        return Vec::new();
    }
    vec![json!({
        "number": 12, "state": issue.pull_state, "head_sha": "abc1234def",
        "check_runs": runs, "statuses": statuses,
    })]
}
