//! Chaos on a real control plane. Several contenders run commands under the lock of one node, while processes are
//! stopped and killed, networks cut, servers down, clocks wrong and locks broken. In every case, two commands run at
//! the same time only as far as the guarantee allows. No process is left behind, and in the end every contender gets
//! the lock again.

mod checker;
#[path = "../support/faketime.rs"]
mod faketime;
mod history;
#[path = "../support/namespace.rs"]
mod namespace;
mod scenarios;
mod support;
#[path = "../support/wall_clock.rs"]
mod wall_clock;
