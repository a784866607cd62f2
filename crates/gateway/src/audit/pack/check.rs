//! Checks an evidence pack, and says what it proves.

use super::{Link, MAX_BYTES, Pack, PackError, named};
use crate::audit::entry::{GENESIS, seal};
use crate::audit::signed::Signatures;
use crate::audit::verify::{Detail, detail, follows};
use crate::audit::{
    Anchor, AuditEntry, Broken, BrokenLink, Event, EventKind, Field, Head, is_hash,
};
use crate::display::Shown;
use std::collections::BTreeMap;

/// What a pack that is in order proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackReport {
    /// The action.
    pub action: String,
    /// Whose it is.
    pub tenant: String,
    /// The digest of its bytes, which is the digest that was approved, and the one that was executed.
    pub digest: String,
    /// Its bytes.
    pub bytes: String,
    /// What happened to it, in order.
    pub steps: Vec<PackStep>,
    /// How often it was started, each time under an approval of this digest.
    pub attempts: u64,
    /// Where it stood after the last entry.
    pub state: Option<String>,
    /// The first and the last entry of the stretch of the chain that was checked.
    pub entries: (u64, u64),
    /// The anchor that the stretch fits, if there is one.
    pub anchor: Option<Anchor>,
    /// Whether that anchor is one that the reader has from elsewhere. One that only the pack has proves nothing
    /// against whoever made the pack.
    pub trusted: bool,
}

/// One thing that happened to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackStep {
    /// The number of its entry.
    pub seq: u64,
    /// What happened.
    pub event: Event,
    /// What is personal about it, as JSON; nothing if there never was anything.
    pub detail: Option<String>,
    /// Whether there was something personal about it that was erased.
    pub erased: bool,
}

impl Pack {
    /// Checks the text of a pack, and against the anchors that the reader has from elsewhere. Those of other chains do
    /// not count; one in the pack itself is a mistake of whoever made it.
    ///
    /// It shows that the bytes have the digest, that every approval and attempt is about this digest, that each
    /// attempt was covered by an approval, that the entries follow one another, and that they are those that were
    /// anchored. It does not show that nothing happened to the action after the last entry, nor that no kill switch
    /// was on or that no grant had been revoked: whoever makes a pack could leave these out.
    pub fn check(text: &str, trusted: &[Anchor]) -> Result<PackReport, PackError> {
        if text.len() > MAX_BYTES {
            return Err(PackError::TooLarge);
        }
        let pack: Pack =
            serde_json::from_str(text).map_err(|error| PackError::Unreadable(error.to_string()))?;
        if (named(&pack.bytes)?) != (pack.action.clone(), pack.tenant.clone()) {
            return Err(PackError::Bytes(
                "they are those of another action".to_owned(),
            ));
        }
        pack.same_digest()?;
        let other = |anchor: &&Anchor| anchor.tenant != pack.tenant;
        if let Some(anchor) = pack.anchors.iter().find(other) {
            return Err(PackError::OtherChain {
                tenant: anchor.tenant.chars().take(100).collect(),
            });
        }
        let mut stretch = Stretch {
            pack: &pack,
            head: pack.after.clone(),
            signatures: Signatures::default(),
            version: None,
            steps: Vec::new(),
            anchors: by_entry(&pack, trusted),
            anchor: None,
        };
        for link in &pack.links {
            stretch.follow(link)?;
        }
        stretch.report()
    }
}

/// Anchors by the entry that they name, each with whether the reader has it from elsewhere.
type AnchorsByEntry<'p> = BTreeMap<u64, Vec<(&'p Anchor, bool)>>;

fn by_entry<'p>(pack: &'p Pack, trusted: &'p [Anchor]) -> AnchorsByEntry<'p> {
    let mut sorted = AnchorsByEntry::new();
    let trusted = trusted.iter().map(|anchor| (anchor, true));
    let own = pack.anchors.iter().map(|anchor| (anchor, false));
    for (anchor, trusted) in own.chain(trusted) {
        if anchor.tenant == pack.tenant {
            sorted
                .entry(anchor.seq)
                .or_default()
                .push((anchor, trusted));
        }
    }
    sorted
}

/// A stretch of the chain while it is checked.
struct Stretch<'p> {
    pack: &'p Pack,
    head: Option<Head>,
    signatures: Signatures,
    /// The action's version after the last entry about it that says one.
    version: Option<u64>,
    steps: Vec<PackStep>,
    anchors: AnchorsByEntry<'p>,
    anchor: Option<(&'p Anchor, bool)>,
}

impl Stretch<'_> {
    fn next_seq(&self) -> u64 {
        self.head
            .as_ref()
            .map_or(0, |head| head.seq)
            .saturating_add(1)
    }

    fn follow(&mut self, link: &Link) -> Result<(), PackError> {
        let seq = self.next_seq();
        let broken = |link| Broken { seq, link };
        let head = match link {
            Link::Whole(entry) => {
                let head = follows(self.head.as_ref(), entry).map_err(broken)?;
                let event = Event::read(&entry.event).map_err(BrokenLink::Unreadable);
                let event = event.map_err(broken)?;
                if event.tenant != self.pack.tenant {
                    return Err(broken(BrokenLink::OtherTenant).into());
                }
                let found = detail(&event, entry).map_err(broken)?;
                if self.concerns(&event, seq)? {
                    self.signatures.see(&event).map_err(broken)?;
                    self.note(event, entry, found);
                }
                head
            }
            Link::Sealed(event_hash) => self.pass(event_hash).map_err(broken)?,
        };
        self.compare(&head).map_err(broken)?;
        self.head = Some(head);
        Ok(())
    }

    /// An entry of which only the hash of its event is known.
    fn pass(&self, event_hash: &str) -> Result<Head, BrokenLink> {
        let prev = self.head.as_ref().map_or(GENESIS, |head| &head.hash);
        let seq = self.next_seq();
        match is_hash(event_hash) {
            true => Ok(Head {
                hash: seal(prev, seq, event_hash),
                seq,
            }),
            false => Err(BrokenLink::Changed),
        }
    }

    /// Whether an event is about the action or a kill switch, and if so, whether it may stand here.
    fn concerns(&mut self, event: &Event, seq: u64) -> Result<bool, PackError> {
        match &event.action {
            Some(action) if *action == self.pack.action => {}
            // Other actions, from makers who hide less, are not this one's matter.
            other => return Ok(other.is_none()),
        }
        let digest = event.digest.as_ref();
        if digest.is_some_and(|digest| *digest != self.pack.digest) {
            return Err(PackError::OtherBytes { seq });
        }
        if self.steps.is_empty() && event.kind != EventKind::Proposed {
            return Err(PackError::NoProposal);
        }
        if let Some(Field::Number(version)) = event.fields.get("version") {
            let before = self.version.replace(*version);
            if before.is_some_and(|before| *version > before.saturating_add(1)) {
                return Err(PackError::LeftOut { seq });
            }
        }
        Ok(true)
    }

    fn note(&mut self, event: Event, entry: &AuditEntry, found: Detail) {
        if event.action.is_some() {
            self.steps.push(PackStep {
                seq: entry.seq,
                event,
                detail: entry.detail.clone(),
                erased: found == Detail::Erased,
            });
        }
    }

    /// Compares an entry with the anchors that name it.
    fn compare(&mut self, head: &Head) -> Result<(), BrokenLink> {
        for (anchor, trusted) in self.anchors.remove(&head.seq).unwrap_or_default() {
            if anchor.hash != head.hash {
                return Err(BrokenLink::NotAnchored {
                    at_ms: anchor.at_ms,
                });
            }
            if trusted || !matches!(self.anchor, Some((_, true))) {
                self.anchor = Some((anchor, trusted));
            }
        }
        Ok(())
    }

    fn report(self) -> Result<PackReport, PackError> {
        let Some(last) = self.steps.last() else {
            return Err(PackError::NoProposal);
        };
        let state = self
            .steps
            .iter()
            .rev()
            .find_map(|step| step.event.state.clone());
        let first = self.pack.after.as_ref().map_or(0, |head| head.seq);
        // Beyond the last entry about the action an anchor proves no less; before it, it says nothing of the rest.
        let anchor = self.anchor.filter(|(anchor, _)| anchor.seq >= last.seq);
        Ok(PackReport {
            action: self.pack.action.clone(),
            tenant: self.pack.tenant.clone(),
            digest: self.pack.digest.clone(),
            bytes: self.pack.bytes.clone(),
            attempts: self.signatures.attempts(),
            state,
            entries: (
                first.saturating_add(1),
                self.head.as_ref().map_or(0, |head| head.seq),
            ),
            trusted: anchor.is_some_and(|(_, trusted)| trusted),
            anchor: anchor.map(|(anchor, _)| anchor.clone()),
            steps: self.steps,
        })
    }
}

/// In plain words, for a person.
impl std::fmt::Display for PackReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (action, tenant) = (
            Shown::field(&self.action, 80),
            Shown::field(&self.tenant, 80),
        );
        writeln!(f, "action {action} of {tenant}")?;
        writeln!(f, "its bytes have the digest {}", self.digest)?;
        for step in &self.steps {
            let event = &step.event;
            write!(f, "entry {}: {}", step.seq, event.kind.name())?;
            if let Some(state) = &event.state {
                write!(f, ", then {}", Shown::field(state, 80))?;
            }
            writeln!(f, "{}", if step.erased { " (detail erased)" } else { "" })?;
        }
        match self.attempts {
            0 => writeln!(f, "it was never started")?,
            1 => writeln!(f, "it was started once, under an approval of this digest")?,
            n => writeln!(
                f,
                "it was started {n} times, each time under an approval of this digest"
            )?,
        }
        let (first, last) = self.entries;
        writeln!(
            f,
            "entries {first} to {last} of the chain follow one another"
        )?;
        match (&self.anchor, self.trusted) {
            (Some(anchor), true) => write!(
                f,
                "they are those that were anchored at entry {}",
                anchor.seq
            ),
            (Some(anchor), false) => write!(
                f,
                "they fit the anchor of entry {} in this pack: compare it with one that was kept elsewhere",
                anchor.seq
            ),
            (None, _) => f.write_str("no anchor vouches for them"),
        }
    }
}
