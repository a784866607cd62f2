//! The desk: where people see what waits for them, decide, and stop everything.
//!
//! It needs the store and nothing else: no tool, no model, no run. A decision is one commit: the action's next row,
//! the audit entry, and a wake for the run, which goes on by that row and by nothing else. Programs that show actions
//! to people call it; the session never does.

mod anchoring;
mod comparing;
mod deciding;
mod editing;
mod erasing;
mod killing;
mod revoking;

pub use anchoring::AnchorDue;
pub use comparing::{Astray, AstrayFault};
pub use deciding::Finding;
pub use erasing::Whose;
pub use revoking::Revocation;

use crate::action::{ActionId, ActionRow, Evidence, State};
use crate::audit::{AuditEntry, Broken};
use crate::kill::grant_of;
use crate::seal::{Seal, SealKey};
use crate::store::{Change, Find, Kill, Store, StoreError, Wake};
use std::sync::Arc;

/// How many actions are read at a time.
const PAGE: usize = 200;

/// How often a decision looks again when somebody else was quicker.
const MAX_LOOKS: usize = 32;

/// Where people decide. A cheap handle.
///
/// ```
/// use paraph_gateway::{*, examples::Pay};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::shared();
/// let gateway = Gateway::builder(store.clone())
///     .effect(Pay::default())
///     .policy(Policy::new().ask("pay", Ask::default()))
///     .build()?;
/// let session = gateway.session(Scope::new("clerk", "case-7"), Limits::default()).await?;
/// let call = ToolCall::new("pay", r#"{"cents":100}"#)?;
/// let Reply::Waiting(question) = session.call("step-1", &call).await? else { panic!() };
///
/// // Elsewhere: a person.
/// let desk = Approvals::new(store);
/// let row = desk.show(question.action).await?;
/// assert_eq!(row.action.said.says, "Pay 100 cents");
/// desk.approve(row.id(), &row.digest, "ann").await?;             // the digest that was on the screen
///
/// let Reply::Observed(done) = session.call("step-1", &call).await? else { panic!() };
/// assert!(done.ok());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Approvals {
    store: Arc<dyn Store>,
    seal: Seal,
}

/// Why a decision was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// There is no such action.
    #[error("there is no action {0}")]
    NoAction(ActionId),
    /// The bytes that were looked at are not those of the action.
    #[error(
        "the digest is not that of the action: what was shown is not what would run; look at it again"
    )]
    OtherDigest,
    /// Somebody or something else was first.
    #[error("it is {} already", .0.state)]
    Conflict(Box<ActionRow>),
    /// A change was asked for as often as it may be.
    #[error(
        "a change was asked for {rounds} times about `{subject}` on this thread: approve it, edit it or refuse it"
    )]
    TooManyRounds {
        /// How often.
        rounds: usize,
        /// What it is about.
        subject: String,
    },
    /// Who asked for it, or edited it, may not approve it.
    #[error("who asked for an action, or edited it, may not approve it")]
    OwnRequest,
    /// Only people whose identity was verified may approve it.
    #[error("only people whose identity was verified may approve this")]
    Unverified,
    /// A decision that needs words has none.
    #[error("say why: the reason is what the model reads")]
    NoReason,
    /// More words than are kept.
    #[error("that is too long: at most {most} characters are kept, and it has {count}")]
    TooLong {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// The changed arguments are no arguments of the tool.
    #[error("the changed arguments do not fit: {0}")]
    BadArgs(String),
    /// What the action is of is not there to look at the changed arguments.
    #[error("`{0}` is not registered here")]
    NoTool(String),
    /// A text is no scope of a kill switch.
    #[error("`{scope}` is no scope: {there_are}")]
    BadScope {
        /// The text.
        scope: String,
        /// What there is.
        there_are: String,
    },
    /// A name is none that an agent or a grant can have.
    #[error("the names of agents and grants have 1 to {most} bytes")]
    BadName {
        /// The most.
        most: usize,
    },
    /// The audit is not whole, so that no anchor is made of it.
    #[error("the audit is broken: {0}")]
    Broken(Broken),
    /// The store could not be read or written.
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
}

impl Approvals {
    /// A desk at this store.
    pub fn new(store: Arc<dyn Store>) -> Approvals {
        Approvals {
            store,
            seal: Seal::default(),
        }
    }

    pub(crate) fn with(store: Arc<dyn Store>, seal: Seal) -> Approvals {
        Approvals { store, seal }
    }

    /// A desk whose approvals carry a proof that a gateway with the same key asks for.
    #[must_use]
    pub fn sealed(self, key: impl Into<SealKey>) -> Approvals {
        Approvals {
            seal: Seal::by(key.into()),
            ..self
        }
    }

    /// An action as it stands.
    ///
    /// # Errors
    /// [`ApprovalError::NoAction`], [`ApprovalError::Store`].
    pub async fn show(&self, id: ActionId) -> Result<ActionRow, ApprovalError> {
        let found = self.store.actions(Find::Id(id)).await?;
        found.into_iter().next().ok_or(ApprovalError::NoAction(id))
    }

    /// What waits for people, the oldest first: to be decided, or to be looked up because nobody saw what came of it.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn waiting(&self) -> Result<Vec<ActionRow>, ApprovalError> {
        self.list(&[State::Pending, State::Held, State::Unknown])
            .await
    }

    /// All actions in these states, the oldest first.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn list(&self, states: &[State]) -> Result<Vec<ActionRow>, ApprovalError> {
        let mut all: Vec<ActionRow> = Vec::new();
        loop {
            let find = Find::States {
                states,
                after: all.last().map(ActionRow::id),
                limit: PAGE,
            };
            let page = self.store.actions(find).await?;
            let whole = page.len() < PAGE;
            all.extend(page);
            if whole {
                return Ok(all);
            }
        }
    }

    /// The actions that are not over although their approvals were not given at a desk with this one's key, or are
    /// fewer than they need: what somebody wrote into the store by hand. A gateway with the key starts none of them.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn unproved(&self) -> Result<Vec<ActionRow>, ApprovalError> {
        let open: Vec<_> = State::ALL
            .into_iter()
            .filter(|state| !state.is_final())
            .collect();
        let mut rows = self.list(&open).await?;
        rows.retain(|row| match row.state.is_undecided() {
            true => !self.seal.votes_hold(row),
            false => !row.is_signed() || !self.seal.holds(row),
        });
        Ok(rows)
    }

    /// Whether the results on which an action rests are still recorded as its run had read them; nothing if it rests on
    /// none. Records that are gone, with their thread say, are not as they were.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn evidence_holds(&self, row: &ActionRow) -> Result<Option<bool>, ApprovalError> {
        let said = &row.action.said;
        let Some(evidence) = &said.evidence else {
            return Ok(None);
        };
        let records = self.store.calls(&said.run).await?;
        let own = records.iter().find(|record| record.key == said.key);
        let now = own.and_then(|own| Evidence::before(own.step, &records));
        Ok(Some(now.as_ref() == Some(evidence)))
    }

    /// The runs that have something to do by now, those that are due first.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn wakes(&self) -> Result<Vec<Wake>, ApprovalError> {
        Ok(self.store.wakes(PAGE).await?)
    }

    /// A run was driven on because of a wake. If there is a newer one meanwhile, that one stays.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn woken(&self, wake: &Wake) -> Result<(), ApprovalError> {
        let change = Change {
            woken: vec![wake.clone()],
            ..Change::default()
        };
        Ok(self.store.commit(change).await?)
    }

    /// The kill switches that are on.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn kills(&self) -> Result<Vec<Kill>, ApprovalError> {
        let mut kills = self.store.kills().await?;
        kills.retain(|kill| grant_of(&kill.scope).is_none());
        Ok(kills)
    }

    /// The entries of a tenant's audit behind one (0 for the first), in their order; at most so many.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn audit(
        &self,
        tenant: &str,
        after: u64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, ApprovalError> {
        Ok(self.store.audit(tenant, after, limit).await?)
    }

    async fn now(&self) -> Result<u64, ApprovalError> {
        Ok(self.store.now_ms().await?)
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").finish_non_exhaustive()
    }
}
