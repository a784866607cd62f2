//! The commands on the rules of agents in files, and on their standing grants.

use super::signed::StoredArgs;
use clap::{ArgAction, Args as Group, Subcommand};
use paraph_gateway::{Decimal, Scalar};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum PolicyCommand {
    /// Try every example of every rule in an agent's file
    #[command(after_help = "Example: paraph policy test agent.toml --json\n\n\
                      Exit codes: 0 every example comes out as its rule says, 2 one does not, or the file has other\n\
                      mistakes (`paraph check` finds them all).")]
    Test(PolicyTestArgs),
    /// Say what the rules decide about a call, which of them, and why not the others; nothing is called
    #[command(
        after_help = "Examples:\n  paraph policy explain agent.toml issue_refund\n  \
                      paraph policy explain agent.toml '{\"tool\": \"issue_refund\", \"args\": {\"user_id\": 42, \"amount_cents\": 300, \"reason\": \"late\"}}'\n  \
                      paraph policy explain agent.toml '{\"tool\": \"issue_refund\"}' --read web_search --bind user=42 --at 2026-11-30T23:15:00Z\n\n\
                      Grants that were revoked are so in the store, if it is there.\n\n\
                      Exit codes: 0 whatever the rules say, 2 a call or a file that cannot be read, an unknown tool."
    )]
    Explain(PolicyExplainArgs),
    /// List the standing grants of an agent's file: what each signs, how far it is used up, how it stands
    #[command(after_help = "Example: paraph policy grants agent.toml --json\n\n\
                      What is counted is counted in the store, for one tenant, by the name of the grant.")]
    Grants(GrantsArgs),
    /// Take a standing grant back: it signs nothing any more, in any process on the store
    #[command(
        after_help = "Examples:\n  paraph policy revoke agent.toml small --reason \"too many in one night\"\n  \
                      paraph policy revoke clerk small --reason \"its file is gone\"\n\n\
                      When the command has returned, nothing starts that the grant has signed: that is held, and people\n\
                      decide anew. The file stays as it is; `paraph policy restore` lets the grant sign again."
    )]
    Revoke(RevokeArgs),
    /// Let a grant that was revoked sign again, within what its policy says
    #[command(
        after_help = "Example: paraph policy restore agent.toml small --reason \"it was a holiday\""
    )]
    Restore(RevokeArgs),
}

#[derive(Group, Debug)]
pub(crate) struct GrantsArgs {
    /// The agent's file
    pub(crate) file: PathBuf,
    /// Only those of this agent of the file
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Whose data: what is used up is counted for each tenant
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(crate) tenant: String,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

/// Which grant is meant.
#[derive(Group, Debug)]
pub(crate) struct WhichGrant {
    /// The agent's file; or an agent's name, and then nobody looks whether it has such a grant
    pub(crate) agent: PathBuf,
    /// The grant's name
    pub(crate) grant: String,
    /// The agent of the file whose grant it is, if several have one of this name
    #[arg(long = "agent", id = "of", value_name = "NAME")]
    pub(crate) of: Option<String>,
}

#[derive(Group, Debug)]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub(crate) which: WhichGrant,
    /// Why, for whoever lists it and for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Group, Debug)]
pub(crate) struct PolicyTestArgs {
    /// The agent's file
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Group, Debug)]
pub(crate) struct PolicyExplainArgs {
    /// The agent's file
    pub(crate) file: PathBuf,
    /// A call as JSON, `{"tool": NAME, "args": {…}}`; `-` reads it from standard input. Or a tool's name: then all
    /// that the rules say about it
    pub(crate) call: String,
    /// The agent of the file that makes the call; the main one if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// For whom the agent acts; the local user if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Whose data it is
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(crate) tenant: String,
    /// The thread
    #[arg(long, value_name = "NAME", default_value = "a thread")]
    pub(crate) thread: String,
    /// When, such as 2026-11-30T23:15:00Z; now if left out
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<u64>,
    /// A tool that the run has read from before; repeatable
    #[arg(long = "read", value_name = "TOOL", action = ArgAction::Append)]
    pub(crate) read: Vec<String>,
    /// A target that the program has bound for the run; repeatable
    #[arg(long = "bind", value_name = "NAME=VALUE", action = ArgAction::Append, value_parser = target)]
    pub(crate) bound: Vec<(String, Scalar)>,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

fn moment(text: &str) -> Result<u64, String> {
    let wrong = || "write a date, a time and a zone: 2026-11-30T23:15:00Z".to_owned();
    paraph_gateway::instant(text).ok_or_else(wrong)
}

/// A target by its name: a number, `true` or `false`, or else a text, which quotes keep from being one of those.
fn target(text: &str) -> Result<(String, Scalar), String> {
    let (name, value) = super::files::variable(text)?;
    let quoted = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let scalar = match (quoted, value.as_str(), Decimal::read(&value)) {
        (Some(text), _, _) => Scalar::Text(text.to_owned()),
        (None, "true", _) => Scalar::Bool(true),
        (None, "false", _) => Scalar::Bool(false),
        (None, _, Some(number)) => Scalar::Number(number),
        (None, text, None) => Scalar::Text(text.to_owned()),
    };
    Ok((name, scalar))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_number_a_truth_value_or_a_text() {
        let number = |text: &str| Scalar::Number(Decimal::read(text).unwrap());
        let table = [
            ("user=42", number("42")),
            ("user=1e3", number("1e3")),
            ("user=\"42\"", Scalar::Text("42".into())),
            ("user=true", Scalar::Bool(true)),
            ("user=I_kw=", Scalar::Text("I_kw=".into())),
        ];
        for (text, expected) in table {
            assert_eq!(target(text), Ok(("user".to_owned(), expected)), "{text}");
        }
        assert_eq!(target("user"), Err("write NAME=VALUE".to_owned()));
    }
}
