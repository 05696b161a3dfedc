//! The protocol, explored: the very functions that ship, in a world of clients, clocks and a lossy
//! network.
//!
//! - [`single_steps`]: what one decision may and may not do, on Leases as odd as anybody can make.
//! - [`lost_answers`]: what a read says of a write whose answer never came.
//! - [`random_runs`]: long runs at microsecond precision, with stale reads, wrong prompts and other
//!   tools' writes.
//! - [`exhaustive`]: every reachable state of a small world.
//!
//! The last two share one [`world`], which knows nothing of how it is explored.
//!
//! # The shape
//! A [`client`] is a step function over copyable state: what it wants, hears or reads goes in
//! together with readings of its clocks, and what it sends comes out; it never sees the world. A
//! keeper is another such machine and takes the client's place, with one more input, the passing of
//! time, and "I have stopped" as an output; the world, the store and the property stay as they are.
//! Rules look at instants only through their differences, and at ids and versions only through
//! equality, so that a state is explored once for all times and names ([`canonical`]); a rule that
//! compared absolute values would undo that, and make the space infinite.
//!
//! Two things that a keeper must do are built into the client here, because the guarantee fails
//! without them: it reads the boot clock *before* it estimates the server's time (a pause between
//! the two, the other way round, is a clock that is behind by the pause), and whoever gives back
//! stops listening to answers of earlier writes, which would revive a belief that has ended.

mod canonical;
mod client;
mod exhaustive;
mod lost_answers;
mod odd;
mod random_runs;
mod single_steps;
mod store;
mod world;
