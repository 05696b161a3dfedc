//! Fencing, from a silent node to its return, and forced deletion beside it, on a real kube-apiserver and kube-controller-manager.

mod support;

mod back;
mod crashes;
mod documented;
mod doubts;
mod dry_run;
mod force_delete;
mod holds;
mod hooks;
mod interrupts;
mod lost;
mod node_gone;
mod races;
mod shown;
mod staying;
mod taints;
mod whole;

/// Every file beside this one is a module of this binary: none is forgotten.
#[test]
fn no_module_is_forgotten() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fencing");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(here).expect("the directory of this file") {
        let path = entry.expect("an entry").path();
        if !path.is_dir() && path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        let declared = name == "main" || main.contains(&format!("mod {name};"));
        assert!(declared, "{} is not a module", path.display());
    }
}
