//! What a run has fetched: each address once, with every text that was read there, when, and the text's hash.
//!
//! Researchers make [`Source`]s of what their tools return and write them into the run's [`Library`]; the check of
//! citations and the report read it. Pure: nothing here fetches, and nothing here reads a clock.

mod observation;
#[cfg(test)]
mod tests;

use paraph_graph::{Change, List};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::ops::Deref;

pub(super) use observation::FENCE;
pub use observation::{annotated, sources_of};

/// The most sources of a run.
const MAX_SOURCES: usize = 2_000;
/// The most texts that are kept of one source: a long page comes in parts.
const MAX_VERSIONS: usize = 64;
/// The most bytes of one text.
const MAX_TEXT: usize = 64_000;
/// The most bytes of all texts of a run.
const MAX_TEXTS: usize = 64 << 20;
/// The most characters of a title.
const MAX_TITLE: usize = 200;
/// How many digits of the hash an id has.
const ID_DIGITS: usize = 8;

/// How much of what stands at an address a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// What was read of the page itself.
    Page,
    /// What a search showed of it.
    Snippet,
}

/// A text as it was read at a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceVersion {
    /// How much of the source it is.
    pub kind: SourceKind,
    /// When it was read, as RFC 3339 in UTC.
    pub fetched_at: String,
    /// The SHA-256 of `text`, in 64 hexadecimal digits.
    pub sha256: String,
    /// The text, byte for byte as the tool gave it.
    pub text: String,
    /// Whether there was more, which is not kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// An address that was read, with all that was read there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// `src-` and eight hexadecimal digits of the address' SHA-256: every researcher finds the same one.
    pub id: String,
    /// The address.
    pub url: String,
    /// Its title, fit to be shown on one line; empty if none is known.
    pub title: String,
    /// The texts, in the order in which they were read; none twice.
    pub versions: Vec<SourceVersion>,
}

impl Source {
    /// A source with one text. A text that is too long is cut, and says so.
    pub fn new(url: &str, title: &str, read: (SourceKind, &str), fetched_at: &str) -> Source {
        let (kind, whole) = read;
        let text = whole
            .get(..whole.floor_char_boundary(MAX_TEXT))
            .unwrap_or_default();
        let version = SourceVersion {
            kind,
            fetched_at: fetched_at.to_owned(),
            sha256: hex(text),
            text: text.to_owned(),
            cut: text.len() < whole.len(),
        };
        Source {
            id: Source::id_of(url),
            url: url.to_owned(),
            title: paraph_gateway::Shown::field(title.trim(), MAX_TITLE).text,
            versions: vec![version],
        }
    }

    /// The id of an address.
    ///
    /// ```
    /// assert_eq!(paraph_agents::Source::id_of("https://example.org/"), "src-8198d1ba");
    /// ```
    pub fn id_of(url: &str) -> String {
        let digits = hex(url);
        format!("src-{}", digits.get(..ID_DIGITS).unwrap_or_default())
    }

    /// Takes in what another task read at the same address.
    fn gain(&mut self, other: Source, room: &mut usize) -> Gain {
        let mut gain = Gain::default();
        if self.title.is_empty() && !other.title.is_empty() {
            self.title = other.title;
            gain.changed = true;
        }
        for version in other.versions {
            if self.versions.iter().any(|old| old.sha256 == version.sha256) {
                continue;
            }
            if self.versions.len() >= MAX_VERSIONS || version.text.len() > *room {
                gain.refused = true;
                continue;
            }
            *room -= version.text.len();
            self.versions.push(version);
            gain.changed = true;
        }
        gain
    }
}

#[derive(Default)]
struct Gain {
    changed: bool,
    refused: bool,
}

fn hex(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}

/// All sources of a run, in the order in which they were first fetched:
/// `#[reduce(add_sources, list)] sources: Library`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Library(pub Vec<Source>);

impl Deref for Library {
    type Target = [Source];

    fn deref(&self) -> &[Source] {
        &self.0
    }
}

impl List for Library {
    type Item = Source;

    fn from_items(items: Vec<Source>) -> Self {
        Library(items)
    }

    fn into_items(self) -> Vec<Source> {
        self.0
    }

    fn items(&self) -> &[Source] {
        &self.0
    }

    fn append_items(&mut self, items: Vec<Source>) {
        self.0.extend(items);
    }

    fn set_item(&mut self, index: usize, item: Source) {
        if let Some(place) = self.0.get_mut(index) {
            *place = item;
        }
    }
}

/// What adding sources to a library did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The places of the sources that gained a text or a title, in ascending order.
    pub edited: Vec<usize>,
    /// How many sources there were before.
    pub appended_from: usize,
    /// What was not taken, each as a sentence that says why.
    pub refused: Vec<String>,
}

impl Library {
    /// The source with this id.
    pub fn by_id(&self, id: &str) -> Option<&Source> {
        self.0.iter().find(|source| source.id == id)
    }

    /// Takes sources in. One whose address is known gains the texts that are new; one whose id belongs to another
    /// address is refused, so that no id ever stands for two pages.
    pub fn add(&mut self, sources: Vec<Source>) -> Added {
        let appended_from = self.0.len();
        let mut places: HashMap<String, usize> =
            self.0.iter().map(|s| s.id.clone()).zip(0..).collect();
        let used: usize = self
            .0
            .iter()
            .flat_map(|source| &source.versions)
            .map(|v| v.text.len())
            .sum();
        let mut room = MAX_TEXTS.saturating_sub(used);
        let (mut edited, mut refused) = (BTreeSet::new(), Vec::new());
        for source in sources {
            let (id, url) = (source.id.clone(), source.url.clone());
            let full = || format!("not everything of {url} was kept: the run's library is full");
            let known = places.get(&id).copied();
            if let Some((place, old)) = known.and_then(|at| Some((at, self.0.get_mut(at)?))) {
                if old.url != source.url {
                    refused.push(format!(
                        "{url} was not kept: its id {id} belongs to {}",
                        old.url
                    ));
                    continue;
                }
                let gain = old.gain(source, &mut room);
                if gain.changed && place < appended_from {
                    edited.insert(place);
                }
                refused.extend(gain.refused.then(full));
            } else if self.0.len() >= MAX_SOURCES {
                refused.push(full());
            } else {
                let mut new = Source {
                    versions: Vec::new(),
                    ..source.clone()
                };
                let gain = new.gain(source, &mut room);
                refused.extend(gain.refused.then(full));
                if !new.versions.is_empty() {
                    places.insert(id, self.0.len());
                    self.0.push(new);
                }
            }
        }
        Added {
            edited: edited.into_iter().collect(),
            appended_from,
            refused,
        }
    }
}

/// The reducer of a [`Library`]: parallel researchers write what they fetched, and it is merged.
///
/// # Errors
/// None. What is not taken is logged; whoever wants to tell it to a model calls [`Library::add`] on a copy.
pub fn add_sources(all: &mut Library, new: Library) -> Result<Change, Infallible> {
    let Added {
        edited,
        appended_from,
        refused,
    } = all.add(new.0);
    for why in refused {
        tracing::warn!(%why, "a source was not taken");
    }
    Ok(match edited.is_empty() && appended_from == all.len() {
        true => Change::Unchanged,
        false => Change::list(edited, appended_from),
    })
}
