//! Fencing, from a silent node to its return, and forced deletion beside it, on a real kube-apiserver and kube-controller-manager.

#[path = "../support/modules.rs"]
mod modules;
mod support;
#[path = "../support/verbs.rs"]
mod verbs;

mod back;
mod clocks;
mod confirmed;
mod cost;
mod crashes;
mod deleted;
mod disks;
mod documented;
mod doubts;
mod dry_run;
mod force_delete;
mod holds;
mod hooks;
mod interrupts;
mod jobs;
mod lost;
mod mass_loss;
mod met;
mod node_gone;
mod races;
mod shown;
mod staying;
mod taints;
mod whole;

#[test]
fn no_module_is_forgotten() {
    modules::are_all_declared("fencing", include_str!("main.rs"));
}
