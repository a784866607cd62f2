//! What a reducer reports: how its channel changed, so that a checkpoint stores the difference only.

/// What happened to a channel since the parent checkpoint. It decides what a checkpoint stores.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing happened; nothing is stored.
    #[default]
    Unchanged,
    /// The items of a list from this index on are new; only those are stored.
    Appended(usize),
    /// Items at `at` (all below `from`) were replaced in place, those from `from` on are new.
    Edited {
        /// Indices of replaced items, ascending and without repeats.
        at: Vec<usize>,
        /// The length the list had before.
        from: usize,
    },
    /// Anything else; the whole value is stored.
    Replaced,
}

impl Change {
    /// The change that this one and a later one make together.
    ///
    /// ```
    /// use paraph_graph::Change;
    /// assert_eq!(Change::Appended(3).then(Change::Appended(5)), Change::Appended(3));
    /// assert_eq!(Change::Appended(3).then(Change::Replaced), Change::Replaced);
    /// ```
    #[must_use]
    pub fn then(self, later: Change) -> Change {
        match (self, later) {
            (Change::Unchanged, c) | (c, Change::Unchanged) => c,
            (Change::Replaced, _) | (_, Change::Replaced) => Change::Replaced,
            // A later `from` counts items that the earlier change had already added.
            (first, second) => {
                let (mut at, from) = first.parts();
                let (more, _) = second.parts();
                at.extend(more.into_iter().filter(|i| *i < from));
                at.sort_unstable();
                at.dedup();
                Change::list(at, from)
            }
        }
    }

    /// The change of a list whose items `at` were replaced and which grew from `from` items.
    #[must_use]
    pub fn list(at: Vec<usize>, from: usize) -> Change {
        if at.is_empty() {
            Change::Appended(from)
        } else {
            Change::Edited { at, from }
        }
    }

    /// The same change of a list that has `length` items before it.
    pub(crate) fn after(self, length: usize) -> Change {
        match self {
            Change::Appended(_) => Change::Appended(length),
            Change::Edited { at, .. } => Change::Edited { at, from: length },
            other => other,
        }
    }

    fn parts(self) -> (Vec<usize>, usize) {
        match self {
            Change::Appended(from) => (Vec::new(), from),
            Change::Edited { at, from } => (at, from),
            Change::Unchanged | Change::Replaced => (Vec::new(), 0),
        }
    }
}

/// What a reducer may return: nothing, a [`Change`], or a `Result` of either.
///
/// A reducer that returns nothing is taken to have replaced its value. One that returns an error
/// refuses the write; the run then stops with [`crate::Error::Refused`].
pub trait IntoChange {
    /// The change, or why the write was refused.
    ///
    /// # Errors
    /// The reducer's own words.
    fn into_change(self) -> Result<Change, String>;
}

impl IntoChange for () {
    fn into_change(self) -> Result<Change, String> {
        Ok(Change::Replaced)
    }
}

impl IntoChange for Change {
    fn into_change(self) -> Result<Change, String> {
        Ok(self)
    }
}

impl<C: IntoChange, E: std::fmt::Display> IntoChange for Result<C, E> {
    fn into_change(self) -> Result<Change, String> {
        self.map_err(|e| e.to_string())?.into_change()
    }
}

#[cfg(test)]
mod tests {
    use super::Change::{self, Appended, Edited, Replaced, Unchanged};

    fn edited(at: &[usize], from: usize) -> Change {
        Edited {
            at: at.to_vec(),
            from,
        }
    }

    #[test]
    fn two_changes_in_a_row_make_the_smallest_change_that_covers_both() {
        let table = [
            (Unchanged, Appended(2), Appended(2)),
            (Appended(2), Unchanged, Appended(2)),
            (Appended(2), Appended(4), Appended(2)),
            (Appended(2), edited(&[1], 4), edited(&[1], 2)),
            (Appended(2), edited(&[3], 4), Appended(2)),
            (edited(&[1], 2), edited(&[0, 1], 3), edited(&[0, 1], 2)),
            (edited(&[1], 2), Replaced, Replaced),
            (Replaced, Appended(9), Replaced),
        ];
        for (first, second, both) in table {
            assert_eq!(
                first.clone().then(second.clone()),
                both,
                "{first:?} then {second:?}"
            );
        }
    }
}
