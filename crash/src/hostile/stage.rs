//! The gateway that the hostile model has to do with: an effect, a tool that destroys and one that only looks; and what
//! these did, written down by themselves.
//!
//! Set by `hostile`, several episodes have one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paraph_gateway::{
    ActionId, Ask, Attempt, DynTool, Effect, EffectError, Found, Gateway, IntoOutput, Json, Level,
    MemoryStore, Numbers, Policy, Store, ToolError, Warrant, canonical_of,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Fault;

/// What an effect did: of which action, under which digest, with which arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) action: ActionId,
    pub(super) digest: String,
    pub(super) args: String,
}

/// The world, which writes down what happens to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Arc<Mutex<Vec<Done>>>);

impl Ledger {
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<Done>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends money somewhere.
#[derive(Clone)]
struct Send(Ledger);

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Transfer {
    cents: u32,
    to: String,
    #[serde(default)]
    note: String,
}

impl Effect for Send {
    type Args = Transfer;
    type Receipt = String;
    const NAME: &'static str = "send_money";
    const ABOUT: &'static str = "Sends money";

    fn describe(&self, transfer: &Transfer) -> String {
        format!("Send {} cents to {}", transfer.cents, transfer.to)
    }

    fn subject(&self, transfer: &Transfer) -> String {
        format!("transfer to {} of {}", transfer.to, transfer.cents)
    }

    async fn run(&self, warrant: Warrant<'_, Self>) -> Result<String, EffectError> {
        let args = canonical_of(&warrant.args, Numbers::Any);
        self.0.all().push(Done {
            action: warrant.action(),
            digest: warrant.digest().to_owned(),
            args: args.map_err(|error| EffectError::unknown(error.to_string()))?,
        });
        // Now and then nobody sees the end.
        match warrant.args.cents % 5 {
            0 => Err(EffectError::unknown("the answer was lost")),
            _ => Ok("sent".to_owned()),
        }
    }

    async fn reconcile(&self, attempt: Attempt<'_, Self>) -> Result<Found<String>, ToolError> {
        let sent = self
            .0
            .all()
            .iter()
            .any(|done| done.action == attempt.action());
        Ok(match sent {
            true => Found::Done("sent".to_owned()),
            false => Found::SendAgain,
        })
    }
}

/// A gateway and its world, which several episodes share.
pub(super) struct Stage {
    pub(super) gateway: Gateway,
    pub(super) store: Arc<dyn Store>,
    pub(super) ledger: Ledger,
    /// What the time is, in milliseconds.
    pub(super) clock: Arc<AtomicU64>,
    /// What the tool did that is known only at run time: the key, and the arguments.
    pub(super) dropped: Arc<Mutex<Vec<(String, String)>>>,
}

impl Stage {
    pub(super) fn set(over: impl Fn(Arc<dyn Store>) -> Arc<dyn Store>) -> Result<Stage, Fault> {
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let time = clock.clone();
        let store = over(MemoryStore::with_clock(move || time.load(Ordering::SeqCst)));
        let ledger = Ledger::default();
        let dropped = Arc::new(Mutex::new(Vec::new()));
        let sink = dropped.clone();
        let anything = json!({"type": "object"});
        let mut drop_it = DynTool::in_context(
            "drop_table",
            "Drops a table",
            anything.clone(),
            move |args: Json, context| {
                let done = (context.key().to_owned(), args.to_string());
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(done);
                Box::pin(async { "dropped".into_output() })
            },
        );
        drop_it.level = Level::Delete;
        let look = DynTool::new("look", "Looks", anything, async |args: Json| {
            // What strangers wrote comes back as it is.
            Ok::<_, ToolError>(args)
        });
        let ask = Ask::default();
        let policy = Policy::new()
            .allow(["look"])
            .ask("send_money", ask)
            .ask("drop_table", ask);
        let gateway = Gateway::builder(store.clone())
            .effect(Send(ledger.clone()))
            .dynamic(look)
            .dynamic(drop_it)
            .policy(policy)
            .build()?;
        Ok(Stage {
            gateway,
            store,
            ledger,
            clock,
            dropped,
        })
    }
}
