//! The built-in reducers. Any `fn(&mut T, T)` or `fn(&mut T, T) -> Change` is one too.
//!
//! A reducer folds one write into the channel. It must be associative: writes of one superstep come
//! one after the other, in the order in which their nodes were declared.

use super::{Change, List};

/// Puts the new items at the end of the list.
pub fn append<L: List>(list: &mut L, new: L) -> Change {
    let from = list.items().len();
    let new = new.into_items();
    if new.is_empty() {
        return Change::Unchanged;
    }
    list.append_items(new);
    Change::Appended(from)
}

/// Extends a map; later keys win.
pub fn merge<T: Extend<I> + IntoIterator<Item = I>, I>(all: &mut T, new: T) {
    all.extend(new);
}

/// Puts the new members into a set.
pub fn set<T: Extend<I> + IntoIterator<Item = I>, I>(all: &mut T, new: T) {
    all.extend(new);
}

/// Adds numbers.
pub fn add<T: std::ops::AddAssign>(sum: &mut T, new: T) {
    *sum += new;
}

/// Keeps the larger of the two.
pub fn max<T: PartialOrd>(best: &mut T, new: T) -> Change {
    keep(best, new, |new, best| new > best)
}

/// Keeps the smaller of the two. The default of the type is the first candidate: an `Option` or a
/// custom reducer suits a channel that starts without a value.
pub fn min<T: PartialOrd>(best: &mut T, new: T) -> Change {
    keep(best, new, |new, best| new < best)
}

/// The later write wins, also within one superstep (without a reducer two writers are an error).
pub fn last<T>(slot: &mut T, new: T) {
    *slot = new;
}

fn keep<T>(best: &mut T, new: T, better: impl Fn(&T, &T) -> bool) -> Change {
    if better(&new, best) {
        *best = new;
        Change::Replaced
    } else {
        Change::Unchanged
    }
}
