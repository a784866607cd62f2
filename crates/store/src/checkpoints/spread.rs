//! Work that is all computing, on all cores, where there is enough of it: unpacking and checking many rows.
//!
//! Called where rows are read, on a thread that may block.

use std::{num::NonZero, thread};

/// Fewer items than this are not worth a thread.
const WORTH: usize = 64;

/// More threads than this help no more: the rest of reading is done by one.
const MOST: usize = 8;

/// What `work` makes of each item, in their order.
pub(super) fn spread<A: Send, B: Send>(items: Vec<A>, work: impl Fn(A) -> B + Sync) -> Vec<B> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = cores.min(MOST).min(items.len() / WORTH);
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let each = items.len().div_ceil(threads);
    let mut rest = items.into_iter();
    let shares: Vec<Vec<A>> = (0..threads)
        .map(|_| rest.by_ref().take(each).collect())
        .collect();
    let work = &work;
    thread::scope(|scope| {
        let mut shares = shares.into_iter();
        // The first share is this thread's own.
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || share.into_iter().map(work).collect::<Vec<B>>()))
            .collect();
        let mut done: Vec<B> = own.into_iter().map(work).collect();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                // As it would have here.
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_there_are_the_order_stays() {
        for many in [0, 1, WORTH - 1, 2 * WORTH, 1_000, 10_007] {
            let items: Vec<usize> = (0..many).collect();
            let doubled: Vec<usize> = items.iter().map(|n| 2 * n).collect();
            assert_eq!(spread(items, |n| 2 * n), doubled);
        }
    }
}
