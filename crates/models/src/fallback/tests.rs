//! Which model is asked next, what is remembered, and what is said when nobody answers. On a paused clock.

use super::*;
use crate::error::TimeLimit;
use crate::message::{Message, Usage};

/// A model that plays one outcome after the other, the last one for ever.
struct Playing {
    name: &'static str,
    outcomes: Mutex<Vec<Vec<Result<Chunk, ModelError>>>>,
    asked: Mutex<u32>,
}

impl Playing {
    fn new(name: &'static str, outcomes: &[&[Result<Chunk, ModelError>]]) -> Arc<Self> {
        let mut outcomes: Vec<_> = outcomes.iter().map(|outcome| outcome.to_vec()).collect();
        outcomes.reverse();
        Arc::new(Self {
            name,
            outcomes: Mutex::new(outcomes),
            asked: Mutex::new(0),
        })
    }

    fn asked(&self) -> u32 {
        *self.asked.lock().unwrap()
    }
}

impl ChatModel for Playing {
    fn name(&self) -> &str {
        self.name
    }

    fn stream<'a>(&'a self, _: &'a ChatRequest) -> ChunkStream<'a> {
        *self.asked.lock().unwrap() += 1;
        let mut outcomes = self.outcomes.lock().unwrap();
        let outcome = match outcomes.len() {
            1 => outcomes[0].clone(),
            _ => outcomes.pop().unwrap(),
        };
        stream::iter(outcome).boxed()
    }
}

fn says(text: &str) -> Result<Chunk, ModelError> {
    Ok(Chunk::text(text))
}

fn message() -> String {
    "x".to_owned()
}

/// The text of the answer, or the error; streamed and whole are the same.
async fn answer(model: &Fallback, whole: bool) -> Result<String, ModelError> {
    let request = ChatRequest::new([Message::human("hi")]);
    let reply = match whole {
        true => model.complete(&request).await?,
        false => crate::chat::collect(model.stream(&request), |_, _| {}).await?,
    };
    Ok(reply.message.text().into_owned())
}

#[tokio::test(start_paused = true)]
async fn the_next_model_answers_after_errors_of_one_model_only() {
    let table = [
        (ModelError::Auth { message: message() }, true),
        (ModelError::Connect { message: message() }, true),
        (ModelError::Disconnected { message: message() }, true),
        (ModelError::Decode { message: message() }, true),
        (ModelError::ContextOverflow { message: message() }, true),
        (
            ModelError::RateLimited {
                retry_after: None,
                message: message(),
            },
            true,
        ),
        (
            ModelError::Server {
                retry_after: None,
                message: message(),
            },
            true,
        ),
        (
            ModelError::Timeout {
                limit: TimeLimit::Total,
                after: None,
            },
            true,
        ),
        (ModelError::Empty { usage: None }, true),
        (ModelError::BadRequest { message: message() }, false),
        (ModelError::OutOfTime, false),
        (ModelError::ScriptExhausted { attempt: 1 }, false),
    ];
    for (error, goes_on) in table {
        for whole in [true, false] {
            let first = Playing::new("a", &[&[Ok(Chunk::default()), Err(error.clone())]]);
            let second = Playing::new("b", &[&[says("hello")]]);
            let model = Fallback::new(first, vec![second.clone()]);
            let expected = match goes_on {
                true => Ok("hello".to_owned()),
                false => Err(error.clone()),
            };
            assert_eq!(answer(&model, whole).await, expected);
            assert_eq!(second.asked(), u32::from(goes_on), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_says_nothing_is_none() {
    let usage = Some(Usage::new(3, 0));
    let silent = Chunk {
        usage,
        ..Chunk::default()
    };
    let first = Playing::new("a", &[&[Ok(silent)]]);
    let model = Fallback::new(first.clone(), vec![Playing::new("b", &[&[says("hello")]])]);
    assert_eq!(answer(&model, false).await.unwrap(), "hello");
    let alone = Fallback::new(first, vec![]);
    let error = answer(&alone, false).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::Empty {
            usage: Some(Box::new(Usage::new(3, 0)))
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_word_that_was_given_is_not_taken_back() {
    let error = ModelError::Disconnected { message: message() };
    let first = Playing::new("a", &[&[says("hal"), Err(error.clone())]]);
    let second = Playing::new("b", &[&[says("whole")]]);
    let model = Fallback::new(first, vec![second.clone()]);
    assert_eq!(answer(&model, false).await, Err(error));
    assert_eq!(second.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn if_nobody_answers_all_are_named_and_the_wanted_models_reason_counts() {
    let first = Playing::new(
        "a",
        &[&[Err(ModelError::RateLimited {
            retry_after: None,
            message: "slow".into(),
        })]],
    );
    let second = Playing::new(
        "b",
        &[&[Err(ModelError::Auth {
            message: "who?".into(),
        })]],
    );
    let model = Fallback::new(first, vec![second]);
    for _ in 0..2 {
        let error = answer(&model, true).await.unwrap_err();
        assert_eq!(error.reason(), "llm_error:rate_limited");
        assert_eq!(
            error.to_string(),
            "no model answered: a: the model is rate limited: slow; b: the model refused the credentials: who?"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn who_failed_is_asked_last_for_a_while() {
    let failed = |retry_after| {
        Err(ModelError::Server {
            retry_after,
            message: message(),
        })
    };
    let wait = Some(Duration::from_secs(5));
    let first = Playing::new("a", &[&[failed(None)], &[failed(wait)], &[says("a")]]);
    let second = Playing::new("b", &[&[says("b")]]);
    let model = Fallback::new(first.clone(), vec![second.clone()]);
    let mut heard = Vec::new();
    for seconds in [0, 1, 58, 2, 2, 4] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        heard.push((answer(&model, false).await.unwrap(), first.asked()));
    }
    let expected = [("b", 1), ("b", 1), ("b", 1), ("b", 2), ("b", 2), ("a", 3)];
    assert_eq!(
        heard,
        expected.map(|(text, asked)| (text.to_owned(), asked))
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_request_says_nothing_of_the_next() {
    let overflow = Err(ModelError::ContextOverflow { message: message() });
    let first = Playing::new("small", &[&[overflow], &[says("small")]]);
    let model = Fallback::new(first, vec![Playing::new("large", &[&[says("large")]])]);
    assert_eq!(answer(&model, true).await.unwrap(), "large");
    assert_eq!(answer(&model, true).await.unwrap(), "small");
    assert_eq!(model.name(), "small, else large");
}
