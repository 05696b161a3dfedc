//! The layers of `src/`: imports point downwards only, in the order that CONTRIBUTING.md shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, from the top down. What shares a layer may import each other.
const LAYERS: [&[&str]; 11] = [
    &["main", "app"],
    &["completion"],
    &["commands"],
    &["run"],
    &["args"],
    &["ui"],
    &["output"],
    &["words"],
    &["exit"],
    &["error"],
    &["signals", "text", "platform"],
];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("src/ has {module}, which is in no layer"))
}

fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The top-level modules that `text` names, its tests left out.
fn imports(text: &str) -> BTreeSet<&str> {
    let (code, _) = text
        .split_once("#[cfg(test)]\nmod tests {")
        .unwrap_or((text, ""));
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    paths
        .map(|path| {
            path.split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
        })
        .map(Option::unwrap_or_default)
        .filter(|module| !module.is_empty())
        .collect()
}

#[test]
fn imports_point_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let mut upwards = Vec::new();
    let mut seen = 0;
    for file in all {
        let path = file.strip_prefix(&src).expect("below src");
        if path.file_name().is_some_and(|name| name == "tests.rs") {
            continue;
        }
        let top = path
            .iter()
            .next()
            .and_then(|top| top.to_str())
            .expect("text");
        let from = top.trim_end_matches(".rs");
        for to in imports(&fs::read_to_string(&file).expect("text")) {
            seen += 1;
            if layer(to) < layer(from) {
                upwards.push(format!("src/{} imports crate::{to}", path.display()));
            }
        }
    }
    assert!(seen > 300, "only {seen} imports were found");
    assert!(upwards.is_empty(), "{}", upwards.join("\n"));
}

#[test]
fn an_import_is_found_in_any_form() {
    let text = "use crate::run::{a, b};\n// use crate::words;\nfn f() { crate::ui::g() }\n\
                #[cfg(test)]\nmod tests {\n    use crate::app::Cli;\n}\n";
    assert_eq!(imports(text), BTreeSet::from(["run", "ui"]));
}
