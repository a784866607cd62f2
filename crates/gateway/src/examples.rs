//! Two small effects, for examples and for whoever tries the gateway out. What they do stays in the process.
//!
//! [`Pay`] is like a payment service that recognises keys; [`Comment`] is like a forum that does not, so that each
//! comment carries a mark by which it is found again.

use crate::effect::{Attempt, Effect, EffectError, Found, Warrant};
use crate::tool::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pays money, once for each key.
#[derive(Clone, Debug, Default)]
pub struct Pay(Arc<Mutex<BTreeMap<String, u32>>>);

/// How much is paid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// In cents.
    pub cents: u32,
}

impl Pay {
    /// What was paid, by the keys under which it was.
    pub fn paid(&self) -> BTreeMap<String, u32> {
        locked(&self.0).clone()
    }
}

impl Effect for Pay {
    type Args = Amount;
    type Receipt = String;
    const NAME: &'static str = "pay";
    const ABOUT: &'static str = "Pays money";

    fn describe(&self, amount: &Amount) -> String {
        format!("Pay {} cents", amount.cents)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        let cents = warrant.args.cents;
        locked(&self.0).entry(warrant.key()).or_insert(cents);
        Ok(format!("paid {cents} cents"))
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        Ok(match locked(&self.0).get(&attempt.key()) {
            Some(cents) => Found::Done(format!("paid {cents} cents")),
            None => Found::SendAgain,
        })
    }
}

/// Writes a comment.
#[derive(Clone, Debug, Default)]
pub struct Comment(Arc<Mutex<Vec<String>>>);

/// What is written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    /// The text.
    pub text: String,
}

impl Comment {
    /// All comments, with their marks.
    pub fn written(&self) -> Vec<String> {
        locked(&self.0).clone()
    }
}

impl Effect for Comment {
    type Args = Text;
    type Receipt = usize;
    const NAME: &'static str = "comment";
    const ABOUT: &'static str = "Writes a comment";

    fn describe(&self, text: &Text) -> String {
        format!("Write: {}", text.text)
    }

    fn subject(&self, text: &Text) -> String {
        format!("comment: {}", text.text)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<usize, EffectError> {
        let text = format!("{}\n<!-- {} -->", warrant.args.text, warrant.marker());
        let mut written = locked(&self.0);
        written.push(text);
        Ok(written.len())
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<usize>, ToolError> {
        let mark = attempt.marker();
        let found = locked(&self.0).iter().position(|text| text.contains(&mark));
        Ok(match found {
            Some(at) => Found::Done(at + 1),
            None => Found::SendAgain,
        })
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
