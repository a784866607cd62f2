//! A process that runs a graph is killed, started again, and killed again; what is left must be as if
//! nothing had happened.
//!
//! Used by `paraph-crash` and by the tests of this package; nothing here is shipped. The parent holds the
//! outside world (`counter`), starts children (`launch`), plans and judges (`trial`, `check`); a child (`child`)
//! drives one of the `graphs` on a store until it is done. In reading order:
//! - `graphs`: what is run, and the effects it has;
//! - `outside`: how a node acts on the world;
//! - `counter`: the world, which counts;
//! - `failpoint`: a store that dies at a chosen write;
//! - `child`: the process that is killed;
//! - `launch`: starting it, reading what it says, killing it;
//! - `history`: a thread's past without ids and times, and how it would have been uncut;
//! - `check`: what must hold after the last kill;
//! - `trial`: one run with its kills, by a seed;
//! - `series`: many of them, and what is printed;
//! - `place`: where stores lie;
//! - `linger`: a child that writes when its lease is another's;
//! - `pace`: a child that only writes, at a given rate;
//! - `peer`: the same kills on LangGraph;
//! - `trace`: the order of writes and syncs, from what `strace` saw.

mod check;
mod child;
mod counter;
mod effects;
mod failpoint;
mod fuse;
mod graphs;
mod history;
mod hostile;
mod launch;
mod linger;
mod outside;
mod pace;
mod peer;
mod place;
mod purse;
mod race;
mod seed;
mod series;
mod stopping;
mod tally;
mod tamper;
mod trace;
mod trial;

pub use check::{Evidence, Findings, check};
pub use child::{Order, Stop, When, obey};
pub use counter::{Counter, Hit};
pub use effects::{Api, DOUBLES, Errand, Errands, Flaw, every_place, random_places, run_errand};
pub use graphs::Shape;
pub use history::{Uncut, uncut};
pub use hostile::hostile_episodes;
pub use launch::{Attempt, End, Launch, Line, Running};
pub use linger::{linger, take};
pub use pace::{Paced, pace};
pub use peer::{PeerSeries, peer_kills};
pub use place::{Place, Stand};
pub use purse::{calls_of_many, signatures_of_many, tokens_of_many};
pub use race::Races;
pub use seed::Seed;
pub use series::{Plan, Series, failpoints, random_kills};
pub use stopping::{Busy, Stopping, be_busy};
pub use tally::Tally;
pub use tamper::{tampered_exports, tampered_packs};
pub use trace::{Trace, Unsynced, read_trace};
pub use trial::{Trial, Verdict};

/// Whatever went wrong in the harness itself.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
