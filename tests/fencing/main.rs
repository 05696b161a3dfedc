//! Fencing, from an unreachable node to its return, and forced deletion, on a real kube-apiserver
//! and kube-controller-manager.

#[path = "../support/modules.rs"]
mod modules;
mod support;
#[path = "../support/verbs.rs"]
mod verbs;

mod clocks;
mod confirmation;
mod cost;
mod crashes;
mod daemons;
mod disks;
mod documented;
mod dry_run;
mod end_to_end;
mod force_delete;
mod held_by_fencing;
mod hints;
mod holds;
mod hooks;
mod interrupts;
mod jobs;
mod label;
mod lost_answers;
mod mass_loss;
mod members;
mod node_deleted;
mod node_gone;
mod races;
mod refused;
mod status;
mod suspect;
mod taints;
mod unfence;
mod volumes;

#[test]
fn no_module_is_forgotten() {
    modules::are_all_declared("fencing", include_str!("main.rs"));
}
