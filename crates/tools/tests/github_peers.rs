//! The client of GitHub, and the server that stands in for it, held to what GitHub says of itself: its description of
//! the interface, by a proxy that checks every request and every answer, and answers that were recorded there.
//!
//! They are fetched by `.ci/github` below `target/github-peers`. Where they are missing these tests skip themselves and
//! say so, or fail where `PARAPH_REQUIRE_SERVICES=1`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![cfg(target_os = "linux")]

mod rude;
mod stand_in;

use paraph_gateway::{
    Approvals, Ask, Gateway, Limits, MemoryStore, Policy, Reply, Scope, ToolCall,
};
use paraph_tools::{
    Base, GitHub, GitHubSettings, IssueQuery, Outbound, OutboundSettings, Target, post_triage,
};
use rude::{missing, program};
use serde_json::{Value, json};
use stand_in::github::{self, TOKEN, World};
use stand_in::{Answer, Seen, StandIn};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Where `.ci/github` puts what it fetches.
fn fetched(path: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let file = target.join("github-peers").join(path);
    if file.exists() {
        return Some(file);
    }
    missing("nothing of GitHub below `target/github-peers`: `.ci/github` fetches it");
    None
}

/// The proxy. Dropped, it is gone.
struct Proxy {
    child: Child,
    url: String,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Proxy {
    /// In front of this server, once it listens.
    fn start(upstream: &str) -> Option<Proxy> {
        let description = fetched("github.json")?;
        let script = fetched("node_modules/@stoplight/prism-cli/dist/index.js")?;
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new(program("node")?)
            .arg(script)
            .args([
                "proxy",
                "--errors",
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
            ])
            .arg(description)
            .arg(upstream)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listens = lines.any(|line| line.is_ok_and(|line| line.contains("listening")));
        assert!(listens, "the proxy ended before it listened");
        // Whatever else it says is read, so that it is never kept from saying it.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("http://127.0.0.1:{port}");
        Some(Proxy { child, url })
    }
}

fn client(url: &str) -> GitHub {
    let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
    let settings = GitHubSettings::new(Base::new(url).unwrap(), Some(TOKEN.into()));
    GitHub::new(&outbound, settings).unwrap()
}

fn lamp(number: u64) -> Target {
    let address = format!("https://github.com/acme/lamp/issues/{number}");
    Target::parse(&address, &["github.com"]).unwrap()
}

#[tokio::test]
async fn every_request_and_every_answer_is_as_github_describes_it() {
    let mut described = github::lamp();
    let comments: Vec<Value> = (0..101)
        .map(|n| json!({"id": 1_000 + n, "user": "otto", "body": "+1"}))
        .collect();
    described["repositories"][0]["issues"][0]["comments"] = json!(comments);
    let commit = json!({"event": "closed", "actor": "ida", "commit": "b".repeat(40)});
    let events = &mut described["repositories"][0]["issues"][0]["events"];
    events.as_array_mut().unwrap().push(commit);
    described["repositories"][0]["commits"] = json!([{"sha": "b".repeat(40), "checks": [], "statuses": [{"context": "x", "state": "pending"}]}]);
    // The proxy takes a path in a path for no part of it: what lies in a folder it calls unknown.
    described["repositories"][0]["files"] = json!({"CODEOWNERS": "* @acme/light\n"});
    let server = github::GitHub::start(described.clone());
    let Some(proxy) = Proxy::start(&server.url()) else {
        return;
    };
    server.world(|world| *world = World::new(described, &proxy.url));
    let github = client(&proxy.url);
    let evidence = github.evidence(&lamp(7)).await.unwrap();
    assert_eq!(
        evidence["incomplete"],
        json!([]),
        "what the proxy refuses is missing"
    );
    assert_eq!(evidence["comments"].as_array().unwrap().len(), 101);
    assert_eq!(
        evidence["pulls"][0]["check_runs"][0]["conclusion"],
        "failure"
    );
    assert_eq!(evidence["pulls"][1]["statuses"][0]["state"], "pending");
    assert_eq!(evidence["codeowners"]["path"], "CODEOWNERS");
    let page = github
        .issues("acme/lamp", &IssueQuery::default())
        .await
        .unwrap();
    assert_eq!(page.issues.len(), 3);

    for (thread, comment) in [("one", "Which bulb?"), ("two", "Thank you.")] {
        let post = json!({
            "owner": "acme", "repo": "lamp", "number": 7, "comment": comment, "label": "needs-triage",
        });
        let done = posted(&github, thread, &post).await;
        assert_eq!(done["label"], "needs-triage", "{done}");
    }
    let sent = |method: &str| server.sent(method).len();
    assert_eq!((sent("POST"), sent("PATCH")), (2, 1));
}

/// Proposes it, approves it, and does it.
async fn posted(github: &GitHub, thread: &str, post: &Value) -> Value {
    let store = MemoryStore::shared();
    let gateway = Gateway::builder(store.clone())
        .dynamic(post_triage(github))
        .policy(Policy::new().ask("post_triage", Ask::default()))
        .build()
        .unwrap();
    let scope = Scope::new("triage", thread);
    // Each request waits for the proxy, which is slow.
    let limits = Limits {
        seconds: 300,
        ..Limits::default()
    };
    let session = gateway.session(scope, limits).await.unwrap();
    let call = ToolCall::native("post_triage", &post.to_string());
    let asked = session.call("k", &call).await.unwrap();
    let Reply::Waiting(question) = asked else {
        panic!("nobody was asked: {asked:?}")
    };
    let desk = Approvals::new(store);
    desk.approve(question.action, &question.digest, "ann")
        .await
        .unwrap();
    match session.call("k", &call).await.unwrap() {
        Reply::Observed(seen) if seen.ok() => serde_json::from_str(&seen.content).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A server that gives recorded answers: those of one recording by method and path, and the first page of a listing
/// also to whoever asks for it with another query.
fn recorded(name: &str) -> Option<StandIn> {
    let file = fetched(&format!(
        "node_modules/@octokit/fixtures/scenarios/api.github.com/{name}/normalized-fixture.json"
    ))?;
    let steps: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let own: Arc<Mutex<String>> = Arc::default();
    let url = own.clone();
    let server = StandIn::start(move |seen: &Seen| {
        let method = seen.method.to_ascii_lowercase();
        let fits =
            |step: &&Value, target: &str| step["method"] == *method && step["path"] == *target;
        let whole = steps.iter().find(|step| fits(step, &seen.target));
        let by_path = || {
            steps.iter().find(|step| {
                let path = step["path"].as_str().unwrap();
                step["method"] == *method && path.split('?').next() == Some(seen.path())
            })
        };
        let Some(step) = whole.or_else(by_path) else {
            return Answer::json(404, &json!({"message": "Not Found"}));
        };
        let url = url.lock().unwrap().clone();
        let text = step["response"]
            .to_string()
            .replace("https://api.github.com", &url);
        let status = u16::try_from(step["status"].as_u64().unwrap()).unwrap();
        let mut answer = Answer::new(status, "application/json", text);
        for name in [
            "link",
            "location",
            "etag",
            "date",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ] {
            let value = match &step["headers"][name] {
                Value::String(value) => value.replace("https://api.github.com", &url),
                Value::Null => continue,
                value => value.to_string(),
            };
            answer = answer.with(name, &value);
        }
        answer
    });
    *own.lock().unwrap() = server.url();
    Some(server)
}

#[tokio::test]
async fn recorded_pages_are_read_to_the_last() {
    let Some(server) = recorded("paginate-issues") else {
        return;
    };
    let github = client(&server.url());
    let mut query = IssueQuery::default();
    let mut titles = Vec::new();
    for _ in 0..5 {
        let page = github
            .issues("octokit-fixture-org/paginate-issues", &query)
            .await
            .unwrap();
        titles.extend(page.issues.iter().map(|issue| issue["title"].clone()));
        query.page = page.next;
    }
    assert_eq!((titles.len(), query.page), (13, None));
}

#[tokio::test]
async fn a_recorded_rename_is_followed_by_reads() {
    let Some(server) = recorded("rename-repository") else {
        return;
    };
    let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
    let github = GitHub::new(
        &outbound,
        GitHubSettings::new(Base::new(&server.url()).unwrap(), None),
    )
    .unwrap();
    // The recording has no issue: what is asked for first is not there, and that is what is told.
    let address = "https://github.com/octokit-fixture-org/rename-repository/issues/1";
    let target = Target::parse(address, &["github.com"]).unwrap();
    let error = github.evidence(&target).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "octokit-fixture-org/rename-repository#1: GitHub has none, or the token may not see it (404)"
    );
    let name = github
        .full_name("octokit-fixture-org/rename-repository")
        .await
        .unwrap();
    assert_eq!(name, "octokit-fixture-org/rename-repository-newname");
}
