//! `react_N`: a model that calls a tool N times and then answers; the conversation grows by 40 kB each round.
//!
//! The messages are small structs of this file, in the JSON shape that clients know: the engine is measured here,
//! not the `models` crate.

use paraph_graph::{Ctx, END, Each, Graph, Result, State, Target, Update, with};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Floor, Step, step};
use crate::{Fault, Setting, Shape};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Message {
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
struct ToolCall {
    id: String,
    name: String,
    args: Arguments,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Arguments {
    query: String,
}

#[derive(State, Clone, Default, Serialize)]
struct Chat {
    #[reduce(append)]
    messages: Vec<Message>,
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

async fn brain(turns: &usize, chat: &Chat, _: &Ctx) -> Result<Update<Chat>> {
    Ok(Chat::update().messages([think(*turns, chat)]))
}

async fn hands(call: usize, chat: &Chat, _: &Ctx) -> Result<Update<Chat>> {
    Ok(Chat::update().messages(chat.calls().get(call).map(act)))
}

/// What the model says next: one more call, or the answer after the last turn.
fn think(turns: usize, chat: &Chat) -> Message {
    let turn = chat.messages.len() / 2;
    let mut message = Message {
        kind: "ai".to_owned(),
        id: format!("ai-{turn}"),
        ..Message::default()
    };
    if turn < turns {
        message.tool_calls.push(ToolCall {
            id: format!("call-{turn}"),
            name: "lookup".to_owned(),
            args: Arguments {
                query: "c2f1a5de-7d1b-4a53-9f3e-51d4b8a90c77".repeat(100),
            },
        });
    } else {
        message.content = "answer".repeat(100);
    }
    message
}

/// What the tool says: about ten times its question.
fn act(call: &ToolCall) -> Message {
    Message {
        kind: "tool".to_owned(),
        id: format!("tool-{}", call.id),
        content: format!("result for query: {}", call.args.query).repeat(10),
        tool_call_id: Some(call.id.clone()),
        ..Message::default()
    }
}

fn question() -> Message {
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

pub(super) fn case(turns: usize) -> Result<Box<dyn Shape>, Fault> {
    let graph = Graph::<Chat>::new("react")
        .node("brain", with(turns, brain))
        .each(HANDS, hands)
        .start("brain")
        .branch("brain", route, ["hands", END])
        .edge(HANDS, "brain")
        .build()?;
    let brain = step(move |chat| think(turns, chat));
    let hands = step(|chat: &Chat| chat.calls().iter().map(act).collect());
    Ok(Box::new(Case {
        name: format!("react_{turns}"),
        graph,
        input: Box::new(|| Chat::update().messages([question()])),
        events: 2 * turns + 1,
        node_runs: 2 * turns + 1,
        floor: Box::new(move |setting| Box::pin(floor(brain.clone(), hands.clone(), setting))),
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
