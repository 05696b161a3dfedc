//! The plugin as a user runs it: arguments in, stdout, stderr and exit code out, on an in-memory API
//! server and on a real one.

mod support;

mod acquire;
mod bad_input;
mod confirmation;
mod fencing;
mod hold;
mod interrupted;
mod leases;
mod lost_answers;
mod node_states;
mod odd_surroundings;
mod races;
mod release;
mod renew;
mod status;
mod storms;
mod stranded;
mod unhold;
mod verify;
mod wait;
mod waiting;
mod with;

/// Every file beside this one is a module of this binary: none is forgotten.
#[test]
fn no_module_is_forgotten() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli");
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
