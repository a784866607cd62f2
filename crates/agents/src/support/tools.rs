//! The support agent's three tools of its own, which read and decide nothing, the one it may be given that gives money
//! back, and the gateway they stand behind.

use super::documents::{Billing, CUSTOMERS, PolicyDocument, User, search};
use crate::Error;
use paraph_gateway::{Ask, Builder, DynTool, Gateway, Policy, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What gives money back, if the program brings it: its name, and what it does.
pub(crate) const REFUND: (&str, &str) = (
    "issue_refund",
    "Gives a user money back, after a person has approved it",
);

/// Name and description of each tool that reads, in the order in which the model sees them.
pub(crate) const TOOLS: [(&str, &str); 3] = [
    (
        "get_user_profile",
        "Looks up who a user is and which tier they have",
    ),
    (
        "get_user_billing",
        "Looks up a user's plan, price and days since the first payment",
    ),
    (
        "search_policy",
        "Finds the refund and billing rules that fit a few words",
    ),
];

#[derive(Deserialize, JsonSchema)]
struct UserRef {
    /// The user's number.
    user_id: i128,
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// A few words.
    query: String,
}

/// A user who is not there is an answer, not a failure: the model is to read it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Found {
    User(User),
    Billing(Billing),
    Error(String),
}

#[derive(Serialize)]
struct Matches {
    matches: Vec<PolicyDocument>,
}

async fn profile(user: UserRef) -> Result<Found, ToolError> {
    let found = CUSTOMERS.iter().find(|(known, _)| known.id == user.user_id);
    Ok(match found {
        Some((user, _)) => Found::User(*user),
        None => Found::Error(format!("user {} not found", user.user_id)),
    })
}

async fn billing(user: UserRef) -> Result<Found, ToolError> {
    let found = CUSTOMERS.iter().find(|(known, _)| known.id == user.user_id);
    Ok(match found {
        Some((_, billing)) => Found::Billing(*billing),
        None => Found::Error(format!(
            "billing record for user {} not found",
            user.user_id
        )),
    })
}

async fn policy(query: Query) -> Result<Matches, ToolError> {
    Ok(Matches {
        matches: search(&query.query),
    })
}

/// The gateway with all tools. The allowlist is they, and `allow`; about the refund a person is asked, whoever allows
/// it; `deny` beats all.
pub(super) fn gateway(
    builder: Builder,
    refund: Option<DynTool>,
    (allow, deny): (&[String], &[String]),
) -> Result<Gateway, Error> {
    let [
        (profile_name, profile_about),
        (billing_name, billing_about),
        (policy_name, policy_about),
    ] = TOOLS;
    let mut rules = Policy::new()
        .allow([profile_name, billing_name, policy_name])
        .allow_unregistered(allow)
        .deny(deny);
    let mut builder = builder
        .read(profile_name, profile_about, profile)
        .read(billing_name, billing_about, billing)
        .read(policy_name, policy_about, policy);
    if let Some(refund) = refund {
        rules = rules.ask(refund.name.clone(), Ask::default());
        builder = builder.dynamic(refund);
    }
    Ok(builder.policy(rules).build()?)
}
