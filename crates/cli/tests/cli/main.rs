//! The built binary from outside: what scripts, tests and people can rely on. Nothing here needs a
//! network, a key or the machine's own configuration.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod agent_files;
mod approvals;
mod attacks;
mod audit;
mod called;
mod canaries;
mod configuration;
mod corpus;
mod decisions;
#[cfg(target_os = "linux")]
mod desk;
#[cfg(feature = "pictures")]
mod graphs;
mod hostile;
mod http_effects;
mod kill;
mod listings;
#[cfg(target_os = "linux")]
mod mcp;
mod models;
#[cfg(target_os = "linux")]
mod network;
mod odd_input;
#[cfg(unix)]
mod policy;
#[cfg(unix)]
mod postgres;
#[cfg(target_os = "linux")]
mod pseudo;
mod recordings;
#[cfg(unix)]
mod refund;
mod reports;
#[cfg(unix)]
mod research;
mod results;
mod resuming;
#[cfg(target_os = "linux")]
#[path = "../../../tools/tests/rude/mod.rs"]
mod rude;
mod runs;
mod sandbox;
mod searched;
#[path = "../../../tools/tests/stand_in/mod.rs"]
mod stand_in;
mod stops;
mod stores;
mod streams;
mod threads;
mod triage;
mod usage;
mod weather;
