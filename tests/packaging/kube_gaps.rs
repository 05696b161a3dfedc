//! The doc comment of each module of `connect` names the gap in kube that it closes. A module that closes none is not
//! needed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::source::files;

/// The beginning of the paragraph about the gap.
const GAP: &str = "Gap in kube: ";

/// The paragraph of a module's doc comment that says why kube is not enough. `None` unless there is exactly one.
fn gap(text: &str) -> Option<String> {
    let head = text.lines().map_while(|line| line.strip_prefix("//!"));
    let head: Vec<&str> = head.map(str::trim).collect();
    let paragraphs = head.split(|line| line.is_empty());
    let paragraphs = paragraphs.map(|lines| lines.join(" "));
    let mut gaps = paragraphs.filter_map(|text| Some(text.strip_prefix(GAP)?.to_owned()));
    gaps.next().filter(|_| gaps.next().is_none())
}

#[test]
fn each_module_of_connect_names_the_gap_in_kube_that_it_closes() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/connect/src");
    let mut modules = Vec::new();
    files(&src, &mut modules);
    modules.retain(|path| path.parent() == Some(&*src) && !path.ends_with("lib.rs"));
    assert!(modules.len() > 10, "{modules:?}");
    let mut gaps: BTreeMap<String, String> = BTreeMap::new();
    for path in modules {
        let text = fs::read_to_string(&path).expect("text");
        let module = path.file_stem().expect("a name");
        let module = module.to_str().expect("text").to_owned();
        let gap = gap(&text).unwrap_or_else(|| panic!("{module}.rs: add `//! {GAP}...`"));
        let is_sentence = gap.split(' ').count() > 2 && gap.ends_with('.');
        assert!(is_sentence, "{module}.rs: {gap}");
        let other = gaps.insert(gap, module.clone());
        assert_eq!(other, None, "{module}.rs closes the same gap");
    }
}

#[test]
fn a_head_without_its_gap_is_found() {
    let told = "//! Flags.\n//!\n//! Gap in kube: it has\n//! no flags.\n\nuse kube;";
    assert_eq!(gap(told).as_deref(), Some("it has no flags."));
    for text in [
        "//! Flags, which kube lacks.\n\nuse kube;",
        "//! Flags.\n\n// Gap in kube: it has no flags.",
        "//! Gap in kube: a.\n//!\n//! Gap in kube: b.",
    ] {
        assert_eq!(gap(text), None, "{text}");
    }
}
