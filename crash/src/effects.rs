//! An effect that is proposed, approved and carried out at the gateway, by processes that are killed meanwhile.
//!
//! The same parts as for graphs alone: the parent holds the outside world and judges, a child does all that is still
//! to be done. What is new is who counts: a payment service that recognises keys, and a forum that recognises
//! nothing, so that each comment carries a mark by which it is found again. In reading order:
//! - `world`: the payment service and the forum;
//! - `acting`: the two effects, and how they reach the world;
//! - `watched`: the gateway's store, with a place to die before and after each of its writes;
//! - `driving`: the child, which proposes, approves and drives on until all is done;
//! - `judging`: what must hold after the last kill;
//! - `trying`: one such run with its kills, and many of them.

mod acting;
mod driving;
mod judging;
mod trying;
mod watched;
mod world;

pub use acting::Flaw;
pub use driving::{Api, Errand, run_errand};
pub use trying::{DOUBLES, Errands, every_place, random_places};

pub(crate) use acting::{Pay, Reach};
pub(crate) use world::{Answer, Request, World, now_ms};
