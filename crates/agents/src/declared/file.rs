//! An agent file as data. The reader makes it, `paraph run` builds agents of it; nothing is decided here.

use paraph_gateway::{
    Ask, DayLimits, Dialect, Examples, Flow, Grant, Limits, LoopRule, Rule, UNLIMITED,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// What an agent that can call others may start of them, if its file does not say it.
const DEFAULT_CHILDREN: u64 = 4;

/// How often an answer that does not fit is asked for again, if the file does not say it.
const DEFAULT_REPAIRS: u32 = 2;

/// The form in which a file is compared with what it was when a run began. A newer form makes other digests.
const DIGEST_FORM: &str = "paraph agent file 1";

/// A file that describes an agent, and those that it may call.
///
/// Prompts and schemas that stand in files of their own have been read into it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentFile {
    /// The main agent's name.
    pub name: String,
    /// The main agent.
    #[serde(flatten)]
    pub main: AgentSpec,
    /// What stands for `{{name}}` in prompts.
    pub variables: BTreeMap<String, String>,
    /// The settings of MCP servers, as they stand in the file.
    pub mcp: BTreeMap<String, Value>,
    /// The agents that can be called, by name.
    pub agents: BTreeMap<String, AgentSpec>,
}

/// One agent of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSpec {
    /// What it does.
    pub about: Option<String>,
    /// What it does without a task.
    pub task: Option<String>,
    /// Its model, as people write it.
    pub model: Option<String>,
    /// The models that are asked when that one fails.
    pub fallbacks: Vec<String>,
    /// How much chance there is in its answers.
    pub temperature: Option<f64>,
    /// The longest answer, in tokens.
    pub max_answer_tokens: Option<u32>,
    /// How its model says what it wants.
    pub dialect: Dialect,
    /// How a model that has no tool calls makes them: `native` or `schema`.
    pub tool_mode: Option<String>,
    /// The instructions, with their variables not yet filled in.
    pub prompt: String,
    /// Where the instructions were read from.
    pub prompt_file: Option<String>,
    /// What counts as a loop.
    #[serde(rename = "loop")]
    pub loops: LoopRule,
    /// What it can call.
    pub tools: ToolsSpec,
    /// What of that it may call.
    pub policy: PolicySpec,
    /// What a run may use.
    pub budget: BudgetSpec,
    /// How much of the conversation is shown.
    pub context: Option<ContextSpec>,
    /// The form of its answer.
    pub output: Option<OutputSpec>,
}

/// The tools of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsSpec {
    /// Those that the program brings, by name.
    pub builtin: Vec<String>,
    /// The settings of HTTP tools, as they stand in the file.
    pub http: Vec<Value>,
    /// MCP servers, by name; nothing if the file does not say.
    pub mcp: Option<Vec<String>>,
    /// Agents of the same file.
    pub agents: Vec<String>,
}

/// The rules of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicySpec {
    /// What may run.
    pub allow: Option<Vec<String>>,
    /// What never runs.
    pub deny: Vec<String>,
    /// What a person has to approve.
    pub approve: Vec<String>,
    /// What holds for the tools that nothing else lets run, by level: `allow`, `approve` or `deny`.
    pub levels: BTreeMap<String, String>,
    /// How people are asked where no rule says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// Rules that look further than at the name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Standing signatures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// What holds after a run has read what strangers wrote.
    #[serde(skip_serializing_if = "is_plain")]
    pub flow: Flow,
    /// What its runs are about, by the names under which `flow` binds it: a text, in which variables may stand, a whole
    /// number, a truth value, or `{ number = "…" }` with such a text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, Value>,
}

/// Whether flow rules say nothing.
fn is_plain<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a run may use; nothing where the file does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(
    missing_docs,
    reason = "the fields are those of `Limits`, under the names that flags have"
)]
pub struct BudgetSpec {
    pub max_steps: Option<u64>,
    pub max_tool_calls: Option<u64>,
    pub max_seconds: Option<u64>,
    pub max_tokens: Option<u64>,
    /// US dollars.
    pub max_cost: Option<f64>,
    pub max_children: Option<u64>,
    /// Tokens for a last answer when the budget is used up; not among the limits, since it allows nothing more.
    pub synthesis_reserve: Option<u64>,
    pub per_tool: BTreeMap<String, u64>,
    /// In all runs of its user on one day, in UTC.
    #[serde(skip_serializing_if = "is_plain")]
    pub per_user_day: DaySpec,
}

/// What a user may use on one day; nothing where the file does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(
    missing_docs,
    reason = "the fields are those of `DayLimits`, under the names that flags have"
)]
pub struct DaySpec {
    pub max_tool_calls: Option<u64>,
    pub max_tokens: Option<u64>,
    /// US dollars.
    pub max_cost: Option<f64>,
}

/// How much of a conversation the model is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextSpec {
    /// The most messages.
    pub max_messages: Option<usize>,
    /// The most tokens of a request, instructions and tools included, as we estimate them.
    pub max_tokens: Option<usize>,
    /// What becomes of the others.
    pub when_full: WhenFull,
}

/// What becomes of messages that are not shown any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// They are left out.
    #[default]
    Trim,
    /// The model summarises them.
    Summarise,
}

/// The form of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputSpec {
    /// The JSON Schema.
    pub schema: Value,
    /// Where it was read from.
    pub schema_file: Option<String>,
    /// How often an answer that does not fit is asked for again.
    pub repairs: Option<u32>,
}

impl OutputSpec {
    /// How often an answer that does not fit is asked for again.
    pub fn repairs(&self) -> u32 {
        self.repairs.unwrap_or(DEFAULT_REPAIRS)
    }
}

impl AgentSpec {
    /// What a run may use: what the file says, else the same as for built-in agents.
    pub fn limits(&self) -> Limits {
        let (budget, usual) = (&self.budget, Limits::default());
        let children = match self.tools.agents.is_empty() {
            true => 0,
            false => budget.max_children.unwrap_or(DEFAULT_CHILDREN),
        };
        Limits {
            steps: budget.max_steps.unwrap_or(usual.steps),
            tool_calls: budget.max_tool_calls.unwrap_or(usual.tool_calls),
            seconds: budget.max_seconds.unwrap_or(usual.seconds),
            tokens: budget.max_tokens.unwrap_or(usual.tokens),
            micro_dollars: micro_dollars(budget.max_cost),
            children,
            per_tool: budget.per_tool.clone(),
            per_user_day: DayLimits {
                tool_calls: budget.per_user_day.max_tool_calls.unwrap_or(UNLIMITED),
                tokens: budget.per_user_day.max_tokens.unwrap_or(UNLIMITED),
                micro_dollars: micro_dollars(budget.per_user_day.max_cost),
            },
        }
    }
}

fn micro_dollars(dollars: Option<f64>) -> u64 {
    match dollars {
        // The reader has checked that it is neither negative nor beyond 64 bits.
        Some(dollars) => (dollars * 1e6).round() as u64,
        None => UNLIMITED,
    }
}

impl AgentFile {
    /// Every agent of the file with its name, the main one first.
    pub fn all(&self) -> impl Iterator<Item = (&str, &AgentSpec)> {
        let main = (self.name.as_str(), &self.main);
        let others = self.agents.iter().map(|(name, spec)| (name.as_str(), spec));
        std::iter::once(main).chain(others)
    }

    /// The MCP servers whose tools one of its agents has: those that it names, and all of the file for the main agent
    /// if it names none.
    pub fn servers(&self, agent: &str) -> Vec<&str> {
        let is_main = agent == self.name;
        let spec = if is_main {
            Some(&self.main)
        } else {
            self.agents.get(agent)
        };
        match spec.map(|spec| &spec.tools.mcp) {
            Some(Some(named)) => named.iter().map(String::as_str).collect(),
            Some(None) if is_main => self.mcp.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Stands for all of the file that a run which goes on depends on: prompts, tools, rules, dialect, forms, and the
    /// agents that are called. Comments, layout, descriptions and examples do not count, nor do the main agent's model,
    /// budget and loop rule: those are stored with the run. What somebody reviewed of MCP servers' tools is looked at anew
    /// whenever they are connected to.
    pub fn digest(&self) -> String {
        let mut counted = self.clone();
        let main = &mut counted.main;
        (main.about, main.task, main.model) = (None, None, None);
        main.fallbacks.clear();
        main.budget = BudgetSpec::default();
        main.loops = LoopRule::default();
        main.prompt_file = None;
        if let Some(output) = &mut main.output {
            output.schema_file = None;
        }
        for agent in counted.agents.values_mut() {
            agent.prompt_file = None;
        }
        let called = counted.agents.values_mut();
        for spec in std::iter::once(&mut counted.main).chain(called) {
            for rule in &mut spec.policy.rules {
                rule.examples = Examples::default();
            }
        }
        for server in counted.mcp.values_mut().filter_map(Value::as_object_mut) {
            server.remove("pins");
        }
        digest(&counted)
    }

    /// Stands for the settings of one of its MCP servers, but for what was reviewed of its tools; nothing if it has no such
    /// server.
    pub fn server_digest(&self, name: &str) -> Option<String> {
        let mut settings = self.mcp.get(name)?.clone();
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("pins");
        }
        Some(digest(&(name, settings)))
    }
}

/// The hash of a value as JSON, whose keys come in one order: of the structs' fields, and sorted in maps.
fn digest(value: &impl Serialize) -> String {
    let mut hash = Sha256::new();
    hash.update(DIGEST_FORM);
    hash.update([0]);
    hash.update(serde_json::to_string(value).unwrap_or_default());
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
