//! Refunds by an HTTP service that recognises keys: it gives one refund for one key, however often it is asked.
//!
//! Only [`IssueRefund`] uses it. All of it goes through the outbound guard, once: what came of a request that was not
//! answered is looked up, and not guessed.

use paraph_gateway::{Attempt, EffectError, ToolError, Warrant};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::{CURRENCY, IssueRefund, Receipt, Refund};
use crate::error::Error;
use crate::outbound::{Base, Fetched, Outbound, Request};
use crate::said::short;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest name of a refund that is taken over, in characters.
const MAX_NAME: usize = 200;

/// A service, and what it is sent to be let in.
pub(super) struct Service {
    outbound: Outbound,
    base: Base,
    token: Option<(SecretString, HeaderValue)>,
}

impl Service {
    /// # Errors
    /// [`Error::Config`] for a token that no header can carry.
    pub(super) fn new(
        outbound: &Outbound,
        base: Base,
        token: Option<SecretString>,
    ) -> Result<Service, Error> {
        let token = token.map(|token| {
            let header = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
            let mut header = header.map_err(|_| {
                let problem = "it has characters that no header can carry";
                Error::config("the token of the refund service", problem)
            })?;
            header.set_sensitive(true);
            Ok((token, header))
        });
        Ok(Service {
            outbound: outbound.clone(),
            base,
            token: token.transpose()?,
        })
    }

    /// Scheme, host and port.
    pub(super) fn host(&self) -> String {
        self.base.host()
    }

    /// Asks for the refund that was signed.
    pub(super) async fn send(
        &self,
        warrant: &Warrant<'_, IssueRefund>,
    ) -> Result<Receipt, EffectError> {
        let refund = &warrant.args;
        let key = warrant.key();
        let mut request = self.request(Method::POST, "refunds");
        let in_header = HeaderValue::try_from(key.as_str());
        let in_header =
            in_header.map_err(|error| EffectError::nothing_happened(error.to_string()))?;
        request.headers.insert(IDEMPOTENCY_KEY, in_header);
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(CONTENT_TYPE, json);
        let body = json!({
            "user_id": refund.user_id,
            "amount_cents": refund.amount_cents,
            "currency": CURRENCY,
            "reason": refund.reason,
        });
        request.body = Some(body.to_string().into_bytes());
        let answered = self.outbound.send(request).await;
        let answered = answered.and_then(|answer| answer.success(|text| self.hide(text)));
        let answer = answered.map_err(|error| what_it_means(&error))?;
        receipt(refund, &key, &answer).map_err(EffectError::unknown)
    }

    /// The receipt of an attempt, if it has arrived.
    pub(super) async fn look(
        &self,
        attempt: &Attempt<'_, IssueRefund>,
    ) -> Result<Option<Receipt>, ToolError> {
        let key = attempt.key();
        let request = self.request(Method::GET, &format!("refunds/{key}"));
        let answer = self.outbound.send(request).await?;
        if answer.status == 404 {
            return Ok(None);
        }
        let answer = answer.success(|text| self.hide(text))?;
        let receipt = receipt(&attempt.args, &key, &answer);
        receipt.map(Some).map_err(ToolError::new)
    }

    fn request(&self, method: Method, path: &str) -> Request {
        let mut request = Request::new(method, self.base.join(path));
        if let Some((_, header)) = &self.token {
            request.headers.insert(AUTHORIZATION, header.clone());
        }
        request
    }

    fn hide(&self, text: &str) -> String {
        match &self.token {
            Some((token, _)) => crate::said::without(text, [token.expose_secret()]),
            None => text.to_owned(),
        }
    }
}

/// Whether a refund that was not confirmed may have been made all the same.
pub(super) fn what_it_means(error: &Error) -> EffectError {
    let nothing = match error {
        Error::Config { .. }
        | Error::Url { .. }
        | Error::Forbidden { .. }
        | Error::Unresolved { .. }
        | Error::Connect { sent: false, .. } => true,
        // Refused before anything was done. A conflict (409) may mean that the same key is under way.
        Error::Status { status, .. } => {
            matches!(status, 400..=407 | 410..=422 | 426 | 428 | 429 | 431 | 451)
        }
        _ => false,
    };
    match nothing {
        true => EffectError::nothing_happened(error.to_string()),
        false => EffectError::unknown(error.to_string()),
    }
}

/// What a successful answer confirms. It has to be this refund, as far as it says which one it is.
fn receipt(refund: &Refund, key: &str, answer: &Fetched) -> Result<Receipt, String> {
    let said = answer.json().unwrap_or(Value::Null);
    let other = |name: &str, own: u64| {
        let value = said.get(name).filter(|value| !value.is_null());
        value.is_some_and(|value| value.as_u64() != Some(own))
    };
    if other("user_id", refund.user_id) || other("amount_cents", refund.amount_cents) {
        return Err(format!(
            "{} answered with another refund than the one it was sent",
            answer.host()
        ));
    }
    let name = match said.get("id").or_else(|| said.get("refund")) {
        Some(Value::String(name)) if !name.trim().is_empty() => short(name),
        Some(Value::Number(number)) => number.to_string(),
        _ => super::ledger::name_of(key),
    };
    Ok(refund.receipt(crate::said::cut(name, MAX_NAME)))
}
