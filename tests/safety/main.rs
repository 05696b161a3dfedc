//! Forced deletion as a user runs it, on a real API server. The objects are as controllers and
//! kubelets leave them, but none of these run and change the objects during a test.

#[path = "../cli/support/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "shared with the tests of the other verbs, which need more of it"
)]
mod support;

mod checks;
mod deletion;
mod documented;
mod failures;
mod fixture;
mod locks;
mod next_command;
mod node;
mod overrides;
mod questions;
mod races;
mod requests;
mod rights;
mod roles;
mod unknown;
mod unreachable;
mod usage;
mod volumes;
mod warning;
mod why;
