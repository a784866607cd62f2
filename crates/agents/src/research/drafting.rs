//! Before and beside research: what is meant, what is to be found out, drafts, and what speaks against them.

use super::crew::{Crew, packed, phase};
use super::desk::way;
use super::prompt;
use super::reading::{AskedBack, Attack, WrittenBrief, short, value, without_thoughts};
use super::settings::Role;
use super::state::{Brief, Clarification, Critique, Draft, ResearchState, Standing};
use super::{ATTACK, BRIEF, CLARIFY, DRAFT};
use crate::asking::{Asking, Early};
use crate::ending::Ending;
use crate::spent::Spent;
use paraph_graph::{Ctx, State, Update};
use paraph_models::{ChatRequest, Message, ResponseFormat};
use std::sync::Arc;

/// How long a brief, a question, a concern may be, in characters.
const LONGEST_BRIEF: usize = 4_000;
const LONGEST_LINE: usize = 600;

/// So many points of the red team are taken at a time, and so many may be open in all.
const NEW_POINTS: usize = 5;
const OPEN_POINTS: usize = 12;

/// A point that was raised so often and is still not answered is told in the report, and no draft is made for it.
const RAISED_ENOUGH: u64 = 3;

/// What a node that asks one model writes: what it made of the answer, or that research is cut short.
struct Asked {
    answer: Result<String, Ending>,
    spent: Option<Spent>,
    step: u64,
}

/// One question to whoever plays a part.
async fn ask(
    crew: &Crew,
    (role, state, ctx): (Role, &ResearchState, &Ctx),
    request: impl Fn(usize) -> ChatRequest,
) -> paraph_graph::Result<Asked> {
    let fail = |early: Early, spent: Option<Spent>| {
        Ok(Asked {
            answer: Err(early.ending()?),
            spent,
            step: state.step,
        })
    };
    let asking = match Asking::of(ctx, state.spent.as_ref(), state.step).await {
        Ok(asking) => asking,
        Err(early) => return fail(early, state.spent.clone()),
    };
    if let Some(stop) = asking.running_out() {
        return fail(stop.into(), Some(asking.spent(ctx)));
    }
    let spent = asking.clone();
    match crew.ask(role, asking, ctx, request).await {
        Ok((step, reply)) => Ok(Asked {
            answer: Ok(without_thoughts(&reply.message.text()).to_owned()),
            spent: Some(spent.spent(ctx)),
            step,
        }),
        Err(early) => fail(early, Some(spent.spent(ctx))),
    }
}

/// A request for JSON.
fn in_json(request: ChatRequest) -> ChatRequest {
    ChatRequest {
        response_format: ResponseFormat::JsonObject,
        ..request
    }
}

/// Asks whether the question can be understood. What cannot be read of the answer counts as yes.
pub(super) async fn clarify(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    phase(ctx, "clarifying", &state.question).await?;
    let request = |room| {
        let question = Message::human(&*state.question);
        in_json(packed(
            prompt::CLARIFIER.to_owned(),
            vec![question],
            &[],
            room,
        ))
    };
    let asked = ask(crew, (Role::Writer, state, ctx), request).await?;
    let update = ResearchState::update().spent(asked.spent).step(asked.step);
    let text = match asked.answer {
        Ok(text) => text,
        Err(ending) => return Ok(cut_short(update, CLARIFY, ending)),
    };
    let question = value::<AskedBack>(&text).and_then(|asked| asked.question);
    let question = question
        .map(|q| short(q.trim(), LONGEST_LINE))
        .filter(|q| !q.is_empty());
    let cause = match &question {
        Some(_) => "the question can be understood in several ways",
        None => "the question is clear",
    };
    let clarification = question.map(|asked| Clarification {
        asked,
        answered: String::new(),
    });
    Ok(update.clarification(clarification).way(way(CLARIFY, cause)))
}

/// Asks the person back.
pub(super) async fn ask_back(
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let Some(open) = &state.clarification else {
        return Ok(ResearchState::update());
    };
    let answered: String = ctx.interrupt_for("clarify", &open.asked)?;
    let answered = short(answered.trim(), LONGEST_BRIEF);
    Ok(ResearchState::update()
        .clarification(Some(Clarification {
            asked: open.asked.clone(),
            answered,
        }))
        .way(way(super::ASK_BACK, "a person has answered")))
}

/// Turns the question into a brief. An answer that is no plan is one all the same: its text.
pub(super) async fn write_brief(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    phase(ctx, "planning", &state.question).await?;
    let breadth = crew.settings.breadth;
    let instructions = prompt::briefer(&crew.date(), breadth);
    let request = |room| {
        let asked = prompt::brief_text(state);
        let question = Message::human(format!("{}\n{asked}", state.question));
        in_json(packed(instructions.clone(), vec![question], &[], room))
    };
    let asked = ask(crew, (Role::Writer, state, ctx), request).await?;
    let update = ResearchState::update().spent(asked.spent).step(asked.step);
    let text = match asked.answer {
        Ok(text) => text,
        Err(ending) => return Ok(cut_short(update, BRIEF, ending)),
    };
    let brief = brief_of(&text, &state.question, breadth);
    let messages = [Message::human(prompt::to_supervise(&brief))];
    Ok(update
        .supervisor_messages(messages)
        .research_brief(Some(brief))
        .way(way(BRIEF, "it is known what is to be found out")))
}

fn brief_of(text: &str, question: &str, most: u64) -> Brief {
    let written: Option<WrittenBrief> = value(text);
    let Some(written) = written.filter(|written| !written.brief.trim().is_empty()) else {
        let text = match text.is_empty() || text.starts_with('{') {
            true => question,
            false => text,
        };
        return Brief {
            text: short(text, LONGEST_BRIEF),
            questions: vec![short(question, LONGEST_LINE)],
            simple: false,
        };
    };
    let lines = written
        .questions
        .iter()
        .map(|line| short(line.trim(), LONGEST_LINE));
    let lines = lines.filter(|line| !line.is_empty());
    let mut questions: Vec<_> = lines
        .take(usize::try_from(most).unwrap_or(usize::MAX))
        .collect();
    if questions.is_empty() {
        questions.push(short(question, LONGEST_LINE));
    }
    Brief {
        text: short(written.brief.trim(), LONGEST_BRIEF),
        questions,
        simple: written.complexity.trim() == "simple",
    }
}

/// Writes a draft: from what is believed, or from what was found. All critiques that are open are answered by it,
/// until the red team says otherwise.
pub(super) async fn draft(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let version = state.draft_report.as_ref().map_or(0, |draft| draft.version) + 1;
    phase(ctx, "drafting", &format!("version {version}")).await?;
    let instructions = prompt::drafter(state);
    let request = |room| {
        let wishes = state.redraft.as_deref().unwrap_or("none");
        let material = super::writing::material(state, room / 2);
        let task = format!(
            "{}\n\nWishes: {wishes}\n\n{material}",
            prompt::to_write(state)
        );
        packed(instructions.clone(), vec![Message::human(task)], &[], room)
    };
    let asked = ask(crew, (Role::Writer, state, ctx), request).await?;
    let update = ResearchState::update()
        .spent(asked.spent)
        .step(asked.step)
        .redraft(None);
    let text = match asked.answer {
        Ok(text) => text,
        Err(ending) => return Ok(cut_short(update, DRAFT, ending)),
    };
    let mut critiques = state.critiques.clone();
    for critique in &mut critiques {
        if critique.standing == Standing::Raised {
            critique.standing = Standing::Answered;
        }
    }
    Ok(update
        .critiques(critiques)
        .draft_report(Some(Draft {
            version,
            text,
            attacked: false,
        }))
        .way(way(DRAFT, "a new draft was not attacked yet")))
}

/// Attacks the newest draft, and looks whether older points are answered.
pub(super) async fn red_team(
    crew: &Arc<Crew>,
    state: &ResearchState,
    ctx: &Ctx,
) -> paraph_graph::Result<Update<ResearchState>> {
    let Some(draft) = &state.draft_report else {
        return Ok(ResearchState::update().way(way(ATTACK, "there is no draft")));
    };
    phase(ctx, "attacking", &format!("draft {}", draft.version)).await?;
    let is_answered = |critique: &&Critique| critique.standing == Standing::Answered;
    let answered: Vec<_> = state.critiques.iter().filter(is_answered).collect();
    let request = |room| {
        let task = prompt::to_attack(state, &draft.text, &answered);
        in_json(packed(
            prompt::RED_TEAM.to_owned(),
            vec![Message::human(task)],
            &[],
            room,
        ))
    };
    let asked = ask(crew, (Role::RedTeam, state, ctx), request).await?;
    let update = ResearchState::update().spent(asked.spent).step(asked.step);
    let text = match asked.answer {
        Ok(text) => text,
        Err(ending) => return Ok(cut_short(update, ATTACK, ending)),
    };
    let critiques = after_attack(&state.critiques, &text, draft.version);
    let open = critiques
        .iter()
        .filter(|c| c.standing == Standing::Raised)
        .count();
    Ok(update
        .critiques(critiques)
        .draft_report(Some(Draft {
            attacked: true,
            ..draft.clone()
        }))
        .way(way(
            ATTACK,
            super::reading::counted(open as u64, "point", " against the draft", "open"),
        )))
}

/// How critiques stand after an attack. What cannot be read of it raises nothing and closes nothing.
fn after_attack(before: &[Critique], text: &str, version: u64) -> Vec<Critique> {
    let mut all = before.to_vec();
    let Some(attack) = value::<Attack>(text) else {
        return all;
    };
    for critique in &mut all {
        if critique.standing != Standing::Answered {
            continue;
        }
        let open = attack.still_open.contains(&critique.id);
        critique.standing = match open {
            true => Standing::Raised,
            false => Standing::Closed,
        };
        critique.raised += u64::from(open);
    }
    let open = all
        .iter()
        .filter(|c| c.standing == Standing::Raised)
        .count();
    let room = OPEN_POINTS.saturating_sub(open).min(NEW_POINTS);
    for weakness in attack.new.into_iter().take(room) {
        let concern = short(weakness.concern.trim(), LONGEST_LINE);
        let known = all.iter().any(|critique| critique.concern == concern);
        if concern.is_empty() || known {
            continue;
        }
        all.push(Critique {
            id: format!("c{}", all.len() + 1),
            concern,
            severity: weakness.severity.unwrap_or(5).clamp(1, 10),
            version,
            standing: Standing::Raised,
            raised: 1,
        });
    }
    all
}

impl Critique {
    /// Whether a draft is still worth making for it.
    pub(super) fn can_be_answered(&self) -> bool {
        self.standing == Standing::Raised && self.raised < RAISED_ENOUGH
    }
}

/// Research ends here; what there is is reported.
fn cut_short(update: Update<ResearchState>, from: &str, ending: Ending) -> Update<ResearchState> {
    let cause = format!("research is cut short: {}", ending.stop);
    update.cut_short(Some(ending)).way(way(from, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn critique(id: &str, standing: Standing, raised: u64) -> Critique {
        Critique {
            id: id.to_owned(),
            concern: format!("concern {id}"),
            severity: 5,
            version: 1,
            standing,
            raised,
        }
    }

    fn standing(all: &[Critique]) -> Vec<(&str, Standing, u64)> {
        let row = |c: &'_ Critique| (c.standing, c.raised);
        all.iter()
            .map(|c| (c.id.as_str(), row(c).0, row(c).1))
            .collect()
    }

    /// The third of the original's faults: a critique was raised for ever.
    #[test]
    fn a_critique_is_raised_answered_and_closed_or_raised_again() {
        let before = [
            critique("c1", Standing::Answered, 1),
            critique("c2", Standing::Answered, 1),
            critique("c3", Standing::Closed, 1),
        ];
        let text = r#"{"still_open": ["c2", "c3", "c9"], "new": [{"concern": "No date", "severity": 99}]}"#;
        let after = after_attack(&before, text, 2);
        let expected = [
            ("c1", Standing::Closed, 1),
            ("c2", Standing::Raised, 2),
            ("c3", Standing::Closed, 1),
            ("c4", Standing::Raised, 1),
        ];
        assert_eq!(standing(&after), expected);
        assert_eq!(after[3].severity, 10);
        // What was said before is not said again.
        assert_eq!(
            after_attack(&after, r#"{"new": [{"concern": "No date"}]}"#, 3),
            after
        );
        assert_eq!(after_attack(&before, "PASS", 2), before);
    }

    #[test]
    fn the_red_team_is_bounded() {
        let many: Vec<_> = (0..50)
            .map(|n| serde_json::json!({"concern": format!("p{n}")}))
            .collect();
        let text = serde_json::json!({"new": many}).to_string();
        let mut all = Vec::new();
        for version in 1..9 {
            all = after_attack(&all, &text, version);
        }
        assert_eq!(all.len(), NEW_POINTS);
        let open: Vec<_> = (0..OPEN_POINTS)
            .map(|n| critique(&format!("c{n}"), Standing::Raised, 1))
            .collect();
        assert_eq!(after_attack(&open, &text, 2), open);
        assert!(!critique("c", Standing::Raised, RAISED_ENOUGH).can_be_answered());
    }

    #[test]
    fn a_brief_is_read_or_made_of_what_there_is() {
        let text =
            r#"{"brief": "Find it.", "questions": ["a", " ", "b", "c"], "complexity": "simple"}"#;
        let brief = brief_of(text, "Q?", 2);
        assert_eq!(
            brief,
            Brief {
                text: "Find it.".into(),
                questions: vec!["a".into(), "b".into()],
                simple: true
            }
        );
        let plain = |text: &str| brief_of(text, "Q?", 2).text;
        assert_eq!(plain("Look at prices."), "Look at prices.");
        assert_eq!(plain("{\"brief\": "), "Q?");
        assert_eq!(plain(""), "Q?");
        assert_eq!(brief_of("", "Q?", 2).questions, ["Q?"]);
    }
}
