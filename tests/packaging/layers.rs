//! The layers of `src/`: imports point only downwards, in the order that CONTRIBUTING.md shows. In no package do files
//! import each other in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::{Module, files, identifiers, imports, imports_of, literals, sources};

/// The layers, from the top down. Modules of the same layer may import each other.
const LAYERS: [&[&str]; 12] = [
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
    &["object", "text"],
    &["layout", "platform"],
];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("src/ has {module}, which is in no layer"))
}

/// A line for each import for which `is_wrong` returns true. Fails unless there are more than `most` imports.
fn wrong(most: usize, is_wrong: impl Fn(&Module, &Module) -> bool) -> String {
    let all = imports();
    let all = all
        .iter()
        .flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    let all: Vec<(&Module, &Module)> = all.collect();
    assert!(all.len() > most, "only {} imports were found", all.len());
    let wrong = all.into_iter().filter(|(from, to)| is_wrong(from, to));
    let wrong = wrong.map(|(from, to)| format!("src/{} imports {}", from.join("/"), to.join("::")));
    wrong.collect::<Vec<_>>().join("\n")
}

#[test]
fn imports_point_downwards() {
    let upwards = wrong(600, |from, to| layer(&to[0]) < layer(&from[0]));
    assert!(upwards.is_empty(), "{upwards}");
}

#[test]
fn commands_do_not_import_each_other() {
    let wrong = wrong(600, |from, to| {
        from[0] == "commands" && to[0] == "commands" && from.len() > 1 && from.get(1) != to.get(1)
    });
    assert!(wrong.is_empty(), "{wrong}");
}

/// Files of a folder share their types in one of these files, so imports never point upwards.
#[test]
fn a_folders_files_do_not_import_from_its_own_file() {
    let upwards = wrong(600, |from, to| to[..] == from[..from.len() - 1]);
    assert!(upwards.is_empty(), "move what is shared down:\n{upwards}");
}

/// Rules about time belong to the library. A seeded bug there then shows in every message and command.
#[test]
fn margins_and_limits_of_locks_are_only_the_librarys() {
    let mut limits = 0;
    for (file, tokens) in sources() {
        let names = identifiers(tokens.clone());
        assert!(!names.contains("SKEW_BUDGET"), "{}", file.display());
        if names.contains("LONGEST_DURATION") {
            // A flag is refused before the first request. Messages get the limit from one function.
            let may = file.starts_with("args") || file == Path::new("words/time.rs");
            assert!(may, "{}", file.display());
            limits += 1;
        }
        let path = file.display().to_string();
        let is_message = ["words", "output", "run", "args/usage_errors"]
            .iter()
            .any(|layer| path.starts_with(layer));
        let texts = literals(tokens).into_iter().map(|(_, text)| text);
        // Help and the schema are constant texts, so they can't name a constant of the library.
        for text in texts.filter(|text| is_message && names_an_hour(text)) {
            assert_eq!(text, EXAMPLE_OF_DURATIONS, "src/{path}");
        }
    }
    assert!(limits > 0, "no flag has a limit");
}

/// The only message that may name an hour: it gives examples of durations.
const EXAMPLE_OF_DURATIONS: &str = "not a duration, e.g. 90s, 30m or 1h";

/// Whether `text` has the longest duration of a lock as a literal.
fn names_an_hour(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| ["1h", "60m", "hour", "3600", "3600s"].contains(&word))
}

#[test]
fn an_hour_is_found() {
    assert!(names_an_hour("a lock lasts at most 1h"));
    assert!(names_an_hour("wait --timeout=60m"));
    assert!(!names_an_hour("in 11h, a lock lasts at most {longest}"));
}

#[test]
fn files_import_no_circles() {
    let circles = circles(imports());
    assert!(circles.is_empty(), "{circles:#?}");
}

/// The other packages of the workspace.
fn packages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["crates", "testing"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        entries.map(move |entry| Path::new(folder).join(entry.expect("an entry").file_name()))
    });
    let packages = folders.chain([PathBuf::from("xtask")]);
    packages
        .filter(|package| root.join(package).join("src").is_dir())
        .collect()
}

#[test]
fn files_of_other_packages_import_no_circles() {
    let packages = packages();
    assert!(packages.len() > 10, "only {packages:?}");
    let mut all = BTreeMap::new();
    for package in packages {
        let circles = circles(imports_of(&package));
        if !circles.is_empty() {
            all.insert(package, circles);
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn few_files_outside_the_folders_of_systems_choose_code() {
    for (package, seams) in [
        (".", &[][..]),
        ("crates/connect", &["platform.rs"]),
        ("crates/supervisor", &["lib.rs", "program.rs"]),
    ] {
        let src = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(package)
            .join("src");
        let mut all = Vec::new();
        files(&src, &mut all);
        let is_of_a_system = |file: &Path| {
            let folder = file.iter().next().and_then(|folder| folder.to_str());
            matches!(folder, Some("linux" | "unix" | "elsewhere" | "platform"))
        };
        let below = all
            .iter()
            .map(|file| file.strip_prefix(&src).expect("below src"));
        let choosing: BTreeSet<&Path> = below
            .filter(|file| !is_of_a_system(file))
            .filter(|file| {
                let text = fs::read_to_string(src.join(file)).expect("text");
                let switches = text.lines().filter(|line| line.contains("cfg"));
                let systems = ["unix", "windows", "target_os"];
                { switches }.any(|line| systems.iter().any(|system| line.contains(system)))
            })
            .collect();
        let seams: BTreeSet<&Path> = seams.iter().map(Path::new).collect();
        assert_eq!(choosing, seams, "{package}");
    }
}

/// The modules in import circles, and those that lead to one. The result is empty if there is no circle.
fn circles(mut imports: BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    loop {
        let before = imports.len();
        let known: BTreeSet<Module> = imports.keys().cloned().collect();
        for to in imports.values_mut() {
            to.retain(|to| known.contains(to));
        }
        imports.retain(|_, to| !to.is_empty());
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let imports =
        |name: &str, to: &[&str]| (module(name), to.iter().map(|to| module(to)).collect());
    let circle = circles(BTreeMap::from([
        imports("a", &["b", "c"]),
        imports("b", &["a"]),
        imports("c", &[]),
    ]));
    let circle: Vec<&Module> = circle.keys().collect();
    assert_eq!(circle, [&module("a"), &module("b")]);
}
