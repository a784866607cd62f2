//! Where the corpus's issues come from if no file is named.
//!
//! The corpus's commands ask here.

use crate::config::Config;
use crate::failure::Failure;
use paraph_retrieval::IssueSource;

/// What reads issues from a tracker: nothing does in this version.
pub(crate) fn source(_config: &Config) -> Result<Box<dyn IssueSource>, Failure> {
    Err(Failure::Usage(
        "this version reads issues from files: --from FILE".to_owned(),
    ))
}
