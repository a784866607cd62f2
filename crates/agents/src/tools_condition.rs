//! Where a graph goes after its model has spoken: to the tools it wants, or on.
//!
//! Pure: reads a conversation and names targets. The tasks that follow find their call here too.

use crate::HasMessages;
use paraph_gateway::ToolCall;
use paraph_graph::{END, Each, Goto, Target};
use paraph_models::Message;

/// The node of the tools. Its payload is the place of a call in the model's last message.
pub const TOOLS: Each<usize> = Each::new("tools");

/// A branch for the model's node: one task at [`TOOLS`] for each call of its message, or [`END`] if it
/// wants none.
///
/// Calls whose arguments are no JSON have a task too: the model has to hear of them. A conversation without any message
/// is a mistake of the graph: the branch chooses nothing, which the engine says is an error.
///
/// ```
/// use paraph_agents::{MessagesState, TOOLS, tool_node, tools_condition};
/// use paraph_graph::{Ctx, END, Graph, State};
/// use paraph_models::Message;
/// # use paraph_gateway::{Gateway, MemoryStore};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let gateway = Gateway::builder(MemoryStore::shared()).build()?;
/// let model = async |_: &MessagesState, _: &Ctx| Ok(MessagesState::update().messages([Message::ai("Hello")]));
/// let graph = Graph::<MessagesState>::new("chat")
///     .node("model", model)
///     .each(TOOLS, tool_node(gateway))
///     .start("model")
///     .branch("model", tools_condition, [TOOLS.name(), END])
///     .edge(TOOLS, "model")
///     .build()?;
/// # let _ = graph;
/// # Ok(()) }
/// ```
pub fn tools_condition<S: HasMessages>(state: &S) -> Goto {
    choose(state, END)
}

/// The same with another node in the place of the end: `.branch("model", tools_or("summarise"), …)`.
pub fn tools_or<S: HasMessages>(otherwise: &'static str) -> impl Fn(&S) -> Goto + Send + Sync {
    move |state| choose(state, otherwise)
}

fn choose<S: HasMessages>(state: &S, otherwise: &'static str) -> Goto {
    match state.conversation().last() {
        None => Goto::from(Vec::<Target>::new()),
        Some(last) => match calls(last) {
            0 => otherwise.into(),
            calls => TOOLS.send_all(0..calls).into(),
        },
    }
}

/// How many calls a message has: also those whose arguments are no JSON.
pub(crate) fn calls(message: &Message) -> usize {
    message.tool_calls().len() + message.invalid_tool_calls().len()
}

/// A call of the model's, ready for the gateway.
pub(crate) struct OpenCall {
    pub(crate) id: String,
    pub(crate) call: ToolCall,
}

/// The model's last message.
pub(crate) fn asked<S: HasMessages>(state: &S) -> Option<&Message> {
    let mut messages = state.conversation().iter();
    messages.rfind(|message| message.is_ai())
}

/// One of a message's calls; the ones whose arguments are no JSON come last. Each task reads its own
/// alone: a turn may have many, with long arguments.
pub(crate) fn open_call(asked: &Message, index: usize) -> Option<OpenCall> {
    let fine = asked.tool_calls();
    if let Some(call) = fine.get(index) {
        return Some(OpenCall {
            id: call.id.clone(),
            call: ToolCall::native(call.name.clone(), call.args.as_str()),
        });
    }
    let call = asked
        .invalid_tool_calls()
        .get(index.checked_sub(fine.len())?)?;
    Some(OpenCall {
        id: call.id.clone(),
        call: ToolCall::native(call.name.clone().unwrap_or_default(), &call.args),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessagesState;
    use paraph_graph::{Ctx, Error, Graph, State};
    use paraph_models::{Arguments, Body, InvalidToolCall, ToolCall as Wanted};

    /// The nodes that a branch after this message leads to, by their order of running.
    async fn reached(last: Option<Message>) -> Result<Vec<String>, Error> {
        let tool = async |index: usize, _: &MessagesState, _: &Ctx| {
            let said = Message::tool(index.to_string(), format!("tool {index}"));
            Ok(MessagesState::update().messages([said]))
        };
        let on = async |_: &MessagesState, _: &Ctx| {
            Ok(MessagesState::update().messages([Message::human("on")]))
        };
        let graph = Graph::<MessagesState>::new("reached")
            .node("on", on)
            .each(TOOLS, tool)
            .start_branch(tools_or("on"), [TOOLS.name(), "on"])
            .end([TOOLS.name(), "on"])
            .build()?;
        let before = usize::from(last.is_some());
        let state = graph.invoke(MessagesState::update().messages(last)).await?;
        let after = state.messages.iter().skip(before);
        Ok(after.map(|message| message.text().into_owned()).collect())
    }

    fn calling(fine: &[&str], broken: &[&str]) -> Message {
        let wanted = fine
            .iter()
            .map(|id| Wanted::new(*id, "look", Arguments::default()));
        let mut message = Message::ai_calling("", wanted.collect());
        if let Body::Ai(ai) = &mut message.body {
            ai.invalid_tool_calls = broken
                .iter()
                .map(|id| InvalidToolCall {
                    id: (*id).to_owned(),
                    name: None,
                    args: "{".to_owned(),
                    error: "cut off".to_owned(),
                })
                .collect();
        }
        message
    }

    #[tokio::test]
    async fn each_call_has_a_task_and_no_call_goes_on() {
        let table = [
            (Message::ai("Hello"), vec!["on"]),
            (calling(&["a", "b"], &[]), vec!["tool 0", "tool 1"]),
            (calling(&["a"], &["b"]), vec!["tool 0", "tool 1"]),
            (Message::human("Hello"), vec!["on"]),
            (Message::tool("a", "done"), vec!["on"]),
        ];
        for (last, expected) in table {
            assert_eq!(reached(Some(last)).await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn without_any_message_there_is_nothing_to_choose() {
        let error = reached(None).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "`__start__` chose no target; to end there, choose END"
        );
    }

    #[test]
    fn calls_are_found_by_their_place_and_broken_ones_come_last() {
        let message = calling(&["a"], &["b"]);
        let id = |index| open_call(&message, index).map(|open| open.id);
        assert_eq!(
            [0, 1, 2].map(id),
            [Some("a".to_owned()), Some("b".to_owned()), None]
        );
        let broken = open_call(&message, 1).unwrap();
        assert!(broken.call.fault().is_some());
    }
}
