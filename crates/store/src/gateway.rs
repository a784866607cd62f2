//! The gateway's records and counters.
