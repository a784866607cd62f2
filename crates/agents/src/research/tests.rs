//! Whole research runs, by rehearsal and by models that misbehave. The ten faults of the original that this agent was
//! made after are named where one of them would show.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::rehearsal::rehearse;
use super::*;
use crate::{AgentEvent, AgentEventData, Rehearsal, ReportResult, Terms, Voice};
use futures::StreamExt as _;
use paraph_gateway::{Stop, ToolError};
use paraph_models::{
    Body, ChatModel, ChatRequest, Chunk, ChunkStream, FinishReason, ModelError, ToolCallDelta,
    Usage,
};
use serde_json::{Value, json};
use std::sync::Mutex;

const QUESTION: &str = "How can a system with retrieval be kept from making things up?";

/// From what is asked, and how often it was, to what is said.
type Play = dyn Fn(&ChatRequest, usize) -> Result<Chunk, ModelError> + Send + Sync;

/// A model that answers as a function says, and keeps what it was asked.
struct Played {
    play: Box<Play>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl ChatModel for Played {
    fn name(&self) -> &str {
        "played"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let turn = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.clone());
            asked.len()
        };
        let chunk = (self.play)(request, turn).map(|chunk| Chunk {
            usage: Some(Usage::new(100, 10)),
            ..chunk
        });
        futures::stream::iter([chunk]).boxed()
    }
}

impl Played {
    fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap().clone()
    }
}

/// The rehearsal in this part, which keeps what it was asked.
fn plain(role: Role) -> Arc<Played> {
    played(move |request, _| Ok(rehearse(role, request)))
}

fn played(
    play: impl Fn(&ChatRequest, usize) -> Result<Chunk, ModelError> + Send + Sync + 'static,
) -> Arc<Played> {
    Arc::new(Played {
        play: Box::new(play),
        asked: Mutex::default(),
    })
}

fn text(text: &str) -> Chunk {
    Chunk {
        text: text.to_owned(),
        finish_reason: Some(FinishReason::Stop),
        ..Chunk::default()
    }
}

fn calls(wanted: &[(&str, Value)]) -> Chunk {
    let delta = |(index, (name, args)): (u32, &(&str, Value))| ToolCallDelta {
        index: Some(index),
        id: None,
        name: Some((*name).to_owned()),
        arguments: args.to_string(),
        ..ToolCallDelta::default()
    };
    Chunk {
        tool_calls: (0..).zip(wanted).map(delta).collect(),
        finish_reason: Some(FinishReason::ToolCalls),
        ..Chunk::default()
    }
}

/// A rehearsal with these models in single parts.
fn with_voices(voices: &[(Role, &Arc<Played>)]) -> ResearchSettings {
    let mut settings = ResearchSettings::rehearsal();
    for (role, model) in voices {
        let model: Arc<dyn ChatModel> = Arc::<Played>::clone(model);
        settings.voices.insert(*role, Voice { model, price: None });
    }
    settings
}

fn agent(stores: &Stores, settings: ResearchSettings) -> Agent {
    research(stores, sample_sources(), settings, (&[], &[])).unwrap()
}

fn terms(agent: &Agent, thread: &str) -> Terms {
    let model = Arc::new(Rehearsal::Research(Role::Supervisor));
    Terms {
        limits: agent.limits(),
        ..Terms::new(model, thread)
    }
}

fn report(result: RunResult) -> ReportResult {
    match result {
        RunResult::Report(report) => *report,
        other => panic!("{other:?}"),
    }
}

async fn run(settings: ResearchSettings) -> (Vec<AgentEvent>, ReportResult) {
    let agent = agent(&Stores::in_memory(), settings);
    let terms = terms(&agent, "t");
    told(&agent, &terms).await
}

async fn told(agent: &Agent, terms: &Terms) -> (Vec<AgentEvent>, ReportResult) {
    let mut run = agent.start(QUESTION, terms).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let last = events.last().unwrap().clone();
    let AgentEventData::RunEnded { result, .. } = last.data else {
        panic!("{last:?}");
    };
    (events, report(result))
}

fn ways(events: &[AgentEvent]) -> Vec<String> {
    let way = |event: &AgentEvent| match &event.data {
        AgentEventData::Routed { from, to, .. } => Some(format!("{from} > {}", to.join(","))),
        _ => None,
    };
    events.iter().filter_map(way).collect()
}

fn done(events: &[AgentEvent]) -> Vec<crate::ResearcherDone> {
    let inner = events.iter().filter_map(|event| match &event.data {
        AgentEventData::Inside { event, .. } => Some(event),
        _ => None,
    });
    let done = inner.filter_map(|event| match &**event {
        AgentEventData::Researcher { done, .. } => done.clone(),
        _ => None,
    });
    done.collect()
}

#[tokio::test]
async fn the_rehearsal_goes_every_way_and_reports_what_it_read() {
    let (events, result) = run(ResearchSettings {
        prune_at: 1,
        ..ResearchSettings::rehearsal()
    })
    .await;
    assert_eq!(
        ways(&events),
        [
            "write_brief > draft",
            "draft > red_team",
            "red_team > supervisor",
            "supervisor > supervisor_tools",
            "supervisor_tools > conduct_research",
            "conduct_research > context_pruner",
            "context_pruner > supervisor",
            "supervisor > supervisor_tools",
            "supervisor_tools > supervisor",
            "supervisor > supervisor_tools",
            "supervisor_tools > research_complete",
            "research_complete > supervisor",
            "supervisor > supervisor_tools",
            "supervisor_tools > draft",
            "draft > red_team",
            "red_team > supervisor",
            "supervisor > supervisor_tools",
            "supervisor_tools > research_complete",
            "research_complete > final_report",
            "final_report > ",
        ]
    );
    assert_eq!(result.stop_reason, Stop::Success);
    let report = result.report.unwrap();
    assert_eq!(
        (
            report.figures.researchers,
            report.figures.failed_researchers
        ),
        (3, 0)
    );
    assert_eq!(report.figures.searches_without_reflection, 0);
    assert!(
        report
            .references
            .iter()
            .all(|reference| reference.url.starts_with("local:"))
    );
    assert!(!report.references.is_empty());
    assert!(report.refused.is_empty());
    assert!(result.answer.unwrap().contains("[1]"));
}

/// The fifth fault: nothing counted the rounds of a researcher. Eight searches in one message, and again and again.
#[tokio::test]
async fn a_researcher_that_only_searches_is_bounded_and_every_call_is_answered() {
    let greedy = played(|request, turn| {
        let search = |n: usize| {
            (
                "web_search",
                json!({"query": format!("retrieval {turn} {n}")}),
            )
        };
        match request.tools.is_empty() {
            true => Ok(text("I found something.")),
            false => Ok(calls(&(0..8).map(search).collect::<Vec<_>>())),
        }
    });
    let settings = ResearchSettings {
        breadth: 1,
        ..with_voices(&[(Role::Researcher, &greedy)])
    };
    let (events, result) = run(settings).await;
    let made = |name: &str| {
        result
            .trace
            .iter()
            .filter(|row| row.tool == name && row.ok)
            .count()
    };
    assert_eq!(made("web_search"), 3);
    assert_eq!(done(&events)[0].searches, 3);
    // It was asked twice: once with tools, and once without any.
    let asked = greedy.asked();
    assert_eq!(
        asked
            .iter()
            .map(|request| request.tools.len())
            .collect::<Vec<_>>(),
        [3, 0]
    );
    let answers = asked[1]
        .messages
        .iter()
        .filter(|message| message.tool_call_id().is_some());
    let refused = answers.clone().filter(|m| {
        m.text()
            .contains("This search was not made: all 3 are used up")
    });
    assert_eq!((answers.count(), refused.count()), (8, 5));
    assert_eq!(
        result.report.unwrap().figures.searches_without_reflection,
        7
    );
}

/// A model without tools that asks for some all the same gets no further turn.
#[tokio::test]
async fn a_researcher_that_never_stops_calling_is_put_in_short_all_the_same() {
    let stubborn = played(|_, turn| {
        let name = if turn % 2 == 1 { "web_search" } else { "think" };
        let args = match name {
            "think" => json!({"reflection": format!("thought {turn}")}),
            _ => json!({"query": format!("retrieval {turn}")}),
        };
        Ok(calls(&[(name, args)]))
    });
    let settings = ResearchSettings {
        breadth: 1,
        ..with_voices(&[(Role::Researcher, &stubborn)])
    };
    let (events, result) = run(settings).await;
    assert_eq!(result.stop_reason, Stop::Success);
    assert_eq!(done(&events)[0].searches, 3);
    let last = stubborn.asked().pop().unwrap();
    assert!(
        last.tools.is_empty()
            && last.messages[0]
                .text()
                .contains("You have no tools any more")
    );
}

#[tokio::test]
async fn a_researcher_that_does_not_reflect_is_reminded_once() {
    let hasty = played(|request, turn| {
        Ok(match request.tools.is_empty() || turn > 3 {
            true => text("Done."),
            false => calls(&[("web_search", json!({"query": format!("retrieval {turn}")}))]),
        })
    });
    let settings = ResearchSettings {
        breadth: 1,
        ..with_voices(&[(Role::Researcher, &hasty)])
    };
    let (events, _) = run(settings).await;
    let last = hasty.asked().pop().unwrap();
    let reminders = last
        .messages
        .iter()
        .filter(|m| m.text().contains(tally::REMINDER))
        .count();
    assert_eq!(
        (reminders, done(&events)[0].searches_without_reflection),
        (1, 2)
    );
}

/// The sixth and seventh fault: a tool that is not there, and one child that fails, ended everything.
#[tokio::test]
async fn a_researcher_that_fails_is_an_answer_to_its_supervisor_and_not_the_end() {
    let one_fails = played(|request, _| {
        let topic = request.messages[1].text().into_owned();
        if topic.starts_with("Figures") {
            return Err(ModelError::Server {
                retry_after: None,
                message: "out of order".to_owned(),
            });
        }
        if topic.starts_with("Limits") && request.messages.len() == 2 {
            return Ok(calls(&[("web_serach", json!({"query": "retrieval"}))]));
        }
        Ok(rehearse(Role::Researcher, request))
    });
    let supervisor = plain(Role::Supervisor);
    let settings = with_voices(&[
        (Role::Researcher, &one_fails),
        (Role::Supervisor, &supervisor),
    ]);
    let (_, result) = run(settings).await;
    assert_eq!(result.stop_reason, Stop::Success);
    let report = result.report.unwrap();
    assert_eq!(
        (
            report.figures.researchers,
            report.figures.failed_researchers
        ),
        (3, 1)
    );
    assert!(
        report
            .missing
            .iter()
            .any(|line| line.starts_with("Not found out (llm_error:server): Figures"))
    );
    let seen = supervisor.asked().pop().unwrap();
    let heard = |words: &str| {
        seen.messages
            .iter()
            .any(|message| message.text().contains(words))
    };
    assert!(heard("It stopped early: llm_error:server"));
    let unknown = result
        .trace
        .iter()
        .find(|row| row.tool == "web_serach")
        .unwrap();
    assert_eq!(
        unknown.stop_reason.as_deref(),
        Some("tool_denied:web_serach")
    );
}

/// The tenth fault: how many researchers work at a time was only asked for.
#[tokio::test]
async fn researchers_above_the_cap_are_not_sent_and_the_supervisor_hears_it() {
    let eager = played(|request, turn| {
        let topic = |n: usize| {
            (
                "conduct_research",
                json!({"topic": format!("retrieval, part {n}")}),
            )
        };
        Ok(match turn {
            1 => calls(&(0..7).map(topic).collect::<Vec<_>>()),
            _ => rehearse(Role::Supervisor, request),
        })
    });
    let settings = with_voices(&[(Role::Supervisor, &eager)]);
    let (_, result) = run(settings).await;
    assert_eq!(result.report.unwrap().figures.researchers, 3);
    let second = &eager.asked()[1];
    let refused = second.messages.iter().filter(|m| {
        m.text()
            .contains("No researcher was sent: at most 3 work at a time")
    });
    assert_eq!(refused.count(), 4);
    let answers = second
        .messages
        .iter()
        .filter(|message| message.tool_call_id().is_some());
    assert_eq!(answers.count(), 7);
}

/// The eighth fault: of several wishes for the draft the last one won.
#[tokio::test]
async fn of_several_wishes_for_the_draft_none_is_lost_and_there_is_one_draft() {
    let wishes = played(|request, turn| {
        let wish = |text: &str| ("refine_draft", json!({"instructions": text}));
        Ok(match turn {
            2 => calls(&[wish("More figures."), wish("Less doubt.")]),
            3.. => calls(&[("research_complete", json!({}))]),
            _ => rehearse(Role::Supervisor, request),
        })
    });
    let writer = plain(Role::Writer);
    let settings = with_voices(&[(Role::Supervisor, &wishes), (Role::Writer, &writer)]);
    let (events, _) = run(settings).await;
    let drafts = ways(&events)
        .iter()
        .filter(|way| *way == "draft > red_team")
        .count();
    assert_eq!(drafts, 2);
    let told = writer.asked().iter().any(|request| {
        request.messages[1]
            .text()
            .contains("Wishes: More figures.\nLess doubt.")
    });
    assert!(told);
}

/// The ninth fault: instructions in the middle of a conversation, which some providers refuse. And what one reads, no
/// other part sees: the supervisor gets short reports alone, each researcher its own topic alone.
#[tokio::test]
async fn what_researchers_read_stays_with_them_and_instructions_come_first_only() {
    let voices = Role::ALL.map(|role| (role, plain(role)));
    let settings = with_voices(&voices.each_ref().map(|(role, model)| (*role, model)));
    // Only the page itself has these words.
    let canary = "canary-7f3a";
    let tools = sample::sources_of(&[
        (
            "rag/a.md",
            "# Retrieval\n\nA system with retrieval makes things up less often.\n\nNobody puts canary-7f3a in short.",
        ),
        (
            "rag/b.md",
            "# Limits\n\nOpen problems of retrieval remain, says nobody in particular today.",
        ),
    ]);
    let agent = research(&Stores::in_memory(), tools, settings, (&[], &[])).unwrap();
    let (_, result) = told(&agent, &terms(&agent, "t")).await;
    assert_eq!(result.stop_reason, Stop::Success);
    let mut read = 0;
    for (role, model) in &voices {
        for request in model.asked() {
            let late = request
                .messages
                .iter()
                .skip(1)
                .filter(|m| m.body == Body::System)
                .count();
            assert_eq!(late, 0, "{role:?}");
            let has = request
                .messages
                .iter()
                .any(|message| message.text().contains(canary));
            match role {
                Role::Researcher | Role::Compressor => read += usize::from(has),
                _ => assert!(!has, "{role:?}"),
            }
            if *role == Role::Researcher {
                let topics = ["Figures and measurements", "Limits and open problems"];
                let named = topics
                    .iter()
                    .filter(|topic| request.messages.iter().any(|m| m.text().contains(*topic)));
                assert!(named.count() < 2);
            }
        }
    }
    assert!(read > 0);
}

/// What nobody fetched cannot be cited, whatever the writer says.
#[tokio::test]
async fn a_writer_that_makes_sources_up_gets_none_of_them_into_the_report() {
    let liar = played(|request, _| {
        let system = request.messages[0].text().into_owned();
        Ok(match system.starts_with("You write the report") {
            true => text(
                "# Truth\n\nIt is so [src-00000000]. It is so (https://example.com/made-up). It is so [1].\n\n\
                 Retrieval does not help when the documents do not hold the answer, says nobody.\n\n## References\n\n1. https://example.com/made-up",
            ),
            false => rehearse(Role::Writer, request),
        })
    });
    let (events, result) = run(with_voices(&[(Role::Writer, &liar)])).await;
    let report = result.report.unwrap();
    assert!(report.references.is_empty());
    assert!(!report.refused.is_empty());
    let answer = result.answer.unwrap();
    assert!(
        !answer.contains("src-00000000") && !answer.contains("example.com"),
        "{answer}"
    );
    // It was given one more chance.
    let mended = events.iter().filter(
        |event| matches!(&event.data, AgentEventData::Phase { phase, .. } if phase == "mending"),
    );
    assert_eq!(mended.count(), 1);
}

/// Whoever is asked to mend a report and hands in a piece of one has not mended it.
#[tokio::test]
async fn a_second_try_that_shows_less_does_not_take_the_place_of_the_first() {
    let hasty = played(|request, _| {
        let whole = rehearse(Role::Writer, request);
        let is_report = request.messages[0]
            .text()
            .starts_with("You write the report");
        let again = request
            .messages
            .iter()
            .any(|message| message.text().contains("src-00000000"));
        Ok(match (is_report, again) {
            (false, _) => whole,
            (true, false) => text(&format!("{}\n\nIt is so [src-00000000].", whole.text)),
            (true, true) => {
                let at = whole.text.find("src-").unwrap();
                let id = &whole.text[at..at + 12];
                text(&format!("Done: it was removed [{id}]."))
            }
        })
    });
    let (_, plain) = run(ResearchSettings::rehearsal()).await;
    let (_, result) = run(with_voices(&[(Role::Writer, &hasty)])).await;
    let (report, plain) = (result.report.unwrap(), plain.report.unwrap());
    assert!(!report.body.contains("Done: "), "{}", report.body);
    assert_eq!(report.references.len(), plain.references.len());
}

#[tokio::test]
async fn a_report_that_is_cut_off_at_its_longest_length_says_so() {
    let wordy = played(|request, _| {
        let played = rehearse(Role::Writer, request);
        let is_report = request.messages[0]
            .text()
            .starts_with("You write the report");
        let finish_reason = match is_report {
            true => Some(FinishReason::Length),
            false => played.finish_reason.clone(),
        };
        Ok(Chunk {
            finish_reason,
            ..played
        })
    });
    let (_, result) = run(with_voices(&[(Role::Writer, &wordy)])).await;
    let partial = result.report.unwrap().partial;
    let expected = "its end is missing: the writer's answer was too long";
    assert_eq!(partial.as_deref(), Some(expected));
    assert!(result.answer.unwrap().contains(expected));
}

#[tokio::test]
async fn a_run_without_enough_tokens_still_reports_and_says_so() {
    let costly = played(|request, _| Ok(rehearse(Role::Supervisor, request)));
    let settings = with_voices(&[(Role::Supervisor, &costly)]);
    let agent = agent(&Stores::in_memory(), settings);
    let mut terms = terms(&agent, "t");
    terms.limits.steps = 8;
    let (_, result) = told(&agent, &terms).await;
    assert_eq!(result.stop_reason, Stop::MaxSteps);
    let report = result.report.unwrap();
    assert_eq!(
        report.partial.as_deref(),
        Some("the research was cut short: max_steps")
    );
    assert!(!report.references.is_empty());
}

#[tokio::test]
async fn a_search_that_never_answers_is_said_and_nothing_is_made_up() {
    let broken = vec![paraph_gateway::DynTool::new(
        "web_search",
        "Searches",
        json!({"type": "object"}),
        async |_: paraph_gateway::Json| Err::<String, _>(ToolError::new("429 Too Many Requests")),
    )];
    let agent = research(
        &Stores::in_memory(),
        broken,
        ResearchSettings::rehearsal(),
        (&[], &[]),
    )
    .unwrap();
    let (_, result) = told(&agent, &terms(&agent, "t")).await;
    assert_eq!(result.stop_reason, Stop::NoProgress);
    let report = result.report.unwrap();
    assert!(
        report.references.is_empty() && report.missing.len() == 3,
        "{report:?}"
    );
    // By what the searches failed is said, and that the report is none.
    let why = "`web_search` failed: 429 Too Many Requests";
    assert!(
        report.missing.iter().all(|missing| missing.contains(why)),
        "{:?}",
        report.missing
    );
    let partial = report.partial.unwrap();
    assert!(
        partial.contains("no source could be read") && partial.contains(why),
        "{partial}"
    );
}

/// A writer that answers like this where the report is wanted, and else as rehearsed.
fn writer(report: impl Fn() -> Chunk + Send + Sync + 'static) -> Arc<Played> {
    played(move |request, _| {
        let system = request.messages[0].text().into_owned();
        Ok(match system.starts_with("You write the report") {
            true => report(),
            false => rehearse(Role::Writer, request),
        })
    })
}

#[tokio::test]
async fn the_writer_s_answer_may_be_longer_than_others_where_a_limit_stands() {
    let (writes, supervises) = (plain(Role::Writer), plain(Role::Supervisor));
    let settings = || with_voices(&[(Role::Writer, &writes), (Role::Supervisor, &supervises)]);
    let limited = async |tokens| {
        let agent = agent(&Stores::in_memory(), settings());
        let mut terms = terms(&agent, "t");
        terms.limits.tokens = tokens;
        told(&agent, &terms).await.1
    };
    let result = limited(2_000_000).await;
    assert_eq!(result.stop_reason, Stop::Success);
    let longest = |model: &Played| model.asked().last().unwrap().max_tokens;
    assert_eq!(
        (longest(&writes), longest(&supervises)),
        (Some(16_384), Some(4_096))
    );
    // Less is asked for where less is left, and there is a report all the same.
    let result = limited(18_000).await;
    assert!(result.report.is_some(), "{:?}", result.stop_reason);
    let asked = longest(&writes).unwrap();
    assert!((64..16_384).contains(&asked), "{asked}");
}

#[tokio::test]
async fn a_small_budget_is_spent_on_research_and_not_kept_back_whole() {
    // As much as was kept back once, and a little more.
    for tokens in [12_500, 15_000, 26_000] {
        let settings = with_voices(&[(Role::Writer, &plain(Role::Writer))]);
        let agent = agent(&Stores::in_memory(), settings);
        let mut terms = terms(&agent, "t");
        terms.limits.tokens = tokens;
        let (_, result) = told(&agent, &terms).await;
        let report = result
            .report
            .unwrap_or_else(|| panic!("{tokens}: {:?}", result.stop_reason));
        assert!(!report.references.is_empty(), "{tokens}: {report:?}");
    }
}

#[tokio::test]
async fn a_report_that_the_provider_holds_back_or_that_is_a_thought_is_none() {
    let held_back = || Chunk {
        finish_reason: Some(FinishReason::ContentFilter),
        ..text("I cannot")
    };
    let table = [
        (
            writer(held_back),
            "no model wrote it: llm_empty (the model's provider held the report back); these are",
        ),
        (
            writer(|| text("<think>a secret plan")),
            "no model wrote it: llm_empty; these are",
        ),
    ];
    for (writer, expected) in table {
        let (_, result) = run(with_voices(&[(Role::Writer, &writer)])).await;
        let report = result.report.unwrap();
        let partial = report.partial.unwrap();
        assert!(partial.starts_with(expected), "{partial}");
        assert!(
            !report.body.contains("cannot") && !report.body.contains("secret"),
            "{}",
            report.body
        );
        assert_eq!(result.stop_reason, Stop::LlmEmpty);
    }
}

#[tokio::test]
async fn a_report_that_cites_nothing_is_written_once_more_and_else_called_partial() {
    let silent = writer(|| text("I'm sorry, but I can't help with that."));
    let (events, result) = run(with_voices(&[(Role::Writer, &silent)])).await;
    let mended = events.iter().filter(
        |event| matches!(&event.data, AgentEventData::Phase { phase, .. } if phase == "mending"),
    );
    assert_eq!(mended.count(), 1);
    let told = silent
        .asked()
        .last()
        .unwrap()
        .messages
        .last()
        .unwrap()
        .text()
        .into_owned();
    assert!(
        told.contains("The report cites no source, though sources were read"),
        "{told}"
    );
    let partial = result.report.unwrap().partial;
    assert_eq!(
        partial.as_deref(),
        Some("it cites nothing of what was read")
    );
}

#[tokio::test]
async fn people_are_asked_before_the_second_round_costs_too_much() {
    // Researchers cost: 110 tokens an answer, at a dollar a token.
    let costly: Arc<dyn ChatModel> = plain(Role::Researcher);
    let mut settings = ResearchSettings {
        checkpoint_cost: Some(1_000_000),
        ..ResearchSettings::rehearsal()
    };
    let price = paraph_gateway::Price {
        input: 1_000_000_000_000,
        output: 1_000_000_000_000,
        source: "a test".to_owned(),
    };
    let voice = Voice {
        model: costly,
        price: Some(price),
    };
    settings.voices.insert(Role::Researcher, voice);
    let agent = agent(&Stores::in_memory(), settings);
    let terms = terms(&agent, "t");
    let first = report(agent.start(QUESTION, &terms).await.unwrap().result().await);
    assert_eq!(first.stop_reason, Stop::ApprovalPending);
    let asked = &first.questions[0];
    assert_eq!(
        (asked.name.as_str(), &asked.question["round"]),
        ("direction", &json!(1))
    );
}

#[tokio::test]
async fn a_person_can_go_on_redirect_and_stop() {
    let settings = ResearchSettings {
        checkpoint_every: Some(1),
        ..ResearchSettings::rehearsal()
    };
    let agent = agent(&Stores::in_memory(), settings);
    let terms = terms(&agent, "t");
    let run = agent.start(QUESTION, &terms).await.unwrap();
    let id = run.run_id();
    let first = report(run.result().await);
    assert_eq!(first.stop_reason, Stop::ApprovalPending);
    let asked = &first.questions[0];
    assert_eq!(
        (
            asked.name.as_str(),
            &asked.question["round"],
            &asked.question["rounds"]
        ),
        ("direction", &json!(1), &json!(6))
    );
    let answer = |asked: &crate::OpenQuestion, text: &str| vec![(asked.id.clone(), json!(text))];
    let again = Terms {
        run: Some(id),
        ..terms.clone()
    };
    let run = agent
        .answer(id, answer(asked, "Look at costs"), &again)
        .await
        .unwrap();
    let second = report(run.result().await);
    let asked = &second.questions[0];
    assert_eq!(asked.question["round"], json!(2));
    let told = second
        .messages
        .iter()
        .any(|m| m.text() == "New instruction from the person who asked: Look at costs");
    assert!(told);
    let run = agent
        .answer(id, answer(asked, "stop"), &again)
        .await
        .unwrap();
    let last = report(run.result().await);
    assert_eq!(last.stop_reason, Stop::Success);
    let partial = last.report.unwrap().partial;
    assert_eq!(
        partial.as_deref(),
        Some("a person stopped the research after 2 of 6 rounds")
    );
}

#[tokio::test]
async fn a_question_of_no_words_is_asked_back() {
    let settings = ResearchSettings {
        clarify: true,
        ..ResearchSettings::rehearsal()
    };
    let agent = agent(&Stores::in_memory(), settings);
    let terms = terms(&agent, "t");
    let run = agent.start("Retrieval?", &terms).await.unwrap();
    let id = run.run_id();
    let first = report(run.result().await);
    let asked = &first.questions[0];
    assert_eq!(
        (asked.name.as_str(), first.stop_reason),
        ("clarify", Stop::ApprovalPending)
    );
    let again = Terms {
        run: Some(id),
        ..terms
    };
    let run = agent
        .answer(id, [(asked.id.clone(), json!("How it fails"))], &again)
        .await
        .unwrap();
    assert_eq!(report(run.result().await).stop_reason, Stop::Success);
}

/// What the supervisor is sent stays within a bound, however long research goes on and however much was read.
#[tokio::test]
async fn what_is_sent_stays_flat_once_notes_become_facts() {
    let endless = played(|_, turn| {
        let topic = json!({"topic": format!("retrieval, part {turn}")});
        Ok(calls(&[("conduct_research", topic)]))
    });
    let page: &'static str = Box::leak(
        (0..400)
            .map(|n| format!("Retrieval fact number {n} of part {n} says something of its own about retrieval.\n\n"))
            .collect::<String>()
            .into_boxed_str(),
    );
    let documents: &'static [(&'static str, &'static str)] =
        Box::leak(Box::new([("long.md", page)]));
    let settings = ResearchSettings {
        depth: 24,
        ..with_voices(&[(Role::Supervisor, &endless)])
    };
    let window = settings.window;
    let agent = research(
        &Stores::in_memory(),
        sample::sources_of(documents),
        settings,
        (&[], &[]),
    )
    .unwrap();
    let (events, result) = told(&agent, &terms(&agent, "t")).await;
    assert_eq!(result.report.unwrap().figures.researchers, 24);
    assert!(
        ways(&events)
            .iter()
            .any(|way| way == "conduct_research > context_pruner")
    );
    let sent: Vec<_> = endless
        .asked()
        .iter()
        .map(|request| paraph_models::Estimate::of(request).total())
        .collect();
    let (early, late) = (sent[6], sent[23]);
    assert!(late <= window && late < 2 * early, "{sent:?}");
}

/// A run that is cut off at any event and gone on with makes no call twice, and ends as the uncut one.
#[tokio::test]
async fn a_run_that_is_cut_off_anywhere_repeats_no_search() {
    let uncut = run(ResearchSettings::rehearsal()).await;
    let searches =
        |trace: &[crate::TraceRow]| trace.iter().filter(|row| row.tool == "web_search").count();
    for cut in (1..uncut.0.len()).step_by(7) {
        let made = Arc::new(Mutex::new(Vec::new()));
        let stores = Stores::in_memory();
        let agent = || {
            let tools = counted(&made);
            research(&stores, tools, ResearchSettings::rehearsal(), (&[], &[])).unwrap()
        };
        let first = agent();
        let terms = terms(&first, "t");
        let mut run = first.start(QUESTION, &terms).await.unwrap();
        let id = run.run_id();
        for _ in 0..cut {
            run.next().await;
        }
        let control = run.control();
        drop(run);
        control.ended().await;
        let terms = Terms {
            run: Some(id),
            ..terms
        };
        let again = agent().resume(id, &terms).await;
        let result = match again {
            Ok(run) => report(run.result().await),
            // Nothing of it was saved yet.
            Err(Error::NothingLeft(_)) => report(
                agent()
                    .start(QUESTION, &terms)
                    .await
                    .unwrap()
                    .result()
                    .await,
            ),
            Err(error) => panic!("cut at {cut}: {error}"),
        };
        assert_eq!(result.stop_reason, Stop::Success, "cut at {cut}");
        assert_eq!(
            searches(&result.trace),
            searches(&uncut.1.trace),
            "cut at {cut}"
        );
        let really = made.lock().unwrap().len();
        assert_eq!(really, searches(&uncut.1.trace), "cut at {cut}");
    }
}

/// The sample tools, which write down every search that they really make.
fn counted(made: &Arc<Mutex<Vec<String>>>) -> Vec<DynTool> {
    let made = made.clone();
    let mut tools = sample_sources();
    let search = tools.remove(0);
    let (name, about, schema) = (
        search.name.clone(),
        search.about.clone(),
        search.schema.clone(),
    );
    tools.push(DynTool::new(
        name,
        about,
        schema,
        move |args: paraph_gateway::Json| {
            made.lock().unwrap().push(args.to_string());
            let query: Value = serde_json::from_str(&args.to_string()).unwrap();
            let found = sample::search(
                sample_documents(),
                query["query"].as_str().unwrap_or_default(),
            );
            std::future::ready(found)
        },
    ));
    tools
}
