//! Searches against a table that was computed with the article's own texts, in CPython.

use super::*;

#[test]
fn a_query_finds_what_it_finds_in_the_articles_texts() {
    let table: &[(&str, &[&str])] = &[
        ("refund policy", &["refund-v3", "free-v1"]),
        ("refund", &["refund-v3", "free-v1"]),
        ("refunds", &["billing-v2"]),
        ("refundable", &["refund-v3"]),
        ("refunded", &["free-v1"]),
        ("policy", &["refund-v3", "free-v1"]),
        ("billing", &["billing-v2"]),
        ("billing rules", &["billing-v2"]),
        ("free", &["free-v1"]),
        ("free plan", &["free-v1"]),
        ("free plan refund", &["free-v1", "refund-v3"]),
        ("pro", &["refund-v3"]),
        ("pro monthly", &["refund-v3"]),
        ("pro monthly refund policy", &["refund-v3", "free-v1"]),
        ("pro_monthly refund", &["refund-v3", "free-v1"]),
        ("payment", &["refund-v3", "free-v1"]),
        ("payments", &["free-v1"]),
        ("first payment", &["refund-v3", "free-v1"]),
        ("original payment method", &["billing-v2", "refund-v3"]),
        ("USD", &["billing-v2"]),
        ("refund in usd", &["billing-v2", "refund-v3"]),
        ("14 days", &["refund-v3"]),
        ("30 days", &["refund-v3"]),
        ("within 14 days of payment", &["refund-v3", "free-v1"]),
        ("subscription cancellation", &["refund-v3"]),
        ("subscriptions", &["refund-v3"]),
        ("billable", &["free-v1"]),
        ("Can I get a refund now?", &["free-v1", "refund-v3"]),
        ("can a free user be refunded", &["free-v1", "refund-v3"]),
        (
            "what is the refund policy for pro monthly subscriptions",
            &["refund-v3", "free-v1"],
        ),
        ("return method", &["billing-v2"]),
        ("REFUND  POLICY", &["refund-v3", "free-v1"]),
        ("  refund\u{1c}policy\u{a0}free ", &["free-v1", "refund-v3"]),
        ("RULES", &["billing-v2"]),
        ("", &["refund-v3"]),
        ("   ", &["refund-v3"]),
        ("xyzzy", &["refund-v3"]),
        ("trial period", &["refund-v3"]),
        ("refund eligibility window", &["refund-v3", "free-v1"]),
        ("all refunds", &["billing-v2"]),
        ("money back guarantee", &["refund-v3"]),
        ("tier pro country US", &["refund-v3", "billing-v2"]),
        (
            "billing and refund rules for free plan",
            &["free-v1", "billing-v2"],
        ),
        ("non-refundable", &["refund-v3"]),
        ("refund policy monthly pro", &["refund-v3", "free-v1"]),
        ("und", &["refund-v3", "free-v1"]),
    ];
    for (query, expected) in table {
        let found: Vec<_> = search(query).iter().map(|document| document.id).collect();
        assert_eq!(found, *expected, "{query:?}");
    }
}
