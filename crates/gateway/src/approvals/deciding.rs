//! Decisions of people about one action: each a look, the next row by the rules of `action/machine.rs`, and one commit.

use super::{ApprovalError, Approvals, MAX_LOOKS};
use crate::action::{ActionId, ActionRow, Ended, Person, Refusal, Signer, State, Voted};
use crate::audit::EventKind;
use crate::record::RunRef;
use crate::store::{Change, Find, Guard, StoreError, Wake};

/// What a person found out about an action of which nobody saw what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It happened; the receipt as JSON text, for the model.
    Happened(String),
    /// It did not happen.
    DidNotHappen,
}

impl Approvals {
    /// How often a change may be asked for about one subject on one thread.
    pub const MAX_ROUNDS: usize = 3;

    /// Approves the bytes of this digest. When enough people have, the action is signed and its run is woken. The same
    /// person approving the same again changes nothing.
    ///
    /// # Errors
    /// [`ApprovalError::Conflict`] names what it is by now; [`ApprovalError::OtherDigest`] tells of a stale screen.
    pub async fn approve(
        &self,
        id: ActionId,
        digest: &str,
        by: impl Into<Person>,
    ) -> Result<ActionRow, ApprovalError> {
        let person = by.into();
        self.decide(id, |row, now_ms| {
            Ok(match row.approve(&person, digest, now_ms)? {
                Voted::Already => None,
                Voted::Counted(mut next) => {
                    self.seal.newest(&mut next);
                    Some(*next)
                }
            })
        })
        .await
    }

    /// Refuses the bytes of this digest. The model reads the reason, and what the action is about is closed for the
    /// thread until somebody [reopens](Approvals::reopen) it.
    ///
    /// # Errors
    /// As [`Approvals::approve`]; [`ApprovalError::NoReason`].
    pub async fn reject(
        &self,
        id: ActionId,
        digest: &str,
        by: impl Into<Person>,
        why: &str,
    ) -> Result<ActionRow, ApprovalError> {
        let (person, why) = (by.into(), reason(why)?);
        self.decide(id, |row, at_ms| {
            row.reject(digest, by_person(&person, &why, at_ms))
        })
        .await
    }

    /// Asks for something else before anybody decides: the words go to the model as data, the action is over, and
    /// nothing is closed, so that the model may ask again. After [`Approvals::MAX_ROUNDS`] times about the same on a
    /// thread somebody has to decide.
    ///
    /// # Errors
    /// As [`Approvals::reject`]; [`ApprovalError::TooManyRounds`].
    pub async fn ask_change(
        &self,
        id: ActionId,
        digest: &str,
        by: impl Into<Person>,
        words: &str,
    ) -> Result<ActionRow, ApprovalError> {
        let (person, words) = (by.into(), reason(words)?);
        let rounds = self.rounds(id).await?;
        self.decide(id, |row, at_ms| {
            match row.ask_change(digest, by_person(&person, &words, at_ms))? {
                Some(_) if rounds >= Approvals::MAX_ROUNDS => Err(Refusal::Rounds),
                next => Ok(next),
            }
        })
        .await
    }

    /// Answers in words: what was asked for is not done, and the model reads the words as what came of its call.
    ///
    /// # Errors
    /// As [`Approvals::reject`].
    pub async fn respond(
        &self,
        id: ActionId,
        digest: &str,
        by: impl Into<Person>,
        words: &str,
    ) -> Result<ActionRow, ApprovalError> {
        let (person, words) = (by.into(), reason(words)?);
        self.decide(id, |row, at_ms| {
            row.respond(digest, by_person(&person, &words, at_ms))
        })
        .await
    }

    /// How often a change was asked for about the same on the action's thread, this action apart.
    async fn rounds(&self, id: ActionId) -> Result<usize, ApprovalError> {
        let row = self.show(id).await?;
        let said = &row.action.said;
        let same = Find::Subject {
            tenant: &said.run.tenant,
            thread: &said.run.thread,
            subject: &said.subject,
        };
        let rows = self.store.actions(same).await?;
        let asked = rows
            .iter()
            .filter(|row| row.id() != id && row.wants_change());
        Ok(asked.count())
    }

    /// Lets what was refused, or what nobody decided about, be asked for again on its thread.
    ///
    /// # Errors
    /// [`ApprovalError::Conflict`] if it closes nothing.
    pub async fn reopen(
        &self,
        id: ActionId,
        by: impl Into<Person>,
    ) -> Result<ActionRow, ApprovalError> {
        let person = by.into();
        self.decide(id, |row, at_ms| {
            row.reopen(by_person(&person, "", at_ms)).map(Some)
        })
        .await
    }

    /// Says what came of an action of which nobody saw what came of it. Its run is woken. The same person saying the same
    /// again changes nothing.
    ///
    /// # Errors
    /// As [`Approvals::reject`].
    pub async fn settle(
        &self,
        id: ActionId,
        digest: &str,
        by: impl Into<Person>,
        (finding, why): (Finding, &str),
    ) -> Result<ActionRow, ApprovalError> {
        let (person, why) = (by.into(), reason(why)?);
        self.decide(id, |row, at_ms| {
            if row.digest != digest {
                return Err(Refusal::OtherDigest);
            }
            let ended = by_person(&person, &why, at_ms);
            if row.state != State::Unknown {
                return match says_the_same(row, &finding, &ended) {
                    true => Ok(None),
                    false => Err(Refusal::State),
                };
            }
            let next = match &finding {
                Finding::Happened(receipt) => row.succeed(receipt.clone(), ended),
                Finding::DidNotHappen => row.fail(ended),
            };
            next.map(Some)
        })
        .await
    }

    /// Says that whoever handed an action to its effect is gone, and that nobody saw what came of it: then it can be
    /// [settled](Approvals::settle). Only whoever knows the leases of runs can tell that; `seen` is the action as it
    /// stood when they looked, and one that was handed over anew since then is left alone.
    ///
    /// # Errors
    /// [`ApprovalError::Conflict`] if it is not under way any more, or is so anew; [`ApprovalError::NoReason`].
    pub async fn give_up(
        &self,
        seen: &ActionRow,
        by: impl Into<Person>,
        why: &str,
    ) -> Result<ActionRow, ApprovalError> {
        let (person, why) = (by.into(), reason(why)?);
        self.decide(seen.id(), |row, at_ms| {
            if row.state != State::Executing || row.sending != seen.sending {
                return Err(Refusal::State);
            }
            row.lose_sight(by_person(&person, &why, at_ms), None)
                .map(Some)
        })
        .await
    }

    /// Takes back what a run has proposed and nobody has started, because the run is to go no further. Says how many
    /// actions that were.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn cancel(
        &self,
        run: &RunRef,
        by: impl Into<Person>,
        why: &str,
    ) -> Result<usize, ApprovalError> {
        let (person, why) = (by.into(), reason(why)?);
        let mut count = 0;
        for row in self.store.actions(Find::Run(run)).await? {
            if row.state.is_final() || matches!(row.state, State::Executing | State::Unknown) {
                continue;
            }
            let ended = self.decide(row.id(), |row, at_ms| {
                row.cancel(by_person(&person, &why, at_ms)).map(Some)
            });
            match ended.await {
                Ok(row) => {
                    count += 1;
                    // Its run goes no further: nobody is there to be woken.
                    let at_ms = row.ended.as_ref().map_or(0, |ended| ended.at_ms);
                    self.woken(&Wake::of(&row, at_ms)).await?;
                }
                // It was started, or somebody decided.
                Err(ApprovalError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Ends what nobody decided about, or nobody started, in time. Says how many there were.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn expire(&self) -> Result<usize, ApprovalError> {
        let now_ms = self.now().await?;
        let open = self
            .list(&[State::Pending, State::Held, State::Approved])
            .await?;
        let mut count = 0;
        for row in open.iter().filter(|row| row.expire(now_ms).is_ok()) {
            let ended = self.decide(row.id(), |row, at_ms| row.expire(at_ms).map(Some));
            match ended.await {
                Ok(_) => count += 1,
                // Somebody was quicker.
                Err(ApprovalError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Writes down that an action was shown to somebody: whom, which bytes, and by which program in which version.
    ///
    /// # Errors
    /// [`ApprovalError::Store`].
    pub async fn shown(
        &self,
        row: &ActionRow,
        to: impl Into<Person>,
        program: &str,
    ) -> Result<(), ApprovalError> {
        let at_ms = self.now().await?;
        let told = row.told_shown((&to.into(), program), at_ms);
        let change = Change {
            audit: vec![told],
            ..Change::default()
        };
        Ok(self.store.commit(change).await?)
    }

    /// Takes a decision, again and again while others are quicker.
    pub(super) async fn decide(
        &self,
        id: ActionId,
        next: impl Fn(&ActionRow, u64) -> Result<Option<ActionRow>, Refusal>,
    ) -> Result<ActionRow, ApprovalError> {
        for _ in 0..MAX_LOOKS {
            let row = self.show(id).await?;
            let now_ms = self.now().await?;
            let (to, late) = match next(&row, now_ms) {
                Ok(Some(to)) => (to, false),
                Ok(None) => return Ok(row),
                Err(Refusal::Late) => match row.expire(now_ms) {
                    Ok(expired) => (expired, true),
                    Err(_) => return Err(ApprovalError::Conflict(Box::new(row))),
                },
                Err(refusal) => return Err(refused(refusal, row)),
            };
            match self.store.commit(decided(&row, &to, now_ms)).await {
                Ok(()) if late => return Err(ApprovalError::Conflict(Box::new(to))),
                Ok(()) => return Ok(to),
                Err(StoreError::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApprovalError::Conflict(Box::new(self.show(id).await?)))
    }
}

/// One commit: the next row, the audit, and a wake for the run if it can go on.
fn decided(from: &ActionRow, to: &ActionRow, now_ms: u64) -> Change {
    let goes_on = to.state != from.state && !to.state.is_undecided();
    Change {
        guards: vec![Guard::At {
            id: from.id(),
            version: from.version,
        }],
        audit: vec![to.told(kind(from, to), now_ms)],
        actions: vec![to.clone()],
        wake: goes_on.then(|| Wake::of(to, now_ms)).into_iter().collect(),
        ..Change::default()
    }
}

/// What happened between two rows, as the audit calls it.
fn kind(from: &ActionRow, to: &ActionRow) -> EventKind {
    match to.state {
        _ if from.closes && !to.closes => EventKind::Reopened,
        State::Held => EventKind::Held,
        State::Expired => EventKind::Expired,
        State::Cancelled => EventKind::Cancelled,
        State::Succeeded | State::Failed => EventKind::Reconciled,
        State::Unknown => EventKind::Unknown,
        _ => EventKind::Decided,
    }
}

/// Whether this person has settled an action in this way before.
fn says_the_same(row: &ActionRow, finding: &Finding, ended: &Ended) -> bool {
    let same = match finding {
        Finding::Happened(receipt) => {
            row.state == State::Succeeded && row.receipt.as_ref() == Some(receipt)
        }
        Finding::DidNotHappen => row.state == State::Failed,
    };
    same && row.ended.as_ref().map(|known| &known.by) == Some(&ended.by)
}

fn by_person(person: &Person, why: &str, at_ms: u64) -> Ended {
    Ended {
        by: Signer::Person(person.clone()),
        why: why.to_owned(),
        at_ms,
    }
}

fn refused(refusal: Refusal, row: ActionRow) -> ApprovalError {
    match refusal {
        Refusal::State | Refusal::Late => ApprovalError::Conflict(Box::new(row)),
        Refusal::OtherDigest => ApprovalError::OtherDigest,
        Refusal::OwnRequest => ApprovalError::OwnRequest,
        Refusal::Unverified => ApprovalError::Unverified,
        Refusal::Rounds => ApprovalError::TooManyRounds {
            rounds: Approvals::MAX_ROUNDS,
            subject: row.action.said.subject.clone(),
        },
    }
}

/// The most words of a person that are kept, in characters.
const MOST_WORDS: usize = 8_000;

pub(super) fn reason(why: &str) -> Result<String, ApprovalError> {
    let why = why.trim();
    match why.chars().count() {
        0 => Err(ApprovalError::NoReason),
        1..=MOST_WORDS => Ok(why.to_owned()),
        count => Err(ApprovalError::TooLong {
            count,
            most: MOST_WORDS,
        }),
    }
}
