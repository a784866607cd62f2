//! Ten short documents of our own about retrieval-augmented generation, for the rehearsal, examples and the evaluation.
//!
//! Every figure in them belongs to a test that was made up for them, and each says so. Two of them contradict each
//! other on purpose. Whoever changes one has to look at the questions of the evaluation: their gold facts stand here.

/// The documents by their paths, which are those of the files, so that the folder itself can be searched as well.
const DOCUMENTS: [(&str, &str); 10] = [
    (
        "access-rights.md",
        include_str!("documents/access-rights.md"),
    ),
    ("chunking.md", include_str!("documents/chunking.md")),
    ("citations.md", include_str!("documents/citations.md")),
    (
        "cost-and-latency.md",
        include_str!("documents/cost-and-latency.md"),
    ),
    ("evaluation.md", include_str!("documents/evaluation.md")),
    ("freshness.md", include_str!("documents/freshness.md")),
    (
        "hybrid-search.md",
        include_str!("documents/hybrid-search.md"),
    ),
    (
        "made-up-answers.md",
        include_str!("documents/made-up-answers.md"),
    ),
    (
        "query-rewriting.md",
        include_str!("documents/query-rewriting.md"),
    ),
    ("reranking.md", include_str!("documents/reranking.md")),
];

/// Documents for trying out the research agent without a network, each a path and its text in Markdown.
///
/// ```
/// let documents = paraph_agents::sample_documents();
/// assert_eq!(documents.len(), 10);
/// assert!(documents.iter().any(|(path, text)| *path == "chunking.md" && text.contains("200 words")));
/// ```
#[must_use]
pub fn sample_documents() -> &'static [(&'static str, &'static str)] {
    &DOCUMENTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_are_short_say_that_they_are_made_up_and_are_those_of_the_folder() {
        for (path, text) in sample_documents() {
            let words = text.split_whitespace().count();
            assert!((250..=450).contains(&words), "{path} has {words} words");
            let text = text.to_lowercase();
            let owns_up = ["invented", "made up", "made-up", "never took place"];
            assert!(
                text.starts_with("# ") && text.contains("larkfield"),
                "{path}"
            );
            assert!(owns_up.iter().any(|words| text.contains(words)), "{path}");
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/research/documents");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let paths: Vec<_> = sample_documents().iter().map(|(path, _)| *path).collect();
        assert_eq!(paths, files);
    }
}
