//! The protocol, explored: the very steps that ship, in a world of clients, clocks and a lossy
//! network.
//!
//! - [`exhaustive`]: every reachable state of small worlds, and what must come to pass in them once
//!   faults have ended ([`progress`]).
//! - [`random_runs`]: long runs at microsecond precision, with stale reads, wrong prompts and other
//!   tools' writes.
//! - [`single_steps`]: what one decision may and may not do, on Leases as odd as anybody can make.
//! - [`lost_answers`]: what a read says of a write whose answer never came.
//! - `bugs`, with the feature `seeded-bugs`: the exploration catches mistakes that are planted.
//!
//! # The shape
//! A [`client`] drives the shipped `Waiter`, `WriteLoop` and `Keeper`, which judge and decide: what it
//! hears or reads goes in together with readings of its clocks, and what it sends comes out; it
//! never sees the [`world`]. The world knows nothing of how it is explored; [`bounds`] says which
//! worlds there are and what may happen next.
//!
//! A client believes that it holds the lock while its work may be running: until the deadline, even if
//! the loss was declared before, because work takes time to end. Pauses need no event of their own,
//! because no client is ever required to run. Only a machine whose boot clock stands still needs one.
//!
//! Rules look at instants through their differences, at ids through equality and at versions through
//! order, so that a state is explored once for all times and names ([`canonical`]); a rule that
//! compared absolute values would undo that, and make the space infinite.

#![cfg_attr(
    feature = "seeded-bugs",
    allow(dead_code, reason = "only the exploration looks for planted mistakes")
)]

mod bounds;
#[cfg(feature = "seeded-bugs")]
mod bugs;
mod canonical;
mod client;
#[cfg(not(feature = "seeded-bugs"))]
mod exhaustive;
mod explore;
#[cfg(not(feature = "seeded-bugs"))]
mod lost_answers;
mod progress;
#[cfg(not(feature = "seeded-bugs"))]
mod random_input;
#[cfg(not(feature = "seeded-bugs"))]
mod random_runs;
#[cfg(not(feature = "seeded-bugs"))]
mod single_steps;
mod store;
mod world;
