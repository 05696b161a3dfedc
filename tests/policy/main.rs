//! The admission policies of deploy/, and the commands that install and remove them, on a real kube-apiserver.

#[path = "../support/modules.rs"]
mod modules;
#[path = "../support/schema.rs"]
mod schema;
mod support;

mod audit_log;
mod doctor;
mod fencing;
mod held_label;
mod install;
mod killed_writes;
mod lease_clock;
mod lease_fuzz;
mod lease_locks;
mod lease_plugin;
mod node_fuzz;
mod node_others;
mod node_record;
mod server_clocks;
mod stall;
mod verbs;

#[test]
fn no_module_is_forgotten() {
    modules::are_all_declared("policy", include_str!("main.rs"));
}
