//! The plugin as users run it: a command line in, and stdout, stderr and the exit code out. It runs on an in-memory API
//! server and on a real one.

#[path = "../support/faketime.rs"]
mod faketime;
#[path = "../support/modules.rs"]
mod modules;
mod support;
#[path = "../support/verbs.rs"]
mod verbs;
#[path = "../support/wall_clock.rs"]
mod wall_clock;

mod acquire;
mod acquire_wait;
mod bad_input;
mod cluster_problems;
mod confirmation;
mod credential_plugin;
mod describe;
mod doctor;
mod fencing;
mod held_label;
mod hints;
mod history;
mod hold;
mod holder;
mod interrupted;
mod json;
mod leases;
mod long_leases;
mod lost_answers;
mod namespace;
mod node_states;
mod other_tools;
mod races;
mod release;
mod renew;
mod status;
mod status_pods;
mod take_expired;
mod ticket;
mod unhold;
mod verify;
mod wait;
mod waiters;
mod with;
mod write_conflicts;

#[test]
fn no_module_is_forgotten() {
    modules::are_all_declared("cli", include_str!("main.rs"));
}
