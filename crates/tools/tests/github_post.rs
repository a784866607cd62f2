//! `post_triage` through a gateway, against a server that answers as GitHub does: what was approved is there once,
//! byte for byte, whatever happens on the way; and what has changed since is not written on.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod stand_in;

use paraph_gateway::{
    Approvals, Ask, Gateway, Limits, MemoryStore, Observation, Policy, Reply, Scope, Session,
    State, Stop, Store, ToolCall, Waiting, Why,
};
use paraph_tools::{
    Base, GitHub, GitHubSettings, Outbound, OutboundSettings, REHEARSAL_ISSUE, Target, post_triage,
};
use serde_json::{Value, json};
use stand_in::github::{self, OTHER_TOKEN, TOKEN, World};
use stand_in::{Answer, Manner, Seen};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

const COMMENT: &str = "Could you say which bulb?\r\n\r\n> It flickers — ☀\n`a` <b>&amp;</b>";
const COMMENTS: &str = "/repos/acme/lamp/issues/7/comments";
const LABELS: &str = "/repos/acme/lamp/issues/7/labels";

/// A gateway with the effect alone, at a store whose clock the test turns.
struct Stage {
    server: Arc<github::GitHub>,
    store: Arc<dyn Store>,
    clock: Arc<AtomicU64>,
}

impl Stage {
    fn at(server: github::GitHub) -> Stage {
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let time = clock.clone();
        Stage {
            server: Arc::new(server),
            store: MemoryStore::with_clock(move || time.load(Ordering::SeqCst)),
            clock,
        }
    }

    /// Where nothing goes wrong.
    fn plain() -> Stage {
        Stage::at(github::GitHub::start(github::lamp()))
    }

    /// A run in its n-th life, with a client of its own.
    async fn session(&self, epoch: u64, token: &str) -> Session {
        session(
            &self.store,
            &client(&self.server.url(), Some(token)),
            ("case-7", epoch),
        )
        .await
    }

    /// Proposes it and has it approved.
    async fn approved(&self, session: &Session, post: &Value) -> Waiting {
        let question = waits(session.call("k", &call(post)).await.unwrap());
        let desk = Approvals::new(self.store.clone());
        let signed = desk.approve(question.action, &question.digest, "ann");
        assert_eq!(signed.await.unwrap().state, State::Approved);
        question
    }

    async fn done(&self, post: &Value) -> Observation {
        let session = self.session(1, TOKEN).await;
        self.approved(&session, post).await;
        seen(session.call("k", &call(post)).await.unwrap())
    }

    fn later(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    /// The comments that are there, as author and text.
    fn comments(&self) -> Vec<(Value, String)> {
        let comments = self.server.world(|world| {
            let comments = world.at("/repositories/0/issues/0/comments").unwrap();
            comments.as_array().unwrap().clone()
        });
        let of = |comment: &Value| {
            let body = comment["body"].as_str().unwrap().to_owned();
            (comment["user"].clone(), body)
        };
        comments.iter().map(of).collect()
    }

    /// What was posted by us: one for each comment that is there.
    fn ours(&self) -> Vec<String> {
        let comments = self.comments().into_iter();
        let ours = comments.filter(|(author, _)| author == "keeper");
        ours.map(|(_, body)| body).collect()
    }

    fn labels(&self) -> Value {
        self.server
            .world(|world| world.at("/repositories/0/issues/0/labels").unwrap().clone())
    }
}

fn client(url: &str, token: Option<&str>) -> GitHub {
    let outbound = Outbound::new(&OutboundSettings::default()).unwrap();
    let settings = GitHubSettings::new(Base::new(url).unwrap(), token.map(Into::into));
    GitHub::new(&outbound, settings).unwrap()
}

async fn session(store: &Arc<dyn Store>, github: &GitHub, (thread, epoch): (&str, u64)) -> Session {
    let gateway = Gateway::builder(store.clone())
        .dynamic(post_triage(github))
        .policy(Policy::new().ask("post_triage", Ask::default()))
        .build()
        .unwrap();
    let scope = Scope {
        epoch,
        ..Scope::new("triage", thread)
    };
    let limits = Limits {
        tool_calls: 50,
        ..Limits::default()
    };
    gateway.session(scope, limits).await.unwrap()
}

fn post() -> Value {
    json!({"owner": "acme", "repo": "lamp", "number": 7, "comment": COMMENT, "label": "needs-triage"})
}

fn with(key: &str, value: Value) -> Value {
    let mut post = post();
    post[key] = value;
    post
}

fn call(post: &Value) -> ToolCall {
    ToolCall::native("post_triage", &post.to_string())
}

fn waits(reply: Reply) -> Waiting {
    match reply {
        Reply::Waiting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

fn seen(reply: Reply) -> Observation {
    match reply {
        Reply::Observed(seen) => seen,
        other => panic!("{other:?}"),
    }
}

fn read(seen: &Observation) -> Value {
    assert!(seen.ok(), "{seen:?}");
    serde_json::from_str(&seen.content).unwrap()
}

/// The comment and the line under it.
fn is_marked(body: &str, comment: &str) {
    let line = body.strip_prefix(comment).unwrap();
    assert!(line.starts_with("\n\n<!-- paraph:act="), "{line}");
    assert!(line.ends_with(" -->") && line.contains(";by=41;"), "{line}");
}

/// A server that loses an answer after what was asked for was done, the first time that it is asked for this.
fn losing(method: &'static str, end: &'static str) -> github::GitHub {
    let lost = AtomicBool::new(false);
    let after = move |seen: &Seen, answer: Answer| {
        let is_it = seen.method == method && seen.path().ends_with(end);
        match is_it && !lost.swap(true, Ordering::SeqCst) {
            true => answer.sent(Manner::CutOff),
            false => answer,
        }
    };
    github::GitHub::behind(github::lamp(), Box::new(|_, _| None), Box::new(after))
}

/// A server that answers this request in another way and does nothing.
fn refusing(method: &'static str, end: &'static str, answer: Answer) -> github::GitHub {
    let fault = move |seen: &Seen, _| {
        (seen.method == method && seen.path().ends_with(end)).then(|| answer.clone())
    };
    github::GitHub::with(github::lamp(), Box::new(fault))
}

#[tokio::test]
async fn what_was_approved_is_there_once_byte_for_byte_and_the_label_is_added() {
    let stage = Stage::plain();
    let session = stage.session(1, TOKEN).await;
    let question = stage.approved(&session, &post()).await;
    assert_eq!(stage.server.sent("POST"), []);
    assert!(
        question.says.starts_with(
            "Post a comment of 63 characters on issue acme/lamp#7 at http://127.0.0.1:"
        ),
        "{}",
        question.says
    );
    assert!(
        question.says.contains("add the label `needs-triage`") && question.says.ends_with(COMMENT)
    );
    let row = Approvals::new(stage.store.clone())
        .show(question.action)
        .await
        .unwrap();
    let resolved = &row.action.said.resolved;
    assert_eq!(
        json!(resolved.targets),
        json!({"repository": "1", "issue": "70", "posts as user": "41", "comment": "a new one"})
    );
    assert_eq!(resolved.preconditions["issue state"], "open");

    let done = seen(session.call("k", &call(&post())).await.unwrap());
    assert_eq!(seen(session.call("k", &call(&post())).await.unwrap()), done);
    let id = read(&done)["comment"]["id"].clone();
    assert_eq!(
        read(&done),
        json!({
            "comment": {"id": id, "url": format!("https://github.com/acme/lamp/issues/7#issuecomment-{id}")},
            "label": "needs-triage",
        })
    );
    let sent = stage.server.sent("POST");
    let [(comments, comment), (labels, label)] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((comments.as_str(), labels.as_str()), (COMMENTS, LABELS));
    is_marked(comment["body"].as_str().unwrap(), COMMENT);
    assert_eq!(label, &json!({"labels": ["needs-triage"]}));
    assert_eq!(stage.ours(), [comment["body"].as_str().unwrap()]);
    assert_eq!(
        stage.labels(),
        json!(["bug", "needs-triage"]),
        "people's labels stay"
    );
}

#[tokio::test]
async fn what_cannot_be_posted_never_becomes_an_action() {
    let stage = Stage::plain();
    let session = stage.session(1, TOKEN).await;
    let table = [
        (
            with("comment", json!("x".repeat(65_500))),
            "with the mark under it, GitHub takes 65286",
        ),
        (with("comment", json!(" \n")), ""),
        (
            with("label", json!("nice")),
            "the repository has no label `nice`, and none is made",
        ),
        (with("number", json!(99)), "acme/lamp#99: GitHub has none"),
        (with("number", json!(9_000_000_000_u64)), "GitHub has none"),
        (with("repo", json!("../..")), "no issue has such an address"),
        (
            with("repo", json!("candle")),
            "renamed or transferred, to acme/lamp#7",
        ),
        (
            with("etag", json!("0")),
            "acme/lamp#7 says something else than when it was read",
        ),
        (with("closes", json!(true)), ""),
    ];
    for (number, (post, why)) in table.into_iter().enumerate() {
        let refused = seen(
            session
                .call(&number.to_string(), &call(&post))
                .await
                .unwrap(),
        );
        let failure = refused.failure.clone().unwrap().to_string();
        assert_eq!(failure, "tool_bad_args:post_triage", "{post}");
        assert!(refused.content.contains(why), "{}", refused.content);
    }
    let session = self::session(
        &stage.store,
        &client(&stage.server.url(), None),
        ("other", 1),
    )
    .await;
    let refused = seen(session.call("k", &call(&post())).await.unwrap());
    assert!(
        refused.content.contains("this needs a token"),
        "{}",
        refused.content
    );
    assert_eq!(stage.server.sent("POST"), []);
}

#[tokio::test]
async fn the_tag_of_fresh_evidence_lets_it_be_proposed() {
    let stage = Stage::plain();
    let github = client(&stage.server.url(), Some(TOKEN));
    let target = Target::parse("https://github.com/acme/lamp/issues/7", &["github.com"]).unwrap();
    let evidence = github.evidence(&target).await.unwrap();
    let post = with("etag", evidence["etag"].clone());
    assert!(read(&stage.done(&post).await)["comment"]["id"].is_u64());
}

#[tokio::test]
async fn what_has_changed_since_it_was_approved_is_not_written_on() {
    type Change = fn(&mut World);
    let table: [(&str, Change); 9] = [
        ("closed", |world| {
            world.at("/repositories/0/issues/0").unwrap()["state"] = json!("closed")
        }),
        ("locked", |world| {
            world.at("/repositories/0/issues/0").unwrap()["locked"] = json!(true)
        }),
        ("edited", |world| {
            world.at("/repositories/0/issues/0").unwrap()["body"] = json!("It is fine.")
        }),
        ("retitled", |world| {
            world.at("/repositories/0/issues/0").unwrap()["title"] = json!("x")
        }),
        ("deleted", |world| {
            world.at("/repositories/0/issues/0").unwrap()["deleted"] = json!(true)
        }),
        ("answered", |world| {
            let comments = world.at("/repositories/0/issues/0/comments").unwrap();
            let answer = json!({"id": 799, "user": "ida", "body": "Solved."});
            comments.as_array_mut().unwrap().push(answer);
        }),
        ("transferred", |world| {
            world.at("/repositories/0").unwrap()["transferred"] =
                json!({"7": "repos/acme/lamp/issues/8"});
        }),
        ("renamed", |world| {
            world.at("/repositories/0").unwrap()["name"] = json!("lantern")
        }),
        ("label removed", |world| {
            *world.at("/repositories/0/labels").unwrap() = json!(["bug"]);
        }),
    ];
    for (what, change) in table {
        let stage = Stage::plain();
        let session = stage.session(1, TOKEN).await;
        stage.approved(&session, &post()).await;
        stage.server.world(change);
        let ended = session.call("k", &call(&post())).await;
        assert_eq!(ended, Err(Stop::Drifted), "{what}");
        assert_eq!(stage.server.sent("POST"), [], "{what}");
    }
}

#[tokio::test]
async fn only_the_token_of_the_user_who_was_named_posts() {
    let stage = Stage::plain();
    let session = stage.session(1, TOKEN).await;
    stage.approved(&session, &post()).await;
    let other = stage.session(2, OTHER_TOKEN).await;
    assert_eq!(other.call("k", &call(&post())).await, Err(Stop::Drifted));
    assert_eq!(stage.server.sent("POST"), []);
}

#[tokio::test]
async fn a_label_that_fails_leaves_the_comment_and_says_why() {
    let broken = Answer::json(200, &json!({})).sent(Manner::CutOff);
    for (answer, why) in [
        (
            Answer::json(403, &json!({"message": "Resource not accessible"})),
            "the label `needs-triage`: GitHub refuses it: Resource not accessible",
        ),
        (
            Answer::json(500, &json!({})),
            "the label `needs-triage`: GitHub answered 500",
        ),
        (broken, "cannot be read"),
        (
            Answer::json(200, &json!([{"name": "bug"}])),
            "it is not among the issue's",
        ),
    ] {
        let stage = Stage::at(refusing("POST", "/labels", answer));
        let done = read(&stage.done(&post()).await);
        assert_eq!(done["label"], Value::Null);
        let error = done["label_error"].as_str().unwrap();
        assert!(error.contains(why), "{error}");
        assert_eq!(stage.ours().len(), 1);
    }
}

#[tokio::test]
async fn a_comment_that_github_refuses_is_a_failure_that_says_why_and_nothing_is_there() {
    for (status, message, why) in [
        (
            403,
            "Resource not accessible",
            "GitHub refuses it: Resource not accessible",
        ),
        (
            404,
            "Not Found",
            "GitHub has none, or the token may not see it (404)",
        ),
        (
            410,
            "Issues are disabled for this repo",
            "the repository has no issues (410)",
        ),
        (
            422,
            "Validation Failed",
            "GitHub does not take it (422): Validation Failed",
        ),
        (401, "Bad credentials", "GitHub does not know the token"),
    ] {
        let answer = Answer::json(status, &json!({"message": message}));
        let stage = Stage::at(refusing("POST", "/comments", answer));
        let refused = stage.done(&post()).await;
        assert!(
            !refused.ok() && refused.content.contains(why),
            "{}",
            refused.content
        );
        assert_eq!(stage.server.sent("POST").len(), 1);
    }
    let away = Answer::json(307, &json!({})).with("Location", "https://evil.example/");
    let stage = Stage::at(refusing("POST", "/comments", away));
    let refused = stage.done(&post()).await;
    assert!(
        refused.content.contains("nothing is sent after it"),
        "{}",
        refused.content
    );
}

#[tokio::test]
async fn a_limit_before_the_comment_is_waited_for_and_it_is_there_once() {
    let first = AtomicBool::new(true);
    let fault = move |seen: &Seen, _| {
        let is_it = seen.method == "POST" && first.swap(false, Ordering::SeqCst);
        is_it.then(|| Answer::json(429, &json!({"message": "slow down"})).with("Retry-After", "1"))
    };
    let stage = Stage::at(github::GitHub::with(github::lamp(), Box::new(fault)));
    assert!(read(&stage.done(&post()).await)["comment"]["id"].is_u64());
    assert_eq!(stage.ours().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_looked_up_and_the_comment_is_there_once() {
    let stage = Stage::at(losing("POST", "/comments"));
    let session = stage.session(1, TOKEN).await;
    stage.approved(&session, &post()).await;
    let unknown = waits(session.call("k", &call(&post())).await.unwrap());
    assert_eq!(unknown.why, Why::Unknown);
    stage.later(10);
    let done = read(&seen(session.call("k", &call(&post())).await.unwrap()));
    assert_eq!(done["label"], "needs-triage");
    assert_eq!(stage.ours().len(), 1);
    let sent: Vec<_> = stage
        .server
        .sent("POST")
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(sent, [COMMENTS, LABELS], "the comment was not sent again");
}

#[tokio::test]
async fn what_did_not_arrive_is_sent_again_once_its_time_is_over() {
    let first = AtomicBool::new(true);
    let fault = move |seen: &Seen, _| {
        let is_it = seen.method == "POST" && first.swap(false, Ordering::SeqCst);
        is_it.then(|| Answer::json(502, &json!({"message": "Bad Gateway"})))
    };
    let stage = Stage::at(github::GitHub::with(github::lamp(), Box::new(fault)));
    let session = stage.session(1, TOKEN).await;
    stage.approved(&session, &post()).await;
    for seconds in [10, 100, 100] {
        let unknown = waits(session.call("k", &call(&post())).await.unwrap());
        assert_eq!((unknown.why, stage.ours().len()), (Why::Unknown, 0));
        stage.later(seconds);
    }
    stage.later(60);
    let done = read(&seen(session.call("k", &call(&post())).await.unwrap()));
    assert_eq!(
        (done["label"].clone(), stage.ours().len()),
        (json!("needs-triage"), 1)
    );
}

/// I28: the mark is looked for on all pages.
#[tokio::test]
async fn the_mark_is_found_among_many_comments() {
    let lost = AtomicBool::new(false);
    let after = move |seen: &Seen, answer: Answer| match seen.method == "POST"
        && !lost.swap(true, Ordering::SeqCst)
    {
        true => answer.sent(Manner::CutOff),
        false => answer,
    };
    let mut world = github::lamp();
    let many: Vec<Value> = (0..150)
        .map(|n| json!({"id": 2_000 + n, "user": "otto", "body": "+1"}))
        .collect();
    world["repositories"][0]["issues"][0]["comments"] = json!(many);
    let stage = Stage::at(github::GitHub::behind(
        world,
        Box::new(|_, _| None),
        Box::new(after),
    ));
    let session = stage.session(1, TOKEN).await;
    stage.approved(&session, &post()).await;
    waits(session.call("k", &call(&post())).await.unwrap());
    stage.later(10);
    read(&seen(session.call("k", &call(&post())).await.unwrap()));
    assert_eq!(stage.ours().len(), 1);
}

/// I29: a mark counts only in a comment by the user who acted, over the text that was signed.
#[tokio::test]
async fn a_copied_mark_and_a_changed_text_prove_nothing() {
    type Change = fn(&mut World);
    let stolen: Change = |world| {
        let comments = world.at("/repositories/0/issues/0/comments").unwrap();
        comments.as_array_mut().unwrap().last_mut().unwrap()["user"] = json!("otto");
    };
    let edited: Change = |world| {
        let comments = world.at("/repositories/0/issues/0/comments").unwrap();
        let comment = comments.as_array_mut().unwrap().last_mut().unwrap();
        let body = comment["body"].as_str().unwrap().replace("bulb", "cable");
        comment["body"] = json!(body);
    };
    for (what, change) in [("stolen", stolen), ("edited", edited)] {
        let stage = Stage::at(losing("POST", "/comments"));
        let session = stage.session(1, TOKEN).await;
        stage.approved(&session, &post()).await;
        waits(session.call("k", &call(&post())).await.unwrap());
        stage.server.world(change);
        for _ in 0..4 {
            stage.later(300);
            let waiting = waits(session.call("k", &call(&post())).await.unwrap());
            assert_eq!(waiting.why, Why::Unknown, "{what}: a person looks");
        }
        assert_eq!(stage.server.sent("POST").len(), 1, "{what}");
    }
}

#[tokio::test]
async fn a_later_comment_of_the_same_takes_the_place_of_the_earlier_one() {
    let stage = Stage::plain();
    let first = read(&stage.done(&post()).await);
    let second = json!({"owner": "acme", "repo": "lamp", "number": 7, "comment": "Thank you.", "label": null});
    let github = client(&stage.server.url(), Some(TOKEN));
    let again = session(&stage.store, &github, ("another", 1)).await;
    let question = stage.approved(&again, &second).await;
    let row = Approvals::new(stage.store.clone())
        .show(question.action)
        .await
        .unwrap();
    let id = first["comment"]["id"].to_string();
    assert_eq!(row.action.said.resolved.targets["comment"], id);
    let done = read(&seen(again.call("k", &call(&second)).await.unwrap()));
    assert_eq!(done, json!({"comment": first["comment"]}));
    let ours = stage.ours();
    assert_eq!(ours.len(), 1);
    is_marked(&ours[0], "Thank you.");
    let sent: Vec<_> = stage
        .server
        .sent("PATCH")
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(sent, [format!("/repos/acme/lamp/issues/comments/{id}")]);

    // What belongs to something else is a comment of its own, and so is that of another user.
    let own = with("thread", json!("a question of its own"));
    let third = session(&stage.store, &github, ("third", 1)).await;
    stage.approved(&third, &own).await;
    read(&seen(third.call("k", &call(&own)).await.unwrap()));
    assert_eq!(stage.ours().len(), 2);
    let other = client(&stage.server.url(), Some(OTHER_TOKEN));
    let fourth = session(&stage.store, &other, ("fourth", 1)).await;
    stage.approved(&fourth, &post()).await;
    read(&seen(fourth.call("k", &call(&post())).await.unwrap()));
    assert_eq!((stage.ours().len(), stage.comments().len()), (2, 5));
}

#[tokio::test]
async fn an_update_whose_answer_was_lost_is_found_and_not_sent_again() {
    let stage = Stage::at(losing("PATCH", ""));
    stage.done(&post()).await;
    let second = with("comment", json!("Thank you."));
    let github = client(&stage.server.url(), Some(TOKEN));
    let again = session(&stage.store, &github, ("another", 1)).await;
    stage.approved(&again, &second).await;
    waits(again.call("k", &call(&second)).await.unwrap());
    stage.later(10);
    let done = read(&seen(again.call("k", &call(&second)).await.unwrap()));
    assert_eq!(done["label"], "needs-triage");
    assert_eq!(stage.server.sent("PATCH").len(), 1);
    assert_eq!(stage.ours().len(), 1);
}

/// The process dies while a request is under way: nothing of the run goes on, and what was done there stays.
fn killed_at(done: bool, method: &'static str, end: &'static str) {
    let (dying, died) = mpsc::channel();
    let armed = Arc::new(AtomicBool::new(true));
    let is_it = move |seen: &Seen| seen.method == method && seen.path().ends_with(end);
    let (before, after) = (armed.clone(), armed);
    let (say_before, say_after) = (dying.clone(), dying);
    let silent = Answer::json(200, &json!({})).sent(Manner::Silent);
    let silence = silent.clone();
    let fault = move |seen: &Seen, _| {
        let now = !done && is_it(seen) && before.swap(false, Ordering::SeqCst);
        now.then(|| {
            say_before.send(()).unwrap();
            silence.clone()
        })
    };
    let after = move |seen: &Seen, answer: Answer| match done
        && is_it(seen)
        && after.swap(false, Ordering::SeqCst)
    {
        true => {
            say_after.send(()).unwrap();
            silent.clone()
        }
        false => answer,
    };
    let stage = Stage::at(github::GitHub::behind(
        github::lamp(),
        Box::new(fault),
        Box::new(after),
    ));
    let life = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap()
    };
    let first = life();
    let (store, url) = (stage.store.clone(), stage.server.url());
    first.block_on(async {
        let session = session(&store, &client(&url, Some(TOKEN)), ("case-7", 1)).await;
        stage.approved(&session, &post()).await;
        tokio::spawn(async move { session.call("k", &call(&post())).await });
    });
    died.recv().unwrap();
    first.shutdown_background();

    life().block_on(async {
        let session = stage.session(2, TOKEN).await;
        let mut reply = session.call("k", &call(&post())).await.unwrap();
        for _ in 0..4 {
            if let Reply::Waiting(waiting) = &reply {
                assert_eq!(waiting.why, Why::Unknown);
                stage.later(300);
                reply = session.call("k", &call(&post())).await.unwrap();
            }
        }
        let result = read(&seen(reply));
        assert_eq!(
            result["label"], "needs-triage",
            "{method} {end} {done}: {result}"
        );
    });
    let ours = stage.ours();
    assert_eq!(ours.len(), 1, "{method} {end} {done}");
    is_marked(&ours[0], COMMENT);
    assert_eq!(stage.labels(), json!(["bug", "needs-triage"]));
}

#[test]
fn a_kill_around_each_write_leaves_one_comment_and_the_label() {
    for (method, end) in [("POST", "/comments"), ("POST", "/labels")] {
        for done in [false, true] {
            killed_at(done, method, end);
        }
    }
}

#[tokio::test]
async fn a_rehearsal_posts_into_its_file_and_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data").join("posts.jsonl");
    let github = GitHub::rehearsal(file.clone()).unwrap();
    let target = Target::parse(REHEARSAL_ISSUE, &[github.host()]).unwrap();
    let before = github.evidence(&target).await.unwrap();
    assert_eq!(before["incomplete"], json!([]));
    assert_eq!(GitHub::rehearsed(&file).unwrap(), Vec::<Value>::new());
    assert!(!file.exists(), "reading writes nothing");
    let post = json!({
        "owner": target.owner, "repo": target.repo, "number": target.number,
        "comment": COMMENT, "label": "needs-triage", "etag": before["etag"],
    });
    let store: Arc<dyn Store> = MemoryStore::shared();
    let session = session(&store, &github, ("case", 1)).await;
    let question = waits(session.call("k", &call(&post)).await.unwrap());
    assert!(
        question.says.contains("the rehearsal ("),
        "{}",
        question.says
    );
    let desk = Approvals::new(store.clone());
    desk.approve(question.action, &question.digest, "ann")
        .await
        .unwrap();
    // Another process, with a client of its own, does it.
    let other = GitHub::rehearsal(file.clone()).unwrap();
    let later = self::session(&store, &other, ("case", 2)).await;
    read(&seen(later.call("k", &call(&post)).await.unwrap()));
    let posts = GitHub::rehearsed(&file).unwrap();
    let kinds: Vec<_> = posts.iter().map(|post| post["kind"].clone()).collect();
    assert_eq!(kinds, ["comment", "labels"]);
    is_marked(
        posts[0]["body"]
            .as_str()
            .unwrap()
            .replace(";by=1;", ";by=41;")
            .as_str(),
        COMMENT,
    );
    let after = github.evidence(&target).await.unwrap();
    assert_eq!(after["issue"]["labels"][0]["name"], "needs-triage");
    assert_eq!(
        after["etag"], before["etag"],
        "our own comment does not count"
    );

    // A line that a crash cut off is none; one that is no JSON is told.
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{whole}{{\"kind\":\"comm")).unwrap();
    assert_eq!(GitHub::rehearsed(&file).unwrap(), posts);
    std::fs::write(&file, format!("{whole}no\n")).unwrap();
    let error = GitHub::rehearsed(&file).unwrap_err().to_string();
    assert!(
        error.starts_with("the file of the rehearsal: ") && error.contains("line 3: "),
        "{error}"
    );
}

#[test]
fn a_rehearsal_needs_the_whole_path_of_a_file() {
    let error = GitHub::rehearsal("posts.jsonl".into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file of the rehearsal: `posts.jsonl` is no whole path of a file"
    );
    let folder = tempfile::tempdir().unwrap();
    let error = GitHub::rehearsal(folder.path().to_owned())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("is no file"), "{error}");
}
