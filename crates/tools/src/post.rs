//! Hands a text of JSON to a server that configuration names, once: for notices of the program itself, such as anchors.
//! No tool, and nothing that a model has a say in.

use crate::error::Error;
use crate::outbound::{Base, Outbound, Request};
use crate::said;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use std::time::Duration;

/// How long it may take.
const WITHIN: Duration = Duration::from_secs(10);

/// How much of an answer is read.
const ANSWER: usize = 64 << 10;

impl Outbound {
    /// Sends JSON to an address by POST, with a bearer token if there is one, within ten seconds. It is not sent
    /// again, and no redirect is followed.
    ///
    /// # Errors
    /// What kept it from being sent, or a status that is no success. The token is in none of them.
    pub async fn post_json(
        &self,
        to: &Base,
        token: Option<&SecretString>,
        json: &str,
    ) -> Result<(), Error> {
        let mut request = Request::new(Method::POST, to.address());
        request.total = WITHIN;
        request.bytes = ANSWER;
        request.body = Some(json.as_bytes().to_vec());
        let kind = HeaderValue::from_static("application/json");
        request.headers.insert(CONTENT_TYPE, kind);
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
            let mut value = value.map_err(|_| {
                Error::config("the token", "it has characters that no header may have")
            })?;
            value.set_sensitive(true);
            request.headers.insert(AUTHORIZATION, value);
        }
        let secret = token.map(|token| token.expose_secret());
        let hide = |text: &str| said::without(text, secret);
        self.send(request).await?.success(hide).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails has panicked")]

    use super::*;
    use crate::stand_in::{Answer, StandIn};
    use serde_json::json;

    #[tokio::test]
    async fn it_is_sent_once_and_a_refusal_is_told_without_the_token() {
        let server = StandIn::start(|seen| match seen.target.as_str() {
            "/fine" => Answer::json(200, &json!({})),
            _ => Answer::json(403, &json!({"error": "token hunter2 is not known"})),
        });
        let outbound = Outbound::new(&Default::default()).unwrap();
        let token = SecretString::from("hunter2");
        let to = |path: &str| Base::new(&format!("{}{path}", server.url())).unwrap();
        let fine = to("/fine");
        let sent = outbound.post_json(&fine, Some(&token), r#"{"seq":1}"#);
        sent.await.unwrap();
        let refused = outbound.post_json(&to("/other"), Some(&token), "{}").await;
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("403") && !why.contains("hunter2"), "{why}");
        let seen = server.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(
            (seen[0].method.as_str(), seen[0].json().unwrap()),
            ("POST", json!({"seq": 1}))
        );
        assert_eq!(seen[0].header("authorization"), Some("Bearer hunter2"));
    }
}
