//! Rows of runs.
