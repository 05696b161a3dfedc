//! The parts that are changed by hand for a release (CONTRIBUTING.md).

use regex::Regex;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn newest_section_of_the_changelog_is_unreleased_or_this_version() {
    let changelog = include_str!("../../CHANGELOG.md");
    let mut sections = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "));
    let newest = sections.next().expect("a section");
    let this = format!("v{VERSION}");
    assert!(newest == "Unreleased" || newest == this, "{newest}");
}

#[test]
fn files_in_the_docs_have_this_version() {
    let docs = include_str!("../../docs/install.md");
    let file =
        Regex::new(r"kubectl-maint-v?([0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|pre|rc)[.0-9]*)?)")
            .expect("an expression");
    let versions = file.captures_iter(docs).map(|found| found[1].to_owned());
    let versions: Vec<String> = versions.collect();
    assert!(!versions.is_empty(), "{docs}");
    assert!(
        versions.iter().all(|version| version == VERSION),
        "{versions:?}"
    );
}
