//! Long-term memory.
