//! Which pieces make up the channels of a checkpoint.
//!
//! Pure: called by `checkpoints` when they are saved and read, and by whatever copies or removes them. A
//! checkpoint names the pieces that are newer than those of its *base*, an ancestor that names all of its
//! own. So one more small row is read for any checkpoint, however long the history is, and what is written
//! per checkpoint does not grow with the number of channels.

use paraph_graph::PatchKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Edits of a list may take so much more than the rest of it before its value is written down whole.
const EDITS_BEYOND: u64 = 4096;
/// What an edit costs besides its bytes: a row.
const PER_EDIT: u64 = 64;

/// The newest piece of a channel, and how long the chain behind it is: what it takes to read the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Newest(
    /// The piece's number.
    pub(crate) u64,
    /// Bytes of the last whole value and of what was appended since.
    pub(crate) u64,
    /// Bytes of the edits since then.
    pub(crate) u64,
);

/// What column `channels` of a checkpoint says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// The channels that this checkpoint changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) own: BTreeMap<String, Newest>,
    /// Those that changed between the base and this checkpoint; without a base all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) older: BTreeMap<String, Newest>,
}

impl Named {
    /// Reads the column.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| format!("`channels`: {e}"))
    }

    /// For the column.
    pub(crate) fn text(&self) -> String {
        // Maps of numbers by name are always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// All channels, given what the base says.
    pub(crate) fn all(&self, base: Option<&Named>) -> BTreeMap<String, Newest> {
        let mut all = BTreeMap::new();
        for named in base.into_iter().chain([self]) {
            for (channel, newest) in named.older.iter().chain(&named.own) {
                all.insert(channel.clone(), *newest);
            }
        }
        all
    }
}

/// What a checkpoint says that changes `own`, and whether it needs its parent's base for that; if not, it
/// can be a base itself. `parent` is what the parent says, with what its base says if it has one.
pub(crate) fn after(
    parent: Option<(&Named, Option<&Named>)>,
    own: BTreeMap<String, Newest>,
) -> (Named, bool) {
    let Some((parent, base)) = parent else {
        let older = BTreeMap::new();
        return (Named { own, older }, false);
    };
    let mut all = parent.all(base);
    // A parent that is a base becomes the base: what it says need not be said again.
    let mut since = match base {
        None => BTreeMap::new(),
        Some(_) => parent.all(None),
    };
    for channel in own.keys() {
        since.remove(channel);
        all.remove(channel);
    }
    let (said, whole) = (own.len() + since.len(), own.len() + all.len());
    if said * 2 > whole {
        return (Named { own, older: all }, false);
    }
    (Named { own, older: since }, true)
}

impl Newest {
    /// The piece of `bytes` that comes after this one, or first.
    pub(crate) fn then(before: Option<Newest>, n: u64, kind: PatchKind, bytes: usize) -> Newest {
        let bytes = bytes as u64;
        let Newest(_, rest, edits) = before.unwrap_or(Newest(0, 0, 0));
        match kind {
            PatchKind::Whole => Newest(n, bytes, 0),
            PatchKind::Append => Newest(n, rest.saturating_add(bytes), edits),
            PatchKind::Edit => Newest(n, rest, edits.saturating_add(bytes + PER_EDIT)),
        }
    }

    /// Whether the value up to here is to be written down whole before another edit comes.
    pub(crate) fn is_worn(self) -> bool {
        let Newest(_, rest, edits) = self;
        edits > rest.saturating_add(EDITS_BEYOND)
    }
}

/// For the column `kind` of a piece.
pub(crate) fn kind_text(kind: PatchKind) -> &'static str {
    match kind {
        PatchKind::Whole => "whole",
        PatchKind::Append => "append",
        PatchKind::Edit => "edit",
    }
}

/// What [`kind_text`] says.
pub(crate) fn kind_of(text: &str) -> Option<PatchKind> {
    [PatchKind::Whole, PatchKind::Append, PatchKind::Edit]
        .into_iter()
        .find(|kind| kind_text(*kind) == text)
}

#[derive(Deserialize)]
struct Edit<'a> {
    #[serde(borrow)]
    set: Vec<(usize, &'a RawValue)>,
    #[serde(borrow)]
    append: Vec<&'a RawValue>,
}

/// The value of a list channel, put together from its pieces; its items are not looked into.
///
/// # Errors
/// What is wrong with the pieces, in words.
pub(crate) fn whole<'a>(
    pieces: impl IntoIterator<Item = (PatchKind, &'a [u8])>,
) -> Result<Vec<u8>, String> {
    let mut items: Vec<&RawValue> = Vec::new();
    for (kind, json) in pieces {
        let no_list = |e: serde_json::Error| format!("a piece of a list is none: {e}");
        match kind {
            PatchKind::Whole => items = serde_json::from_slice(json).map_err(no_list)?,
            PatchKind::Append => {
                let more: Vec<&RawValue> = serde_json::from_slice(json).map_err(no_list)?;
                items.extend(more);
            }
            PatchKind::Edit => {
                let edit: Edit<'a> = serde_json::from_slice(json).map_err(no_list)?;
                for (at, item) in edit.set {
                    let slot = items.get_mut(at);
                    *slot.ok_or_else(|| format!("an edit of item {at}, which is not there"))? =
                        item;
                }
                items.extend(edit.append);
            }
        }
    }
    serde_json::to_vec(&items).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
