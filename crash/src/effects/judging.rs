//! What must hold of an errand after the last kill.
//!
//! Called by `trying`, with what the children said, what the world has, and the store as it is left. A finding is a
//! sentence; none means that all is well. Three kinds are counted by name, since they are what the gateway promises:
//! an approval that was lost, an effect that happened twice, and a run that does not come to its end.

use paraph_gateway::{ActionRow, AuditEntry, Find, Pack, Signer, State, Verifier};
use paraph_graph::{RunId, RunStatus, Store, ThreadStatus};
use paraph_store::Opened;

use super::acting::AUTHOR;
use super::driving::{Api, Errand, PERSON, readable};
use super::world::World;
use crate::Fault;
use crate::launch::{Attempt, End, Line};

/// How many entries a tenant's audit has at most that has one action.
const MOST_ENTRIES: usize = 1_000;

/// What a trial left besides its store.
#[derive(Clone, Copy)]
pub(crate) struct Traces<'a> {
    /// What the children were told to do; the last one's.
    pub(crate) errand: &'a Errand,
    /// The children, in order; the last one finished.
    pub(crate) attempts: &'a [Attempt],
    /// The world.
    pub(crate) world: &'a World,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    /// All that is wrong, a sentence each.
    pub(crate) wrong: Vec<String>,
    /// Approvals that were saved, and gone later.
    pub(crate) lost: u64,
    /// Effects that happened once too often.
    pub(crate) doubles: u64,
    /// Runs that did not come to their end.
    pub(crate) stuck: u64,
    /// How often the action was handed to its effect.
    pub(crate) sendings: u64,
}

/// Looks at everything.
pub(crate) async fn judge(traces: Traces<'_>) -> Result<Judged, Fault> {
    let mut judged = Judged::default();
    ends(traces.attempts, &mut judged);
    said(traces.attempts, &mut judged);
    happened(traces, &mut judged);
    match traces.errand.place.open_all().await {
        Ok(opened) => stored(traces, &opened, &mut judged).await?,
        Err(error) => judged.say(format!("the store cannot be opened: {error}")),
    }
    match traces.errand.place.damage() {
        Ok(damage) => judged
            .wrong
            .extend(damage.iter().map(|line| format!("damage: {line}"))),
        Err(error) => judged.say(format!("the database's check: {error}")),
    }
    Ok(judged)
}

impl Judged {
    fn say(&mut self, what: String) {
        self.wrong.push(what);
    }
}

/// The last child is done, and none of the others ended otherwise than by a kill.
fn ends(attempts: &[Attempt], judged: &mut Judged) {
    for (process, attempt) in attempts.iter().enumerate() {
        let last = process + 1 == attempts.len();
        match &attempt.end {
            End::Done if last => {}
            End::Cut if !last => {}
            end => {
                judged.stuck += u64::from(last);
                judged.say(format!("process {process} ended with {end:?}"));
            }
        }
    }
}

/// What a child said of the action, in order: the word, the id and the digest, and which child it was.
fn words(attempts: &[Attempt]) -> Vec<(usize, String, String, String)> {
    let mut all = Vec::new();
    for (process, attempt) in attempts.iter().enumerate() {
        for line in &attempt.lines {
            let Line::Other(line) = line else { continue };
            let mut words = line.split(' ').map(str::to_owned);
            if let (Some(word), Some(id), Some(digest)) = (words.next(), words.next(), words.next())
                && matches!(word.as_str(), "shown" | "approved")
            {
                all.push((process, word, id, digest));
            }
        }
    }
    all
}

/// Once an approval was acknowledged nobody is asked again, and all said the same of one action.
fn said(attempts: &[Attempt], judged: &mut Judged) {
    let words = words(attempts);
    if let Some(first) = words.iter().position(|(_, word, ..)| word == "approved")
        && let Some((process, word, ..)) = words.get(first + 1)
    {
        judged.lost += 1;
        judged.say(format!(
            "it was approved, and {word} again by process {process}"
        ));
    }
    for pair in words.windows(2) {
        let [(.., id, digest), (.., other_id, other_digest)] = pair else {
            continue;
        };
        if (id, digest) != (other_id, other_digest) {
            judged.say(format!(
                "{id} {digest} was shown, then {other_id} {other_digest}"
            ));
        }
    }
}

/// The world has the effect once, as it was asked for.
fn happened(traces: Traces<'_>, judged: &mut Judged) {
    let trial = &traces.errand.thread;
    let (count, right) = match traces.errand.api {
        Api::Pay => {
            let payments = traces.world.payments(trial);
            let right = payments.values().all(|payment| payment.cents == 4_200);
            (payments.len(), right)
        }
        Api::Write => {
            let comments = traces.world.comments(trial);
            let ours: Vec<_> = comments
                .iter()
                .filter(|comment| comment.author == AUTHOR && !comment.body.starts_with(PLANTED))
                .collect();
            let right = ours
                .iter()
                .all(|comment| comment.body.starts_with("Fixed in 1.2, see the notes.\n"));
            (ours.len(), right)
        }
    };
    if !right {
        judged.say("what happened is not what was asked for".to_owned());
    }
    match count {
        1 => {}
        0 => judged.say("the effect did not happen".to_owned()),
        many => {
            judged.doubles += many as u64 - 1;
            judged.say(format!("the effect happened {many} times"));
        }
    }
}

/// How comments begin that others wrote to be taken for ours.
pub(crate) const PLANTED: &str = "Not so:";

async fn stored(traces: Traces<'_>, opened: &Opened, judged: &mut Judged) -> Result<(), Fault> {
    let run = traces.errand.run_ref();
    let rows = opened.gateway.actions(Find::Run(&run)).await?;
    let [row] = rows.as_slice() else {
        judged.say(format!("there are {} actions", rows.len()));
        return Ok(());
    };
    judged.sendings = row.sending.times;
    signed(row, judged);
    let word = (row.id().to_string(), row.digest.clone());
    for (process, _, id, digest) in words(traces.attempts) {
        if (&id, &digest) != (&word.0, &word.1) {
            judged.say(format!(
                "process {process} saw {id} {digest}, stored is {word:?}"
            ));
        }
    }
    let audit = opened.gateway.audit(&run.tenant, 0, MOST_ENTRIES).await?;
    audited(row, &audit, judged);
    let wakes = opened.gateway.wakes(usize::MAX).await?;
    if wakes.iter().any(|wake| wake.run.thread == run.thread) {
        judged.say("something still wakes the run".to_owned());
    }
    rests(traces.errand, (opened, row), judged).await
}

/// The action was done, under the person's signature of the very bytes that are stored.
fn signed(row: &ActionRow, judged: &mut Judged) {
    if row.state != State::Succeeded {
        judged.say(format!("the action is {}", row.state));
    }
    let by: Vec<_> = row
        .votes
        .iter()
        .map(|vote| (&vote.by, &vote.digest))
        .collect();
    let ann = Signer::Person(PERSON.into());
    if by != [(&ann, &row.digest)] {
        judged.lost += u64::from(by.is_empty());
        judged.say(format!("it was signed by {by:?}"));
    }
    if !row.action.is_intact(&row.digest) {
        judged.say("the bytes are not those of the digest".to_owned());
    }
}

/// The chain is whole, each attempt in it was signed, and of this digest.
fn audited(row: &ActionRow, audit: &[AuditEntry], judged: &mut Judged) {
    match Verifier::check(&row.action.said.run.tenant, audit, &[]) {
        Ok(verified) if verified.attempts == row.sending.times => {}
        Ok(verified) => judged.say(format!(
            "the audit tells of {} attempts, the action of {}",
            verified.attempts, row.sending.times
        )),
        Err(broken) => judged.say(format!("the audit: {broken}")),
    }
    let pack = Pack::of(&row.action.bytes, &row.digest).and_then(|mut pack| {
        for entry in audit {
            pack.see(entry.clone())?;
        }
        Pack::check(&pack.close(&[]).to_string(), &[])
    });
    match pack {
        Ok(report) if report.state.as_deref() == Some("succeeded") => {}
        Ok(report) => judged.say(format!("the audit leaves it {:?}", report.state)),
        Err(error) => judged.say(format!("the evidence: {error}")),
    }
}

/// The run is over, and its state has the receipt.
async fn rests(
    errand: &Errand,
    (opened, row): (&Opened, &ActionRow),
    judged: &mut Judged,
) -> Result<(), Fault> {
    let store: Store = opened.threads.clone();
    let thread = readable(errand.api)?.thread(&store, errand.thread.as_str());
    let Some(stands) = thread.snapshot(None).await? else {
        judged.say("the thread is gone".to_owned());
        return Ok(());
    };
    let receipt = serde_json::to_string(&stands.state.receipt)?;
    if !stands.finished || !stands.state.told || row.receipt.as_ref() != Some(&receipt) {
        judged.say(format!(
            "the state is {:?}, and the receipt {:?}",
            stands.state, row.receipt
        ));
    }
    let rests = opened.threads.thread(&errand.thread).await?;
    let rests = rests.is_some_and(|row| row.status == ThreadStatus::Idle && row.holder.is_none());
    let over = opened.threads.run(RunId::from(errand.run)).await?;
    let over = over.is_some_and(|row| row.status == RunStatus::Success && !row.live);
    if !rests || !over {
        judged.stuck += 1;
        judged.say("the rows of thread and run do not say that it is over".to_owned());
    }
    Ok(())
}

/// A child's last word on how a comment is marked.
pub(crate) fn mark(attempt: &Attempt) -> Option<&str> {
    attempt.lines.iter().rev().find_map(|line| match line {
        Line::Other(line) => line.strip_prefix("marked "),
        _ => None,
    })
}

/// Puts comments into the forum that have the mark of a trial and are not its own: by somebody else, and of other
/// words. Whoever takes one of them for the effect leaves it undone.
pub(crate) fn plant(world: &World, trial: &str, mark: &str) {
    world.plant(
        trial,
        "mallory",
        &format!("Fixed in 1.2, see the notes.\n<!-- {mark} -->"),
    );
    world.plant(trial, AUTHOR, &format!("{PLANTED} see\n<!-- {mark} -->"));
}
