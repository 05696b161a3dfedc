//! The links between the pages of the documentation: the file and the heading must exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The pages of the repository, with their text.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = BTreeMap::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(root.join(&directory)).expect("a directory") {
            let entry = entry.expect("an entry");
            let path = directory.join(entry.file_name());
            let name = entry.file_name().into_string().expect("UTF-8");
            if entry.file_type().expect("a type").is_dir() {
                if !name.starts_with('.') && name != "target" {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(root.join(&path)).expect("a page");
                pages.insert(path, text);
            }
        }
    }
    pages
}

/// The lines of a page outside its code blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of the headings, as GitHub names them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(page) {
        let text = line.trim_start_matches('#');
        if text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let kept = text
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// The targets of the links in a page, except those on other sites.
fn targets(page: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for line in prose(page) {
        // Every second part of a line is code.
        let prose: Vec<&str> = line.split('`').step_by(2).collect();
        let prose = prose.join("code");
        for rest in prose.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                targets.push(target.to_owned());
            }
        }
    }
    targets
}

/// The path of a link from this page.
fn linked(page: &Path, target: &str) -> PathBuf {
    if target.is_empty() {
        return page.to_owned();
    }
    let directory = page.parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in directory.join(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = pages();
    let mut count = 0;
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for target in targets(text) {
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = linked(page, path);
            let is_heading = || {
                let linked = pages.get(&path);
                linked.is_some_and(|linked| anchors(linked).contains(anchor))
            };
            if !root.join(&path).exists() || !anchor.is_empty() && !is_heading() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(count > 50, "only {count} links found");
}

#[test]
fn links_and_anchors_are_read_as_github_reads_them() {
    let page = "# A `b` c-d, e!\n## A\n## A\n```\n# no\n[x](no)\n```\n[x](a.md#b) `[x](no)` [y](https://x) ![z](z.svg)";
    assert_eq!(targets(page), ["a.md#b", "z.svg"]);
    let names: Vec<String> = anchors(page).into_iter().collect();
    assert_eq!(names, ["a", "a-1", "a-b-c-d-e"]);
    assert_eq!(
        linked(Path::new("docs/a.md"), "../README.md"),
        Path::new("README.md")
    );
}
