//! What is said of a model that its provider does not have.

use std::time::Duration;

use paraph_models::{ChatRequest, Message, ModelError};

use crate::stand_in::{Play, StandIn, model, model_of, once};

const LONG: Duration = Duration::from_secs(60);
const MISSING: &str =
    r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#;

async fn error_of(provider: &str, plays: Vec<Play>) -> (ModelError, Vec<String>) {
    let server = StandIn::start(plays).await;
    let model = model_of(provider, &server.address, once(LONG));
    let request = ChatRequest::new([Message::human("hi")]);
    let error = model.complete(&request).await.unwrap_err();
    let requests = server.requests();
    let lines = requests
        .iter()
        .map(|sent| sent.head.lines().next().unwrap().to_owned());
    (error, lines.collect())
}

#[tokio::test]
async fn the_server_is_asked_once_which_models_it_has() {
    let list = r#"{"object":"list","data":[{"id":"m1"},{"id":"large"},{"id":"m1"}]}"#;
    let plays = vec![Play::status(404, "", MISSING), Play::json(list)];
    let (error, requests) = error_of("openai", plays).await;
    assert_eq!(
        error.to_string(),
        "openai has no model `m`; did you mean `m1`? (there are: large, m1)"
    );
    assert_eq!(error.reason(), "llm_error:bad_request");
    assert_eq!(
        requests,
        [
            "POST /v1/chat/completions HTTP/1.1",
            "GET /v1/models HTTP/1.1"
        ]
    );
}

#[tokio::test]
async fn a_server_that_does_not_say_leaves_the_error_as_it_is() {
    for list in [
        Play::status(401, "", "{}"),
        Play::json("[]"),
        Play::Send(vec![]),
    ] {
        let (error, _) = error_of("openai", vec![Play::status(404, "", MISSING), list]).await;
        assert_eq!(error.to_string(), "openai has no model `m`");
    }
}

#[tokio::test]
async fn other_protocols_name_model_and_provider_without_asking() {
    let table = [
        (
            "anthropic",
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
        ),
        (
            "google",
            r#"{"error":{"code":404,"message":"models/m is not found","status":"NOT_FOUND"}}"#,
        ),
    ];
    for (provider, body) in table {
        let (error, requests) = error_of(provider, vec![Play::status(404, "", body)]).await;
        assert_eq!(error.to_string(), format!("{provider} has no model `m`"));
        assert_eq!(requests.len(), 1);
    }
}

#[tokio::test]
async fn a_wrong_address_is_no_missing_model() {
    let server = StandIn::start(vec![Play::status(404, "", "<html>")]).await;
    let request = ChatRequest::new([Message::human("hi")]);
    let error = model(&server.address, once(LONG))
        .complete(&request)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model refused the request: status 404"
    );
}
