//! The two effects of an errand, and how they reach the world: with a place to die before and after each message.
//!
//! Handed to the gateway by `driving`. A [`Flaw`] takes away what makes one of them happen once; it is there to show
//! that the trials would see it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use paraph_gateway::{Attempt, Effect, EffectError, Found, Signed, ToolError, Warrant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::world::{Answer, Request};
use crate::fuse::Fuse;
use crate::outside::say;

/// Whose account the forum shows with our comments.
pub(crate) const AUTHOR: &str = "ann";

/// How long after the start of an attempt the forum still takes its comment, in milliseconds.
const LATEST_MS: u64 = 200;

/// How long after the start of an attempt a comment that is not found may still come.
const GRACE: Duration = Duration::from_millis(LATEST_MS + 150);

/// A fault that is put into the effects, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// What came of an attempt is not looked up: it is sent again.
    NoLook,
    /// Each attempt has a key of its own.
    KeyPerAttempt,
}

/// The way to the world from one process of one trial.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) world: SocketAddr,
    pub(crate) trial: String,
    pub(crate) fuse: Arc<Fuse>,
    /// When the last attempt was begun, in milliseconds since the Unix epoch.
    pub(crate) claimed_ms: Arc<AtomicU64>,
    pub(crate) flaw: Option<Flaw>,
}

impl Reach {
    /// Asks the world. A process may die before it sends, once all is sent, before it reads and after.
    pub(crate) async fn ask(
        &self,
        (sending, hearing): (&'static str, &'static str),
        request: &Request,
    ) -> io::Result<Answer> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        let mut stream = TcpStream::connect(self.world).await?;
        let at = self.fuse.begin(sending);
        stream.write_all(line.as_bytes()).await?;
        self.fuse.end(at);
        let at = self.fuse.begin(hearing);
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        self.fuse.end(at);
        Ok(serde_json::from_str(&answer)?)
    }

    async fn send(&self, request: &Request) -> io::Result<Answer> {
        self.ask(("send", "answer"), request).await
    }

    async fn look(&self, request: &Request) -> io::Result<Answer> {
        self.ask(("look", "seen"), request).await
    }
}

fn odd(answer: &Answer) -> String {
    format!("the world said {answer:?}")
}

/// Pays money at a service that does each key once.
#[derive(Clone, Debug)]
pub(crate) struct Pay(pub(crate) Reach);

/// How much is paid, for what.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Amount {
    pub(crate) cents: u32,
    #[serde(default)]
    pub(crate) order: u64,
}

impl Pay {
    fn key<A>(&self, signed: &Signed<'_, A>) -> String {
        match self.0.flaw {
            Some(Flaw::KeyPerAttempt) => format!("{} {}", signed.key(), uuid::Uuid::now_v7()),
            _ => signed.key(),
        }
    }
}

impl Effect for Pay {
    type Args = Amount;
    type Receipt = String;
    const NAME: &'static str = "pay";
    const ABOUT: &'static str = "Pays money for an order";

    fn describe(&self, amount: &Amount) -> String {
        format!("Pay {} cents for order {}", amount.cents, amount.order)
    }

    fn subject(&self, amount: &Amount) -> String {
        format!("order:{}", amount.order)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        let request = Request::Pay {
            trial: self.0.trial.clone(),
            key: self.key(&warrant),
            cents: warrant.args.cents,
        };
        match self.0.send(&request).await? {
            Answer::Paid(id) => Ok(format!("payment {id}")),
            other => Err(EffectError::unknown(odd(&other))),
        }
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        if self.0.flaw == Some(Flaw::NoLook) {
            return Ok(Found::SendAgain);
        }
        let request = Request::Payment {
            trial: self.0.trial.clone(),
            key: self.key(&attempt),
        };
        match self.0.look(&request).await? {
            Answer::Paid(id) => Ok(Found::Done(format!("payment {id}"))),
            // The service would recognise the key of one that is still under way.
            Answer::Unpaid => Ok(Found::SendAgain),
            other => Err(ToolError::new(odd(&other))),
        }
    }
}

/// Writes a comment in a forum that knows no keys.
#[derive(Clone, Debug)]
pub(crate) struct Write(pub(crate) Reach);

/// What is written.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Text {
    pub(crate) text: String,
}

fn body(signed: &Signed<'_, Text>) -> String {
    format!("{}\n<!-- {} -->", signed.args.text, signed.marker())
}

impl Effect for Write {
    type Args = Text;
    type Receipt = String;
    const NAME: &'static str = "write";
    const ABOUT: &'static str = "Writes a comment";

    fn describe(&self, text: &Text) -> String {
        format!("Write as {AUTHOR}: {}", text.text)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        say(&format!("marked {}", warrant.marker()));
        let claimed_ms = self.0.claimed_ms.load(Ordering::SeqCst);
        let request = Request::Post {
            trial: self.0.trial.clone(),
            author: AUTHOR.to_owned(),
            body: body(&warrant),
            by_ms: claimed_ms.saturating_add(LATEST_MS),
        };
        match self.0.send(&request).await? {
            Answer::Posted(id) => Ok(format!("comment {id}")),
            other => Err(EffectError::unknown(odd(&other))),
        }
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        if self.0.flaw == Some(Flaw::NoLook) {
            return Ok(Found::SendAgain);
        }
        let trial = self.0.trial.clone();
        let listed = match self.0.look(&Request::Comments { trial }).await? {
            Answer::Comments(listed) => listed,
            other => return Err(ToolError::new(odd(&other))),
        };
        // The mark alone anybody can copy: it has to be ours, and all that was signed.
        let body = body(&attempt);
        let ours = listed
            .iter()
            .find(|comment| comment.author == AUTHOR && comment.body == body);
        Ok(match ours {
            Some(comment) => Found::Done(format!("comment {}", comment.id)),
            None if attempt.since() < GRACE => Found::NotYet(GRACE - attempt.since()),
            None => Found::SendAgain,
        })
    }
}
