//! Each module of `connect` says which gap in kube it closes. One that closes none is not needed.

use std::fs;
use std::path::Path;

use crate::source::files;

#[test]
fn each_module_of_connect_names_the_gap_in_kube_that_it_closes() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/connect/src");
    let mut modules = Vec::new();
    files(&src, &mut modules);
    modules.retain(|path| path.parent() == Some(&*src) && !path.ends_with("lib.rs"));
    assert!(modules.len() > 10, "{modules:?}");
    for path in modules {
        let text = fs::read_to_string(&path).expect("text");
        let head = text.lines().take_while(|line| line.starts_with("//!"));
        let mut words = head.flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
        assert!(words.any(|word| word == "kube"), "{}", path.display());
    }
}
