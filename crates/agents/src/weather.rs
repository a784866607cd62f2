//! The weather agent: finds a place by a search, asks for the weather there, and answers.
//!
//! It is there twice. [`weather`](crate::weather()) runs on the engine, as the message loop of
//! [`react`](crate::react()): saved after each superstep, gone on with in another process. [`weather_by_hand`] runs the
//! same agent as one loop in one function (`by_hand.rs`), which is all that an agent needs that nobody wants to take up
//! again. Both have the same gateway, budget and reasons to stop, and give the same result.
//!
//! Its question needs a chain: the place whose weather is asked for is what the search found. A model that is
//! asked once, gets all its calls made and must answer then cannot do it (`tests.rs` shows that): it does not yet
//! know what to ask the second tool.
//!
//! Tools come from the caller, which has the network: `web_search` and `get_weather`. [`sample_tools`] are tools
//! of the same names that know a few places by heart, for the rehearsal.

mod by_hand;
mod rehearsal;
mod sample;

use crate::run::AgentRun;
use crate::terms::check_task;
use crate::{Agent, Case, Error, Stores, Terms, react};
use paraph_gateway::{DynTool, Limits, Policy};

pub(crate) use rehearsal::rehearse;
pub use sample::sample_tools;

/// The agent's name.
pub(crate) const NAME: &str = "weather";

/// What it may call unless told otherwise.
pub(crate) const TOOLS: [(&str, &str); 2] = [
    ("web_search", "Searches the web"),
    ("get_weather", "Tells the temperature at a place"),
];

/// How it is to behave.
pub(crate) const INSTRUCTIONS: &str = "\
You help travellers. You have tools, and you answer in conversation, warmly and to the point.

- Call a tool only if its result makes the answer better. Greetings and what everybody knows need none.
- Take one step at a time where a step needs what the one before it found: first find the place, then ask for the \
weather there. What does not depend on each other you may ask for at once.
- A tool that fails says why. Try again in other words if that can help, at most twice.
- When you compare numbers, look at their units first.
- If you could not find something out, say that you do not know it. Never make up a place or a temperature.
- Your answer has three sentences at most.";

/// What a run may use unless told otherwise: 8 decisions, 8 calls, 60 seconds.
pub(crate) fn limits() -> Limits {
    Limits {
        steps: 8,
        tool_calls: 8,
        seconds: 60,
        ..Limits::default()
    }
}

/// The weather agent with these tools. It may call `web_search` and `get_weather`, besides what is allowed here, whether
/// or not there are such tools; a denied name is denied all the same.
///
/// # Errors
/// [`Error::Gateway`] if the tools do not fit together.
///
/// ```
/// use paraph_agents::{Rehearsal, Stores, Terms, sample_tools, weather, weather_by_hand};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), paraph_agents::Error> {
/// let agent = weather(&Stores::in_memory(), sample_tools(), &[], &[])?;
/// let terms = Terms::new(Arc::new(Rehearsal::Weather), "trip");
/// let question = "Name a hotel in Boston if it is below 30 degrees there.";
/// let on_the_engine = agent.start(question, &terms).await?.result().await;
/// let by_hand = weather_by_hand(&agent, question, &terms).await?.result().await;
/// assert!(on_the_engine.answer().is_some_and(|answer| answer.contains("lower than 30")));
/// assert_eq!(on_the_engine.answer(), by_hand.answer());
/// # Ok(()) }
/// ```
pub fn weather(
    stores: &Stores,
    tools: Vec<DynTool>,
    allow: &[String],
    deny: &[String],
) -> Result<Agent, Error> {
    let policy = Policy::new()
        .allow_unregistered(TOOLS.map(|(name, _)| name.to_owned()))
        .allow_unregistered(allow)
        .deny(deny);
    let builder = stores.gateway();
    let builder = tools
        .into_iter()
        .fold(builder, paraph_gateway::Builder::dynamic);
    let gateway = builder.policy(policy).build()?;
    Ok(react(NAME, INSTRUCTIONS, gateway)?.on(stores.threads.clone()))
}

/// Starts a run of the [`weather`] agent as a loop by hand: nothing of it is saved but the gateway's records, and the
/// thread's conversation is neither read nor gone on with. It runs while its events are read.
///
/// # Errors
/// [`Error::EmptyTask`], [`Error::LongTask`]; [`Error::Stopped`] if the gateway's store cannot be read.
pub async fn weather_by_hand(
    weather: &Agent,
    task: impl Into<Case>,
    terms: &Terms,
) -> Result<AgentRun, Error> {
    let case = task.into();
    let talk = by_hand::Talk {
        agent: NAME,
        instructions: INSTRUCTIONS,
        gateway: &weather.gateway,
    };
    talk.start(check_task(&case.question)?, terms).await
}

#[cfg(test)]
mod tests;
