//! A run that waits, at a terminal where somebody sits: they are shown what waits and decide at once, or leave it.

use super::differences::differences;
use super::edit::{edited, in_editor};
use super::{decide, desk, refused, show};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::note;
use crate::person::local;
use crate::signals::Interrupt;
use crate::stores::Kept;
use paraph_agents::{Agent, Approval};
use paraph_gateway::{ActionRow, ApprovalError, State, Why};
use std::io::{BufRead as _, Write as _};
use tokio::sync::oneshot;

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Somebody decided about something: the run can go on.
    Decided,
    /// Nobody wants to decide now.
    Left,
    /// Somebody put another action in the place of one, and does not want to decide about it now: it is what waits.
    Changed,
}

/// Where decisions of somebody at the terminal go.
struct Desk<'a> {
    kept: &'a Kept,
    config: &'a Config,
    agent: &'a Agent,
    by: String,
}

/// Asks about everything that waits, one after the other.
pub(crate) async fn ask(
    (kept, config): (&Kept, &Config),
    agent: &Agent,
    approvals: &[Approval],
    interrupt: &mut Interrupt,
) -> Result<Asked, Failure> {
    let at = Desk {
        kept,
        config,
        agent,
        by: local(&config.environment),
    };
    let mut asked = Asked::Left;
    for approval in approvals {
        // Whatever is decided, nothing goes on before the switch is off.
        if approval.why == Why::Killed {
            continue;
        }
        let row = desk(kept).show(approval.id).await;
        let row = row.map_err(|error| refused(kept, error))?;
        match row.state {
            State::Pending | State::Held => {}
            // What nobody saw is found out elsewhere, not by a yes or no.
            State::Unknown => continue,
            _ => {
                asked = Asked::Decided;
                continue;
            }
        }
        match at.one(row, interrupt).await? {
            Asked::Decided => asked = Asked::Decided,
            left if asked == Asked::Left => return Ok(left),
            _ => return Ok(asked),
        }
    }
    Ok(asked)
}

/// A decision that needs words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worded {
    Reject,
    AskChange,
    Respond,
}

impl Worded {
    fn of(answer: &str) -> Option<Worded> {
        match answer {
            "r" | "reject" => Some(Worded::Reject),
            "c" | "change" => Some(Worded::AskChange),
            "w" | "words" => Some(Worded::Respond),
            _ => None,
        }
    }

    fn question(self) -> &'static str {
        match self {
            Worded::Reject => "why? (the model reads it) ",
            Worded::AskChange => "what should be different? (the model reads it) ",
            Worded::Respond => "your answer? (the model reads it in place of what the call gives) ",
        }
    }
}

impl Desk<'_> {
    /// Asks about one action until it is decided about.
    async fn one(&self, mut row: ActionRow, interrupt: &mut Interrupt) -> Result<Asked, Failure> {
        const QUESTION: &str = "[a]pprove, [e]dit, ask for a [c]hange, answer in [w]ords, [r]eject or [q]uit (it \
                                keeps waiting)? ";
        let desk = desk(self.kept);
        note("");
        self.lay_before(&row).await;
        let mut left = Asked::Left;
        loop {
            let Some(answer) = answer(QUESTION, interrupt).await else {
                return Ok(left);
            };
            let decided = match answer.trim().to_lowercase().as_str() {
                "a" | "approve" => desk.approve(row.id(), &row.digest, self.by.as_str()).await,
                "e" | "edit" => {
                    match self.edit(&row).await {
                        Ok(Some(new)) => {
                            row = new;
                            left = Asked::Changed;
                            self.lay_before(&row).await;
                        }
                        Ok(None) => note("nothing was changed"),
                        Err(failure) => tell(&failure),
                    }
                    continue;
                }
                "q" | "quit" => return Ok(left),
                other => {
                    let Some(kind) = Worded::of(other) else {
                        continue;
                    };
                    let Some(words) = answer_of(kind.question(), interrupt).await else {
                        return Ok(left);
                    };
                    // Whoever wants to leave here means no reason.
                    if matches!(words.trim().to_lowercase().as_str(), "q" | "quit") {
                        note("nothing was decided");
                        continue;
                    }
                    self.in_words(kind, &row, &words).await
                }
            };
            match self.came_of(decided) {
                Some(Asked::Left) => return Ok(left),
                Some(asked) => return Ok(asked),
                None => {}
            }
        }
    }

    /// Shows an action to whoever sits there, and writes down that it was shown.
    async fn lay_before(&self, row: &ActionRow) {
        let acts = format!("this process as local user {}", self.by);
        let changes = differences(self.kept, row).await.unwrap_or_default();
        note(&show::in_words(row, (&acts, &changes), None));
        show::was_shown(&desk(self.kept), row, &self.by).await;
        forget_typed();
    }

    async fn in_words(
        &self,
        kind: Worded,
        row: &ActionRow,
        words: &str,
    ) -> Result<ActionRow, ApprovalError> {
        let (desk, id, by) = (desk(self.kept), row.id(), self.by.as_str());
        match kind {
            Worded::Reject => desk.reject(id, &row.digest, by, words).await,
            Worded::AskChange => desk.ask_change(id, &row.digest, by, words).await,
            Worded::Respond => desk.respond(id, &row.digest, by, words).await,
        }
    }

    /// Says what came of a decision; nothing if it has to be taken again.
    fn came_of(&self, decided: Result<ActionRow, ApprovalError>) -> Option<Asked> {
        match decided {
            Ok(now) if now.state.is_undecided() => {
                note(&decide::told("approved", &self.by, &now));
                note("it waits for the approval of others");
                Some(Asked::Left)
            }
            Ok(now) => {
                let what = match now.state {
                    State::Rejected => "refused",
                    State::Superseded => decide::CHANGE,
                    State::Answered => decide::ANSWERED,
                    _ => "approved",
                };
                note(&decide::told(what, &self.by, &now));
                Some(Asked::Decided)
            }
            // Somebody else was quicker: then that is what the run goes on with.
            Err(error @ ApprovalError::Conflict(_)) => {
                tell(&refused(self.kept, error));
                Some(Asked::Decided)
            }
            Err(error) => {
                tell(&refused(self.kept, error));
                None
            }
        }
    }

    async fn edit(&self, row: &ActionRow) -> Result<Option<ActionRow>, Failure> {
        let Some(gateway) = self.agent.gateway_of(&row.action.said.run.agent) else {
            return Err(Failure::usage(
                "its agent is not there to read other arguments",
            ));
        };
        let Some(text) = in_editor(&self.config.environment, row)? else {
            return Ok(None);
        };
        let new = edited(self.kept, gateway, (row, &self.by), &text).await?;
        Ok(Some(new))
    }
}

/// Says what did not work, and goes on.
fn tell(failure: &Failure) {
    if let Failure::Usage(text) | Failure::Broken(text) | Failure::Refused(text) = failure {
        note(&crate::terminal::printable(text));
    }
}

/// Drops what was typed before anybody could have read the question: it is no answer to it.
fn forget_typed() {
    #[cfg(unix)]
    if let Err(error) =
        rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush)
    {
        note(&format!("warning: what was typed before stays: {error}"));
    }
}

/// A line that is more than nothing.
async fn answer_of(question: &str, interrupt: &mut Interrupt) -> Option<String> {
    loop {
        let line = answer(question, interrupt).await?;
        if !line.trim().is_empty() {
            return Some(line);
        }
    }
}

/// A line from the terminal; nothing at its end, or if somebody interrupts.
pub(in crate::commands) async fn answer(
    question: &str,
    interrupt: &mut Interrupt,
) -> Option<String> {
    {
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "{question}");
        let _ = out.flush();
    }
    let (sender, receiver) = oneshot::channel();
    // A thread of its own: the program must be able to end while nobody types.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let line = matches!(read, Ok(1..)).then_some(line);
        let _ = sender.send(line);
    });
    tokio::select! {
        line = receiver => line.ok().flatten(),
        () = interrupt.wait() => {
            note("");
            None
        }
    }
}
