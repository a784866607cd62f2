//! The client of GitHub against a server that answers as GitHub does: what evidence contains, and what each fault of
//! the other side turns into.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stand_in;

use paraph_tools::{
    Base, Error, GitHub, GitHubFault, GitHubSettings, IssuePage, IssueQuery, Outbound,
    OutboundSettings, Target,
};
use serde_json::{Value, json};
use stand_in::github::{self, TOKEN};
use stand_in::{Answer, Manner, Seen};

fn client(server: &github::GitHub, token: Option<&str>) -> GitHub {
    let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
    let base = Base::new(&server.url()).unwrap();
    let token = token.map(Into::into);
    GitHub::new(&outbound, GitHubSettings::new(base, token)).unwrap()
}

fn issue(number: u64) -> Target {
    let address = format!("https://github.com/acme/lamp/issues/{number}");
    Target::parse(&address, &["github.com"]).unwrap()
}

async fn evidence(server: &github::GitHub) -> Value {
    client(server, Some(TOKEN))
        .evidence(&issue(7))
        .await
        .unwrap()
}

/// A server that answers requests whose path ends like this in another way.
fn faulty(
    end: &'static str,
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> github::GitHub {
    let fault = move |seen: &Seen, _| seen.path().ends_with(end).then(&answer);
    github::GitHub::with(github::lamp(), Box::new(fault))
}

fn changed(pointer: &str, value: Value) -> github::GitHub {
    let mut world = github::lamp();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    world.pointer_mut(parent).unwrap()[key] = value;
    github::GitHub::start(world)
}

const ISSUE: &str = "/repositories/0/issues/0";

#[tokio::test]
async fn evidence_has_everything_about_an_issue_in_githubs_own_words() {
    let server = github::GitHub::start(github::lamp());
    let found = evidence(&server).await;
    assert_eq!(found["incomplete"], json!([]));
    assert_eq!(
        found["target"],
        json!({"owner": "acme", "repo": "lamp", "number": 7, "host": "github.com"})
    );
    assert_eq!(
        found["repository"],
        json!({"id": 1, "full_name": "acme/lamp", "has_issues": true, "archived": false})
    );
    assert_eq!(found["issue"]["body"], "It flickers.\r\nSince 2.1 — ☀.");
    assert_eq!(found["comments"][0]["author_association"], "MEMBER");
    assert_eq!(found["comments"][1]["user"], Value::Null, "a deleted user");
    assert_eq!(found["timeline"].as_array().unwrap().len(), 4);
    assert_eq!(
        found["labels"],
        json!([{"name": "bug"}, {"name": "needs-triage"}])
    );
    let pull = &found["pulls"][0];
    assert_eq!(
        (&pull["number"], &pull["state"]),
        (&json!(9), &json!("open"))
    );
    assert_eq!(pull["head_sha"], "a".repeat(40));
    assert_eq!(pull["check_runs"][0]["conclusion"], "failure");
    assert_eq!(pull["statuses"][0]["state"], "success");
    assert_eq!(
        found["codeowners"],
        json!({"path": ".github/CODEOWNERS", "text": "* @acme/light\n"})
    );
    assert_eq!(
        found["permissions"],
        json!({"push": false, "triage": true, "pull": true})
    );
    assert_eq!(found["viewer"], json!({"id": 41, "login": "keeper"}));
    assert_eq!(found["etag"].as_str().unwrap().len(), 64);
    for seen in server.seen() {
        assert_eq!(seen.header("x-github-api-version"), Some("2022-11-28"));
        assert!(seen.header("user-agent").unwrap().starts_with("paraph/"));
        assert_eq!(
            seen.header("authorization"),
            Some("Bearer ghp_keeper_0123456789")
        );
    }
}

#[tokio::test]
async fn without_a_token_nobody_is_the_viewer_and_nothing_is_known_of_rights() {
    let server = github::GitHub::start(github::lamp());
    let github = client(&server, None);
    let found = github.evidence(&issue(7)).await.unwrap();
    assert_eq!(
        (&found["viewer"], &found["permissions"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(found["incomplete"], json!([]));
    let error = github.viewer().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the user of the token: this needs a token: set GITHUB_TOKEN, or sign in"
    );
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("authorization").is_none())
    );
}

#[tokio::test]
async fn all_pages_are_read_and_the_tag_changes_with_any_comment() {
    let mut world = github::lamp();
    let comments: Vec<Value> = (0..250)
        .map(|n| json!({"id": 1_000 + n, "user": "otto", "body": format!("comment {n}")}))
        .collect();
    *world
        .pointer_mut("/repositories/0/issues/0/comments")
        .unwrap() = json!(comments);
    let server = github::GitHub::start(world);
    let found = evidence(&server).await;
    let read = found["comments"].as_array().unwrap();
    assert_eq!(read.len(), 250);
    assert_eq!(read[249]["body"], "comment 249");
    let pages = server
        .seen()
        .into_iter()
        .filter(|seen| seen.path().ends_with("/comments"));
    let pages: Vec<_> = pages.map(|seen| seen.parameter("page")).collect();
    assert_eq!(pages, [None, Some("2".into()), Some("3".into())]);
    let labelled = |world: &mut github::World| {
        *world.at("/repositories/0/issues/0/labels").unwrap() = json!(["needs-triage"]);
    };
    server.world(labelled);
    assert_eq!(
        evidence(&server).await["etag"],
        found["etag"],
        "labels do not change it"
    );
    let edited = |world: &mut github::World| {
        *world
            .at("/repositories/0/issues/0/comments/249/body")
            .unwrap() = json!("edited");
    };
    server.world(edited);
    assert_ne!(evidence(&server).await["etag"], found["etag"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_the_rest_is_there() {
    let broken = || Answer::json(403, &json!({"message": "Not for you"}));
    for (end, what, why) in [
        (
            "/timeline",
            "timeline",
            "the timeline: GitHub refuses it: Not for you",
        ),
        (
            "/repos/acme/lamp/labels",
            "labels",
            "the labels: GitHub refuses it: Not for you",
        ),
        (
            "/check-runs",
            "check runs of aaaaaaa",
            "check_runs: GitHub refuses it: Not for you",
        ),
        (
            "/status",
            "statuses of aaaaaaa",
            "statuses: GitHub refuses it: Not for you",
        ),
        (
            "/pulls/9",
            "pull request #9",
            "pull request #9: GitHub refuses it: Not for you",
        ),
        (
            "/.github/CODEOWNERS",
            "codeowners",
            ".github/CODEOWNERS: GitHub refuses it: Not for you",
        ),
    ] {
        let server = faulty(end, broken);
        let found = evidence(&server).await;
        assert_eq!(found["incomplete"], json!([{"what": what, "why": why}]));
        assert_eq!(found["issue"]["number"], 7);
    }
}

#[tokio::test]
async fn a_page_that_is_missing_or_elsewhere_is_named() {
    let more: Vec<Value> = (0..150)
        .map(|n| json!({"id": 1_000 + n, "user": "otto", "body": "x"}))
        .collect();
    let mut world = github::lamp();
    *world
        .pointer_mut("/repositories/0/issues/0/comments")
        .unwrap() = json!(more);
    let second = |seen: &Seen, _| {
        (seen.path().ends_with("/comments") && seen.parameter("page").as_deref() == Some("2"))
            .then(|| Answer::json(404, &json!({"message": "Not Found"})))
    };
    let server = github::GitHub::with(world.clone(), Box::new(second));
    let found = evidence(&server).await;
    assert_eq!(found["comments"].as_array().unwrap().len(), 100);
    assert_eq!(
        found["incomplete"],
        json!([{
            "what": "comments",
            "why": "page 2 is missing: the comments: GitHub has none, or the token may not see it (404)",
        }])
    );
    let elsewhere = |seen: &Seen, mut answer: Answer| {
        if seen.path().ends_with("/comments") {
            let link = (
                "Link".to_owned(),
                "<https://evil.example/x?page=2>; rel=\"next\"".to_owned(),
            );
            answer.headers.retain(|(name, _)| name != "Link");
            answer.headers.push(link);
        }
        answer
    };
    let server = github::GitHub::behind(world, Box::new(|_, _| None), Box::new(elsewhere));
    let found = evidence(&server).await;
    assert_eq!(
        found["incomplete"],
        json!([{"what": "comments", "why": "page 2 is said to be on another server"}])
    );
}

#[tokio::test]
async fn an_issue_that_cannot_be_read_is_an_error_that_says_why() {
    let deleted = || changed(&format!("{ISSUE}/deleted"), json!(true));
    for (server, number, token, text) in [
        (deleted(), 7, TOKEN, "acme/lamp#7: it was deleted (410)"),
        (
            changed("/repositories/0/has_issues", json!(false)),
            7,
            TOKEN,
            "acme/lamp#7: the repository has no issues (410)",
        ),
        (
            github::GitHub::start(github::lamp()),
            99,
            TOKEN,
            "acme/lamp#99: GitHub has none, or the token may not see it (404)",
        ),
        (
            github::GitHub::start(github::lamp()),
            7,
            "ghp_unknown_0123",
            "acme/lamp#7: GitHub does not know the token, or it has run out (401)",
        ),
        (
            faulty("/issues/7", || {
                Answer::json(
                    403,
                    &json!({"message": "ghp_keeper_0123456789 may not: SSO"}),
                )
            }),
            7,
            TOKEN,
            "acme/lamp#7: GitHub refuses it: [secret] may not: SSO",
        ),
        (
            faulty("/issues/7", || Answer::json(451, &json!({"message": "x"}))),
            7,
            TOKEN,
            "acme/lamp#7: it is blocked for legal reasons (451)",
        ),
        (
            faulty("/issues/7", || {
                Answer::new(200, "application/json", "{\"number\": 7,")
            }),
            7,
            TOKEN,
            "acme/lamp#7: GitHub's answer cannot be read: it is no JSON: EOF while parsing a value at line 1 column 13",
        ),
    ] {
        let read = client(&server, Some(token)).evidence(&issue(number)).await;
        assert_eq!(read.unwrap_err().to_string(), text);
        assert!(
            server.seen().len() <= 2,
            "{text}: nothing is asked for after that"
        );
    }
}

#[tokio::test]
async fn answers_that_break_off_are_read_again() {
    let cut = |seen: &Seen, before: usize| {
        (before == 0 && seen.path().ends_with("/issues/7"))
            .then(|| Answer::json(200, &json!({"number": 7})).sent(Manner::CutOff))
    };
    let server = github::GitHub::with(github::lamp(), Box::new(cut));
    let found = evidence(&server).await;
    assert_eq!(found["incomplete"], json!([]));
}

#[tokio::test]
async fn pull_requests_and_locked_issues_are_told_as_such() {
    let server = github::GitHub::start(github::lamp());
    let pull = client(&server, Some(TOKEN))
        .evidence(&issue(9))
        .await
        .unwrap();
    assert_eq!(
        pull["incomplete"],
        json!([{"what": "issue", "why": "it is a pull request"}])
    );
    let server = changed(&format!("{ISSUE}/locked"), json!(true));
    assert_eq!(evidence(&server).await["issue"]["locked"], true);
}

#[tokio::test]
async fn renamed_repositories_are_read_and_the_new_name_is_told() {
    let server = github::GitHub::start(github::lamp());
    let old = Target::parse("https://github.com/acme/candle/issues/7", &["github.com"]).unwrap();
    let found = client(&server, Some(TOKEN)).evidence(&old).await.unwrap();
    assert_eq!(found["comments"].as_array().unwrap().len(), 2);
    let why =
        |to: &str| format!("it was renamed or transferred, to {to}; nothing is sent after it");
    assert_eq!(
        found["incomplete"],
        json!([
            {"what": "issue", "why": why("acme/lamp#7")},
            {"what": "repository", "why": why("acme/lamp")},
        ])
    );
}

#[tokio::test]
async fn a_transferred_issue_is_told_as_one_and_its_comments_as_missing() {
    let mut world = github::lamp();
    world["repositories"][0]["transferred"] = json!({"6": "repos/acme/lamp/issues/8"});
    let server = github::GitHub::start(world);
    let found = client(&server, Some(TOKEN))
        .evidence(&issue(6))
        .await
        .unwrap();
    assert_eq!(found["issue"]["number"], 8);
    let whats: Vec<_> = found["incomplete"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].clone())
        .collect();
    assert_eq!(whats, ["issue", "comments", "timeline"]);
}

#[tokio::test]
async fn a_redirect_to_another_server_is_not_followed() {
    let away = || {
        Answer::json(301, &json!({"message": "Moved Permanently"}))
            .with("Location", "https://evil.example/repos/acme/lamp/issues/7")
    };
    let server = faulty("/issues/7", away);
    let error = client(&server, Some(TOKEN))
        .evidence(&issue(7))
        .await
        .unwrap_err();
    let Error::GitHub {
        fault: GitHubFault::Moved { to },
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(to, "https://evil.example/repos/acme/lamp/issues/7");
}

#[tokio::test]
async fn what_was_read_before_costs_no_body() {
    let server = github::GitHub::start(github::lamp());
    let github = client(&server, Some(TOKEN));
    let first = github.evidence(&issue(7)).await.unwrap();
    let before = server.seen().len();
    let second = github.evidence(&issue(7)).await.unwrap();
    assert_eq!(first["comments"], second["comments"]);
    let again = server.seen().split_off(before);
    assert_eq!(again.len(), before);
    assert!(
        again
            .iter()
            .all(|seen| seen.header("if-none-match").is_some())
    );
}

#[tokio::test]
async fn issues_are_listed_oldest_change_first_without_pull_requests() {
    let server = github::GitHub::start(github::lamp());
    let github = client(&server, Some(TOKEN));
    let numbers = |page: &IssuePage| -> Vec<u64> {
        let issues = page.issues.iter();
        issues
            .map(|issue| issue["number"].as_u64().unwrap())
            .collect()
    };
    for (query, expected) in [
        (IssueQuery::default(), vec![5, 7, 8]),
        (
            IssueQuery {
                state: Some("closed".into()),
                ..IssueQuery::default()
            },
            vec![5],
        ),
        (
            IssueQuery {
                since: Some("2026-11-04T00:00:00Z".into()),
                ..IssueQuery::default()
            },
            vec![8],
        ),
        (
            IssueQuery {
                label: Some("bug".into()),
                ..IssueQuery::default()
            },
            vec![7],
        ),
    ] {
        let page = github.issues("acme/lamp", &query).await.unwrap();
        assert_eq!((numbers(&page), page.next), (expected, None), "{query:?}");
    }
    let closed = github
        .issues("acme/lamp", &IssueQuery::default())
        .await
        .unwrap()
        .issues;
    let said = github
        .closing_comments("acme/lamp", &closed[0])
        .await
        .unwrap();
    assert_eq!(said, ["A loose coil: tighten it."]);
    let asked = server.seen().len();
    for open in &closed[1..] {
        assert!(
            github
                .closing_comments("acme/lamp", open)
                .await
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(
        server.seen().len(),
        asked,
        "nobody is asked about what is open"
    );
}

#[tokio::test]
async fn a_listing_goes_on_from_the_page_where_it_was_left() {
    let mut world = github::lamp();
    let many: Vec<Value> = (0..230)
        .map(|n| json!({"id": 10_000 + n, "number": 1_000 + n, "title": "x", "body": null, "user": "otto",
            "updated_at": format!("2026-01-01T00:{:02}:{:02}Z", n / 60, n % 60)}))
        .collect();
    world["repositories"][0]["issues"] = json!(many);
    let server = github::GitHub::start(world);
    let mut query = IssueQuery::default();
    let mut read = Vec::new();
    loop {
        // Each page by a client of its own, as after a restart.
        let page = client(&server, Some(TOKEN))
            .issues("acme/lamp", &query)
            .await
            .unwrap();
        read.extend(
            page.issues
                .iter()
                .map(|issue| issue["number"].as_u64().unwrap()),
        );
        match page.next {
            Some(next) => query.page = Some(next),
            None => break,
        }
    }
    assert_eq!(read, (1_000..1_230).collect::<Vec<_>>());
    let github = client(&server, Some(TOKEN));
    query.page = Some("https://evil.example/repos/acme/lamp/issues?page=2".to_owned());
    for (repository, query, text) in [
        (
            "acme/lamp",
            &query,
            "the issues of acme/lamp: GitHub's answer cannot be read: the page is not one of this server",
        ),
        (
            "acme",
            &IssueQuery::default(),
            "the repository: `acme` is none: write owner/repo",
        ),
        (
            "acme/..",
            &IssueQuery::default(),
            "the repository: `acme/..` is none: write owner/repo",
        ),
    ] {
        let error = github.issues(repository, query).await.unwrap_err();
        assert_eq!(error.to_string(), text);
    }
}
