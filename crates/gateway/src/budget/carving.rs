//! Purses that are filled from another one and go back to it: of children, and of a run's last piece of work.
//!
//! What is carved is out of the other purse at once; what is left of it comes back when the last handle is dropped. A
//! child that waits and goes on is carved for under its name, and what it used before is not counted again.

use super::purse::{Amounts, Purse};
use super::{Budget, Limits, Spend, UNLIMITED};
use crate::stop::Stop;
use std::collections::BTreeMap;

/// Where a purse came from, and goes back to.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) from: Budget,
    /// What was taken out.
    taken: Amounts,
    /// What the purse above has counted already of what this one uses: by the same child, before it waited.
    counted: Used,
    share: Share,
}

/// What a purse was carved for.
#[derive(Debug)]
enum Share {
    Child,
    /// A child that may be carved for again.
    Named(String),
    /// A part of the same run that is kept for its end.
    KeptBack,
}

/// What a purse used of what it had from the one above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    amounts: Amounts,
    unpriced: u64,
}

impl Used {
    /// As counters, by their names.
    pub(crate) const FIGURES: [&str; 5] = [
        "tool_calls",
        "tokens",
        "micro_dollars",
        "children",
        "unpriced",
    ];

    /// In the order of [`Used::FIGURES`].
    pub(crate) fn figures(self) -> [u64; 5] {
        let [calls, tokens, money, children] = self.amounts.figures();
        [calls, tokens, money, children, self.unpriced]
    }

    /// The same read back.
    pub(crate) fn of([calls, tokens, money, children, unpriced]: [u64; 5]) -> Used {
        Used {
            amounts: Amounts::of_figures([calls, tokens, money, children]),
            unpriced,
        }
    }

    fn less(self, other: Used) -> Used {
        Used {
            amounts: self.amounts.less(other.amounts),
            unpriced: self.unpriced.saturating_sub(other.unpriced),
        }
    }

    fn at_least(self, other: Used) -> Used {
        Used {
            amounts: self.amounts.at_least(other.amounts),
            unpriced: self.unpriced.max(other.unpriced),
        }
    }
}

impl Origin {
    /// What the purse that was carved has used is used of the one above; the rest is there again.
    pub(super) fn give_back(&self, purse: &Purse) {
        let used = Used {
            amounts: match self.share {
                Share::KeptBack => purse.used_of_kept(),
                Share::Child | Share::Named(_) => purse.used_of(),
            },
            unpriced: purse.used().unpriced,
        };
        let new = used.less(self.counted);
        self.from.settle(self.taken, new.amounts, new.unpriced);
        if let Share::Named(name) = &self.share {
            let counted = used.at_least(self.counted);
            let mut above = self.from.lock();
            above.children.insert(name.clone(), counted);
        }
    }
}

impl Budget {
    /// A child's purse, filled from this one.
    ///
    /// Calls, tokens, money and grandchildren are taken out of this purse at once, and what the child
    /// leaves comes back when the last handle of its purse is dropped. Steps, seconds and the caps of
    /// single tools are limits of the child's own; its time never outlasts the parent's. A share that is
    /// [`UNLIMITED`] is no share: the child then spends from this purse as it goes.
    pub fn carve(&self, share: Limits) -> Result<Budget, Stop> {
        self.carve_as(Share::Child, share, Used::default())
    }

    /// [`Budget::carve`] for a child that can wait and go on: the same name is the same child. It is one child however
    /// often it is carved for, and what it used before it waited is counted once.
    ///
    /// # Errors
    /// As [`Budget::carve`].
    pub fn carve_again(&self, name: &str, share: Limits) -> Result<Budget, Stop> {
        let counted = self.lock().children.get(name).copied();
        let share_of = Share::Named(name.to_owned());
        self.carve_as(share_of, share, counted.unwrap_or_default())
    }

    /// What is left, with what a child of this name has used of it before: what can be its share.
    pub fn left_for(&self, name: &str) -> Limits {
        let counted = self.lock().children.get(name).copied().unwrap_or_default();
        let [calls, tokens, money, children] = counted.amounts.figures();
        let left = self.left();
        // What is not limited stays so.
        Limits {
            tool_calls: left.tool_calls.saturating_add(calls),
            tokens: left.tokens.saturating_add(tokens),
            micro_dollars: left.micro_dollars.saturating_add(money),
            children: left.children.saturating_add(children),
            ..left
        }
    }

    /// A part of the run's tokens and money that nothing else can use, for what it does last: an answer that is written
    /// from what there is when the rest is used up. What is not used of it comes back when it is dropped.
    ///
    /// ```
    /// use paraph_gateway::{Budget, Limits, Stop};
    /// let budget = Budget::new(Limits { micro_dollars: 1_000, ..Limits::default() });
    /// let last = budget.keep_back(300)?;
    /// budget.reserve(700)?.spend(700);
    /// assert_eq!(budget.reserve(1).err(), Some(Stop::MaxCost));
    /// last.reserve(200)?.spend(200);                       // the last answer
    /// drop(last);
    /// assert_eq!((budget.used().micro_dollars, budget.left().micro_dollars), (900, 100));
    /// # Ok::<(), Stop>(())
    /// ```
    ///
    /// # Errors
    /// If there is not so much left.
    pub fn keep_back(&self, most: impl Into<Spend>) -> Result<Budget, Stop> {
        let most = most.into();
        let share = Limits {
            tokens: match most.tokens {
                0 => UNLIMITED,
                tokens => tokens,
            },
            micro_dollars: most.micro_dollars.unwrap_or(UNLIMITED),
            ..Limits::unlimited()
        };
        self.carve_as(Share::KeptBack, share, Used::default())
    }

    fn carve_as(&self, share_of: Share, share: Limits, counted: Used) -> Result<Budget, Stop> {
        let taken = match share_of {
            Share::KeptBack => Amounts::kept_back(&share),
            Share::Child | Share::Named(_) => Amounts::shared(&share).less(counted.amounts),
        };
        self.hold(taken, false)?;
        Ok(Budget::with_origin(
            share,
            Some(Origin {
                from: self.clone(),
                taken,
                counted,
                share: share_of,
            }),
        ))
    }

    /// What its named children have used so far; nothing if there are none.
    pub(crate) fn children(&self) -> BTreeMap<String, Used> {
        self.lock().children.clone()
    }

    /// What its named children had used in an earlier life, which its own usage includes.
    pub(crate) fn know_children(&self, children: BTreeMap<String, Used>) {
        self.lock().children = children;
    }
}
