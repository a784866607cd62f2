//! The commands of whoever watches over effects: what waits for people, the kill switch, and the audit.

use super::{PrintingArgs, StoreArgs};
use clap::{Args as Group, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum ApprovalsCommand {
    /// List what waits for people
    #[command(
        after_help = "Examples:\n  paraph approvals list\n  paraph approvals list --all --json\n  \
                      paraph approvals list --state rejected"
    )]
    List(ApprovalsListArgs),
    /// Show one action: what would happen, to the byte, and how it stands
    #[command(after_help = "Example: paraph approvals show 01920000-…\n\n\
                      It shows the exact bytes that are signed, secrets in them too; everything else shows\n\
                      an action without secrets.")]
    Show(ApprovalShowArgs),
    /// Approve the bytes of a digest, do it, and drive the run to its next stop
    #[command(
        after_help = "Example: paraph approvals approve 01920000-… --digest 4f1c09d2ab77…\n\n\
                      The digest is the one that `paraph approvals show` prints; its first 12 digits are enough. This\n\
                      process then goes on with the run as `paraph runs resume` does, with the same exit codes."
    )]
    Approve(ApproveArgs),
    /// Refuse the bytes of a digest; the model reads the reason
    #[command(
        after_help = "Example: paraph approvals reject 01920000-… --digest 4f1c09d2ab77… --reason \"the order was paid back\"\n\n\
                      What the action was about is closed for its thread from then on, until somebody reopens it."
    )]
    Reject(RejectArgs),
    /// Ask for something else before anybody decides; the model reads the reason and may ask again
    #[command(
        after_help = "Example: paraph approvals ask-change 01920000-… --digest 4f1c09d2ab77… --reason \"only half of it\"\n\n\
                      The action is over (superseded) and nothing is closed. After three times about the same on a thread\n\
                      somebody has to approve, edit or refuse."
    )]
    AskChange(RejectArgs),
    /// Answer in words in the place of what was asked for, which is not done
    #[command(
        after_help = "Example: paraph approvals respond 01920000-… --digest 4f1c09d2ab77… --answer \"the order is paid back already\""
    )]
    Respond(RespondArgs),
    /// Put other arguments in the place of an action's; what comes of it waits for a decision of its own
    #[command(
        after_help = "Examples:\n  paraph approvals edit 01920000-… --digest 4f1c09d2ab77… --args '{\"cents\":500}'\n  \
                      paraph approvals edit 01920000-… --digest 4f1c09d2ab77… --args @arguments.json\n\n\
                      Without --args they are opened in $EDITOR."
    )]
    Edit(EditArgs),
    /// Let what was refused, or what nobody decided about, be asked for again on its thread
    #[command(after_help = "Example: paraph approvals reopen 01920000-…")]
    Reopen(ReopenArgs),
    /// Say what came of an action of which nobody saw what came of it (state `unknown`)
    #[command(
        after_help = "Examples:\n  paraph approvals settle 01920000-… --digest 4f1c… --happened '{\"id\":7}' --reason \"it is in the ledger\"\n  \
                      paraph approvals settle 01920000-… --digest 4f1c… --did-not-happen --reason \"the ledger has no such entry\""
    )]
    Settle(SettleArgs),
    /// Print what waits, and whatever comes to wait, until Ctrl-C
    #[command(after_help = "Example: paraph approvals watch --json | while read line; do …; done")]
    Watch(ApprovalsWatchArgs),
}

/// From which store, and how it is printed.
#[derive(Group, Debug)]
pub(crate) struct StoredArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ApprovalsListArgs {
    /// Those in every state, not only those that wait
    #[arg(long, conflicts_with = "state")]
    pub(crate) all: bool,
    /// Those in this state only: pending, approved, held, executing, unknown, succeeded, failed, rejected, expired,
    /// edited, drifted, cancelled, superseded or answered
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// The issues that triage left to people, instead of actions
    #[arg(long, conflicts_with_all = ["all", "state"])]
    pub(crate) handoffs: bool,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ApprovalShowArgs {
    /// The action's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

/// Which action, and that it was looked at.
#[derive(Group, Debug)]
pub(crate) struct WhichAction {
    /// The action's id; `paraph approvals list` lists them
    pub(crate) id: String,
    /// The digest of the bytes that were looked at, or its first 12 digits or more
    #[arg(long, value_name = "SHA")]
    pub(crate) digest: Option<String>,
}

/// What happens after a decision.
#[derive(Group, Debug)]
pub(crate) struct AfterwardsArgs {
    /// Only write the decision down; the run goes on with `paraph runs resume`
    #[arg(long)]
    pub(crate) no_run: bool,
    #[command(flatten)]
    pub(crate) printing: PrintingArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) which: WhichAction,
    #[command(flatten)]
    pub(crate) then: AfterwardsArgs,
}

#[derive(Group, Debug)]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    pub(crate) which: WhichAction,
    /// Why, for the model and for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) then: AfterwardsArgs,
}

#[derive(Group, Debug)]
pub(crate) struct RespondArgs {
    #[command(flatten)]
    pub(crate) which: WhichAction,
    /// The answer, which the model reads as what came of its call
    #[arg(long, value_name = "TEXT")]
    pub(crate) answer: String,
    #[command(flatten)]
    pub(crate) then: AfterwardsArgs,
}

#[derive(Group, Debug)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    pub(crate) which: WhichAction,
    /// The other arguments, as JSON or as @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) args: Option<String>,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ReopenArgs {
    /// The action's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Group, Debug)]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    pub(crate) which: WhichAction,
    /// It happened: the receipt as JSON, for the model
    #[arg(
        long,
        value_name = "RECEIPT",
        required_unless_present = "did_not_happen"
    )]
    pub(crate) happened: Option<String>,
    /// It did not happen
    #[arg(long, conflicts_with = "happened")]
    pub(crate) did_not_happen: bool,
    /// How you know
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) then: AfterwardsArgs,
}

#[derive(Group, Debug)]
pub(crate) struct ApprovalsWatchArgs {
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum KillCommand {
    /// Stop everything within a scope, in all processes on this store; what is under way comes to its end
    #[command(
        after_help = "Examples:\n  paraph kill on --scope global --reason \"looking into it\"\n  \
                      paraph kill on --scope tool:issue_refund --reason \"wrong amounts\"\n\n\
                      Runs that meet the switch stop with killed_global, killed_tenant, writes_disabled or tool_disabled:T.\n\
                      What was approved and not started is held: people decide about it anew."
    )]
    On(KillOnArgs),
    /// Let a scope go on
    #[command(after_help = "Example: paraph kill off --scope global")]
    Off(KillOffArgs),
    /// Show the switches that are on
    #[command(after_help = "Example: paraph kill status --json")]
    Status(KillStatusArgs),
}

#[derive(Group, Debug)]
pub(crate) struct KillOnArgs {
    /// global, writes, agent:NAME, tool:NAME or tenant:NAME
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: String,
    /// Why, for whoever meets it and for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Group, Debug)]
pub(crate) struct KillOffArgs {
    /// The scope, as it was put on
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: String,
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Group, Debug)]
pub(crate) struct KillStatusArgs {
    #[command(flatten)]
    pub(crate) out: StoredArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum AuditCommand {
    /// List what happened to actions and switches, the oldest first
    #[command(after_help = "Example: paraph audit list --after 100 --limit 50 --json")]
    List(AuditListArgs),
    /// Check the whole chain, entry by entry, and against anchors that were kept elsewhere
    #[command(
        after_help = "Examples:\n  paraph audit verify\n  paraph audit verify --anchor /media/usb/anchors.jsonl\n\n\
                      Exit codes: 0 the chain is whole, 6 it is broken (the first wrong entry is named), 2 an anchor\n\
                      cannot be read. Without an anchor nobody can see whether the end of the chain was cut off or\n\
                      written anew by whoever owns the store."
    )]
    Verify(AuditVerifyArgs),
    /// Write down the last entry's number and hash, to be kept where the store's owner cannot change it
    #[command(
        after_help = "Examples:\n  paraph audit anchor -o /media/usb/anchors.jsonl   (adds a line)\n  \
                      paraph audit anchor --to https://notary.example/anchors\n\n\
                      The setting audit.anchor (PARAPH_AUDIT_ANCHOR) names such a place for every command, and\n\
                      audit.anchor_every after how many entries an anchor is kept there. PARAPH_AUDIT_ANCHOR_TOKEN is\n\
                      sent to servers as a bearer token."
    )]
    Anchor(AuditAnchorArgs),
    /// Erase for ever what is personal beside the chain; the chain stays whole, and tells who erased
    #[command(
        after_help = "Examples:\n  paraph audit erase --user ann --reason \"she asked for it\"\n  \
                      paraph audit erase --subject order:7 --reason \"kept long enough\" --yes\n\n\
                      The bytes of actions and what runs have said stand beside their threads, and go with\n\
                      `paraph threads delete`."
    )]
    Erase(AuditEraseArgs),
    /// Write the whole chain as lines of JSON
    #[command(after_help = "Example: paraph audit export -o audit.jsonl")]
    Export(AuditExportArgs),
    /// Write all that a third party needs to check one action: its bytes, its part of the chain, anchors
    #[command(
        after_help = "Examples:\n  paraph audit pack 01920000-… -o evidence.json --anchor /media/usb/anchors.jsonl\n  \
                      paraph audit verify --pack evidence.json   (needs nothing but the file)"
    )]
    Pack(AuditPackArgs),
}

/// Whose chain.
#[derive(Group, Debug)]
pub(crate) struct WhichChain {
    /// Whose chain
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub(crate) tenant: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Group, Debug)]
pub(crate) struct AuditListArgs {
    /// Only entries behind this one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: u64,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = super::stored::at_least_one)]
    pub(crate) limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) chain: WhichChain,
}

#[derive(Group, Debug)]
pub(crate) struct AuditVerifyArgs {
    /// Check this evidence pack instead of the store's chain
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<PathBuf>,
    /// A file of anchors, as `paraph audit anchor` writes it; repeatable
    #[arg(long = "anchor", value_name = "FILE")]
    pub(crate) anchors: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) chain: WhichChain,
}

#[derive(Group, Debug)]
pub(crate) struct AuditAnchorArgs {
    /// Add the line to this file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Hand it to file:PATH, command:LINE (on its input) or https://… (as JSON by POST) instead of printing it
    #[arg(long, value_name = "PLACE", conflicts_with = "output")]
    pub(crate) to: Option<String>,
    #[command(flatten)]
    pub(crate) chain: WhichChain,
}

/// Whose personal data, exactly one of the three.
#[derive(Group, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct WhoseArgs {
    /// What was said about this action
    #[arg(long, value_name = "ID")]
    pub(crate) action: Option<String>,
    /// What was said about actions on this user's behalf, and wherever they decided or were shown something
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// What was said about actions that are about this, such as order:7
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
}

#[derive(Group, Debug)]
pub(crate) struct AuditEraseArgs {
    #[command(flatten)]
    pub(crate) whose: WhoseArgs,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Do not ask back
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) chain: WhichChain,
}

#[derive(Group, Debug)]
pub(crate) struct AuditExportArgs {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) chain: WhichChain,
}

#[derive(Group, Debug)]
pub(crate) struct AuditPackArgs {
    /// The action's id
    pub(crate) id: String,
    /// A file of anchors, as `paraph audit anchor` writes it; repeatable
    #[arg(long = "anchor", value_name = "FILE")]
    pub(crate) anchors: Vec<PathBuf>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
