//! The store in memory keeps the rules of every store, and the rules find stores that do not keep them.

use paraph_gateway::*;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_store_in_memory_keeps_all_rules() {
    let store = MemoryStore::shared();
    // A second time on what the first has left.
    for _ in 0..2 {
        for rule in conformance::RULES {
            assert_eq!(rule.check(std::slice::from_ref(&store)).await, Ok(()));
        }
    }
}

/// A store over memory that does something else with each change.
struct Odd {
    inner: Arc<dyn Store>,
    odd: fn(&mut Change),
}

impl StoreLayer for Odd {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, mut change: Change) -> StoreFuture<'_, ()> {
        (self.odd)(&mut change);
        self.inner.commit(change)
    }
}

fn forgets(change: &mut Change, guard: fn(&Guard) -> bool) {
    change.guards.retain(|known| !guard(known));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_forgets_something_breaks_rules() {
    type Oddity = (&'static str, fn(&mut Change), &'static str);
    let table: [Oddity; 8] = [
        (
            "versions",
            |change| forgets(change, |guard| matches!(guard, Guard::At { .. })),
            "of 32 who change the same version of an action one does, 20 times",
        ),
        (
            "kill switches",
            |change| forgets(change, |guard| matches!(guard, Guard::Alive { .. })),
            "a kill switch is on until it is taken away, and says who, why and when",
        ),
        (
            "limits",
            |change| forgets(change, |guard| matches!(guard, Guard::Most { .. })),
            "a counter with a most is never over it, with 64 who add at the same time",
        ),
        (
            "the time",
            |change| forgets(change, |guard| matches!(guard, Guard::Before { .. })),
            "before is before, by the clock that the store tells",
        ),
        (
            "keys",
            |change| forgets(change, |guard| matches!(guard, Guard::Fresh { .. })),
            "of many who want to be the first to write a key one is, whoever they are",
        ),
        (
            "the audit's order",
            |change| change.audit.reverse(),
            "each entry of the audit follows the one before it, in one commit or in several",
        ),
        (
            "wakes",
            |change| change.woken.clear(),
            "a call has one wake, the newest, and only the very same one is removed",
        ),
        (
            "all but the first action",
            |change| change.actions.truncate(1),
            "actions are found by id, run and subject, the oldest first",
        ),
    ];
    for (what, odd, rule) in table {
        let store: Arc<dyn Store> = Arc::new(Odd {
            inner: MemoryStore::shared(),
            odd,
        });
        let mut why = None;
        for known in conformance::RULES.iter().filter(|known| known.name == rule) {
            let checked = known.check(std::slice::from_ref(&store)).await;
            why = checked.err().map(|broken| broken.rule);
        }
        assert_eq!(why, Some(rule), "{what}");
    }
}
