//! What all nodes of a research run share, and how they ask their models.

use super::settings::{ResearchSettings, Role};
use crate::asking::{Asking, Early};
use crate::branches::Branch;
use crate::declared::shown;
use crate::{AgentEventData, ContextSpec};
use paraph_gateway::{Gateway, LlmError, Stop};
use paraph_graph::{Ctx, NodeError};
use paraph_models::{ChatReply, ChatRequest, Estimate, Message, ToolSpec};

/// How often a request that turned out too long is sent again, each time half as long.
const HALVINGS: u32 = 2;

/// How many characters of what a phase is about are told.
const SHOWN_ABOUT: usize = 160;

/// What the nodes of a research run share.
pub(crate) struct Crew {
    pub(crate) settings: ResearchSettings,
    /// Where researchers' calls go.
    pub(crate) field: Gateway,
    /// What they may call.
    pub(crate) field_tools: Vec<ToolSpec>,
    /// What the supervisor may call.
    pub(crate) desk_tools: Vec<ToolSpec>,
}

impl Crew {
    pub(crate) fn new(settings: ResearchSettings, field: Gateway, desk: &Gateway) -> Crew {
        Crew {
            settings,
            field_tools: specs(&field),
            desk_tools: specs(desk),
            field,
        }
    }

    /// The date as models are told it.
    pub(crate) fn date(&self) -> String {
        let now = self.time();
        now.strftime("%A, %-d %B %Y").to_string()
    }

    /// The time as it is kept.
    pub(crate) fn now(&self) -> String {
        format!("{:.0}", self.time())
    }

    fn time(&self) -> jiff::Timestamp {
        let ms = i64::try_from(self.settings.clock.now_ms()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX)
    }

    /// How a part of the run, that of one researcher, is known to the run.
    pub(crate) fn branch<'b>(
        &'b self,
        name: &'b str,
        share: &'b paraph_gateway::Limits,
    ) -> Branch<'b> {
        Branch {
            name,
            gateway: &self.field,
            share,
        }
    }

    /// Asks whoever plays this part, as one decision. What is too long is sent again with less, a few times.
    pub(crate) async fn ask(
        &self,
        role: Role,
        asking: Asking<'_>,
        ctx: &Ctx,
        request: impl Fn(usize) -> ChatRequest,
    ) -> Result<(u64, ChatReply), Early> {
        let mut room = self.settings.window;
        let mut halvings = 0;
        loop {
            match self.ask_once(role, &asking, ctx, request(room)).await {
                Ok(reply) => return Ok(reply),
                Err(Early::Ending(ending))
                    if ending.stop == Stop::LlmError(LlmError::ContextOverflow)
                        && halvings < HALVINGS =>
                {
                    halvings += 1;
                    room /= 2;
                }
                Err(early) => return Err(early),
            }
        }
    }
}

impl Crew {
    /// The same for a request that must be read whole or not at all.
    pub(crate) async fn ask_once(
        &self,
        role: Role,
        asking: &Asking<'_>,
        ctx: &Ctx,
        request: ChatRequest,
    ) -> Result<(u64, ChatReply), Early> {
        let asking = asking
            .clone()
            .by(self.settings.voices.get(&role))
            .at_length(role.longest_answer());
        let begun = asking.begin_step(ctx).await?;
        let step = begun.0;
        Ok((step, asking.ask(ctx, begun, request).await?))
    }
}

fn specs(gateway: &Gateway) -> Vec<ToolSpec> {
    let tools = gateway.catalogue().iter().map(|tool| ToolSpec {
        name: tool.name.clone(),
        description: tool.about.clone(),
        schema: tool.schema.clone(),
    });
    tools.collect()
}

/// A request of instructions and a conversation that together keep within so many tokens: the task and the newest
/// stay, and a call is never parted from its results.
pub(crate) fn packed(
    instructions: String,
    messages: Vec<Message>,
    tools: &[ToolSpec],
    room: usize,
) -> ChatRequest {
    let fixed = ChatRequest {
        tools: tools.to_vec(),
        ..ChatRequest::new([Message::system(instructions)])
    };
    let limits = ContextSpec {
        max_tokens: Some(room.saturating_sub(Estimate::of(&fixed).total())),
        ..ContextSpec::default()
    };
    let shown = shown(messages, &limits).messages;
    ChatRequest {
        messages: [fixed.messages, shown].concat(),
        tools: fixed.tools,
        ..ChatRequest::new([])
    }
}

/// Says what a part of the run is busy with.
pub(crate) async fn phase(ctx: &Ctx, phase: &str, about: &str) -> Result<(), NodeError> {
    ctx.emit(AgentEventData::Phase {
        phase: phase.to_owned(),
        about: super::reading::short(about, SHOWN_ABOUT),
    })
    .await
}
