//! The command line. What it takes is a contract; see `paraph --help`.

mod corpus;
mod files;
mod policy;
mod signed;
mod stored;
mod triage;

pub(crate) use corpus::*;
pub(crate) use files::*;
pub(crate) use policy::*;
pub(crate) use signed::*;
pub(crate) use stored::*;
pub(crate) use triage::*;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args as Group, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What a hurried user probably meant, beyond what clap itself can say.
pub(crate) fn hint(error: &clap::Error) -> Option<String> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = text(ContextKind::InvalidArg)?;
            let is_word = !argument.starts_with('-') && std::env::args().nth(1)? == "run";
            is_word.then(|| "hint: put a task of several words in quotes".to_owned())
        }
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand)?;
            let agents = paraph_agents::builtin();
            let agent = agents.iter().find(|agent| agent.name == name)?;
            Some(format!(
                "hint: an agent is run by `paraph run {}`",
                agent.name
            ))
        }
        _ => None,
    }
}

/// Runs agents that act on real systems, and lets nothing happen that was not allowed or signed.
#[derive(Parser, Debug)]
#[command(
    name = "paraph",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 finished, 2 usage or configuration, 3 stopped by policy, budget or loop,\n\
                  4 the model failed, 5 waiting for a person, 6 store or internal failure, 130 interrupted."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run an agent
    #[command(
        after_help = "Examples:\n  paraph run support \"May I have my money back?\" --user 7\n  \
                      paraph run support \"And how much?\" --thread case-7\n  \
                      paraph run support --thread case-7 --from 01920000-…\n  \
                      paraph run planner/agent.toml \"Plan a day in Basel\" --var language=French\n  \
                      paraph run research \"Which chunk size works best?\" --sources notes -o report.html\n  \
                      paraph run triage https://github.com/OWNER/REPO/issues/1"
    )]
    Run(Box<RunArgs>),
    /// List the agents there are
    Agents(AgentsArgs),
    /// Write an agent that runs at once into a folder
    #[command(
        after_help = "Example: paraph init planner && paraph run planner/agent.toml \"Plan a day in Basel\""
    )]
    Init(InitArgs),
    /// Find every mistake in an agent's file
    Check(CheckArgs),
    /// Try the rules of an agent's file, and see what they decide
    Policy {
        #[command(subcommand)]
        command: PolicyCommand,
    },
    /// Measure an agent on questions whose answers are known
    Eval {
        #[command(subcommand)]
        command: EvalCommand,
    },
    /// See what triage would do with issues
    Triage {
        #[command(subcommand)]
        command: TriageCommand,
    },
    /// Print the JSON Schema of a file, for editors
    Schema {
        #[command(subcommand)]
        command: SchemaCommand,
    },
    /// Look at threads, and fork, copy, export, import, delete or prune them
    Threads {
        #[command(subcommand)]
        command: ThreadsCommand,
    },
    /// Look at runs, and resume or cancel them
    Runs {
        #[command(subcommand)]
        command: RunsCommand,
    },
    /// See what waits for people, and approve, refuse or edit it
    Approvals {
        #[command(subcommand)]
        command: ApprovalsCommand,
    },
    /// Stop agents, tools or everything, in all processes on a store
    Kill {
        #[command(subcommand)]
        command: KillCommand,
    },
    /// Look at the chain of what happened, check it, anchor it, export it
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Bring in issues that agents may cite, search them, and fit what counts as related
    Corpus {
        #[command(subcommand)]
        command: CorpusCommand,
    },
    /// Check, measure, back up or migrate the store
    Store {
        #[command(subcommand)]
        command: StoreCommand,
    },
    /// Draw an agent's graph
    Graph(GraphArgs),
    /// Say what a stop reason means, and what to do about it
    Explain(ExplainArgs),
    /// Check the configuration, the models and this machine
    Doctor(DoctorArgs),
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Write shell completions to standard output
    Completions(CompletionsArgs),
}

#[derive(Subcommand, Debug)]
pub(crate) enum ConfigCommand {
    /// Show each value with its source; secrets are masked
    Show(ConfigShowArgs),
}

/// Where settings come from besides the environment.
#[derive(Group, Debug, Clone, Default)]
pub(crate) struct SourceArgs {
    /// Read this file instead of `.env`; the real environment wins over it
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// The libraries' log on standard error: off, error, info or debug, with `,json` for JSON lines
    #[arg(long, value_name = "LEVEL[,json]")]
    pub(crate) log: Option<String>,
}

#[derive(Group, Debug)]
pub(crate) struct RunArgs {
    /// The agent's name (`paraph agents` lists them), or its file, which ends in .toml
    pub(crate) agent: String,
    /// What to do; `-` reads it from standard input. For triage the address; without it a rehearsal is made
    pub(crate) task: Option<String>,
    /// The model: provider:name, `rehearsal` (rule-based, needs no key), scripted:FILE, record:DIR,SPEC
    /// (writes down what it says) or replay:DIR (says it again)
    #[arg(long, value_name = "SPEC")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) printing: PrintingArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Allow a tool; repeatable
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    pub(crate) allow: Vec<String>,
    /// Deny a tool, whatever allows it; repeatable
    #[arg(long, value_name = "NAME", action = ArgAction::Append)]
    pub(crate) deny: Vec<String>,
    /// What counts as a loop: exact, soft, cycle or off
    #[arg(long = "loop", value_name = "RULE")]
    pub(crate) loops: Option<String>,
    /// The conversation's name, up to 200 characters: one that is there goes on. Without it one is made
    /// and printed
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Begin at this checkpoint of the thread, on a new branch: with TASK, or else with what was due there
    #[arg(long, value_name = "CHECKPOINT", requires = "thread")]
    pub(crate) from: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// What stands for a variable in the prompts of an agent's file; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", action = ArgAction::Append, value_parser = variable)]
    pub(crate) variables: Vec<(String, String)>,
    /// Run the loop by hand instead of the graph: nothing of the run is saved
    #[arg(long, conflicts_with_all = ["thread", "from"], help_heading = "Options of weather")]
    pub(crate) vanilla: bool,
    #[command(flatten)]
    pub(crate) research: ResearchArgs,
    /// The customer's number
    #[arg(
        long,
        value_name = "ID",
        default_value_t = 42,
        help_heading = "Options of support"
    )]
    pub(crate) user: u64,
}

/// How research is done.
#[derive(Group, Debug, Default)]
#[command(next_help_heading = "Options of research")]
pub(crate) struct ResearchArgs {
    /// Search this folder of documents (.md, .txt, .rst, .html) instead of the web; or an MCP server of an agent's file,
    /// written FILE.toml#SERVER
    #[arg(long, value_name = "DIR")]
    pub(crate) sources: Option<PathBuf>,
    /// Researchers per round, 1 to 64 [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) breadth: Option<u64>,
    /// Rounds of the supervisor, 1 to 50 [default: 6]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u64>,
    /// Ask a person after every N rounds: go on, stop with a report, or look into something else [default: 3 on a terminal,
    /// else never]
    #[arg(long, value_name = "N")]
    pub(crate) checkpoint_every: Option<u64>,
    /// Ask a person the same before a round that would pass this cost, or a multiple of it, in US dollars
    #[arg(long, value_name = "USD")]
    pub(crate) checkpoint_cost: Option<String>,
    /// Ask back first if the question can be understood in several ways [default: on a terminal]
    #[arg(long)]
    pub(crate) clarify: bool,
    /// Another model for a part: researcher, compressor, supervisor, red_team or writer (of triage: diagnosis or
    /// reviewer); repeatable
    #[arg(long = "role", value_name = "PART=SPEC", action = ArgAction::Append, value_parser = variable)]
    pub(crate) roles: Vec<(String, String)>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum EvalCommand {
    /// The research agent on questions about a built-in set of documents: what of the known facts its reports cover,
    /// and whether their citations hold, checked by code
    #[command(
        after_help = "Exit codes: 0 if every report was written and nothing in them is fabricated, else 3, or the code of \
                      the first run that failed."
    )]
    Research(EvalArgs),
    /// The gates of triage on cases with one right outcome each, every one a whole run with stand-ins for everything
    /// outside
    #[command(after_help = "Exit codes: 0 if every case passed every time, else 1.")]
    Gates(EvalGatesArgs),
    /// The diagnoses of a model on issues whose causes are known: a capability, reported with its intervals
    Diagnosis(EvalDiagnosisArgs),
}

/// Which gates are tried, and how often.
#[derive(Group, Debug)]
pub(crate) struct EvalGatesArgs {
    /// How often each case is run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) trials: u16,
    /// Only cases whose name begins like this, as `review/`; repeatable
    #[arg(long = "case", value_name = "NAME", action = ArgAction::Append)]
    pub(crate) cases: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose diagnoses are graded.
#[derive(Group, Debug)]
pub(crate) struct EvalDiagnosisArgs {
    /// The model that is measured
    #[arg(long, value_name = "SPEC")]
    pub(crate) model: Option<String>,
    /// A model that gives its opinion of each diagnosis besides; it is no part of the shares
    #[arg(long, value_name = "SPEC")]
    pub(crate) judge: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// What is measured, and with which models.
#[derive(Group, Debug)]
pub(crate) struct EvalArgs {
    /// The model that is measured
    #[arg(long, value_name = "SPEC")]
    pub(crate) model: Option<String>,
    /// A model that gives its opinion of each report besides; it is no part of the scores
    #[arg(long, value_name = "SPEC")]
    pub(crate) judge: Option<String>,
    /// Only this question; repeatable
    #[arg(long = "question", value_name = "ID", action = ArgAction::Append)]
    pub(crate) questions: Vec<String>,
    /// Researchers per round [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) breadth: Option<u64>,
    /// Rounds of the supervisor [default: 6]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u64>,
    /// Write the reports into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) reports: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// What of a run is shown where.
#[derive(Group, Debug)]
pub(crate) struct PrintingArgs {
    /// Print the result as JSON
    #[arg(long, conflicts_with = "events")]
    pub(crate) json: bool,
    /// Print every event as a line of JSON
    #[arg(long)]
    pub(crate) events: bool,
    /// Write every event as a line of JSON into FILE as well; a file that is there has to be empty or an older trace
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the report of a research run into FILE: .md, .html or .json
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Show no trace
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show the messages that go to the model and come from it
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// What a run may use.
#[derive(Group, Debug)]
#[command(next_help_heading = "Budgets")]
pub(crate) struct BudgetArgs {
    /// Decisions of the model
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<String>,
    /// Tool calls, denied ones too
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<String>,
    /// Seconds
    #[arg(long, value_name = "N")]
    pub(crate) max_seconds: Option<String>,
    /// Tokens, in and out
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<String>,
    /// US dollars; needs the model's price in paraph.toml
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<String>,
}

impl BudgetArgs {
    /// As settings: key, flag, and what was said.
    pub(crate) fn flags(&self) -> [(&'static str, &'static str, Option<&str>); 5] {
        [
            ("max_steps", "--max-steps", self.max_steps.as_deref()),
            (
                "max_tool_calls",
                "--max-tool-calls",
                self.max_tool_calls.as_deref(),
            ),
            ("max_seconds", "--max-seconds", self.max_seconds.as_deref()),
            ("max_tokens", "--max-tokens", self.max_tokens.as_deref()),
            ("max_cost", "--max-cost", self.max_cost.as_deref()),
        ]
    }
}

#[derive(Group, Debug)]
pub(crate) struct GraphArgs {
    /// The agent's name, or its file
    pub(crate) agent: String,
    /// The form of the drawing; without it FILE's ending says it, else it is mermaid
    #[arg(long, value_enum)]
    pub(crate) format: Option<DrawingFormat>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Draw subgraphs, and agents that are called, open, with what is inside
    #[arg(long)]
    pub(crate) xray: bool,
    /// How many pixels of a PNG one pixel of the SVG becomes, from 0.1 to 8. Default: 2, less for a large graph
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<f32>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawingFormat {
    /// Mermaid text
    Mermaid,
    /// Graphviz
    Dot,
    /// A picture for browsers and documents, in light and dark
    Svg,
    /// A picture in pixels
    Png,
    /// Characters, in at most 80 columns; a list if that is too few
    Ascii,
}

#[derive(Group, Debug)]
pub(crate) struct ExplainArgs {
    /// The stop reason, as `max_steps` or `tool_denied:NAME`; without it all are listed
    pub(crate) reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Group, Debug)]
pub(crate) struct DoctorArgs {
    /// An agent's file to look at as well
    pub(crate) file: Option<String>,
    /// Also ask the configured model for one word, which costs a few tokens
    #[arg(long)]
    pub(crate) online: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ConfigShowArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

#[derive(Group, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
