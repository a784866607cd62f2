//! How an action goes on: pure edges from one row to the next, each with what has to be true of it.
//!
//! Whoever changes an action asks here for the next row, and then writes it on the condition that the store still has
//! the row it was made from. Nothing here knows a clock or a store.

use super::{Action, ActionId, ActionRow, Changed, Ended, Person, Sending, Signer, State, Vote};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why a row cannot go on like this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It stands elsewhere by now.
    State,
    /// These are not the bytes that were looked at.
    OtherDigest,
    /// Who asked for it, or edited it, may not approve it.
    OwnRequest,
    /// Only people whose identity was verified may approve it.
    Unverified,
    /// It can no longer be started.
    Late,
    /// A change was asked for so often that now somebody has to decide.
    Rounds,
}

/// What is the matter after a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Voted {
    /// This person had approved these bytes before: nothing changes.
    Already,
    /// The row with the vote.
    Counted(Box<ActionRow>),
}

impl ActionRow {
    /// A new action: signed already, if something signs for it.
    pub(crate) fn proposed(action: Action, signed: Option<Vote>) -> ActionRow {
        ActionRow {
            digest: action.digest.clone(),
            action: Arc::new(action),
            state: match signed {
                Some(_) => State::Approved,
                None => State::Pending,
            },
            version: 1,
            votes: signed.into_iter().collect(),
            sending: Sending::default(),
            receipt: None,
            ended: None,
            due_ms: None,
            replaced_by: None,
            closes: false,
            reopened: None,
            changed: Vec::new(),
        }
    }

    /// Its name.
    pub fn id(&self) -> ActionId {
        self.action.id
    }

    /// The same action somewhere else, if it can go there.
    fn to(&self, state: State) -> Result<ActionRow, Refusal> {
        if !self.state.next().contains(&state) {
            return Err(Refusal::State);
        }
        Ok(ActionRow {
            state,
            version: self.version.saturating_add(1),
            due_ms: None,
            ..self.clone()
        })
    }

    fn ended(&self, state: State, ended: Ended) -> Result<ActionRow, Refusal> {
        let mut row = self.to(state)?;
        row.ended = Some(ended);
        Ok(row)
    }

    fn looked_at(&self, digest: &str) -> Result<(), Refusal> {
        match self.digest == digest {
            true => Ok(()),
            false => Err(Refusal::OtherDigest),
        }
    }

    /// A person approves these bytes.
    pub(crate) fn approve(
        &self,
        person: &Person,
        digest: &str,
        now_ms: u64,
    ) -> Result<Voted, Refusal> {
        self.looked_at(digest)?;
        let by = Signer::Person(person.clone());
        if self
            .votes
            .iter()
            .any(|vote| vote.person() == Some(person.id.as_str()))
        {
            // However far it has come by that vote, the answer is the same; but nothing comes of it any more once it has
            // ended in another way.
            return match self.state {
                State::Pending
                | State::Approved
                | State::Executing
                | State::Unknown
                | State::Succeeded
                | State::Failed => Ok(Voted::Already),
                _ => Err(Refusal::State),
            };
        }
        if !self.state.is_undecided() {
            return Err(Refusal::State);
        }
        self.may_sign(person)?;
        self.in_time(now_ms)?;
        let mut row = self.clone();
        // What was said when it was held is about votes that are void.
        row.ended = None;
        row.votes.push(Vote {
            by,
            digest: digest.to_owned(),
            at_ms: now_ms,
            seal: None,
        });
        let wanted = usize::try_from(self.action.said.quorum).unwrap_or(usize::MAX);
        let row = match row.votes.len() >= wanted {
            true => row.to(State::Approved)?,
            false => ActionRow {
                version: row.version.saturating_add(1),
                ..row
            },
        };
        Ok(Voted::Counted(Box::new(row)))
    }

    /// Whoever decides has to do so before it expires, whatever they decide.
    fn in_time(&self, at_ms: u64) -> Result<(), Refusal> {
        match self.state.is_undecided() && at_ms >= self.action.said.expires_ms {
            true => Err(Refusal::Late),
            false => Ok(()),
        }
    }

    fn may_sign(&self, person: &Person) -> Result<(), Refusal> {
        let said = &self.action.said;
        if said.verified && !person.verified {
            return Err(Refusal::Unverified);
        }
        // Where several have to look, whoever wrote the bytes is not one of them.
        let four_eyes = said.not_by_requester || said.quorum > 1;
        let wrote = said
            .edited
            .as_ref()
            .is_some_and(|(_, editor)| *editor == person.id);
        let own = said.not_by_requester && said.requester == person.id;
        match own || (four_eyes && wrote) {
            true => Err(Refusal::OwnRequest),
            false => Ok(()),
        }
    }

    /// Whether enough people have approved these very bytes, or a grant has.
    pub(crate) fn is_signed(&self) -> bool {
        let own = self.votes.iter().all(|vote| vote.digest == self.digest);
        let people: BTreeSet<&str> = self.votes.iter().filter_map(Vote::person).collect();
        let wanted = usize::try_from(self.action.said.quorum).unwrap_or(usize::MAX);
        own && (self.is_by_rule() || people.len() >= wanted.max(1))
    }

    /// Whether a grant has signed it.
    pub(crate) fn is_by_rule(&self) -> bool {
        let by_rule = |vote: &Vote| matches!(vote.by, Signer::Rule(_));
        self.votes.iter().any(by_rule)
    }

    /// A person says no.
    pub(crate) fn reject(&self, digest: &str, ended: Ended) -> Result<Option<ActionRow>, Refusal> {
        self.looked_at(digest)?;
        if self.state == State::Rejected && self.ended.as_ref().map(|e| &e.by) == Some(&ended.by) {
            return Ok(None);
        }
        self.in_time(ended.at_ms)?;
        let mut row = self.ended(State::Rejected, ended)?;
        row.closes = true;
        Ok(Some(row))
    }

    /// A person asks for a change before they decide: their words go to the model, and nothing is closed.
    pub(crate) fn ask_change(
        &self,
        digest: &str,
        ended: Ended,
    ) -> Result<Option<ActionRow>, Refusal> {
        self.in_words(State::Superseded, digest, ended)
    }

    /// A person answers in words, in the place of what was asked for.
    pub(crate) fn respond(&self, digest: &str, ended: Ended) -> Result<Option<ActionRow>, Refusal> {
        self.in_words(State::Answered, digest, ended)
    }

    fn in_words(
        &self,
        state: State,
        digest: &str,
        ended: Ended,
    ) -> Result<Option<ActionRow>, Refusal> {
        self.looked_at(digest)?;
        let same = |known: &Ended| (&known.by, &known.why) == (&ended.by, &ended.why);
        if self.state == state && self.ended.as_ref().is_some_and(same) {
            return Ok(None);
        }
        self.in_time(ended.at_ms)?;
        self.ended(state, ended).map(Some)
    }

    /// A later run on its thread asks for something about the same.
    pub(crate) fn supersede(&self, (by, new): (Ended, ActionId)) -> Result<ActionRow, Refusal> {
        let mut row = self.ended(State::Superseded, by)?;
        row.replaced_by = Some(new);
        Ok(row)
    }

    /// Whether it is over because a person asked for a change.
    pub fn wants_change(&self) -> bool {
        self.state == State::Superseded && self.replaced_by.is_none()
    }

    /// A person puts another action in its place; which one, the caller adds.
    pub(crate) fn edit(&self, digest: &str, by: Ended) -> Result<ActionRow, Refusal> {
        self.looked_at(digest)?;
        self.in_time(by.at_ms)?;
        self.ended(State::Edited, by)
    }

    /// Whether somebody signed for it, and it may have happened or still happen by that.
    pub(crate) fn was_signed(&self) -> bool {
        matches!(
            self.state,
            State::Approved | State::Executing | State::Unknown | State::Succeeded
        )
    }

    /// Nobody decided, or nobody started it, in time.
    pub(crate) fn expire(&self, now_ms: u64) -> Result<ActionRow, Refusal> {
        if now_ms < self.action.said.expires_ms {
            return Err(Refusal::State);
        }
        let mut row = self.ended(
            State::Expired,
            Ended {
                by: Signer::Clock,
                why: String::new(),
                at_ms: now_ms,
            },
        )?;
        row.closes = true;
        Ok(row)
    }

    /// A kill switch came before it was started. Its votes are void.
    pub(crate) fn hold(&self) -> Result<ActionRow, Refusal> {
        if self.state == State::Executing {
            return Err(Refusal::State);
        }
        let mut row = self.to(State::Held)?;
        row.votes.clear();
        Ok(row)
    }

    /// Whoever starts it finds that it may not be, as it was signed. Its votes are void.
    pub(crate) fn hold_back(&self, why: Ended) -> Result<ActionRow, Refusal> {
        let mut row = self.unsent(State::Held)?;
        row.votes.clear();
        row.ended = Some(why);
        Ok(row)
    }

    /// Whoever starts it cannot tell whether it still is what was signed, and has not handed it over: it is looked at
    /// again when it is due.
    pub(crate) fn postpone(&self, why: Ended, due_ms: u64) -> Result<ActionRow, Refusal> {
        let mut row = match self.state {
            State::Approved => ActionRow {
                version: self.version.saturating_add(1),
                ..self.clone()
            },
            State::Executing => self.unsent(State::Approved)?,
            _ => return Err(Refusal::State),
        };
        row.ended = Some(why);
        row.due_ms = Some(due_ms);
        Ok(row)
    }

    /// The same action somewhere else, as one that was never handed over. Only whoever has claimed it knows that, and
    /// only of its first time.
    fn unsent(&self, state: State) -> Result<ActionRow, Refusal> {
        if self.state == State::Executing && self.sending.times != 1 {
            return Err(Refusal::State);
        }
        let mut row = self.to(state)?;
        row.sending = Sending::default();
        Ok(row)
    }

    /// Its run was ended before it was started.
    pub(crate) fn cancel(&self, ended: Ended) -> Result<ActionRow, Refusal> {
        self.ended(State::Cancelled, ended)
    }

    /// What was signed is no longer what would happen.
    pub(crate) fn drift(&self, why: Ended, changed: Vec<Changed>) -> Result<ActionRow, Refusal> {
        let mut row = self.unsent(State::Drifted)?;
        row.ended = Some(why);
        row.changed = changed;
        Ok(row)
    }

    /// It is handed to its effect, for the first time or, when it is known that nothing happened, again.
    pub(crate) fn send(&self, epoch: u64, now_ms: u64) -> Result<ActionRow, Refusal> {
        if self.state == State::Approved && now_ms >= self.action.said.expires_ms {
            return Err(Refusal::Late);
        }
        let mut row = self.to(State::Executing)?;
        row.ended = None;
        row.sending = Sending {
            times: self.sending.times.saturating_add(1),
            epoch,
            at_ms: now_ms,
        };
        Ok(row)
    }

    /// It happened.
    pub(crate) fn succeed(&self, receipt: String, ended: Ended) -> Result<ActionRow, Refusal> {
        let mut row = self.ended(State::Succeeded, ended)?;
        row.receipt = Some(receipt);
        Ok(row)
    }

    /// It did not happen, and will not.
    pub(crate) fn fail(&self, ended: Ended) -> Result<ActionRow, Refusal> {
        self.ended(State::Failed, ended)
    }

    /// Nobody knows what came of it. It is looked at again when it is due, or by a person.
    pub(crate) fn lose_sight(&self, why: Ended, due_ms: Option<u64>) -> Result<ActionRow, Refusal> {
        let mut row = match self.state {
            State::Unknown => ActionRow {
                version: self.version.saturating_add(1),
                ..self.clone()
            },
            _ => self.to(State::Unknown)?,
        };
        row.ended = Some(why);
        row.due_ms = due_ms;
        Ok(row)
    }

    /// A person lets its subject be asked for again.
    pub(crate) fn reopen(&self, by: Ended) -> Result<ActionRow, Refusal> {
        if !self.closes {
            return Err(Refusal::State);
        }
        Ok(ActionRow {
            version: self.version.saturating_add(1),
            closes: false,
            reopened: Some(by),
            ..self.clone()
        })
    }
}
