//! How much is stored.
