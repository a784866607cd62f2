//! What a state is: channels, what a node writes to them, and what a checkpoint stores of them.
//!
//! `#[derive(State)]` implements [`State`]; nobody else does. This module must not know of nodes,
//! supersteps or stores. The functions that the derive calls are in `channel`, `stored` and
//! `json`, the built-in reducers in [`reduce`].

pub(crate) mod change;
pub(crate) mod channel;
pub(crate) mod json;
pub mod reduce;
pub(crate) mod stored;
pub(crate) mod text;

use crate::Error;
use serde_json::{Map, Value};

pub use change::{Change, IntoChange};
pub use channel::{Channel, Rejected};
pub use stored::{List, Patch, PatchKind};

/// A graph's state: a struct whose fields are channels.
///
/// Derive it together with `Clone` and `Default`. The default is the state of a thread on which
/// nothing has been written. Channels are saved by name as JSON, so every field implements
/// `Serialize` and `DeserializeOwned`.
///
/// ```
/// use paraph_graph::*;
/// #[derive(State, Clone, Default)]
/// struct Case {
///     title: String,
///     #[reduce(append)]
///     notes: Vec<String>,
/// }
/// let update = Case::update().title("lost parcel").notes(["called".to_owned()]);
/// assert_eq!(Case::update_to_json(&update)?, serde_json::json!({"title": "lost parcel", "notes": ["called"]}));
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a graph state",
    note = "add `#[derive(State, Clone, Default)]` to it"
)]
pub trait State: Clone + Default + Send + Sync + 'static {
    /// What a node writes: at most one write per channel.
    type Update: Clone + Default + Send + Sync + Into<crate::Command<Self>> + 'static;

    /// The channels, in the order in which the fields are declared.
    const CHANNELS: &'static [Channel];

    /// An empty update, to be filled by its setters.
    #[must_use]
    fn update() -> Self::Update {
        Self::Update::default()
    }

    /// Folds the updates of one superstep, in the order given, into the state.
    ///
    /// `changes` has one entry per channel and says afterwards what happened to it. On an error the
    /// state may be half-written and must be thrown away.
    #[doc(hidden)]
    fn apply(
        &mut self,
        updates: &mut [Self::Update],
        changes: &mut [Change],
    ) -> Result<(), Rejected>;

    /// What a checkpoint stores of one channel, given what happened to it.
    #[doc(hidden)]
    fn encode(&self, channel: usize, change: &Change) -> Result<Patch, serde_json::Error>;

    /// How many items a list channel has; 0 for any other.
    #[doc(hidden)]
    fn length(&self, channel: usize) -> usize;

    /// Brings one stored piece of a channel back; pieces come oldest first.
    #[doc(hidden)]
    fn decode(
        &mut self,
        channel: usize,
        kind: PatchKind,
        json: &[u8],
    ) -> Result<(), serde_json::Error>;

    /// Reads an update from a JSON object keyed by channel.
    ///
    /// A value `{"$replace": v}` bypasses the channel's reducer.
    ///
    /// # Errors
    /// [`Error::NotAnObject`], [`Error::UnknownChannel`] (with the known ones), or
    /// [`Error::BadChannel`] naming the channel whose value does not fit.
    fn update_from_json(json: Value) -> Result<Self::Update, Error>;

    /// An update for a note, as JSON text: nothing that must be kept is lost.
    #[doc(hidden)]
    fn note(update: &Self::Update) -> Result<String, Error>;

    /// An update as readers see it: the JSON text of an object keyed by channel, without markers.
    ///
    /// # Errors
    /// [`Error::BadChannel`] when a value cannot be written as JSON.
    fn update_to_text(update: &Self::Update) -> Result<String, Error>;

    /// Which channels an update writes.
    #[doc(hidden)]
    fn writes(update: &Self::Update) -> Vec<usize>;

    /// Adds the updates of one superstep to `all`, so that `all` comes to the same as they did.
    #[doc(hidden)]
    fn gather(all: &mut Self::Update, updates: &[Self::Update]) -> Result<(), Rejected>;

    /// The update that takes a state, in which `changes` happened, from before to now.
    #[doc(hidden)]
    fn since(&self, changes: &[Change]) -> Self::Update;

    /// An update as a JSON object keyed by channel, as readers see it.
    ///
    /// # Errors
    /// [`Error::BadChannel`] when a value cannot be written as JSON.
    fn update_to_json(update: &Self::Update) -> Result<Value, Error> {
        serde_json::from_str(&Self::update_to_text(update)?).map_err(Error::store)
    }

    /// The whole state as a JSON object keyed by channel.
    ///
    /// # Errors
    /// [`Error::BadChannel`] when a value cannot be written as JSON.
    fn to_json(&self) -> Result<Value, Error> {
        let mut map = Map::new();
        for (i, channel) in Self::CHANNELS.iter().enumerate() {
            let value = self
                .encode(i, &Change::Replaced)
                .and_then(|patch| serde_json::from_slice(&patch.json))
                .map_err(|source| json::bad(channel.name, source))?;
            map.insert(channel.name.to_owned(), value);
        }
        Ok(Value::Object(map))
    }
}

/// The index of the channel called `name`, or of the one that was called so before.
pub(crate) fn find<S: State>(name: &str) -> Option<usize> {
    let by = |test: fn(&Channel, &str) -> bool| S::CHANNELS.iter().position(|c| test(c, name));
    by(|c, n| c.name == n).or_else(|| by(|c, n| c.was.contains(&n)))
}

/// The names of all channels, for error texts.
pub(crate) fn known(channels: &[Channel]) -> String {
    channels
        .iter()
        .map(|c| c.name)
        .collect::<Vec<_>>()
        .join(", ")
}
