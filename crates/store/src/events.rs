//! The log of a thread.

/// Tells those who wait that a log has grown.
#[derive(Debug, Default)]
pub(crate) struct Growth {}
