//! `issue_refund`: gives a customer money back. The one tool of this crate that changes something.
//!
//! It is an [`Effect`]: it runs by a warrant, after a person has approved the very bytes, and whoever composes a
//! program hands it to the gateway as [`issue_refund`]. Where refunds go is said by configuration ([`Refunds`]) and is
//! part of what the person reads; nothing stands in for it in silence. The parts: `ledger`, a file of this machine;
//! `service`, an HTTP API that recognises keys. Both give one refund for one key, so that sending again does no harm.

mod ledger;
mod service;

use std::path::PathBuf;
use std::time::Duration;

use paraph_gateway::{
    Attempt, DEFAULT_TIMEOUT, DynTool, Effect, EffectError, Found, Resolved, ToolError, Warrant,
};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::outbound::{Base, Outbound};
use ledger::Ledger;
use service::Service;

/// The currency of all amounts.
const CURRENCY: &str = "USD";

/// The most that is given back at once, in cents.
const MAX_CENTS: u64 = 10_000_000;

/// The name under which it is signed where the money goes through.
const PLACE: &str = "refunds go to";

/// The name under which it is signed what the user was given back before.
const EARLIER: &str = "given back to the user before";

/// How long after its own time an attempt may still arrive at a service.
const GRACE: Duration = Duration::from_secs(60);

/// Where refunds go.
#[derive(Clone, Debug)]
pub enum Refunds {
    /// Into a file: one line of JSON for each. It is made, private to its owner, with the folder that it stands in.
    Ledger(PathBuf),
    /// To a service: `POST {base}/refunds` with an `Idempotency-Key`, `GET {base}/refunds/{key}` to look one up.
    Service {
        /// The address of its API.
        base: Base,
        /// What is sent as a bearer's token.
        token: Option<SecretString>,
    },
}

impl Refunds {
    /// Where that is, for people.
    pub fn place(&self) -> String {
        match self {
            Refunds::Ledger(path) => path.display().to_string(),
            Refunds::Service { base, .. } => base.host(),
        }
    }
}

/// The tool `issue_refund`, for a gateway whose policy asks a person about it.
///
/// # Errors
/// [`Error::Config`] for a ledger whose path depends on the working directory, and for a token that cannot be sent.
///
/// ```
/// use paraph_gateway::Level;
/// use paraph_tools::{Outbound, OutboundSettings, Refunds, issue_refund};
/// let outbound = Outbound::new(&OutboundSettings::default())?;
/// let folder = std::env::current_dir()?;
/// let tool = issue_refund(&outbound, Refunds::Ledger(folder.join("refunds.jsonl")))?;
/// assert_eq!((tool.name.as_str(), tool.level), ("issue_refund", Level::Write));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn issue_refund(outbound: &Outbound, refunds: Refunds) -> Result<DynTool, Error> {
    IssueRefund::new(outbound, refunds).map(DynTool::effect)
}

/// A refund, as a model asks for it and as a person signs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refund {
    /// The number of the user who gets the money.
    user_id: u64,
    /// How much, in US cents: 4900 is 49.00 USD.
    #[schemars(range(min = 1, max = 10_000_000))]
    amount_cents: u64,
    /// Why, and by which rule, for the person who decides.
    #[schemars(length(min = 1, max = 500), regex(pattern = r"\S"))]
    reason: String,
}

/// What the model reads once it is done, and what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Receipt {
    /// What the other side calls it.
    refund: String,
    user_id: u64,
    amount_cents: u64,
    /// The same in words.
    amount: String,
    status: String,
}

impl Refund {
    fn receipt(&self, refund: String) -> Receipt {
        Receipt {
            refund,
            user_id: self.user_id,
            amount_cents: self.amount_cents,
            amount: money(self.amount_cents),
            status: "refunded".to_owned(),
        }
    }

    /// Bounds that hold whatever the schema was.
    fn check(&self) -> Result<(), EffectError> {
        match self.amount_cents {
            1..=MAX_CENTS => Ok(()),
            cents => Err(EffectError::nothing_happened(format!(
                "{cents} cents are not between 1 and {MAX_CENTS}"
            ))),
        }
    }
}

/// Cents as people write money.
fn money(cents: u64) -> String {
    format!("{}.{:02} {CURRENCY}", cents / 100, cents % 100)
}

/// The effect.
struct IssueRefund(Backend);

enum Backend {
    Ledger(Ledger),
    Service(Service),
}

impl IssueRefund {
    fn new(outbound: &Outbound, refunds: Refunds) -> Result<IssueRefund, Error> {
        Ok(IssueRefund(match refunds {
            Refunds::Ledger(path) => Backend::Ledger(Ledger::at(path)?),
            Refunds::Service { base, token } => {
                Backend::Service(Service::new(outbound, base, token)?)
            }
        }))
    }
}

impl Effect for IssueRefund {
    type Args = Refund;
    type Receipt = Receipt;
    const NAME: &'static str = "issue_refund";
    const ABOUT: &'static str = "Gives a user money back, in whole US cents. A person decides about it first, and reads the reason; \
         say in it by which rule the user gets the refund";

    fn describe(&self, refund: &Refund) -> String {
        let place = match &self.0 {
            Backend::Ledger(_) => {
                "It is written into the refund ledger of this machine.".to_owned()
            }
            Backend::Service(service) => format!("It is sent to {}.", service.host()),
        };
        format!(
            "Refund {} ({} cents) to user {}. {place} The reason given: {}",
            money(refund.amount_cents),
            refund.amount_cents,
            refund.user_id,
            refund.reason
        )
    }

    fn subject(&self, refund: &Refund) -> String {
        format!("refund to user {}", refund.user_id)
    }

    /// What is signed is a refund by this ledger or this service, and no other; and in a ledger, which can say so, one
    /// to a user who was given so much before: of two that were approved at the same time, the second is looked at anew.
    async fn resolve(&self, refund: &Refund) -> Result<Resolved, ToolError> {
        Ok(match &self.0 {
            Backend::Ledger(ledger) => Resolved::new()
                .target(PLACE, ledger.place())
                .precondition(EARLIER, ledger.given(refund.user_id).await?.to_string()),
            Backend::Service(service) => Resolved::new().target(PLACE, service.host()),
        })
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<Receipt, EffectError> {
        warrant.args.check()?;
        match &self.0 {
            Backend::Ledger(ledger) => ledger.write(&warrant).await,
            Backend::Service(service) => service.send(&warrant).await,
        }
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<Receipt>, ToolError> {
        match &self.0 {
            // Whoever still writes holds the ledger's lock, and one key is written once: to send again does no harm.
            Backend::Ledger(ledger) => Ok(match ledger.look(&attempt).await? {
                Some(receipt) => Found::Done(receipt),
                None => Found::SendAgain,
            }),
            Backend::Service(service) => Ok(match service.look(&attempt).await? {
                Some(receipt) => Found::Done(receipt),
                None => not_found(attempt.since()),
            }),
        }
    }
}

/// What it means that a service knows nothing of an attempt that was made so long ago.
fn not_found(since: Duration) -> Found<Receipt> {
    const LOOK: Duration = Duration::from_secs(10);
    match (DEFAULT_TIMEOUT + GRACE).checked_sub(since) {
        Some(left) if !left.is_zero() => Found::NotYet(left.min(LOOK)),
        _ => Found::SendAgain,
    }
}

#[cfg(test)]
mod tests;
