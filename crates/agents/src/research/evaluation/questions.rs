//! The questions about the sample documents, as a table. Pure data; the tests make sure that it fits the documents.

use super::{GoldFact, QuestionKind, ResearchQuestion};
use QuestionKind::{Contradiction, Several, Single, Unanswerable};

/// Name, phrases, path.
type Fact = (&'static str, &'static [&'static str], &'static str);

/// Where a fact stands that no document holds.
const NOWHERE: &str = "";

/// How a report says that it found nothing.
const FOUND_NOTHING: &[&str] = &[
    "documents do not",
    "sources do not",
    "do not say which",
    "does not say which",
    "do not state",
    "does not state",
    "not stated",
    "do not mention",
    "does not mention",
    "not mentioned",
    "not named",
    "no source says",
    "no document says",
    "none of the sources",
    "none of the documents",
    "no information",
    "not in the documents",
    "not in the sources",
    "could not be found",
    "could not be answered",
    "cannot be answered",
    "not found in",
    "was not found",
    "were not found",
    "nothing was found",
    "nothing that answers",
    "found nothing about",
    "did not find",
    "is not known",
    "is unknown",
];

const QUESTIONS: [(&str, QuestionKind, &str, &[Fact]); 16] = [
    (
        "overlap",
        Single,
        "Does it help when neighbouring passages overlap, and what does more of it cost?",
        &[
            (
                "found with overlap",
                &["87 to 89 percent", "89 percent"],
                "chunking.md",
            ),
            (
                "size of the index",
                &["a quarter", "25 percent"],
                "chunking.md",
            ),
        ],
    ),
    (
        "fusion",
        Single,
        "How are the results of a keyword search and of a vector search merged into one list?",
        &[
            (
                "the method",
                &["reciprocal rank fusion"],
                "hybrid-search.md",
            ),
            (
                "why scores are not added",
                &["not on one scale", "different scales"],
                "hybrid-search.md",
            ),
            (
                "found by both together",
                &["88 percent"],
                "hybrid-search.md",
            ),
        ],
    ),
    (
        "reranker",
        Single,
        "What does a cross-encoder as a reranker bring, and how long does it take?",
        &[
            ("first place before", &["52 percent"], "reranking.md"),
            ("first place after", &["74 percent"], "reranking.md"),
            (
                "delay",
                &["180 milliseconds", "180 ms", "0.18 seconds"],
                "reranking.md",
            ),
        ],
    ),
    (
        "follow-up",
        Single,
        "How well are questions found that lean on the turn before, with and without rewriting?",
        &[
            ("found as they are", &["58 percent"], "query-rewriting.md"),
            (
                "found when rewritten",
                &["81 percent"],
                "query-rewriting.md",
            ),
        ],
    ),
    (
        "leaks",
        Single,
        "How did words of forbidden documents get into answers although the search never returned those documents?",
        &[
            (
                "how many",
                &["three of the words", "three words", "three leaks"],
                "access-rights.md",
            ),
            (
                "the way",
                &[
                    "from the cache",
                    "cached answer",
                    "the cache, which",
                    "through the cache",
                ],
                "access-rights.md",
            ),
        ],
    ),
    (
        "nightly-index",
        Single,
        "How long does the nightly run of the index take, and how are changed pages recognised?",
        &[
            ("duration", &["14 minutes"], "freshness.md"),
            (
                "recognised by",
                &["a hash", "hashes", "hash of the text", "whose hash"],
                "freshness.md",
            ),
        ],
    ),
    (
        "judge",
        Single,
        "How far can a language model be trusted as a judge of answers?",
        &[
            ("agreement with people", &["76 percent"], "evaluation.md"),
            ("prefers longer answers", &["61 percent"], "evaluation.md"),
        ],
    ),
    (
        "time",
        Single,
        "Which step takes most of the time until an answer is complete?",
        &[
            ("the whole", &["2.4 seconds"], "cost-and-latency.md"),
            (
                "the model that writes",
                &["1.7 seconds"],
                "cost-and-latency.md",
            ),
        ],
    ),
    (
        "limits",
        Single,
        "Which limits should a question have that can set off many searches, and what happens at the limit?",
        &[
            (
                "without a limit",
                &["140 times", "140 searches"],
                "cost-and-latency.md",
            ),
            (
                "the money",
                &["ten cents", "10 cents"],
                "cost-and-latency.md",
            ),
            ("at the limit", &["incomplete"], "cost-and-latency.md"),
        ],
    ),
    (
        "made-up",
        Several,
        "What makes invented answers and invented citations rarer?",
        &[
            ("allowed to say no", &["38 to 7"], "made-up-answers.md"),
            ("citations before", &["5.4 percent"], "citations.md"),
            (
                "citations after",
                &["none of 2,300", "0 of 2,300"],
                "citations.md",
            ),
        ],
    ),
    (
        "fewer-passages",
        Several,
        "What is gained when fewer passages are put into the prompt?",
        &[
            ("cost", &["45 percent"], "cost-and-latency.md"),
            (
                "the middle is overlooked",
                &["61 percent"],
                "made-up-answers.md",
            ),
            (
                "reranking pays then",
                &["eight points", "8 points"],
                "reranking.md",
            ),
        ],
    ),
    (
        "caches",
        Several,
        "What can go wrong when answers are kept in a cache?",
        &[
            ("rights", &["more rights"], "access-rights.md"),
            (
                "age",
                &["has changed", "out of date", "grow old", "outdated"],
                "freshness.md",
            ),
            (
                "similar questions",
                &["one in twelve", "1 in 12", "one of twelve"],
                "cost-and-latency.md",
            ),
        ],
    ),
    (
        "part-numbers",
        Several,
        "What helps and what harms when a question contains a part number?",
        &[
            ("keyword search", &["95 percent"], "hybrid-search.md"),
            ("vector search", &["42 percent"], "hybrid-search.md"),
            (
                "made-up passages",
                &["invented numbers"],
                "query-rewriting.md",
            ),
        ],
    ),
    (
        "passage-length",
        Contradiction,
        "Are short or long passages better for retrieval?",
        &[
            ("short ones, first count", &["87 percent"], "chunking.md"),
            ("long ones, first count", &["79 percent"], "chunking.md"),
            ("long ones, second count", &["86 percent"], "evaluation.md"),
            ("short ones, second count", &["81 percent"], "evaluation.md"),
            (
                "that they contradict",
                &[
                    "opposite",
                    "contradict",
                    "disagree",
                    "did not settle",
                    "remains open",
                    "conflicting",
                ],
                "evaluation.md",
            ),
        ],
    ),
    (
        "embedding-model",
        Unanswerable,
        "Which embedding model did the Larkfield trial use, and who sells it?",
        &[("says that it is not there", FOUND_NOTHING, NOWHERE)],
    ),
    (
        "fine-tuning",
        Unanswerable,
        "What did it cost the Larkfield trial to fine-tune a model on its manuals?",
        &[("says that it is not there", FOUND_NOTHING, NOWHERE)],
    ),
];

/// The questions about [`sample_documents`](crate::sample_documents).
pub fn research_questions() -> Vec<ResearchQuestion> {
    let all = QUESTIONS
        .iter()
        .map(|(id, kind, question, facts)| ResearchQuestion {
            id: (*id).to_owned(),
            kind: *kind,
            question: (*question).to_owned(),
            facts: facts.iter().map(fact).collect(),
        });
    all.collect()
}

fn fact((name, phrases, path): &Fact) -> GoldFact {
    GoldFact {
        name: (*name).to_owned(),
        phrases: phrases.iter().map(|phrase| (*phrase).to_owned()).collect(),
        path: (*path != NOWHERE).then(|| (*path).to_owned()),
    }
}
