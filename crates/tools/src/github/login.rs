//! Signing in from a terminal: GitHub shows a page on which a person types a short code, and gives a token for it.
//!
//! Called by whoever has a terminal to show the code on. The token and the secret half of the code are in no error and
//! no `Debug`; where the token is kept is the caller's business.

use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{GitHubFault, unreadable};
use crate::error::Error;
use crate::outbound::{Base, Outbound, Request};
use crate::said;

const WHAT: &str = "signing in";

/// What the token may do: comment and label in public repositories. GitHub has no narrower one for such tokens.
const SCOPE: &str = "public_repo";

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// How often is asked at least, and the longest time that a code is waited for, in seconds.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=60;
const LONGEST: u64 = 3_600;

/// How many bytes of an answer are read.
const ANSWER: usize = 64 << 10;

/// A person who is signing in.
pub struct DeviceLogin {
    /// What they type.
    pub user_code: String,
    /// The address of the page on which they type it.
    pub verification_uri: String,
    /// For how long it is good.
    pub expires_in: Duration,
    outbound: Outbound,
    site: Base,
    client_id: String,
    device_code: SecretString,
    interval: u64,
}

impl DeviceLogin {
    /// Asks a site (`https://github.com`) for a code, in the name of the application with this id.
    ///
    /// # Errors
    /// What kept it from being asked, and what it refuses: an id that it does not know, an application that may not.
    pub async fn begin(
        outbound: &Outbound,
        site: Base,
        client_id: &str,
    ) -> Result<DeviceLogin, Error> {
        let asked = [("client_id", client_id), ("scope", SCOPE)];
        let answer = ask(outbound, &site, ("login/device/code", &asked)).await?;
        if let Some(error) = answer.get("error").and_then(Value::as_str) {
            return Err(refused(error));
        }
        let text = |key: &str| {
            let value = answer.get(key).and_then(Value::as_str);
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| unreadable(WHAT, format!("it has no `{key}`")))
        };
        let number = |key: &str, or: u64| answer.get(key).and_then(Value::as_u64).unwrap_or(or);
        Ok(DeviceLogin {
            user_code: said::short(text("user_code")?),
            verification_uri: said::short(text("verification_uri")?),
            expires_in: Duration::from_secs(number("expires_in", 900).min(LONGEST)),
            device_code: text("device_code")?.into(),
            interval: number("interval", 5).clamp(*INTERVALS.start(), *INTERVALS.end()),
            outbound: outbound.clone(),
            site,
            client_id: client_id.to_owned(),
        })
    }

    /// Waits until they have typed it, and gives the token.
    ///
    /// # Errors
    /// They refused, or the time was over; and what kept the site from being asked three times in a row.
    pub async fn token(self) -> Result<SecretString, Error> {
        let end = tokio::time::Instant::now() + self.expires_in;
        let mut interval = self.interval;
        let mut failures = 0;
        loop {
            tokio::time::sleep(Duration::from_secs(interval)).await;
            if tokio::time::Instant::now() >= end {
                return Err(refused("expired_token"));
            }
            let asked = [
                ("client_id", self.client_id.as_str()),
                ("device_code", self.device_code.expose_secret()),
                ("grant_type", GRANT),
            ];
            let answer = ask(
                &self.outbound,
                &self.site,
                ("login/oauth/access_token", &asked),
            )
            .await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(_) if failures < 2 => {
                    failures += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failures = 0;
            if let Some(token) = answer.get("access_token").and_then(Value::as_str) {
                return Ok(token.into());
            }
            match answer.get("error").and_then(Value::as_str) {
                Some("authorization_pending") => {}
                Some("slow_down") => {
                    let asked = answer.get("interval").and_then(Value::as_u64);
                    interval = asked
                        .unwrap_or(interval + 5)
                        .clamp(*INTERVALS.start(), *INTERVALS.end());
                }
                Some(error) => return Err(refused(error)),
                None => return Err(unreadable(WHAT, "it has no token and no error".to_owned())),
            }
        }
    }
}

impl fmt::Debug for DeviceLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLogin")
            .field("user_code", &self.user_code)
            .field("verification_uri", &self.verification_uri)
            .finish_non_exhaustive()
    }
}

/// Sends a form, and reads the JSON that is answered.
async fn ask(
    outbound: &Outbound,
    site: &Base,
    (path, fields): (&str, &[(&str, &str)]),
) -> Result<Value, Error> {
    let mut request = Request::new(Method::POST, site.join(path));
    request.bytes = ANSWER;
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.insert(CONTENT_TYPE, form);
    request
        .headers
        .insert(ACCEPT, HeaderValue::from_static("application/json"));
    let form = Url::parse_with_params("form:", fields).ok();
    let form = form.and_then(|url| url.query().map(str::to_owned));
    request.body = form.map(String::into_bytes);
    let answer = outbound.answer(request).await?;
    let value: Option<Value> = serde_json::from_slice(&answer.body).ok();
    match value {
        // What is refused may come with a status of success, and what waits with one of failure.
        Some(value) if value.get("error").is_some() || answer.status == 200 => Ok(value),
        _ => Err(Error::GitHub {
            what: WHAT.to_owned(),
            fault: match answer.status {
                200 => return Err(unreadable(WHAT, "it is no JSON".to_owned())),
                404 => GitHubFault::NotFound,
                status => GitHubFault::Status {
                    status,
                    said: String::new(),
                },
            },
        }),
    }
}

/// What GitHub's word for a refusal means.
fn refused(error: &str) -> Error {
    let said = match error {
        "expired_token" => "the code was not typed in time; begin again",
        "access_denied" => "it was refused on the page",
        "incorrect_client_credentials" => "GitHub knows no application with this client id",
        "device_flow_disabled" => "the application may not sign people in from a terminal",
        "incorrect_device_code" => "GitHub does not know the code any more; begin again",
        other => other,
    };
    Error::GitHub {
        what: WHAT.to_owned(),
        fault: GitHubFault::Refused {
            said: said::short(said),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::stand_in::{Answer, StandIn};
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A site that gives a code, and then these answers, one after the other.
    fn site(answers: Vec<Value>) -> StandIn {
        let asked = AtomicUsize::new(0);
        StandIn::start(move |seen| match seen.path() {
            "/login/device/code" => {
                assert_eq!(seen.body, b"client_id=Iv1.lamp&scope=public_repo");
                assert_eq!(seen.header("accept"), Some("application/json"));
                let code = json!({
                    "device_code": "d3vice", "user_code": "WXYZ-1234", "interval": 1, "expires_in": 900,
                    "verification_uri": "https://github.com/login/device",
                });
                Answer::json(200, &code)
            }
            "/login/oauth/access_token" => {
                assert!(String::from_utf8_lossy(&seen.body).contains("device_code=d3vice"));
                let at = asked.fetch_add(1, Ordering::SeqCst);
                Answer::json(200, answers.get(at).unwrap_or(&json!(null)))
            }
            other => panic!("{other}"),
        })
    }

    async fn begin(server: &StandIn) -> Result<DeviceLogin, Error> {
        let outbound = Outbound::new(&Default::default()).unwrap();
        let site = Base::new(&server.url()).unwrap();
        DeviceLogin::begin(&outbound, site, "Iv1.lamp").await
    }

    #[tokio::test]
    async fn a_code_is_shown_and_the_token_comes_once_it_was_typed() {
        let pending = json!({"error": "authorization_pending"});
        let slower = json!({"error": "slow_down", "interval": 1});
        let server = site(vec![pending, slower, json!({"access_token": "gho_s3cret"})]);
        let login = begin(&server).await.unwrap();
        assert_eq!(login.user_code, "WXYZ-1234");
        assert_eq!(login.verification_uri, "https://github.com/login/device");
        assert!(!format!("{login:?}").contains("d3vice"));
        assert_eq!(login.token().await.unwrap().expose_secret(), "gho_s3cret");
    }

    #[tokio::test]
    async fn refusals_say_what_to_do() {
        for (error, text) in [
            (
                "access_denied",
                "signing in: GitHub refuses it: it was refused on the page",
            ),
            (
                "expired_token",
                "signing in: GitHub refuses it: the code was not typed in time; begin again",
            ),
            (
                "something_new",
                "signing in: GitHub refuses it: something_new",
            ),
        ] {
            let server = site(vec![json!({"error": error})]);
            let login = begin(&server).await.unwrap();
            assert_eq!(login.token().await.unwrap_err().to_string(), text);
        }
        let unknown = StandIn::start(|_| Answer::json(404, &json!({"error": "Not Found"})));
        let error = begin(&unknown).await.unwrap_err().to_string();
        assert_eq!(error, "signing in: GitHub refuses it: Not Found");
        let empty = StandIn::start(|_| Answer::json(200, &json!({})));
        let error = begin(&empty).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "signing in: GitHub's answer cannot be read: it has no `user_code`"
        );
    }
}
