//! The same requests to the in-memory API server and to a real one. Both must agree on status,
//! reason, causes and effect. If they do not, the real one is right.

#[path = "../support/modules.rs"]
mod modules;

mod api;
mod compare;
mod concurrency;
mod deletion;
mod dry_run;
mod events;
mod leases;
mod lists;
mod metadata;
mod namespaces;
mod nodes;
mod normalize;
mod pods;
mod tables;
mod watches;

#[test]
fn no_module_is_forgotten() {
    modules::are_all_declared("contract", include_str!("main.rs"));
}
