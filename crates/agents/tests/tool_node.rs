//! The tool node in graphs of one's own: order, questions in tools, commands, and what a model reads of
//! what it got wrong. Numbers and letters in comments are those of the project's log of other's bugs.

#![expect(
    clippy::unwrap_used,
    reason = "a fixture that cannot be made ends the test"
)]

use futures::StreamExt as _;
use paraph_agents::{
    AgentEventData, Conversation, Error, HasMessages, MessagesState, RunResult, TOOLS, Terms,
    ToolRuntime, add_messages, react, tool_node, tools_condition, tools_or, update_command,
};
use paraph_gateway::{
    DynTool, Gateway, Json, Limits, MemoryStore as Records, Policy, Stop, ToolCommand, ToolContext,
    ToolError, ToolOutput, tool,
};
use paraph_graph::{
    Ctx, END, EventData, Graph, MemoryOf, MemoryStore, Mode, Outcome, RunId, State, Store, Update,
};
use paraph_models::{
    Arguments, Body, ChatModel, ChatRequest, Chunk, ChunkStream, InvalidToolCall, Message, RawJson,
    ToolCall, ToolCallDelta,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A state of somebody's own, with more than a conversation.
#[derive(State, Clone, Debug, Default, PartialEq)]
struct Chat {
    #[reduce(add_messages, list)]
    messages: Conversation,
    city: String,
    #[reduce(append)]
    notes: Vec<String>,
}

impl HasMessages for Chat {
    fn conversation(&self) -> &Conversation {
        &self.messages
    }

    fn say(update: Update<Chat>, messages: Vec<Message>) -> Update<Chat> {
        update.messages(messages)
    }
}

/// What the model wants called: an id, a tool, and arguments as text.
type Wanted<'a> = (&'a str, &'a str, &'a str);

fn asking(wanted: &[Wanted<'_>]) -> Message {
    let (mut fine, mut broken) = (Vec::new(), Vec::new());
    for (id, name, arguments) in wanted {
        match Arguments::parse(arguments) {
            Ok(arguments) => fine.push(ToolCall::new(*id, *name, arguments)),
            Err(error) => broken.push(InvalidToolCall {
                id: (*id).to_owned(),
                name: Some((*name).to_owned()),
                args: (*arguments).to_owned(),
                error: error.to_string(),
            }),
        }
    }
    let mut message = Message::ai_calling("", fine);
    if let Body::Ai(ai) = &mut message.body {
        ai.invalid_tool_calls = broken;
    }
    message
}

/// Ends behind the tools: what a graph does after them is not this file's.
fn graph<S: HasMessages>(gateway: Gateway) -> Graph<S> {
    Graph::<S>::new("tools")
        .memory(Arc::new(MemoryOf::default()))
        .each(TOOLS, tool_node(gateway).limits(Limits::unlimited()))
        .start_branch(tools_condition, [TOOLS.name(), END])
        .end(TOOLS)
        .build()
        .unwrap()
}

/// Ids, texts and whether they are errors, of the results in a conversation.
fn results(conversation: &Conversation) -> Vec<(String, String, bool)> {
    let tools = conversation
        .iter()
        .filter_map(|message| match &message.body {
            Body::Tool(tool) => Some((
                tool.tool_call_id.clone(),
                message.text().into_owned(),
                tool.status == paraph_models::ToolStatus::Error,
            )),
            _ => None,
        });
    tools.collect()
}

/// Waits, then says how long.
#[tool(timeout = "10s")]
async fn wait(
    /// How long.
    #[schemars(range(max = 60))]
    seconds: u64,
) -> Result<u64, ToolError> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    match seconds {
        7 => Err(ToolError::new("no luck")),
        seconds => Ok(seconds),
    }
}

fn waiting() -> Gateway {
    Gateway::builder(Records::shared())
        .tool(wait {})
        .policy(Policy::new().allow(["wait"]))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn results_come_in_the_order_of_the_calls_and_each_mistake_is_read_once() {
    let calls = asking(&[
        ("a", "wait", r#"{"seconds":9}"#),
        ("b", "wiat", r#"{"seconds":1}"#),
        ("c", "wait", r#"{"second":1}"#),
        ("d", "wait", r#"{"seconds":"1"}"#),
        ("e", "wait", r#"{"seconds":7}"#),
        ("f", "wait", r#"{"seconds":11}"#),
        ("g", "wait", r#"{"seconds":1}"#),
        ("h", "wait", r#"{"seconds":"#),
    ]);
    let started = tokio::time::Instant::now();
    let input = MessagesState::update().messages([Message::human("Go"), calls]);
    let state = graph::<MessagesState>(waiting())
        .invoke(input)
        .await
        .unwrap();
    // All at once: as long as the longest, which was cut off.
    assert_eq!(started.elapsed().as_secs(), 10);
    let failed = |id: &str, error: &str, message: &str| {
        let text = format!(r#"{{"error":"{error}","message":"{message}"}}"#);
        (id.to_owned(), text, true)
    };
    let fine = |id: &str, text: &str| (id.to_owned(), text.to_owned(), false);
    let expected = [
        fine("a", "9"),
        failed(
            "b",
            "tool_denied:wiat",
            "You may not call `wiat`: no tool has that name; there is only wait.",
        ),
        failed(
            "c",
            "tool_bad_args:wait",
            "The arguments do not fit `wait`: there is no argument `second`; there are `seconds`; the closest is \
             `seconds`; the argument `seconds` is missing (integer): How long.",
        ),
        failed(
            "d",
            "tool_bad_args:wait",
            r#"The arguments do not fit `wait`: at /seconds: \"1\" is not of type \"integer\""#,
        ),
        // Once, and without the names of the errors around it.
        failed("e", "tool_error:wait", "`wait` failed: no luck"),
        failed(
            "f",
            "tool_timeout:wait",
            "`wait` did not finish in the time it may take.",
        ),
        fine("g", "1"),
        failed(
            "h",
            "tool_bad_args:wait",
            "The arguments do not fit `wait`: expected a value at byte 11",
        ),
    ];
    assert_eq!(results(&state.messages), expected);
    let names = state.messages.iter().filter(|m| m.tool_call_id().is_some());
    assert!(names.clone().all(|message| message.name.is_some()));
}

#[tokio::test]
async fn the_last_message_of_the_model_is_found_behind_whatever_came_after_it() {
    let calls = asking(&[("a", "wait", r#"{"seconds":0}"#)]);
    let said = [
        asking(&[("old", "wait", "{}")]),
        calls,
        Message::human("Are you still there?"),
    ];
    let graph = Graph::<MessagesState>::new("tools")
        .each(TOOLS, tool_node(waiting()))
        .start_branch(|_: &MessagesState| TOOLS.send(0), TOOLS)
        .end(TOOLS)
        .build()
        .unwrap();
    let state = graph
        .invoke(MessagesState::update().messages(said))
        .await
        .unwrap();
    assert_eq!(
        results(&state.messages),
        [("a".to_owned(), "0".to_owned(), false)]
    );
    let error = graph
        .invoke(MessagesState::update().messages([Message::ai("no calls")]))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `tools` failed: there is no tool call number 0: the model's last message has 0"
    );
}

/// B05, B07, qwen-code#5099 and pydantic-ai PR#5761: ids that a provider uses twice.
#[tokio::test]
async fn b05_calls_are_told_apart_by_their_place_and_not_by_their_id() {
    let calls = asking(&[
        ("x", "wait", r#"{"seconds":0}"#),
        ("x", "wiat", "{}"),
        ("", "nothing", "{}"),
    ]);
    let input = MessagesState::update().messages([calls]);
    let state = graph::<MessagesState>(waiting())
        .invoke(input)
        .await
        .unwrap();
    let results = results(&state.messages).into_iter();
    let results: Vec<_> = results.map(|(id, _, failed)| (id, failed)).collect();
    assert_eq!(
        results,
        [
            ("x".to_owned(), false),
            ("x".to_owned(), true),
            (String::new(), true)
        ]
    );
}

/// How often each tool of a test ran.
#[derive(Default)]
struct Runs {
    asked: AtomicUsize,
    counted: AtomicUsize,
    priced: AtomicUsize,
}

/// Asks a person.
#[tool]
async fn confirm(
    what: String,
    #[inject] runs: Arc<Runs>,
    #[inject] runtime: ToolRuntime<'_>,
) -> Result<String, ToolError> {
    runs.asked.fetch_add(1, Ordering::SeqCst);
    let price: u32 = runtime
        .step("price", async {
            runs.priced.fetch_add(1, Ordering::SeqCst);
            Ok(10)
        })
        .await?;
    let id = runtime.tool_call_id().to_owned();
    let answer: String = runtime.ask("sure", json!({"id": id, "what": what, "price": price}))?;
    Ok(format!("{what}: {answer}"))
}

/// Counts.
#[tool]
async fn count(#[inject] runs: Arc<Runs>) -> usize {
    runs.counted.fetch_add(1, Ordering::SeqCst) + 1
}

/// The graph as one process builds it, on records and counters that outlive it.
fn confirming(records: &Arc<dyn paraph_gateway::Store>, runs: &Arc<Runs>) -> Graph<Chat> {
    let gateway = Gateway::builder(records.clone())
        .tool(confirm {})
        .tool(count {})
        .inject(runs.clone())
        .policy(Policy::new().allow(["*"]))
        .build()
        .unwrap();
    graph(gateway)
}

fn counts(runs: &Runs) -> [usize; 3] {
    [&runs.asked, &runs.counted, &runs.priced].map(|count| count.load(Ordering::SeqCst))
}

/// D01, langgraph#6626, and PR3126, #6208, #6533, #6624: questions of parallel calls.
#[tokio::test]
async fn d01_each_call_waits_for_its_own_answer_and_what_has_ended_does_not_run_again() {
    let runs = Arc::new(Runs::default());
    let (records, store): (_, Store) = (Records::shared(), MemoryStore::shared());
    let run = RunId::fresh();
    let calls = asking(&[
        ("a", "confirm", r#"{"what":"tea"}"#),
        ("b", "count", "{}"),
        ("c", "confirm", r#"{"what":"cake"}"#),
    ]);
    let first = confirming(&records, &runs);
    let thread = first.thread(&store, "t");
    let input = Chat::update().messages([calls]);
    let paused = thread.run(input).run_id(run).await.unwrap();
    // Both questions at once, each with an id of its own.
    let questions = paused.interrupts().to_vec();
    let asked: Vec<_> = questions.iter().map(|it| it.question.clone()).collect();
    let question = |id: &str, what: &str| json!({"id": id, "what": what, "price": 10});
    assert_eq!(asked, [question("a", "tea"), question("c", "cake")]);
    assert_ne!(questions[0].id, questions[1].id);
    assert_eq!(counts(&runs), [2, 1, 2]);

    // Another process answers the second one first: only that call runs again.
    let second = confirming(&records, &runs);
    let thread = second.thread(&store, "t");
    let paused = thread
        .answer(&questions[1].id, "no")
        .run_id(run)
        .await
        .unwrap();
    assert_eq!(paused.interrupts().len(), 1);
    assert_eq!(counts(&runs), [3, 1, 2]);
    let done = thread
        .answer(&questions[0].id, "yes")
        .run_id(run)
        .await
        .unwrap();
    let Outcome::Done(state) = done else {
        panic!("it is over")
    };
    assert_eq!(counts(&runs), [4, 1, 2]);
    let fine = |id: &str, text: &str| (id.to_owned(), text.to_owned(), false);
    assert_eq!(
        results(&state.messages),
        [fine("a", "tea: yes"), fine("b", "1"), fine("c", "cake: no")]
    );
}

#[tokio::test]
async fn answers_reach_their_own_call_in_whatever_order_they_come() {
    for round in 0..40_usize {
        let runs = Arc::new(Runs::default());
        let graph = confirming(&Records::shared(), &runs);
        let store: Store = MemoryStore::shared();
        let thread = graph.thread(&store, "t");
        let names = ["a", "b", "c", "d"];
        let arguments = names.map(|name| json!({ "what": name }).to_string());
        let wanted: Vec<Wanted<'_>> = names
            .iter()
            .zip(&arguments)
            .map(|(name, arguments)| (*name, "confirm", arguments.as_str()))
            .collect();
        let input = Chat::update().messages([asking(&wanted)]);
        let paused = thread.run(input).await.unwrap();
        let mut answers: Vec<_> = paused
            .interrupts()
            .iter()
            .map(|it| (it.id.clone(), it.question["what"].clone()))
            .collect();
        answers.rotate_left(round % 4);
        if round % 2 == 1 {
            answers.swap(0, 2);
        }
        let done = thread.answers(answers).await.unwrap().done().unwrap();
        let texts: Vec<_> = results(&done.messages).into_iter().map(|it| it.1).collect();
        assert_eq!(texts, ["a: a", "b: b", "c: c", "d: d"], "round {round}");
    }
}

/// Whose city it is.
#[tool]
async fn whereabouts(
    #[inject] chat: &Chat,
    #[inject] conversation: &Conversation,
    #[inject] ctx: &Ctx,
    #[inject] runtime: ToolRuntime<'_>,
) -> Result<String, ToolError> {
    let user = ["user".to_owned()];
    runtime
        .memory()?
        .put(&user, "city", json!(chat.city), None)
        .await?;
    let tenant: &String = runtime.context()?;
    let (said, node) = (conversation.len(), ctx.node());
    Ok(format!("{}, {said} messages, {tenant}, {node}", chat.city))
}

fn with_one(tool: impl paraph_gateway::Tool) -> Gateway {
    Gateway::builder(Records::shared())
        .tool(tool)
        .policy(Policy::new().allow(["*"]))
        .build()
        .unwrap()
}

#[tokio::test]
async fn tools_see_state_memory_and_context_and_the_model_cannot_forge_them() {
    let graph = graph::<Chat>(with_one(whereabouts {}));
    let store: Store = MemoryStore::shared();
    let thread = graph.thread(&store, "t");
    let forged = r#"{"chat":{"city":"Rome"}}"#;
    let calls = asking(&[("a", "whereabouts", "{}"), ("b", "whereabouts", forged)]);
    let input = Chat::update().city("Oslo").messages([calls]);
    let run = thread.run(input).context("acme".to_owned());
    let state = run.await.unwrap().done().unwrap();
    let forged = r#"{"error":"tool_bad_args:whereabouts","message":"The arguments do not fit `whereabouts`: there is no argument `chat`; it takes none"}"#;
    assert_eq!(
        results(&state.messages),
        [
            ("a".into(), "Oslo, 1 messages, acme, tools".into(), false),
            ("b".into(), forged.to_owned(), true)
        ]
    );
}

/// Moves house.
#[tool]
fn relocate(to: String) -> Result<ToolOutput, ToolError> {
    let update = Chat::update()
        .city(&*to)
        .notes([format!("moved to {to}")])
        .messages([Message::ai("The van is ordered.")]);
    ToolOutput::text("moved")
        .artifact(&json!({"van": 7}))?
        .command(update_command::<Chat>(&update)?)
}

#[tokio::test]
async fn a_command_writes_to_the_state_and_its_text_is_the_one_result() {
    let graph = graph::<Chat>(with_one(relocate {}));
    let calls = asking(&[("a", "relocate", r#"{"to":"Bern"}"#)]);
    let input = Chat::update().city("Oslo").messages([calls]);
    let state = graph.invoke(input).await.unwrap();
    assert_eq!(
        (state.city.as_str(), state.notes),
        ("Bern", vec!["moved to Bern".to_owned()])
    );
    let kinds: Vec<_> = state.messages.iter().map(Message::kind).collect();
    assert_eq!(kinds, ["ai", "tool", "ai"]);
    let Body::Tool(result) = &state.messages[1].body else {
        panic!("a result")
    };
    assert_eq!(state.messages[1].text(), "moved");
    assert_eq!(
        result.artifact,
        Some(RawJson::parse(r#"{"van":7}"#).unwrap())
    );
}

/// A tool that asks for this, and a graph that is given it: how it ends.
async fn commanded(command: Value) -> Result<Chat, paraph_graph::Error> {
    let schema = json!({"type": "object"});
    let tool = DynTool::new("do_it", "Does it", schema, move |_: Json| {
        let update = command.get("update").map(ToString::to_string);
        let goto = command
            .get("goto")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let command = ToolCommand {
            update,
            goto: goto.into_iter().collect(),
        };
        std::future::ready(ToolOutput::text("done").command(command))
    });
    let gateway = Gateway::builder(Records::shared())
        .dynamic(tool)
        .policy(Policy::new().allow(["do_it"]))
        .build()
        .unwrap();
    let input = Chat::update().messages([asking(&[("a", "do_it", "{}")])]);
    graph::<Chat>(gateway).invoke(input).await
}

/// LangGraph's commands without a matching result, with two, and its silent drop of unknown keys.
#[tokio::test]
async fn a_command_that_does_not_fit_is_an_error_that_names_the_tool() {
    let table = [
        (
            json!({"update": {"citty": "Bern"}}),
            "unknown channel `citty` (known: messages, city, notes)",
        ),
        (
            json!({"update": {"city": 7}}),
            "channel `city`: invalid type: integer `7`, expected a string",
        ),
        (
            json!({"update": {"messages": [{"type": "tool", "content": "again", "tool_call_id": "a"}]}}),
            "the result of a call is the tool's text: it may not add another",
        ),
        (
            json!({"update": {"messages": [{"type": "tool", "content": "x", "tool_call_id": "z"}]}}),
            "the result of a call is the tool's text: it may not add another",
        ),
        (
            json!({"update": {"messages": {"$replace": []}}}),
            "it may add to the conversation, and not replace it",
        ),
        (
            json!({"goto": "report"}),
            "it names where to go on, and the node has edges: build it with `or_goto`",
        ),
    ];
    for (command, expected) in table {
        let error = commanded(command).await.unwrap_err();
        let paraph_graph::Error::Node { source, .. } = &error else {
            panic!("{error}")
        };
        let Some(Error::BadCommand { tool, why }) = source.downcast_ref() else {
            panic!("{error}")
        };
        assert_eq!((tool.as_str(), why.as_str()), ("do_it", expected));
    }
    // What fits is done, with messages given as LangChain writes them.
    let update = json!({"city": "Bern", "messages": [["human", "Thanks"]]});
    let chat = commanded(json!({ "update": update })).await.unwrap();
    let texts: Vec<_> = chat.messages.iter().map(Message::text).collect();
    assert_eq!(
        (chat.city.as_str(), texts),
        ("Bern", vec!["".into(), "done".into(), "Thanks".into()])
    );
}

/// Hands over.
#[tool]
fn hand_over(to: String) -> Result<ToolOutput, ToolError> {
    ToolOutput::text("handed over").command(ToolCommand::default().goto(to))
}

#[tokio::test]
async fn a_command_says_where_to_go_on_and_without_one_the_default_counts() {
    let note = async |_: &Chat, ctx: &Ctx| Ok(Chat::update().notes([ctx.node().to_owned()]));
    let gateway = Gateway::builder(Records::shared())
        .tool(hand_over {})
        .tool(wait {})
        .policy(Policy::new().allow(["*"]))
        .build()
        .unwrap();
    let graph = Graph::<Chat>::new("desk")
        .each(TOOLS, tool_node(gateway).or_goto("model"))
        .node("model", note)
        .node("billing", note)
        .start_branch(tools_or("model"), [TOOLS.name(), "model"])
        .commands(TOOLS, ["model", "billing"])
        .end(["model", "billing"])
        .build()
        .unwrap();
    let notes = async |wanted: &[Wanted<'_>]| {
        let input = Chat::update().messages([asking(wanted)]);
        graph.invoke(input).await.map(|chat| chat.notes)
    };
    let over = ("a", "hand_over", r#"{"to":"billing"}"#);
    let waits = ("b", "wait", r#"{"seconds":0}"#);
    assert_eq!(notes(&[over]).await.unwrap(), ["billing"]);
    assert_eq!(notes(&[waits]).await.unwrap(), ["model"]);
    assert_eq!(notes(&[over, waits]).await.unwrap(), ["model", "billing"]);
    let nowhere = notes(&[("a", "hand_over", r#"{"to":"nowhere"}"#)]).await;
    assert_eq!(
        nowhere.unwrap_err().to_string(),
        "`tools` went to `nowhere`, which it did not declare (declared: model, billing)"
    );
}

#[tokio::test]
async fn what_ends_a_run_is_an_error_or_what_the_graph_makes_of_it() {
    let calls = || {
        asking(&[
            ("a", "wait", r#"{"seconds":0}"#),
            ("b", "wait", r#"{"seconds":00}"#),
            ("c", "wait", r#"{"seconds":1}"#),
        ])
    };
    let limits = Limits {
        tool_calls: 2,
        ..Limits::unlimited()
    };
    let node = || tool_node::<Chat>(waiting()).limits(limits.clone());
    let build = |node| {
        Graph::<Chat>::new("tools")
            .each(TOOLS, node)
            .start_branch(tools_condition, [TOOLS.name(), END])
            .end(TOOLS)
            .build()
            .unwrap()
    };
    let input = || Chat::update().messages([calls()]);
    let error = build(node()).invoke(input()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `tools` failed: a tool call ended the run: max_tool_calls"
    );
    let gentle = node().on_stop(|update, stop: &Stop| update.notes([stop.to_string()]));
    let chat = build(gentle).invoke(input()).await.unwrap();
    assert_eq!(chat.notes, ["max_tool_calls"]);
    let texts: Vec<_> = results(&chat.messages).into_iter().map(|it| it.1).collect();
    // Every call has its result, so that the conversation can go on.
    assert_eq!(texts.len(), 3);
    assert_eq!(
        (texts[0].as_str(), texts[2].as_str()),
        ("0", "max_tool_calls")
    );
}

/// Says how far it is.
#[tool]
async fn download(#[inject] context: &ToolContext<'_>) -> &'static str {
    for share in [0.5, 1.0] {
        context.report(json!({"share": share, "api_key": "sk-verysecret"}));
    }
    "downloaded"
}

#[tokio::test]
async fn whoever_streams_the_run_is_told_how_far_a_tool_is() {
    let graph = graph::<Chat>(with_one(download {}));
    let store: Store = MemoryStore::shared();
    let input = Chat::update().messages([asking(&[("a", "download", "{}")])]);
    let mut stream = graph.thread(&store, "t").run(input).stream([Mode::Custom]);
    let mut told = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventData::Custom { data, .. } = event.data {
            told.push(data);
        }
    }
    let kinds: Vec<_> = told.iter().map(|it| it["type"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "tool_started",
            "tool_progress",
            "tool_progress",
            "tool_ended"
        ]
    );
    let expected = json!({
        "type": "tool_progress", "step": 1, "tool": "download", "args_hash": "44136fa355b3",
        "data": {"share": 0.5, "api_key": "[redacted]"},
    });
    assert_eq!(told[1], expected);
}

/// A call that was recorded, but whose result the engine has lost.
#[tokio::test]
async fn a_run_that_is_taken_up_under_its_id_gets_what_was_recorded() {
    let runs = Arc::new(Runs::default());
    let records = Records::shared();
    let run = RunId::fresh();
    let calls = asking(&[("a", "count", "{}"), ("b", "confirm", r#"{"what":"x"}"#)]);
    let store: Store = MemoryStore::shared();
    let graph = confirming(&records, &runs);
    let thread = graph.thread(&store, "t");
    let input = Chat::update().messages([calls]);
    let paused = thread.run(input).run_id(run).await.unwrap();
    let id = paused.interrupts()[0].id.clone();
    let done = thread.answer(&id, "yes").run_id(run).await.unwrap();
    // One budget over both lives: a call that runs again is not counted again.
    let session = paraph_gateway::Scope {
        run: run.to_string(),
        ..paraph_gateway::Scope::new("graph", "t")
    };
    let kept = records.calls(&session.run_ref()).await.unwrap();
    let kept: Vec<_> = kept.iter().map(|it| (it.tool.as_str(), it.ok())).collect();
    assert_eq!(kept, [("count", true), ("confirm", true)]);
    assert_eq!(results(&done.done().unwrap().messages).len(), 2);
}

/// Shows its work, keeps a table, and asks before it is done.
#[tool]
async fn survey(
    #[inject] context: &ToolContext<'_>,
    #[inject] runtime: ToolRuntime<'_>,
) -> Result<ToolOutput, ToolError> {
    context.report("measured");
    let sure: bool = runtime.ask("sure", "Is it right?")?;
    ToolOutput::text(&format!("surveyed, {sure}")).artifact(&json!({"secret_table": [1, 2]}))
}

/// Wants the tool called once, then answers; notes what it was sent.
#[derive(Default)]
struct Surveyor(Mutex<Vec<String>>);

impl ChatModel for Surveyor {
    fn name(&self) -> &str {
        "surveyor"
    }

    fn stream<'a>(&'a self, request: &'a ChatRequest) -> ChunkStream<'a> {
        let sent = serde_json::to_string(&request.messages).unwrap();
        let has_result = sent.contains("tool_call_id");
        self.0.lock().unwrap().push(sent);
        let call = ToolCallDelta {
            id: Some("s".to_owned()),
            name: Some("survey".to_owned()),
            ..ToolCallDelta::default()
        };
        let chunk = match has_result {
            true => Chunk::text("Done."),
            false => Chunk {
                tool_calls: vec![call],
                ..Chunk::default()
            },
        };
        futures::stream::iter([Ok(chunk)]).boxed()
    }
}

/// The agent is built on the same node: progress is an event, an artifact stays with the program, and a
/// question stops the run until it is answered.
#[tokio::test]
async fn an_agent_s_tools_report_ask_and_keep_what_is_not_for_the_model() {
    let model = Arc::new(Surveyor::default());
    let terms = Terms::new(model.clone(), "t");
    let agent = react("surveyor", "Survey.", with_one(survey {})).unwrap();
    let mut run = agent.start("Go", &terms).await.unwrap();
    let id = run.run_id();
    let (mut told, mut stop) = (Vec::new(), None);
    while let Some(event) = run.next().await {
        match event.data {
            AgentEventData::ToolProgress { step, data, .. } => told.push((step, data)),
            AgentEventData::RunEnded { result, detail, .. } => {
                stop = Some((result.stop().clone(), detail.unwrap()));
            }
            _ => {}
        }
    }
    assert_eq!(told, [(1, json!("measured"))]);
    let questions = agent.questions("t").await.unwrap();
    assert_eq!(questions[0].question, "Is it right?");
    let detail = format!("1 question(s) wait for an answer: {}", questions[0].id);
    assert_eq!(stop, Some((Stop::ApprovalPending, detail)));

    // An answer to nothing leaves the question where it is.
    let wrong = [("unknown".to_owned(), json!(true))];
    let wrong = agent.answer(id, wrong, &terms).await.unwrap();
    assert_eq!(wrong.result().await.stop().to_string(), "internal");
    assert_eq!(agent.questions("t").await.unwrap(), questions);
    let answers = [(questions[0].id.clone(), json!(true))];
    let again = agent.answer(id, answers.clone(), &terms).await.unwrap();
    let RunResult::Messages(result) = again.result().await else {
        panic!("a run with messages has another result")
    };
    assert_eq!(result.answer.as_deref(), Some("Done."));
    assert_eq!(
        (result.trace.len(), result.trace[0].ok),
        (1, true),
        "one call, counted once"
    );
    let Body::Tool(tool) = &result.messages[2].body else {
        panic!("a result")
    };
    assert!(tool.artifact.is_some());
    let sent = model.0.lock().unwrap().clone();
    assert!(sent.len() == 2 && sent[1].contains("surveyed, true"));
    assert!(sent.iter().all(|sent| !sent.contains("secret_table")));
    assert_eq!(agent.questions("t").await.unwrap(), []);
    let late = agent.answer(id, answers, &terms).await;
    assert!(matches!(late, Err(Error::NothingLeft(thread)) if thread == "t"));
}
