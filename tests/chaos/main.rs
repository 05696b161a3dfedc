//! Chaos on a real control plane: several contenders run commands under the lock of one node, while
//! processes are stopped and killed, networks cut, servers down, clocks wrong and locks broken. However
//! that goes, two commands never run at once, but as the guarantee says; nothing is left behind; and
//! everybody gets a turn in the end.

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
