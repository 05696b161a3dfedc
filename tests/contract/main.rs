//! The same requests to the in-memory API server and to a real one: they must agree on status,
//! reason, causes and effect. Where they don't, the real one is right.

mod agreement;
mod api;
mod concurrency;
mod deletion;
mod dry_run;
mod events;
mod leases;
mod lists;
mod metadata;
mod namespaces;
mod nodes;
mod normal;
mod pods;
mod tables;
mod watches;

use std::collections::BTreeSet;
use std::path::Path;

/// A file that no `mod` names holds tests that never run.
#[test]
fn no_module_is_forgotten() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract");
    let files: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "main")
        .collect();
    let modules: BTreeSet<String> = include_str!("main.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(files, modules);
}
