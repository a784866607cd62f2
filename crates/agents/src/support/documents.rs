//! What the support agent's tools know: two customers, their billing, three policy documents.
//!
//! The values are the article's. The documents are worded anew, with the same words in the same
//! documents, so that a query finds what it would find there.

use serde::Serialize;

/// A customer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct User {
    pub(super) id: i128,
    pub(super) name: &'static str,
    pub(super) country: &'static str,
    pub(super) tier: &'static str,
}

/// What a customer pays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Billing {
    pub(super) currency: &'static str,
    pub(super) plan: &'static str,
    pub(super) price_usd: f64,
    pub(super) days_since_first_payment: u32,
}

/// A piece of policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct PolicyDocument {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) snippet: &'static str,
}

pub(super) const CUSTOMERS: [(User, Billing); 2] = [
    (
        User {
            id: 42,
            name: "Anna",
            country: "US",
            tier: "pro",
        },
        Billing {
            currency: "USD",
            plan: "pro_monthly",
            price_usd: 49.0,
            days_since_first_payment: 10,
        },
    ),
    (
        User {
            id: 7,
            name: "Max",
            country: "US",
            tier: "free",
        },
        Billing {
            currency: "USD",
            plan: "free",
            price_usd: 0.0,
            days_since_first_payment: 120,
        },
    ),
];

pub(super) const POLICY: [PolicyDocument; 3] = [
    PolicyDocument {
        id: "refund-v3",
        title: "Pro refund policy",
        snippet: "Counted from the first payment, monthly Pro subscriptions are refundable within 14 days.",
    },
    PolicyDocument {
        id: "free-v1",
        title: "Free-plan policy",
        snippet: "Cannot ever be refunded, and has no billable payments.",
    },
    PolicyDocument {
        id: "billing-v2",
        title: "All billing rules",
        snippet: "Refunds are returned in USD, to the payment method originally used.",
    },
];

/// How many documents a search gives at most.
const MOST: usize = 2;

/// The documents that contain most of the query's words, anywhere in title or text; those with equally
/// many in the order of the list. A query that finds nothing gets the first document.
pub(super) fn search(query: &str) -> Vec<PolicyDocument> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(is_space)
        .filter(|word| !word.is_empty())
        .collect();
    let score = |document: &PolicyDocument| {
        let text = format!("{} {}", document.title, document.snippet).to_lowercase();
        words.iter().filter(|word| text.contains(**word)).count()
    };
    let mut found: Vec<_> = POLICY
        .iter()
        .map(|document| (score(document), *document))
        .filter(|(score, _)| *score > 0)
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.truncate(MOST);
    match found.is_empty() {
        true => POLICY.iter().take(1).copied().collect(),
        false => found.into_iter().map(|(_, document)| document).collect(),
    }
}

/// What Python's `str.split` takes as space.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

#[cfg(test)]
mod tests;
