//! The bookkeeping of one purse: pure, without locks, parents or clocks.

use super::{Limits, Spend, UNLIMITED, Usage};
use crate::stop::Stop;

/// What is taken out of a purse and may come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    tool_calls: u64,
    tokens: u64,
    micro_dollars: u64,
    children: u64,
}

impl Amounts {
    pub(super) fn of(spend: Spend) -> Amounts {
        Amounts {
            tokens: spend.tokens,
            micro_dollars: spend.micro_dollars.unwrap_or(0),
            ..Amounts::default()
        }
    }

    /// What a part that is kept back takes along: every limited share of it, and no child.
    pub(super) fn kept_back(share: &Limits) -> Amounts {
        Amounts {
            children: 0,
            tool_calls: 0,
            ..Amounts::shared(share)
        }
    }

    pub(super) fn figures(self) -> [u64; 4] {
        [
            self.tool_calls,
            self.tokens,
            self.micro_dollars,
            self.children,
        ]
    }

    pub(super) fn of_figures([tool_calls, tokens, micro_dollars, children]: [u64; 4]) -> Amounts {
        Amounts {
            tool_calls,
            tokens,
            micro_dollars,
            children,
        }
    }

    pub(super) fn less(self, other: Amounts) -> Amounts {
        self.with(other, u64::saturating_sub)
    }

    pub(super) fn at_least(self, other: Amounts) -> Amounts {
        self.with(other, u64::max)
    }

    fn with(self, other: Amounts, each: impl Fn(u64, u64) -> u64) -> Amounts {
        Amounts {
            tool_calls: each(self.tool_calls, other.tool_calls),
            tokens: each(self.tokens, other.tokens),
            micro_dollars: each(self.micro_dollars, other.micro_dollars),
            children: each(self.children, other.children),
        }
    }

    /// What a child with these limits takes along: itself, and every limited share.
    pub(super) fn shared(share: &Limits) -> Amounts {
        let limited = |amount: u64| if amount == UNLIMITED { 0 } else { amount };
        Amounts {
            tool_calls: limited(share.tool_calls),
            tokens: limited(share.tokens),
            micro_dollars: limited(share.micro_dollars),
            children: limited(share.children).saturating_add(1),
        }
    }
}

/// Whose calls a call is taken from, seen from one purse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payer {
    /// It is this purse's own call.
    Own,
    /// A child made it, which has no share of calls and spends from here.
    ForChild,
    /// A child made it and pays from its share; only the caps of single tools concern this purse.
    ChildsShare,
}

#[derive(Debug)]
pub(super) struct Purse {
    limits: Limits,
    used: Usage,
    /// Set aside for work under way and for children.
    held: Amounts,
}

/// What remains of a limit.
fn rest(limit: u64, used: u64, held: u64) -> u64 {
    match limit {
        UNLIMITED => UNLIMITED,
        limit => limit.saturating_sub(used).saturating_sub(held),
    }
}

impl Purse {
    pub(super) fn new(limits: Limits) -> Purse {
        Purse {
            limits,
            used: Usage::default(),
            held: Amounts::default(),
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn used(&self) -> &Usage {
        &self.used
    }

    /// Seconds are not this purse's business and stay as the limit.
    pub(super) fn left(&self) -> Limits {
        let (limits, used, held) = (&self.limits, &self.used, &self.held);
        Limits {
            steps: rest(limits.steps, used.steps, 0),
            tool_calls: self.calls_left(),
            seconds: limits.seconds,
            tokens: rest(limits.tokens, used.tokens, held.tokens),
            micro_dollars: rest(limits.micro_dollars, used.micro_dollars, held.micro_dollars),
            children: rest(limits.children, used.children, held.children),
            per_tool: limits
                .per_tool
                .iter()
                .map(|(tool, limit)| {
                    let used = used.per_tool.get(tool).copied().unwrap_or(0);
                    (tool.clone(), rest(*limit, used, 0))
                })
                .collect(),
            per_user_day: limits.per_user_day,
        }
    }

    fn calls_left(&self) -> u64 {
        let used = &self.used;
        rest(
            self.limits.tool_calls,
            used.tool_calls.saturating_add(used.child_tool_calls),
            self.held.tool_calls,
        )
    }

    pub(super) fn charge_earlier(&mut self, earlier: &Usage) {
        let used = &mut self.used;
        used.steps = used.steps.saturating_add(earlier.steps);
        used.tool_calls = used.tool_calls.saturating_add(earlier.tool_calls);
        used.child_tool_calls = used
            .child_tool_calls
            .saturating_add(earlier.child_tool_calls);
        used.tokens = used.tokens.saturating_add(earlier.tokens);
        used.micro_dollars = used.micro_dollars.saturating_add(earlier.micro_dollars);
        used.unpriced = used.unpriced.saturating_add(earlier.unpriced);
        used.children = used.children.saturating_add(earlier.children);
        for (tool, calls) in &earlier.per_tool {
            *used.per_tool.entry(tool.clone()).or_default() += calls;
        }
    }

    pub(super) fn step(&mut self, late: bool) -> Result<u64, Stop> {
        if rest(self.limits.steps, self.used.steps, 0) == 0 {
            return Err(Stop::MaxSteps);
        }
        if late {
            return Err(Stop::MaxSeconds);
        }
        self.used.steps += 1;
        Ok(self.used.steps)
    }

    pub(super) fn give_step_back(&mut self) {
        self.used.steps = self.used.steps.saturating_sub(1);
    }

    pub(super) fn may_call(&self, tool: &str, payer: Payer) -> Result<(), Stop> {
        let used_up = payer != Payer::ChildsShare && self.calls_left() == 0;
        let tool_used_up = self.limits.per_tool.get(tool).is_some_and(|limit| {
            let used = self.used.per_tool.get(tool).copied().unwrap_or(0);
            rest(*limit, used, 0) == 0
        });
        match used_up || tool_used_up {
            true => Err(Stop::MaxToolCalls),
            false => Ok(()),
        }
    }

    /// Counts a call of a tool.
    pub(super) fn call(&mut self, tool: &str, payer: Payer) {
        let used = &mut self.used;
        match payer {
            Payer::Own => used.tool_calls = used.tool_calls.saturating_add(1),
            Payer::ForChild => used.child_tool_calls = used.child_tool_calls.saturating_add(1),
            Payer::ChildsShare => {}
        }
        match used.per_tool.get_mut(tool) {
            Some(calls) => *calls += 1,
            None => {
                used.per_tool.insert(tool.to_owned(), 1);
            }
        }
    }

    /// Who pays, seen from the purse above this one.
    pub(super) fn payer_above(&self, payer: Payer) -> Payer {
        match payer != Payer::ChildsShare && self.limits.tool_calls == UNLIMITED {
            true => Payer::ForChild,
            false => Payer::ChildsShare,
        }
    }

    pub(super) fn may_hold(&self, amounts: Amounts, unpriced: bool) -> Result<(), Stop> {
        let left = self.left();
        let refused = [
            (left.children < amounts.children, Stop::MaxChildren),
            (left.tool_calls < amounts.tool_calls, Stop::MaxToolCalls),
            (left.tokens < amounts.tokens, Stop::MaxTokens),
            (left.micro_dollars < amounts.micro_dollars, Stop::MaxCost),
            (unpriced && left.micro_dollars != UNLIMITED, Stop::MaxCost),
        ];
        match refused.into_iter().find(|(short, _)| *short) {
            Some((_, stop)) => Err(stop),
            None => Ok(()),
        }
    }

    pub(super) fn hold(&mut self, amounts: Amounts) {
        self.held = self.held.with(amounts, u64::saturating_add);
    }

    pub(super) fn settle(&mut self, held: Amounts, used: Amounts, unpriced: u64) {
        self.held = self.held.less(held);
        let total = &mut self.used;
        total.child_tool_calls = total.child_tool_calls.saturating_add(used.tool_calls);
        total.tokens = total.tokens.saturating_add(used.tokens);
        total.micro_dollars = total.micro_dollars.saturating_add(used.micro_dollars);
        total.children = total.children.saturating_add(used.children);
        total.unpriced = total.unpriced.saturating_add(unpriced);
    }

    /// The part of some work that the parent pays: whatever this purse has no share of its own of.
    pub(super) fn share_of_parent(&self, amounts: Amounts) -> Amounts {
        let part = |limit: u64, amount: u64| if limit == UNLIMITED { amount } else { 0 };
        Amounts {
            tool_calls: part(self.limits.tool_calls, amounts.tool_calls),
            tokens: part(self.limits.tokens, amounts.tokens),
            micro_dollars: part(self.limits.micro_dollars, amounts.micro_dollars),
            children: part(self.limits.children, amounts.children),
        }
    }

    /// What this purse used of what was kept back for it.
    pub(super) fn used_of_kept(&self) -> Amounts {
        Amounts {
            tool_calls: 0,
            children: 0,
            ..self.used_of()
        }
    }

    /// What this purse used of what was carved for it; itself counts as one child.
    pub(super) fn used_of(&self) -> Amounts {
        let own = |limit: u64, used: u64| if limit == UNLIMITED { 0 } else { used };
        let (limits, used) = (&self.limits, &self.used);
        Amounts {
            tool_calls: own(
                limits.tool_calls,
                used.tool_calls.saturating_add(used.child_tool_calls),
            ),
            tokens: own(limits.tokens, used.tokens),
            micro_dollars: own(limits.micro_dollars, used.micro_dollars),
            children: own(limits.children, used.children).saturating_add(1),
        }
    }
}
