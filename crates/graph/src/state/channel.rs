//! Channels while a run goes: what one update writes to one, and how many updates are folded into it.
//!
//! Called by what `#[derive(State)]` generates. Must not know of nodes or stores; everything here is pure.

use super::{Change, IntoChange};

/// One channel's name and rules, as declared on its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The field's name.
    pub name: &'static str,
    /// Whether a reducer folds several writes; without one, two writers are an error.
    pub reduced: bool,
    /// Back to its default in each superstep that does not write it.
    pub ephemeral: bool,
    /// Never saved.
    pub untracked: bool,
    /// Names under which older checkpoints know it.
    pub was: &'static [&'static str],
}

/// What one update says about one channel.
#[derive(Clone, Debug)]
pub enum Write<T> {
    /// One write, for the reducer.
    One(T),
    /// As it is, past the reducer.
    Replace(T),
    /// Several writes of the same node, in order, perhaps after a replacement.
    Many {
        /// The replacement that came first, if one did.
        base: Option<T>,
        /// The writes after it.
        then: Vec<T>,
    },
}

impl<T> Write<T> {
    fn replaces(&self) -> bool {
        matches!(self, Write::Replace(_) | Write::Many { base: Some(_), .. })
    }
    fn parts(self) -> (Option<T>, Vec<T>) {
        match self {
            Write::One(v) => (None, vec![v]),
            Write::Replace(v) => (Some(v), Vec::new()),
            Write::Many { base, then } => (base, then),
        }
    }
}

impl<T: Clone> Write<T> {
    /// Adds the writes of one superstep to the write that stands for all before them. That it comes
    /// to the same is what a reducer must be associative for.
    pub fn gather<'a, C: IntoChange>(
        channel: &Channel,
        all: &mut Option<Write<T>>,
        writes: impl Iterator<Item = Option<&'a Write<T>>> + Clone,
        reduce: impl Fn(&mut T, T) -> C,
    ) -> Result<(), Rejected>
    where
        T: 'a,
    {
        if channel.ephemeral {
            // What was written before is not there any more.
            *all = None;
        }
        let replacing = writes.clone().position(|w| w.is_some_and(Write::replaces));
        for (writer, write) in writes.enumerate() {
            let Some(write) = write else { continue };
            if replacing.is_some_and(|r| r != writer) {
                continue;
            }
            let earlier = if write.replaces() { None } else { all.take() };
            let replaces = earlier.as_ref().unwrap_or(write).replaces();
            let earlier = earlier.map(Write::parts).unwrap_or_default();
            let (base, then) = write.clone().parts();
            let mut values = earlier
                .0
                .into_iter()
                .chain(earlier.1)
                .chain(base)
                .chain(then);
            let Some(mut sum) = values.next() else {
                continue;
            };
            for value in values {
                reduce(&mut sum, value)
                    .into_change()
                    .map_err(|why| Rejected::Refused {
                        channel: channel.name,
                        writer,
                        why,
                    })?;
            }
            *all = Some(if replaces {
                Write::Replace(sum)
            } else {
                Write::One(sum)
            });
        }
        Ok(())
    }
}

/// Why the updates of one superstep could not be folded.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejected {
    /// Two updates (by position) wrote a channel that takes one.
    TwoWriters {
        /// The channel's name.
        channel: &'static str,
        /// Position of the first writer.
        first: usize,
        /// Position of the second.
        second: usize,
    },
    /// A reducer refused a write.
    Refused {
        /// The channel's name.
        channel: &'static str,
        /// Position of the writer.
        writer: usize,
        /// The reducer's words.
        why: String,
    },
}

/// Adds a write to what an update already says about a channel without a reducer: the later wins.
pub fn write_last<T>(slot: &mut Option<Write<T>>, value: T) {
    *slot = Some(Write::One(value));
}

/// Adds a write to what an update already says about a channel with a reducer.
pub fn write<T>(slot: &mut Option<Write<T>>, value: T) {
    *slot = Some(match slot.take() {
        None => Write::One(value),
        Some(earlier) => {
            let (base, mut then) = earlier.parts();
            then.push(value);
            Write::Many { base, then }
        }
    });
}

/// Refuses two writers of a channel without a reducer, and two replacements of one with.
pub fn check<'a, T: 'a>(
    channel: &Channel,
    writes: impl Iterator<Item = Option<&'a Write<T>>>,
) -> Result<(), Rejected> {
    let mut seen = None;
    for (second, write) in writes.enumerate() {
        let counts = write.is_some_and(|w| !channel.reduced || w.replaces());
        if !counts {
            continue;
        }
        if let Some(first) = seen {
            return Err(Rejected::TwoWriters {
                channel: channel.name,
                first,
                second,
            });
        }
        seen = Some(second);
    }
    Ok(())
}

/// The updates of one superstep, seen through one channel.
pub struct Writes<'a, U, F> {
    updates: &'a mut [U],
    channel: F,
}

/// Looks at `updates` through the field that `channel` picks.
pub fn writes<U, T, F: Fn(&mut U) -> &mut Option<Write<T>>>(
    updates: &mut [U],
    channel: F,
) -> Writes<'_, U, F> {
    Writes { updates, channel }
}

/// Folds the writes of one superstep into a channel, in order.
///
/// A replacement wins over the writes of other nodes, whichever came first; writes that the same
/// node made after it are folded into it. For an ephemeral channel `change` says beforehand whether
/// it holds something to be cleared.
pub fn fold<U, T: Default, C: IntoChange>(
    channel: &Channel,
    slot: &mut T,
    writes: Writes<'_, U, impl Fn(&mut U) -> &mut Option<Write<T>>>,
    reduce: impl Fn(&mut T, T) -> C,
    change: &mut Change,
) -> Result<(), Rejected> {
    let Writes {
        updates,
        channel: at,
    } = writes;
    let replacing = updates
        .iter_mut()
        .position(|u| at(u).as_ref().is_some_and(Write::replaces));
    if channel.ephemeral
        && (*change != Change::Unchanged || updates.iter_mut().any(|u| at(u).is_some()))
    {
        *slot = T::default();
        *change = Change::Replaced;
    }
    let one = |writer: usize, slot: &mut T, value: T, change: &mut Change| {
        let made = reduce(slot, value)
            .into_change()
            .map_err(|why| Rejected::Refused {
                channel: channel.name,
                writer,
                why,
            })?;
        *change = std::mem::take(change).then(made);
        Ok(())
    };
    for (writer, update) in updates.iter_mut().enumerate() {
        let Some(write) = at(update).take() else {
            continue;
        };
        if replacing.is_some_and(|r| r != writer) {
            continue;
        }
        match write {
            Write::One(value) => one(writer, slot, value, change)?,
            other => {
                let (base, then) = other.parts();
                if let Some(base) = base {
                    *slot = base;
                    *change = Change::Replaced;
                }
                for value in then {
                    one(writer, slot, value, change)?;
                }
            }
        }
    }
    Ok(())
}
