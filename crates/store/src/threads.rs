//! Rows of threads.
