//! What every node of a run finds in its context: its gateway, its model, what it may use, and its session.
//!
//! The first node of a run opens its session, under the run's lease: what an earlier process recorded is
//! read when nobody else can add to it. Parts of a run open theirs out of the same purse. Nothing here asks a model.

use crate::asking::spend_of;
use crate::branches::{Branch, Branches};
use crate::event::BudgetView;
use crate::reserve::Reserve;
use crate::spent::Spent;
use paraph_gateway::{Budget, Gateway, Limits, LoopRule, Price, Redactor, Scope, Session, Stop};
use paraph_graph::Ctx;
use paraph_models::ChatModel;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::OnceCell;

/// What the nodes of one run find in their context.
pub(crate) struct RunContext {
    pub(crate) gateway: Gateway,
    /// But for the epoch, which only a lease has.
    pub(crate) scope: Scope,
    pub(crate) limits: Limits,
    /// Where the run is another's child.
    pub(crate) purse: Option<Budget>,
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) price: Option<Price>,
    pub(crate) tell_messages: bool,
    /// What is kept back for a last answer.
    pub(crate) reserve: Reserve,
    /// Whether the run goes on that an earlier process began.
    pub(crate) again: bool,
    /// What the state said that the run had used when this process took it up.
    pub(crate) known: Spent,
    /// Opened by the first node.
    pub(crate) session: OnceCell<Session>,
    /// What counts as a loop among the calls of its parts.
    pub(crate) loops: LoopRule,
    /// The sessions of parts of the run that have a share of its budget each.
    pub(crate) branches: Branches,
    /// The model's attempts, of this process and of those before it.
    pub(crate) attempts: AtomicU64,
    /// How many repairs of the conversation this process has told of.
    pub(crate) repairs_told: AtomicUsize,
}

impl RunContext {
    pub(crate) fn redactor(&self) -> &Redactor {
        self.gateway.redactor()
    }

    /// What a run that has not begun has used, and what it may use.
    pub(crate) fn fresh_budget(&self) -> BudgetView {
        BudgetView::of(&Budget::new(self.limits.clone()))
    }

    /// What a run has used that goes on. To be told; what counts is read under the lease.
    pub(crate) async fn budget_so_far(&self) -> Result<BudgetView, Stop> {
        let (scope, limits, known) = (self.scope.clone(), self.limits.clone(), self.known.usage());
        let session = self.gateway.resume(scope, limits, &known).await?;
        Ok(BudgetView::of(session.budget()))
    }

    /// Opens the session of a run that nobody can take up again, and so needs no lease.
    pub(crate) async fn open_by_hand(&self) -> Result<(), Stop> {
        let (scope, limits) = (self.scope.clone(), self.limits.clone());
        let open = || self.gateway.session(scope, limits);
        self.session.get_or_try_init(open).await?;
        Ok(())
    }

    /// Opens the run's session under its lease.
    async fn open(&self, ctx: &Ctx, spent: &Spent) -> Result<Session, Stop> {
        let purse = self.purse.clone();
        let purse = purse.unwrap_or_else(|| Budget::new(self.limits.clone()));
        let scope = self.scope_of(ctx);
        let session = self.gateway.resume_in(scope, purse, &spent.usage()).await?;
        // At worst all of it is an answer, which costs more than what is sent.
        let costs = |tokens| spend_of(self.price.as_ref(), 0, tokens);
        self.reserve.keep(session.budget(), costs);
        self.go_on_after(spent);
        Ok(session)
    }

    /// The run's session; its first node opens it.
    pub(crate) async fn main(&self, ctx: &Ctx, spent: &Spent) -> Result<&Session, Stop> {
        self.session.get_or_try_init(|| self.open(ctx, spent)).await
    }

    /// The session of a part of the run, with its share of the run's purse.
    pub(crate) async fn branch(
        &self,
        ctx: &Ctx,
        branch: &Branch<'_>,
        spent: &Spent,
    ) -> Result<Session, Stop> {
        let main = self.main(ctx, &self.known).await?;
        let scope = self.scope_of(ctx);
        let open = async || {
            let purse = main
                .budget()
                .carve_again(branch.name, branch.share.clone())?;
            let scope = Scope {
                run: format!("{}/{}", scope.run, branch.name),
                loops: self.loops,
                ..scope
            };
            let usage = spent.usage();
            let session = branch.gateway.resume_in(scope, purse, &usage).await?;
            self.go_on_after(spent);
            Ok(session)
        };
        self.branches.open(branch.name, open).await
    }

    fn scope_of(&self, ctx: &Ctx) -> Scope {
        Scope {
            epoch: ctx.lease().epoch,
            ..self.scope.clone()
        }
    }

    /// A model that plays lines goes on behind those which the run has kept.
    fn go_on_after(&self, spent: &Spent) {
        let attempts = spent.attempts;
        if self.again && self.attempts.fetch_max(attempts, Ordering::Relaxed) < attempts {
            self.model.go_on_after(attempts);
        }
    }
}
