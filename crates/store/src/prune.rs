//! Removing checkpoints, and what only they needed.
