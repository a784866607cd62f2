//! `react_N`: a model that calls a tool N times and then answers; the conversation grows by 40 kB each round.
//! `noise_N` is the same with texts that do not compress, which those of `react_N` do.
//!
//! The messages are small structs of this file, in the JSON shape that clients know: the engine is measured here,
//! not the `models` crate.

use paraph_graph::{Ctx, END, Each, Graph, Result, State, Target, Update, with};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Floor, Step, step};
use crate::{Fault, Setting, Shape};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ToolCall {
    id: String,
    name: String,
    args: Arguments,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Arguments {
    query: String,
}

#[derive(State, Clone, Default, Serialize)]
pub(super) struct Chat {
    #[reduce(append)]
    pub(super) messages: Vec<Message>,
}

impl Chat {
    /// The tool calls of the last message.
    fn calls(&self) -> &[ToolCall] {
        self.messages
            .last()
            .map_or(&[], |message| &message.tool_calls)
    }
}

const HANDS: Each<usize> = Each::new("hands");

/// What is said, and how often.
#[derive(Clone, Copy)]
pub(super) struct Script {
    pub(super) turns: usize,
    /// Whether the texts are letters without any order.
    pub(super) noise: bool,
}

impl Script {
    fn query(self, turn: usize) -> String {
        if self.noise {
            return letters(turn as u64, 3_600);
        }
        "c2f1a5de-7d1b-4a53-9f3e-51d4b8a90c77".repeat(100)
    }

    fn result(self, call: &ToolCall) -> String {
        if self.noise {
            let number = |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte));
            return letters(call.id.bytes().fold(7, number), 36_180);
        }
        format!("result for query: {}", call.args.query).repeat(10)
    }
}

/// So many letters without any order, always the same for a seed.
fn letters(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"
                [(state >> 32) as usize % 64],
        )
    };
    std::iter::repeat_with(next).take(count).collect()
}

async fn brain(script: &Script, chat: &Chat, _: &Ctx) -> Result<Update<Chat>> {
    Ok(Chat::update().messages([think(*script, chat)]))
}

async fn hands(script: &Script, call: usize, chat: &Chat, _: &Ctx) -> Result<Update<Chat>> {
    Ok(Chat::update().messages(chat.calls().get(call).map(|call| act(*script, call))))
}

/// What the model says next: one more call, or the answer after the last turn.
fn think(script: Script, chat: &Chat) -> Message {
    let turn = chat.messages.len() / 2;
    let mut message = Message {
        kind: "ai".to_owned(),
        id: format!("ai-{turn}"),
        ..Message::default()
    };
    if turn < script.turns {
        message.tool_calls.push(ToolCall {
            id: format!("call-{turn}"),
            name: "lookup".to_owned(),
            args: Arguments {
                query: script.query(turn),
            },
        });
    } else {
        message.content = "answer".repeat(100);
    }
    message
}

/// What the tool says: about ten times its question.
fn act(script: Script, call: &ToolCall) -> Message {
    Message {
        kind: "tool".to_owned(),
        id: format!("tool-{}", call.id),
        content: script.result(call),
        tool_call_id: Some(call.id.clone()),
        ..Message::default()
    }
}

pub(super) fn question() -> Message {
    Message {
        kind: "human".to_owned(),
        id: "human".to_owned(),
        content: "hi?".to_owned(),
        ..Message::default()
    }
}

fn route(chat: &Chat) -> Vec<Target> {
    let calls = chat.calls().len();
    if calls == 0 {
        return vec![END.into()];
    }
    HANDS.send_all(0..calls)
}

pub(super) fn graph(script: Script) -> Result<Graph<Chat>, Fault> {
    Ok(Graph::<Chat>::new("react")
        .node("brain", with(script, brain))
        .each(HANDS, with(script, hands))
        .start("brain")
        .branch("brain", route, ["hands", END])
        .edge(HANDS, "brain")
        .build()?)
}

/// What a run without the engine does and would save.
pub(super) async fn floor_of(script: Script, setting: Setting) -> Floor<Chat> {
    let brain = step(move |chat| think(script, chat));
    let hands =
        step(move |chat: &Chat| chat.calls().iter().map(|call| act(script, call)).collect());
    floor(brain, hands, setting).await
}

pub(super) fn case(script: Script) -> Result<Box<dyn Shape>, Fault> {
    let graph = graph(script)?;
    let turns = script.turns;
    let kind = if script.noise { "noise" } else { "react" };
    Ok(Box::new(Case {
        name: format!("{kind}_{turns}"),
        graph,
        input: Box::new(|| Chat::update().messages([question()])),
        events: 2 * turns + 1,
        node_runs: 2 * turns + 1,
        durable: Setting::DURABLE.to_vec(),
        floor: Box::new(move |setting| Box::pin(floor_of(script, setting))),
        check: Box::new(move |chat| chat.messages.len() == 2 * turns + 2),
    }))
}

async fn floor(
    brain: Step<Chat, Message>,
    hands: Step<Chat, Vec<Message>>,
    setting: Setting,
) -> Floor<Chat> {
    let mut floor = Floor::from(Chat {
        messages: vec![question()],
    });
    loop {
        let said = brain(&floor.state).await;
        floor.tell(setting, &said);
        floor.state.messages.push(said);
        if floor.state.calls().is_empty() {
            return floor;
        }
        let results = hands(&floor.state).await;
        floor.tell(setting, &results);
        floor.state.messages.extend(results);
    }
}
