//! Limits, retries and what is kept, against answers that each test makes up, under a paused clock.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::backend::{Answered, Asked};
use super::heads::Heads;
use super::*;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;

/// A client whose requests are answered by this, with what it told meanwhile.
fn client(
    patience: u64,
    answer: impl Fn(&Asked) -> Result<Answered, Error> + Send + Sync + 'static,
) -> (GitHub, Arc<Mutex<Vec<String>>>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let telling = told.clone();
    let progress: GitHubProgress =
        Arc::new(move |line| telling.lock().unwrap().push(line.to_owned()));
    let api = Base::new(GITHUB_API_URL).unwrap();
    let pause = Pause::new(Duration::from_secs(patience), Some(progress));
    let github = GitHub {
        client: Client::new(Backend::Told(Box::new(answer)), api, pause),
        host: "github.com".to_owned(),
    };
    (github, told)
}

fn ok(value: Value) -> Answered {
    Answered {
        status: 200,
        body: value.to_string().into_bytes(),
        ..Answered::default()
    }
}

fn me() -> Answered {
    ok(json!({"id": 41, "login": "keeper"}))
}

fn limited(seconds: &str) -> Answered {
    Answered {
        status: 403,
        heads: Heads {
            retry_after: Some(seconds.to_owned()),
            ..Heads::default()
        },
        body: br#"{"message":"You have exceeded a secondary rate limit"}"#.to_vec(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_pauses_the_whole_client_and_each_request_is_done_once_after_it() {
    let begin = Instant::now();
    let moments: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noting = moments.clone();
    let (github, told) = client(90, move |_| {
        let mut moments = noting.lock().unwrap();
        moments.push(begin.elapsed().as_secs());
        Ok(match moments.len() {
            1 => limited("30"),
            _ => me(),
        })
    });
    let twenty = (0..20).map(|_| {
        let clone = github.clone();
        async move { clone.viewer().await }
    });
    for viewer in futures::future::join_all(twenty).await {
        assert_eq!(viewer.unwrap().login, "keeper");
    }
    let moments = moments.lock().unwrap();
    assert_eq!(moments.len(), 21);
    assert_eq!(moments.iter().filter(|moment| **moment < 30).count(), 1);
    assert!(
        told.lock().unwrap().contains(
            &"GitHub's limit for many requests at once is used up: waiting 30 s".to_owned()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_says_nothing_of_its_length_is_waited_a_minute_for_and_then_longer() {
    let begin = Instant::now();
    let moments: Arc<Mutex<Vec<u64>>> = Arc::default();
    let noting = moments.clone();
    let (github, _) = client(1_000, move |_| {
        let mut moments = noting.lock().unwrap();
        moments.push(begin.elapsed().as_secs());
        Ok(match moments.len() {
            1..=3 => Answered {
                status: 429,
                ..Answered::default()
            },
            _ => me(),
        })
    });
    github.viewer().await.unwrap();
    assert_eq!(*moments.lock().unwrap(), [0, 60, 180, 420]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_lasts_too_long_is_an_error_that_says_until_when() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counting = requests.clone();
    let (github, _) = client(90, move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        Ok(Answered {
            status: 403,
            heads: Heads {
                remaining: Some(0),
                reset: Some(10_000),
                date: Some(7_000),
                ..Heads::default()
            },
            body: Vec::new(),
        })
    });
    for _ in 0..2 {
        let error = github.viewer().await.unwrap_err();
        let Error::GitHub {
            fault:
                GitHubFault::Limited {
                    until,
                    secondary: false,
                },
            ..
        } = error
        else {
            panic!("{error}")
        };
        // By this machine's clock, whatever GitHub's says: as far away as it said.
        let away = until - moment::now();
        assert!((2_990..=3_001).contains(&away), "{away}");
        let text = error.to_string();
        assert!(
            text.starts_with("the user of the token: GitHub's hourly limit is used up until 20"),
            "{text}"
        );
    }
    assert_eq!(
        requests.load(Ordering::SeqCst),
        1,
        "nothing is sent while the limit lasts"
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_request_of_an_hour_is_answered_and_the_next_one_waits() {
    let begin = Instant::now();
    let (github, _) = client(90, move |_| {
        let heads = Heads {
            remaining: Some(0),
            reset: Some(1_050),
            date: Some(1_000),
            ..Heads::default()
        };
        Ok(Answered { heads, ..me() })
    });
    github.viewer().await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 0);
    github.viewer().await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 51);
}

#[tokio::test(start_paused = true)]
async fn reads_that_github_could_not_answer_are_tried_three_times_and_writes_once() {
    let timeout = || Error::Timeout {
        host: "https://api.github.com".to_owned(),
        after: Duration::from_secs(20),
    };
    let failure = |status| Answered {
        status,
        ..Answered::default()
    };
    for fails in 1..=4 {
        let requests = Arc::new(AtomicUsize::new(0));
        let counting = requests.clone();
        let (github, _) = client(90, move |asked| {
            let before = counting.fetch_add(1, Ordering::SeqCst);
            match before {
                _ if before >= fails => Ok(me()),
                0 => Err(timeout()),
                1 => Ok(failure(502)),
                _ => {
                    assert_eq!(asked.method, reqwest::Method::GET);
                    Ok(failure(503))
                }
            }
        });
        let viewer = github.viewer().await;
        match fails {
            1 | 2 => assert_eq!(viewer.unwrap().id, 41),
            _ => assert_eq!(
                viewer.unwrap_err().to_string(),
                "the user of the token: GitHub answered 503"
            ),
        }
        assert_eq!(requests.load(Ordering::SeqCst), (fails + 1).min(3));
    }
    let requests = Arc::new(AtomicUsize::new(0));
    let counting = requests.clone();
    let (github, _) = client(90, move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        Err(timeout())
    });
    let (path, body) = ("repos/a/b/issues/1/comments", json!({}));
    let sent = github.client.send(reqwest::Method::POST, path, &body);
    assert_eq!(sent.await.unwrap_err(), timeout());
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn what_has_not_changed_is_answered_from_memory() {
    let (github, _) = client(90, |asked| {
        let heads = Heads {
            etag: Some("\"one\"".to_owned()),
            ..Heads::default()
        };
        Ok(match asked.etag.as_deref() {
            None => Answered { heads, ..me() },
            Some("\"one\"") => Answered {
                status: 304,
                heads,
                body: Vec::new(),
            },
            Some(other) => panic!("{other}"),
        })
    });
    for _ in 0..3 {
        assert_eq!(github.viewer().await.unwrap().id, 41);
    }
}

#[tokio::test(start_paused = true)]
async fn a_304_for_what_is_not_known_is_asked_for_again_and_then_an_error() {
    let (github, _) = client(90, |asked| {
        assert_eq!(asked.etag, None);
        Ok(Answered {
            status: 304,
            ..Answered::default()
        })
    });
    let error = github.viewer().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the user of the token: GitHub answered 304"
    );
}

#[test]
fn pages_are_on_the_host_that_belongs_to_the_interface() {
    for (api, host) in [
        ("https://api.github.com", "github.com"),
        ("https://api.acme.ghe.com", "acme.ghe.com"),
        ("https://git.acme.example/api/v3", "git.acme.example"),
        ("https://api.example", "api.example"),
        ("http://127.0.0.1:4010", "github.com"),
        ("http://localhost:4010", "github.com"),
    ] {
        assert_eq!(page_host(&Base::new(api).unwrap()), host);
    }
}

#[test]
fn the_token_is_not_shown() {
    let settings = GitHubSettings::new(
        Base::new(GITHUB_API_URL).unwrap(),
        Some("ghp_s3cret".into()),
    );
    let outbound = Outbound::new(&Default::default()).unwrap();
    let github = GitHub::new(&outbound, settings.clone()).unwrap();
    let shown = format!("{settings:?} {github:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    let bad = GitHubSettings::new(
        Base::new(GITHUB_API_URL).unwrap(),
        Some("ghp\ns3cret".into()),
    );
    let error = GitHub::new(&outbound, bad).unwrap_err().to_string();
    assert_eq!(
        error,
        "the token of GitHub: it has characters that no header can carry"
    );
}
