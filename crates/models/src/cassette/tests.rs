//! Recording and replaying: what is written, what is played, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;

use super::*;
use crate::chat::{ChatModel, ChatReply, ChatRequest, Chunk};
use crate::error::ModelError;
use crate::message::Message;
use crate::retry::{RetryPolicy, Retrying};
use crate::scripted::ScriptedModel;

const LINES: &str = r#"{"content":"one two","usage":{"input_tokens":3,"output_tokens":2}}
{"error":{"kind":"http","status":429,"retry_after":0,"message":"slow"}}
{"tool_calls":[{"id":"c1","name":"add","arguments":{"n":10000000000000000000001}}]}
{"error":{"kind":"http","status":401,"message":"who are you?"}}
{"content":"last"}"#;

fn script(lines: &str) -> Retrying<ScriptedModel> {
    let model = ScriptedModel::parse(lines, "s.jsonl").unwrap();
    let policy = RetryPolicy {
        first_wait: Duration::ZERO,
        ..RetryPolicy::default()
    };
    Retrying::new(model, policy)
}

fn asks(text: &str) -> ChatRequest {
    ChatRequest::new([Message::human(text)])
}

/// What can be seen of an answer from outside, but for the id that is drawn.
fn seen(
    answer: Result<ChatReply, ModelError>,
) -> Result<(String, Vec<String>, u32, String), ModelError> {
    answer.map(|reply| {
        let calls = reply.message.tool_calls().iter();
        let calls = calls.map(|call| format!("{} {} {}", call.id, call.name, call.args.as_str()));
        let rest = format!(
            "{:?} {:?} {:?}",
            reply.usage, reply.finish_reason, reply.model
        );
        (
            reply.message.text().into_owned(),
            calls.collect(),
            reply.attempts,
            rest,
        )
    })
}

async fn ask_all(
    model: &impl ChatModel,
) -> Vec<Result<(String, Vec<String>, u32, String), ModelError>> {
    let mut answers = Vec::new();
    for text in ["a", "b", "c", "d"] {
        answers.push(seen(model.complete(&asks(text)).await));
    }
    answers
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_was_recorded_is_said_again() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("new/cassette");
    let recorder = Recorder::begin(&dir, script(LINES)).unwrap();
    let first = ask_all(&recorder).await;
    assert_eq!(
        first[1].as_ref().unwrap().2,
        2,
        "the rate limit was waited out"
    );
    assert_eq!(first[2].as_ref().unwrap_err().reason(), "llm_error:auth");
    assert_eq!(
        names(&dir),
        ["0001.json", "0002.json", "0003.json", "0004.json"]
    );

    let replay = Replay::open(&dir).unwrap();
    assert_eq!(replay.name(), "scripted:s.jsonl");
    assert_eq!(ask_all(&replay).await, first);
    let error = replay.complete(&asks("e")).await.unwrap_err();
    assert_eq!(error.reason(), "llm_error:script_exhausted");
    assert_eq!(
        error.to_string(),
        format!(
            "nothing is recorded for this request: {} has 4 requests, and this is one more",
            dir.display()
        )
    );
}

#[tokio::test]
async fn the_pieces_are_those_of_the_recorded_stream() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    let request = asks("a");
    let recorded: Vec<Chunk> = recorder
        .stream(&request)
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(recorded.len(), 3);
    let replay = Replay::open(dir.path()).unwrap();
    let replayed: Vec<Chunk> = replay.stream(&request).map(Result::unwrap).collect().await;
    assert_eq!(replayed, recorded);
}

#[tokio::test]
async fn the_file_is_for_people_too() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(
        dir.path(),
        script(r#"{"content":"Hi","usage":{"input_tokens":1,"output_tokens":2}}"#),
    )
    .unwrap();
    recorder.complete(&asks("Hello")).await.unwrap();
    let text = fs::read_to_string(dir.path().join("0001.json")).unwrap();
    assert_eq!(
        text,
        r#"{
  "version": 1,
  "model": "scripted:s.jsonl",
  "enforces_schemas": false,
  "request": {
    "messages": [
      {
        "content": "Hello",
        "type": "human"
      }
    ],
    "temperature": 0.0
  },
  "attempts": 1,
  "pieces": [
    {
      "text": "Hi"
    },
    {
      "usage": {
        "input_tokens": 1,
        "output_tokens": 2,
        "total_tokens": 3
      },
      "finish_reason": "stop"
    }
  ]
}
"#
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(dir.path().join("0001.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_changed_request_says_what_changed_and_uses_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    recorder.complete(&asks("a")).await.unwrap();
    let replay = Replay::open(dir.path()).unwrap();
    let changed = ChatRequest {
        max_tokens: Some(9),
        ..asks("A")
    };
    let error = replay.complete(&changed).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "nothing is recorded for this request: request 1 of 1 in {} was another: \
             /messages/0/content: recorded \"a\", now \"A\"; /max_tokens: recorded nothing, now 9",
            dir.path().display()
        )
    );
    assert!(replay.complete(&asks("a")).await.is_ok());
}

#[tokio::test]
async fn callers_beside_each_other_may_ask_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    let first = ask_all(&recorder).await;
    let replay = Replay::open(dir.path()).unwrap();
    for (text, answer) in ["d", "b", "a", "c"].iter().zip([3, 1, 0, 2]) {
        assert_eq!(seen(replay.complete(&asks(text)).await), first[answer]);
    }
}

#[tokio::test]
async fn the_same_request_twice_takes_its_answers_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(
        dir.path(),
        script("{\"content\":\"1\"}\n{\"content\":\"2\"}"),
    )
    .unwrap();
    for _ in 0..2 {
        recorder.complete(&asks("a")).await.unwrap();
    }
    let replay = Replay::open(dir.path()).unwrap();
    for text in ["1", "2"] {
        assert_eq!(
            replay.complete(&asks("a")).await.unwrap().message.text(),
            text
        );
    }
}

#[tokio::test]
async fn a_run_that_goes_on_is_played_from_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "{\"content\":\"1\"}\n{\"error\":{\"kind\":\"http\",\"status\":503}}\n{\"content\":\"2\"}\n{\"content\":\"3\"}";
    let recorder = Recorder::begin(dir.path(), script(lines)).unwrap();
    for _ in 0..3 {
        recorder.complete(&asks("a")).await.unwrap();
    }
    // After three attempts two requests were answered.
    for (attempts, text) in [(0, "1"), (1, "2"), (3, "3")] {
        let replay = Replay::open(dir.path()).unwrap();
        replay.go_on_after(attempts);
        assert_eq!(
            replay.complete(&asks("a")).await.unwrap().message.text(),
            text
        );
    }
    let replay = Replay::open(dir.path()).unwrap();
    replay.go_on_after(u64::MAX);
    assert!(replay.complete(&asks("a")).await.is_err());
}

#[tokio::test]
async fn a_recording_that_goes_on_replaces_what_its_run_never_saved() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    for text in ["a", "b", "c"] {
        recorder.complete(&asks(text)).await.ok();
    }
    fs::write(dir.path().join("notes.txt"), "kept").unwrap();

    // One answer was saved by the run; the script goes on behind its first line too.
    let lines = "{\"content\":\"old\"}\n{\"content\":\"new\"}";
    let again = Recorder::go_on(dir.path(), script(lines)).unwrap();
    again.go_on_after(1);
    assert_eq!(
        names(dir.path()).len(),
        4,
        "nothing is gone before something is said"
    );
    assert_eq!(
        again.complete(&asks("b2")).await.unwrap().message.text(),
        "new"
    );
    assert_eq!(names(dir.path()), ["0001.json", "0002.json", "notes.txt"]);
    let replay = Replay::open(dir.path()).unwrap();
    assert_eq!(
        replay.complete(&asks("a")).await.unwrap().message.text(),
        "one two"
    );
    assert_eq!(
        replay.complete(&asks("b2")).await.unwrap().message.text(),
        "new"
    );

    // A run of which nothing was saved begins anew.
    let anew = Recorder::go_on(dir.path(), script(lines)).unwrap();
    anew.complete(&asks("x")).await.unwrap();
    assert_eq!(names(dir.path()), ["0001.json", "notes.txt"]);
}

#[tokio::test]
async fn an_answer_that_nobody_waited_for_is_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    let request = asks("a");
    let mut stream = recorder.stream(&request);
    stream.next().await.unwrap().unwrap();
    drop(stream);
    assert!(names(dir.path()).is_empty());
    recorder.complete(&asks("b")).await.unwrap();
    assert_eq!(names(dir.path()), ["0002.json"]);
}

/// Says half an answer, and then no more.
struct Breaking;

impl ChatModel for Breaking {
    fn name(&self) -> &str {
        "breaking"
    }

    fn stream<'a>(&'a self, _: &'a ChatRequest) -> crate::chat::ChunkStream<'a> {
        let broken = ModelError::Disconnected {
            message: "gone".into(),
        };
        futures::stream::iter([Ok(Chunk::text("half")), Err(broken)]).boxed()
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_replayed_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), Breaking).unwrap();
    let request = asks("a");
    let recorded: Vec<_> = recorder.stream(&request).collect().await;
    assert_eq!(recorded.len(), 2);
    assert_eq!(
        recorded[1].as_ref().unwrap_err().reason(),
        "llm_error:connection"
    );
    let replay = Replay::open(dir.path()).unwrap();
    let replayed: Vec<_> = replay.stream(&request).collect().await;
    assert_eq!(replayed, recorded);
    // A run's count of attempts knows of answers only.
    let replay = Replay::open(dir.path()).unwrap();
    replay.go_on_after(0);
    assert!(replay.stream(&request).next().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_fails_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    // A folder in the file's place, since root may write anywhere.
    fs::create_dir(dir.path().join("0001.json")).unwrap();
    let error = recorder.complete(&asks("a")).await.unwrap_err();
    assert_eq!(error.reason(), "store_error");
    let path = dir.path().join("0001.json");
    let begin = format!("the recording cannot be written: {}: ", path.display());
    assert!(error.to_string().starts_with(&begin), "{error}");
}

#[tokio::test]
async fn what_is_no_recording_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let open = |text: &str| {
        fs::write(home.path().join("0001.json"), text).unwrap();
        Replay::open(home.path()).err().unwrap().to_string()
    };
    let file = home.path().join("0001.json");
    let table = [
        ("", "EOF while parsing a value at line 1 column 0"),
        (
            "[]",
            "invalid length 0, expected struct Head with 1 element at line 1 column 2",
        ),
        (
            r#"{"version":2}"#,
            "recorded in version 2, and version 1 is what can be read",
        ),
        (
            r#"{"version":1}"#,
            "missing field `model` at line 1 column 13",
        ),
        (
            r#"{"version":1,"model":"m","enforces_schemas":true,"request":{},"attempts":1,"pieces":[],"more":1}"#,
            "unknown field `more`, expected one of `version`, `model`, `enforces_schemas`, `request`, `attempts`, `pieces`, `error` at line 1 column 93",
        ),
        (
            r#"{"version":1,"model":"m","enforces_schemas":true,"request":{},"attempts":1,"pieces":[],"error":{"kind":"new"}}"#,
            "unknown variant `new`",
        ),
    ];
    for (text, problem) in table {
        let told = open(text);
        let begin = format!("recording {}: {problem}", file.display());
        assert!(told.starts_with(&begin), "{told}");
    }
    let missing = Replay::open(home.path().join("none"))
        .err()
        .unwrap()
        .to_string();
    assert!(missing.contains("none: No such file"), "{missing}");
    let empty = tempfile::tempdir().unwrap();
    let told = Replay::open(empty.path()).err().unwrap().to_string();
    assert!(
        told.ends_with("there is no recording in it (0001.json, 0002.json, …)"),
        "{told}"
    );
}

#[tokio::test]
async fn a_recording_is_not_recorded_over() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::begin(dir.path(), script(LINES)).unwrap();
    recorder.complete(&asks("a")).await.unwrap();
    let told = Recorder::begin(dir.path(), script(LINES))
        .err()
        .unwrap()
        .to_string();
    assert_eq!(
        told,
        format!(
            "recording {}: there is a recording of 1 requests already; name another folder, or remove it",
            dir.path().display()
        )
    );
}

#[test]
fn every_failure_is_read_as_it_was_written() {
    let message = || "m".to_owned();
    let wait = Some(Duration::from_millis(1500));
    let table = [
        ModelError::Timeout {
            limit: crate::error::TimeLimit::Idle,
            after: Some(std::time::Duration::from_millis(1500)),
        },
        ModelError::OutOfTime,
        ModelError::Connect { message: message() },
        ModelError::Empty {
            usage: Some(Box::new(crate::message::Usage::new(1, 0))),
        },
        ModelError::RateLimited {
            retry_after: wait,
            message: message(),
        },
        ModelError::Server {
            retry_after: None,
            message: message(),
        },
        ModelError::ContextOverflow { message: message() },
        ModelError::ScriptExhausted { attempt: 3 },
    ];
    for error in table {
        let text = serde_json::to_string(&error).unwrap();
        assert_eq!(
            serde_json::from_str::<ModelError>(&text).unwrap(),
            error,
            "{text}"
        );
    }
}
